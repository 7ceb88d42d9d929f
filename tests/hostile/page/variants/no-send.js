// There is no send control.
export default (engine, element) => {
  engine.buildSend = () => element("span", {});
};
