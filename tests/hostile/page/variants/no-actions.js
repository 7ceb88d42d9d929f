// A finished answer has a mark, but no controls of its own.
export default (engine, element) => {
  engine.buildActions = () => element("div", { class: "actions finished" });
};
