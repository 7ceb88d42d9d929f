// Beside the send control, which has nothing but its name, stands another of that role and name, in another language.
export default (engine, element) => {
  const { build } = engine;
  engine.build = function () {
    build.call(this);
    const other = element("button", { type: "button" }, "Send");
    other.addEventListener("click", () => void this.submit("other"));
    this.form.append(other);
  };
};
