// What an author of a connector in JavaScript or TypeScript uses. It is one file without dependencies; `weir new --lang js`
// writes it beside the connector. What the values mean is said in docs/wit.md; names are those of the contract, in camelCase.
//
// A connector is a pure function: no clock (`task.now` is the time), no network, no state between calls.

import { write } from "weir:connector/log@0.1.0";

/** To be heard in the host's log. */
export const log = {
  debug: (message) => write("debug", String(message)),
  info: (message) => write("info", String(message)),
  warn: (message) => write("warn", String(message)),
};

/** Makes the contract's functions of an author's. Config, steps and cursors arrive as values, and leave as JSON. */
export function connector(author) {
  const task = (given) => ({
    ...given,
    config: JSON.parse(given.config),
    cursor: position("cursor", given.cursor),
  });
  const config = (text) => (text == null ? undefined : JSON.parse(text));
  return {
    describe: (text) => told(() => author.describe(config(text))),
    partitions: (stream, text) =>
      told(() => (author.partitions ? author.partitions(stream, config(text)) : [])),
    buildRequest: (given, step) => told(() => author.buildRequest(task(given), position("step", step))),
    readResponse: (given, step, response) =>
      told(() => {
        const read = author.readResponse(task(given), position("step", step), answer(response));
        return {
          ...read,
          next: read.next.map((place) => JSON.stringify(place)),
          cursor: read.cursor == null ? undefined : JSON.stringify(read.cursor),
        };
      }),
  };
}

/** What went wrong, by what will fix it; throw it. `more`: code, scope, wait (ms), pageSize, limits. */
export function fault(kind, message, more = {}) {
  const scopes = { "rate-limited": "credential", "auth-expired": "connection", "auth-revoked": "connection" };
  return {
    class: kind,
    scope: scopes[kind] ?? "unit",
    code: "",
    message: String(message),
    wait: undefined,
    pageSize: undefined,
    limits: [],
    extra: [],
    ...more,
  };
}

/** What a status means by default. A connector maps what it knows better, and leaves the rest to this. */
export function fromStatus(response) {
  const { status } = response;
  const spent = ["x-ratelimit-remaining", "ratelimit-remaining"].some((name) => Number(response.header(name) ?? 1) <= 0);
  const limited = status === 403 && (spent || response.header("retry-after") || /rate.?limit|too many|throttl/i.test(response.body.slice(0, 2000)));
  const kind =
    status === 202 ? "pending"
    : status === 401 ? "auth-expired"
    : status === 429 || status === 420 || limited ? "rate-limited"
    : status === 410 ? "position-lost"
    : [304, 408, 409, 423, 425].includes(status) ? "temporary"
    : [501, 505].includes(status) ? "permanent"
    : status >= 500 && status < 600 ? "temporary"
    : status >= 300 && status < 500 ? "permanent"
    : "unknown";
  const said = response.body.slice(0, 600).replace(/\s+/g, " ").slice(0, 160);
  return fault(kind, `HTTP ${status}${said ? ": " + said : ""}`, { code: String(status) });
}

/** What this connector is. */
export function descriptor(name, title, version, more = {}) {
  return {
    name, title, version, docs: undefined, configSchema: '{"type":"object"}', origins: [], streams: [], extra: [],
    ...more,
    pacing: {
      minInterval: undefined, maxInterval: undefined, unpublishedLimits: false, concurrency: undefined,
      backoffCap: undefined, notModifiedIsFree: false, documentedLimits: [],
      ...more.pacing,
    },
  };
}

/** A place that it may talk to; `auth`: names of schemes, best first ("none", "bearer", "basic"), or variants. */
export function origin(id, url, auth = []) {
  return { id, url, auth: auth.map((scheme) => (typeof scheme === "string" ? { tag: scheme } : scheme)) };
}

