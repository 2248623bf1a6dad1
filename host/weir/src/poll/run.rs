//! The walk: step after step until it ends, waits or fails.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weir_rules::interval::Span;
use weir_rules::model::{Class, Fault, Reason, Timestamp};
use weir_rules::unit::UnitState;
use weir_rules::wait::{Wait, late};
use weir_rules::walk::{Guard, Tally, Walk};
use weir_runtime::contract::{Request, Task};

use super::call::{Answered, Call, CallFailed, Read};
use super::end::{Concluded, walked};
use super::{Job, Outcome, Report, SHORT_WAIT};
use crate::connection::{Connection, Stream};
use crate::host::Host;
use crate::schedule::StoreFails;
use crate::status::Latencies;
use crate::store::{
    BudgetKey, BudgetRow, Commit, Conclusion, Durable, PollRow, PreparedRecord, Seen, StoreError,
    UnitRow, Validator, ValidatorKey,
};

/// Pages of one walk that may be on their way into the store. More would hold more memory and save no more fsyncs.
const PAGES_IN_FLIGHT: usize = 24;
/// And bytes of their bodies.
const BYTES_IN_FLIGHT: usize = 4 << 20;
/// Lags that are kept of one walk: enough for a 99th percentile.
const LAGS_KEPT: usize = 4_096;

/// Polls a unit once.
pub async fn poll(host: &Host, job: Job) -> Report {
    let row = match host.store.unit(job.unit) {
        Ok(Some(row)) => row,
        Ok(None) => return Report::default(),
        Err(error) => return store_failed(host, None, &error),
    };
    let key = row.key.clone();
    let Some(connection) = host.connections.get(&key.connection) else {
        return skipped(row, "its connection is not ready");
    };
    let Some(stream) = connection.streams.get(&key.stream).cloned() else {
        return skipped(row, "its stream is not polled");
    };
    if let Some(why) = host.sign_in.needed(&key.connection) {
        return Report {
            outcome: Outcome::NeedsSignIn,
            message: Some(why),
            ..skipped(row, "")
        };
    }
    Poll::new(host, job, row, connection, stream).run().await
}

fn skipped(row: UnitRow, why: &str) -> Report {
    Report {
        unit: Some(row.key),
        message: Some(why.to_owned()),
        ..Report::default()
    }
}

fn store_failed(host: &Host, key: Option<&crate::store::UnitKey>, error: &StoreError) -> Report {
    let unit = key.map(tracing::field::display);
    host.meters.not_stored();
    let now = host.clock.monotonic();
    let StoreFails { is_news, pause } = host.scheduler.store_fails(error, now);
    if is_news {
        tracing::error!(unit, %error, "poll not stored; it is made again until it can be");
    } else {
        tracing::debug!(unit, %error, "poll not stored");
    }
    Report {
        unit: key.cloned(),
        outcome: Outcome::Failed,
        message: Some(error.to_string()),
        due: Some(host.clock.wall().saturating_add(ms(pause))),
        ..Report::default()
    }
}

fn ms(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

/// How long a unit rests when the sinks do not keep up, in ms.
const SINK_PAUSE: i64 = 5_000;

/// What this poll has seen so far. Filled inside the store's transactions, in the order of the pages.
#[derive(Default)]
struct SoFar {
    tally: Tally,
    lags: Vec<i64>,
}

impl SoFar {
    fn add(&mut self, seen: &Seen) {
        self.tally.new += seen.new;
        self.tally.changed += seen.changed;
        self.tally.unchanged += seen.unchanged;
        self.tally.deleted += seen.deleted;
        let room = LAGS_KEPT.saturating_sub(self.lags.len());
        self.lags.extend(seen.lags.iter().take(room));
    }
}

/// One poll under way.
pub(super) struct Poll<'a> {
    pub(super) host: &'a Host,
    pub(super) job: Job,
    pub(super) row: UnitRow,
    pub(super) connection: Arc<Connection>,
    pub(super) stream: Arc<Stream>,
    /// The unit's state as it will be stored with the next page.
    pub(super) state: UnitState,
    pub(super) walk: Walk,
    guard: Guard,
    pub(super) task: Arc<Task>,
    pub(super) started: Timestamp,
    /// What the walk had seen when this poll took it up.
    before: Tally,
    so_far: Arc<Mutex<SoFar>>,
    /// How long its calls took.
    latencies: Latencies,
    in_flight: VecDeque<(usize, Durable<Seen>)>,
}

/// What goes into the store with one page.
#[derive(Default)]
pub(super) struct Baggage {
    pub(super) records: Vec<PreparedRecord>,
    pub(super) validators: Vec<(ValidatorKey, Option<Validator>)>,
    pub(super) budgets: Vec<(BudgetKey, BudgetRow)>,
    pub(super) bytes: usize,
}

