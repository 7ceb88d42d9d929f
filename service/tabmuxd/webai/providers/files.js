// The files' part of the page script: which files the composer shows, where one is put in, and how one is taken out.
// It changes the page only in `openFiles` and `removeFile`.
(page) => {
  const { marks, marked, isMarked, all, visible, inTurn, isElsewhere, box, place } = page;

  const LONGEST = 512;
  const MOST = 32;
  const inPlace = (element) => !inTurn(element) && !isElsewhere(element);
  const outermost = (elements) => elements.filter((one) => !elements.some((other) => other !== one && other.contains(one)));
  const within = (wanted, element) => wanted.some((mark) => isMarked(element, mark) || marked(mark, element).some(visible));
  // What stands for a file: never what holds the composer too, or opens the choice of files.
  const chips = () => {
    if (!marks.file_chip.length) return [];
    const composer = box();
    const isControl = (element) => [...marks.file_opener, ...marks.file_entry].some((mark) => isMarked(element, mark));
    const found = marks.file_chip.flatMap((mark) => marked(mark));
    return outermost([...new Set(found)]).filter(
      (element) => visible(element) && inPlace(element) && !(composer && element.contains(composer)) && !isControl(element),
    );
  };
  const words = (text) => (text ?? "").replace(/\s+/g, " ").trim().slice(0, LONGEST);
  const namesOf = (chip) => {
    const labelled = [chip, ...all("[aria-label], [title], [alt]", chip)];
    const told = labelled.flatMap((each) => ["aria-label", "title", "alt"].map((name) => each.getAttribute(name)));
    return [...new Set([chip.innerText, chip.textContent, ...told].map(words).filter(Boolean))].slice(0, MOST);
  };
  const outside = (wanted, shown, below) =>
    wanted.some((mark) =>
      marked(mark, below).some((each) => visible(each) && !inTurn(each) && !shown.some((chip) => chip.contains(each))),
    );
  const seen = () => {
    const shown = chips();
    return {
      files: shown.slice(0, MOST).map((chip) => ({
        names: namesOf(chip),
        busy: within(marks.file_busy, chip),
        failed: within(marks.file_error, chip),
      })),
      files_busy: shown.length > MOST || outside(marks.file_busy, shown, place() ?? undefined),
      files_failed: outside(marks.file_error, shown),
    };
  };

  // Whether an input takes a file of this name and type, by what it says.
  const accepts = (input, name, type) => {
    const wanted = input.accept.split(",").map((each) => each.trim().toLowerCase()).filter(Boolean);
    return (
      !wanted.length ||
      wanted.some((each) =>
        each.startsWith(".")
          ? name.toLowerCase().endsWith(each)
          : each.endsWith("/*")
            ? type.startsWith(each.slice(0, -1))
            : each === type,
      )
    );
  };
  const isInput = (element) => element.matches("input[type=file]") && !element.disabled && !element.webkitdirectory;
  const shownOne = (wanted) => {
    for (const mark of wanted) {
      const found = marked(mark).filter((element) => visible(element) && !inTurn(element) && !element.disabled);
      if (found.length) return found.length === 1 ? found[0] : null;
    }
    return null;
  };

  return {
    seenFiles: seen,
    // The input for a file, which may be hidden; of several the one beside the composer, else a visible one, else one
    // for many files. Null where there is none.
    fileInput(name, type) {
      const form = box()?.closest("form");
      for (const mark of marks.file_input) {
        const found = marked(mark).filter((each) => isInput(each) && inPlace(each) && accepts(each, name, type));
        const choices = [(each) => form?.contains(each), visible, (each) => each.multiple, () => true];
        for (const chosen of choices) {
          const one = found.find(chosen);
          if (one) return one;
        }
      }
      return null;
    },
    // Press what opens the choice of files: the entry of the menu if it is shown, else the control that opens that.
    // Gives which, or "" where there is none, or more than one. `entryOnly`: the menu was opened already.
    openFiles(entryOnly) {
      const entry = shownOne(marks.file_entry);
      const control = entry ?? (entryOnly ? null : shownOne(marks.file_opener));
      control?.click();
      return !control ? "" : entry ? "entry" : "opener";
    },
    // Press the control that takes out the file shown at this place, if as many are shown as in the last look.
    removeFile(index, count) {
      const shown = chips();
      const chip = shown[index];
      if (!chip || shown.length !== count) return false;
      const found = marks.file_remove.flatMap((mark) => [...(isMarked(chip, mark) ? [chip] : []), ...marked(mark, chip)]);
      found[0]?.click();
      return found.length > 0;
    },
  };
}
