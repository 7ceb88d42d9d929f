// The composer's part of the page script: which box takes the prompt, what it holds, and the one press of send.
// It changes the page only in `focus`, `selectAll` and `press`.
(page) => {
  const { marks, marked, isMarked, visible, within, inTurn, isElsewhere, elsewhere, turnSelector, controls } = page;

  const editableInside = '[contenteditable="true"], textarea';
  const outermost = (elements) => elements.filter((one) => !elements.some((other) => other !== one && other.contains(one)));
  const isField = (element) => element.matches("textarea, input");
  const editable = (element) =>
    element.getAttribute("aria-disabled") !== "true" &&
    element.getAttribute("aria-readonly") !== "true" &&
    (isField(element) ? !element.disabled && !element.readOnly : element.isContentEditable);
  // A custom element may keep the box in a shadow root of its own.
  const innermost = (element) =>
    (!editable(element) && element.shadowRoot?.querySelector(editableInside)) || element;
  const inPlace = (element) =>
    !inTurn(element) &&
    !isElsewhere(element) &&
    (!marks.composer_root || Boolean(within(element, marks.composer_root)));
  const seen = (element) => {
    const box = element.getBoundingClientRect();
    return (
      visible(element) &&
      element.checkVisibility({ checkOpacity: true }) &&
      box.width > 1 &&
      box.height > 1 &&
      box.right + scrollX > 0 &&
      box.bottom + scrollY > 0
    );
  };
  // What a box is sent from: its form, or else the nearest place around it that has a control to send or to stop; null
  // where there is none. It never holds anything but the composer: no turn, no side bar, not the whole page.
  const up = (element) => element.parentElement ?? element.getRootNode().host ?? null;
  const isWide = (element) =>
    element.matches("body, html, main, [role=main]") || element.querySelector(`${turnSelector}, ${elsewhere}`) !== null;
  const hasControl = (place) =>
    [...marks.send, ...marks.stop].some((mark) => marked(mark, place).some((element) => visible(element) && !inTurn(element)));
  const area = (element) => {
    const chosen = within(element, marks.composer_root || "form");
    if (chosen || marks.composer_root) return chosen;
    for (let at = up(element); at && !isWide(at); at = up(at)) if (hasControl(at)) return at;
    return null;
  };
  const hasControls = (element) => {
    const place = area(element);
    return Boolean(place) && (hasControl(place) || controls(marks.not_send, place).length > 0);
  };

  const candidates = (wanted = marks.composer) => wanted.flatMap((mark) => marked(mark)).map(innermost);
  // The first mark that fits a box decides; of several boxes, the one with controls of a composer around it.
  const find = () => {
    for (const mark of marks.composer) {
      const fitting = candidates([mark]).filter((element) => editable(element) && inPlace(element) && seen(element));
      const found = outermost([...new Set(fitting)]);
      if (found.length === 1) return found[0];
      const sending = found.filter(hasControls);
      if (found.length) return sending.length === 1 ? sending[0] : null;
    }
    return null;
  };
  const centre = (element) => {
    const box = element.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const onScreen = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
  // Whether a click at its centre would reach it; one that has to be scrolled to is not covered.
  const free = (element) => {
    const at = centre(element);
    if (!onScreen(at)) return true;
    const hit = element.getRootNode().elementFromPoint(...at);
    return hit === element || element.contains(hit) || Boolean(hit?.contains(element));
  };
  const holds = (element) => (isField(element) ? element.value : element.innerText);

  const enabled = (element) =>
    !element.disabled &&
    element.getAttribute("aria-disabled") !== "true" &&
    element.getAttribute("data-disabled") !== "true" &&
    getComputedStyle(element).pointerEvents !== "none";
  const isOther = (element) => [...marks.stop, ...marks.not_send].some((mark) => isMarked(element, mark));
  // Send controls that are shown around the composer.
  const sends = (box) => {
    const place = box && area(box);
    for (const mark of place ? marks.send : []) {
      const found = marked(mark, place).filter((element) => visible(element) && !inTurn(element) && !isOther(element));
      if (found.length) return outermost(found);
    }
    return [];
  };
  // Stop controls that are shown: around the composer if there are any, else in the whole page.
  const stops = () => {
    const box = find();
    const place = box && area(box);
    const near = place ? controls(marks.stop, place) : [];
    return near.length ? near : controls(marks.stop);
  };

  let looked = null;

  return {
    free,
    enabled,
    outermost,
    // Of several elements those that are closest to the composer: with which it has the innermost place in common.
    near(elements) {
      const box = elements.length > 1 ? find() : null;
      for (let at = box && up(box); at; at = up(at)) {
        const around = elements.filter((element) => at.contains(element));
        if (around.length) return around;
      }
      return elements;
    },
    stops,
    // The box and the send controls that would be taken; whether a box is there that takes no text.
    box: find,
    // Where what belongs to the composer stands; null where there is no box, or nothing tells.
    place: () => {
      const box = find();
      return box && area(box);
    },
    sends: () => sends(find()),
    switchedOff: () => candidates().some((element) => !editable(element) && inPlace(element) && seen(element)),
    // Whether something stands in the box that the one send control would send.
    pressable() {
      const box = find();
      return Boolean(box) && holds(box).trim() !== "" && sends(box).filter(enabled).length === 1;
    },
    // What the box holds and whether it can be used. `reading` names this look, for `press`; `files`: what it shows of
    // files.
    state(files = "") {
      const box = find();
      const text = box ? holds(box) : "";
      looked = { reading: (looked?.reading ?? 0) + 1, path: location.pathname, text, files };
      return {
        composer: !box ? "absent" : free(box) ? "usable" : "blocked",
        composer_text: text,
        composer_exact: Boolean(box) && isField(box),
        send: sends(box).filter(enabled).length,
        reading: looked.reading,
      };
    },
    // Put the caret at the end of the composer, if the page still is at `path`. Gives "focused", or why it is not.
    focus(path) {
      if (location.pathname !== path) return "moved";
      const box = find();
      if (!box) return "absent";
      if (!onScreen(centre(box))) box.scrollIntoView({ block: "nearest", behavior: "instant" });
      if (!free(box)) return "blocked";
      box.focus({ preventScroll: true });
      if (location.pathname !== path) return "moved";
      const now = find();
      if (!now) return "absent";
      const end = now.value?.length;
      if (isField(now)) (now.selectionStart === end && now.selectionEnd === end) || now.setSelectionRange(end, end);
      else getSelection().selectAllChildren(now), getSelection().collapseToEnd();
      return now.getRootNode().activeElement === now ? "focused" : "absent";
    },
    // Give the editor that has the focus a text to paste, as it takes one from a person: many lines at once. Tells whether
    // it took it; a plain box does not.
    paste(text) {
      const box = find();
      if (!box || isField(box) || box.getRootNode().activeElement !== box) return false;
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", text);
      const options = { clipboardData, bubbles: true, cancelable: true, composed: true };
      return !box.dispatchEvent(new ClipboardEvent("paste", options));
    },
    // Select all that the composer holds, so that a delete command empties it; only if that is as in the look `reading`.
    selectAll(reading) {
      const box = find();
      if (!box || looked?.reading !== reading || holds(box) !== looked.text) return false;
      box.focus({ preventScroll: true });
      if (isField(box)) box.select();
      else getSelection().selectAllChildren(box);
      return box.getRootNode().activeElement === box;
    },
    // Look once more and press send, in one step: only if all is as in the look `reading`, and there is exactly one
    // send control. Gives "pressed", or why nothing was pressed.
    press(reading, files) {
      const box = find();
      if (!box) return "absent";
      if (looked?.reading !== reading || location.pathname !== looked.path) return "moved";
      if (holds(box) !== looked.text) return "changed";
      if (files() !== looked.files) return "files";
      if (!free(box)) return "blocked";
      if (controls(marks.stop).length > 0) return "busy";
      const found = sends(box);
      const ready = found.filter(enabled);
      if (ready.length !== 1) return ready.length ? "ambiguous" : found.length ? "disabled" : "no-send";
      page.notePress();
      ready[0].click();
      return "pressed";
    },
  };
}
