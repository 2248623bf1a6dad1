//! The budgets of everyone who shares a limit: in memory for the decision, in the store for the next start.
//!
//! A budget belongs to whoever shares it (a unit, a connection, a credential, everyone on one connector at one vendor) and to one of
//! the vendor's buckets. Before a call all budgets that concern it are asked; the longest wait counts.
//!
//! Promise: nobody who sets the wall clock makes a wait shorter or longer while the program runs. Budgets are kept by the
//! wall clock of the program's start, carried on by the monotonic one; what is stored or shown is by the wall clock.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use weir_rules::budget::{Admit, Budget, Priority};
use weir_rules::model::{Limit, Reason, Scope, Timestamp};
use weir_runtime::contract::Request;

use super::line::{Line, Place, Wait};
use super::run::Poll;
use crate::clock::Clock;
use crate::config;
use crate::connection::Connection;
use crate::store::{BudgetKey, BudgetRow, UnitKey};

/// By how much two clocks that go alike may seem to differ, in ms.
const CUT: u64 = 2;

/// All budgets.
pub struct Ledger {
    /// By whom, then by bucket; by the steady clock.
    budgets: Mutex<HashMap<String, BTreeMap<String, Budget>>>,
    /// Both clocks, when they were first read.
    began: OnceLock<(Timestamp, Duration)>,
    /// How far the wall clock was ahead of the steady one when it was last read, in ms.
    ahead: AtomicI64,
    /// Those who wait for room within their polls.
    line: Line,
}

/// There is no room for a call.
pub(super) struct Full {
    /// Until when, by this machine's clock.
    pub(super) until: Timestamp,
    /// For whom, as a person knows it.
    pub(super) why: String,
    who: String,
    bucket: String,
}

impl Ledger {
    /// What was stored.
    pub fn new(rows: Vec<(BudgetKey, BudgetRow)>) -> Ledger {
        let mut budgets: HashMap<String, BTreeMap<String, Budget>> = HashMap::new();
        for (key, budget) in rows {
            budgets
                .entry(key.who)
                .or_default()
                .insert(key.bucket, budget);
        }
        Ledger {
            budgets: Mutex::new(budgets),
            began: OnceLock::new(),
            ahead: AtomicI64::new(0),
            line: Line::default(),
        }
    }

