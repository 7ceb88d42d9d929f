// Catches the next text that the page writes to the clipboard, without the clipboard; gives null after `milliseconds`.
// Evaluated in the page's own world, right before its copy control is pressed. Meanwhile nothing moves focus or scrolls.
(milliseconds) =>
  new Promise((resolve) => {
    const replaced = [];
    const replace = (owner, name, value) => {
      const own = owner && Object.getOwnPropertyDescriptor(owner, name);
      if (!own?.configurable) return;
      replaced.push([owner, name, own]);
      Object.defineProperty(owner, name, { ...own, value });
    };
    const finish = (text) => {
      clearTimeout(timer);
      for (const [owner, name, own] of replaced.splice(0)) Object.defineProperty(owner, name, own);
      resolve(text);
    };
    const timer = setTimeout(finish, milliseconds, null);
    const clipboard = globalThis.Clipboard?.prototype;
    replace(clipboard, "writeText", async (text) => finish(String(text)));
    replace(clipboard, "write", async (items) => {
      const item = [...items].find((one) => one.types.includes("text/plain"));
      finish(item ? await (await item.getType("text/plain")).text() : null);
    });
    for (const name of ["scrollIntoView", "scroll", "scrollTo", "scrollBy"]) replace(Element.prototype, name, () => undefined);
    for (const name of ["scroll", "scrollTo", "scrollBy"]) replace(globalThis, name, () => undefined);
    replace(HTMLElement.prototype, "focus", () => undefined);
  })
