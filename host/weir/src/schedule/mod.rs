//! When which unit is polled, and that it is polled by one at a time.
//!
//! Promises:
//! - A unit is never polled twice at once, whoever asks: the queue holds one place and one lease for it. A lease
//!   without a sign of life runs out. Each has a ticket that is higher than any before it, over restarts too, and the
//!   store refuses the commits of an older one. (The store's file lock makes this process the only holder of leases,
//!   so they need not be stored: a crash ends them all.)
//! - No thread, slot or call is held by a unit that waits.
//! - Due times are stored by wall time and waited for by monotonic time: a clock that is set back or forward makes no
//!   poll late or early.
//! - A poll that panics costs that poll alone: its unit comes back later with the reason in the log.
//! - When the sinks do not keep up and the outbox reaches its bound, polling slows down; it rests at twice the bound
//!   ([`pressure`]).

pub mod pressure;
mod queue;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinSet;
use weir_rules::model::{Reason, Timestamp};

use crate::clock::Clock;
use crate::host::Host;
use crate::poll::{Job, Outcome, Report, poll};
use crate::store::{StoreError, Ticket, UnitId};

use pressure::Valve;

pub use pressure::Pressure;
pub use queue::{Asked, Held, Queue, Turn};

/// How long a unit rests after its poll panicked, in ms.
const AFTER_PANIC: i64 = 60_000;
/// How much longer than one call a lease lasts: for the connector, the store and a busy machine.
const LEASE_SPARE: Duration = Duration::from_secs(60);
/// How long units rest while the store fails, at least and at most: a full disk does not empty at once.
const STORE_PAUSE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));
/// How often the outbox is measured at most.
const MEASURE: Duration = Duration::from_secs(1);

/// The due queue, and what runs it.
pub struct Scheduler {
    queue: Mutex<Queue>,
    wake: Notify,
    /// Polls end; whoever waits for all of them to have ended looks again.
    ended: Notify,
    valve: Valve,
    on_demand: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
    /// Units of which a poll under way ends after its current page.
    recalled: Mutex<HashSet<UnitId>>,
}

/// The store fails.
struct Trouble {
    /// What it has last failed with.
    error: String,
    /// Since when, by the monotonic clock.
    since: Duration,
}

/// What a failure of the store means for a poll.
pub(crate) struct StoreFails {
    /// It is not the failure that everybody knows of.
    pub(crate) is_news: bool,
    /// For how long the poll's unit rests.
    pub(crate) pause: Duration,
}

impl Scheduler {
    /// A scheduler without units. `now` is this machine's time: tickets grow from it, so that they are higher than those
    /// of any earlier run. `call` is the longest that one call may take: a poll gives a sign of life after each.
    pub fn new(now: Timestamp, call: Duration) -> Scheduler {
        Scheduler {
            // A thousand polls of a unit a millisecond would be needed to outrun the clock.
            queue: Mutex::new(Queue::new(
                call.saturating_add(LEASE_SPARE),
                now.max(0).unsigned_abs().saturating_mul(1_000),
            )),
            wake: Notify::new(),
            ended: Notify::new(),
            valve: Valve::default(),
            on_demand: AtomicBool::new(false),
            trouble: Mutex::new(None),
            recalled: Mutex::default(),
        }
    }

    /// The queue itself, for those who place and remove units.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue has changed: look again.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Asks for a poll now.
    pub fn ask(&self, unit: UnitId, reason: Reason) -> (Asked, oneshot::Receiver<Report>) {
        let (waiter, report) = oneshot::channel();
        let asked = self.queue().ask(unit, reason, Some(waiter));
        self.wake();
        (asked, report)
    }

    /// From now on a unit is polled only when somebody asks, and not again when it falls due.
    pub fn only_on_demand(&self) {
        self.on_demand.store(true, Ordering::Relaxed);
    }

    /// Are units polled when they fall due?
    pub fn is_by_schedule(&self) -> bool {
        !self.on_demand.load(Ordering::Relaxed)
    }

    /// The store has failed. What polls bring meanwhile is thrown away, so they rest for as long as it has failed
    /// already, within [`STORE_PAUSE`].
    pub(crate) fn store_fails(&self, error: &StoreError, now: Duration) -> StoreFails {
        let error = error.to_string();
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let before = trouble.take();
        let since = before.as_ref().map_or(now, |before| before.since);
        let is_news = before.is_none_or(|before| before.error != error);
        *trouble = Some(Trouble { error, since });
        let (least, most) = STORE_PAUSE;
        StoreFails {
            is_news,
            pause: now.saturating_sub(since).clamp(least, most),
        }
    }

