// The page sends by itself what is inserted, empties its composer, and shows nothing of it.
export default (engine) => {
  const { buildBox } = engine;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    box.addEventListener("input", () => {
      const prompt = this.read();
      if (!prompt.trim()) return;
      this.write("");
      void this.post("/api/conversations/new", { variant: "sends-silently", prompt });
    });
    return box;
  };
};
