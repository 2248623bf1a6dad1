//! The due queue: which unit is polled next.
//!
//! A pure structure over monotonic time. It holds for every unit at most one place in line and at most one lease,
//! whoever asked: the schedule, a person, a backfill. A person's request goes first; a second request for a unit
//! that is being polled joins that poll. Units of a connection that is at its limit of calls in flight stand aside
//! until one of its polls has ended, and keep their turn. A poll that gives no sign of life for the length of a lease
//! is given up: its unit takes its place again, and what the lost poll may still bring is refused by its ticket.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::sync::oneshot;
use weir_rules::lease::Lease;
use weir_rules::model::Reason;

use crate::poll::Report;
use crate::store::{Ticket, UnitId};

/// Someone who waits for a poll's report.
type Waiter = oneshot::Sender<Report>;

/// A unit that is to be polled now.
#[derive(Debug, PartialEq, Eq)]
pub struct Turn {
    /// The unit.
    pub unit: UnitId,
    /// The lease under which it is polled.
    pub ticket: Ticket,
    /// Who asked.
    pub reason: Reason,
    /// How long it has been due, by the monotonic clock.
    pub late: Duration,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is next in line.
    Queued,
    /// A poll of the unit is under way; its report answers.
    Joined,
    /// There is no such unit.
    Unknown,
}

/// What became of the wish to hold a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nobody polls it until its lease is given back.
    Here {
        /// The lease.
        ticket: Ticket,
        /// When it was due.
        due: Option<Duration>,
    },
    /// A poll of it is under way.
    Polled,
    /// There is no such unit here, so nobody polls it.
    Absent,
}

/// All units, and when each is due.
pub struct Queue {
    slots: HashMap<UnitId, Slot>,
    due: BTreeSet<(Duration, UnitId)>,
    asked: VecDeque<UnitId>,
    connections: HashMap<u32, Connection>,
    /// Units whose lease is held.
    running: HashSet<UnitId>,
    /// How long a lease lasts without a sign of life.
    lease: Duration,
    /// The tickets of units that are not here yet are higher than this.
    tickets: u64,
}

struct Slot {
    connection: u32,
    due: Option<Duration>,
    ask: Option<Reason>,
    lease: Lease,
    /// Removed from the configuration while its poll runs.
    leaving: bool,
    waiters: Vec<Waiter>,
}

struct Connection {
    limit: usize,
    running: usize,
    /// Units that were due while the connection was at its limit, in the order of their due times.
    aside: BTreeMap<(bool, Duration, UnitId), ()>,
}

impl Default for Connection {
    fn default() -> Self {
        Connection {
            limit: usize::MAX,
            running: 0,
            aside: BTreeMap::new(),
        }
    }
}

impl Queue {
    /// A queue without units. Leases last that long without a sign of life; tickets are higher than `tickets`.
    pub fn new(lease: Duration, tickets: u64) -> Queue {
        Queue {
            slots: HashMap::new(),
            due: BTreeSet::new(),
            asked: VecDeque::new(),
            connections: HashMap::new(),
            running: HashSet::new(),
            lease,
            tickets,
        }
    }

    /// Polls that one connection may have in flight.
    pub fn limit(&mut self, connection: u32, polls: usize) {
        self.connections.entry(connection).or_default().limit = polls.max(1);
        self.readmit(connection);
    }

    /// Adds a unit, or moves it to another due time. `None`: only when asked for.
    pub fn place(&mut self, unit: UnitId, connection: u32, due: Option<Duration>) {
        let slot = self.slots.entry(unit).or_insert(Slot {
            connection,
            due: None,
            ask: None,
            lease: Lease {
                ticket: self.tickets,
                holder: None,
            },
            leaving: false,
            waiters: Vec::new(),
        });
        slot.leaving = false;
        if slot.lease.holder.is_some() {
            return;
        }
        if let Some(old) = slot.due.take() {
            self.due.remove(&(old, unit));
            if let Some(home) = self.connections.get_mut(&slot.connection) {
                home.aside.remove(&(slot.ask.is_none(), old, unit));
            }
        }
        slot.connection = connection;
        slot.due = due;
        if let Some(due) = due {
            self.due.insert((due, unit));
        }
        self.connections.entry(connection).or_default();
    }

