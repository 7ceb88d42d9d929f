// The composer is Quill, as installed from npm: Enter sends, and what is sent is what the editor's own model holds.
const script = document.createElement("script");
script.src = "/modules/quill/dist/quill.js";
const style = document.createElement("link");
style.rel = "stylesheet";
style.href = "/modules/quill/dist/quill.core.css";
document.head.append(style);
await new Promise((resolve, reject) => {
  script.onload = resolve;
  script.onerror = reject;
  document.head.append(script);
});
const { Quill } = globalThis;

export default (engine, element) => {
  engine.buildBox = function () {
    const inner = element("div", { style: "max-height: 120px; overflow: auto" });
    const place = element("rich-textarea", { style: "flex: 1" }, inner);
    const send = {
      key: "Enter",
      handler: () => {
        void this.press();
        return false;
      },
    };
    this.editor = new Quill(inner, { modules: { keyboard: { bindings: { send } } }, formats: [] });
    this.editor.on("text-change", () => this.paintControls());
    this.editor.root.setAttribute("aria-label", "Enter a prompt");
    this.editor.root.setAttribute("role", "textbox");
    return place;
  };
  // Quill ends each document with a line end of its own.
  engine.read = function () {
    return this.editor.getText().replace(/\n$/, "");
  };
  engine.write = function (text) {
    this.editor.setText(text);
    this.paintControls();
  };
};
