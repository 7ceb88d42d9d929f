// A dialog lies over the composer, until a person closes it.
export default (engine, element) => {
  const { build } = engine;
  engine.build = function () {
    build.call(this);
    const style = "position: fixed; inset: 0; background: #0008; z-index: 9";
    document.body.append(element("div", { id: "cover", role: "dialog", style }, "Rate this answer"));
  };
};
