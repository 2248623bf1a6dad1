//! The one writer: takes everything that waits, applies it in order in one transaction, commits durably, and
//! answers all of it.
//!
//! While one transaction is being synced the next group gathers, so the number of fsyncs follows the disk and
//! not the number of pages.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::trouble::{Outcome, Trouble, guarded};
use super::work::{News, Work};
use super::{Shared, locked_for_write};
use crate::store::fence::Fences;
use crate::store::{Cut, StoreError, Ticket, UnitId};

/// A group is closed at this many operations.
const GROUP_OPERATIONS: usize = 1024;

/// How long operations that nobody hurries for wait for others to share an fsync with.
const PATIENCE: Duration = Duration::from_millis(10);

/// Something to be done in a transaction and answered when that is durable.
pub(super) trait Operation: Send {
    /// Its share of a group's bytes.
    fn weight(&self) -> usize;
    /// It may wait a little for others.
    fn is_patient(&self) -> bool;
    /// The lease that it is done under.
    fn lease(&self) -> Option<(UnitId, Ticket)>;
    /// Does it; an error ends the transaction.
    fn apply(&mut self, work: &mut Work<'_>) -> Outcome<()>;
    /// It was not done, and its answer is an error.
    fn is_refused(&self) -> bool;
    /// It is not done, and this is its answer.
    fn refuse(&mut self, error: StoreError);
    /// The transaction has ended: answers.
    fn settle(self: Box<Self>, failure: Option<&StoreError>);
}

/// An operation made of a closure.
pub(super) struct Job<T, F> {
    run: Option<F>,
    result: Option<Result<T, StoreError>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
    weight: usize,
    patient: bool,
    lease: Option<(UnitId, Ticket)>,
}

impl<T, F> Job<T, F>
where
    T: Send,
    F: FnOnce(&mut Work<'_>) -> Outcome<Result<T, StoreError>> + Send,
{
    pub(super) fn new(answer: oneshot::Sender<Result<T, StoreError>>, run: F) -> Self {
        Job {
            run: Some(run),
            result: None,
            answer,
            weight: 0,
            patient: false,
            lease: None,
        }
    }

    pub(super) fn weighing(mut self, bytes: usize) -> Self {
        self.weight = bytes;
        self
    }

    pub(super) fn patient(mut self) -> Self {
        self.patient = true;
        self
    }

    pub(super) fn under(mut self, unit: UnitId, ticket: Ticket) -> Self {
        self.lease = Some((unit, ticket));
        self
    }
}

impl<T, F> Operation for Job<T, F>
where
    T: Send,
    F: FnOnce(&mut Work<'_>) -> Outcome<Result<T, StoreError>> + Send,
{
    fn weight(&self) -> usize {
        self.weight
    }

    fn is_patient(&self) -> bool {
        self.patient
    }

    fn lease(&self) -> Option<(UnitId, Ticket)> {
        self.lease
    }

    fn apply(&mut self, work: &mut Work<'_>) -> Outcome<()> {
        if let Some(run) = self.run.take() {
            self.result = Some(run(work)?);
        }
        Ok(())
    }

    fn is_refused(&self) -> bool {
        matches!(self.result, Some(Err(_)))
    }

    fn refuse(&mut self, error: StoreError) {
        self.run = None;
        self.result = Some(Err(error));
    }

    fn settle(self: Box<Self>, failure: Option<&StoreError>) {
        let answer = match (self.result, failure) {
            (Some(Err(own)), _) => Err(own),
            (_, Some(failure)) => Err(failure.clone()),
            (Some(done), None) => done,
            (None, None) => Err(StoreError::Closed),
        };
        // Whoever asked may have gone away; what was done stays done.
        let _ = self.answer.send(answer);
    }
}

/// How a transaction ended.
enum End {
    Durable(News),
    /// Nothing was to be changed, so nothing was written.
    Unchanged,
    /// A fuse says that the process is dead.
    Dead,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    fences: Fences,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Writer {
            shared,
            fences: Fences::default(),
        }
    }

    /// Works until the store is dropped and its queue is empty, then closes the file.
    pub(super) fn run(mut self, queue: &Receiver<Box<dyn Operation>>) {
        while let Ok(first) = queue.recv() {
            let group = self.gather(first, queue);
            if self.write(group).is_break() {
                break;
            }
        }
        if let Some(db) = locked_for_write(&self.shared.db).take()
            && let Err(error) = db.close()
        {
            tracing::warn!(%error, "the store did not close cleanly; the next start repairs it");
        }
    }

    fn gather(
        &self,
        first: Box<dyn Operation>,
        queue: &Receiver<Box<dyn Operation>>,
    ) -> Vec<Box<dyn Operation>> {
        let mut weight = first.weight();
        let mut patient = first.is_patient();
        let mut group = vec![first];
        while weight < self.shared.options.group_bytes && group.len() < GROUP_OPERATIONS {
            let next = match queue.try_recv() {
                Ok(next) => next,
                Err(_) if patient => match queue.recv_timeout(PATIENCE) {
                    Ok(next) => next,
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                },
                Err(_) => break,
            };
            weight += next.weight();
            patient &= next.is_patient();
            group.push(next);
        }
        group
    }

    fn write(&mut self, mut group: Vec<Box<dyn Operation>>) -> std::ops::ControlFlow<()> {
        let failure = match guarded(|| self.transact(&mut group)) {
            Ok(End::Durable(news)) => {
                self.shared.committed(&news);
                None
            }
            Ok(End::Unchanged) => None,
            Ok(End::Dead) => return std::ops::ControlFlow::Break(()),
            Err(trouble) => Some(self.recover(trouble)),
        };
        for operation in group {
            if failure.is_some()
                && let Some((unit, ticket)) = operation.lease()
            {
                self.fences.break_lease(unit, ticket);
            }
            operation.settle(failure.as_ref());
        }
        std::ops::ControlFlow::Continue(())
    }

    fn transact(&mut self, group: &mut [Box<dyn Operation>]) -> Outcome<End> {
        self.shared.with_database(|db| {
            let mut tx = db.begin_write()?;
            // The allocator's state goes into each commit: after a kill the file opens at once, whatever its size.
            tx.set_quick_repair(true);
            let mut work = Work::begin(
                &tx,
                self.shared.options.polls,
                self.shared.journal.is_some(),
            )?;
            for operation in group {
                match operation
                    .lease()
                    .map(|(unit, ticket)| self.fences.admit(unit, ticket))
                {
                    Some(Err(refusal)) => operation.refuse(refusal),
                    _ => operation.apply(&mut work)?,
                }
                // The pages behind one that was refused must not land above the hole.
                if operation.is_refused()
                    && let Some((unit, ticket)) = operation.lease()
                {
                    self.fences.break_lease(unit, ticket);
                }
            }
            let Some(mut news) = work.finish()? else {
                tx.abort()?;
                return Ok(End::Unchanged);
            };
            if let Some(journal) = &self.shared.journal {
                journal.append(std::mem::take(&mut news.log), news.end)?;
            }
            let cut = self
                .shared
                .options
                .fuse
                .as_ref()
                .and_then(|fuse| fuse.burn());
            match cut {
                Some(Cut::Refuse) => {
                    tx.abort()?;
                    return Err(Trouble::Redb(redb::Error::Io(
                        std::io::ErrorKind::StorageFull.into(),
                    )));
                }
                Some(Cut::DieBefore) => {
                    tx.abort()?;
                    return Ok(End::Dead);
                }
                Some(Cut::DieAfter) | None => tx.commit()?,
            }
            Ok(if cut.is_some() {
                End::Dead
            } else {
                End::Durable(news)
            })
        })
    }

    /// After a failed write the engine refuses everything until the file is opened anew.
    fn recover(&self, trouble: Trouble) -> StoreError {
        let reopen = trouble.needs_reopening();
        let error = trouble.into_error(self.shared.disk.path());
        // Whoever waits for an answer says so; a full disk would say it again and again here.
        tracing::debug!(%error, "nothing of this group was stored");
        if reopen {
            self.shared.close();
        }
        error
    }
}
