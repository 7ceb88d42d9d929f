// Words of the ways in stand where they mean nothing: in a title, in the sidebar, in an older turn.
export default (engine, element) => {
  const { build, buildUser } = engine;
  const words = "Log in, Just a moment, accept the terms, You've reached your limit";
  engine.build = function () {
    build.call(this);
    document.title = words;
    this.sidebar.append(element("p", {}, words), element("a", { class: "sign-in", href: "#" }, "Log in"));
  };
  engine.buildUser = function (turn) {
    const node = buildUser.call(this, turn);
    node.append(element("div", { class: "challenge limit", role: "dialog" }, words));
    return node;
  };
};
