// There is no composer.
export default (engine) => {
  const { build } = engine;
  engine.build = function () {
    build.call(this);
    this.form.remove();
  };
};
