// Send stays disabled for a second after the last input.
export default (engine) => {
  const { paintControls } = engine;
  let until = 0;
  engine.paintControls = function (now = false) {
    paintControls.call(this);
    const send = this.controls.querySelector('[data-testid="send-button"]');
    if (!send || send.disabled) return;
    if (!now) {
      until = performance.now() + 1000;
      setTimeout(() => this.paintControls(true), 1050);
    }
    send.disabled = performance.now() < until;
  };
};
