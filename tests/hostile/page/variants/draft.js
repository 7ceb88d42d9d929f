// The page has a draft of somebody's in its composer when it is loaded.
export default (engine) => {
  const { start } = engine;
  engine.start = async function () {
    await start.call(this);
    this.write("Dear diary");
  };
};
