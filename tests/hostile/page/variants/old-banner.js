// An error of something else is shown from the beginning.
export default (engine, element) => {
  const build = engine.build;
  engine.build = function () {
    build.call(this);
    this.transcript.append(element("div", { role: "alert", class: "failure" }, "The upload failed."));
  };
};
