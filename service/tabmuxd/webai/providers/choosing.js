// Choosing in the page script: which model and which modes the page shows, and the menus that they are chosen in. It
// changes the page only in `open`, `pick`, `enter`, `focusSlider` and `close`, each of which looks once more and presses
// one thing at most. `wanted` is a choice of the descriptor; it comes with each call.
(page) => {
  const { marks, root, marked, nameFits, visible, inTurn, isElsewhere, outermost, free, enabled, near } = page;
  // What readers of screens do not get is no name: icons are letters in some fonts.
  const SILENT = '[aria-hidden="true"], svg';
  const MENUS = '[role="menu"], [role="listbox"]';

  // Menus hang below the document, wherever the page itself is.
  const roots = () => (root() === document || !root() ? [document] : [document, root()]);
  const everywhere = (mark) => roots().flatMap((one) => marked(mark, one));
  const distinct = (elements) => outermost([...new Set(elements)]);
  const words = (text) => text.replace(/\s+/g, " ").trim();
  const spoken = (element) => {
    if (!element.querySelector(SILENT)) return element.innerText ?? "";
    const told = [...element.childNodes].map((node) => {
      if (node.nodeType === Node.TEXT_NODE) return node.data;
      return node.nodeType === Node.ELEMENT_NODE && !node.matches(SILENT) ? spoken(node) : "";
    });
    return told.filter((text) => text.trim()).join("\n");
  };
  const labelsOf = (element) => ["aria-label", "title"].map((name) => words(element.getAttribute(name) ?? ""));
  const firstLine = (text) => text.split("\n").map(words).find(Boolean) ?? "";
  const fitsOne = (name, labels) => Boolean(name) && labels.some((label) => nameFits(name, label));

  // What the page shows as chosen

  const shownElements = () =>
    near(distinct(marks.shown_model.flatMap(everywhere).filter((one) => visible(one) && !inTurn(one) && !isElsewhere(one))));
  const said = (element) => words(spoken(element)) || labelsOf(element).find(Boolean) || "";
  // The whole text goes first: its first line may be another's name.
  const isCalled = (element, { labels, other_labels }) =>
    fitsOne(said(element), labels) || (!fitsOne(said(element), other_labels) && fitsOne(firstLine(spoken(element)), labels));
  const isOn = (on) => on.some((mark) => everywhere(mark).some((one) => visible(one) && !inTurn(one)));
  const shown = (wanted) => {
    if (wanted.on.length) return isOn(wanted.on) ? "shown" : "other";
    const found = shownElements();
    if (!found.length) return "none";
    const fitting = found.filter((one) => isCalled(one, wanted));
    return fitting.length === found.length ? "shown" : fitting.length ? "unclear" : "other";
  };
  // In the page's words.
  const shownModel = () => (shownElements().map(said).find(Boolean) ?? "").slice(0, 1024);
  const conflict = (wanted) => wanted.conflicts.find(({ on }) => isOn(on))?.id ?? "";

  // The menus

  // What a press for one turn has opened: what stood there before, and since the pick what came with it; what was there
  // before another menu was opened within.
  let opening = null;
  const opened = ({ turn }) => (opening?.turn === turn ? opening : null);
  const menus = (wanted) => distinct(wanted.menu.flatMap(everywhere).filter(visible));
  const allMenus = () => roots().flatMap((one) => [...one.querySelectorAll(MENUS)]).filter(visible);
  const submenus = (wanted) => {
    const before = opened(wanted)?.beforeSubmenu;
    return before ? allMenus().filter((one) => !before.has(one)) : [];
  };
  const within = (selector, places) => distinct(places.flatMap((one) => [...one.querySelectorAll(selector)])).filter(visible);
  // Where no mark tells the menu, its options are those that were not there before it was opened.
  const candidates = (selector, wanted) => {
    if (wanted.menu.length) return within(selector, [...menus(wanted), ...submenus(wanted)]);
    const { before, came } = opened(wanted) ?? {};
    const isNew = (one) => before && !before.has(one) && (!came || came.has(one)) && !inTurn(one);
    return distinct([...within(selector, before ? roots() : []).filter(isNew), ...within(selector, submenus(wanted))]);
  };
  const isOpen = (wanted) =>
    wanted.menu.length ? menus(wanted).length > 0 : wanted.option.some((one) => candidates(one, wanted).length > 0);
  const namesOf = (option, { option_name }) => {
    const named = option_name ? [...option.querySelectorAll(option_name)].map((one) => words(spoken(one))).filter(Boolean) : [];
    return named.length ? named : [...labelsOf(option), words(spoken(option)), firstLine(spoken(option))];
  };
  const options = (wanted) => {
    for (const selector of wanted.option) {
      const found = candidates(selector, wanted).filter((one) => namesOf(one, wanted).some((name) => fitsOne(name, wanted.labels)));
      const usable = found.filter(enabled);
      if (found.length) return usable.length ? usable : found;
    }
    return [];
  };
  const optionState = (wanted) => {
    const found = options(wanted);
    if (!found.length) return "absent";
    return !found.some(enabled) ? "disabled" : found.length > 1 ? "ambiguous" : "usable";
  };
  const openers = (wanted) => {
    const inMenu = (one) => menus(wanted).some((menu) => menu.contains(one));
    for (const mark of wanted.opener) {
      const found = distinct(everywhere(mark).filter((one) => visible(one) && !inTurn(one) && !isElsewhere(one) && !inMenu(one)));
      if (!found.length) continue;
      const usable = near(found).filter((one) => enabled(one) && free(one));
      return usable;
    }
    return [];
  };
  const submenuItems = (wanted) => {
    for (const { selector, ...named } of wanted.submenu) {
      const found = menus(wanted).flatMap((menu) => marked({ selector, ...named }, menu)).filter((one) => visible(one) && enabled(one));
      if (found.length) return distinct(found);
    }
    return [];
  };
  const level = (wanted) => {
    if (wanted.level === null) return null;
    const sliders = menus(wanted).flatMap((menu) => [...menu.querySelectorAll(wanted.slider)]);
    const [low, high, now] = ["min", "max", "now"].map((name) => Number.parseInt(sliders[0]?.getAttribute(`aria-value${name}`), 10));
    return sliders.length === 1 && low === 0 && high === wanted.levels - 1 && now >= 0 ? now : null;
  };

  // All that a press of the pointer tells, as a browser does: some menus open as it goes down, others once it is up again,
  // and a page that prevents the first of it gets no events of a mouse, nor is the focus moved.
  const press = (element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    const place = { clientX: left + width / 2, clientY: top + height / 2, bubbles: true, cancelable: true, composed: true };
    const pointer = { ...place, pointerId: 1, pointerType: "mouse", isPrimary: true, button: 0 };
    const goesOn = element.dispatchEvent(new PointerEvent("pointerdown", { ...pointer, buttons: 1 }));
    const isFocused = goesOn && element.dispatchEvent(new MouseEvent("mousedown", { ...place, buttons: 1 }));
    if (isFocused) element.focus?.({ preventScroll: true });
    element.dispatchEvent(new PointerEvent("pointerup", pointer));
    if (goesOn) element.dispatchEvent(new MouseEvent("mouseup", place));
    if (element.isConnected) element.click();
  };
  const pressOnly = (found) => {
    if (found.length !== 1) return false;
    found[0].scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
    if (!free(found[0])) return false;
    press(found[0]);
    return true;
  };

  return {
    shown,
    conflict,
    shownElements,
    shownModel,
    // What is shown besides a prompt, and whether it is what is `wanted`, unless that is null.
    told: (modes, wanted) => ({
      model: shownModel(),
      modes: modes.filter(({ on }) => isOn(on)).map(({ id }) => id),
      shown: wanted ? shown(wanted) : "none",
      conflict: wanted ? conflict(wanted) : "",
    }),
    look: (wanted) => ({
      model: shownModel(),
      shown: shown(wanted),
      conflict: conflict(wanted),
      openers: openers(wanted).length,
      open: isOpen(wanted),
      option: optionState(wanted),
      submenu: submenuItems(wanted).length === 1,
      level: level(wanted),
    }),
    open(wanted) {
      const found = openers(wanted);
      if (found.length !== 1 || isOpen(wanted)) return false;
      opening = { turn: wanted.turn, before: new WeakSet(wanted.option.flatMap((one) => within(one, roots()))) };
      return pressOnly(found);
    },
    pick(wanted) {
      const came = new WeakSet(wanted.option.flatMap((one) => candidates(one, wanted)));
      if (optionState(wanted) !== "usable" || !pressOnly(options(wanted))) return false;
      opening = { ...opened(wanted), turn: wanted.turn, came };
      return true;
    },
    enter(wanted) {
      opening = { ...opened(wanted), turn: wanted.turn, beforeSubmenu: new WeakSet(allMenus()) };
      return pressOnly(submenuItems(wanted));
    },
    focusSlider(wanted) {
      const found = wanted.slider_item.flatMap((mark) => menus(wanted).flatMap((menu) => marked(mark, menu))).filter(visible);
      if (distinct(found).length !== 1) return false;
      found[0].focus({ preventScroll: true });
      return found[0].getRootNode().activeElement === found[0];
    },
    // Escape, for the menu alone: what else would hear it in the page may be somebody's.
    close(wanted) {
      if (!isOpen(wanted)) return false;
      const menu = menus(wanted)[0] ?? wanted.option.flatMap((one) => candidates(one, wanted))[0].parentElement;
      const active = menu.getRootNode().activeElement;
      const place = menu.contains(active) ? active : menu;
      const key = { key: "Escape", code: "Escape", keyCode: 27, bubbles: true, cancelable: true, composed: true };
      for (const kind of ["keydown", "keyup"]) place.dispatchEvent(new KeyboardEvent(kind, key));
      return true;
    },
    // The control that opened it, once more.
    toggle: (wanted) => isOpen(wanted) && openers(wanted).length === 1 && (press(openers(wanted)[0]), true),
  };
}
