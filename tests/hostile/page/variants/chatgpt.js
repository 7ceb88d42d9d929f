// ChatGPT's page as it was told to be: an icon button in whose place Stop or a microphone stands, turns in numbered
// articles with message nodes in them, headings that only readers of screens get, and actions below a finished answer.
export default (engine, element) => {
  const HIDDEN = "position: absolute; width: 1px; height: 1px; overflow: hidden";
  const { build } = engine;
  engine.word ??= (word) => word;
  engine.twinName = "prompt-textarea";
  engine.boxAttributes = {
    id: "prompt-textarea",
    role: "textbox",
    "aria-label": engine.word("Message ChatGPT"),
    "data-virtualkeyboard": "true",
  };
  const button = (label, act, attributes = {}) => {
    const made = element("button", { type: "button", "aria-label": engine.word(label), ...attributes });
    made.addEventListener("click", act);
    return made;
  };
  engine.buildSidebar = () =>
    element(
      "nav",
      {},
      element("div", { role: "search" }, element("div", { role: "textbox", contenteditable: "true" })),
      element("a", { href: "#" }, "Thinking"),
      element("a", { href: "#" }, "Log in, sign up: just a moment"),
      element("button", { type: "button", "data-testid": "profile-button" }, "Me"),
    );
  engine.build = function () {
    build.call(this);
    this.form.prepend(
      button("Add files and more", () => this.submit("plus"), { "data-testid": "composer-plus-btn" }),
      element("button", { type: "button", "aria-haspopup": "menu" }, engine.word("Instant")),
    );
  };
  engine.buildSend = () => button("Send prompt", () => void engine.press(), { "data-testid": "send-button" });
  engine.buildStop = () => button("Stop streaming", () => void engine.pressStop(), { "data-testid": "stop-button" });
  engine.buildVoice = () => [
    button("Dictate", () => void engine.submit("dictation")),
    button("Start voice mode", () => void engine.submit("voice")),
  ];
  engine.paintControls = function () {
    const stops = (this.lastTurn()?.view.stop ?? 0) > 0;
    const wanted = stops ? "stop" : this.read().trim() ? "send" : "voice";
    if (this.controls.dataset.shown === wanted) return;
    this.controls.dataset.shown = wanted;
    const made = { stop: () => [this.buildStop()], send: () => [this.buildSend()], voice: () => this.buildVoice() };
    this.controls.replaceChildren(...made[wanted]());
  };
  const article = (turn, role, number, ...children) =>
    element(
      "article",
      { "data-testid": `conversation-turn-${2 * engine.turns.indexOf(turn) + number}`, "data-turn": role },
      element("h5", { style: HIDDEN }, role === "user" ? "You said:" : "ChatGPT said:"),
      ...children,
    );
  engine.buildUser = (turn) => {
    const attributes = { "data-message-author-role": "user", "data-message-id": `${turn.id}-user` };
    const text = element("div", { style: "white-space: pre-wrap" }, turn.prompt);
    return article(turn, "user", 1, element("div", attributes, text));
  };
  engine.buildAnswer = (turn) => {
    const attributes = { "data-message-author-role": "assistant", "data-message-id": `${turn.id}-answer` };
    return article(turn, "assistant", 2, element("div", attributes, element("div", { class: "markdown prose" })));
  };
  engine.buildBlock = () =>
    element("div", { "data-message-author-role": "assistant" }, element("div", { class: "markdown prose" }));
  engine.blocksOf = (node) => node.querySelector(":scope > [data-message-author-role]");
  engine.buildActions = (turn) =>
    element(
      "div",
      { class: "actions" },
      button("Copy", () => void engine.copy(turn), { "data-testid": "copy-turn-action-button" }),
      button("Good response", () => {}, { "data-testid": "good-response-turn-action-button" }),
      button("Bad response", () => {}, { "data-testid": "bad-response-turn-action-button" }),
      button("Share", () => void engine.submit("share")),
    );
};
