//! Who may poll a unit: one at a time, by a lease that expires.
//!
//! A manual sync, a backfill and the schedule are three callers of one cursor. Two at once reorder pages and let an
//! older cursor overwrite a newer one. Promises: at most one holder; each lease has a higher ticket than any
//! before it, so that what a lost holder still wants to store can be told from the present holder's; a
//! crashed holder's lease runs out, also when the clock was set back meanwhile.

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Timestamp};

/// How long a lease lasts without a heartbeat, in ms.
pub const TTL: Duration = 60_000;

/// The lease of one unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// The highest ticket that was ever given; 0: none yet.
    pub ticket: u64,
    /// Who holds it.
    pub holder: Option<Holder>,
}

/// A holder of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// A name that tells processes apart, for people.
    pub name: String,
    /// When the lease ends without a heartbeat.
    pub until: Timestamp,
}

/// The unit is being polled: join that poll or wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("already being polled by {name}")]
pub struct Held {
    /// By whom.
    pub name: String,
    /// Until when at most.
    pub until: Timestamp,
}

/// The lease ran out and somebody else took it, or it was given back: nothing may be stored under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease with ticket {ticket} is no longer held")]
pub struct Lost {
    /// The ticket of it.
    pub ticket: u64,
}

impl Lease {
    /// Takes the lease, if nobody holds it. Answers with the new ticket.
    pub fn take(&mut self, name: &str, now: Timestamp, ttl: Duration) -> Result<u64, Held> {
        let end = now.saturating_add(i64::try_from(ttl).unwrap_or(i64::MAX));
        if let Some(holder) = &mut self.holder
            && holder.until > now
        {
            // No lease runs longer than its length from now; if it seems to, the clock was set back.
            holder.until = holder.until.min(end);
            return Err(Held {
                name: holder.name.clone(),
                until: holder.until,
            });
        }
        self.ticket = self.ticket.saturating_add(1);
        self.holder = Some(Holder {
            name: name.to_owned(),
            until: end,
        });
        Ok(self.ticket)
    }

    /// Lengthens the lease. A holder that comes late keeps it if nobody has taken it meanwhile.
    pub fn heartbeat(&mut self, ticket: u64, now: Timestamp, ttl: Duration) -> Result<(), Lost> {
        self.check(ticket)?;
        if let Some(holder) = &mut self.holder {
            holder.until = now.saturating_add(i64::try_from(ttl).unwrap_or(i64::MAX));
        }
        Ok(())
    }

    /// Gives the lease back.
    pub fn release(&mut self, ticket: u64) -> Result<(), Lost> {
        self.check(ticket)?;
        self.holder = None;
        Ok(())
    }

    /// Whether what was done under this ticket may be stored.
    pub fn check(&self, ticket: u64) -> Result<(), Lost> {
        if self.holder.is_some() && ticket == self.ticket {
            Ok(())
        } else {
            Err(Lost { ticket })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_035_a_second_caller_is_told_who_polls() {
        let mut lease = Lease::default();
        assert_eq!(lease.take("schedule", 0, TTL), Ok(1));
        for _ in 0..3 {
            let held = lease.take("sync now", 2_000, TTL).unwrap_err();
            assert_eq!((held.name.as_str(), held.until), ("schedule", 60_000));
        }
        lease.release(1).unwrap();
        assert_eq!(lease.take("sync now", 5_000, TTL), Ok(2));
    }

    #[test]
    fn a_crashed_holders_lease_runs_out_and_its_ticket_is_worth_nothing() {
        let mut lease = Lease::default();
        let old = lease.take("one", 0, TTL).unwrap();
        lease.heartbeat(old, 50_000, TTL).unwrap();
        assert!(lease.take("two", 109_999, TTL).is_err());
        let new = lease.take("two", 110_000, TTL).unwrap();
        assert!(new > old);
        assert_eq!(lease.check(old), Err(Lost { ticket: old }));
        assert_eq!(
            lease.heartbeat(old, 110_001, TTL),
            Err(Lost { ticket: old })
        );
        assert_eq!(lease.release(old), Err(Lost { ticket: old }));
        assert_eq!(lease.check(new), Ok(()));
    }

    #[test]
    fn a_late_heartbeat_is_good_while_nobody_else_came() {
        let mut lease = Lease::default();
        let ticket = lease.take("one", 0, TTL).unwrap();
        lease.heartbeat(ticket, 500_000, TTL).unwrap();
        assert!(lease.take("two", 500_001, TTL).is_err());
    }

    #[test]
    fn case_039_a_clock_set_back_does_not_stretch_a_lease() {
        let six_hours = 6 * 3_600_000;
        let mut lease = Lease::default();
        lease.take("one", six_hours, TTL).unwrap();
        let held = lease.take("two", 0, TTL).unwrap_err();
        assert_eq!(held.until, 60_000);
        assert!(lease.take("two", 60_000, TTL).is_ok());
    }

    #[derive(Clone, Debug)]
    enum Act {
        Take,
        Beat(usize),
        Release(usize),
        Wait(i64),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            Just(Act::Take),
            (0_usize..8).prop_map(Act::Beat),
            (0_usize..8).prop_map(Act::Release),
            (-70_000_i64..70_000).prop_map(Act::Wait),
        ]
    }

    proptest! {
        #[test]
        fn at_most_one_ticket_is_good_and_tickets_only_grow(acts in prop::collection::vec(act(), 1..80)) {
            let (mut lease, mut now, mut given) = (Lease::default(), 0, vec![]);
            for act in acts {
                match act {
                    Act::Take => {
                        let before = lease.clone();
                        if let Ok(ticket) = lease.take("x", now, TTL) {
                            prop_assert!(given.last().is_none_or(|last| ticket > *last));
                            prop_assert!(before.holder.is_none_or(|holder| holder.until <= now));
                            given.push(ticket);
                        }
                    }
                    Act::Beat(n) => {
                        if let Some(ticket) = given.get(n) {
                            let _ = lease.heartbeat(*ticket, now, TTL);
                        }
                    }
                    Act::Release(n) => {
                        if let Some(ticket) = given.get(n) {
                            let _ = lease.release(*ticket);
                        }
                    }
                    Act::Wait(ms) => now += ms,
                }
                let good = given.iter().filter(|ticket| lease.check(**ticket).is_ok()).count();
                prop_assert!(good <= 1);
            }
        }
    }
}
