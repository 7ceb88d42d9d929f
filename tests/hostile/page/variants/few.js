// The list is virtual: no more than the last six turns are in the page, older ones are dropped two by two.
export default (engine) => {
  const paint = engine.paint;
  engine.paint = function (turn) {
    paint.call(this, turn);
    const shown = this.transcript.querySelectorAll("[data-turn]");
    if (shown.length > 6) for (const old of [...shown].slice(0, 2)) old.remove();
  };
};
