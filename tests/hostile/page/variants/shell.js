// The page is loaded and shows nothing: the first time, and beside `no-composer` whenever it is loaded.
export default (engine) => {
  const loads = Number(sessionStorage.loads ?? 0) + 1;
  sessionStorage.loads = loads;
  if (loads === 1 || engine.variants.includes("no-composer")) engine.start = () => {};
};
