// The picker of a site's models, as it was told to be: opened as each site's is, in a portal at the end of the body. What is
// special of it stands in the name of the host. What is pressed goes out with the next prompt, and what is chosen.
const NAMES = {
  chatgpt: ["Instant", "Medium", "High", "Extra High", "Pro"],
  gemini: ["3.1 Flash-Lite", "3.1 Flash", "3.1 Pro"],
  grok: ["Auto", "Fast", "Expert", "Grok 4.3", "Grok 4.3 Fast", "Heavy"],
};
const WORDS = {
  ko: { "Instant": "즉시", "Medium": "중간", "High": "높음", "Extra High": "매우 높음", "Pro": "Pro 확장", "Tools": "도구" },
  zh: { "Instant": "即时", "Medium": "中等", "High": "高", "Extra High": "极高", "Pro": "Pro 扩展", "Tools": "工具" },
};

export default (engine, element) => {
  const traits = new Set(location.host.split(".")[0].split("-"));
  const name = Object.keys(NAMES).find((one) => engine.variants.includes(one));
  const words = Object.entries(WORDS).find(([language]) => engine.variants.includes(language))?.[1] ?? {};
  const word = (text) => words[text] ?? text;
  const names = NAMES[name];
  let chosen = names[0];
  let mode = traits.has("deepon") ? "Deep Think" : "";
  let log = [];
  const pickers = [];
  let portal = null;

  const paint = () => {
    for (const one of pickers) {
      one.setAttribute("aria-expanded", String(portal !== null));
      // Icons are letters in Gemini's fonts.
      const icon = element("i", { "aria-hidden": "true" }, name === "gemini" ? "expand_more" : "");
      if (!one.dataset.tools) one.replaceChildren(element("span", {}, word(chosen)), icon);
    }
    engine.chip.hidden = !mode;
  };
  const close = () => {
    portal = null; // first: to remove what has the focus moves that
    for (const one of document.querySelectorAll("[data-portal]")) one.remove();
    document.body.style.pointerEvents = "";
    paint();
  };
  const pick = (text) => {
    log.push(text);
    if (!traits.has("stays")) close();
    if (traits.has("upgrade")) {
      const style = "position: fixed; inset: 0; background: white; z-index: 9";
      document.body.append(element("div", { role: "dialog", style }, `Upgrade to have ${text}`));
      return;
    }
    if (text === "Deep Think") mode = text;
    else chosen = traits.has("other") ? names[1] : traits.has("slow") ? chosen : text;
    if (traits.has("slow")) setTimeout(() => ((chosen = text), paint()), 2500);
    paint();
  };
  const item = (role, text, more = "") => {
    const label = element("span", { class: "label", style: "display: block" }, word(text));
    const made = element("div", { role, tabindex: "-1", "aria-checked": String(text === chosen) }, label);
    if (more) made.append(element("span", { style: "display: block" }, more));
    if (traits.has("disabled")) made.setAttribute("aria-disabled", "true");
    else made.addEventListener("click", () => pick(text));
    return made;
  };
  const show = (attributes, ...items) => {
    const style = "position: fixed; bottom: 90px; left: 300px; background: white; pointer-events: auto; z-index: 5";
    portal = element("div", { role: "menu", "data-portal": "", tabindex: "-1", style, ...attributes }, ...items);
    document.body.append(portal);
    portal.focus();
    if (traits.has("closes")) portal.addEventListener("focusout", ({ relatedTarget }) => !portal || portal.contains(relatedTarget) || close());
    paint();
  };

  // What each site has in its menu

  const offered = () => (traits.has("gone") ? names.slice(0, 1) : names);
  const slider = () => {
    const power = element("div", { role: "menuitem", "aria-label": "Power", tabindex: "-1" }, "Power");
    const at = () => String(names.indexOf(chosen));
    const thumb = element("div", { role: "slider", "aria-hidden": "true", "aria-valuemin": "0", "aria-valuemax": "4", "aria-valuenow": at() });
    power.append(thumb);
    power.addEventListener("keydown", ({ key }) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
      if (!step) return;
      log.push(key);
      chosen = names[names.indexOf(chosen) + step] ?? chosen;
      thumb.setAttribute("aria-valuenow", at());
      paint();
    });
    return power;
  };
  const submenu = () => {
    const row = element("div", { role: "menuitem", "data-has-submenu": "", tabindex: "-1" }, "Effort", element("span", {}, chosen));
    row.addEventListener("click", () => {
      log.push("effort");
      const style = "position: fixed; bottom: 90px; left: 600px; background: white; pointer-events: auto; z-index: 6";
      const attributes = { role: "menu", "data-state": "open", "data-portal": "", style };
      document.body.append(element("div", attributes, ...names.map((text) => item("menuitemradio", text))));
    });
    return element("div", {}, element("div", { role: "menuitem", "data-has-submenu": "" }, "Model"), row);
  };
  const menus = {
    chatgpt() {
      document.body.style.pointerEvents = "none";
      const content = { "data-testid": "composer-intelligence-picker-content" };
      const inside = traits.has("slider")
        ? [slider()]
        : [element("div", content, ...(traits.has("submenu") ? [submenu()] : offered().map((text) => item("menuitemradio", text))))];
      show({ "data-state": "open" }, ...inside);
    },
    gemini() {
      const backdrop = element("div", { "data-portal": "", style: "position: fixed; inset: 0; z-index: 4" });
      backdrop.addEventListener("click", close);
      document.body.append(backdrop);
      const ids = ["fast", "thinking", "pro"];
      const made = offered().map((text, index) => {
        const one = item("menuitem", text, "For everyday help with Pro and Flash");
        one.setAttribute("data-test-id", `bard-mode-option-${ids[index]}`);
        one.prepend(element("i", { "aria-hidden": "true" }, "bolt"));
        return one;
      });
      show({}, ...made);
    },
    grok() {
      show({}, ...offered().map((text) => item("menuitem", text, "Thinks, or not")));
    },
  };
  const open = (menu, what) => (event) => {
    event.preventDefault(); // so that the focus stays where the menu takes it
    log.push(what);
    if (portal) close();
    else menu();
  };
  const picker = () => {
    const attributes = {
      chatgpt: { "aria-haspopup": "menu", "data-state": "closed" },
      gemini: { "data-test-id": "bard-mode-menu-button", "aria-label": word("Open mode picker") },
      grok: traits.has("unlabelled") ? {} : { "aria-label": "Model select" },
    }[name];
    const made = element("button", { type: "button", ...attributes });
    // Some menus open as the pointer goes down, and do nothing at a click.
    made.addEventListener(name === "chatgpt" ? "pointerdown" : "click", open(menus[name], "open"));
    pickers.push(made);
    return made;
  };
  const tools = () => {
    const made = element("button", { type: "button", "aria-label": word("Tools"), class: "toolbox-drawer-button", "data-tools": "1" }, "Tools");
    made.addEventListener("click", open(() => show({}, item("menuitemcheckbox", "Canvas"), item("menuitemcheckbox", "Deep Think")), "tools"));
    pickers.push(made);
    return made;
  };

  const { build } = engine;
  engine.build = function () {
    this.chip = element("button", { type: "button", "aria-label": "Deselect Deep think", hidden: "" }, "Deep Think");
    build.call(this);
    for (const one of this.form.querySelectorAll('[aria-haspopup="menu"], [aria-label="Model select"]')) one.remove();
    if (name === "gemini") this.form.prepend(tools(), this.chip);
    if (traits.has("none")) return;
    const mount = () => {
      this.form.prepend(picker());
      if (traits.has("twins")) {
        const hidden = picker();
        hidden.style.display = "none";
        this.form.prepend(hidden);
        this.transcript.before(element("header", {}, picker()));
      }
      paint();
    };
    if (traits.has("late")) setTimeout(mount, 4000);
    else mount();
    document.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape") return;
      log.push("escape");
      if (portal) close();
    });
    if (traits.has("menus")) {
      const decoys = names.flatMap((text) => ["menuitem", "menuitemradio"].map((role) => element("div", { role }, text)));
      for (const one of decoys) one.addEventListener("click", () => void this.submit(`decoy: ${one.textContent}`));
      document.body.append(element("div", { role: "menu", style: "position: fixed; top: 0; right: 0" }, ...decoys));
    }
  };
  const { paintControls } = engine;
  engine.paintControls = function () {
    if (traits.has("flips") && this.editor && this.read().trim() && chosen !== names[0]) {
      chosen = names[0];
      paint();
    }
    paintControls.call(this);
  };
  const { post } = engine;
  engine.post = function (address, body) {
    if (!("prompt" in body)) return post.call(this, address, body);
    const told = [mode || chosen, ...log].join(" ");
    log = [];
    return post.call(this, address, { ...body, model: told });
  };
};
