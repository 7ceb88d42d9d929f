// The address of a new conversation comes seconds after its first prompt.
export default (engine) => {
  let due = false;
  engine.moveTo = (address) => {
    if (due) return;
    due = true;
    setTimeout(() => history.pushState(null, "", address), 3000);
  };
};
