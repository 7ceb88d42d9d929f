// The page shows its composer before it is alive: what was typed by then is gone when it is.
export default (engine) => {
  const { start } = engine;
  engine.start = async function () {
    await start.call(this);
    delete document.documentElement.dataset.ready;
    await new Promise((resolve) => setTimeout(resolve, 1500));
    this.write("");
    document.documentElement.dataset.ready = "1";
  };
};
