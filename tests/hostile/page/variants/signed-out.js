// Whoever is not signed in is sent to another host, and sees nothing here; `?signed-in` signs in.
export default () => {
  if (location.search === "?signed-in") localStorage.setItem("signed-in", "1");
  if (location.hostname === "127.0.0.1" && !localStorage.getItem("signed-in")) {
    location.replace(`http://localhost:${location.port}/v/no-composer/`);
    throw new Error("signed out");
  }
};
