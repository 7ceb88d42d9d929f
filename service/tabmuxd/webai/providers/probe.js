// What each selector of a descriptor finds in a page, for whoever repairs one. Changes nothing; no text leaves the page.
(marks, parts) => {
  const found = parts.finding(marks);
  const { root, all, marked, visible, within, inTurn } = found;
  const { turnElements, banner } = parts.turns(found);
  const page = { ...found, turnElements };
  const { box, sends, stops, ...ways } = parts.composer(page);
  const { shown } = parts.barriers(page);

  const FILES = ["file_input", "file_opener", "file_entry", "file_chip", "file_busy", "file_error", "file_remove"];
  const LONGEST = 256;
  const SHOWN = [
    "sign_in", "challenge", "consent", "limit", "signed_in", "signed_in_hint", "signed_out", "signed_out_hint",
  ];
  const several = (selectors) => (Array.isArray(selectors) ? selectors : [selectors]).filter(Boolean);
  const everywhere = (selector) => [...all(selector, document), ...(root() === document ? [] : all(selector))];
  const outline = (element) => {
    const named = ["data-testid", "data-test-id", "role", "type"].filter((name) => element.hasAttribute(name));
    const attributes = named.map((name) => `[${name}="${element.getAttribute(name)}"]`).join("");
    const id = element.getAttribute("id");
    return `${element.localName}${id ? `#${id}` : ""}${attributes}`.slice(0, LONGEST);
  };
  // A page that has changed makes a rule fail, or a selector be none: that must not hide the others.
  const attempt = (act, otherwise) => {
    try {
      return act();
    } catch {
      return otherwise;
    }
  };

  const inTurns = (role) => () => turnElements().filter((turn) => turn.matches(marks.user_turn) === (role === "user"));
  const inside = (role) => (selectors) => {
    const turns = inTurns(role)();
    for (const selector of selectors) {
      const elements = turns.flatMap((turn) => [...(turn.matches(selector) ? [turn] : []), ...all(selector, turn)]);
      if (elements.length) return elements;
    }
    return [];
  };
  const answers = inside("assistant");
  const one = (element) => (element ? [element] : []);
  const sign = (kind) => () => one(shown(kind, (element) => !inTurn(element)));
  const none = () => [];
  const newest = () => turnElements().slice(-1);
  // By field: what would be taken, and where its selectors are sought.
  const fields = {
    root: [() => one(marks.root && document.querySelector(marks.root)), (selector) => all(selector, document)],
    ready: [() => one(document.querySelector(marks.ready)), (selector) => all(selector, document)],
    composer_root: [() => one(box() && within(box(), marks.composer_root)), all],
    composer: [() => one(box()).flatMap((element) => [element, element.getRootNode().host].filter(Boolean)), all],
    send: [sends, all],
    not_send: [none, all],
    not_ready: [() => marks.not_ready.flatMap((mark) => marked(mark)).filter(visible), all],
    stop: [stops, all],
    busy: [() => newest().flatMap((turn) => marks.busy.flatMap((mark) => marked(mark, turn))).filter(visible), all],
    user_turn: [inTurns("user"), all],
    assistant_turn: [inTurns("assistant"), all],
    prompt_text: [() => inside("user")([marks.prompt_text]), all],
    answer_text: [() => answers(marks.answer_text), all],
    done_mark: [() => marks.done_mark.flatMap((selector) => answers([selector])), all],
    hint_mark: [() => marks.hint_mark.flatMap((selector) => answers([selector])).filter(visible), all],
    answer_files: [() => marks.answer_files.flatMap((selector) => answers([selector])), all],
    copy: [() => answers(marks.copy), all],
    ...Object.fromEntries(FILES.map((kind) => [kind, [() => marks[kind].flatMap((mark) => marked(mark)), all]])),
    failure: [() => one(banner(marks.failure)), all],
    shown_model: [() => parts.choosing({ ...page, ...ways }).shownElements(), everywhere],
    ...Object.fromEntries(SHOWN.map((kind) => [kind, [sign(kind), everywhere]])),
  };

  return {
    uri: location.href,
    findings: Object.entries(fields).flatMap(([field, [choose, seek]]) => {
      const taken = new Set(attempt(choose, []));
      return several(marks[field]).map((mark) => {
        const { selector, text, name } = typeof mark === "string" ? { selector: mark, text: "", name: "" } : mark;
        const finding = { field, selector, text, name };
        let elements;
        try {
          elements = seek(selector);
        } catch (error) {
          const problem = String(error.message).slice(0, LONGEST);
          return { ...finding, matches: 0, visible: 0, taken: 0, element: "", problem };
        }
        const chosen = elements.filter((element) => taken.has(element));
        const seen = elements.filter(visible);
        const first = chosen[0] ?? seen[0] ?? elements[0];
        const counts = { matches: elements.length, visible: seen.length, taken: chosen.length };
        return { ...finding, ...counts, element: first ? attempt(() => outline(first), "") : "", problem: "" };
      });
    }),
  };
}
