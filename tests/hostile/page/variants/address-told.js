// The address of a new conversation comes when a test says so, and nothing else changes then.
export default (engine) => {
  engine.moveTo = (address) => {
    globalThis.giveAddress = () => history.pushState(null, "", address);
  };
};
