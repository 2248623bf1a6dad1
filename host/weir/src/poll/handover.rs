//! What a poll hands to the store: page after page while the walk goes on, and its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_rules::interval::Span;
use weir_rules::model::{Reason, Timestamp};
use weir_rules::walk::{Ending, Tally, Walk};

use super::Report;
use super::end::{Concluded, walked};
use super::run::{Ended, Poll};
use super::side::side_walked;
use crate::store::{
    BudgetKey, BudgetRow, Commit, Conclusion, Dedup, Durable, PollRow, PreparedRecord, RecordData,
    ReviewChange, Seen, StoreError, Validator, ValidatorKey, unhex,
};

/// Pages of one walk that may be on their way into the store. More would hold more memory and save no more fsyncs.
const PAGES_IN_FLIGHT: usize = 24;

/// And bytes of their bodies.
const BYTES_IN_FLIGHT: usize = 4 << 20;

/// Lags that are kept of one walk: enough for a 99th percentile.
const LAGS_KEPT: usize = 4_096;

/// Records of which one walk shows several versions, and is told.
const DOUBLES_KEPT: usize = 256;

/// What this poll has seen so far. Filled inside the store's transactions, in the order of the pages.
#[derive(Default)]
pub(super) struct SoFar {
    pub(super) tally: Tally,
    lags: Vec<i64>,
    /// Versions that were delivered in this walk and followed by another one.
    doubles: Vec<(String, String)>,
}

impl SoFar {
    fn add(&mut self, seen: &Seen) {
        self.tally.new += seen.new;
        self.tally.changed += seen.changed;
        self.tally.unchanged += seen.unchanged;
        self.tally.deleted += seen.deleted;
        let room = LAGS_KEPT.saturating_sub(self.lags.len());
        self.lags.extend(seen.lags.iter().take(room));
        let room = DOUBLES_KEPT.saturating_sub(self.doubles.len());
        self.doubles.extend(seen.doubles.iter().take(room).cloned());
    }

    fn tell(&self, walk: &mut Walk) {
        for (id, hash) in &self.doubles {
            walk.doubles.found(id, hash.clone());
        }
    }
}

