// What the parts of the page script find elements by: below which root, what is shown, and what stands in a turn.
(marks) => {
  const root = () => {
    if (!marks.root) return document;
    const host = document.querySelector(marks.root);
    return host?.shadowRoot ?? null;
  };
  const all = (selector, below = root()) => (below && selector ? [...below.querySelectorAll(selector)] : []);
  const visible = (element) => {
    if (element.getClientRects().length === 0) return false;
    const style = getComputedStyle(element);
    return style.visibility === "visible" && style.display !== "none";
  };
  // As `closest`, and out of shadow roots.
  const within = (element, selector) =>
    element.closest(selector) ?? (element.getRootNode().host ? within(element.getRootNode().host, selector) : null);
  // What a person would call an element: by its labels, or by its text, but for a box that holds one.
  const namesOf = (element) => {
    const ids = (element.getAttribute("aria-labelledby") ?? "").split(/\s+/).filter(Boolean);
    const labels = ids.map((id) => element.getRootNode().querySelector(`#${CSS.escape(id)}`)?.textContent ?? "");
    const told = ["aria-label", "title", "placeholder", "data-placeholder"].map((name) => element.getAttribute(name) ?? "");
    const own = element.isContentEditable || element.matches("textarea, input") ? "" : element.innerText;
    return [labels.join(" "), ...told, own].map((name) => name.replace(/\s+/g, " ").trim()).filter(Boolean);
  };
  // Any one of the names wanted, each a line of its own.
  const nameFits = (name, wanted) =>
    wanted.split("\n").some((line) => {
      const pieces = line.split("*").map((piece) => piece.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
      return new RegExp(`^${pieces.join(".*")}$`, "is").test(name);
    });
  const isNamed = (element, wanted) => namesOf(element).some((name) => nameFits(name, wanted));
  // The name that readers of screens tell, as browsers make it of labels, contents and hints; no more than they tell of.
  const UNTOLD = "[aria-hidden=true], [inert], [hidden]";
  const contentOf = (element) =>
    [...element.childNodes].map((node) => {
      if (node.nodeType === Node.TEXT_NODE) return node.data;
      if (node.nodeType !== Node.ELEMENT_NODE || node.matches(`${UNTOLD}, script, style`)) return "";
      const style = getComputedStyle(node);
      if (style.display === "none" || style.visibility !== "visible") return "";
      const told = node.getAttribute("aria-label")?.trim() || node.getAttribute("alt");
      const text = told ?? (node.localName === "svg" ? node.querySelector("title")?.textContent : contentOf(node)) ?? "";
      return style.display.startsWith("inline") || style.display === "contents" ? text : ` ${text} `;
    }).join("");
  const toldName = (element, role) => {
    const ids = (element.getAttribute("aria-labelledby") ?? "").split(/\s+/).filter(Boolean);
    const labelling = ids.map((id) => element.getRootNode().querySelector(`#${CSS.escape(id)}`)).filter(Boolean);
    const labels = [...(element.labels ?? [])];
    const isInput = element.localName === "input" && role === "button";
    const told = [
      () => labelling.map((one) => one.getAttribute("aria-label") ?? one.textContent).join(" "),
      () => element.getAttribute("aria-label"),
      () => labels.map(contentOf).join(" "),
      () => (isInput ? element.alt || element.value : role === "textbox" ? "" : contentOf(element)),
      () => element.getAttribute("title"),
      () => element.getAttribute("placeholder") ?? element.getAttribute("aria-placeholder"),
    ];
    for (const tell of told) {
      const name = (tell() ?? "").replace(/\s+/g, " ").trim();
      if (name) return name;
    }
    return "";
  };
  const isTold = (element, role, wanted) => !within(element, UNTOLD) && nameFits(toldName(element, role), wanted);
  // Whether an element is what a mark says besides its selector.
  const fits = (element, { text, name, role }) =>
    (!text || element.innerText.toLowerCase().includes(text.toLowerCase())) &&
    (!name || (role ? isTold(element, role, name) : isNamed(element, name)));
  const marked = (mark, below = root()) => all(mark.selector, below).filter((element) => fits(element, mark));
  const isMarked = (element, mark) => element.matches(mark.selector) && fits(element, mark);
  const turnSelector = [marks.user_turn, ...marks.assistant_turn].join(", ");
  const inTurn = (element) => Boolean(within(element, turnSelector));
  // Where boxes and controls are not those of the chat, unless the descriptor says where its composer is.
  const elsewhere = [
    "nav", "aside", "dialog", "[role=navigation]", "[role=complementary]", "[role=dialog]", "[role=alertdialog]",
    "[role=search]", "[role=searchbox]", "[type=search]",
  ].join();
  const isElsewhere = (element) => !marks.composer_root && Boolean(within(element, elsewhere));
  const controls = (wanted, below) => {
    for (const mark of wanted) {
      const found = marked(mark, below).filter((element) => visible(element) && !inTurn(element) && !isElsewhere(element));
      if (found.length) return found;
    }
    return [];
  };

  // Whether the page has what it needs before anything is typed, as far as the descriptor tells.
  const isReady = () =>
    document.readyState !== "loading" &&
    (!marks.ready || document.querySelector(marks.ready) !== null) &&
    !marks.not_ready.some((mark) => marked(mark).some(visible));

  return {
    marks, root, all, marked, isMarked, nameFits, visible, within, inTurn, isElsewhere, elsewhere, turnSelector, controls,
    isReady,
  };
}
