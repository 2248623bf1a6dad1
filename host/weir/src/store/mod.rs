//! The store seam: everything that must survive a crash.
//!
//! Promises:
//! - One [`Commit`] is all or nothing: records' hashes, outbox entries, cursor, walk, validators, budgets, the
//!   poll row and the next due time land in one transaction, or none of them does.
//! - Commits of one unit land in the order in which they were handed over. When one fails, every later commit
//!   under the same [`Ticket`] fails too: a page is never stored above a hole.
//! - [`Store::commit`] returns at once; its receiver answers when the commit is durable. Commits that wait
//!   together share one fsync, so a walk that keeps a few pages in flight pays for few of them.
//! - Dedup is decided inside the transaction, against the last stored hash of the record.
//! - A page that would make a unit remember more records than its bound is refused whole.
//! - An outbox entry is there until every configured sink has taken or refused it.
//!
//! Refuses: a file that another process holds, one of a newer schema, and a damaged one. Each is an error that
//! names the file and the way out; none is overwritten.

mod copy;
mod error;
mod fence;
mod fuse;
mod letters;
mod log;
mod memory;
mod record;
mod redb;
mod review;
mod rows;

use std::ops::ControlFlow;

use tokio::sync::{oneshot, watch};
use weir_rules::model::Timestamp;
use weir_rules::unit::UnitState;

pub use self::redb::{
    Checkup, MemoryDisk, RedbStore, RestorePlan, Restored, StoreCounts, StoreOptions, StoreState,
    check, restore,
};
pub use copy::{CopyOrder, StoreCopy};
pub use error::StoreError;
pub use fuse::{Cut, Fuse};
pub use letters::{DeadLetter, Handled, Intent, LetterId, LetterState, NoLetterId, Requeued};
pub use log::{Folded, PollsKept};
pub use memory::{Committed, MemoryFile, MemoryOptions, MemoryStore, OnCommit};
pub use review::*;
pub use rows::*;

/// The answer to something handed to the store's writer: resolves when it is durable.
pub type Durable<T> = oneshot::Receiver<Result<T, StoreError>>;

/// What is decided once it is known which records were new: runs inside the transaction, so it must be pure
/// and quick.
pub type Conclude = Box<dyn FnOnce(&Seen) -> Conclusion + Send>;

/// All that one page of one poll changes.
pub struct Commit {
    /// The unit that was polled.
    pub unit: UnitId,
    /// The lease under which it was polled.
    pub ticket: Ticket,
    /// When the page arrived: the `seen_at` of its records.
    pub seen_at: Timestamp,
    /// The page's records in the order of the answer.
    pub records: Vec<PreparedRecord>,
    /// Records that a whole listing, of which this is the last page, no longer shows: their text is not kept any more
    /// ([`Dedup::keep`]). What is remembered of them stays.
    pub unlisted: Vec<String>,
    /// Validators to keep (`Some`) or forget (`None`).
    pub validators: Vec<(ValidatorKey, Option<Validator>)>,
    /// Budgets as the answer told of them.
    pub budgets: Vec<(BudgetKey, BudgetRow)>,
    /// What dedup goes by, besides what it remembers.
    pub dedup: Dedup,
    /// Given what the records turned out to be, what becomes of the unit.
    pub conclude: Conclude,
}

