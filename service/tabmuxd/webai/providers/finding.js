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
  const turnSelector = [marks.user_turn, ...marks.assistant_turn].join(", ");
  const inTurn = (element) => Boolean(within(element, turnSelector));
  const controls = (selectors) => {
    for (const selector of selectors) {
      const found = all(selector).filter((element) => visible(element) && !inTurn(element));
      if (found.length) return found;
    }
    return [];
  };

  return { marks, root, all, visible, within, inTurn, controls };
}
