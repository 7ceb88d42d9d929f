// Called on the value of a script: `{json}`, or what has no exact JSON form as `{kind, path}`, or `{size}` above `limit`
// characters. Runs in the page's own world, where the value is: a page that changes what is built in changes only that.
function serialize(limit) {
  const parts = [];
  const where = [];
  const open = new Set();
  let size = 0;
  class Refusal {
    constructor(kind) {
      const step = (key) =>
        typeof key === "number" ? `[${key}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
      this.kind = kind;
      this.path = `$${where.slice(0, 1000).map(step).join("")}`;
    }
  }
  class Size {}
  const put = (text) => {
    size += text.length;
    if (size > limit) throw new Size();
    parts.push(text);
  };
  const text = (value) => {
    if (size + value.length > limit) {
      size += value.length;
      throw new Size();
    }
    put(JSON.stringify(value));
  };
  const get = (holder, key) => {
    try {
      return holder[key];
    } catch {
      throw new Refusal("accessor");
    }
  };
  const compound = (value) => {
    if (value instanceof Node) throw new Refusal("node");
    const kind = Object.prototype.toString.call(value).slice(8, -1);
    if (kind === "Date" && !Number.isNaN(value.getTime())) {
      put(JSON.stringify(value.toISOString()));
    } else if (Array.isArray(value)) {
      put("[");
      for (let index = 0; index < value.length; index++) {
        if (index) put(",");
        where.push(index);
        write(get(value, index));
        where.pop();
      }
      put("]");
    } else if (kind === "Object") {
      put("{");
      let first = true;
      for (const key of Object.keys(value)) {
        where.push(key);
        const held = get(value, key);
        if (held !== undefined) {
          if (!first) put(",");
          first = false;
          text(key);
          put(":");
          write(held);
        }
        where.pop();
      }
      put("}");
    } else {
      throw new Refusal(kind.toLowerCase());
    }
  };
  const write = (value) => {
    if (value === null || typeof value === "boolean") {
      put(String(value));
    } else if (typeof value === "string") {
      text(value);
    } else if (typeof value === "number") {
      if (!Number.isFinite(value)) throw new Refusal(String(value));
      put(Object.is(value, -0) ? "-0" : String(value));
    } else if (typeof value !== "object") {
      throw new Refusal(typeof value);
    } else {
      if (open.has(value)) throw new Refusal("cycle");
      open.add(value);
      compound(value);
      open.delete(value);
    }
  };
  try {
    write(this);
    return { json: parts.join("") };
  } catch (error) {
    if (error instanceof Size) return { size };
    if (error instanceof Refusal) return { kind: error.kind, path: error.path };
    if (error instanceof RangeError) return { kind: "depth", path: "$" };
    throw error;
  }
}