    /// What the store fails with, and for how long it has taken nothing.
    pub fn store_trouble(&self, now: Duration) -> Option<(String, Duration)> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let trouble = trouble.as_ref()?;
        Some((trouble.error.clone(), now.saturating_sub(trouble.since)))
    }

    /// The store has taken something.
    pub(crate) fn store_works(&self) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.take().is_some() {
            tracing::info!("the store takes records again");
        }
    }

    /// How far the sinks are behind.
    pub fn pressure(&self) -> Pressure {
        self.valve.pressure()
    }

    /// When the next poll may begin, by the monotonic clock: a moment that is over when somebody has asked for it; none
    /// when nothing is due, or while the outbox is full.
    pub fn next_start(&self, now: Duration) -> Option<Duration> {
        let next = self.queue().next_due()?;
        if next.is_zero() {
            return Some(next);
        }
        Some(next.max(self.valve.opens(now)?))
    }

    /// A poll of this unit that is under way ends after its current page, as if the host were told to stop; or none does
    /// any more.
    pub fn recall(&self, unit: UnitId, ends: bool) {
        let mut recalled = self.recalled.lock().unwrap_or_else(PoisonError::into_inner);
        if ends {
            recalled.insert(unit);
        } else {
            recalled.remove(&unit);
        }
    }

    /// Is a poll of this unit to end?
    pub fn is_recalled(&self, unit: UnitId) -> bool {
        let recalled = self.recalled.lock().unwrap_or_else(PoisonError::into_inner);
        recalled.contains(&unit)
    }

    /// Takes the unit's lease for something else than a poll, as soon as none is under way: one that is ends after its page.
    pub(crate) async fn hold(&self, unit: UnitId, clock: &dyn Clock) -> Held {
        loop {
            let ended = self.ended.notified();
            let held = self.queue().hold(unit, clock.monotonic());
            self.recall(unit, held == Held::Polled);
            if held != Held::Polled {
                return held;
            }
            ended.await;
        }
    }

    /// Gives the lease back; the unit takes these places in line.
    pub(crate) fn let_go(
        &self,
        unit: UnitId,
        ticket: Ticket,
        places: (Option<Duration>, Option<Duration>),
        report: &Report,
    ) {
        self.queue().finished(unit, ticket, places, report);
        self.ended.notify_waiters();
        self.wake();
    }

    /// A poll gives a sign of life.
    pub fn heartbeat(&self, job: &Job, now: Duration) {
        self.queue().heartbeat(job.unit, job.ticket, now);
    }
}

/// Runs polls as they fall due until the host stops, then waits for those in flight.
pub async fn run(host: Arc<Host>) {
    let slots = Arc::new(Semaphore::new(host.config.host.concurrency));
    // Ends with this future, however that ends.
    let mut gauge = JoinSet::new();
    gauge.spawn(self::gauge(host.clone()));
    while !host.stop.stopped() {
        start_turns(&host, &slots);
        let now = host.clock.monotonic();
        // Without a free slot or room in the outbox the end of a poll, or the gauge, wakes us.
        let next = host.scheduler.next_start(now);
        let pause = match next.filter(|_| slots.available_permits() > 0) {
            Some(next) => next.saturating_sub(now),
            None => Duration::from_secs(3600),
        };
        tokio::select! {
            biased;
            () = host.clock.sleep(pause) => {}
            () = host.scheduler.wake.notified() => {}
            () = host.stop.stopping() => {}
        }
    }
    gauge.abort_all();
    loop {
        let ended = host.scheduler.ended.notified();
        if host.scheduler.queue().running() == 0 {
            return;
        }
        ended.await;
    }
}

fn start_turns(host: &Arc<Host>, slots: &Arc<Semaphore>) {
    loop {
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            return;
        };
        let now = host.clock.monotonic();
        let Some(turn) = next_turn(&host.scheduler, now) else {
            return;
        };
        let host = host.clone();
        // Boxed: a poll's future has several KiB, and spawning moves it from place to place.
        tokio::spawn(Box::pin(async move {
            let (unit, ticket) = (turn.unit, turn.ticket);
            let report = run_turn(&host, turn).await;
            let by_schedule = host.scheduler.is_by_schedule();
            let place = |due: Option<Timestamp>| {
                let due = due.filter(|_| by_schedule);
                due.map(|due| on_monotonic(&host, due))
            };
            let places = (place(report.due), place(report.side_due));
            host.scheduler
                .queue()
                .finished(unit, ticket, places, &report);
            drop(slot);
            host.scheduler.wake();
            host.scheduler.ended.notify_waiters();
        }));
    }
}

