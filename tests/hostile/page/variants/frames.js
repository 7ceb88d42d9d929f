// The page paints by animation frames alone, as the real ones do.
export default (engine) => {
  let frame = 0;
  const waiting = new Set();
  engine.schedule = function (turn) {
    waiting.add(turn);
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      for (const one of waiting) this.paint(one);
      waiting.clear();
    });
  };
};
