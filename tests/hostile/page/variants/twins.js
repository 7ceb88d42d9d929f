// Hidden copies of the composer, for other widths of the window, and of its controls.
export default (engine) => {
  const { build, paintControls } = engine;
  engine.build = function () {
    build.call(this);
    for (const style of ["display: none", "visibility: hidden; position: absolute"]) {
      const twin = this.form.cloneNode(true);
      twin.style.cssText = style;
      this.form.before(twin);
    }
  };
  engine.paintControls = function () {
    paintControls.call(this);
    if (this.controls.querySelector("[hidden]")) return;
    for (const one of [...this.controls.children]) {
      const twin = one.cloneNode(true);
      twin.hidden = true;
      this.controls.prepend(twin);
    }
  };
};
