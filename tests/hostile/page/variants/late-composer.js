// The composer comes two seconds after all else; until then the page looks as if it were ready.
export default (engine) => {
  const { build } = engine;
  engine.build = function () {
    build.call(this);
    this.form.remove();
    setTimeout(() => document.querySelector("main").append(this.form), 2000);
  };
};
