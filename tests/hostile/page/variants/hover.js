// The controls of an answer are there, and not visible until somebody points at it; a press moves focus and scrolls.
export default (engine) => {
  const build = engine.buildActions;
  engine.buildActions = function (turn) {
    const actions = build.call(this, turn);
    actions.style.visibility = "hidden";
    actions.firstElementChild.addEventListener("click", () => {
      this.box.focus();
      actions.scrollIntoView();
    });
    return actions;
  };
};
