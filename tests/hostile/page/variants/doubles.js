// What is typed first is there twice, as in a page that plays it again once it is alive.
export default (engine) => {
  const { buildBox } = engine;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    box.addEventListener("input", () => this.write(this.read() + this.read()), { once: true });
    return box;
  };
};
