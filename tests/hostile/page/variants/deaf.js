// The page does not hear the first press.
export default (engine) => {
  const { press } = engine;
  let heard = false;
  engine.press = async function () {
    if (heard) await press.call(this);
    heard = true;
  };
};
