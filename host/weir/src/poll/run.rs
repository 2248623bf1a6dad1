//! The walk: step after step until it ends, waits or fails.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weir_rules::doubles::Held;
use weir_rules::fault::FaultHistory;
use weir_rules::interval::Span;
use weir_rules::model::{Class, CursorKind, Fault, Order, Reason, Timestamp};
use weir_rules::unit::{Last, Parked, UnitState};
use weir_rules::wait::{Wait, late};
use weir_rules::walk::{Ending, Guard, Tally, Walk};
use weir_runtime::contract::{Request, Task};

use super::aside::Aside;
use super::call::{Answered, Call, CallFailed, Read};
use super::end::{Concluded, walked};
use super::reviews::{NoRoom, Reviews};
use super::side::{is_aside, side_walked};
use super::{Job, Outcome, Report, SHORT_WAIT};
use crate::connection::{Connection, Stream};
use crate::host::Host;
use crate::schedule::{Pressure, StoreFails};
use crate::status::Latencies;
use crate::store::{
    BudgetKey, BudgetRow, Commit, Conclusion, Dedup, Durable, PollRow, PreparedRecord, RecordData,
    ReviewChange, ReviewEntry, ReviewId, ReviewKind, Seen, ShownAnswer, StoreError, UnitRow,
    Validator, ValidatorKey, hex, unhex,
};

/// Pages of one walk that may be on their way into the store. More would hold more memory and save no more fsyncs.
const PAGES_IN_FLIGHT: usize = 24;
/// And bytes of their bodies.
const BYTES_IN_FLIGHT: usize = 4 << 20;
/// Lags that are kept of one walk: enough for a 99th percentile.
const LAGS_KEPT: usize = 4_096;
/// Records of which one walk shows several versions, and is told.
const DOUBLES_KEPT: usize = 256;

