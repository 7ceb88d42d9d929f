// The composer is emptied by the press, and the prompt shows only after two seconds.
export default (engine) => {
  const { submit } = engine;
  engine.submit = async function (prompt) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    await submit.call(this, prompt);
  };
};
