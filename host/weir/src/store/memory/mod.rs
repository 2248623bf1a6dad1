//! The store in memory: the same promises as the embedded one, without a disk.
//!
//! What it does, it does within the call, on the caller's thread: the receiver that a write returns has its answer
//! already. That makes a simulation deterministic, and a commit nearly free.
//!
//! What it holds lives in a [`MemoryFile`], which outlives the store as a file outlives a process: a store that is
//! opened on it finds what an earlier one has committed, read as from a disk. A [`Fuse`] or [`MemoryStore::kill`] makes
//! it die at a commit boundary. From then on nothing is applied, and every answer is [`StoreError::Closed`].

mod letters;
mod outbox;
mod polls;
mod review;
mod tables;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};
use weir_rules::model::Timestamp;
use weir_rules::unit::UnitState;

use self::tables::Tables;
use super::fence::Fences;
use super::{
    BudgetKey, BudgetRow, Commit, Conclusion, Cut, DeadLetter, Durable, Fuse, Handled, LetterId,
    OutboxBatch, OutboxSize, PollRow, PollsKept, PreparedRecord, RecordRow, Requeued, ReviewChange,
    ReviewCount, ReviewEntry, ReviewId, Seen, Sequence, Store, StoreError, Swept, Ticket, UnitId,
    UnitKey, UnitRow, Validator, ValidatorKey,
};

/// What a store in memory holds. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryFile {
    tables: Arc<Mutex<Tables>>,
}

impl MemoryFile {
    /// The name of a unit.
    pub fn key_of(&self, id: UnitId) -> Option<Arc<UnitKey>> {
        lock(&self.tables).key_of(id)
    }

    /// The unit of that name, as it is shown to people.
    pub fn named(&self, name: &str) -> Option<UnitId> {
        lock(&self.tables).named(name)
    }
}

/// Told of every page that has been committed, and of every other change of a unit. It must not call the store.
pub type OnCommit = Arc<dyn Fn(&Committed<'_>) + Send + Sync>;

/// A change of a unit that has just become durable.
#[derive(Clone, Copy, Debug)]
pub struct Committed<'a> {
    /// The unit.
    pub unit: UnitId,
    /// Its name.
    pub key: &'a UnitKey,
    /// The lease of the poll; none for a change outside of a poll.
    pub ticket: Option<Ticket>,
    /// When the page arrived, by the machine's clock; none for a change outside of a poll.
    pub seen_at: Option<Timestamp>,
    /// The page's records.
    pub records: &'a [PreparedRecord],
    /// What dedup made of them.
    pub seen: &'a Seen,
    /// The unit as it is now.
    pub state: &'a UnitState,
    /// When it is due now.
    pub due: Option<Timestamp>,
    /// The poll's row, when the poll has ended.
    pub poll: Option<&'a PollRow>,
    /// What has begun to wait for a person with it, and what no longer does.
    pub review: &'a [ReviewChange],
}

/// Settings of a store in memory.
#[derive(Clone, Default)]
pub struct MemoryOptions {
    /// How much of the log of polls is kept.
    pub polls: PollsKept,
    /// Makes commits fail.
    pub fuse: Option<Arc<Fuse>>,
    /// Who is told of commits.
    pub on_commit: Option<OnCommit>,
    /// Who is told that the store has died.
    pub on_death: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// The store in memory.
pub struct MemoryStore {
    file: MemoryFile,
    options: MemoryOptions,
    fences: Mutex<Fences>,
    end: watch::Sender<Sequence>,
    /// How often a person has decided about letters.
    letters: watch::Sender<u64>,
    dead: AtomicBool,
    transactions: AtomicU64,
}

impl MemoryStore {
    /// Opens a store on what an earlier one has left.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]: a row does not read as it was written.
    pub fn open(file: &MemoryFile, options: MemoryOptions) -> Result<Arc<Self>, StoreError> {
        let mut tables = lock(&file.tables);
        tables.read_as_from_disk()?;
        let end = watch::Sender::new(tables.outbox.end());
        drop(tables);
        Ok(Arc::new(MemoryStore {
            file: file.clone(),
            options,
            fences: Mutex::default(),
            end,
            letters: watch::Sender::new(0),
            dead: AtomicBool::new(false),
            transactions: AtomicU64::new(0),
        }))
    }

    /// Dies here and now.
    pub fn kill(&self) {
        if !self.dead.swap(true, Ordering::Relaxed)
            && let Some(told) = &self.options.on_death
        {
            told();
        }
    }

