//! The embedded store: one redb file, one writer, any number of readers.
//!
//! Opening takes milliseconds whatever the size, after a kill too. Memory is bounded by the cache and by the
//! bytes of one group of pages.

mod care;
mod chunk;
mod copies;
mod disk;
mod given;
mod reads;
mod tables;
mod trouble;
mod unit;
mod work;
mod writer;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;

use redb::Database;
use tokio::sync::{oneshot, watch};
use weir_rules::model::Timestamp;
use weir_rules::unit::UnitState;

use self::disk::Disk;
use self::given::Journal;
use self::tables::Counters;
use self::trouble::{Outcome, guarded, io_error};
use self::work::{News, Work};
use self::writer::{Job, Operation, Writer};
use super::{
    BudgetKey, BudgetRow, Commit, Conclusion, CopyOrder, DeadLetter, Durable, Fuse, Handled,
    LetterId, OutboxBatch, OutboxSize, PollRow, PollsKept, RecordRow, Requeued, ReviewChange,
    ReviewCount, ReviewEntry, ReviewId, Seen, Sequence, Store, StoreCopy, StoreError, Swept,
    UnitId, UnitKey, UnitRow, Validator, ValidatorKey,
};

pub use self::care::{Checkup, RestorePlan, Restored, StoreCounts, StoreState, check, restore};
pub use self::disk::MemoryDisk;

/// Settings of the embedded store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Bytes of the file that are kept in memory.
    pub cache_bytes: usize,
    /// A group of pages is closed at this many bytes: what one transaction may hold in memory.
    pub group_bytes: usize,
    /// How much of the log of polls is kept.
    pub polls: PollsKept,
    /// Makes commits fail, for tests.
    pub fuse: Option<Arc<Fuse>>,
    /// Where copies of the file are kept, and the journal that goes with them; none: nowhere.
    pub copies: Option<PathBuf>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            cache_bytes: 8 << 20,
            group_bytes: 2 << 20,
            polls: PollsKept::default(),
            fuse: None,
            copies: None,
        }
    }
}

/// What the writer and the readers share.
struct Shared {
    disk: Disk,
    options: StoreOptions,
    /// None while the file must be opened anew.
    db: RwLock<Option<Database>>,
    end: watch::Sender<Sequence>,
    /// How often a person has decided about letters.
    letters: watch::Sender<u64>,
    transactions: AtomicU64,
    names: reads::NameCache,
    journal: Option<Journal>,
}

fn locked_for_write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Runs work on the open file, opening it first when an earlier failure has closed it.
    fn with_database<T>(&self, work: impl FnOnce(&Database) -> Outcome<T>) -> Outcome<T> {
        {
            let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(db) = db.as_ref() {
                return work(db);
            }
        }
        let mut db = locked_for_write(&self.db);
        let db = match &mut *db {
            Some(db) => db,
            closed => closed.insert(self.disk.open(&self.options)?),
        };
        work(db)
    }

    fn close(&self) {
        locked_for_write(&self.db).take();
    }

    fn committed(&self, news: &News) {
        self.transactions.fetch_add(1, Ordering::Relaxed);
        self.end
            .send_if_modified(|known| std::mem::replace(known, news.end) != news.end);
        if news.letters {
            self.letters.send_modify(|times| *times += 1);
        }
    }
}

