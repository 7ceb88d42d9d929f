// The turns of a conversation that is loaded appear one after another.
export default (engine) => {
  engine.mountTurns = async function (turns) {
    void (async () => {
      for (const turn of turns) {
        await new Promise((resolve) => setTimeout(resolve, 200));
        void this.follow(turn);
      }
    })();
  };
};