    /// Takes a unit out. A poll of it that is under way ends as it will.
    pub fn remove(&mut self, unit: UnitId) {
        let Some(slot) = self.slots.get_mut(&unit) else {
            return;
        };
        if slot.lease.holder.is_some() {
            slot.leaving = true;
            return;
        }
        if let Some(due) = slot.due {
            self.due.remove(&(due, unit));
            if let Some(home) = self.connections.get_mut(&slot.connection) {
                home.aside.remove(&(true, due, unit));
                home.aside.remove(&(false, due, unit));
            }
        }
        self.forget(unit);
    }

    /// A unit that comes back gets higher tickets than it ever had: the store has seen those.
    fn forget(&mut self, unit: UnitId) {
        self.asked.retain(|other| *other != unit);
        if let Some(slot) = self.slots.remove(&unit) {
            self.tickets = self.tickets.max(slot.lease.ticket);
        }
    }

    /// Is the unit here?
    pub fn contains(&self, unit: UnitId) -> bool {
        self.slots.contains_key(&unit)
    }

    /// All units that are here.
    pub fn units(&self) -> impl Iterator<Item = UnitId> + '_ {
        self.slots.keys().copied()
    }

    /// Asks for a poll now. The waiter gets the report of the poll that answers the request.
    pub fn ask(&mut self, unit: UnitId, reason: Reason, waiter: Option<Waiter>) -> Asked {
        let Some(slot) = self.slots.get_mut(&unit) else {
            return Asked::Unknown;
        };
        slot.waiters.extend(waiter);
        if slot.lease.holder.is_some() {
            // A poll of another kind does not do what was asked for, so it runs right after.
            if reason == Reason::Resync {
                slot.ask = Some(reason);
                return Asked::Queued;
            }
            return Asked::Joined;
        }
        if slot.ask.is_none() {
            if let Some(due) = slot.due
                && let Some(home) = self.connections.get_mut(&slot.connection)
            {
                home.aside.remove(&(true, due, unit));
            }
            self.asked.push_back(unit);
        }
        if slot.ask != Some(Reason::Resync) {
            slot.ask = Some(reason);
        }
        Asked::Queued
    }

    /// The next unit whose turn it is, if any.
    pub fn next(&mut self, now: Duration) -> Option<Turn> {
        if let Some(turn) = self.next_asked(now) {
            return Some(turn);
        }
        while let Some((due, unit)) = self.due.first().copied() {
            if due > now {
                return None;
            }
            self.due.remove(&(due, unit));
            if let Some(turn) = self.begin(unit, now) {
                return Some(turn);
            }
        }
        None
    }

    /// The next unit that somebody asked for, if any.
    pub fn next_asked(&mut self, now: Duration) -> Option<Turn> {
        while let Some(unit) = self.asked.pop_front() {
            if self
                .slots
                .get(&unit)
                .is_some_and(|slot| slot.ask.is_some() && slot.lease.holder.is_none())
                && let Some(turn) = self.begin(unit, now)
            {
                return Some(turn);
            }
        }
        None
    }

    fn begin(&mut self, unit: UnitId, now: Duration) -> Option<Turn> {
        let slot = self.slots.get_mut(&unit)?;
        let home = self.connections.entry(slot.connection).or_default();
        let due = slot.due.unwrap_or(now);
        if home.running >= home.limit {
            home.aside.insert((slot.ask.is_none(), due, unit), ());
            return None;
        }
        let ticket = slot.lease.take("", ms(now), length(self.lease)).ok()?;
        home.running += 1;
        self.running.insert(unit);
        self.due.remove(&(due, unit));
        slot.due = None;
        Some(Turn {
            unit,
            ticket: Ticket(ticket),
            reason: slot.ask.take().unwrap_or(Reason::Schedule),
            late: now.saturating_sub(due),
        })
    }

    /// Takes the unit's lease for something else than a poll; [`Queue::finished`] gives it back.
    pub fn hold(&mut self, unit: UnitId, now: Duration) -> Held {
        let Some(slot) = self.slots.get_mut(&unit) else {
            return Held::Absent;
        };
        let Ok(ticket) = slot.lease.take("", ms(now), length(self.lease)) else {
            return Held::Polled;
        };
        let home = self.connections.entry(slot.connection).or_default();
        home.running += 1;
        let due = slot.due.take();
        if let Some(due) = due {
            self.due.remove(&(due, unit));
        }
        self.running.insert(unit);
        Held::Here {
            ticket: Ticket(ticket),
            due,
        }
    }

    /// A poll has ended: everyone who waited for it gets the report, and the unit takes its next place in line.
    ///
    /// The end of a poll whose lease was lost says nothing.
    pub fn finished(
        &mut self,
        unit: UnitId,
        ticket: Ticket,
        due: Option<Duration>,
        report: &Report,
    ) {
        let Some(slot) = self.slots.get_mut(&unit) else {
            return;
        };
        if slot.lease.release(ticket.0).is_err() {
            return;
        }
        self.running.remove(&unit);
        let connection = slot.connection;
        if let Some(home) = self.connections.get_mut(&connection) {
            home.running = home.running.saturating_sub(1);
        }
        if slot.ask.is_some() {
            self.asked.push_back(unit);
        } else {
            for waiter in slot.waiters.drain(..) {
                // A caller who left does not need the report.
                let _ = waiter.send(report.clone());
            }
        }
        if slot.leaving {
            self.forget(unit);
        } else if let Some(due) = due {
            slot.due = Some(due);
            self.due.insert((due, unit));
        }
        self.readmit(connection);
    }

    /// A poll gives a sign of life.
    pub fn heartbeat(&mut self, unit: UnitId, ticket: Ticket, now: Duration) {
        let length = length(self.lease);
        if let Some(slot) = self.slots.get_mut(&unit) {
            // A lease that is lost already is found out by the store.
            let _ = slot.lease.heartbeat(ticket.0, ms(now), length);
        }
    }

    /// Gives up polls that gave no sign of life: their units are due now.
    pub fn expire(&mut self, now: Duration, report: &Report) -> Vec<UnitId> {
        let mut lost: Vec<(UnitId, Ticket)> = self
            .running
            .iter()
            .filter_map(|unit| {
                let lease = &self.slots.get(unit)?.lease;
                let held_until = lease.holder.as_ref()?.until;
                (held_until <= ms(now)).then_some((*unit, Ticket(lease.ticket)))
            })
            .collect();
        lost.sort_unstable_by_key(|(unit, _)| *unit);
        for (unit, ticket) in &lost {
            self.finished(*unit, *ticket, Some(now), report);
        }
        lost.into_iter().map(|(unit, _)| unit).collect()
    }

    /// When the next lease runs out without a sign of life, at the latest: a poll that begins from now on has a whole one.
    pub fn next_expiry(&self, now: Duration) -> Duration {
        let held = self.running.iter().filter_map(|unit| {
            let until = self.slots.get(unit)?.lease.holder.as_ref()?.until;
            Some(Duration::from_millis(until.max(0).unsigned_abs()))
        });
        held.min().unwrap_or(Duration::MAX).min(now + self.lease)
    }

    /// Lets units that stood aside back in line, as many as there is room for.
    fn readmit(&mut self, connection: u32) {
        let Some(home) = self.connections.get_mut(&connection) else {
            return;
        };
        let room = home.limit.saturating_sub(home.running);
        for _ in 0..room {
            let Some(((by_schedule, due, unit), ())) = home.aside.pop_first() else {
                return;
            };
            if by_schedule {
                self.due.insert((due, unit));
            } else {
                self.asked.push_front(unit);
            }
        }
    }

    /// When the next unit falls due, if nothing else happens.
    pub fn next_due(&self) -> Option<Duration> {
        if self.asked.is_empty() {
            self.due.first().map(|(due, _)| *due)
        } else {
            Some(Duration::ZERO)
        }
    }

    /// When a unit is due; none while it is polled, and when it waits to be asked for.
    pub fn due_of(&self, unit: UnitId) -> Option<Duration> {
        self.slots.get(&unit)?.due
    }

    /// Polls in flight.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Is a poll of this unit in flight?
    pub fn is_running(&self, unit: UnitId) -> bool {
        self.slots
            .get(&unit)
            .is_some_and(|slot| slot.lease.holder.is_some())
    }

    /// How long the longest-waiting unit has been due: the first sign of a host that does not keep up.
    pub fn oldest_due(&self, now: Duration) -> Duration {
        let in_line = self.due.first().map(|(due, _)| *due);
        let aside = self
            .connections
            .values()
            .filter_map(|home| home.aside.keys().map(|(_, due, _)| *due).min());
        in_line
            .into_iter()
            .chain(aside)
            .min()
            .map_or(Duration::ZERO, |due| now.saturating_sub(due))
    }
}

fn ms(moment: Duration) -> i64 {
    i64::try_from(moment.as_millis()).unwrap_or(i64::MAX)
}

fn length(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
