// Boxes that look like the composer and are not: known ids on what cannot be edited, hidden and unusable twins, a
// search box, a question in a dialog, and an older prompt that is being edited.
export default (engine, element) => {
  const { build, buildUser } = engine;
  engine.build = function () {
    build.call(this);
    const gone = "position: absolute; left: -100000px; height: 1px";
    document.body.prepend(
      element("div", { id: "prompt" }, "Message"),
      element("textarea", { class: "decoy", style: "display: none" }),
      element("textarea", { class: "decoy", style: "opacity: 0" }),
      element("textarea", { class: "decoy", style: "width: 0; height: 0; padding: 0; border: 0" }),
      element("div", { class: "decoy", contenteditable: "true", style: gone }, ""),
      element("textarea", { class: "decoy", readonly: "" }),
      element("textarea", { class: "decoy", "aria-disabled": "true" }),
      element("textarea", { class: "decoy", disabled: "" }),
    );
    this.sidebar.append(element("textarea", { class: "decoy", placeholder: "Search chats" }));
    const dialog = element("div", { role: "dialog" }, element("textarea", { class: "decoy", placeholder: "Tell us" }));
    document.body.append(dialog);
  };
  engine.buildUser = function (turn) {
    const node = buildUser.call(this, turn);
    node.append(element("form", {}, element("textarea", { class: "decoy" }), element("button", {}, "Send")));
    return node;
  };
};
