//! The rows of the store, as the rest of the host sees them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Reason, Timestamp, Window};
use weir_rules::unit::UnitState;
use weir_rules::walk::Tally;

use super::ReviewChange;

/// Names a unit for people: connection, stream, and the partition where the stream has any.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnitKey {
    /// The connection's name in `weir.toml`.
    pub connection: String,
    /// The stream's name in the connector's descriptor.
    pub stream: String,
    /// The slice of the stream.
    pub partition: Option<String>,
}

impl fmt::Display for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.connection, self.stream)?;
        match &self.partition {
            Some(partition) => write!(f, "/{partition}"),
            None => Ok(()),
        }
    }
}

/// A unit's number in the store: never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnitId(pub u64);

/// Place in the outbox; grows by one per entry, never given twice.
pub type Sequence = u64;

/// One lease of one unit. A later lease of the same unit has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A unit as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitRow {
    /// Its number.
    pub id: UnitId,
    /// Its name.
    pub key: UnitKey,
    /// What the rules remember of it.
    pub state: UnitState,
    /// When it is due by this machine's clock; none: not until somebody asks.
    pub due: Option<Timestamp>,
}

/// A record that has been read, checked and hashed, ready for dedup.
#[derive(Clone, Debug)]
pub struct PreparedRecord {
    /// The vendor's id.
    pub id: String,
    /// SHA-256 of the canonical JSON of its significant fields.
    pub hash: [u8; 32],
    /// The vendor's own stamp.
    pub updated_at: Option<Timestamp>,
    /// The vendor says that it is gone.
    pub deleted: bool,
    /// The record as the vendor sent it.
    pub data: RecordData,
}

/// JSON text of one record: a part of the page that it came in, or its own.
#[derive(Clone, Debug)]
pub enum RecordData {
    /// `page[start..end]`, checked to lie on character borders.
    Slice {
        /// The whole answer.
        page: Arc<str>,
        /// First byte.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
    /// Text of its own.
    Text(Arc<str>),
}

impl RecordData {
    /// The JSON text.
    pub fn as_str(&self) -> &str {
        match self {
            RecordData::Slice { page, start, end } => page.get(*start..*end).unwrap_or("null"),
            RecordData::Text(text) => text,
        }
    }
}

/// What dedup made of a page's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Not known before, or back after a deletion.
    pub new: u64,
    /// Known with another hash.
    pub changed: u64,
    /// Known with the same hash: nothing was written.
    pub unchanged: u64,
    /// Now deleted, and not known to be before (counted in none of the others).
    pub deleted: u64,
    /// `seen_at - updated_at` in ms of each new or changed record that had a stamp.
    pub lags: Vec<i64>,
    /// Records that had changed within this walk already: the id, and the hash in hex of the version before.
    pub doubles: Vec<(String, String)>,
    /// Records whose text is kept from now on, where it is kept at all ([`Dedup::keep`]).
    pub born: Vec<String>,
    /// Records whose text was kept, and that are deleted at the vendor now or no longer listed.
    pub gone: Vec<String>,
}

/// What dedup goes by, besides what it remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dedup {
    /// When the page's walk began, by this machine's clock.
    pub walk_began: Timestamp,
    /// The most records that may be remembered of the unit.
    pub most: Option<u64>,
    /// Keep the text of the records: other streams are polled once for each of them.
    pub keep: bool,
}

impl Default for Dedup {
    fn default() -> Self {
        Dedup {
            walk_began: Timestamp::MAX,
            most: None,
            keep: false,
        }
    }
}

/// How far records were looked through that may be forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many were forgotten.
    pub forgotten: u64,
    /// The id after which to go on; none when all have been looked at.
    pub next: Option<String>,
}

/// What becomes of the unit after a page.
#[derive(Clone, Debug, Default)]
pub struct Conclusion {
    /// Its new state.
    pub state: UnitState,
    /// When it is due next; `Some(None)` takes it off the queue, `None` leaves the due time as it is.
    pub due: Option<Option<Timestamp>>,
    /// The poll's row, when the poll has ended.
    pub poll: Option<PollRow>,
    /// Forget the unit's validators that no page of this walk has touched (their `walk` differs from this).
    pub keep_validators_of: Option<u64>,
    /// What waits for a person, as far as it has changed.
    pub review: Vec<ReviewChange>,
    /// Small named values that are of no use any more.
    pub forget_notes: Vec<String>,
}

