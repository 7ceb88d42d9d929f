// The page puts a draft back into its composer a second after it was loaded, whatever is there.
export default (engine) => {
  const { start } = engine;
  engine.start = async function () {
    await start.call(this);
    setTimeout(() => this.write("Dear diary"), 1000);
  };
};
