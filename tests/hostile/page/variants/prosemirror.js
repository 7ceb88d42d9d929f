// The composer is ProseMirror, as installed from npm: Enter sends, Shift-Enter breaks the line, and what is sent is
// what the editor's own document holds. A field that follows it stays hidden beside it.
const names = [
  "commands", "history", "keymap", "model", "schema-basic", "state", "transform", "view",
].map((name) => `prosemirror-${name}`);
const others = { orderedmap: "dist/index.js", "rope-sequence": "dist/index.js", "w3c-keyname": "index.js" };
const imports = Object.fromEntries([
  ...names.map((name) => [name, `/modules/${name}/dist/index.js`]),
  ...Object.entries(others).map(([name, file]) => [name, `/modules/${name}/${file}`]),
]);
const map = document.createElement("script");
map.type = "importmap";
map.textContent = JSON.stringify({ imports });
document.head.append(map);

const [{ baseKeymap, chainCommands, exitCode }, { history }, { keymap }, { schema }, { EditorState }, { EditorView }] =
  await Promise.all(
    ["commands", "history", "keymap", "schema-basic", "state", "view"].map((name) => import(`prosemirror-${name}`)),
  );

export default (engine, element) => {
  const breakLine = chainCommands(exitCode, (state, dispatch) => {
    dispatch?.(state.tr.replaceSelectionWith(schema.nodes.hard_break.create()).scrollIntoView());
    return true;
  });
  engine.buildBox = function () {
    const place = element("div", { style: "flex: 1; max-height: 120px; overflow: auto" });
    const twin = element("textarea", { name: this.twinName ?? "prompt", style: "display: none" });
    const send = () => {
      void this.press();
      return true;
    };
    const plugins = [history(), keymap({ Enter: send, "Shift-Enter": breakLine }), keymap(baseKeymap)];
    this.editor = new EditorView(place, {
      state: EditorState.create({ schema, plugins }),
      attributes: this.boxAttributes ?? { id: "prompt", role: "textbox", "aria-label": "Message" },
      dispatchTransaction: (transaction) => {
        this.editor.updateState(this.editor.state.apply(transaction));
        twin.value = this.read();
        this.paintControls();
      },
    });
    place.append(twin);
    return place;
  };
  engine.read = function () {
    const { doc } = this.editor.state;
    return doc.textBetween(0, doc.content.size, "\n", "\n");
  };
  engine.write = function (text) {
    const { state } = this.editor;
    this.editor.dispatch(text ? state.tr.insertText(text, 0, state.doc.content.size) : state.tr.delete(0, state.doc.content.size));
  };
};