/// The embedded store. Dropping it writes what still waits and closes the file.
pub struct RedbStore {
    shared: Arc<Shared>,
    queue: Option<mpsc::Sender<Box<dyn Operation>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl RedbStore {
    /// Opens the store in a file, making it and its directory when there is none.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::TooNew`], [`StoreError::Damaged`]: the file is left as it is.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Arc<Self>, StoreError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| io_error(parent, &error))?;
        }
        Self::on(Disk::file(path)?, options)
    }

    /// Opens a store in memory; what it leaves on the disk another one can open.
    ///
    /// # Errors
    /// As [`RedbStore::open`].
    pub fn in_memory(disk: MemoryDisk, options: StoreOptions) -> Result<Arc<Self>, StoreError> {
        Self::on(Disk::Memory(disk), options)
    }

    fn on(disk: Disk, options: StoreOptions) -> Result<Arc<Self>, StoreError> {
        let path = disk.path().to_path_buf();
        let db = disk.open(&options)?;
        let counters = guarded(|| {
            use redb::ReadableDatabase as _;
            Counters::read(&db.begin_read()?)
        })
        .map_err(|trouble| trouble.into_error(&path))?;
        let journal = match &options.copies {
            Some(dir) => {
                Some(Journal::open(dir, counters.sequence).map_err(|error| io_error(dir, &error))?)
            }
            None => None,
        };
        let shared = Arc::new(Shared {
            journal,
            disk,
            options,
            db: RwLock::new(Some(db)),
            end: watch::Sender::new(counters.sequence),
            letters: watch::Sender::new(0),
            transactions: AtomicU64::new(0),
            names: reads::NameCache::default(),
        });
        let (queue, operations) = mpsc::channel();
        let writer = Writer::new(shared.clone());
        let writer = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || writer.run(&operations))
            .map_err(|error| io_error(&path, &error))?;
        Ok(Arc::new(RedbStore {
            shared,
            queue: Some(queue),
            writer: Mutex::new(Some(writer)),
        }))
    }

    /// How many transactions have been committed: group commit makes them fewer than the commits.
    pub fn transactions(&self) -> u64 {
        self.shared.transactions.load(Ordering::Relaxed)
    }

    fn job<T, F>(&self, run: F, shape: impl FnOnce(Job<T, F>) -> Job<T, F>) -> Durable<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Work<'_>) -> Outcome<Result<T, StoreError>> + Send + 'static,
    {
        let (answer, receiver) = oneshot::channel();
        let job = shape(Job::new(answer, run));
        let unsent = match &self.queue {
            Some(queue) => queue
                .send(Box::new(job))
                .err()
                .map(|mpsc::SendError(job)| job),
            None => None,
        };
        if let Some(job) = unsent {
            job.settle(Some(&StoreError::Closed));
        }
        receiver
    }
}

fn answered<T>(answer: Result<T, StoreError>) -> Durable<T> {
    let (sender, receiver) = oneshot::channel();
    // The receiver is right here.
    let _ = sender.send(answer);
    receiver
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        self.queue = None;
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::error!("the store's writer ended in a panic");
        }
    }
}

impl Store for RedbStore {
    fn ensure_unit(&self, key: &UnitKey) -> Durable<UnitRow> {
        // Most units are known: then no start has to wait for an fsync.
        match self.shared.find_unit(key) {
            Ok(None) => {
                let key = key.clone();
                self.job(move |work| work.ensure_unit(key).map(Ok), |job| job)
            }
            Ok(Some(row)) => answered(Ok(row)),
            Err(error) => answered(Err(error)),
        }
    }

    fn unit(&self, id: UnitId) -> Result<Option<UnitRow>, StoreError> {
        self.shared.unit(id)
    }

    fn for_each_unit(&self, each: &mut dyn FnMut(UnitRow)) -> Result<(), StoreError> {
        self.shared.for_each_unit(each)
    }

    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(Timestamp, UnitId)>, StoreError> {
        self.shared.due(until, limit)
    }

    fn commit(&self, commit: Commit) -> Durable<Seen> {
        let weight = commit
            .records
            .iter()
            .map(|record| record.data.as_str().len())
            .sum();
        let (unit, ticket) = (commit.unit, commit.ticket);
        self.job(
            move |work| work.page(commit),
            |job| job.weighing(weight).under(unit, ticket),
        )
    }

    fn update_unit(
        &self,
        id: UnitId,
        change: Box<dyn FnOnce(UnitState) -> Conclusion + Send>,
    ) -> Durable<()> {
        self.job(move |work| work.update_unit(id, change), |job| job)
    }

    fn forget_records(&self, id: UnitId) -> Durable<u64> {
        self.job(move |work| work.forget_records(id), |job| job)
    }

    fn forget_older(
        &self,
        id: UnitId,
        before: Timestamp,
        after: Option<String>,
        limit: usize,
    ) -> Durable<Swept> {
        self.job(
            move |work| work.forget_older(id, before, after.as_deref(), limit),
            |job| job.patient(),
        )
    }

    fn reviews(&self, unit: Option<UnitId>, limit: usize) -> Result<Vec<ReviewEntry>, StoreError> {
        self.shared.reviews(unit, limit)
    }

    fn review(&self, id: ReviewId) -> Result<Option<ReviewEntry>, StoreError> {
        self.shared.review(id)
    }

    fn review_count(&self) -> Result<ReviewCount, StoreError> {
        self.shared.review_count()
    }

    fn set_reviews(&self, changes: Vec<ReviewChange>) -> Durable<()> {
        self.job(move |work| work.set_reviews(&changes).map(Ok), |job| job)
    }

