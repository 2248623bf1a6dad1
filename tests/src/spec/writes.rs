//! Who writes what, and when it becomes visible.

use serde::{Deserialize, Serialize};

/// The stream of writes that a collection sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WritesSpec {
    /// Records that are there at the start.
    pub initial: u64,
    /// Their stamps lie within this many ms before the start.
    pub initial_span_ms: i64,
    /// Writes a second, on average, at random moments.
    pub per_second: f64,
    /// Where there are any, they say how much is written when, and outside of them nothing is.
    pub phases: Vec<Phase>,
    /// The share of writes that edit a record.
    pub edits: f64,
    /// The share of writes that delete a record.
    pub deletes: f64,
    /// The share of edits that pick any record, however old; the others pick one of the last twenty.
    pub late_edits: f64,
    /// The share of inserts that take the id of a deleted record, where there is one.
    pub reissues: f64,
    /// The share of writes that happen at the same instant as the one before, with the same stamp.
    pub ties: f64,
    /// From the write to its being visible to the API.
    pub lag: Lag,
    /// Writers' clocks run ahead by one of these, at random; empty: all are right.
    pub writer_skew_ms: Vec<i64>,
    /// Writes that happen at given moments, besides the others.
    pub script: Vec<Write>,
}

impl Default for WritesSpec {
    fn default() -> Self {
        WritesSpec {
            initial: 0,
            initial_span_ms: 3_600_000,
            per_second: 0.0,
            phases: Vec::new(),
            edits: 0.0,
            deletes: 0.0,
            late_edits: 0.0,
            reissues: 0.0,
            ties: 0.0,
            lag: Lag::default(),
            writer_skew_ms: Vec::new(),
            script: Vec::new(),
        }
    }
}

impl WritesSpec {
    /// A mixture of everything that loses records: ties, lag, skew, late edits, deletions.
    pub fn lively(initial: u64, per_second: f64) -> Self {
        WritesSpec {
            initial,
            per_second,
            edits: 0.35,
            deletes: 0.05,
            late_edits: 0.5,
            reissues: 0.05,
            ties: 0.3,
            lag: Lag {
                min_ms: 0,
                max_ms: 2_000,
                slow: 0.02,
                slow_ms: 8_000,
            },
            writer_skew_ms: vec![0, 0, -700, 900],
            ..WritesSpec::default()
        }
    }
}

/// A span in which this much is written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Its beginning, in ms since the start.
    pub from_ms: i64,
    /// Its end.
    pub until_ms: i64,
    /// Writes a second, on average.
    pub per_second: f64,
}

/// From a write to its being visible: uniform between `min_ms` and `max_ms`, but for a share `slow` of the writes
/// uniform between `max_ms` and `slow_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lag {
    /// At least.
    pub min_ms: i64,
    /// At most, usually.
    pub max_ms: i64,
    /// The share of slow ones.
    pub slow: f64,
    /// At most, for the slow ones.
    pub slow_ms: i64,
}

impl Lag {
    /// Always the same.
    pub fn fixed(ms: i64) -> Self {
        Lag {
            min_ms: ms,
            max_ms: ms,
            slow: 0.0,
            slow_ms: 0,
        }
    }
}

/// What a write does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Inserts the record, or edits it where it exists.
    #[default]
    Put,
    /// Deletes it.
    Delete,
}

/// One write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// When, in ms since the start.
    pub at_ms: i64,
    /// Which record: 0 is the collection's first id, 1 the next.
    pub record: u64,
    /// What happens to it.
    #[serde(default)]
    pub op: Op,
    /// Its stamp in ms since the start; none: the moment of the write.
    #[serde(default)]
    pub stamp_ms: Option<i64>,
    /// How much later it becomes visible.
    #[serde(default)]
    pub lag_ms: i64,
}