/** A stream with the commonest traits. */
export function stream(name, more = {}) {
  return {
    name, title: name, key: [], schema: undefined, volatile: [], cursor: "timestamp", order: "unordered",
    pageSize: 100, resultCap: undefined, windowCap: undefined, retention: undefined, granularity: 1,
    settle: undefined, parent: undefined, backfill: more.cursor !== "snapshot", extra: [],
    ...more,
  };
}

/** A limit of the default bucket, shared by all on the credential. */
export function limit(more = {}) {
  return {
    bucket: undefined, scope: "credential", quotaUnit: "requests", limit: undefined, remaining: undefined,
    usedPercent: undefined, per: undefined, resetsIn: undefined, restores: undefined, wait: undefined,
    ...more,
  };
}

/** GET a path below an origin. Values of the query that are null or undefined are left out. */
export function get(origin, path, query = {}, more = {}) {
  return request("get", origin, { tag: "path", val: path }, query, more);
}

/** GET a whole URL that the vendor gave. */
export function follow(origin, link, more = {}) {
  return request("get", origin, { tag: "link", val: link }, {}, more);
}

/** POST a value as JSON. */
export function postJson(origin, path, value, more = {}) {
  return request("post", origin, { tag: "path", val: path }, {}, {
    body: { tag: "text", val: JSON.stringify(value) },
    headers: [{ name: "content-type", value: "application/json" }],
    ...more,
  });
}

function request(method, origin, target, query, more) {
  const pairs = Array.isArray(query) ? query : Object.entries(query);
  return {
    method, origin, target, headers: [], body: undefined, conditional: false, bucket: undefined, cost: 1,
    idempotencyHeader: undefined,
    query: pairs.filter(([, value]) => value != null).map(([name, value]) => [name, String(value)]),
    ...more,
  };
}

/** What an answer held. */
export function page(records, more = {}) {
  return {
    records, next: [], cursor: undefined, total: undefined, truncated: false, pollAfter: undefined, limits: [],
    extra: [],
    ...more,
  };
}

/** One of an answer's rows as a record; `id` is a pointer to the field, or the id itself where it is put together. */
export function record(row, id, more = {}) {
  const found = id.startsWith("/") ? row.id(id) : id;
  return { id: found, updatedAt: undefined, deleted: false, data: { tag: "text", val: row.json }, ...more };
}

/** A value of an answer, with its exact text: numbers keep all their digits. */
export class Row {
  constructor(json) {
    this.json = json;
  }

  /** Parsed. Numbers beyond 2^53 lose digits: take `id` or `at(...).json` for those. */
  get value() {
    return JSON.parse(this.json);
  }

  /** What lies below at a JSON pointer; undefined where there is nothing. */
  at(pointer) {
    let text = this.json;
    for (const token of tokens(pointer)) {
      const found = children(text).findLast((child, place) => (child.key ?? String(place)) === token);
      if (!found) return undefined;
      text = found.json;
    }
    return new Row(text);
  }

  /** The elements, if it is an array. */
  rows() {
    return this.json.startsWith("[") ? children(this.json).map((child) => new Row(child.json)) : undefined;
  }

  /** A text, or a number's digits, at a pointer; "" where there is none: the host sets such a record aside. */
  id(pointer) {
    const found = this.at(pointer)?.json ?? "";
    return found.startsWith('"') ? JSON.parse(found) : /^-?\d/.test(found) ? found : "";
  }

  /** A moment at a pointer, in ms: RFC 3339, or a number of seconds. */
  time(pointer) {
    const found = this.at(pointer)?.value;
    const at = typeof found === "string" ? Date.parse(found) : typeof found === "number" ? found * 1000 : NaN;
    return Number.isFinite(at) ? Math.floor(at) : undefined;
  }
}

/** A moment as RFC 3339, for a query: `2031-03-04T10:00:00Z`, with a fraction only where there is one. */
export function rfc3339(ms) {
  return ms == null ? undefined : new Date(ms).toISOString().replace(".000Z", "Z");
}

