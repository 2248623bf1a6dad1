//! Who is being polled: leases, their signs of life, and what becomes of a unit whose poll has ended or was lost.

use std::time::Duration;

use super::{Held, Queue, Rank, length, ms};
use crate::poll::Report;
use crate::store::{Ticket, UnitId};

impl Queue {
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
        if let Some(side) = slot.side.take() {
            self.side.remove(&(side, unit));
        }
        self.running.insert(unit);
        Held::Here {
            ticket: Ticket(ticket),
            due,
        }
    }

    /// A poll has ended: everyone who waited for it gets the report, and the unit takes its next places in line: `due` for
    /// its main walk, which a side walk leaves as it was, and `side` for its side walks.
    ///
    /// The end of a poll whose lease was lost says nothing.
    pub fn finished(
        &mut self,
        unit: UnitId,
        ticket: Ticket,
        (due, side): (Option<Duration>, Option<Duration>),
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
        let aside = std::mem::take(&mut slot.runs_aside);
        if aside {
            self.aside_running = self.aside_running.saturating_sub(1);
        } else {
            slot.due = due;
        }
        let waiters = match aside {
            true if !slot.ask_aside => std::mem::take(&mut slot.aside_waiters),
            false if slot.ask.is_none() => std::mem::take(&mut slot.waiters),
            _ => Vec::new(),
        };
        for waiter in waiters {
            // A caller who left does not need the report.
            let _ = waiter.send(report.clone());
        }
        if slot.leaving {
            self.forget(unit);
            self.readmit(connection);
            return;
        }
        if slot.ask.is_some() {
            self.asked.push_back(unit);
        }
        if slot.ask_aside {
            self.asked_aside.push_back(unit);
        }
        if let Some(due) = slot.due {
            self.due.insert((due, unit));
        }
        slot.side = side;
        if let Some(side) = side {
            self.side.insert((side, unit));
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
            self.finished(*unit, *ticket, (Some(now), None), report);
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
    pub(super) fn readmit(&mut self, connection: u32) {
        let Some(home) = self.connections.get_mut(&connection) else {
            return;
        };
        let room = home.limit.saturating_sub(home.running);
        for _ in 0..room {
            let Some(((rank, due, unit), ())) = home.aside.pop_first() else {
                return;
            };
            match rank {
                Rank::Asked => self.asked.push_front(unit),
                Rank::Due => {
                    self.due.insert((due, unit));
                }
                Rank::Aside => {
                    let slot = self.slots.get(&unit);
                    if slot.is_some_and(|slot| slot.ask_aside) {
                        self.asked_aside.push_front(unit);
                    } else if slot.is_some_and(|slot| slot.side == Some(due)) {
                        self.side.insert((due, unit));
                    }
                }
            }
        }
    }
}
