// The box is replaced by another one as soon as it gets the focus, and once more a moment later.
export default (engine) => {
  const { buildBox } = engine;
  let times = 0;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    const replace = () => {
      if (!box.isConnected || times >= 2) return;
      times += 1;
      this.box = this.buildBox();
      box.replaceWith(this.box);
    };
    box.addEventListener("focus", () => (times === 0 ? replace() : setTimeout(replace, 30)));
    return box;
  };
};
