// The page: what it knows stands in `state`; paint() alone changes the transcript and the buttons, by animation frames,
// so that a hidden page shows nothing new, as on the real ones.

const HYDRATION_MILLISECONDS = 300;
const RECONNECT_MILLISECONDS = 500;
const NEAR_THE_END_PIXELS = 80;
const MODELS = ["Quick", "Thorough", "Thorough Max"];
const FOR_OTHERS = "Thorough Max"; // it is offered, and cannot be chosen, as on the real pages

const kind = document.documentElement.dataset.kind;
const root = document.querySelector("chat-app")?.shadowRoot ?? document;
const find = (selector) => root.querySelector(selector);
const clone = (name) => find(`.${name}-template`).content.firstElementChild.cloneNode(true);

const box = find("#prompt");
const transcript = find(".transcript");
const sendButton = find('[data-testid="send-button"]');
const stopButton = clone("stop");
const modelButton = find('[data-testid="model-button"]');
const banner = clone("banner");

const state = {
  conversation: /^\/c\/([^/]+)$/.exec(location.pathname)?.[1] ?? null,
  turns: [], // as the server tells them: id, prompt, text, answer
  sending: null, // {prompt, key, stop} from the press until the server has taken it
  unsent: null, // {prompt, key} of an attempt whose outcome is not known; the same text goes out under the same key
  deaf: null, // the draft whose first press has not been heard
  refusal: "",
};

const nodes = new Map(); // by turn id: {user, assistant, blocks}

// The text of the box

const isBlock = (node) => node.nodeName === "DIV" || node.nodeName === "P";

/** Text of an editable element as a person sees it: each block is a line, a lone or last <br> only holds its line open. */
function plainText(element) {
  let text = "";
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) text += child.data;
    else if (child.nodeName === "BR") text += child.nextSibling && !isBlock(child.nextSibling) ? "\n" : "";
    else if (isBlock(child)) text += (child.previousSibling ? "\n" : "") + plainText(child);
    else text += plainText(child);
  }
  return text;
}

const readBox = () => (kind === "editor" ? plainText(box) : box.value);

function writeBox(text) {
  if (kind === "editor") box.textContent = text;
  else box.value = text;
  changed();
}

/** Value of a directive in a prompt, by the grammar of the server's directives.py. */
function directive(prompt, wanted) {
  let found = null;
  for (const [, block] of prompt.matchAll(/\{\{([^{}]*)\}\}/g)) {
    for (const word of block.split(/\s+/)) {
      const [name, ...value] = word.split("=");
      if (name === wanted && value.length > 0) found = value.join("=");
    }
  }
  return found;
}

// Sending and stopping

const lastTurn = () => state.turns.at(-1);
const answering = () => state.sending !== null || (lastTurn() !== undefined && !lastTurn().answer.ended);

function press() {
  const prompt = readBox();
  if (!prompt.trim() || answering()) return;
  const heard = directive(prompt, "press");
  if (heard === "ignore") return;
  if (heard === "deaf" && state.deaf !== prompt) {
    state.deaf = prompt;
    return;
  }
  state.deaf = null;
  void send(prompt);
}

async function send(prompt) {
  const key = state.unsent?.prompt === prompt ? state.unsent.key : crypto.randomUUID();
  state.unsent = { prompt, key };
  state.sending = { stop: false };
  state.refusal = "";
  writeBox("");
  try {
    const turn = await post(`/api/conversations/${state.conversation ?? "new"}/turns`, { key, prompt });
    const stop = state.sending.stop;
    state.unsent = null;
    state.conversation = turn.conversation;
    state.turns.push(turn);
    noteAddress(turn);
    watch(turn);
    if (stop) await stopTurn(turn);
  } catch (error) {
    if (error.refused) state.unsent = null;
    state.refusal = error.message;
    if (!readBox()) writeBox(prompt);
  } finally {
    state.sending = null;
    changed();
  }
}

async function post(address, body) {
  const response = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error.message), { refused: true });
  return answer;
}

function stop() {
  if (state.sending) state.sending.stop = true;
  else if (lastTurn()) void stopTurn(lastTurn());
}