/** Whole seconds since the epoch. */
export function seconds(ms) {
  return ms == null ? undefined : Math.floor(ms / 1000);
}

function answer(response) {
  const isText = response.body.tag === "text";
  const body = isText ? response.body.val.replace(/^\ufeff/, "") : "";
  return {
    status: response.status,
    url: response.url,
    headers: response.headers,
    body,
    header: (name) => response.headers.find((header) => header.name.toLowerCase() === name.toLowerCase())?.value.trim(),
    /** The body of a good answer, as JSON; anything else is thrown as the fault that it is. */
    json() {
      if (this.status < 200 || this.status > 299) throw fromStatus(this);
      return whole(body, isText);
    },
    /** The elements of the array at a pointer. */
    rows(pointer) {
      const rows = this.json().at(pointer)?.rows();
      if (!rows) throw fault("incomplete", `there is no array at ${pointer || "the top"}`, { code: "shape" });
      return rows;
    },
  };
}

function whole(text, isText) {
  if (!isText) throw fault("incomplete", "the answer is not UTF-8 text", { code: "encoding" });
  let deep = false;
  scan(text, (_, __, depth) => (deep = depth > DEPTH));
  if (deep) throw fault("incomplete", `the answer is nested deeper than ${DEPTH} levels`, { code: "json" });
  try {
    JSON.parse(text);
  } catch (error) {
    const what = text.trimStart().startsWith("<") ? "the answer is a web page, not JSON" : `the answer is not JSON: ${error.message}`;
    throw fault("incomplete", what, { code: "json" });
  }
  return new Row(text.trim());
}

function position(what, text) {
  if (text == null) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw fault("position-lost", `the stored ${what} cannot be read: ${error.message}`, { code: "codec" });
  }
}

// A mistake in the connector is a fault that names it: a person looks at it, and the other units go on.
function told(call) {
  try {
    return call();
  } catch (error) {
    if (error && typeof error.class === "string") throw error;
    throw fault("unknown", `the connector failed: ${error?.message ?? error} ${error?.stack ?? ""}`.slice(0, 900), { code: "exception" });
  }
}

function tokens(pointer) {
  if (pointer === "") return [];
  return pointer.slice(1).split("/").map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

// Deeper than any vendor's answer; the engine's own reader would run out of stack.
const DEPTH = 200;
const STRUCTURE = /["{}[\],:]/g;

// Calls `part` for every structural character outside of texts, with its depth before it; ends where `part` says so.
function scan(text, part) {
  let depth = 0;
  STRUCTURE.lastIndex = 0;
  for (let match = STRUCTURE.exec(text); match; match = STRUCTURE.exec(text)) {
    const char = match[0];
    if (char === '"') {
      let end = text.indexOf('"', match.index + 1);
      while (end > 0 && escaped(text, end)) end = text.indexOf('"', end + 1);
      if (end < 0) return;
      STRUCTURE.lastIndex = end + 1;
      continue;
    }
    if (part(char, match.index, depth)) return;
    if (char === "{" || char === "[") depth++;
    if (char === "}" || char === "]") depth--;
  }
}

function escaped(text, at) {
  let back = at;
  while (text[back - 1] === "\\") back--;
  return (at - back) % 2 === 1;
}

// The parts of an array or an object that has been checked to be JSON.
function children(text) {
  const found = [];
  let from = 0;
  let key;
  const part = (end) => {
    const json = text.slice(from, end).trim();
    if (json) found.push({ key, json });
    key = undefined;
    from = end + 1;
  };
  scan(text, (char, at, depth) => {
    if (depth === 0) from = at + 1;
    else if (depth > 1) return false;
    else if (char === ",") part(at);
    else if (char === ":") {
      key = JSON.parse(text.slice(from, at));
      from = at + 1;
    } else if (char === "}" || char === "]") {
      part(at);
      return true;
    }
    return false;
  });
  return found;
}
