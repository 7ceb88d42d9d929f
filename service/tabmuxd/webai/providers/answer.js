// The whole answer, once it is finished: as HTML in pieces, or by the page's own copy control. Evaluated in the world of
// the page script where it is needed, with its `turns`: elements of the answer, in order, their parts with text, and its words.
(turns, copySelectors) => {
  const DROPPED =
    "script, style, noscript, template, button, [role='button'], [role='toolbar'], svg, iframe, object, embed, input," +
    " textarea, select, video, audio, canvas, dialog, [hidden]";
  const BLOCKS = new Set(
    "address article aside blockquote details div dl figure h1 h2 h3 h4 h5 h6 hr ol p pre section table ul".split(" "),
  );
  const isBlock = (node) => node.nodeType === Node.ELEMENT_NODE && BLOCKS.has(node.localName);
  const isBlank = (node) => node.nodeType !== Node.ELEMENT_NODE && !node.textContent.trim();

  // Formulas are shown twice, as pictures of letters; what was written stands in their annotation.
  const formulaOf = (element) => element.querySelector('annotation[encoding="application/x-tex"]')?.textContent;
  const formula = (tex, display) => {
    const made = document.createElement("span");
    made.dataset.tex = tex.trim();
    if (display) made.dataset.display = "1";
    return made;
  };
  const address = (element) => {
    const uri = element.localName === "a" ? element.href : element.src;
    return /^https?:/.test(uri ?? "") ? uri : "";
  };
  const attributesOf = (original) => {
    const kept = {};
    const language = /\blanguage-([\w+#.-]+)/.exec(original.className?.baseVal ?? original.className ?? "")?.[1];
    if (language) kept["data-language"] = language;
    for (const name of ["start", "colspan"]) {
      const number = original.getAttribute(name);
      if (/^\d{1,4}$/.test(number ?? "")) kept[name] = number;
    }
    if (original.hasAttribute("alt")) kept.alt = original.getAttribute("alt");
    const uri = address(original);
    if (uri) kept[original.localName === "a" ? "href" : "src"] = uri;
    return kept;
  };
  // Where white space is shown as it stands, line ends become elements, and blanks a sign that no text has.
  const keepBlanks = (line) => line.replace(/(?<=\S) +(?=\S)/g, (run) => ` ${"\ufdd0".repeat(run.length - 1)}`);
  const lines = (node, into) => {
    const keeps = /\n|  /.test(node.data) && !node.parentElement.closest("pre, code");
    if (!keeps || !/^(pre|break-spaces)/.test(getComputedStyle(node.parentElement).whiteSpace)) {
      into.append(node.data);
      return;
    }
    node.data.split("\n").forEach((line, index) => {
      if (index) into.append(document.createElement("br"));
      into.append(keepBlanks(line));
    });
  };

  // A copy without what is not shown, and without what is no content.
  const copyInto = (original, into) => {
    for (const node of original.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) lines(node, into);
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      const tex = node.matches(".katex-display, .katex, math") ? formulaOf(node) : undefined;
      if (tex !== undefined) {
        into.append(formula(tex, node.matches(".katex-display, [display='block']")));
        continue;
      }
      if (node.matches(DROPPED) || (node.matches("[aria-hidden='true']") && !node.matches("br")) || !shown(node)) continue;
      const made = document.createElement(node.localName);
      for (const [name, value] of Object.entries(attributesOf(node))) made.setAttribute(name, value);
      into.append(made);
      copyInto(node, made);
    }
  };
  const shown = (element) => element.matches("br, wbr, col, colgroup") || element.checkVisibility();

  const pieces = (part) => {
    let copy = document.createElement("div");
    copyInto(part, copy);
    if (isBlock(part) && !["div", "article", "section"].includes(part.localName)) {
      const whole = document.createElement(part.localName);
      for (const [name, value] of Object.entries(attributesOf(part))) whole.setAttribute(name, value);
      whole.append(...copy.childNodes);
      return [whole.outerHTML];
    }
    const only = (element) => [...element.childNodes].filter((node) => !isBlank(node));
    for (let inner = only(copy); inner.length === 1 && inner[0].localName === "div"; inner = only(copy)) copy = inner[0];
    if (!only(copy).every(isBlock)) return [copy.innerHTML];
    return only(copy).map((node) => node.outerHTML);
  };

  // The copy control of the answer's last turn, if there is exactly one; never one within its text.
  const control = () => {
    const last = turns.at(-1);
    for (const selector of last ? copySelectors : []) {
      const found = [...last.element.querySelectorAll(selector)].filter(
        (one) => !one.closest("pre") && !last.parts.some((part) => part !== last.element && part.contains(one)),
      );
      if (found.length) return found.length === 1 ? found[0] : null;
    }
    return null;
  };

  return {
    words: () => turns.map(({ words }) => words).join("\n\n"),
    html: () => turns.flatMap(({ parts }) => parts.flatMap(pieces)),
    copies: () => control() !== null,
    copy() {
      control()?.click();
      return true;
    },
  };
}
