// The page script: reads one chat page by a descriptor's marks, in an isolated world of the main frame.
// Evaluated once a document; gives `globalThis.tabmux`. It changes the page only in `focus`, `clear`, `press` and
// `pressStop`. No timers: a MutationObserver says "changed" once, until the next sample.
(marks) => {
  if (globalThis.tabmux) return;

  const root = () => {
    if (!marks.root) return document;
    const host = document.querySelector(marks.root);
    return host?.shadowRoot ?? null;
  };
  const all = (selector, within = root()) => (within && selector ? [...within.querySelectorAll(selector)] : []);
  const visible = (element) => {
    if (element.getClientRects().length === 0) return false;
    const style = getComputedStyle(element);
    return style.visibility === "visible" && style.display !== "none";
  };
  const editable = (element) =>
    element.matches("textarea, input")
      ? !element.disabled && !element.readOnly
      : element.isContentEditable && element.getAttribute("aria-disabled") !== "true";
  const inTurn = (element) => Boolean(element.closest(`${marks.user_turn}, ${marks.assistant_turn}`));
  const hit = (element) => {
    const box = element.getBoundingClientRect();
    const at = (root() ?? document).elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return at === element || element.contains(at) || Boolean(at?.contains(element));
  };
  const enabled = (element) =>
    !element.disabled &&
    element.getAttribute("aria-disabled") !== "true" &&
    element.getAttribute("data-disabled") !== "true" &&
    getComputedStyle(element).pointerEvents !== "none";

  const composer = () => {
    for (const selector of marks.composer) {
      const found = all(selector).find((element) => visible(element) && editable(element) && !inTurn(element));
      if (found) return found;
    }
    return null;
  };
  const holds = (element) => (element.matches("textarea, input") ? element.value : element.innerText);
  const controls = (selectors) => {
    for (const selector of selectors) {
      const found = all(selector).filter((element) => visible(element) && !inTurn(element));
      if (found.length) return found;
    }
    return [];
  };
  const textIn = (turn, selector) => {
    const parts = all(selector, turn).filter((part) => !part.parentElement.closest(selector));
    return parts.length ? parts.map((part) => part.innerText).join("\n\n") : turn.innerText;
  };

  let armed = false;
  const changed = () => {
    if (!armed) return;
    armed = false;
    globalThis.tabmuxChanged?.("");
  };
  const observer = new MutationObserver(changed);
  const options = { subtree: true, childList: true, characterData: true, attributes: true };
  observer.observe(document, options);
  let observed = null;
  const observeRoot = () => {
    const now = root();
    if (now && now !== document && now !== observed) {
      observed = now;
      observer.observe(now, options);
    }
  };

  let frames = 0;
  let frameAsked = false;
  const askFrame = () => {
    if (frameAsked) return;
    frameAsked = true;
    requestAnimationFrame(() => {
      frameAsked = false;
      frames += 1;
    });
  };

  const turns = (known) => {
    const selector = `${marks.user_turn}, ${marks.assistant_turn}`;
    const seen = new Set(known);
    return all(selector)
      .filter((turn) => !turn.parentElement?.closest(selector))
      .map((turn) => {
        const key = turn.getAttribute(marks.turn_key) ?? "";
        const role = turn.matches(marks.user_turn) ? "user" : "assistant";
        if (seen.has(key)) return { key, role };
        const text = textIn(turn, role === "user" ? marks.prompt_text : marks.answer_text);
        const done = role === "assistant" && marks.done_mark.some((mark) => all(mark, turn).length > 0);
        return { key, role, text, done };
      });
  };

  const composerState = () => {
    const box = composer();
    if (!box) return { composer: "absent", composer_text: "", composer_exact: false };
    return {
      composer: hit(box) ? "usable" : "blocked",
      composer_text: holds(box),
      composer_exact: box.matches("textarea, input"),
    };
  };

  globalThis.tabmux = {
    // What the page shows; turns whose key is in `known` come without their text.
    sample(known) {
      observeRoot();
      armed = true;
      askFrame();
      const banner = marks.failure.flatMap((mark) => all(mark)).find(visible);
      return {
        uri: location.href,
        title: document.title,
        ready: !marks.ready || document.querySelector(marks.ready) !== null,
        ...composerState(),
        send: controls(marks.send).filter(enabled).length,
        stop: controls(marks.stop).length > 0,
        failure: banner ? banner.innerText : "",
        turns: turns(known),
        frames,
      };
    },
    // Put the caret at the end of the composer; tells whether the composer has the focus.
    focus() {
      const box = composer();
      if (!box) return false;
      box.focus({ preventScroll: true });
      const now = composer();
      if (!now) return false;
      if (now.matches("textarea, input")) now.setSelectionRange(now.value.length, now.value.length);
      else getSelection().selectAllChildren(now), getSelection().collapseToEnd();
      return now.getRootNode().activeElement === now;
    },
    // Select all that the composer holds, so that a delete command empties it.
    selectAll() {
      const box = composer();
      if (!box) return false;
      box.focus({ preventScroll: true });
      if (box.matches("textarea, input")) box.select();
      else getSelection().selectAllChildren(box);
      return true;
    },
    // Look once more and press send, in one step: only if there is exactly one, and the composer holds `length`
    // characters. Gives "pressed", or why nothing was pressed.
    press(length) {
      const box = composer();
      if (!box) return "absent";
      if (holds(box).length !== length) return "changed";
      if (controls(marks.stop).length > 0) return "busy";
      const sends = controls(marks.send);
      if (sends.length !== 1) return sends.length ? "ambiguous" : "no-send";
      if (!enabled(sends[0])) return "disabled";
      sends[0].click();
      return "pressed";
    },
    // Press stop if exactly one is shown.
    pressStop() {
      const stops = controls(marks.stop);
      if (stops.length !== 1) return false;
      stops[0].click();
      return true;
    },
  };
}
