// The answer is an outer node of an assistant with inner ones of its own, one for each paragraph.
export default (engine, element) => {
  engine.buildAnswer = (turn) => element("article", { "data-turn": "assistant", "data-turn-id": `${turn.id}-assistant` });
  engine.fillAnswer = (node, turn) => {
    const text = turn.view.text || turn.view.placeholder;
    const paragraphs = text ? text.split("\n\n") : [];
    paragraphs.forEach((paragraph, index) => {
      const attributes = { "data-turn": "assistant", "data-turn-id": `${turn.id}-part-${index}` };
      const inner = node.querySelectorAll(":scope > article")[index];
      const made = element("article", attributes, element("div", { class: "markdown" }, element("p", {}, paragraph)));
      if (!inner) node.append(made);
      else if (inner.textContent !== paragraph) inner.replaceWith(made);
    });
  };
};
