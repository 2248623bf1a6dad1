//! What the vendor's clock says, learnt from the `Date` of its answers.
//!
//! Stamps, windows and the watermark are in the vendor's time. A host whose clock runs ten minutes fast would ask
//! for a future that is empty, and one that runs slow would leave the newest records for later. Promises: one
//! stale `Date` from a cache in between moves nothing; a difference that stays is followed.

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Timestamp};

/// A difference up to this is taken for none, in ms: `Date` has whole seconds, and answers take their time.
pub const TOLERANCE: Duration = 2_000;
/// A difference that changes by more than this, in ms, is believed only when it repeats.
const JUMP: i64 = 30_000;
/// So does the first difference that is seen, when it is more than this, in ms: clocks are off by minutes, while an
/// answer that a cache has kept for years is off by years.
const FIRST: i64 = 3_600_000;
/// How often it has to repeat.
const REPEATS: u8 = 3;

/// The difference between the vendor's clock and ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VendorClock {
    /// Vendor minus host, in ms, smoothed; none before the first answer.
    offset: Option<i64>,
    /// A very different offset that was seen lately, and how often in a row.
    suspect: Option<(i64, u8)>,
}

/// What an answer did to the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// It fits.
    Agreed,
    /// It is far off what was known: not believed yet.
    Doubted,
    /// It has been far off for a few answers in a row: followed. Worth a line in the log, with the new
    /// difference in ms.
    Jumped(i64),
}

impl VendorClock {
    /// Takes in the `Date` of an answer, with when it was asked for and when it came, by our clock.
    pub fn observe(&mut self, date: Timestamp, sent: Timestamp, received: Timestamp) -> Observed {
        // `Date` is cut to whole seconds, so on average half a second is missing. It was written somewhere
        // between asking and receiving; a clock that was set back in between tells nothing.
        let halfway = sent.saturating_add(received.saturating_sub(sent).max(0) / 2);
        let seen = date.saturating_add(500).saturating_sub(halfway);
        match self.offset {
            None if apart(seen, 0) <= FIRST => {
                self.suspect = None;
                self.offset = Some(seen);
                return Observed::Agreed;
            }
            Some(offset) if apart(seen, offset) <= JUMP => {
                self.suspect = None;
                self.offset = Some(offset.saturating_add(seen.saturating_sub(offset) / 8));
                return Observed::Agreed;
            }
            _ => {}
        }
        let times = match self.suspect {
            Some((suspect, times)) if apart(seen, suspect) <= JUMP => times.saturating_add(1),
            _ => 1,
        };
        if times < REPEATS {
            self.suspect = Some((seen, times));
            return Observed::Doubted;
        }
        self.suspect = None;
        self.offset = Some(seen);
        Observed::Jumped(seen)
    }

    /// Vendor minus host in ms; 0 within the tolerance and before the first answer.
    pub fn offset(&self) -> i64 {
        self.offset
            .filter(|offset| offset.unsigned_abs() > TOLERANCE)
            .unwrap_or(0)
    }

    /// As [`VendorClock::offset`]; none while it is not known: before the first answer with a `Date`, and while one is
    /// doubted.
    pub fn skew(&self) -> Option<i64> {
        let certain = self.offset.is_some() && self.suspect.is_none();
        certain.then(|| self.offset())
    }

    /// The earliest that it may be by the vendor's clock: while a very different `Date` is neither believed nor gone again,
    /// nobody knows which is right.
    pub fn earliest(&self, host_now: Timestamp) -> Timestamp {
        let now = self.now(host_now);
        self.suspect.map_or(now, |(suspect, _)| {
            now.min(host_now.saturating_add(suspect))
        })
    }

    /// Our time in the vendor's.
    pub fn now(&self, host_now: Timestamp) -> Timestamp {
        host_now.saturating_add(self.offset())
    }
}

