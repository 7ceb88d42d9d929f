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
  const nameFits = (name, wanted) => {
    const pieces = wanted.split("*").map((piece) => piece.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
    return new RegExp(`^${pieces.join(".*")}$`, "is").test(name);
  };
  const isNamed = (element, wanted) => namesOf(element).some((name) => nameFits(name, wanted));
  // Whether an element is what a mark says besides its selector.
  const fits = (element, { text, name }) =>
    (!text || element.innerText.toLowerCase().includes(text.toLowerCase())) && (!name || isNamed(element, name));
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