// What has become of the answer comes over the watch.
const stopTurn = (turn) => post(`/api/turns/${turn.id}/stop`, {}).catch(() => undefined);

function watch(turn) {
  const socket = new WebSocket(`ws://${location.host}/api/turns/${turn.id}/watch`);
  let text = "";
  socket.addEventListener("message", (event) => {
    const { answer, more } = JSON.parse(event.data);
    text += more;
    turn.text = text;
    turn.answer = answer;
    noteAddress(turn);
    changed();
  });
  socket.addEventListener("close", () => {
    if (!turn.answer.ended) setTimeout(() => watch(turn), RECONNECT_MILLISECONDS);
  });
}

function noteAddress(turn) {
  const path = `/c/${turn.conversation}`;
  if (!turn.answer.committed || location.pathname === path) return;
  history.pushState(null, "", path);
  void listTitles();
}

// The model, which changes nothing but what the page shows; the choice is kept for the host, as the real ones keep it

let menu = null;

function paintModel() {
  modelButton.textContent = localStorage.getItem("model") ?? MODELS[0];
  modelButton.setAttribute("aria-expanded", String(menu !== null));
}

function closeMenu() {
  menu?.remove();
  menu = null;
  paintModel();
}

function openMenu() {
  const shown = modelButton.textContent;
  const options = MODELS.map((name) => {
    const option = element("button", name);
    const attributes = { type: "button", role: "menuitemradio", "aria-checked": name === shown, "aria-disabled": name === FOR_OTHERS };
    for (const [key, value] of Object.entries(attributes)) option.setAttribute(key, value);
    option.addEventListener("click", () => {
      if (name === FOR_OTHERS) return;
      localStorage.setItem("model", name);
      closeMenu();
    });
    return option;
  });
  menu = element("div", ...options);
  menu.className = "models";
  menu.dataset.testid = "model-menu";
  menu.setAttribute("role", "menu");
  const { left, top } = modelButton.getBoundingClientRect();
  menu.style.left = `${left}px`;
  menu.style.bottom = `${innerHeight - top + 8}px`;
  document.body.append(menu);
  paintModel();
}

// Painting

let frame = 0;

function changed() {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    paint();
  });
}

function paint() {
  const scroller = find(".scroller");
  const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_THE_END_PIXELS;
  for (const turn of state.turns) paintTurn(turn);
  paintBanner();
  paintComposer();
  find(".welcome").hidden = state.turns.length > 0 || state.sending !== null;
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
}

function paintTurn(turn) {
  const shown = nodes.get(turn.id) ?? { user: null, assistant: null, blocks: [] };
  nodes.set(turn.id, shown);
  const { answer } = turn;
  if (answer.committed && !shown.user) {
    shown.user = clone("user");
    shown.user.dataset.turnId = `${turn.id}-user`;
    shown.user.querySelector(".prompt").textContent = turn.prompt;
    transcript.append(shown.user);
  }
  if (!turn.text && !answer.placeholder && !answer.finished_mark) return;
  if (!shown.assistant) {
    shown.assistant = clone("assistant");
    shown.assistant.dataset.turnId = `${turn.id}-assistant`;
    transcript.append(shown.assistant);
  }
  const markdown = shown.assistant.querySelector(".markdown");
  markdown.classList.toggle("placeholder", Boolean(answer.placeholder));
  paintBlocks(markdown, shown, blocksOf(answer.placeholder || turn.text));
  if (answer.finished_mark && !shown.assistant.querySelector(".actions")) {
    shown.assistant.append(actionsOf(turn));
  }
}

/** Bring the elements in line with the blocks; what has not changed stays the same element. */
function paintBlocks(markdown, shown, blocks) {
  blocks.forEach((block, index) => {
    if (shown.blocks[index] === block) return;
    const element = render(block);
    if (markdown.children[index]) markdown.children[index].replaceWith(element);
    else markdown.append(element);
  });
  while (markdown.children.length > blocks.length) markdown.lastElementChild.remove();
  shown.blocks = blocks;
}

