// In the place of send there is a microphone, also when there is text.
export default (engine, element) => {
  engine.buildSend = function () {
    const voice = element("button", { type: "button", class: "voice", "aria-label": "Start voice mode" }, "mic");
    voice.addEventListener("click", () => void this.submit("voice"));
    return voice;
  };
};