fn apart(a: i64, b: i64) -> i64 {
    a.saturating_sub(b).saturating_abs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = 1_930_384_800_000;

    /// The `Date` that a vendor whose clock differs by `offset` puts on an answer.
    fn date(at: Timestamp, offset: i64) -> Timestamp {
        (at + offset).div_euclid(1_000) * 1_000
    }

    #[test]
    fn a_first_date_that_is_wild_is_believed_only_when_it_repeats() {
        let mut clock = VendorClock::default();
        assert_eq!(clock.skew(), None, "nothing is known");
        assert_eq!(clock.observe(0, NOW, NOW), Observed::Doubted);
        assert_eq!(clock.skew(), None, "nor is it yet");
        assert_eq!(
            clock.now(NOW),
            NOW,
            "one answer out of an old cache moves nothing"
        );
        assert_eq!(clock.observe(NOW, NOW, NOW), Observed::Agreed);
        assert_eq!(clock.skew(), Some(0));
        let mut clock = VendorClock::default();
        let day = 86_400_000;
        for _ in 0..2 {
            assert_eq!(clock.observe(NOW - day, NOW, NOW), Observed::Doubted);
        }
        assert!(matches!(
            clock.observe(NOW - day, NOW, NOW),
            Observed::Jumped(_)
        ));
        assert!(clock.now(NOW) < NOW - day + 1_000);
    }

    #[test]
    fn while_a_date_is_doubted_the_earlier_time_counts() {
        let mut clock = VendorClock::default();
        clock.observe(date(NOW, 0), NOW, NOW);
        assert_eq!(clock.earliest(NOW), NOW);
        // Our clock is set a day ahead.
        let day = 86_400_000;
        clock.observe(date(NOW, 0), NOW + day, NOW + day);
        assert_eq!(clock.now(NOW + day), NOW + day);
        assert!(clock.earliest(NOW + day).abs_diff(NOW) < 1_000);
        // And back: the later time is the one that is believed.
        clock.observe(date(NOW, 0), NOW - day, NOW - day);
        assert_eq!(clock.earliest(NOW - day), NOW - day);
    }

    #[test]
    fn the_first_date_is_taken_as_it_is() {
        let mut clock = VendorClock::default();
        assert_eq!(clock.now(NOW), NOW);
        clock.observe(date(NOW, 600_000), NOW - 100, NOW + 100);
        assert!((clock.now(NOW) - NOW - 600_000).abs() <= 500);
    }

    #[test]
    fn whole_seconds_and_slow_answers_are_no_difference() {
        let mut clock = VendorClock::default();
        for n in 0..50 {
            let at = NOW + n * 777;
            clock.observe(date(at, 0), at - 900, at + 900);
            assert_eq!(clock.now(at), at);
        }
    }

    #[test]
    fn one_stale_answer_from_a_cache_moves_nothing() {
        let mut clock = VendorClock::default();
        clock.observe(date(NOW, 0), NOW, NOW);
        let stale = clock.observe(date(NOW, -3_600_000), NOW, NOW);
        assert_eq!(stale, Observed::Doubted);
        assert_eq!(clock.skew(), None, "either may be true");
        assert_eq!(clock.observe(date(NOW, 0), NOW, NOW), Observed::Agreed);
        assert_eq!(clock.now(NOW), NOW);
    }

    #[test]
    fn case_039_a_clock_that_was_set_is_followed_and_said() {
        let six_hours = 6 * 3_600_000;
        for jump in [six_hours, -six_hours] {
            let mut clock = VendorClock::default();
            clock.observe(date(NOW, 0), NOW, NOW);
            let host = NOW + jump;
            let seen: Vec<_> = (0..3)
                .map(|_| clock.observe(date(NOW, 0), host, host))
                .collect();
            assert_eq!(seen[..2], [Observed::Doubted; 2]);
            assert!(matches!(seen[2], Observed::Jumped(_)));
            assert!((clock.now(host) - NOW).abs() <= 500);
        }
    }

    proptest! {
        #[test]
        fn it_settles_near_the_vendors_clock(
            offset in -100_000_000_i64..100_000_000,
            waits in prop::collection::vec(0_i64..2_000, 10..60),
        ) {
            let mut clock = VendorClock::default();
            let mut at = NOW;
            for wait in waits {
                at += wait + 100;
                clock.observe(date(at, offset), at - wait / 2, at + wait / 2);
            }
            prop_assert!((clock.now(at) - at - offset).abs() <= 500 + TOLERANCE as i64);
        }

        #[test]
        fn absurd_dates_break_nothing(
            steps in prop::collection::vec((any::<i64>(), any::<i64>(), any::<i64>()), 0..20),
        ) {
            let mut clock = VendorClock::default();
            for (date, sent, received) in steps {
                clock.observe(date, sent, received);
                clock.now(received);
            }
        }
    }
}
