// The turns' part of the page script: which turns the page shows, what they are known by, and what they say.
(page) => {
  const { marks, all, marked, visible } = page;
  const CONTROLS = "button, [role='button'], [role='toolbar']";
  // Formulas are shown by signs that stand in no source of them.
  const WORDLESS = `${CONTROLS}, .katex, math`;

  const outermost = (found, selector) => found.filter((one) => !one.parentElement?.closest(selector));
  // Asked by itself, what is not rendered says all that stands in it.
  const isRendered = (element) => getComputedStyle(element).display !== "none";
  // Text as it is shown, without what is `skipped`: the names of controls are no text of an answer.
  const textOf = (element, skipped = CONTROLS) => {
    if (!element.querySelector(skipped)) return element.innerText;
    const shown = [...element.childNodes].filter(
      (node) => node.nodeType === Node.TEXT_NODE || (node.nodeType === Node.ELEMENT_NODE && !node.matches(skipped) && isRendered(node)),
    );
    const texts = shown.map((node) => (node.nodeType === Node.TEXT_NODE ? node.data : textOf(node, skipped)));
    return texts.filter((text) => text.trim()).join("\n\n");
  };
  const answerParts = (turn) => {
    for (const selector of marks.answer_text) {
      const parts = outermost(all(selector, turn), selector).filter((part) => textOf(part).trim());
      if (parts.length) return parts;
    }
    return [];
  };
  // A prompt that is shown as Markdown has lost numbers and addresses; an attribute may have it as it was sent.
  const sentText = (part) => {
    const held = marks.prompt_attribute ? part.getAttribute(marks.prompt_attribute) : null;
    return held?.startsWith(marks.prompt_prefix) ? held.slice(marks.prompt_prefix.length) : textOf(part);
  };
  const promptOf = (turn) => {
    const parts = outermost(all(marks.prompt_text, turn), marks.prompt_text);
    return parts.length ? parts.map(sentText).join("\n\n") : sentText(turn);
  };
  const hasPlace = (turn) => marks.answer_text.some((selector) => all(selector, turn).length > 0);
  const answerOf = (turn) => {
    const parts = answerParts(turn);
    if (parts.length) return parts.map((part) => textOf(part)).join("\n\n");
    return hasPlace(turn) ? "" : textOf(turn);
  };
  const partsOf = (turn) => {
    const parts = answerParts(turn);
    return parts.length || hasPlace(turn) ? parts : [turn];
  };

  // The turns shown, outermost ones only. What holds a user's turn without being one is no turn but a place for some.
  const turnElements = () => {
    const fitting = marks.assistant_turn.find((one) => all(one).some((turn) => !isPlace(turn)));
    const selector = [marks.user_turn, fitting].filter(Boolean).join(", ");
    const found = all(selector).filter((turn) => !isPlace(turn));
    const chosen = new Set(found);
    return found.filter((turn) => {
      for (let at = turn.parentElement; at; at = at.parentElement) if (chosen.has(at)) return false;
      return true;
    });
  };
  const isPlace = (turn) => !turn.matches(marks.user_turn) && turn.querySelector(marks.user_turn) !== null;
  const roleOf = (turn) => (turn.matches(marks.user_turn) ? "user" : "assistant");
  const firstOf = (ask) => marks.turn_key.map(ask).find(Boolean);
  // Without an attribute of its own a turn is known by its text and its place among those with the same.
  const keysOf = (found) => {
    const counts = new Map();
    return found.map((turn) => {
      const given = firstOf((key) => turn.getAttribute(key));
      if (given) return given;
      const held = firstOf((key) => turn.closest(`[${key}]`)?.getAttribute(key));
      const name = `${roleOf(turn)} ${held ?? hash(turn.textContent)}`;
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      return `${name} ${count}`;
    });
  };
  const hash = (text) => {
    let value = 2166136261;
    for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 16777619);
    return `${text.length}-${(value >>> 0).toString(36)}`;
  };
  const has = (selectors, turn) => selectors.some((one) => turn.matches(one) || all(one, turn).length > 0);

  const turns = (known) => {
    const seen = known && new Set(known);
    const found = turnElements();
    const keys = keysOf(found);
    return found.map((turn, index) => {
      const key = keys[index];
      const role = roleOf(turn);
      if (!seen || seen.has(key)) return { key, role };
      if (role === "user") return { key, role, text: promptOf(turn) };
      return {
        key,
        role,
        text: answerOf(turn),
        done: has(marks.done_mark, turn),
        hint: marks.hint_mark.some((mark) => all(mark, turn).some(visible)),
        files: has(marks.answer_files, turn),
      };
    });
  };
  // A banner within a turn is of that turn: only the last one's is new.
  const banner = (selectors) => {
    const last = turnElements().at(-1);
    const place = (one) => one.closest(`${marks.user_turn}, ${marks.assistant_turn.join(", ")}`);
    const isNew = (one) => !place(one) || (last !== undefined && last.contains(one));
    return selectors.flatMap((mark) => all(mark)).find((one) => visible(one) && isNew(one));
  };
  // Whether the newest turn shows that it is being written.
  const busy = () => {
    const last = marks.busy.length > 0 && turnElements().at(-1);
    return Boolean(last) && marks.busy.some((mark) => marked(mark, last).some(visible));
  };
  const answer = (keys) => {
    const found = turnElements();
    const known = keysOf(found);
    const wanted = found.filter((_turn, index) => keys.includes(known[index]));
    return wanted.map((element) => {
      const parts = partsOf(element);
      return { element, parts, words: parts.map((part) => textOf(part, WORDLESS)).join("\n\n") };
    });
  };

  return { turns, banner, busy, answer, turnElements };
}