    /// Has it died?
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    fn read<T>(&self, work: impl FnOnce(&Tables) -> T) -> Result<T, StoreError> {
        if self.is_dead() {
            return Err(StoreError::Closed);
        }
        Ok(work(&lock(&self.file.tables)))
    }

    /// A transaction of one operation. `would_change` tells beforehand whether it is one at all, as a fuse counts.
    fn write<T>(
        &self,
        would_change: impl FnOnce(&Tables) -> bool,
        work: impl FnOnce(&mut Tables) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.is_dead() {
            return Err(StoreError::Closed);
        }
        let mut tables = lock(&self.file.tables);
        let changes = would_change(&tables);
        let fuse = self.options.fuse.as_ref().filter(|_| changes);
        let cut = fuse.and_then(|fuse| fuse.burn());
        match cut {
            Some(Cut::Refuse) => {
                return Err(StoreError::Full {
                    path: "memory".into(),
                });
            }
            Some(Cut::DieBefore) => {
                drop(tables);
                self.kill();
                return Err(StoreError::Closed);
            }
            Some(Cut::DieAfter) | None => {}
        }
        let result = work(&mut tables);
        let end = tables.outbox.end();
        drop(tables);
        if cut.is_some() {
            self.kill();
            return Err(StoreError::Closed);
        }
        self.transactions
            .fetch_add(u64::from(changes), Ordering::Relaxed);
        self.end
            .send_if_modified(|known| std::mem::replace(known, end) != end);
        result
    }

