// The composer is emptied by the press, and nothing else happens.
export default (engine) => {
  engine.submit = async () => {};
};
