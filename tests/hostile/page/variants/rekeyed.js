// A turn gets another key, in another node, once the answer is finished.
export default (engine) => {
  const paint = engine.paintAnswer;
  engine.paintAnswer = function (turn) {
    paint.call(this, turn);
    const { answer } = this.node(turn);
    if (!answer || !turn.view.done || answer.dataset.turnId.endsWith("final")) return;
    const made = answer.cloneNode(true);
    made.dataset.turnId = `${turn.id}-final`;
    answer.replaceWith(made);
    this.node(turn).answer = made;
  };
};
