// The page sends at each end of a line, also of text that is inserted.
export default (engine) => {
  const { buildBox } = engine;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    box.addEventListener("input", () => {
      const [line, ...rest] = this.read().split("\n");
      if (!rest.length) return;
      this.write(rest.join("\n"));
      void this.submit(line);
    });
    return box;
  };
};
