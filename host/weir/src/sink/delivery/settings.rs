//! What the loop is told, and what it tells of itself.

use serde::{Deserialize, Serialize};
use weir_rules::backoff::Backoff;
use weir_rules::model::Timestamp;

use crate::sink::SinkError;

/// What the loop is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Deliver whatever comes.
    Run,
    /// Deliver what is there and end.
    Drain,
    /// End after the batch in hand.
    Stop,
}

/// How the loop has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// It was told to drain, and nothing waits any more.
    Drained,
    /// It was told to drain, and the sink failed too often, or needs a person.
    GaveUp(SinkError),
    /// Whoever took the records has gone for good.
    Closed(SinkError),
    /// The store has closed.
    StoreClosed,
}

/// Settings of the loop.
#[derive(Clone, Debug)]
pub struct DeliverySettings {
    /// Bytes that are read from the outbox at once.
    pub batch_bytes: usize,
    /// Between tries of a sink that fails as a whole.
    pub backoff: Backoff,
    /// Between tries of an entry that the sink refuses; its ceilings are the waits.
    pub refused: Backoff,
    /// Tries of an entry that the sink refuses, the first one included.
    pub refused_tries: u32,
    /// Dead letters that a sink may have. With more, what it refuses is tried again and again until a person has
    /// decided about some: nothing is thrown away, and the store does not grow without end.
    pub dead_letters: usize,
    /// While draining: tries of a sink that fails as a whole.
    pub drain_tries: u32,
    /// For the jitter and the deliveries' keys.
    pub seed: u64,
}

impl Default for DeliverySettings {
    fn default() -> Self {
        DeliverySettings {
            batch_bytes: 2 << 20,
            backoff: Backoff::default().capped(60_000),
            refused: Backoff::default().capped(60_000),
            refused_tries: 6,
            dead_letters: 10_000,
            drain_tries: 4,
            seed: rand::random(),
        }
    }
}

/// How a sink is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryStatus {
    /// Entries delivered since the start.
    pub delivered: u64,
    /// Entries that became dead letters since the start.
    pub dead: u64,
    /// Entries that the sink has refused and that are tried again.
    pub held: u64,
    /// Tries since the start at which the sink took nothing.
    #[serde(default)]
    pub failures: u64,
    /// Refusals of single entries since the start.
    #[serde(default)]
    pub refusals: u64,
    /// It has as many dead letters as it may have: what it refuses now is tried again until a person has decided.
    #[serde(default)]
    pub letters_full: bool,
    /// Set while the sink takes nothing.
    pub failing: Option<Failing>,
    /// The last time since the start that it took nothing, once that is over.
    #[serde(default)]
    pub outage: Option<Outage>,
}

/// A time in which a sink took nothing. What it did not take waited in the outbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The first failure.
    pub since: Timestamp,
    /// When it took something again.
    pub until: Timestamp,
    /// Failures in a row.
    pub tries: u32,
    /// What failed last.
    pub error: String,
}

/// Since when and why a sink takes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// The first failure in a row.
    pub since: Timestamp,
    /// Failures in a row.
    pub tries: u32,
    /// What failed.
    pub error: String,
    /// The next try; none: not until a person says so, or the host starts again.
    pub next: Option<Timestamp>,
}
