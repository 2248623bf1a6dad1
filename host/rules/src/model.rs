//! The vocabulary that the rules share: faults, limits, windows, and what a stream is like.
//!
//! Times are milliseconds since the Unix epoch (`i64`, UTC); durations are milliseconds (`u64`).

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since the Unix epoch, UTC.
pub type Timestamp = i64;
/// A length of time in milliseconds.
pub type Duration = u64;

/// What will fix a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It passes by itself: retry with backoff.
    Temporary,
    /// The vendor wants a pause.
    RateLimited,
    /// A fresh token may fix it.
    AuthExpired,
    /// Only a person can fix it.
    AuthRevoked,
    /// This request will never work.
    Permanent,
    /// The cursor or page token is no longer known to the vendor: walk again.
    PositionLost,
    /// The vendor is still preparing the answer: ask the same again.
    Pending,
    /// A success with a truncated, inconsistent or schema-breaking body: nothing of it counts.
    Incomplete,
    /// Nobody has mapped this code.
    Unknown,
}

impl Class {
    /// The word used in configuration, logs and the command line.
    pub fn name(self) -> &'static str {
        match self {
            Class::Temporary => "temporary",
            Class::RateLimited => "rate-limited",
            Class::AuthExpired => "auth-expired",
            Class::AuthRevoked => "auth-revoked",
            Class::Permanent => "permanent",
            Class::PositionLost => "position-lost",
            Class::Pending => "pending",
            Class::Incomplete => "incomplete",
            Class::Unknown => "unknown",
        }
    }
}

/// Whom a fault or a limit concerns; everyone else goes on.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// This unit alone.
    #[default]
    Unit,
    /// All units of the connection.
    Connection,
    /// Everyone who uses the same credential.
    Credential,
    /// Everyone on the same app or connector.
    App,
}

/// A classified failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// What will fix it.
    pub class: Class,
    /// Whom it concerns.
    pub scope: Scope,
    /// The vendor's own code as text: `429`, `190/460`, `RATE_LIMITED`.
    pub code: String,
    /// What happened, for a person. Foreign text: already shortened and without control characters.
    pub message: String,
    /// The vendor's own word on when to come back, in ms from the answer.
    pub wait: Option<Duration>,
    /// Ask again with pages of this size.
    pub page_size: Option<u32>,
    /// Limits that came with the answer.
    pub limits: Vec<Limit>,
}

impl Fault {
    /// Code and message for a person. A code that the message names itself is not said twice.
    pub fn text(&self) -> String {
        if self.message.contains(&self.code) {
            self.message.clone()
        } else {
            format!("{} {}", self.code, self.message)
        }
    }
}

/// One of the vendor's buckets, as an answer told of it. Every part may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The vendor's name for the bucket; none for the only or default one.
    pub bucket: Option<String>,
    /// Who shares it.
    pub scope: Scope,
    /// `requests`, `points`, `bytes`, `concurrent-requests`.
    pub quota_unit: String,
    /// How much the vendor allows per window.
    pub limit: Option<u64>,
    /// What is left of it.
    pub remaining: Option<u64>,
    /// The share used, in percent; may pass 100.
    pub used_percent: Option<f64>,
    /// The window's length in ms.
    pub per: Option<Duration>,
    /// ms from the answer until the window starts anew.
    pub resets_in: Option<Duration>,
    /// Leaky bucket: what comes back each second.
    pub restores: Option<f64>,
    /// Don't call before this many ms have passed.
    pub wait: Option<Duration>,
}

/// Who asked for a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The unit was due.
    Schedule,
    /// A person asked and waits.
    SyncNow,
    /// A gap is being filled.
    Backfill,
    /// The trailing re-read of what has settled.
    Settle,
    /// Everything again, after a lost position or on request.
    Resync,
}

/// The part of a stream that one poll asks for: `since <= updated_at < until`, by the vendor's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Window {
    /// None: from the beginning.
    pub since: Option<Timestamp>,
    /// The moment at which the poll froze its window.
    pub until: Timestamp,
}

/// How a unit knows what is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CursorKind {
    /// The host keeps a watermark and an overlap.
    Timestamp,
    /// The vendor's own token, stored and returned as it came.
    Opaque,
    /// No filter: every poll reads the whole collection.
    Snapshot,
}

/// The order in which a vendor lists a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Oldest change first.
    Ascending,
    /// Newest change first.
    Descending,
    /// No promise.
    Unordered,
}

/// What a stream is like, as its connector describes it and the user's configuration adjusts it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// `issues`
    pub name: String,
    /// How a unit of it knows what is new.
    pub cursor: CursorKind,
    /// How the vendor lists it.
    pub order: Order,
    /// Records that a full page holds.
    pub page_size: u32,
    /// The most records that the vendor returns for one query, however one pages.
    pub result_cap: Option<u32>,
    /// The widest window that the vendor answers truthfully, in ms.
    pub window_cap: Option<Duration>,
    /// How long the vendor keeps the data, in ms.
    pub retention: Option<Duration>,
    /// Resolution of the vendor's timestamps in ms; at least 1.
    pub granularity: Duration,
    /// How late a record may become visible, in ms.
    pub settle: Option<Duration>,
    /// JSON pointers whose change alone is no change.
    pub volatile: Vec<String>,
    /// JSON pointers that every record must have: the schema gate.
    pub required: Vec<String>,
    /// A window in the past can be asked for.
    pub backfill: bool,
}