function paintBanner() {
  const text = state.refusal || lastTurn()?.answer.banner || "";
  if (!text || state.sending) {
    banner.remove();
    return;
  }
  banner.textContent = text;
  if (transcript.lastElementChild !== banner) transcript.append(banner);
}

function paintComposer() {
  const empty = !readBox().trim();
  box.toggleAttribute("data-empty", readBox() === "");
  sendButton.disabled = empty;
  const stopShown = state.sending !== null || Boolean(lastTurn()?.answer.stop_shown);
  const [wanted, other] = stopShown ? [stopButton, sendButton] : [sendButton, stopButton];
  if (other.isConnected) other.replaceWith(wanted);
}

function actionsOf(turn) {
  const actions = clone("actions");
  const [copy, ...thumbs] = actions.children;
  copy.addEventListener("click", () => void copyText(copy, turn.text));
  for (const thumb of thumbs) thumb.addEventListener("click", () => thumb.toggleAttribute("data-pressed"));
  return actions;
}

async function copyText(button, text) {
  await navigator.clipboard.writeText(text);
  button.setAttribute("data-pressed", "");
}

// Markdown, as far as the answers use it: paragraphs, lists, fences, bold and code

function blocksOf(text) {
  const blocks = [];
  let lines = [];
  let fenced = false;
  const close = () => {
    if (lines.length > 0) blocks.push(lines.join("\n"));
    lines = [];
  };
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) fenced = !fenced;
    if (line === "" && !fenced) close();
    else lines.push(line);
  }
  close();
  return blocks;
}

function render(block) {
  if (block.startsWith("```")) return renderFence(block);
  if (!block.startsWith("- ")) return element("p", ...renderInline(block));
  return element("ul", ...block.split("\n").map((line) => element("li", ...renderInline(line.replace(/^- ?/, "")))));
}

function renderFence(block) {
  const [first, ...lines] = block.split("\n");
  if (lines.at(-1)?.startsWith("```")) lines.pop();
  const code = element("code", lines.join("\n"));
  code.className = `language-${first.slice(3)}`;
  const copy = element("button", "Copy");
  copy.type = "button";
  copy.setAttribute("aria-label", "Copy code");
  copy.addEventListener("click", () => void copyText(copy, code.textContent));
  return element("pre", copy, code);
}

function renderInline(text) {
  return text.split(/(\*\*[^*]+\*\*|`[^`]+`)/).map((part, index) => {
    if (index % 2 === 0) return part;
    return part.startsWith("`") ? element("code", part.slice(1, -1)) : element("strong", part.slice(2, -2));
  });
}

function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

// Start

async function listTitles() {
  const titles = await (await fetch("/api/titles")).json();
  const items = titles.map(({ id, title }) => {
    const link = element("a", title);
    link.href = `/c/${id}`;
    if (id === state.conversation) link.setAttribute("aria-current", "page");
    return element("li", link);
  });
  find(".titles").replaceChildren(...items);
}

async function loadTurns() {
  if (state.conversation === null) return;
  const response = await fetch(`/api/conversations/${state.conversation}`);
  if (!response.ok) {
    location.assign("/");
    return;
  }
  state.turns = (await response.json()).turns;
  for (const turn of state.turns) if (!turn.answer.ended) watch(turn);
  changed();
}

function listen() {
  box.addEventListener("input", changed);
  sendButton.addEventListener("click", press);
  stopButton.addEventListener("click", stop);
  find(".composer").addEventListener("submit", (event) => event.preventDefault());
  modelButton.addEventListener("click", () => (menu ? closeMenu() : openMenu()));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeMenu();
  });
  window.addEventListener("popstate", () => location.reload());
  if (kind !== "editor") return;
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    press();
  });
  box.addEventListener("paste", (event) => {
    event.preventDefault();
    document.execCommand("insertText", false, event.clipboardData.getData("text/plain"));
  });
}

find(".kind").textContent = kind;
const hydrated = new Promise((resolve) => setTimeout(resolve, HYDRATION_MILLISECONDS));
await Promise.all([hydrated, loadTurns(), listTitles()]);
paintModel();
writeBox(""); // what was put in before the page listened is lost, as on the real ones
listen();
document.documentElement.dataset.ready = "1";
