// The composer is an editable element that sends at Enter, as rich editors do.
export default (engine, element) => {
  engine.buildBox = function () {
    const box = element("div", { id: "prompt", contenteditable: "true", role: "textbox", "aria-label": "Message" });
    box.addEventListener("input", () => this.paintControls());
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      void this.press();
    });
    return box;
  };
  // The first line stands in the box itself, each other one in an element of its own.
  engine.read = function () {
    const lines = [""];
    for (const node of this.box.childNodes) {
      if (node instanceof HTMLDivElement) lines.push(node.textContent);
      else lines[lines.length - 1] += node.textContent;
    }
    return lines.join("\n");
  };
  engine.write = function (text) {
    this.box.innerText = text;
    this.paintControls();
  };
};
