//! The line of those who wait for room in a budget.
//!
//! Without it a poll that has just got a page would ask for the next before the others wake that sleep until a call has
//! room, and one long walk would take every call of its credential.
//!
//! Promises:
//! - Of those who wait for the same budget, and are as urgent, whoever has waited longest goes first.
//! - Nobody gives way to one who waits for a budget that does not concern his call, or who is less urgent.
//! - Whoever is refused when it is his turn goes to the end, so that what he needs holds up nobody who needs less.
//! - A place is left by whoever goes away, however that comes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_rules::budget::Priority;
use weir_rules::model::Timestamp;

/// All who wait, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Line {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    places: BTreeMap<u64, Wait>,
}

/// What somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Whose budget has no room.
    pub(super) who: String,
    /// Of which bucket.
    pub(super) bucket: String,
    /// How urgent the call is.
    pub(super) priority: Priority,
    /// When it will be tried, by this machine's clock.
    pub(super) until: Timestamp,
}

/// A place in the line; dropped, it is left.
#[derive(Debug)]
pub(super) struct Place<'l> {
    line: &'l Line,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.line.lock().places.remove(&self.number);
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place at the end.
    pub(super) fn join(&self, wait: Wait) -> Place<'_> {
        let mut waiting = self.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.places.insert(number, wait);
        Place { line: self, number }
    }

    /// Who goes first: of those before this place (of all, for one without a place) the one that has waited longest, is as
    /// urgent, and waits for what concerns the call too.
    pub(super) fn before(
        &self,
        place: Option<&Place<'_>>,
        priority: Priority,
        concerns: impl Fn(&Wait) -> bool,
    ) -> Option<Wait> {
        let end = place.map_or(u64::MAX, |place| place.number);
        let waiting = self.lock();
        let mut before = waiting.places.range(..end).map(|(_, wait)| wait);
        before
            .find(|wait| wait.priority >= priority && concerns(wait))
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(bucket: &str, priority: Priority) -> Wait {
        Wait {
            who: "credential".to_owned(),
            bucket: bucket.to_owned(),
            priority,
            until: 5,
        }
    }

    fn all(_: &Wait) -> bool {
        true
    }

    #[test]
    fn whoever_came_first_goes_first_and_a_place_is_left_when_it_is_dropped() {
        let line = Line::default();
        assert_eq!(line.before(None, Priority::Schedule, all), None);
        let first = line.join(wait("core", Priority::Schedule));
        let second = line.join(wait("core", Priority::Schedule));
        assert_eq!(line.before(Some(&first), Priority::Schedule, all), None);
        assert!(
            line.before(Some(&second), Priority::Schedule, all)
                .is_some()
        );
        assert!(line.before(None, Priority::Schedule, all).is_some());
        // Refused again: to the end.
        let first = {
            let again = line.join(wait("core", Priority::Schedule));
            drop(first);
            again
        };
        assert_eq!(line.before(Some(&second), Priority::Schedule, all), None);
        assert!(line.before(Some(&first), Priority::Schedule, all).is_some());
        drop(second);
        assert_eq!(line.before(Some(&first), Priority::Schedule, all), None);
    }

    #[test]
    fn nobody_gives_way_to_the_less_urgent_or_to_other_budgets() {
        let line = Line::default();
        let _slow = line.join(wait("search", Priority::Backfill));
        assert_eq!(line.before(None, Priority::Schedule, all), None);
        assert!(line.before(None, Priority::Backfill, all).is_some());
        let other = |wait: &Wait| wait.bucket == "core";
        assert_eq!(line.before(None, Priority::Backfill, other), None);
    }
}
