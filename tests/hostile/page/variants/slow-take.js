// The page sends at the first press, and leaves the text in its composer until the provider has answered.
export default (engine) => {
  engine.press = async function () {
    const prompt = this.read();
    await new Promise((resolve) => setTimeout(resolve, 2000));
    await this.submit(prompt);
    this.write("");
  };
};
