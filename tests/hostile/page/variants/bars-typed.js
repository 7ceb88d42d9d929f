// A sign-in comes up as soon as something is typed, once; the prompt stays in the composer behind it.
export default (engine) => {
  const { buildBox } = engine;
  let shown = false;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    box.addEventListener("input", () => {
      if (shown || !this.read().trim()) return;
      shown = true;
      this.bar("sign-in");
    });
    return box;
  };
};