/// Where everything is kept. Reads see the last durable state.
pub trait Store: Send + Sync + 'static {
    /// The unit's id and row; made (durably, by the writer) when it is new.
    fn ensure_unit(&self, key: &UnitKey) -> Durable<UnitRow>;
    /// One unit.
    fn unit(&self, id: UnitId) -> Result<Option<UnitRow>, StoreError>;
    /// Every unit, in id order. Rows are handed one by one: there may be 100,000. `each` must not call the store.
    fn for_each_unit(&self, each: &mut dyn FnMut(UnitRow)) -> Result<(), StoreError>;
    /// Hands over a page; returns at once.
    fn commit(&self, commit: Commit) -> Durable<Seen>;
    /// Changes one unit outside a poll (a fault without a page, a person's resume, a reset).
    fn update_unit(
        &self,
        id: UnitId,
        change: Box<dyn FnOnce(UnitState) -> Conclusion + Send>,
    ) -> Durable<()>;
    /// Removes what is remembered of the records of a unit, so that all of them are delivered anew.
    fn forget_records(&self, id: UnitId) -> Durable<u64>;

    /// Forgets records of a unit that have not changed since `before`. Looks at no more than `limit` of them, after the id
    /// `after`. The unit's next unknown records begin above the revisions that were forgotten, so that no key is ever
    /// given twice.
    fn forget_older(
        &self,
        id: UnitId,
        before: Timestamp,
        after: Option<String>,
        limit: usize,
    ) -> Durable<Swept>;

    /// What waits for a person: of one unit or of all, unit by unit, at most `limit`.
    fn reviews(&self, unit: Option<UnitId>, limit: usize) -> Result<Vec<ReviewEntry>, StoreError>;
    /// One entry.
    fn review(&self, id: ReviewId) -> Result<Option<ReviewEntry>, StoreError>;
    /// How many there are.
    fn review_count(&self) -> Result<ReviewCount, StoreError>;
    /// Changes entries outside a poll.
    fn set_reviews(&self, changes: Vec<ReviewChange>) -> Durable<()>;

    /// A validator of that exact URL.
    fn validator(&self, key: &ValidatorKey) -> Result<Option<Validator>, StoreError>;
    /// All budgets, for the ledger at start.
    fn budgets(&self) -> Result<Vec<(BudgetKey, BudgetRow)>, StoreError>;
    /// Polls, newest first, at most `limit`; of one unit or of all.
    fn polls(&self, unit: Option<UnitId>, limit: usize) -> Result<Vec<PollRow>, StoreError>;
    /// The same without a limit, one by one, until `each` says false; it must not call the store.
    fn each_poll(
        &self,
        unit: Option<UnitId>,
        each: &mut dyn FnMut(PollRow) -> bool,
    ) -> Result<(), StoreError> {
        for row in self.polls(unit, usize::MAX)? {
            if !each(row) {
                break;
            }
        }
        Ok(())
    }
    /// The copies of the store, the newest first; none for a store that keeps none.
    ///
    /// # Errors
    /// When their directory can't be read.
    fn copies(&self) -> Result<Option<Vec<StoreCopy>>, StoreError> {
        Ok(None)
    }
    /// Makes a copy, and removes the oldest ones. Takes as long as it takes; commits go on meanwhile. None for a store that
    /// keeps no copies.
    ///
    /// # Errors
    /// When the store can't be read or the copy can't be written; then there is none.
    fn make_copy(&self, _order: &CopyOrder<'_>) -> Result<Option<StoreCopy>, StoreError> {
        Ok(None)
    }
    /// A copy is due whatever the age of the last one: what has been given since is not known for sure.
    fn copy_is_due(&self) -> bool {
        false
    }
    /// How many transactions have been committed since the start.
    fn commits(&self) -> u64 {
        0
    }
    /// Records of a unit in id order after `after`, at most `limit`.
    fn records(
        &self,
        unit: UnitId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecordRow>, StoreError>;
    /// The text of a record, where it is kept ([`Dedup::keep`]).
    fn kept_record(&self, unit: UnitId, id: &str) -> Result<Option<String>, StoreError>;
    /// The ids of the records of a unit whose text is kept, in order. `each` must not call the store.
    fn for_each_kept(&self, unit: UnitId, each: &mut dyn FnMut(&str)) -> Result<(), StoreError>;
    /// How many records are known, per unit.
    fn record_count(&self, unit: UnitId) -> Result<u64, StoreError>;

    /// Units due up to a moment, the longest overdue first, at most `limit`.
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(Timestamp, UnitId)>, StoreError>;

    /// What the sink is to take next, oldest first, up to about `max_bytes` of data: what lies after its delivered
    /// position, and after `after`, which is for a sink that reads on while its acknowledgement is being written.
    fn outbox(
        &self,
        sink: &str,
        after: Option<Sequence>,
        max_bytes: usize,
    ) -> Result<OutboxBatch, StoreError>;
    /// The sequence that the next entry will have; changes when entries have become durable.
    fn outbox_end(&self) -> watch::Receiver<Sequence>;
    /// What a sink has durably taken, and what it has refused. Entries that every configured sink has passed are
    /// removed.
    fn delivered(&self, sink: &str, handled: Handled) -> Durable<()>;
    /// Which sinks the configuration names. A new one starts at the oldest entry that is still there.
    fn set_sinks(&self, names: Vec<String>) -> Durable<()>;
    /// Entries and bytes of data that wait, and when the oldest was seen.
    fn outbox_size(&self) -> Result<OutboxSize, StoreError>;

    /// What a sink has refused (dead, or tried again), of one sink or of all: by sink, then in outbox order, until
    /// `each` has seen enough. `each` must not call the store.
    fn for_each_letter(
        &self,
        sink: Option<&str>,
        each: &mut dyn FnMut(DeadLetter) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;
    /// One letter.
    fn letter(&self, id: &LetterId) -> Result<Option<DeadLetter>, StoreError>;
    /// The letters that wait for a person.
    fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, StoreError> {
        let mut letters = Vec::new();
        self.for_each_letter(None, &mut |letter| {
            if letters.len() >= limit {
                return ControlFlow::Break(());
            }
            if letter.state == LetterState::Dead {
                letters.push(letter);
            }
            ControlFlow::Continue(())
        })?;
        Ok(letters)
    }
    /// Lets a dead letter go out again under its key. It is never sent after a later revision of its record.
    fn requeue(&self, id: LetterId) -> Durable<Requeued>;
    /// Forgets a dead letter, which is never delivered then; the letter, or none when there is no such dead one.
    fn drop_letter(&self, id: LetterId) -> Durable<Option<DeadLetter>>;
    /// Changes whenever a person has requeued or dropped a letter.
    fn letters_changed(&self) -> watch::Receiver<u64>;
    /// The sink's delivery that is not answered for good.
    fn intent(&self, sink: &str) -> Result<Option<Intent>, StoreError> {
        let note = self.note(&intent_note(sink))?;
        // One that does not read is none: its entries are still in the outbox, and go out under another key.
        Ok(note.and_then(|note| serde_json::from_slice(&note).ok()))
    }
    /// Stores what is about to be delivered. [`Handled::settled`] forgets it.
    fn set_intent(&self, sink: &str, intent: &Intent) -> Durable<()> {
        // An intent is strings and numbers: writing it into memory cannot fail.
        let note = serde_json::to_vec(intent).unwrap_or_default();
        self.set_note(&intent_note(sink), Some(note))
    }

    /// What is kept of a credential that changes by itself (a rotated token), sealed by whoever stored it.
    fn credential(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;
    /// Sets or removes it.
    fn set_credential(&self, key: &str, sealed: Option<Vec<u8>>) -> Durable<()>;

    /// A small named value (a compiled file's digest, a connector's last good file).
    fn note(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;
    /// Sets or removes a small named value.
    fn set_note(&self, key: &str, value: Option<Vec<u8>>) -> Durable<()>;
}

/// The note that holds a sink's intent.
fn intent_note(sink: &str) -> String {
    format!("intent/{sink}")
}
