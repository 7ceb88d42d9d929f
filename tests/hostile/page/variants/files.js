// The composer takes files: a chip for each, with its progress, sent along with the prompt. Other `files-…` variants in
// the address change how; they are read here, since each of them is a word.
export default (engine, element) => {
  const is = (word) => engine.variants.includes(`files-${word}`);
  const later = (milliseconds, act) => setTimeout(act, milliseconds);
  engine.files = [];
  const site = ["chatgpt", "gemini", "grok"].find((name) => engine.variants.includes(name));
  const remove = (label) => element("button", { type: "button", "aria-label": label }, "×");
  const named = (name) => element("span", { class: "name" }, name);
  const busy = () => element("span", { role: "progressbar" }, "…");
  const sent = (files) => element("div", { class: "sent-files" }, files.map((file) => file.name).join(", "));
  const block = (name, attributes, ...children) => element(name, { style: "display: block", ...attributes }, ...children);
  const markups = {
    chatgpt: {
      chip: (name, control) => element("div", { role: "group", "aria-label": name, class: "group/file-tile" }, named(name), control),
      remove: (name) => remove(`Remove file 1: ${name}`),
    },
    gemini: {
      chip: (name, control) =>
        block("uploader-file-preview", {}, element("div", { class: "file-preview-chip" }, named(name), control)),
      remove: (name) => remove(`Remove file ${name}`),
    },
    grok: {
      chip: (name, control) => element("div", { "data-testid": "file-attachment" }, named(name), control),
      remove: () => remove("Remove"),
    },
  };
  if (site) engine.fileMarkup = { busy, sent, ...markups[site] };
  engine.fileMarkup ??= {
    chip: (name, control) => element("div", { class: "chip" }, named(name), control),
    remove: (name) => element("button", { type: "button", class: "remove", "aria-label": `Remove file ${name}` }, "×"),
    busy,
    sent,
  };

  const shown = (name) => {
    if (is("renamed")) return name.replace(/(\.[^.]*)?$/, " (1)$1");
    if (is("cut")) return `${name.slice(0, 12)}…${name.slice(-6)}`;
    return name;
  };
  const drop = (entry) => {
    engine.files = engine.files.filter((one) => one !== entry);
    entry.chip.remove();
    engine.paintControls();
  };
  const finish = (entry) => {
    entry.busy?.remove();
    entry.done = true;
    engine.paintControls();
    if (is("vanish")) later(150, () => drop(entry));
  };
  const take = async (file) => {
    if (is("none")) return;
    const remove = is("stays") ? "" : engine.fileMarkup.remove(file.name);
    const entry = { name: file.name, done: false, chip: engine.fileMarkup.chip(shown(file.name), remove) };
    if (remove) remove.addEventListener("click", () => drop(entry));
    entry.busy = engine.fileMarkup.busy();
    entry.chip.append(entry.busy);
    engine.files.push(entry);
    later(is("late") ? 1500 : 0, () => engine.chips.append(entry.chip));
    engine.paintControls();
    const address = `/api/files?name=${encodeURIComponent(file.name)}`;
    const reply = await fetch(address, { method: "POST", body: file });
    entry.sha256 = (await reply.json()).sha256;
    if (is("error")) {
      entry.busy.remove();
      entry.chip.append(element("span", { class: "failed", role: "img" }, "Upload failed"));
    } else if (!is("stuck")) later(is("slow") ? 1500 : 20, () => finish(entry));
  };
  const change = (input) => () => {
    for (const file of input.files) void take(file);
    input.value = "";
  };
  const input = (attributes) => {
    const made = element("input", { type: "file", ...attributes });
    made.addEventListener("change", change(made));
    return made;
  };

  engine.buildMenu = () => {
    const entry = element("div", { role: "menuitem", class: "entry" }, "Upload files");
    entry.addEventListener("click", () => {
      menu.remove();
      if (!is("dead")) input({ multiple: "" }).click();
    });
    const menu = element("div", { role: "menu", class: "upload-menu", style: "position: fixed; top: 0" }, entry);
    return menu;
  };
  engine.openFiles = () => {
    const old = document.querySelector(".upload-menu");
    if (old) old.remove();
    else later(200, () => document.body.append(engine.buildMenu()));
  };
  engine.buildInputs = () => [
    input({ class: "file", accept: "image/*", style: "display: none" }),
    input({ class: "file", style: "display: none", ...(is("single") ? {} : { multiple: "" }) }),
  ];
  // Gemini's page has a control for it already, which otherwise is a trap.
  engine.buildOpener = () => {
    const own = engine.form.querySelector('[aria-label="Open upload file menu"]');
    const made = own?.cloneNode(true) ?? openerOf();
    own?.remove();
    return made;
  };
  const openerOf = () => element("button", { type: "button", class: "opener", "aria-label": "Add files and more" }, "+");
  const { build, paintControls, submit, buildUser } = engine;
  engine.build = function () {
    build.call(this);
    this.chips = element("div", { class: "chips" });
    this.form.prepend(this.chips);
    if (is("chooser")) {
      const opener = this.buildOpener();
      if (opener) {
        opener.addEventListener("click", () => this.openFiles());
        this.form.prepend(opener);
      }
    } else this.form.append(...this.buildInputs());
    if (is("leftover")) void take(new File(["old"], "old.pdf"));
    if (is("stranger")) later(100, () => void take(new File(["old"], "other.pdf")));
  };
  engine.paintControls = function () {
    paintControls.call(this);
    const send = this.controls.querySelector('[data-testid="send-button"], .send-button, button[aria-label="Submit"]');
    if (send && this.files.some((file) => !file.done)) send.disabled = true;
    if (is("drop") && this.read().trim() && this.files.length) drop(this.files[0]);
    if (is("joins") && this.read().trim() && !this.files.some((file) => file.name === "extra.txt"))
      void take(new File(["extra"], "extra.txt"));
  };
  engine.submit = async function (prompt) {
    const files = this.files.map(({ name, sha256 }) => ({ name, sha256 }));
    if (!is("kept")) for (const file of [...this.files]) drop(file);
    this.sentFiles = files;
    return submit.call(this, prompt);
  };
  const { post } = engine;
  engine.post = function (address, body) {
    return post.call(this, address, body.prompt === undefined ? body : { ...body, files: this.sentFiles ?? [] });
  };
  engine.buildUser = function (turn) {
    const made = buildUser.call(this, turn);
    if (this.sentFiles?.length) made.append(engine.fileMarkup.sent(this.sentFiles));
    return made;
  };
};
