// There are two send controls, alike.
export default (engine) => {
  const { paintControls } = engine;
  engine.paintControls = function () {
    paintControls.call(this);
    const send = this.controls.querySelector('[data-testid="send-button"]');
    if (!send) return;
    if (this.controls.children.length === 1) this.controls.append(this.buildSend());
    for (const one of this.controls.children) one.disabled = send.disabled;
  };
};