/// How a poll ended, before it is stored.
pub(super) enum Ended {
    /// The walk has ended.
    Walked,
    /// Somebody asked for a pause.
    Waiting { until: Timestamp, why: String },
    /// A fault, and what its answer said about waiting.
    Fault { fault: Fault, wait: Option<Wait> },
    /// The host was told to stop.
    Stopped,
}

impl<'a> Poll<'a> {
    pub(super) fn new(
        host: &'a Host,
        job: Job,
        row: UnitRow,
        connection: Arc<Connection>,
        stream: Arc<Stream>,
    ) -> Self {
        let started = host.clock.wall();
        let mut state = row.state.clone();
        let walk = state.walk(&stream.settings, job.reason, started);
        let task = Task {
            stream: row.key.stream.clone(),
            partition: row.key.partition.clone(),
            parent: None,
            config: connection.config.to_string(),
            cursor: walk.cursor.clone(),
            window: walk.window.into(),
            reason: walk.reason.into(),
            now: state.clock.now(walk.started),
            page_size: walk.page_size,
        };
        Poll {
            host,
            job,
            row,
            connection,
            stream,
            state,
            before: walk.tally.clone(),
            walk,
            guard: Guard::default(),
            task: Arc::new(task),
            started,
            so_far: Arc::default(),
            latencies: Latencies::default(),
            in_flight: VecDeque::new(),
        }
    }

    async fn run(mut self) -> Report {
        let mut baggage = Baggage::default();
        let mut quiet = self.quiet_now();
        let ended = loop {
            if let Some(ended) = quiet.take() {
                break ended;
            }
            let ended = match self.next_page(&mut baggage).await {
                Ok(None) if self.walk.done() || self.walk.stalled => Some(Ended::Walked),
                Ok(None) if self.host.stop.stopped() => Some(Ended::Stopped),
                Ok(None) => None,
                Ok(Some(ended)) => Some(ended),
                Err(error) => return store_failed(self.host, Some(&self.row.key), &error),
            };
            if let Some(ended) = ended {
                break ended;
            }
            let now = self.host.clock.monotonic();
            self.host.scheduler.heartbeat(&self.job, now);
            if let Err(error) = self.hand_over(std::mem::take(&mut baggage)).await {
                // Nothing of this poll is trusted beyond what is stored; it starts again from there.
                return store_failed(self.host, Some(&self.row.key), &error);
            }
        };
        let (host, key) = (self.host, self.row.key.clone());
        match self.end(ended, baggage).await {
            Ok(report) => report,
            Err(error) => store_failed(host, Some(&key), &error),
        }
    }

    /// No poll begins in its stream's quiet hours, whoever asked for it.
    fn quiet_now(&self) -> Option<Ended> {
        let (until, why) = self.stream.quiet.end(self.started)?;
        Some(Ended::Waiting { until, why })
    }

    /// Takes the walk's current step.
    async fn next_page(&mut self, baggage: &mut Baggage) -> Result<Option<Ended>, StoreError> {
        let step = match self.walk.step() {
            Some(step) => step.map(str::to_owned),
            None => return Ok(None),
        };
        let request = match self.request(step.as_deref()).await {
            Ok(request) => request,
            Err(fault) => return Ok(Some(Ended::Fault { fault, wait: None })),
        };
        if let Some(ended) = self.room_for(&request).await {
            return Ok(Some(ended));
        }
        let Call { read, seen } = match self.call(step.as_deref(), request).await {
            Ok(call) => call,
            Err(CallFailed::Store(error)) => return Err(error),
            Err(CallFailed::Fault(fault)) => {
                return Ok(Some(Ended::Fault { fault, wait: None }));
            }
            Err(CallFailed::Repeat { until, why }) => {
                return Ok(Some(Ended::Waiting { until, why }));
            }
        };
        self.answered(&seen, baggage);
        match read {
            Read::Page {
                prepared,
                validator,
            } => {
                let full = prepared.records.len() as u64 >= u64::from(self.walk.page_size);
                if let Some(id) = &prepared.from_the_future {
                    tracing::warn!(
                        unit = %self.row.key, record = id,
                        "a record is stamped in the future: it is delivered, and moves no watermark"
                    );
                }
                let mut so_far = lock(&self.so_far);
                so_far.tally.records += prepared.records.len() as u64;
                so_far.tally.full_page |= full;
                drop(so_far);
                self.walk.page(prepared.facts(), &mut self.guard);
                // The vendor answers again; only a position that is lost again and again is not forgotten.
                let faults = &mut self.state.faults.counts;
                faults.retain(|class, _| *class == Class::PositionLost);
                self.state.faults.refreshed = false;
                baggage.records = prepared.into_records();
                baggage.validators.extend(validator);
                Ok(None)
            }
            Read::NotModified { key, mut validator } => {
                lock(&self.so_far).tally.not_modified += 1;
                validator.walk = self.walk.number;
                self.walk.poll_after = self.walk.poll_after.max(validator.poll_after);
                self.walk.not_modified(
                    validator.next.clone(),
                    validator.cursor.clone(),
                    &mut self.guard,
                );
                baggage.validators.push((key, Some(validator)));
                Ok(None)
            }
            Read::Fault { fault, wait } => {
                if self.skips(&fault, step.is_some()) {
                    tracing::warn!(
                        unit = %self.row.key, code = fault.code, message = fault.message,
                        "a step of the walk is refused for good: the walk goes on without it"
                    );
                    self.walk.skip(&mut self.guard);
                    return Ok(None);
                }
                Ok(Some(Ended::Fault { fault, wait }))
            }
        }
    }

