// No id, no test id, no class is left of composer and controls, as after a release: only roles and names, in Korean.
const role = (element, name, made) => {
  const stands = element("div", { role: "button", tabindex: "0" }, element("span", {}, name.slice(0, 2)), name.slice(2));
  stands.addEventListener("click", () => made.click());
  return stands;
};
export default (engine, element) => {
  const { build, buildBox, buildSend, buildStop } = engine;
  engine.buildBox = function () {
    const box = buildBox.call(this);
    for (const name of ["id", "aria-label"]) box.removeAttribute(name);
    box.setAttribute("aria-labelledby", "caption");
    return box;
  };
  engine.build = function () {
    build.call(this);
    this.form.removeAttribute("id");
    const untold = role(element, "보내기", { click: () => void this.submit("untold") });
    untold.setAttribute("aria-hidden", "true");
    const other = element("button", { type: "button", "aria-label": "피드백 보내기" }, "보내기");
    other.addEventListener("click", () => void this.submit("feedback"));
    this.form.prepend(element("span", { id: "caption", hidden: "" }, "메시지", element("b", {}, " 입력")), untold, other);
  };
  engine.buildSend = function () {
    return role(element, "보내기", buildSend.call(this));
  };
  engine.buildStop = function () {
    return role(element, "중지", buildStop.call(this));
  };
};
