// The composer takes no more than 1,000 characters, and says nothing.
export default (engine) => {
  const { buildBox } = engine;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    box.addEventListener("input", () => this.read().length > 1000 && this.write(this.read().slice(0, 1000)));
    return box;
  };
};
