// A page of its own kind stands in the way from the beginning: the name of the variant beside this one says which.
// `engine.bar(kind)` puts it there at any time, `engine.unbar()` takes it away.
export default (engine, element) => {
  const texts = {
    "sign-in": "Welcome back. Log in to go on.",
    challenge: "Just a moment... Checking that you are a person.",
    consent: "Before you continue: accept the terms.",
    limit: "You've reached your limit. Your limit resets in 2 hours.",
  };
  engine.bar = (kind) => {
    const style = "position: fixed; inset: 0; background: #fff; z-index: 9";
    document.body.append(element("div", { id: "bar", role: "dialog", class: kind, style }, texts[kind]));
  };
  engine.unbar = () => document.querySelector("#bar").remove();
  globalThis.engine = engine;
  const kind = engine.variants.find((variant) => variant in texts);
  const { build } = engine;
  engine.build = function () {
    build.call(this);
    if (kind) this.bar(kind);
  };
};
