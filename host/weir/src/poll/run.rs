//! The walk: step after step until it ends, waits or fails.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_rules::fault::FaultHistory;
use weir_rules::model::{Fault, Order, Reason, Timestamp};
use weir_rules::unit::UnitState;
use weir_rules::wait::{Wait, late};
use weir_rules::walk::{Guard, Tally, Walk};
use weir_runtime::contract::{Request, Task};

use super::handover::{Baggage, SoFar, lock};
use super::listed::Listed;
use super::reviews::Reviews;
use super::side::is_aside;
use super::sweep::sweep;
use super::unstored::{not_stored, skipped, store_failed};
use super::{Job, Outcome, Report, SHORT_WAIT};
use crate::connection::{Connection, Stream};
use crate::host::Host;
use crate::schedule::Pressure;
use crate::status::Latencies;
use crate::store::{Durable, Seen, ShownAnswer, StoreError, UnitRow};

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

/// How long a unit rests when the sinks do not keep up, in ms.
const SINK_PAUSE: u64 = 5_000;

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
    pub(super) guard: Guard,
    pub(super) task: Arc<Task>,
    pub(super) started: Timestamp,
    /// What the walk had seen when this poll took it up.
    pub(super) before: Tally,
    pub(super) so_far: Arc<Mutex<SoFar>>,
    /// How long its calls took.
    pub(super) latencies: Latencies,
    /// What was seen up to the last page of a walk that is matched with what is known.
    matched: Tally,
    pub(super) in_flight: VecDeque<(usize, Durable<Seen>)>,
    /// What waits for a person.
    pub(super) reviews: Reviews,
    /// What the walk has met, where other streams hang below this one.
    pub(super) listed: Listed,
    /// Where the key of the current step's call is kept, when that call has an effect.
    pub(super) write: Option<String>,
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
    pub(super) fn fault(fault: Fault) -> Ended {
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
        let listed = Listed::of(&stream, &walk, side);
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
            listed,
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

    /// The unit's main walk is due, or others of its connection wait for this side walk's place. One that would lose its
    /// step by that makes room for people alone.
    fn gives_way(&self) -> bool {
        let now = self.host.clock.monotonic();
        let queue = self.host.scheduler.queue();
        self.side
            && if self.state.holds_on() {
                queue.is_asked_for(self.row.id)
            } else {
                queue.wants_back(self.row.id, now)
            }
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

    /// Waits until the budgets have room for a call, if that is soon.
    pub(super) async fn room_for(&self, request: &Request) -> Option<Ended> {
        if let Some(ended) = self.held_back() {
            return Some(ended);
        }
        let ledger = &self.host.ledger;
        let mut place = None;
        loop {
            let now = self.host.clock.wall();
            let from_now = |until: Timestamp| until.saturating_sub(now).max(0).unsigned_abs();
            let wait = match ledger.first_in_line(self, request, place.as_ref()) {
                // A little after them.
                Some(first) => {
                    let wait = from_now(first.until).min(SHORT_WAIT) + 1;
                    if place.is_none() {
                        place = Some(ledger.line_up_behind(self, first));
                    }
                    wait
                }
                None => {
                    let full = ledger.admit(self, request)?;
                    let wait = from_now(full.until);
                    if wait > SHORT_WAIT {
                        // A little later, so that all who wait for one reset do not come back together.
                        let wait = late(wait, &mut *self.host.random.lock());
                        let until = now.saturating_add_unsigned(wait);
                        return Some(Ended::Waiting {
                            until,
                            why: full.why,
                        });
                    }
                    place = Some(ledger.line_up(self, &full));
                    wait
                }
            };
            tokio::select! {
                biased;
                () = self.host.clock.sleep(Duration::from_millis(wait.max(1))) => {}
                () = self.host.stop.stopping() => return Some(Ended::Stopped),
            }
            // Many short waits may follow each other where others take what comes free: the lease must outlast them all.
            let now = self.host.clock.monotonic();
            self.host.scheduler.heartbeat(&self.job, now);
        }
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
}
