// What is no part of the chat stands in another order and among decoys, and classes and test ids may have other names; all
// by a number in the name of the host.
export default (engine, element) => {
  let state = Number(/-(\d+)\./.exec(location.host)?.[1] ?? 1);
  const random = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const pick = (list) => list[random(list.length)];
  for (let turn = 0; turn < 5; turn += 1) random(2);

  const LABELS = [
    "Send", "Send feedback", "Send message to the team", "Submit", "Submit a report", "Stop sharing", "Stop", "Copy link", "Ask",
    "Message", "Share", "Close", "Start voice mode",
  ];
  const touched = (what) => () => void engine.submit(`decoy: ${what}`);
  const button = () => {
    const label = pick(LABELS);
    const made = element("button", { type: pick(["button", "submit"]), "aria-label": label }, pick([label, "", "↑"]));
    made.addEventListener("click", touched(label));
    return made;
  };
  const box = () => {
    const attributes = pick([
      { contenteditable: "true" },
      { contenteditable: "true", role: "textbox", "aria-label": "Message" },
      { contenteditable: "true", class: "ProseMirror" },
      { contenteditable: "true", class: "ql-editor" },
    ]);
    const made = element(pick(["div", "section"]), attributes);
    made.addEventListener("input", touched("typed into a box"));
    return made;
  };
  const area = () => {
    const made = element("textarea", { placeholder: pick(["Search", "Send a message", "Message ChatGPT", "Rename"]) });
    made.addEventListener("input", touched("typed into an area"));
    return made;
  };
  // Each decoy in a place of its own, as a page has them: a side bar, a dialog, a panel with a form, a menu.
  const panel = () => {
    const kind = pick(["aside", "dialog", "form", "menu", "section"]);
    const attributes = {
      aside: {},
      dialog: { role: "dialog" },
      form: {},
      menu: { role: "menu" },
      section: {},
    }[kind];
    const made = element(kind === "dialog" || kind === "menu" ? "div" : kind, attributes);
    const parts = Array.from({ length: 1 + random(3) }, () => pick(kind === "section" ? [button, box] : [button, box, area])());
    made.append(...parts);
    if (kind === "form") made.addEventListener("submit", (event) => event.preventDefault());
    return made;
  };

  const names = new Map();
  const renames = random(3) === 0;
  const rename = (name) => {
    if (!names.has(name)) names.set(name, random(3) === 0 ? `x${random(1e6)}-${name.length}` : name);
    return names.get(name);
  };
  const renameAll = () => {
    if (!renames) return;
    for (const one of document.querySelectorAll("main [class]")) {
      if (one.className === "" || typeof one.className !== "string") continue;
      const wanted = [...one.classList].map((name) => (name.startsWith("x") ? name : rename(name))).join(" ");
      if (wanted !== one.className) one.className = wanted;
    }
  };
  const { build, paint } = engine;
  engine.build = function () {
    build.call(this);
    const [main] = document.getElementsByTagName("main");
    const places = [
      (one) => this.sidebar.append(one),
      (one) => document.body.append(one),
      (one) => main.append(one),
      (one) => this.transcript.before(one),
      (one) => this.form.before(one),
    ];
    for (let count = 2 + random(6); count > 0; count -= 1) {
      const one = panel();
      one.style.cssText = "max-height: 30px; overflow: hidden";
      pick(places)(one);
    }
    for (const one of [...this.sidebar.children]) if (random(2)) this.sidebar.prepend(one);
    renameAll();
  };
  engine.paint = function (turn) {
    paint.call(this, turn);
    renameAll();
  };
};
