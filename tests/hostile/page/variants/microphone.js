// In the place of send there is a microphone, whose kind of button is the same; it goes when there is text.
export default (engine, element) => {
  const { paintControls } = engine;
  engine.paintControls = function () {
    paintControls.call(this);
    const send = this.controls.querySelector('[data-testid="send-button"]');
    if (!send) return;
    send.hidden = send.disabled;
    this.controls.querySelector(".voice")?.remove();
    if (!send.disabled) return;
    const voice = element("button", { type: "button", class: "voice", "aria-label": "Start voice mode" }, "mic");
    voice.addEventListener("click", () => void this.submit("voice"));
    this.controls.append(voice);
  };
};
