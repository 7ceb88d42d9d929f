// The chat engine of the hostile page. A variant is a module that gets `engine` before anything is built, and replaces
// or wraps what it wants to be different: `build…`, `paint…`, `read`, `press` and the like are all looked up there.

const variants = document.documentElement.dataset.variants.split(",");
// A page that is served as a whole host has the addresses of the site that it stands for.
const base = location.pathname.startsWith("/v/") ? `/v/${variants.join(",")}` : "";

/** An element with attributes and children. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export const engine = {
  variants,
  conversation: /\/c\/([^/]+)$/.exec(location.pathname)?.[1] ?? null,
  turns: [], // as the server tells them: id, prompt, number, view, ended
  nodes: new Map(), // by turn id: {user, answer}

  // Building

  build() {
    this.sidebar = this.buildSidebar();
    this.transcript = element("div", { id: "transcript" });
    this.form = this.buildForm();
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.box = this.buildBox();
    this.controls = element("span", { id: "controls" });
    this.form.append(this.box, this.controls);
    document.body.append(this.sidebar, element("main", {}, this.transcript, this.form));
    this.paintControls();
  },
  buildForm() {
    return element("form", { id: "composer" });
  },
  buildSidebar() {
    return element("nav", {}, element("a", { href: "#" }, "Stop Thinking, Log in: ray id"));
  },
  buildBox() {
    const box = element("textarea", { id: "prompt", "aria-label": "Message" });
    box.addEventListener("input", () => this.paintControls());
    return box;
  },
  buildSend() {
    const send = element("button", { type: "button", "data-testid": "send-button", "aria-label": "Send" }, "↑");
    send.addEventListener("click", () => void this.press());
    return send;
  },
  buildStop() {
    const stop = element("button", { type: "button", "data-testid": "stop-button", "aria-label": "Stop" }, "■");
    stop.addEventListener("click", () => void this.pressStop());
    return stop;
  },
  read() {
    return this.box.value;
  },
  write(text) {
    this.box.value = text;
    this.paintControls();
  },

  // Acting

  lastTurn() {
    return this.turns.at(-1);
  },
  async press() {
    const prompt = this.read();
    if (!prompt.trim()) return;
    this.write("");
    await this.submit(prompt);
  },
  async submit(prompt) {
    const turn = await this.post(`/api/conversations/${this.conversation ?? "new"}`, {
      variant: variants.join(","),
      prompt,
    });
    this.conversation = turn.conversation;
    this.turns.push(turn);
    this.follow(turn);
  },
  async pressStop() {
    const turn = this.lastTurn();
    if (turn) await this.post(`/api/turns/${turn.id}/stop`, {});
  },
  async post(address, body) {
    const reply = await fetch(address, { method: "POST", body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(`refused: ${reply.status}`);
    return reply.json();
  },

  // Following what the server shows

  async follow(turn) {
    this.shown(turn);
    while (!turn.ended) {
      try {
        const reply = await fetch(`/api/turns/${turn.id}?since=${turn.number}`);
        if (!reply.ok) return;
        Object.assign(turn, await reply.json());
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 200));
        continue;
      }
      this.shown(turn);
    }
  },
  shown(turn) {
    this.schedule(turn);
    if (turn.view.do) new Function("engine", "turn", turn.view.do)(this, turn);
  },
  schedule(turn) {
    this.paint(turn);
  },

  // Painting

  paint(turn) {
    if (turn.view.user) {
      const address = this.addressOf(turn.conversation);
      if (this.conversation === turn.conversation && location.pathname !== address) this.moveTo(address);
      this.paintUser(turn);
    }
    this.paintAnswer(turn);
    this.paintBanner(turn);
    this.paintControls();
  },
  node(turn) {
    if (!this.nodes.has(turn.id)) this.nodes.set(turn.id, { user: null, answer: null });
    return this.nodes.get(turn.id);
  },
  addressOf(conversation) {
    return `${base}/c/${conversation}`;
  },
  moveTo(address) {
    history.pushState(null, "", address);
  },
  paintUser(turn) {
    const node = this.node(turn);
    if (node.user) return;
    node.user = this.buildUser(turn);
    this.transcript.append(node.user);
  },
  buildUser(turn) {
    const prompt = element("div", { class: "prompt", style: "white-space: pre-wrap" }, turn.prompt);
    return element("article", { "data-turn": "user", "data-turn-id": `${turn.id}-user` }, prompt);
  },
  paintAnswer(turn) {
    const { view } = turn;
    const node = this.node(turn);
    if (!(view.text || view.html || view.placeholder || view.place || view.done)) return;
    if (!node.answer) {
      node.answer = this.buildAnswer(turn);
      this.transcript.append(node.answer);
    }
    this.fillAnswer(node.answer, turn);
    this.paintMark(node.answer, turn);
  },
  buildAnswer(turn) {
    const attributes = { "data-turn": "assistant", "data-turn-id": `${turn.id}-assistant` };
    return element("article", attributes, element("div", { class: "markdown" }));
  },
  fillAnswer(node, turn) {
    this.fillText(node.querySelector(".markdown"), turn.view);
  },
  /** Bring paragraphs in line with the text; those that have not changed stay the same elements. */
  fillText(place, view) {
    if (view.html) {
      if (place.dataset.html !== view.html) place.innerHTML = view.html;
      place.dataset.html = view.html;
      return;
    }
    const text = view.text || view.placeholder;
    const paragraphs = text ? text.split("\n\n") : [];
    paragraphs.forEach((paragraph, index) => {
      const shown = place.children[index];
      if (shown?.textContent === paragraph) return;
      const made = element("p", { style: "white-space: pre-wrap" }, paragraph);
      if (shown) shown.replaceWith(made);
      else place.append(made);
    });
    while (place.children.length > paragraphs.length) place.lastElementChild.remove();
  },
  paintMark(node, turn) {
    const actions = node.querySelector(":scope > .actions");
    if (!turn.view.done) actions?.remove();
    else if (!actions) node.append(this.buildActions(turn));
  },
  buildActions(turn) {
    const copy = element("button", { type: "button", "data-testid": "copy-turn-action-button" }, "Copy");
    copy.addEventListener("click", () => void this.copy(turn));
    return element("div", { class: "actions" }, copy);
  },
  copy(turn) {
    return navigator.clipboard.writeText(turn.view.copied ?? turn.view.text);
  },
  paintBanner(turn) {
    if (turn !== this.lastTurn()) return;
    this.banner?.remove();
    this.banner = null;
    const text = turn.view.banner || turn.view.limit;
    if (!text) return;
    const attributes = { role: "alert", class: turn.view.banner ? "failure" : "limit" };
    this.banner = element("div", attributes, text);
    this.transcript.append(this.banner);
  },
  paintControls() {
    const stops = this.lastTurn()?.view.stop ?? 0;
    const wanted = stops > 0 ? `stop-${stops}` : "send";
    if (this.controls.dataset.shown !== wanted) {
      this.controls.dataset.shown = wanted;
      const made = stops > 0 ? Array.from({ length: stops }, () => this.buildStop()) : [this.buildSend()];
      this.controls.replaceChildren(...made);
    }
    const send = this.controls.querySelector('[data-testid="send-button"]');
    if (send) send.disabled = !this.read().trim();
  },

  // Starting

  async load() {
    if (this.conversation === null) return;
    const reply = await fetch(`/api/conversations/${this.conversation}`);
    if (!reply.ok) {
      location.replace(`${base}/`);
      return;
    }
    this.turns = await reply.json();
    await this.mountTurns(this.turns);
  },
  async mountTurns(turns) {
    for (const turn of turns) void this.follow(turn);
  },
  async start() {
    this.build();
    await this.load();
    document.documentElement.dataset.ready = "1";
  },
};

for (const variant of variants) {
  if (variant === "plain" || variant.startsWith("files-")) continue; // these are words for `files`
  const module = await import(`/static/variants/${variant}.js`);
  module.default(engine, element);
}
await engine.start();
