// Each turn is one element of the same kind, and only the user's has a mark of its author, within.
export default (engine, element) => {
  engine.buildUser = (turn) => {
    const prompt = element("div", { class: "prompt", "data-author": "user", style: "white-space: pre-wrap" }, turn.prompt);
    return element("article", { class: "turn", "data-turn-id": `${turn.id}-user` }, prompt);
  };
  engine.buildAnswer = (turn) =>
    element("article", { class: "turn", "data-turn-id": `${turn.id}-assistant` }, element("div", { class: "markdown" }));
};
