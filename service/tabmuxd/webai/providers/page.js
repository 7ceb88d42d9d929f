// The page script: reads one chat page by a descriptor's marks, in an isolated world of the main frame.
// Evaluated once a document, and again for other marks; gives `globalThis.tabmux`. `parts` are what stands beside it in files of their own. It
// changes the page only in what the composer's part says, and in `pressStop`. A MutationObserver says "changed" once,
// until the next sample. `answer.js` reads an answer that is finished.
(marks, parts) => {
  if (globalThis.tabmux && globalThis.tabmux.identity === marks.identity) return;
  // The page was read by other marks before: by an earlier version of the descriptor, or for another provider.
  globalThis.tabmux?.end();

  const found = parts.finding(marks);
  const { root, controls, isReady } = found;

  // Since when no element came or went, and whether the list of turns was seen to be whole: as it is once a prompt was
  // pressed, until the page goes to another address than the one that the prompt brought it.
  let stillSince = performance.now();
  let whole = false;
  let pressed = false;
  let path = location.pathname;
  // Whether a person may have led the page elsewhere since the press, and whether it came by itself to where it is.
  let handled = false;
  let brought = false;
  const noteAddress = () => {
    if (location.pathname === path) return;
    path = location.pathname;
    whole = pressed;
    brought = pressed && !handled;
    pressed = false;
    stillSince = performance.now();
  };
  const notePress = () => {
    noteAddress();
    whole = pressed = true;
    handled = brought = false;
  };
  const noteHand = (event) => {
    if (event.isTrusted) handled = true;
  };
  const noteEntry = (event) => {
    if (event.navigationType === "traverse") handled = true;
    noteAddress();
  };
  for (const kind of ["pointerdown", "keydown", "popstate"]) {
    addEventListener(kind, noteHand, { capture: true, passive: true });
  }
  globalThis.navigation?.addEventListener("currententrychange", noteEntry);

  // Numbers of elements, that tell whether one is still the same; one that was taken out gets another.
  const numbers = new WeakMap();
  let lastNumber = 0;
  const numberOf = (element) => {
    if (!numbers.has(element)) numbers.set(element, (lastNumber += 1));
    return numbers.get(element);
  };

  let armed = false;
  const changed = (records) => {
    noteAddress();
    if (records.some((record) => record.type === "childList")) stillSince = performance.now();
    for (const record of records) for (const node of record.removedNodes) numbers.delete(node);
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

  // Tells this document, and how often anything was put into it.
  const name = crypto.getRandomValues(new Uint32Array(2)).join("-");
  let inputs = 0;
  for (const kind of ["beforeinput", "input", "paste", "compositionstart", "keydown"]) {
    addEventListener(kind, () => (inputs += 1), { capture: true, passive: true });
  }

  let lastInput = -Infinity;
  for (const kind of ["pointermove", "pointerdown", "keydown", "wheel", "touchstart"]) {
    const note = (event) => {
      if (event.isTrusted) lastInput = performance.now();
    };
    addEventListener(kind, note, { capture: true, passive: true });
  }

  const basis = { ...found, notePress };
  const { turns, banner, busy, answer, turnElements } = parts.turns(basis);
  const page = { ...basis, turnElements };
  const { state, free, enabled, outermost, near, stops, pressable, box, place, sends, switchedOff, ...acting } =
    parts.composer(page);
  const { seenFiles, ...files } = parts.files({ ...page, box, place });
  const choosing = parts.choosing({ ...page, free, enabled, outermost, near });
  const { barrier } = parts.barriers(page);

  globalThis.tabmux = {
    identity: marks.identity,
    end() {
      armed = false;
      observer.disconnect();
      globalThis.navigation?.removeEventListener("currententrychange", noteEntry);
    },
    // What the page shows; turns whose key is in `known` come without their text, with null all of them. `focus`: an
    // empty composer that can be used gets the focus, if nothing else is in the way. `count`: the next frame is counted;
    // right before a prompt is typed or pressed, what it changes would have to wait for that frame.
    sample(known, focus, count = !focus) {
      observeRoot();
      noteAddress();
      armed = true;
      if (count) askFrame();
      const failure = banner(marks.failure);
      const composer_files = seenFiles();
      const composer = state(JSON.stringify(composer_files));
      const seen = {
        uri: location.href,
        title: String(document.title).slice(0, 2048),
        ready: isReady(),
        ...barrier(composer.composer),
        ...composer,
        stop: controls(marks.stop).length > 0 || busy(),
        ...composer_files,
        failure: failure ? failure.innerText : "",
        failure_key: failure ? numberOf(failure) : 0,
        turns: turns(known),
        still: (performance.now() - stillSince) / 1000,
        whole,
        brought,
        touch: `${name} ${inputs}`,
        frames,
      };
      const free = seen.ready && !seen.stop && seen.composer === "usable" && !seen.composer_text.trim();
      return { ...seen, focused: focus && free && acting.focus(location.pathname) === "focused" };
    },
    // As `sample`, as soon as what the composer holds can be sent, or after so many milliseconds.
    async sampleReady(known, milliseconds) {
      observeRoot();
      let over = false;
      const timeOut = new Promise((resolve) => setTimeout(() => resolve((over = true)), milliseconds));
      while (!over && !pressable()) await Promise.race([timeOut, new Promise(requestAnimationFrame)]);
      return globalThis.tabmux.sample(known, false, false);
    },
    ...acting,
    ...files,
    choosing,
    // Press send as `press` of the composer does, if the composer shows the same files as in the look, and what was
    // `wanted` to be chosen, unless that is null, still is.
    press(reading, wanted) {
      if (wanted && (choosing.shown(wanted) !== "shown" || choosing.conflict(wanted))) return "model";
      return acting.press(reading, () => JSON.stringify(seenFiles()));
    },
    // Elements of these turns, in order, with their parts that have the text; for `answer.js`.
    answer,
    // Whether nobody was at work in the page for so many milliseconds.
    idle: (milliseconds) => performance.now() - lastInput > milliseconds,
    // Press stop if exactly one is shown, or one alone of them is not covered.
    pressStop() {
      const shown = stops();
      const found = shown.length > 1 ? shown.filter(free) : shown;
      if (found.length !== 1) return false;
      found[0].click();
      return true;
    },
  };
}