    /// Waits until the budgets have room for a call, if that is soon.
    async fn room_for(&self, request: &Request) -> Option<Ended> {
        if self.host.scheduler.outbox_full() {
            return Some(Ended::Waiting {
                until: self.host.clock.wall().saturating_add(SINK_PAUSE),
                why: "the sinks do not keep up".to_owned(),
            });
        }
        while let Some((until, why)) = self.host.ledger.admit(self, request) {
            let now = self.host.clock.wall();
            let wait = until.saturating_sub(now).max(0).unsigned_abs();
            if wait > SHORT_WAIT {
                // A little later, so that all who wait for one reset do not come back together.
                let until = now.saturating_add_unsigned(late(wait, &mut *self.host.random.lock()));
                return Some(Ended::Waiting { until, why });
            }
            tokio::select! {
                biased;
                () = self.host.clock.sleep(Duration::from_millis(wait.max(1))) => {}
                () = self.host.stop.stopping() => return Some(Ended::Stopped),
            }
        }
        None
    }

    fn answered(&mut self, seen: &Answered, baggage: &mut Baggage) {
        let mut so_far = lock(&self.so_far);
        so_far.tally.calls += u64::from(seen.calls);
        so_far.tally.bytes += seen.bytes as u64;
        so_far.tally.latency = so_far.tally.latency.max(seen.latency);
        drop(so_far);
        self.latencies.merge(&seen.latencies);
        baggage.bytes = seen.bytes;
        baggage.budgets.extend(seen.budgets.iter().cloned());
    }

    /// A page goes into the store; the walk goes on meanwhile.
    async fn hand_over(&mut self, baggage: Baggage) -> Result<(), StoreError> {
        let bytes = baggage.bytes;
        let so_far = self.so_far.clone();
        let before = self.before.clone();
        let mut state = self.state.clone();
        let mut walk = self.walk.clone();
        let durable = self.commit(
            baggage,
            Box::new(move |seen| {
                let mut so_far = lock(&so_far);
                so_far.add(seen);
                walk.tally = before.plus(&so_far.tally);
                state.walk = Some(walk);
                Conclusion {
                    state,
                    ..Conclusion::default()
                }
            }),
        );
        self.in_flight.push_back((bytes, durable));
        while self.in_flight.len() > PAGES_IN_FLIGHT
            || self.in_flight.iter().map(|(bytes, _)| bytes).sum::<usize>() > BYTES_IN_FLIGHT
        {
            if let Some((_, durable)) = self.in_flight.pop_front() {
                durable.await.unwrap_or(Err(StoreError::Closed))?;
            }
        }
        Ok(())
    }

    fn commit(&self, baggage: Baggage, conclude: crate::store::Conclude) -> Durable<Seen> {
        self.host.store.commit(Commit {
            unit: self.row.id,
            ticket: self.job.ticket,
            seen_at: self.host.clock.wall(),
            records: baggage.records,
            validators: baggage.validators,
            budgets: baggage.budgets,
            conclude,
        })
    }

    /// Stores how the poll ended, and waits until that is durable.
    async fn end(mut self, ended: Ended, mut baggage: Baggage) -> Result<Report, StoreError> {
        let now = self.host.clock.wall();
        let outcome = self.outcome(ended, now, &mut baggage);
        let so_far = self.so_far.clone();
        let before = self.before.clone();
        let walk = self.walk.clone();
        let ending = walk.ending(&self.guard);
        let state = self.state.clone();
        let stream = self.stream.clone();
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
                let whole = before.plus(&so_far.tally);
                let concluded = match outcome {
                    Some(cut) => cut.conclude(state, walk, whole),
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
                let (conclusion, made) = concluded.store(row, &so_far.tally);
                *lock(&filled) = (made, conclusion.poll.clone());
                conclusion
            }),
        );
        self.in_flight.push_back((0, durable));
        while let Some((_, durable)) = self.in_flight.pop_front() {
            durable.await.unwrap_or(Err(StoreError::Closed))?;
        }
        self.host.scheduler.store_works();
        let (report, row) = std::mem::take(&mut *lock(&report));
        if let Some(row) = row {
            let connector = self.connection.connector.name();
            self.host.meters.polled(connector, &row, &self.latencies);
        }
        Ok(report)
    }

    fn poll_row(&self, now: Timestamp) -> PollRow {
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
            message: None,
            tally: Tally::default(),
            interval: 0,
            why: String::new(),
            polls: 1,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
