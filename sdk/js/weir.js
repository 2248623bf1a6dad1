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
  const told = ["/message", "/error/message", "/detail", "/title", "/error_description", "/error"];
  const words = told.map((pointer) => response.field(pointer)).find((text) => text) ?? response.body.slice(0, 600);
  const said = words.replace(/\s+/g, " ").trim().slice(0, 160);
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
  #json;
  #value;
  #text;

  /** `text` finds the exact text when it is asked for, where it is not at hand. */
  constructor(json, value, text) {
    this.#json = json;
    this.#value = value;
    this.#text = text;
  }

  /** The text, as the vendor wrote it. */
  get json() {
    return (this.#json ??= this.#text());
  }

  /** Parsed. Numbers beyond 2^53 lose digits: take `id` or `at(...).json` for those. */
  get value() {
    return (this.#value ??= JSON.parse(this.json));
  }

  /** What lies below at a JSON pointer; undefined where there is nothing. */
  at(pointer) {
    let row = this;
    for (const token of tokens(pointer)) {
      const around = row.value;
      const within = around !== null && typeof around === "object" && Object.hasOwn(around, token);
      if (!within || (Array.isArray(around) && token === "length")) return undefined;
      const outer = row;
      row = new Row(undefined, around[token], () => child(outer.json, token));
    }
    return row;
  }

  /** The elements, if it is an array. */
  rows() {
    const { value } = this;
    return Array.isArray(value) ? children(this.json).map(({ json }, place) => new Row(json, value[place])) : undefined;
  }

  /** A text, or a number's digits, at a pointer; "" where there is none: the host sets such a record aside. */
  id(pointer) {
    const found = this.at(pointer);
    const value = found?.value;
    if (typeof value === "string") return value;
    if (typeof value !== "number") return "";
    return Number.isSafeInteger(value) ? String(value) : found.json;
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
  let read;
  return {
    status: response.status,
    url: response.url,
    headers: response.headers,
    body,
    header: (name) => response.headers.find((header) => header.name.toLowerCase() === name.toLowerCase())?.value.trim(),
    /** A text or a number in an answer of any status, as text; undefined where there is none: for the vendor's codes. */
    field(pointer) {
      try {
        return (read ??= whole(body, isText)).id(pointer) || undefined;
      } catch {
        return undefined;
      }
    },
    /** The body of a good answer, as JSON; anything else is thrown as the fault that it is. */
    json() {
      if (this.status < 200 || this.status > 299) throw fromStatus(this);
      return (read ??= whole(body, isText));
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
  const json = text.trim();
  // The engine's own reader would run out of stack.
  if (/^[[{]/.test(json)) skip(json, 0);
  try {
    return new Row(json, JSON.parse(json));
  } catch (error) {
    const what = json.startsWith("<") ? "the answer is a web page, not JSON" : `the answer is not JSON: ${error.message}`;
    throw fault("incomplete", what, { code: "json" });
  }
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

// Deeper than any vendor's answer.
const DEPTH = 200;
const BRACKET = /["{}[\]]/g;
const PART = /["{}[\],:]/g;

// The parts of an array or an object that has been checked to be JSON.
function children(text) {
  const found = [];
  let from = 1;
  let key;
  PART.lastIndex = 1;
  while (PART.test(text)) {
    const at = PART.lastIndex - 1;
    const char = text[at];
    if (char === '"') {
      PART.lastIndex = textEnd(text, at);
    } else if (char === "{" || char === "[") {
      PART.lastIndex = skip(text, at);
    } else if (char === ":") {
      key = JSON.parse(text.slice(from, at));
      from = at + 1;
    } else {
      const json = text.slice(from, at).trim();
      if (json) found.push({ key, json });
      if (char !== ",") break;
      from = at + 1;
    }
  }
  return found;
}

// Of two equal keys the last one counts.
function child(text, token) {
  return children(text).findLast(({ key }, place) => (key ?? String(place)) === token)?.json;
}

// What follows the array or object that begins here.
function skip(text, start) {
  let depth = 0;
  BRACKET.lastIndex = start;
  while (BRACKET.test(text)) {
    const at = BRACKET.lastIndex - 1;
    const char = text[at];
    if (char === '"') BRACKET.lastIndex = textEnd(text, at);
    else if (char === "}" || char === "]") {
      if (--depth === 0) return at + 1;
    } else if (++depth > DEPTH) {
      throw fault("incomplete", `the answer is nested deeper than ${DEPTH} levels`, { code: "json" });
    }
  }
  return text.length;
}

// What follows the text that begins here.
function textEnd(text, start) {
  let end = text.indexOf('"', start + 1);
  while (end > 0) {
    let back = end;
    while (text[back - 1] === "\\") back--;
    if ((end - back) % 2 === 0) return end + 1;
    end = text.indexOf('"', end + 1);
  }
  return text.length;
}