    /// How far the wall clock is ahead of the steady one, in ms: by what it has been set since the first call.
    fn ahead(&self, clock: &dyn Clock) -> i64 {
        let (wall, monotonic) = (clock.wall(), clock.monotonic());
        let (wall_then, monotonic_then) = *self.began.get_or_init(|| (wall, monotonic));
        let passed = monotonic.saturating_sub(monotonic_then).as_millis();
        let steady = wall_then.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX));
        let (ahead, known) = (
            wall.saturating_sub(steady),
            self.ahead.load(Ordering::Relaxed),
        );
        // Both clocks are cut to whole ms, each at its own instant: that makes no wait shorter.
        if ahead.abs_diff(known) <= CUT {
            return known;
        }
        self.ahead.store(ahead, Ordering::Relaxed);
        ahead
    }

    /// The budgets that a connection's calls are held to, by scope and bucket; those of single units are left out.
    pub fn of(&self, connection: &Connection) -> Vec<(Scope, String, Budget)> {
        let budgets = self.lock();
        let shared = [
            (Scope::Connection, format!("connection {}", connection.name)),
            (Scope::Credential, connection.shared.clone()),
            (Scope::App, connection.app.clone()),
        ];
        let mut found = Vec::new();
        for (scope, who) in shared {
            for (bucket, budget) in budgets.get(&who).into_iter().flatten() {
                let ahead = self.ahead.load(Ordering::Relaxed);
                found.push((scope, bucket.clone(), budget.shifted(ahead)));
            }
        }
        found
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, BTreeMap<String, Budget>>> {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wait of whoever goes first: one that has waited longer for what this call needs as well.
    pub(super) fn first_in_line(
        &self,
        poll: &Poll<'_>,
        request: &Request,
        place: Option<&Place<'_>>,
    ) -> Option<Wait> {
        self.line.before(place, priority(poll), |wait| {
            concerns(request, &wait.bucket)
                && SCOPES
                    .iter()
                    .any(|scope| who(&poll.connection, &poll.row.key, *scope) == wait.who)
        })
    }

    /// A place behind somebody who goes first.
    pub(super) fn line_up_behind(&self, poll: &Poll<'_>, first: Wait) -> Place<'_> {
        self.line.join(Wait {
            priority: priority(poll),
            ..first
        })
    }

    /// A place for a call that had no room.
    pub(super) fn line_up(&self, poll: &Poll<'_>, full: &Full) -> Place<'_> {
        self.line.join(Wait {
            who: full.who.clone(),
            bucket: full.bucket.clone(),
            priority: priority(poll),
            until: full.until,
        })
    }

    /// Until when the call has to wait, and for whom; none: it may go, and its cost is noted.
    pub(super) fn admit(&self, poll: &Poll<'_>, request: &Request) -> Option<Full> {
        let clock = &*poll.host.clock;
        let ahead = self.ahead(clock);
        let now = clock.wall().saturating_sub(ahead);
        let priority = priority(poll);
        let cost = u64::from(request.cost.max(1));
        let reserve = f64::from(poll.stream.reserve) / 100.0;
        let mut budgets = self.lock();
        let mut longest: Option<Full> = None;
        let holders = SCOPES.map(|scope| (scope, who(&poll.connection, &poll.row.key, scope)));
        for (scope, who) in &holders {
            for (bucket, budget) in budgets.get_mut(&**who).into_iter().flatten() {
                if !concerns(request, bucket) {
                    continue;
                }
                // Stored rows may be by a clock that was set back before the program started: no wait becomes longer by it.
                budget.rebase(now);
                let Admit::WaitUntil(until) = budget.admit(now, cost, priority, reserve) else {
                    continue;
                };
                let until = until.saturating_add(ahead);
                if longest.as_ref().is_none_or(|longest| until > longest.until) {
                    longest = Some(Full {
                        until,
                        why: no_room(&poll.connection.name, *scope, bucket),
                        who: who.to_string(),
                        bucket: bucket.clone(),
                    });
                }
            }
        }
        if longest.is_none() {
            for (_, who) in &holders {
                for (bucket, budget) in budgets.get_mut(&**who).into_iter().flatten() {
                    if concerns(request, bucket) {
                        budget.spend(cost, now);
                    }
                }
            }
        }
        longest
    }

    /// Takes in what an answer told of limits; returns the rows that this changed.
    pub(super) fn learn(
        &self,
        poll: &Poll<'_>,
        limits: &[Limit],
        now: Timestamp,
    ) -> Vec<(BudgetKey, BudgetRow)> {
        let ahead = self.ahead(&*poll.host.clock);
        let mut budgets = self.lock();
        limits
            .iter()
            .map(|limit| {
                let key = BudgetKey {
                    who: who(&poll.connection, &poll.row.key, limit.scope).into_owned(),
                    bucket: limit.bucket.clone().unwrap_or_default(),
                };
                let budget = budgets
                    .entry(key.who.clone())
                    .or_default()
                    .entry(key.bucket.clone())
                    .or_default();
                budget.update(limit, now.saturating_sub(ahead));
                (key, budget.shifted(ahead))
            })
            .collect()
    }

    /// Nobody whom the limit concerns calls before that time.
    pub(super) fn hold(
        &self,
        poll: &Poll<'_>,
        scope: Scope,
        until: Timestamp,
    ) -> Vec<(BudgetKey, BudgetRow)> {
        let key = BudgetKey {
            who: who(&poll.connection, &poll.row.key, scope).into_owned(),
            bucket: String::new(),
        };
        let clock = &*poll.host.clock;
        let ahead = self.ahead(clock);
        let mut budgets = self.lock();
        let budget = budgets
            .entry(key.who.clone())
            .or_default()
            .entry(String::new())
            .or_default();
        let now = clock.wall().saturating_sub(ahead);
        budget.refused(until.saturating_sub(ahead), now);
        vec![(key, budget.shifted(ahead))]
    }
}

/// How urgent a poll's calls are.
fn priority(poll: &Poll<'_>) -> Priority {
    match poll.job.reason {
        Reason::SyncNow | Reason::Resync => Priority::Person,
        Reason::Schedule => match poll.stream.priority {
            config::Priority::Low => Priority::Low,
            config::Priority::Normal => Priority::Schedule,
            config::Priority::High => Priority::High,
        },
        Reason::Backfill | Reason::Settle => Priority::Backfill,
    }
}

/// A call that names its bucket spends that one and the vendor's general one; a call that names none may spend any.
fn concerns(request: &Request, bucket: &str) -> bool {
    match &request.bucket {
        Some(named) => bucket.is_empty() || bucket == named,
        None => true,
    }
}

const SCOPES: [Scope; 4] = [
    Scope::Unit,
    Scope::Connection,
    Scope::Credential,
    Scope::App,
];

/// Who shares a limit of that scope with the unit.
fn who<'c>(connection: &'c Connection, unit: &UnitKey, scope: Scope) -> Cow<'c, str> {
    match scope {
        Scope::Unit => format!("unit {unit}").into(),
        Scope::Connection => format!("connection {}", connection.name).into(),
        Scope::Credential => Cow::Borrowed(&connection.shared),
        Scope::App => Cow::Borrowed(&connection.app),
    }
}

/// Why a call waits, for a person, who knows the connection's name and not its credential's fingerprint.
fn no_room(connection: &str, scope: Scope, bucket: &str) -> String {
    let limit = if bucket.is_empty() {
        "the vendor's limit".to_owned()
    } else {
        format!("the vendor's limit {bucket:?}")
    };
    let of = match scope {
        Scope::Unit => "this unit".to_owned(),
        Scope::Connection => format!("connection {connection}"),
        Scope::Credential => format!("everyone on the credential of {connection}"),
        Scope::App => format!("everyone on the connector of {connection}"),
    };
    format!("{limit} for {of} has no room")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::BoxFuture;

    /// Two clocks that somebody reads one after the other, in microseconds.
    struct Pair(AtomicI64, AtomicI64);

    impl Clock for Pair {
        fn wall(&self) -> Timestamp {
            self.0.load(Ordering::Relaxed) / 1_000
        }

        fn monotonic(&self) -> Duration {
            Duration::from_micros(self.1.load(Ordering::Relaxed).unsigned_abs())
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn clocks_that_go_alike_are_not_told_apart_by_their_last_digit() {
        let ledger = Ledger::new(Vec::new());
        let clock = Pair(AtomicI64::new(5_000_999), AtomicI64::new(7_000_001));
        assert_eq!(ledger.ahead(&clock), 0);
        for step in [1, 998, 999, 1_000, 1_700, 2_001] {
            clock.0.fetch_add(step, Ordering::Relaxed);
            clock.1.fetch_add(step + 400, Ordering::Relaxed);
            assert_eq!(ledger.ahead(&clock), 0, "{step}");
            clock.0.fetch_add(400, Ordering::Relaxed);
        }
        clock.0.fetch_add(3_600_000_000, Ordering::Relaxed);
        assert!(ledger.ahead(&clock).abs_diff(3_600_000) <= CUT);
    }
}
