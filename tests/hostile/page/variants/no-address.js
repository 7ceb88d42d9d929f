// A conversation that begins here is never given an address of its own.
export default () => {
  history.pushState = () => {};
};
