// A dialog lies over the page for a while, and goes by itself.
export default (engine, element) => {
  const { build } = engine;
  engine.build = function () {
    build.call(this);
    const style = "position: fixed; inset: 0; background: #0008; z-index: 9";
    const veil = element("div", { class: "cdk-overlay-backdrop cdk-overlay-backdrop-showing", style });
    document.body.append(veil);
    setTimeout(() => veil.remove(), 1500);
  };
};
