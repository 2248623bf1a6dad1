//! Quotas, the headers that tell of them, and how long answers take.

use serde::{Deserialize, Serialize};

use super::faults::WaitForm;

/// One quota.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSpec {
    /// Its name, in dialects that have names.
    pub name: String,
    /// Calls per window.
    pub limit: u64,
    /// The window in ms.
    pub window_ms: i64,
    /// How calls are counted.
    pub counting: Counting,
    /// Counted per bearer token; otherwise everyone shares it.
    pub per_token: bool,
    /// The headers that tell of it, on every answer.
    pub dialects: Vec<Dialect>,
    /// The status of a refusal.
    pub status: u16,
    /// How a refusal says when to come back.
    pub wait: WaitForm,
    /// The refusal's body; empty: a short JSON error.
    pub body: String,
    /// After a refusal the client must be silent for this long, and every call in between starts the time anew.
    pub penalty_ms: i64,
}

impl Default for LimitSpec {
    fn default() -> Self {
        LimitSpec {
            name: "core".into(),
            limit: 60,
            window_ms: 60_000,
            counting: Counting::Fixed,
            per_token: true,
            dialects: vec![Dialect::XEpochSeconds],
            status: 429,
            wait: WaitForm::Seconds,
            body: String::new(),
            penalty_ms: 0,
        }
    }
}

/// How calls are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// In windows that begin at multiples of their length.
    #[default]
    Fixed,
    /// Over the window that ends now.
    Rolling,
    /// A bucket of `limit` that refills evenly, once per window.
    Leaky,
}

/// How a vendor tells of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// `RateLimit-Limit: 100, 100;w=60`, `-Remaining`, `-Reset` in seconds: the first IETF generation.
    IetfList,
    /// `RateLimit-Limit: 100`, `-Remaining`, `-Reset` in seconds, and `RateLimit-Policy: 100;w=60`.
    IetfFields,
    /// `RateLimit: limit=100, remaining=50, reset=5` and `RateLimit-Policy: 100;w=60`.
    IetfCombined,
    /// The same with semicolons, as some send it.
    IetfSemicolons,
    /// Structured fields of RFC 9651: `RateLimit: "core";r=50;t=30`, `RateLimit-Policy: "core";q=100;w=60`.
    IetfStructured,
    /// `RateLimit-Reset` with an epoch: the standard's name with another unit.
    IetfEpoch,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Used`, `-Reset` in epoch seconds.
    XEpochSeconds,
    /// The same, with an epoch that has a fraction.
    XEpochFloat,
    /// The same in epoch milliseconds.
    XEpochMs,
    /// The same with seconds until the reset.
    XSeconds,
    /// The same with `remaining` and `reset` as decimals.
    XDecimal,
    /// The same with `X-RateLimit-Reset` in RFC 3339.
    XRfc3339,
    /// The same with a duration: `1m30s`, `120ms`.
    XDuration,
    /// `X-Rate-Limit-Limit`, `-Remaining`, `-Reset` in epoch seconds.
    XDashEpochSeconds,
    /// `X-Rate-Limit-Requests-Quota`, `-Requests-Left`, `-Time-Reset-Ms`, `-Time-Window-Ms`.
    MsUntil,
    /// `X-RateLimit-Max`, `-Remaining`, `-Interval-Milliseconds`: no reset.
    Interval,
    /// `X-Shop-Api-Call-Limit: 32/40`, used first.
    UsedOfLimit,
    /// `Limit-Info: api-usage=292/15000`.
    UsagePair,
    /// `Acme-RateLimit-core: total=10; remaining=9; resets=60`.
    NamedBucket,
    /// `X-App-Usage: {"call_count":28,"total_time":12,"total_cputime":5}`, in percent.
    PercentJson,
    /// `X-Business-Usage: {"42":[{"type":"core","call_count":28,..,"estimated_time_to_regain_access":0}]}`, in
    /// percent and minutes.
    BusinessJson,
    /// Only what is left: `X-Requests-Left: 12`.
    OnlyLeft,
}

/// A time at which every quota is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaCut {
    /// Its beginning, in ms since the start.
    pub from_ms: i64,
    /// Its end.
    pub until_ms: i64,
    /// Limits are multiplied by it and rounded down, though not below 1.
    pub factor: f64,
}

/// How long answers take, and when the vendor gives in: the limits that nobody publishes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatencySpec {
    /// An answer takes this long at least.
    pub base_ms: u64,
    /// And up to this much longer, at random.
    pub jitter_ms: u64,
    /// Calls a second that it takes with ease, measured over the last ten seconds.
    pub easy_per_second: f64,
    /// Each call a second beyond that makes every answer this much slower.
    pub slower_by_ms: u64,
    /// From so many calls a second on it answers 503 without a word on when to come back; 0: never.
    pub give_in_per_second: f64,
}

impl Default for LatencySpec {
    fn default() -> Self {
        LatencySpec {
            base_ms: 20,
            jitter_ms: 10,
            easy_per_second: 10.0,
            slower_by_ms: 0,
            give_in_per_second: 0.0,
        }
    }
}
