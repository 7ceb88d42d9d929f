// What a page shows of its provider, read once for somebody who only looks: it leaves nothing behind, and notes nothing
// that the page script of a turn goes by. No text of a conversation leaves the page but what its composer holds.
(marks, parts) => {
  const found = parts.finding(marks);
  const { inTurn, controls, isReady } = found;
  const { turnElements, banner, busy } = parts.turns(found);
  const page = { ...found, turnElements };
  const { state, switchedOff, free, enabled, outermost, near } = parts.composer(page);
  const { barrier, shown } = parts.barriers(page);
  const sign = (kind) => shown(kind, (element) => !inTurn(element));

  const { composer, composer_text } = state();
  const turn_count = turnElements().length;
  const signs = ["signed_in", "signed_in_hint", "signed_out", "signed_out_hint"];
  return {
    uri: location.href,
    ready: isReady(),
    composer,
    composer_text,
    switched_off: composer === "absent" && switchedOff(),
    stop: controls(marks.stop).length > 0 || busy(),
    turn_count,
    // How much text the page has, where nothing else tells what it is.
    text_count: composer === "absent" && turn_count === 0 ? (document.body?.innerText ?? "").trim().length : 0,
    ...barrier(composer),
    failure: Boolean(banner(marks.failure)),
    ...Object.fromEntries(signs.map((kind) => [kind, Boolean(sign(kind))])),
    model: parts.choosing({ ...page, free, enabled, outermost, near }).shownModel(),
  };
}