/// What goes into the store with one page.
#[derive(Default)]
pub(super) struct Baggage {
    pub(super) records: Vec<PreparedRecord>,
    /// Of a walk's last page: what the whole of it did not show.
    pub(super) unlisted: Vec<String>,
    pub(super) validators: Vec<(ValidatorKey, Option<Validator>)>,
    pub(super) budgets: Vec<(BudgetKey, BudgetRow)>,
    pub(super) review: Vec<ReviewChange>,
    /// Notes that are of no use any more.
    pub(super) forget: Vec<String>,
    pub(super) bytes: usize,
}
impl Poll<'_> {
    /// Waits until every page that was handed over is durable.
    pub(super) async fn land(&mut self) -> Result<(), StoreError> {
        while let Some((_, durable)) = self.in_flight.pop_front() {
            self.landed(durable).await?;
        }
        Ok(())
    }

    /// Waits until a page is durable; its records may be what other units are polled for.
    async fn landed(&self, durable: Durable<Seen>) -> Result<(), StoreError> {
        let seen = durable.await.unwrap_or(Err(StoreError::Closed))?;
        self.host.adopt(&self.connection, &self.row, &seen).await
    }

    /// A page goes into the store; the walk goes on meanwhile.
    pub(super) async fn hand_over(&mut self, baggage: Baggage) -> Result<(), StoreError> {
        let bytes = baggage.bytes;
        let so_far = self.so_far.clone();
        let before = self.before.clone();
        let mut state = self.state.clone();
        let mut walk = self.walk.clone();
        let side = self.side;
        let mut baggage = baggage;
        let review = std::mem::take(&mut baggage.review);
        let forget_notes = std::mem::take(&mut baggage.forget);
        let durable = self.commit(
            baggage,
            Box::new(move |seen| {
                let mut so_far = lock(&so_far);
                so_far.add(seen);
                walk.tally = before.plus(&so_far.tally);
                so_far.tell(&mut walk);
                if side {
                    state.side.walk = Some(Box::new(walk));
                } else {
                    state.walk = Some(walk);
                }
                Conclusion {
                    state,
                    review,
                    forget_notes,
                    ..Conclusion::default()
                }
            }),
        );
        self.in_flight.push_back((bytes, durable));
        while self.in_flight.len() > PAGES_IN_FLIGHT
            || self.in_flight.iter().map(|(bytes, _)| bytes).sum::<usize>() > BYTES_IN_FLIGHT
        {
            if let Some((_, durable)) = self.in_flight.pop_front() {
                self.landed(durable).await?;
            }
        }
        Ok(())
    }

    pub(super) fn commit(
        &self,
        baggage: Baggage,
        conclude: crate::store::Conclude,
    ) -> Durable<Seen> {
        self.host.store.commit(Commit {
            unit: self.row.id,
            ticket: self.job.ticket,
            seen_at: self.host.clock.wall(),
            records: baggage.records,
            unlisted: baggage.unlisted,
            validators: baggage.validators,
            budgets: baggage.budgets,
            dedup: Dedup {
                walk_began: self.walk.started,
                most: self.stream.dedup.max,
                keep: self.stream.has_children,
            },
            conclude,
        })
    }

    /// Stores how the poll ended, and waits until that is durable.
    pub(super) async fn end(
        mut self: Box<Self>,
        ended: Ended,
        mut baggage: Baggage,
    ) -> Result<Report, StoreError> {
        let now = self.host.clock.wall();
        let cut = self.outcome(ended, now, &mut baggage);
        let ending = self.walk.ending(&self.guard);
        if cut.is_none() {
            self.conclude_walk(ending, &mut baggage)?;
        }
        let review = std::mem::take(&mut baggage.review);
        let forget_notes = std::mem::take(&mut baggage.forget);
        let so_far = self.so_far.clone();
        let before = self.before.clone();
        let mut walk = self.walk.clone();
        let state = self.state.clone();
        let stream = self.stream.clone();
        let side = self.side;
        // What was written while an earlier poll's walk waited is beyond its window.
        let asks_on =
            self.walk.taken_up && matches!(self.job.reason, Reason::SyncNow | Reason::Resync);
        let report: Arc<Mutex<(Report, Option<PollRow>)>> = Arc::default();
        let filled = report.clone();
        let row = self.poll_row(now);
        let span = Span {
            intended: self.job.intended,
            started: self.started,
            ended: now,
        };
        let durable = self.commit(
            baggage,
            Box::new(move |seen| {
                let mut so_far = lock(&so_far);
                so_far.add(seen);
                so_far.tell(&mut walk);
                let whole = before.plus(&so_far.tally);
                let concluded = match cut {
                    Some(cut) if side => cut.conclude_side(state, walk, whole, &stream),
                    Some(cut) => cut.conclude(state, walk, whole),
                    None if side => {
                        side_walked(state, &walk, ending, &stream, &whole, &so_far.lags, span)
                    }
                    None => {
                        let walked =
                            walked(state, &walk, ending, &stream, &whole, &so_far.lags, span);
                        Concluded {
                            more: walked.more || asks_on,
                            ..walked
                        }
                    }
                };
                let concluded = concluded.around(&stream.quiet);
                let (conclusion, made) = concluded.store(row, &so_far.tally, &stream.settings);
                *lock(&filled) = (made, conclusion.poll.clone());
                Conclusion {
                    review,
                    forget_notes,
                    ..conclusion
                }
            }),
        );
        self.in_flight.push_back((0, durable));
        self.land().await?;
        self.host.scheduler.store_works();
        let (report, row) = std::mem::take(&mut *lock(&report));
        if let Some(row) = row {
            let connector = self.connection.connector.name();
            self.host.meters.polled(connector, &row, &self.latencies);
        }
        Ok(report)
    }

    /// The walk has ended: what waited for that goes with its last page.
    fn conclude_walk(&mut self, ending: Ending, baggage: &mut Baggage) -> Result<(), StoreError> {
        for held in self.walk.doubles.release() {
            if let Some(hash) = unhex(&held.hash) {
                baggage.records.push(PreparedRecord {
                    id: held.id,
                    hash,
                    updated_at: held.updated_at,
                    deleted: held.deleted,
                    data: RecordData::Text(held.data.into()),
                });
            }
        }
        let unread = self.before.not_modified + lock(&self.so_far).tally.not_modified > 0;
        let cursor = self.stream.settings.stream.cursor;
        let settled = self.reviews.walked(&self.walk, ending, cursor, unread);
        baggage.review.extend(settled);
        let listed = std::mem::take(&mut self.listed);
        let store = &*self.host.store;
        baggage.unlisted = listed.missing(store, self.row.id, &self.stream, &self.walk, ending)?;
        if !baggage.unlisted.is_empty() {
            tracing::info!(
                unit = %self.row.key, records = baggage.unlisted.len(),
                "records are no longer listed: what is polled for them rests until they are"
            );
        }
        Ok(())
    }

    pub(super) fn poll_row(&self, now: Timestamp) -> PollRow {
        PollRow {
            unit: self.row.id,
            key: self.row.key.clone(),
            reason: self.walk.reason,
            window: self.walk.window,
            intended: Some(self.job.intended),
            started: self.started,
            ended: now,
            outcome: String::new(),
            class: None,
            code: None,
            // Shown where the poll itself has nothing to say.
            message: self.host.scheduler.pressure().why().map(str::to_owned),
            tally: Tally::default(),
            interval: 0,
            why: String::new(),
            polls: 1,
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
