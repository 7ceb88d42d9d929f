// All over the page stands what looks like the composer and its controls, and is not; whoever touches it is told of.
export default (engine, element) => {
  const { build } = engine;
  const touched = (what) => () => void engine.submit(`decoy: ${what}`);
  const box = (name, attributes) => {
    const made = element(name, attributes);
    made.addEventListener("input", touched(`typed into ${name}`));
    return made;
  };
  const button = (label) => {
    const made = element("button", { type: "button", "aria-label": label }, label);
    made.addEventListener("click", touched(label));
    return made;
  };
  engine.build = function () {
    build.call(this);
    this.sidebar.append(
      box("div", { role: "textbox", contenteditable: "true", "aria-label": "Rename: message, prompt, ask Gemini" }),
      box("textarea", { placeholder: "Send a message to support" }),
      button("Send feedback"),
      button("Submit"),
    );
    const portal = element(
      "div",
      { role: "menu", style: "position: fixed; top: 0; right: 0" },
      button("Send message to a friend"),
      button("Stop sharing"),
      button("Stop reading aloud"),
    );
    const canvas = element("section", { style: "height: 60px" }, box("div", { class: "notes", contenteditable: "true" }));
    const dialog = element("div", { role: "dialog" }, box("textarea", { "aria-label": "Message ChatGPT" }), button("Submit"));
    this.transcript.before(canvas, dialog);
    document.body.append(portal);
  };
};
