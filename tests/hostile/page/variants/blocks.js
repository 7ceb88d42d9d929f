// An answer is one node with others of its kind in it, one for each paragraph: thinking, steps, the text.
export default (engine, element) => {
  engine.fillAnswer = function (node, turn) {
    const place = this.blocksOf(node);
    const text = turn.view.text || turn.view.placeholder;
    const paragraphs = text ? text.split("\n\n") : [];
    const blocks = [...place.children].filter((one) => one.matches("[data-block]"));
    if (!blocks.length) place.querySelector(".markdown")?.closest("message-content, .markdown")?.remove();
    paragraphs.forEach((paragraph, index) => {
      if (blocks[index]?.textContent === paragraph) return;
      const made = this.buildBlock();
      made.dataset.block = String(index);
      (made.querySelector(".markdown") ?? made).append(element("p", {}, paragraph));
      const before = place.querySelector(":scope > .response-footer");
      if (blocks[index]) blocks[index].replaceWith(made);
      else place.insertBefore(made, before);
      blocks[index] = made;
    });
  };
};