/// Polls a unit once.
pub async fn poll(host: &Host, job: Job) -> Report {
    let row = match host.store.unit(job.unit) {
        Ok(Some(row)) => row,
        Ok(None) => return Report::default(),
        Err(error) => return store_failed(host, None, &error),
    };
    let key = row.key.clone();
    let known = host.connections.get(&key.connection);
    if known.is_some_and(|connection| connection.reads_files)
        && let Err(error) = host.renew_secrets(&key.connection).await
    {
        return store_failed(host, Some(&key), &error);
    }
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
    let reviews = match Reviews::load(&*host.store, row.id, &key) {
        Ok(reviews) => reviews,
        Err(error) => return store_failed(host, Some(&key), &error),
    };
    let poll = match Poll::new(host, job.clone(), row, connection, stream.clone(), reviews) {
        Ok(poll) => poll,
        Err(report) => return *report,
    };
    let report = poll.run().await;
    if report.outcome.is_good() && stream.dedup.retain.is_some() {
        sweep(host, &job, &stream).await;
    }
    report
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

/// A page did not get into the store. Where that is for the number of records, waiting does not mend it.
async fn not_stored(host: &Host, row: PollRow, error: StoreError) -> Report {
    if !matches!(error, StoreError::TooManyRecords { .. }) {
        return store_failed(host, Some(&row.key), &error);
    }
    let now = host.clock.wall();
    let (class, code) = (Class::Permanent, "dedup.max".to_owned());
    let message = error.to_string();
    tracing::error!(unit = %row.key, message, "the unit is parked");
    let id = ReviewId {
        unit: row.unit,
        kind: ReviewKind::Parked,
        number: 0,
    };
    let entry = ReviewEntry {
        id,
        key: row.key.clone(),
        first: now,
        last: now,
        times: 1,
        class: Some(class),
        code: code.clone(),
        message: message.clone(),
        answer: None,
        record: None,
        dropped: false,
    };
    let report = Report {
        unit: Some(row.key.clone()),
        outcome: Outcome::Parked,
        class: Some(class),
        message: Some(message.clone()),
        ..Report::default()
    };
    let (unit, key) = (row.unit, row.key.clone());
    let row = PollRow {
        ended: now,
        outcome: Outcome::Parked.name().to_owned(),
        class: Some(class),
        code: Some(code.clone()),
        message: Some(message.clone()),
        why: message.clone(),
        ..row
    };
    let parked = host.store.update_unit(
        unit,
        Box::new(move |mut state| {
            state.last = Some(Last {
                ended: now,
                outcome: row.outcome.clone(),
                message: Some(message.clone()),
                unkept: None,
            });
            state.parked = Some(Parked {
                since: now,
                class,
                code,
                message,
                given_up: false,
            });
            Conclusion {
                state,
                due: Some(None),
                poll: Some(row),
                review: vec![(id, Some(Box::new(entry)))],
                ..Conclusion::default()
            }
        }),
    );
    match parked.await.unwrap_or(Err(StoreError::Closed)) {
        Ok(()) => report,
        Err(error) => store_failed(host, Some(&key), &error),
    }
}

/// How often records are looked through that may be forgotten: this part of the time that they are kept, and never more
/// often than this many ms.
const SWEEPS_PER_RETAIN: u64 = 8;
const SWEEP_PAUSE: u64 = 3_600_000;
/// Records that are looked at in one transaction.
const SWEPT_AT_ONCE: usize = 10_000;

/// Forgets what `dedup.retain` does not ask to be kept, and no poll will read again: what lies so far before the newest
/// record that neither the overlap nor the settle pass reaches it.
async fn sweep(host: &Host, job: &Job, stream: &Stream) {
    let Some(retain) = stream.dedup.retain else {
        return;
    };
    let Ok(Some(UnitRow { state, key, .. })) = host.store.unit(job.unit) else {
        return;
    };
    let now = host.clock.wall();
    let pause = (retain / SWEEPS_PER_RETAIN).max(SWEEP_PAUSE);
    let lately = |at: Timestamp| now < at.saturating_add_unsigned(pause) && at <= now;
    if !state.synced || state.swept.is_some_and(lately) {
        return;
    }
    let settings = &stream.settings;
    let newest = match settings.stream.cursor {
        CursorKind::Timestamp => state.watermark,
        CursorKind::Opaque => Some(now),
        CursorKind::Snapshot => None,
    };
    let Some(newest) = newest else { return };
    let read_again = state
        .overlap(settings)
        .saturating_mul(2)
        .saturating_add(settings.stream.settle.unwrap_or(0));
    let before = newest
        .min(now)
        .saturating_sub_unsigned(retain.max(read_again));
    let (mut after, mut forgotten) = (None, 0);
    loop {
        let slice = host
            .store
            .forget_older(job.unit, before, after, SWEPT_AT_ONCE);
        match slice.await.unwrap_or(Err(StoreError::Closed)) {
            Ok(swept) => {
                forgotten += swept.forgotten;
                after = swept.next;
            }
            // The next good poll tries again.
            Err(error) => return tracing::debug!(unit = %key, %error, "nothing was forgotten"),
        }
        host.scheduler.heartbeat(job, host.clock.monotonic());
        if after.is_none() || host.stop.stopped() {
            break;
        }
    }
    tracing::debug!(unit = %key, forgotten, "records that are not read again were forgotten");
    drop(host.store.update_unit(
        job.unit,
        Box::new(move |mut state| {
            state.swept = Some(now);
            Conclusion {
                state,
                ..Conclusion::default()
            }
        }),
    ));
}

fn ms(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

/// How long a unit rests when the sinks do not keep up, in ms.
const SINK_PAUSE: u64 = 5_000;

/// What this poll has seen so far. Filled inside the store's transactions, in the order of the pages.
#[derive(Default)]
struct SoFar {
    tally: Tally,
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
    /// The walk is a side walk: a settle pass or a backfill.
    pub(super) side: bool,
    guard: Guard,
    pub(super) task: Arc<Task>,
    pub(super) started: Timestamp,
    /// What the walk had seen when this poll took it up.
    before: Tally,
    so_far: Arc<Mutex<SoFar>>,
    /// How long its calls took.
    latencies: Latencies,
    /// What was seen up to the last page of a walk that is matched with what is known.
    matched: Tally,
    in_flight: VecDeque<(usize, Durable<Seen>)>,
    /// What waits for a person.
    pub(super) reviews: Reviews,
    /// Where the key of the current step's call is kept, when that call has an effect.
    pub(super) write: Option<String>,
}

/// What goes into the store with one page.
#[derive(Default)]
pub(super) struct Baggage {
    pub(super) records: Vec<PreparedRecord>,
    pub(super) validators: Vec<(ValidatorKey, Option<Validator>)>,
    pub(super) budgets: Vec<(BudgetKey, BudgetRow)>,
    pub(super) review: Vec<ReviewChange>,
    /// Notes that are of no use any more.
    pub(super) forget: Vec<String>,
    pub(super) bytes: usize,
}

/// A fault as it was met.
pub(super) struct FaultSeen {
    pub(super) fault: Fault,
    /// What its answer said about waiting.
    pub(super) wait: Option<Wait>,
    /// The answer's status, where there was an answer.
    pub(super) status: Option<u16>,
    /// The answer, without secrets.
    pub(super) answer: Option<ShownAnswer>,
}

impl FaultSeen {
    /// One of which there is nothing more to tell.
    pub(super) fn of(fault: Fault) -> FaultSeen {
        FaultSeen {
            fault,
            wait: None,
            status: None,
            answer: None,
        }
    }
}

impl Ended {
    fn fault(fault: Fault) -> Ended {
        Ended::Fault(Box::new(FaultSeen::of(fault)))
    }
}

/// How a poll ended, before it is stored.
pub(super) enum Ended {
    /// The walk has ended.
    Walked,
    /// Somebody asked for a pause.
    Waiting { until: Timestamp, why: String },
    /// A fault.
    Fault(Box<FaultSeen>),
    /// The host was told to stop.
    Stopped,
    /// The unit's main walk is due.
    GaveWay,
}

impl<'a> Poll<'a> {
    pub(super) fn new(
        host: &'a Host,
        job: Job,
        row: UnitRow,
        connection: Arc<Connection>,
        stream: Arc<Stream>,
        reviews: Reviews,
    ) -> Result<Box<Self>, Box<Report>> {
        let started = host.clock.wall();
        let mut state = row.state.clone();
        let side = is_aside(job.reason);
        let walk = if side {
            let Some(walk) = state.side_walk(&stream.settings, started) else {
                let side_due = row.state.side_due(&stream.settings, started);
                return Err(Box::new(Report {
                    side_due: side_due.filter(|due| *due > started),
                    ..skipped(row, "it has nothing to fill and nothing to look at again")
                }));
            };
            walk
        } else {
            state.walk(&stream.settings, job.reason, started)
        };
        let (partition, parent) = match &stream.parent {
            None => (row.key.partition.clone(), None),
            Some(above) => match host.parent_of(row.id) {
                Ok(Some((id, text))) => (Some(id), Some(text)),
                Ok(None) => {
                    let why = format!("its record of {above} is gone");
                    return Err(Box::new(skipped(row, &why)));
                }
                Err(error) => return Err(Box::new(store_failed(host, Some(&row.key), &error))),
            },
        };
        let task = Task {
            stream: row.key.stream.clone(),
            partition,
            parent,
            config: connection.config.to_string(),
            cursor: walk.cursor.clone(),
            window: walk.window.into(),
            reason: walk.reason.into(),
            now: state.clock.now(walk.started),
            page_size: walk.page_size,
        };
        Ok(Box::new(Poll {
            host,
            job,
            row,
            connection,
            stream,
            state,
            before: walk.tally.clone(),
            walk,
            side,
            guard: Guard::default(),
            task: Arc::new(task),
            started,
            so_far: Arc::default(),
            latencies: Latencies::default(),
            matched: Tally::default(),
            in_flight: VecDeque::new(),
            reviews,
            write: None,
        }))
    }

    /// The faults in a row of the walk under way.
    pub(super) fn faults(&self) -> &FaultHistory {
        if self.side {
            &self.state.side.faults
        } else {
            &self.state.faults
        }
    }

    /// The unit's main walk is due, or others of its connection wait for this side walk's place.
    fn gives_way(&self) -> bool {
        let now = self.host.clock.monotonic();
        self.side && self.host.scheduler.queue().wants_back(self.row.id, now)
    }

    async fn run(mut self: Box<Self>) -> Report {
        let mut baggage = Baggage::default();
        let mut quiet = self.quiet_now();
        let ended = loop {
            if let Some(ended) = quiet.take() {
                break ended;
            }
            let ended = match self.next_page(&mut baggage).await {
                Ok(None) if self.walk.done() || self.walk.stalled => Some(Ended::Walked),
                Ok(None) if self.host.stop.stopped() || self.is_recalled() => Some(Ended::Stopped),
                Ok(None) if self.gives_way() => Some(Ended::GaveWay),
                Ok(None) => None,
                Ok(Some(ended)) => Some(ended),
                Err(error) => return self.not_stored(error).await,
            };
            #[cfg(feature = "planted")]
            self.break_rules(&mut baggage);
            if let Some(ended) = ended {
                break ended;
            }
            let now = self.host.clock.monotonic();
            self.host.scheduler.heartbeat(&self.job, now);
            if let Err(error) = self.hand_over(std::mem::take(&mut baggage)).await {
                // Nothing of this poll is trusted beyond what is stored; it starts again from there.
                return self.not_stored(error).await;
            }
            match self.has_met_the_known().await {
                Ok(true) => self.walk.enough(),
                Ok(false) => {}
                Err(error) => return self.not_stored(error).await,
            }
            if self.walk.done() {
                break Ended::Walked;
            }
        };
        let (host, row) = (self.host, self.poll_row(self.started));
        match self.end(ended, baggage).await {
            Ok(report) => report,
            Err(error) => not_stored(host, row, error).await,
        }
    }

    /// No poll begins in its stream's quiet hours, whoever asked for it.
    fn quiet_now(&self) -> Option<Ended> {
        let (until, why) = self.stream.quiet.end(self.started)?;
        Some(Ended::Waiting { until, why })
    }

    fn is_recalled(&self) -> bool {
        self.host.scheduler.is_recalled(self.row.id)
    }

    async fn not_stored(&self, error: StoreError) -> Report {
        not_stored(self.host, self.poll_row(self.started), error).await
    }

    /// A walk that left out the unit's position on purpose has come to a page of which all is known: the rest is, too,
    /// since the newest is listed first.
    async fn has_met_the_known(&mut self) -> Result<bool, StoreError> {
        let order = self.state.order(&self.stream.settings);
        if !self.walk.unanchored || order != Order::Descending {
            return Ok(false);
        }
        let before = self.matched.clone();
        self.land().await?;
        let so_far = lock(&self.so_far).tally.clone();
        self.matched = so_far.clone();
        Ok(so_far.unchanged > before.unchanged
            && (so_far.new, so_far.changed) == (before.new, before.changed))
    }

    /// Waits until every page that was handed over is durable.
    async fn land(&mut self) -> Result<(), StoreError> {
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

    /// Takes the walk's current step.
    async fn next_page(&mut self, baggage: &mut Baggage) -> Result<Option<Ended>, StoreError> {
        let step = match self.walk.step() {
            Some(step) => step.map(str::to_owned),
            None => return Ok(None),
        };
        let request = match self.request(step.as_deref()).await {
            Ok(request) => request,
            Err(fault) => return Ok(Some(Ended::fault(fault))),
        };
        if let Some(ended) = self.room_for(&request).await {
            return Ok(Some(ended));
        }
        let Call { read, seen } = match self.call(step.as_deref(), request).await {
            Ok(call) => call,
            Err(CallFailed::Store(error)) => return Err(error),
            Err(CallFailed::Fault(fault)) => {
                return Ok(Some(Ended::fault(fault)));
            }
            Err(CallFailed::Repeat { until, why }) => {
                return Ok(Some(Ended::Waiting { until, why }));
            }
        };
        self.answered(&seen, baggage);
        match read {
            Read::Page {
                mut prepared,
                validator,
            } => {
                let full = prepared.arrived() >= u64::from(self.walk.page_size);
                let set_aside = prepared.aside.len() as u64;
                if let Some(id) = &prepared.from_the_future {
                    tracing::warn!(
                        unit = %self.row.key, record = id,
                        "a record is stamped in the future: it is delivered, and moves no watermark"
                    );
                }
                if let Some(ended) = self.set_aside(std::mem::take(&mut prepared.aside), baggage)? {
                    return Ok(Some(ended));
                }
                let feed = self.stream.settings.stream.cursor == CursorKind::Snapshot;
                self.walk.page(prepared.facts(feed), &mut self.guard);
                let mut so_far = lock(&self.so_far);
                so_far.tally.records += prepared.records.len() as u64;
                so_far.tally.set_aside += set_aside;
                so_far.tally.full_page |= full;
                drop(so_far);
                let settings = &self.stream.settings;
                let order = if self.walk.watch.inversion.is_some() {
                    Order::Unordered
                } else {
                    self.state.order(settings)
                };
                if self
                    .walk
                    .beyond(order, prepared.oldest, prepared.newest.seen)
                {
                    self.walk.enough();
                }
                // The vendor answers again; only a position that is lost again and again is not forgotten.
                let faults = if self.side {
                    &mut self.state.side.faults
                } else {
                    &mut self.state.faults
                };
                faults
                    .counts
                    .retain(|class, _| *class == Class::PositionLost);
                faults.refreshed = false;
                let records = prepared.into_records();
                baggage.review.extend(self.reviews.taken(&records));
                baggage.records = self.hold_early(records);
                baggage.validators.extend(validator);
                baggage.forget.extend(self.write.take());
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
            Read::Fault(seen) if self.is_past_the_end(&seen.fault, seen.status, step.is_some()) => {
                baggage.forget.extend(self.write.take());
                self.walk.past_the_end(&mut self.guard);
                Ok(None)
            }
            Read::Fault(seen) if self.skips(&seen.fault, step.is_some()) => {
                let FaultSeen {
                    fault,
                    answer,
                    status,
                    ..
                } = *seen;
                tracing::warn!(
                    unit = %self.row.key, code = fault.code, message = fault.message,
                    "a step of the walk is refused for good: the walk goes on without it"
                );
                let now = self.host.clock.wall();
                let change = self.reviews.fault(ReviewKind::Skipped, &fault, answer, now);
                baggage.review.push(change);
                baggage.forget.extend(self.write.take());
                let at_cap = matches!(status, Some(400 | 416 | 422)) && self.walk.last_full;
                self.walk.skip(at_cap, &mut self.guard);
                Ok(None)
            }
            Read::Fault(seen) => Ok(Some(Ended::Fault(seen))),
        }
    }

    /// Sets records aside for a person.
    fn set_aside(
        &mut self,
        aside: Vec<Aside>,
        baggage: &mut Baggage,
    ) -> Result<Option<Ended>, StoreError> {
        let now = self.host.clock.wall();
        for aside in aside {
            let redactor = &self.connection.redactor;
            match self.reviews.aside(&*self.host.store, aside, now, redactor) {
                Ok(change) => baggage.review.extend(change),
                Err(NoRoom::Full(fault)) => return Ok(Some(Ended::fault(fault))),
                Err(NoRoom::Store(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Versions of records that another one followed within the last walk wait until this one has ended.
    fn hold_early(&mut self, mut records: Vec<PreparedRecord>) -> Vec<PreparedRecord> {
        if self.state.doubles.is_empty() {
            return records;
        }
        let (doubles, walk) = (&self.state.doubles, &mut self.walk);
        records.retain(|record| {
            if !doubles.knows(&record.id) {
                return true;
            }
            let hash = hex(&record.hash);
            if !doubles.is_early(&record.id, &hash) {
                walk.doubles.seen(&record.id);
                return true;
            }
            let held = Held {
                id: record.id.clone(),
                hash,
                updated_at: record.updated_at,
                deleted: record.deleted,
                data: record.data.as_str().to_owned(),
            };
            walk.doubles.hold(held).is_err()
        });
        records
    }

    /// Waits until the budgets have room for a call, if that is soon.
    async fn room_for(&self, request: &Request) -> Option<Ended> {
        if let Some(ended) = self.held_back() {
            return Some(ended);
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
            // Many short waits may follow each other where others take what comes free: the lease must outlast them all.
            let now = self.host.clock.monotonic();
            self.host.scheduler.heartbeat(&self.job, now);
        }
        None
    }

    /// What it means for the next call of this poll that the sinks are behind.
    fn held_back(&self) -> Option<Ended> {
        let pressure = self.host.scheduler.pressure();
        let why = pressure.why()?;
        let pause = match pressure {
            Pressure::Slow { pause } => {
                // The schedule has let it begin for one call.
                let first = lock(&self.so_far).tally.calls == 0;
                if first && self.job.reason == Reason::Schedule {
                    return None;
                }
                pause
            }
            Pressure::Full | Pressure::None => SINK_PAUSE,
        };
        Some(Ended::Waiting {
            until: self.host.clock.wall().saturating_add_unsigned(pause),
            why: why.to_owned(),
        })
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
    async fn end(
        mut self: Box<Self>,
        ended: Ended,
        mut baggage: Baggage,
    ) -> Result<Report, StoreError> {
        let now = self.host.clock.wall();
        let cut = self.outcome(ended, now, &mut baggage);
        let ending = self.walk.ending(&self.guard);
        if cut.is_none() {
            self.conclude_walk(ending, &mut baggage);
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
    fn conclude_walk(&mut self, ending: Ending, baggage: &mut Baggage) {
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
            // Shown where the poll itself has nothing to say.
            message: self.host.scheduler.pressure().why().map(str::to_owned),
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
