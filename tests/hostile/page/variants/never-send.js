// Send stays disabled.
export default (engine) => {
  const { buildSend } = engine;
  engine.buildSend = function () {
    const send = buildSend.call(this);
    send.setAttribute("aria-disabled", "true");
    return send;
  };
};
