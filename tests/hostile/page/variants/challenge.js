// Says to `barred` what stands in the way.
export default () => {};
