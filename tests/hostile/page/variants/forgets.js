// What is typed first is gone a moment later, as in a page that was not alive yet and did not say so.
export default (engine) => {
  const { buildBox } = engine;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    const forget = () => {
      this.write("");
    };
    box.addEventListener("input", forget, { once: true });
    return box;
  };
};
