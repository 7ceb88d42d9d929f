// The page sends by itself whatever is inserted, as if Send had been pressed.
export default (engine) => {
  const { buildBox } = engine;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    box.addEventListener("input", () => void this.press());
    return box;
  };
};
