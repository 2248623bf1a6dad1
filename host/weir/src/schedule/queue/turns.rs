//! Whose turn it is: what somebody asked for goes first, then what is due, then side walks.

use std::time::Duration;

use weir_rules::model::Reason;

use super::{Queue, Rank, Turn, length, ms};
use crate::store::{Ticket, UnitId};

impl Queue {
    /// The next unit whose turn it is, if any.
    pub fn next(&mut self, now: Duration) -> Option<Turn> {
        if let Some(turn) = self.next_by_person(now) {
            return Some(turn);
        }
        while let Some((due, unit)) = self.due.first().copied() {
            if due > now {
                break;
            }
            self.due.remove(&(due, unit));
            if let Some(turn) = self.begin(unit, Rank::Due, now) {
                return Some(turn);
            }
        }
        self.next_aside(now)
    }

    /// The next unit that somebody asked for, if any.
    pub fn next_asked(&mut self, now: Duration) -> Option<Turn> {
        self.next_by_person(now)
            .or_else(|| self.next_aside_asked(now))
    }

    fn next_by_person(&mut self, now: Duration) -> Option<Turn> {
        while let Some(unit) = self.asked.pop_front() {
            if self
                .slots
                .get(&unit)
                .is_some_and(|slot| slot.ask.is_some() && slot.lease.holder.is_none())
                && let Some(turn) = self.begin(unit, Rank::Asked, now)
            {
                return Some(turn);
            }
        }
        None
    }

    /// A side walk, where there is room for one.
    fn next_aside(&mut self, now: Duration) -> Option<Turn> {
        if let Some(turn) = self.next_aside_asked(now) {
            return Some(turn);
        }
        while self.aside_running < self.aside_limit
            && let Some((due, unit)) = self.side.first().copied()
        {
            if due > now {
                return None;
            }
            self.side.remove(&(due, unit));
            if let Some(turn) = self.begin(unit, Rank::Aside, now) {
                return Some(turn);
            }
        }
        None
    }

    fn next_aside_asked(&mut self, now: Duration) -> Option<Turn> {
        while self.aside_running < self.aside_limit
            && let Some(unit) = self.asked_aside.pop_front()
        {
            // One that is being polled comes back in line at its end.
            if self
                .slots
                .get(&unit)
                .is_some_and(|slot| slot.ask_aside && slot.lease.holder.is_none())
                && let Some(turn) = self.begin(unit, Rank::Aside, now)
            {
                return Some(turn);
            }
        }
        None
    }

    fn begin(&mut self, unit: UnitId, rank: Rank, now: Duration) -> Option<Turn> {
        let slot = self.slots.get_mut(&unit)?;
        let home = self.connections.entry(slot.connection).or_default();
        let aside = rank == Rank::Aside;
        let due = if aside { slot.side } else { slot.due }.unwrap_or(now);
        if home.running >= home.limit {
            let rank = if aside { rank } else { slot.rank() };
            home.aside.insert((rank, due, unit), ());
            return None;
        }
        let ticket = slot.lease.take("", ms(now), length(self.lease)).ok()?;
        home.running += 1;
        self.running.insert(unit);
        // Its places in line are taken from it; that of the main walk comes back after a side walk.
        if let Some(due) = slot.due {
            self.due.remove(&(due, unit));
        }
        if let Some(side) = slot.side.take() {
            self.side.remove(&(side, unit));
        }
        slot.runs_aside = aside;
        let reason = if aside {
            slot.ask_aside = false;
            self.aside_running += 1;
            Reason::Backfill
        } else {
            slot.due = None;
            slot.ask.take().unwrap_or(Reason::Schedule)
        };
        Some(Turn {
            unit,
            ticket: Ticket(ticket),
            reason,
            late: now.saturating_sub(due),
        })
    }

    /// Whether a side walk of the unit is to make room: its main walk is due or asked for, or other main walks wait for its
    /// connection.
    pub fn wants_back(&self, unit: UnitId, now: Duration) -> bool {
        let Some(slot) = self.slots.get(&unit) else {
            return true;
        };
        let others_wait = || {
            let home = self.connections.get(&slot.connection)?;
            let ((rank, ..), ()) = home.aside.first_key_value()?;
            Some(*rank < Rank::Aside)
        };
        slot.leaving
            || slot.ask.is_some()
            || slot.due.is_some_and(|due| due <= now)
            || others_wait().unwrap_or(false)
    }

    /// Somebody asks for the unit's main walk, or the unit is to go.
    pub fn is_asked_for(&self, unit: UnitId) -> bool {
        let slot = self.slots.get(&unit);
        slot.is_none_or(|slot| slot.leaving || slot.ask.is_some())
    }
}
