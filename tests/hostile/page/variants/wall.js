// A page in front of the page asks for a moment, and lets everybody pass after some seconds.
export default (engine, element) => {
  const { start } = engine;
  engine.start = async function () {
    if (sessionStorage.getItem("passed")) {
      await start.call(this);
      return;
    }
    document.title = "Just a moment...";
    document.body.append(element("div", { role: "main" }, element("h1", {}, "Just a moment..."), element("p", {}, "Ray ID: 8f2b")));
    setTimeout(() => {
      sessionStorage.setItem("passed", "1");
      location.reload();
    }, 3000);
  };
};
