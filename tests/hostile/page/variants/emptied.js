// The list is virtual: turns but the last two are emptied, and their marks stay.
export default (engine) => {
  const paint = engine.paint;
  engine.paint = function (turn) {
    paint.call(this, turn);
    const shown = [...this.transcript.querySelectorAll("[data-turn]")];
    for (const old of shown.slice(0, -2)) for (const place of old.querySelectorAll(".prompt, .markdown")) place.replaceChildren();
  };
};