    fn tell(&self, committed: &Committed<'_>) {
        if let Some(told) = &self.options.on_commit {
            told(committed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answered<T>(answer: Result<T, StoreError>) -> Durable<T> {
    let (sender, receiver) = oneshot::channel();
    // The receiver is right here.
    let _ = sender.send(answer);
    receiver
}

impl Store for MemoryStore {
    fn ensure_unit(&self, key: &UnitKey) -> Durable<UnitRow> {
        answered(self.write(
            |tables| tables.find(key).is_none(),
            |tables| Ok(tables.ensure(key)),
        ))
    }

    fn unit(&self, id: UnitId) -> Result<Option<UnitRow>, StoreError> {
        self.read(|tables| tables.row(id))
    }

    fn for_each_unit(&self, each: &mut dyn FnMut(UnitRow)) -> Result<(), StoreError> {
        self.read(|tables| tables.rows().for_each(each))
    }

    fn commit(&self, commit: Commit) -> Durable<Seen> {
        let (unit, ticket) = (commit.unit, commit.ticket);
        let admitted = lock(&self.fences).admit(unit, ticket);
        let stored = admitted.and_then(|()| {
            self.write(
                |tables| tables.contains(unit),
                |tables| {
                    tables.page(commit, &self.options.polls, |committed| {
                        self.tell(committed);
                    })
                },
            )
        });
        if stored.is_err() {
            lock(&self.fences).break_lease(unit, ticket);
        }
        answered(stored)
    }

    fn update_unit(
        &self,
        id: UnitId,
        change: Box<dyn FnOnce(UnitState) -> Conclusion + Send>,
    ) -> Durable<()> {
        answered(self.write(
            |tables| tables.contains(id),
            |tables| {
                tables.update(id, &self.options.polls, change, |committed| {
                    self.tell(committed);
                })
            },
        ))
    }

    fn forget_records(&self, id: UnitId) -> Durable<u64> {
        answered(self.write(
            |tables| tables.contains(id),
            |tables| tables.forget_records(id),
        ))
    }

    fn forget_older(
        &self,
        id: UnitId,
        before: Timestamp,
        after: Option<String>,
        limit: usize,
    ) -> Durable<Swept> {
        answered(self.write(
            |tables| tables.contains(id),
            |tables| tables.forget_older(id, before, after.as_deref(), limit),
        ))
    }

    fn reviews(&self, unit: Option<UnitId>, limit: usize) -> Result<Vec<ReviewEntry>, StoreError> {
        self.read(|tables| tables.review.of(unit, limit))
    }

    fn review(&self, id: ReviewId) -> Result<Option<ReviewEntry>, StoreError> {
        self.read(|tables| tables.review.get(id))
    }

    fn review_count(&self) -> Result<ReviewCount, StoreError> {
        self.read(|tables| tables.review.count())
    }

    fn set_reviews(&self, changes: Vec<ReviewChange>) -> Durable<()> {
        answered(self.write(
            |_| !changes.is_empty(),
            |tables| {
                tables.review.set(changes.clone());
                Ok(())
            },
        ))
    }

    fn validator(&self, key: &ValidatorKey) -> Result<Option<Validator>, StoreError> {
        self.read(|tables| tables.validator(key))
    }

    fn budgets(&self) -> Result<Vec<(BudgetKey, BudgetRow)>, StoreError> {
        self.read(Tables::budgets)
    }

    fn polls(&self, unit: Option<UnitId>, limit: usize) -> Result<Vec<PollRow>, StoreError> {
        self.read(|tables| tables.polls(unit, limit))
    }

    fn each_poll(
        &self,
        unit: Option<UnitId>,
        each: &mut dyn FnMut(PollRow) -> bool,
    ) -> Result<(), StoreError> {
        self.read(|tables| tables.each_poll(unit, each))
    }

    fn commits(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    fn records(
        &self,
        unit: UnitId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecordRow>, StoreError> {
        self.read(|tables| tables.records(unit, after, limit))
    }

    fn kept_record(&self, unit: UnitId, id: &str) -> Result<Option<String>, StoreError> {
        self.read(|tables| tables.kept_record(unit, id))
    }

    fn for_each_kept(&self, unit: UnitId, each: &mut dyn FnMut(&str)) -> Result<(), StoreError> {
        self.read(|tables| tables.for_each_kept(unit, each))
    }

    fn record_count(&self, unit: UnitId) -> Result<u64, StoreError> {
        self.read(|tables| tables.record_count(unit))
    }

    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(Timestamp, UnitId)>, StoreError> {
        self.read(|tables| tables.due(until, limit))
    }

    fn outbox(
        &self,
        sink: &str,
        after: Option<Sequence>,
        max_bytes: usize,
    ) -> Result<OutboxBatch, StoreError> {
        self.read(|tables| tables.outbox.batch(sink, after, max_bytes))
    }

    fn outbox_end(&self) -> watch::Receiver<Sequence> {
        self.end.subscribe()
    }

    fn delivered(&self, sink: &str, handled: Handled) -> Durable<()> {
        answered(self.write(
            |tables| tables.would_change(sink, &handled),
            |tables| {
                tables.delivered(sink, &handled);
                Ok(())
            },
        ))
    }

    fn set_sinks(&self, names: Vec<String>) -> Durable<()> {
        answered(self.write(
            |tables| !tables.outbox.has_sinks(&names),
            |tables| {
                tables.outbox.set_sinks(&names);
                Ok(())
            },
        ))
    }

    fn outbox_size(&self) -> Result<OutboxSize, StoreError> {
        self.read(|tables| tables.outbox.size())
    }

    fn for_each_letter(
        &self,
        sink: Option<&str>,
        each: &mut dyn FnMut(DeadLetter) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.read(|tables| tables.letters.for_each(sink, each))
    }

    fn letter(&self, id: &LetterId) -> Result<Option<DeadLetter>, StoreError> {
        self.read(|tables| tables.letters.get(id))
    }

    fn requeue(&self, id: LetterId) -> Durable<Requeued> {
        let requeued = self.write(
            |tables| tables.letters.is_dead(&id),
            |tables| {
                let has_sink = tables.outbox.has_sink(&id.sink);
                Ok(tables.letters.requeue(&id, has_sink))
            },
        );
        if matches!(requeued, Ok(Requeued::GoesOut)) {
            self.letters.send_modify(|times| *times += 1);
        }
        answered(requeued)
    }

    fn drop_letter(&self, id: LetterId) -> Durable<Option<DeadLetter>> {
        let dropped = self.write(
            |tables| tables.letters.is_dead(&id),
            |tables| Ok(tables.letters.drop_dead(&id)),
        );
        if matches!(dropped, Ok(Some(_))) {
            self.letters.send_modify(|times| *times += 1);
        }
        answered(dropped)
    }

    fn letters_changed(&self) -> watch::Receiver<u64> {
        self.letters.subscribe()
    }

    fn credential(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|tables| tables.credential(key))
    }

    fn set_credential(&self, key: &str, sealed: Option<Vec<u8>>) -> Durable<()> {
        answered(self.write(
            |_| true,
            |tables| {
                tables.set_credential(key, sealed);
                Ok(())
            },
        ))
    }

    fn note(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|tables| tables.note(key))
    }

    fn set_note(&self, key: &str, value: Option<Vec<u8>>) -> Durable<()> {
        answered(self.write(
            |_| true,
            |tables| {
                tables.set_note(key, value);
                Ok(())
            },
        ))
    }
}