    fn validator(&self, key: &ValidatorKey) -> Result<Option<Validator>, StoreError> {
        self.shared.validator(key)
    }

    fn budgets(&self) -> Result<Vec<(BudgetKey, BudgetRow)>, StoreError> {
        self.shared.budgets()
    }

    fn polls(&self, unit: Option<UnitId>, limit: usize) -> Result<Vec<PollRow>, StoreError> {
        self.shared.polls(unit, limit)
    }

    fn each_poll(
        &self,
        unit: Option<UnitId>,
        each: &mut dyn FnMut(PollRow) -> bool,
    ) -> Result<(), StoreError> {
        self.shared.each_poll(unit, each)
    }

    fn commits(&self) -> u64 {
        self.transactions()
    }

    fn records(
        &self,
        unit: UnitId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecordRow>, StoreError> {
        self.shared.records(unit, after, limit)
    }

    fn kept_record(&self, unit: UnitId, id: &str) -> Result<Option<String>, StoreError> {
        self.shared.kept_record(unit, id)
    }

    fn for_each_kept(&self, unit: UnitId, each: &mut dyn FnMut(&str)) -> Result<(), StoreError> {
        self.shared.for_each_kept(unit, each)
    }

    fn record_count(&self, unit: UnitId) -> Result<u64, StoreError> {
        self.shared.record_count(unit)
    }

    fn outbox(
        &self,
        sink: &str,
        after: Option<Sequence>,
        max_bytes: usize,
    ) -> Result<OutboxBatch, StoreError> {
        self.shared.outbox(sink, after, max_bytes)
    }

    fn outbox_end(&self) -> watch::Receiver<Sequence> {
        self.shared.end.subscribe()
    }

    fn delivered(&self, sink: &str, handled: Handled) -> Durable<()> {
        let sink = sink.to_owned();
        self.job(
            move |work| work.delivered(&sink, &handled).map(Ok),
            |job| job.patient(),
        )
    }

    fn set_sinks(&self, names: Vec<String>) -> Durable<()> {
        self.job(move |work| work.set_sinks(&names).map(Ok), |job| job)
    }

    fn outbox_size(&self) -> Result<OutboxSize, StoreError> {
        self.shared.outbox_size()
    }

    fn for_each_letter(
        &self,
        sink: Option<&str>,
        each: &mut dyn FnMut(DeadLetter) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.shared.for_each_letter(sink, each)
    }

    fn letter(&self, id: &LetterId) -> Result<Option<DeadLetter>, StoreError> {
        self.shared.letter(id)
    }

    fn requeue(&self, id: LetterId) -> Durable<Requeued> {
        self.job(move |work| work.requeue(&id).map(Ok), |job| job)
    }

    fn drop_letter(&self, id: LetterId) -> Durable<Option<DeadLetter>> {
        self.job(move |work| work.drop_letter(&id).map(Ok), |job| job)
    }

    fn letters_changed(&self) -> watch::Receiver<u64> {
        self.shared.letters.subscribe()
    }

    fn copies(&self) -> Result<Option<Vec<StoreCopy>>, StoreError> {
        let Some(dir) = &self.shared.options.copies else {
            return Ok(None);
        };
        let copies = copies::list(dir).map_err(|error| io_error(dir, &error))?;
        Ok(Some(copies))
    }

    fn make_copy(&self, order: &CopyOrder<'_>) -> Result<Option<StoreCopy>, StoreError> {
        let (Some(dir), Some(journal)) = (&self.shared.options.copies, &self.shared.journal) else {
            return Ok(None);
        };
        let begin = || {
            use redb::ReadableDatabase as _;
            self.shared.with_database(|db| Ok(db.begin_read()?))
        };
        copies::make(dir, journal, self.shared.disk.path(), order, begin).map(Some)
    }

    fn copy_is_due(&self) -> bool {
        self.shared.journal.as_ref().is_some_and(Journal::is_holed)
    }

    fn credential(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.shared.credential(key)
    }

    fn set_credential(&self, key: &str, sealed: Option<Vec<u8>>) -> Durable<()> {
        let key = key.to_owned();
        self.job(
            move |work| work.set_credential(&key, sealed.as_deref()).map(Ok),
            |job| job,
        )
    }

    fn note(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.shared.note(key)
    }

    fn set_note(&self, key: &str, value: Option<Vec<u8>>) -> Durable<()> {
        let key = key.to_owned();
        self.job(
            move |work| work.set_note(&key, value.as_deref()).map(Ok),
            |job| job,
        )
    }
}
