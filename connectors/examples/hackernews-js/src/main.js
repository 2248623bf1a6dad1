// Hacker News: stories and comments, by Algolia's search.
//
// The search lists newest first and gives at most 1,000 hits per query, however one pages. So the walk splits its window by
// time: a full answer is followed by the same query up to the oldest second that was seen. That second is asked for again,
// since hits of it may have been cut off; what comes twice is the host's to drop.

import { connector as make, descriptor, fault, get, limit, origin, page, record, seconds, stream } from "../.weir/js/weir.js";
import schema from "./config.schema.json";

const API = "https://hn.algolia.com/api/v1";
const CAP = 1000;
const KINDS = { stories: "story", comments: "comment" };

export const connector = make({
  describe(config) {
    from(config);
    return descriptor("hackernews-js", "Hacker News", "0.1.0", {
      docs: "https://hn.algolia.com/api",
      configSchema: JSON.stringify(schema),
      origins: [origin("api", config?.url ?? API, ["none"])],
      pacing: { documentedLimits: [limit({ limit: 10_000, per: 3_600_000 })] },
      streams: [hits("stories", "Stories"), hits("comments", "Comments")],
    });
  },

  buildRequest(task, step) {
    const kind = KINDS[task.stream];
    if (!kind) throw fault("permanent", `there is no stream ${task.stream}`, { code: "stream" });
    const below = step ?? top(task);
    const since = Math.max(task.window.since ?? -Infinity, from(task.config) ?? -Infinity);
    const lower = Number.isFinite(since) ? `created_at_i>=${seconds(since)},` : "";
    return get("api", "/search_by_date", {
      query: task.config.query,
      tags: [kind, ...(task.config.tags ?? [])].join(","),
      numericFilters: `${lower}created_at_i<=${below.second}`,
      hitsPerPage: size(task),
      page: below.page,
    });
  },

  readResponse(task, step, response) {
    const total = Number(response.json().at("/nbHits")?.value ?? 0);
    const records = response
      .rows("/hits")
      .map((row) => record(row, "/objectID", { updatedAt: row.time("/created_at_i") }));
    const stamps = records.map((found) => found.updatedAt).filter((at) => at !== undefined);
    if (records.length > 0 && stamps.length === 0) {
      throw fault("incomplete", "no hit has a created_at_i: the walk goes by it", { code: "shape" });
    }
    return page(records, after(step ?? top(task), stamps, records.length, total, size(task)));
  },
});

// What comes after an answer: nothing, the same query below its oldest second, or the next page of a second that is full.
function after(below, stamps, arrived, total, asked) {
  const full = arrived >= asked || total > below.page * asked + arrived;
  if (stamps.length === 0 || !full) return {};
  const oldest = seconds(stamps.reduce((least, at) => Math.min(least, at)));
  if (oldest < below.second) return { next: [{ second: oldest, page: 0 }] };
  if ((below.page + 1) * asked < CAP) return { next: [{ second: below.second, page: below.page + 1 }] };
  // One second holds more than a query can give. Go on below it, and say so.
  return { next: [{ second: below.second - 1, page: 0 }], truncated: true };
}

const top = (task) => ({ second: seconds(task.window.until), page: 0 });
const size = (task) => Math.min(Math.max(task.pageSize, 1), CAP);

function from(config) {
  if (config?.from === undefined) return undefined;
  const at = Date.parse(config.from);
  if (Number.isNaN(at)) {
    throw fault("permanent", `from = ${config.from} is not a moment: write 2031-03-04T10:00:00Z`, { code: "config" });
  }
  return at;
}

function hits(name, title) {
  return stream(name, {
    title,
    key: ["/objectID"],
    order: "descending",
    pageSize: CAP,
    resultCap: CAP,
    granularity: 1000,
    // Authors may edit for two hours, and no stamp tells of it.
    settle: 2 * 3_600_000,
    volatile: ["/points", "/num_comments", "/children", "/updated_at", "/_highlightResult"],
  });
}
