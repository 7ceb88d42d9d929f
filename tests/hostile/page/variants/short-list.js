// The list is virtual: no more than the last four turns are in the page.
export default (engine) => {
  const { paint } = engine;
  engine.paint = function (turn) {
    paint.call(this, turn);
    while (this.transcript.children.length > 4) this.transcript.firstElementChild.remove();
  };
};
