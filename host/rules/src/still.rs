//! Units that stand still: polled, answered well, and never anything new.
//!
//! A source that is quiet and a source that no longer shows what it has look alike from here. What can be measured is
//! whether it has been as quiet before. A unit stands still when polls in a row have brought nothing, for much longer than
//! any silence that is remembered of it. That is worth a look and never a fault: nothing is done about it.
//!
//! Promises: a unit that has moved only a few times is never said to stand still, since nobody knows its rhythm; a long
//! silence is forgotten slowly, so that a weekend is no news on the next one.

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Timestamp};

/// Polls in a row without anything new, from which on a unit may stand still.
const POLLS: u32 = 12;
/// So much longer than the longest silence that is remembered.
const LONGER: Duration = 3;
/// And for at least this long, in ms.
const LEAST: Duration = 3_600_000;
/// Silences that have to be known before one is too long.
const KNOWN: u32 = 5;

/// When the unit's polls last brought something, and how long they used not to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Still {
    /// When a poll last brought something new, in the vendor's time.
    moved: Option<Timestamp>,
    /// Polls that went well since, and brought nothing.
    polls: u32,
    /// The longest silence that is remembered, in ms.
    longest: Duration,
    /// How many silences there were.
    silences: u32,
}

/// A unit that stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Since when nothing new has come, in the vendor's time.
    pub since: Timestamp,
    /// Polls that went well since then.
    pub polls: u32,
    /// The longest silence that is remembered of the time before, in ms.
    pub longest: Duration,
}

impl Still {
    /// Nothing has been watched.
    pub fn is_empty(&self) -> bool {
        *self == Still::default()
    }

    /// A poll has gone well. `now` is the vendor's time.
    pub fn observe(&mut self, productive: bool, now: Timestamp) {
        if !productive {
            self.polls = self.polls.saturating_add(u32::from(self.moved.is_some()));
            return;
        }
        if let Some(moved) = self.moved {
            let silence = now.saturating_sub(moved).max(0).unsigned_abs();
            self.longest = silence.max(self.longest - self.longest / 32);
            self.silences = self.silences.saturating_add(1);
        }
        self.moved = Some(now);
        self.polls = 0;
    }

    /// Whether it stands still at `now`, in the vendor's time.
    pub fn standing(&self, now: Timestamp) -> Option<Standing> {
        let since = self.moved?;
        let silence = now.saturating_sub(since).max(0).unsigned_abs();
        let unheard = self.longest.saturating_mul(LONGER).max(LEAST);
        (self.silences >= KNOWN && self.polls >= POLLS && silence > unheard).then_some(Standing {
            since,
            polls: self.polls,
            longest: self.longest,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: i64 = 60_000;

    /// Something new every five minutes up to `minutes`, polled each minute.
    fn lively(minutes: i64) -> Still {
        let mut still = Still::default();
        for minute in 0..=minutes {
            still.observe(minute % 5 == 0, minute * MINUTE);
        }
        still
    }

    fn quiet(still: &mut Still, from: i64, minutes: i64) {
        for minute in 1..=minutes {
            still.observe(false, (from + minute) * MINUTE);
        }
    }

    #[test]
    fn it_stands_still_when_it_has_been_quiet_for_much_longer_than_ever() {
        let mut still = lively(60);
        quiet(&mut still, 60, 60);
        assert_eq!(still.standing(120 * MINUTE), None, "an hour is not enough");
        quiet(&mut still, 120, 1);
        assert_eq!(
            still.standing(121 * MINUTE),
            Some(Standing {
                since: 60 * MINUTE,
                polls: 61,
                longest: 5 * MINUTE.unsigned_abs(),
            })
        );
        still.observe(true, 122 * MINUTE);
        assert_eq!(still.standing(123 * MINUTE), None, "it has moved");
    }

    #[test]
    fn a_silence_that_was_seen_before_is_no_news() {
        let mut still = lively(60);
        still.observe(true, 660 * MINUTE);
        quiet(&mut still, 660, 1_200);
        assert_eq!(still.standing(1_860 * MINUTE), None);
        quiet(&mut still, 1_860, 700);
        assert!(still.standing(2_560 * MINUTE).is_some());
    }

    #[test]
    fn nothing_is_said_of_what_is_hardly_known_or_hardly_asked() {
        let mut young = lively(20);
        quiet(&mut young, 20, 1_000);
        assert_eq!(young.standing(1_020 * MINUTE), None, "four silences");
        let mut seldom = lively(60);
        quiet(&mut seldom, 60, 11);
        assert_eq!(seldom.standing(100_000 * MINUTE), None, "eleven polls");
        let mut never = Still::default();
        quiet(&mut never, 0, 1_000);
        assert!(never.is_empty(), "and nothing is stored of it");
    }

    proptest! {
        #[test]
        fn no_clock_breaks_it(polls in prop::collection::vec((any::<bool>(), any::<i64>()), 0..60)) {
            let mut still = Still::default();
            for (productive, now) in polls {
                still.observe(productive, now);
                still.standing(now);
            }
        }
    }
}
