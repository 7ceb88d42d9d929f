// The page is shown before it is alive: what is typed then is gone with the box it was typed into.
export default (engine, element) => {
  const { start } = engine;
  engine.start = async function () {
    const attributes = { contenteditable: "true", class: "ProseMirror ql-editor", ...this.boxAttributes };
    const box = element("rich-textarea", {}, element("div", attributes));
    const dead = element("main", {}, element("form", { class: "composer" }, box));
    document.body.append(dead);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    dead.remove();
    await start.call(this);
  };
};
