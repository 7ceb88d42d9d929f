// What stands in the way in the page script: a sign-in, a challenge, a consent or a limit that is shown in its own
// place. A mark is a selector, and a text that has to stand in what it selects; no word counts anywhere else.
(page) => {
  const { marks, root, marked, visible, inTurn } = page;
  // A dialog may hang below the document while the page itself is in a shadow root, or not there at all.
  const everywhere = (mark) => [...marked(mark, document), ...(root() === document ? [] : marked(mark))];

  const shown = (kind, inPlace) => {
    for (const mark of marks[kind]) {
      const found = everywhere(mark).find((element) => visible(element) && inPlace(element));
      if (found) return found;
    }
    return null;
  };

  // A composer that can be used overrules what asks for a person, and that must not hide a limit.
  const barrier = (composer) => {
    for (const kind of composer === "usable" ? [] : ["challenge", "sign_in", "consent"]) {
      if (shown(kind, (element) => !inTurn(element))) return { barrier: kind, barrier_text: "" };
    }
    // A limit may stand in the newest turn, which has no answer then.
    const last = page.turnElements().at(-1);
    const limit = shown("limit", (element) => !inTurn(element) || Boolean(last?.contains(element)));
    if (!limit) return { barrier: "", barrier_text: "" };
    const times = [...limit.querySelectorAll("time[datetime]")].map((time) => time.dateTime);
    return { barrier: "limit", barrier_text: [limit.innerText, ...times].join("\n").slice(0, 4096) };
  };

  return { barrier, shown };
}
