//! The due queue: which unit is polled next.
//!
//! A pure structure over monotonic time. It holds for every unit at most one place in line and at most one lease,
//! whoever asked: the schedule, a person, a backfill. A person's request goes first; a second request for a unit
//! that is being polled joins that poll. Units of a connection that is at its limit of calls in flight stand aside
//! until one of its polls has ended, and keep their turn. A poll that gives no sign of life for the length of a lease
//! is given up: its unit takes its place again, and what the lost poll may still bring is refused by its ticket.
//!
//! A unit may have a second place in line, for its side walks (settle passes, backfills). They are begun only when nothing
//! that is due or asked for can be, few at a time, and never beside the unit's main walk: the lease is one. A side walk
//! keeps the main walk's place in line, and is told when to [give it back](Queue::wants_back).
//!
//! | file | job |
//! | --- | --- |
//! | here | who is in line, and who has asked |
//! | `turns` | whose turn it is |
//! | `leases` | who is being polled, and what becomes of it |

mod leases;
mod turns;

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
    /// Side walks, by when they may begin.
    side: BTreeSet<(Duration, UnitId)>,
    /// Units whose side walk somebody asked for.
    asked_aside: VecDeque<UnitId>,
    /// Side walks in flight, and how many there may be.
    aside_running: usize,
    aside_limit: usize,
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
    /// When its side walk may begin.
    side: Option<Duration>,
    /// Somebody asked for its side walk.
    ask_aside: bool,
    /// What is running is its side walk.
    runs_aside: bool,
    lease: Lease,
    /// Removed from the configuration while its poll runs.
    leaving: bool,
    waiters: Vec<Waiter>,
    /// Those who wait for its side walk.
    aside_waiters: Vec<Waiter>,
}

/// Why a unit is polled; what comes first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Asked,
    Due,
    Aside,
}

/// Polls for these reasons are side walks.
fn is_aside(reason: Reason) -> bool {
    matches!(reason, Reason::Backfill | Reason::Settle)
}

struct Connection {
    limit: usize,
    running: usize,
    /// Units that were due while the connection was at its limit, in the order of their due times.
    aside: BTreeMap<(Rank, Duration, UnitId), ()>,
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
            side: BTreeSet::new(),
            asked_aside: VecDeque::new(),
            aside_running: 0,
            aside_limit: usize::MAX,
            connections: HashMap::new(),
            running: HashSet::new(),
            lease,
            tickets,
        }
    }

    /// Side walks that may be in flight at once, of all connections together.
    pub fn limit_aside(&mut self, walks: usize) {
        self.aside_limit = walks.max(1);
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
            side: None,
            ask_aside: false,
            runs_aside: false,
            lease: Lease {
                ticket: self.tickets,
                holder: None,
            },
            leaving: false,
            waiters: Vec::new(),
            aside_waiters: Vec::new(),
        });
        slot.leaving = false;
        if slot.lease.holder.is_some() {
            return;
        }
        if let Some(old) = slot.due.take() {
            self.due.remove(&(old, unit));
            if let Some(home) = self.connections.get_mut(&slot.connection) {
                home.aside.remove(&(slot.rank(), old, unit));
            }
        }
        if let Some(old) = slot.side.take() {
            self.side.remove(&(old, unit));
            if let Some(home) = self.connections.get_mut(&slot.connection) {
                home.aside.remove(&(Rank::Aside, old, unit));
            }
        }
        slot.connection = connection;
        slot.due = due;
        if let Some(due) = due {
            self.due.insert((due, unit));
        }
        self.connections.entry(connection).or_default();
    }

    /// When the unit's next side walk may begin; none: there is none. A unit that is being polled says so at its end.
    pub fn place_aside(&mut self, unit: UnitId, due: Option<Duration>) {
        let Some(slot) = self.slots.get_mut(&unit) else {
            return;
        };
        if slot.lease.holder.is_some() {
            return;
        }
        if let Some(old) = std::mem::replace(&mut slot.side, due) {
            self.side.remove(&(old, unit));
        }
        if let Some(due) = due {
            self.side.insert((due, unit));
        }
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
                home.aside.remove(&(Rank::Asked, due, unit));
                home.aside.remove(&(Rank::Due, due, unit));
            }
        }
        if let Some(due) = slot.side {
            self.side.remove(&(due, unit));
        }
        self.forget(unit);
    }

    /// A unit that comes back gets higher tickets than it ever had: the store has seen those.
    fn forget(&mut self, unit: UnitId) {
        self.asked.retain(|other| *other != unit);
        self.asked_aside.retain(|other| *other != unit);
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
        let runs = slot.lease.holder.is_some();
        if is_aside(reason) {
            slot.aside_waiters.extend(waiter);
            if runs && slot.runs_aside {
                return Asked::Joined;
            }
            if !slot.ask_aside {
                slot.ask_aside = true;
                self.asked_aside.push_back(unit);
            }
            return Asked::Queued;
        }
        slot.waiters.extend(waiter);
        if runs {
            // A poll of another kind does not do what was asked for, so it runs right after.
            if reason == Reason::Resync || slot.runs_aside {
                slot.ask_for(reason);
                return Asked::Queued;
            }
            return Asked::Joined;
        }
        if slot.ask.is_none() {
            if let Some(due) = slot.due
                && let Some(home) = self.connections.get_mut(&slot.connection)
            {
                home.aside.remove(&(Rank::Due, due, unit));
            }
            self.asked.push_back(unit);
        }
        slot.ask_for(reason);
        Asked::Queued
    }

    /// When the next unit falls due, if nothing else happens.
    pub fn next_due(&self) -> Option<Duration> {
        let room_aside = self.aside_running < self.aside_limit;
        if !self.asked.is_empty() || (room_aside && !self.asked_aside.is_empty()) {
            return Some(Duration::ZERO);
        }
        let due = self.due.first();
        let side = self.side.first().filter(|_| room_aside);
        due.into_iter().chain(side).map(|(due, _)| *due).min()
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
        let aside = self.connections.values().filter_map(|home| {
            let main = home.aside.keys().filter(|(rank, ..)| *rank < Rank::Aside);
            main.map(|(_, due, _)| *due).min()
        });
        in_line
            .into_iter()
            .chain(aside)
            .min()
            .map_or(Duration::ZERO, |due| now.saturating_sub(due))
    }
}

impl Slot {
    /// How its main walk stands in line.
    fn rank(&self) -> Rank {
        if self.ask.is_some() {
            Rank::Asked
        } else {
            Rank::Due
        }
    }

    /// Whoever wants everything read again gets that, whoever else asks.
    fn ask_for(&mut self, reason: Reason) {
        if self.ask != Some(Reason::Resync) {
            self.ask = Some(reason);
        }
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
