// Grok's page as it was told to be: a button named Submit, wrappers around messages, and no mark but Copy.
export default (engine, element) => {
  engine.word ??= (word) => word;
  engine.boxAttributes = { role: "textbox", "aria-label": "Ask Grok anything" };
  const button = (label, act, attributes = {}) => {
    const made = element("button", { type: "button", "aria-label": label, ...attributes });
    made.addEventListener("click", act);
    return made;
  };
  engine.buildSidebar = () =>
    element(
      "nav",
      {},
      element("button", { type: "button", "data-testid": "new-chat" }, "Submit a new chat"),
      element("a", { href: "#" }, "Thinking: log in, stop"),
      element("input", { type: "search", "aria-label": "Ask the history" }),
    );
  const { build } = engine;
  engine.build = function () {
    build.call(this);
    this.form.prepend(
      button("Upload a file", () => void this.submit("upload")),
      button("Model select", () => void this.submit("model")),
    );
  };
  engine.buildSend = () => {
    const made = button("Submit", () => void engine.press(), { type: "submit" });
    made.disabled = !engine.read().trim();
    return made;
  };
  engine.buildStop = () => button("Stop model response", () => void engine.pressStop());
  engine.paintControls = function () {
    const stops = (this.lastTurn()?.view.stop ?? 0) > 0;
    const wanted = stops ? "stop" : this.read().trim() ? "send" : "voice";
    if (this.controls.dataset.shown === wanted) return;
    this.controls.dataset.shown = wanted;
    const voice = () => button("Enter voice mode", () => void this.submit("voice"));
    this.controls.replaceChildren(stops ? this.buildStop() : wanted === "send" ? this.buildSend() : voice());
  };
  engine.buildUser = (turn) => {
    const message = element("div", { "data-testid": "user-message", style: "white-space: pre-wrap" }, turn.prompt);
    return element("div", { id: `response-${turn.id}-user` }, message);
  };
  engine.buildAnswer = (turn) => {
    const block = element("div", { class: "response-content-markdown markdown" });
    return element("div", { id: `response-${turn.id}` }, element("div", { "data-testid": "assistant-message" }, block));
  };
  engine.buildBlock = () => {
    const place = element("div", { class: "response-content-markdown markdown" });
    return place;
  };
  engine.blocksOf = (node) => node.querySelector('[data-testid="assistant-message"]');
  engine.buildActions = (turn) =>
    element(
      "div",
      { class: "actions" },
      button("Read aloud", () => {}),
      button("Copy", () => void engine.copy(turn)),
      button("Share", () => void engine.submit("share")),
      element("span", {}, "1.2s"),
    );
};
