// Another surface of the same site is chosen, with a composer of the same kind.
export default (engine, element) => {
  const { build } = engine;
  engine.build = function () {
    build.call(this);
    const radio = (name, on) =>
      element("button", { type: "button", role: "radio", "aria-checked": String(on), "data-state": on ? "on" : "off" }, name);
    this.transcript.before(radio("Chat", false), radio("Work", true));
  };
};
