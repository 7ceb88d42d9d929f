// Gemini's page as it was told to be: elements of its own and no form, a button that sends and then stops, a footer in
// each answer, and /app for an address.
export default (engine, element) => {
  engine.word ??= (word) => word;
  engine.conversation = /\/app\/([^/]+)$/.exec(location.pathname)?.[1] ?? null;
  engine.addressOf = (conversation) => `/app/${conversation}`;
  const block = (name, attributes = {}, ...children) => element(name, { style: "display: block", ...attributes }, ...children);
  const button = (label, act, attributes = {}) => {
    const made = element("button", { type: "button", "aria-label": engine.word(label), ...attributes });
    made.addEventListener("click", act);
    return made;
  };
  engine.buildSidebar = () =>
    element(
      "nav",
      {},
      button("New chat", () => void engine.submit("new chat"), { "aria-disabled": "true" }),
      element("a", { href: "#", "aria-label": "Sign in" }, "Sign in"),
      element("input", { type: "search", "aria-label": "Search for prompts" }),
    );
  engine.buildForm = () => element("input-area-v2", { class: "composer" });
  const { build } = engine;
  engine.build = function () {
    build.call(this);
    this.form.prepend(button("Open upload file menu", () => void this.submit("upload")));
  };
  engine.buildSend = () => button("Send message", () => void engine.press(), { class: "send-button submit" });
  engine.buildStop = () => button("Stop response", () => void engine.pressStop(), { class: "send-button stop" });
  engine.paintControls = function () {
    const stops = (this.lastTurn()?.view.stop ?? 0) > 0;
    const wanted = stops ? "stop" : this.read().trim() ? "send" : "voice";
    if (this.controls.dataset.shown === wanted) return;
    this.controls.dataset.shown = wanted;
    const voice = () => button("Microphone", () => void this.submit("voice"));
    this.controls.replaceChildren(stops ? this.buildStop() : wanted === "send" ? this.buildSend() : voice());
  };
  engine.buildUser = (turn) => {
    const lines = turn.prompt.split("\n").map((line) => element("p", {}, line));
    return block("user-query", {}, element("div", { class: "query-text" }, ...lines));
  };
  engine.buildAnswer = () =>
    block(
      "model-response",
      {},
      button("Show thinking", () => {}),
      block("message-content", {}, element("div", { class: "markdown" })),
      element("div", { class: "response-footer" }, element("div", { role: "progressbar" }, "…")),
    );
  engine.buildBlock = () => block("message-content", {}, element("div", { class: "markdown" }));
  engine.blocksOf = (node) => node;
  engine.paintMark = (node, turn) => {
    const footer = node.querySelector(".response-footer");
    if (footer.classList.contains("complete") === turn.view.done) return;
    footer.classList.toggle("complete", turn.view.done);
    footer.replaceChildren(turn.view.done ? engine.buildActions(turn) : element("div", { role: "progressbar" }, "…"));
  };
  engine.buildActions = (turn) =>
    block(
      "message-actions",
      {},
      button("Good response", () => {}),
      button("Copy", () => void engine.copy(turn), { "data-test-id": "copy-button" }),
      button("Share", () => void engine.submit("share")),
    );
};
