// Turns have nothing but their text and their order to be told by.
export default (engine) => {
  for (const name of ["buildUser", "buildAnswer"]) {
    const build = engine[name];
    engine[name] = function (turn) {
      const node = build.call(this, turn);
      node.removeAttribute("data-turn-id");
      return node;
    };
  }
};