/// The next poll that may begin. Under pressure whoever asks is told that the sinks do not keep up, by a poll that makes
/// no call; what is due begins as the valve lets it.
fn next_turn(scheduler: &Scheduler, now: Duration) -> Option<Turn> {
    let mut queue = scheduler.queue();
    if scheduler.pressure() == Pressure::None {
        return queue.next(now);
    }
    if let Some(asked) = queue.next_asked(now) {
        return Some(asked);
    }
    let opens = scheduler.valve.opens(now)?;
    // Taking a turn begins it, so the valve is looked at first.
    let due = if opens <= now { queue.next(now) } else { None };
    if due.is_some() {
        scheduler.valve.passed(now);
    }
    due
}

async fn run_turn(host: &Arc<Host>, turn: Turn) -> Report {
    let wall = host.clock.wall();
    let late = i64::try_from(turn.late.as_millis()).unwrap_or(i64::MAX);
    let job = Job {
        unit: turn.unit,
        reason: turn.reason,
        ticket: turn.ticket,
        intended: wall.saturating_sub(late),
    };
    let polled = caught(poll(host, job)).await;
    polled.unwrap_or_else(|Panicked(error)| {
        tracing::error!(
            unit = turn.unit.0,
            error,
            "a poll broke down; this is a fault of weir"
        );
        Report {
            outcome: Outcome::Failed,
            message: Some("the poll broke down; the log has the reason".to_owned()),
            due: Some(host.clock.wall().saturating_add(AFTER_PANIC)),
            ..Report::default()
        }
    })
}

/// Work that broke down, and what it said.
struct Panicked(String);

/// A panic ends the work and nothing else.
async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| {
        // After a panic the work is not polled again, only dropped.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(said) => {
                let text = said.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| said.downcast_ref::<String>().cloned());
                std::task::Poll::Ready(Err(Panicked(text.unwrap_or_default())))
            }
        }
    })
    .await
}

/// A stored due time, as a moment of the monotonic clock.
pub fn on_monotonic(host: &Host, due: Timestamp) -> Duration {
    let wait = due.saturating_sub(host.clock.wall()).max(0).unsigned_abs();
    host.clock
        .monotonic()
        .saturating_add(Duration::from_millis(wait))
}

/// Keeps an eye on what waits for the sinks, and on polls that are lost. A host in which nothing happens is not woken.
async fn gauge(host: Arc<Host>) {
    let mut end = host.store.outbox_end();
    loop {
        end.mark_unchanged();
        measure_outbox(&host);
        give_up_lost(&host);
        host.clock.sleep(MEASURE).await;
        if host.scheduler.pressure() != Pressure::None {
            continue;
        }
        let now = host.clock.monotonic();
        let next = host.scheduler.queue().next_expiry(now);
        tokio::select! {
            biased;
            _ = end.changed() => {}
            () = host.clock.sleep(next.saturating_sub(now)) => {}
        }
    }
}

fn measure_outbox(host: &Host) {
    let Ok(size) = host.store.outbox_size() else {
        return;
    };
    let pressure = Pressure::of(size.bytes, host.config.host.outbox);
    let before = host.scheduler.valve.set(pressure);
    if pressure.why() == before.why() {
        return;
    }
    match pressure.why() {
        Some(why) => {
            let bound = host.config.host.outbox;
            tracing::warn!(bytes = size.bytes, bound, "{why}");
        }
        None => tracing::info!("the sinks have caught up: polling goes on"),
    }
    host.scheduler.wake();
}

/// Polls that gave no sign of life are given up.
fn give_up_lost(host: &Host) {
    let report = Report {
        outcome: Outcome::Failed,
        message: Some("the poll gave no sign of life and was given up".to_owned()),
        ..Report::default()
    };
    let lost = host
        .scheduler
        .queue()
        .expire(host.clock.monotonic(), &report);
    for unit in lost {
        tracing::error!(
            unit = unit.0,
            "a poll gave no sign of life; its unit is polled again"
        );
        host.scheduler.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_the_store_fails_units_rest_longer_and_longer_and_it_is_said_once() {
        let scheduler = Scheduler::new(0, Duration::from_secs(60));
        let fails = |error: &StoreError, now| {
            let StoreFails { is_news, pause } =
                scheduler.store_fails(error, Duration::from_secs(now));
            (is_news, pause.as_secs())
        };
        let full = StoreError::Full {
            path: "weir.redb".into(),
        };
        assert_eq!(fails(&full, 100), (true, 5));
        assert_eq!(fails(&full, 105), (false, 5));
        assert_eq!(fails(&full, 130), (false, 30));
        assert_eq!(fails(&StoreError::Closed, 131), (true, 31));
        assert_eq!(fails(&full, 900), (true, 60));
        scheduler.store_works();
        assert_eq!(fails(&full, 901), (true, 5));
    }
}