/// One attempt to bring a unit up to date; of older ones, several that went alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PollRow {
    /// The unit's number; filled by the store when zero.
    pub unit: UnitId,
    /// The unit's name.
    pub key: UnitKey,
    /// Who asked.
    pub reason: Reason,
    /// What was asked for.
    pub window: Window,
    /// When it was meant to begin, by this machine's clock; none in rows of an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended: Option<Timestamp>,
    /// When it began, by this machine's clock.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// The word of [`Outcome`](crate::poll::Outcome).
    pub outcome: String,
    /// The fault's class where there was one.
    pub class: Option<Class>,
    /// The vendor's code.
    pub code: Option<String>,
    /// What happened, for a person; without secrets.
    pub message: Option<String>,
    /// What it saw.
    #[serde(flatten)]
    pub tally: Tally,
    /// The interval chosen next, in ms.
    pub interval: u64,
    /// Why that interval.
    pub why: String,
    /// How many polls this row stands for: old ones that went well are folded into one row.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub polls: u64,
}

fn one() -> u64 {
    1
}

fn is_one(polls: &u64) -> bool {
    *polls == 1
}

impl PollRow {
    /// Everything that the vendor showed was read.
    pub fn is_good(&self) -> bool {
        matches!(self.outcome.as_str(), "ok" | "not-modified")
    }

    /// New and changed records that every poll had missed until this second look.
    pub fn late(&self) -> u64 {
        match self.reason {
            Reason::Settle => self.tally.new + self.tally.changed,
            _ => 0,
        }
    }

    /// The fault is tried again by itself: no person is needed for that.
    pub fn is_retried(&self) -> bool {
        self.class.is_some() && matches!(self.outcome.as_str(), "waiting" | "failed")
    }
}

/// What is remembered of one record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordRow {
    /// The vendor's id.
    pub id: String,
    /// Content hash in hex.
    pub hash: String,
    /// 1 for the first content that was seen, and one more for each change.
    pub revision: u64,
    /// When it was first seen.
    pub first_seen: Timestamp,
    /// When its content last changed.
    pub last_changed: Timestamp,
    /// It is deleted at the vendor.
    pub deleted: bool,
}

/// A hash as text.
pub(crate) fn hex(hash: &[u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash that a text stands for.
pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(hash)
}

/// What a delivery is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Seen for the first time.
    Insert,
    /// Content changed.
    Update,
    /// Gone at the vendor.
    Delete,
}

impl PartialEq for RecordData {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

/// One record on its way to the sinks.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxEntry {
    /// Its place in the outbox.
    pub sequence: Sequence,
    /// The unit's name; shared by the entries of a page.
    pub unit: Arc<UnitKey>,
    /// The vendor's id.
    pub id: String,
    /// The record's revision.
    pub revision: u64,
    /// Insert, update or delete.
    pub op: Op,
    /// The vendor's own stamp.
    pub updated_at: Option<Timestamp>,
    /// When the host saw it.
    pub seen_at: Timestamp,
    /// The record as the vendor sent it; shared by the entries of a page.
    pub data: RecordData,
}

/// What a sink is to take next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutboxBatch {
    /// The entries, in order.
    pub entries: Vec<OutboxEntry>,
    /// What lies among them and does not read: to be set aside as dead letters.
    pub unreadable: Vec<Unreadable>,
    /// The last sequence that this batch covers; none when nothing waits.
    pub up_to: Option<Sequence>,
}

/// A place in the outbox whose bytes are damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Where it is; the first of several when a whole page is damaged.
    pub sequence: Sequence,
    /// Why it does not read.
    pub detail: String,
    /// The bytes, so that a person can save what is in them.
    pub raw: Vec<u8>,
}

/// What waits in the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxSize {
    /// Entries.
    pub entries: u64,
    /// Bytes of their data.
    pub bytes: u64,
    /// When the oldest was seen.
    pub oldest: Option<Timestamp>,
}

/// Names one exact URL with the headers that vary it, within a unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValidatorKey {
    /// The unit.
    pub unit: UnitId,
    /// SHA-256 of method, URL, varying headers and the credential's fingerprint.
    pub request: [u8; 32],
}

/// What lets the vendor answer 304, and what the page said then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validator {
    /// Byte for byte as sent, weak mark and all.
    pub etag: Option<String>,
    /// Byte for byte as sent.
    pub last_modified: Option<String>,
    /// The steps that the page named: an unchanged page names them again.
    pub next: Vec<String>,
    /// The cursor that the page gave.
    pub cursor: Option<String>,
    /// The pause before the next poll that came with the page, in ms.
    #[serde(default)]
    pub poll_after: Option<u64>,
    /// The walk that last used it.
    pub walk: u64,
}

/// Names a budget: who shares it, and the vendor's bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BudgetKey {
    /// `unit:7`, `connection:oss`, `credential:<fingerprint>`, `app:github`.
    pub who: String,
    /// The vendor's name for the bucket; empty for the only one.
    pub bucket: String,
}

/// A budget as last heard of.
pub type BudgetRow = weir_rules::budget::Budget;
