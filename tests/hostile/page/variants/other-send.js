// Far from the composer there is another control that looks like send.
export default (engine, element) => {
  const { build } = engine;
  engine.build = function () {
    build.call(this);
    const decoy = element("button", { "data-testid": "send-button", type: "button" }, "Send feedback");
    decoy.addEventListener("click", () => void this.submit("feedback"));
    this.sidebar.append(decoy);
  };
};
