// The composer goes away as soon as something is in it.
export default (engine) => {
  const { buildBox } = engine;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    box.addEventListener("input", () => this.form.remove());
    return box;
  };
};
