// The page puts a draft back into its composer as soon as something is typed there, before what is typed.
export default (engine) => {
  const { buildBox } = engine;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    box.addEventListener("input", () => this.write(`Dear diary ${this.read()}`), { once: true });
    return box;
  };
};
