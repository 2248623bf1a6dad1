//! Calls before a wait was over, and whether a death excuses them.
//!
//! A poller that is killed can't know what an answer said that it had not stored yet. Any other wait is to be kept, also
//! over restarts.

use crate::ledger::{Call, Outcome};

/// The longest wait that is looked for, in ms.
const LONGEST: i64 = 120_000;

/// A call too early that nothing excuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// When it came.
    pub at: i64,
    /// When the answer was asked for that told of the wait; none: no such answer is known.
    pub told_at: Option<i64>,
    /// Path and query.
    pub target: String,
}

/// What one vendor's calls, in their order, say of the waits that it told one caller. `deaths` are the moments at which
/// the poller was killed; an answer that was asked for no more than `unread_ms` before one may have died unread.
pub fn broken(calls: &[Call], deaths: &[i64], unread_ms: i64) -> Vec<Broken> {
    let mut broken = Vec::new();
    for (place, call) in calls.iter().enumerate().filter(|(_, call)| call.early) {
        let before = calls.get(..place).unwrap_or_default();
        let mut tellers = before.iter().rev().filter(|call| tells(call));
        let told = tellers.clone().next();
        let died = |told: &Call| {
            deaths.iter().any(|death| {
                (told.at..=told.at.saturating_add(unread_ms)).contains(death) && *death <= call.at
            })
        };
        // Not every refusal tells of a wait, so it need not have been the last one.
        if !tellers.any(|told| told.at > call.at - LONGEST && died(told)) {
            broken.push(Broken {
                at: call.at,
                told_at: told.map(|told| told.at),
                target: call.target.clone(),
            });
        }
    }
    broken
}

/// May tell of a wait.
fn tells(call: &Call) -> bool {
    matches!(
        call.outcome,
        Outcome::OverQuota | Outcome::Overloaded | Outcome::Fault(_)
    ) && call.status >= 400
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(at: i64, status: u16, early: bool) -> Call {
        Call {
            at,
            collection: None,
            target: "/v1/orders?".into(),
            status,
            outcome: if status == 429 {
                Outcome::OverQuota
            } else {
                Outcome::Page
            },
            records: 0,
            bytes: 0,
            early,
            overlapping: false,
        }
    }

    #[test]
    fn only_what_died_unread_excuses_a_call() {
        let calls = [
            call(0, 200, false),
            call(1_000, 429, false),
            call(3_000, 200, true),
        ];
        assert_eq!(broken(&calls, &[1_200], 500), []);
        for deaths in [&[][..], &[900], &[1_600], &[3_100]] {
            let found = broken(&calls, deaths, 500);
            assert_eq!(found.len(), 1, "{deaths:?}");
            assert_eq!(found[0].told_at, Some(1_000));
        }
        // Nobody told of a wait, and yet the vendor says so.
        assert_eq!(broken(&calls[2..], &[1_200], 500).len(), 1);
    }
}
