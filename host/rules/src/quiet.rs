//! When not to call: hours in which a vendor runs its own batches, and requests that were just made.
//!
//! **Quiet hours.** No poll begins inside them, whoever asks; one that is under way goes on. They are times of day
//! somewhere: the caller knows how far that place is from UTC at a moment.
//!
//! **Repeats.** At a vendor without published limits the same request, made again within [`REPEAT`] of a good answer,
//! is held back until that time is over. Held back, not dropped: whoever asks for new data gets them, half a minute
//! after the last time at the latest. It is no repeat when
//! - it is a later page of a walk: those differ, and the walk needs them;
//! - the last answer was a fault: what follows is a retry, which the fault's own wait spaces;
//! - the schedule asks: its next poll is a new sample, and the unit's interval, which the vendor's latency sets, is what
//!   spaces those.
//!
//! So it is there for whoever asks besides: a person, a backfill, a settle pass, a resync.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Timestamp};

/// How long the same request is suppressed after it was made, in ms, at a vendor without published limits.
pub const REPEAT: Duration = 30_000;

/// A request that was answered well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Tells requests apart.
    pub request: u64,
    /// When, by this machine's clock.
    pub at: Timestamp,
}

/// Until when a request is held back because it repeats the last one; none: it may go.
///
/// A clock that was set back does not hold it back for longer than the time itself.
pub fn repeats(last: Option<Asked>, request: u64, now: Timestamp) -> Option<Timestamp> {
    let last = last.filter(|last| last.request == request && now.abs_diff(last.at) < REPEAT)?;
    Some(last.at.min(now).saturating_add_unsigned(REPEAT))
}

/// A part of the day in which a unit is not polled: `02:00-04:30`, also past midnight: `23:00-01:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QuietHours {
    from: i64,
    until: i64,
}

/// Why a text names no quiet hours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no quiet hours: write two times of day, like `02:00-04:30` or `23:00-01:00`")]
pub struct QuietHoursError(String);

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

impl FromStr for QuietHours {
    type Err = QuietHoursError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (from, until) = text.split_once('-')?;
            let (from, until) = (time_of_day(from)?, time_of_day(until)?);
            // Equal ends would be a day of silence or nothing; nobody can tell which was meant.
            (from != until).then_some(QuietHours { from, until })
        };
        read().ok_or_else(|| QuietHoursError(text.to_owned()))
    }
}

impl TryFrom<String> for QuietHours {
    type Error = QuietHoursError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<QuietHours> for String {
    fn from(hours: QuietHours) -> Self {
        let clock = |ms: i64| format!("{:02}:{:02}", ms / MINUTE / 60, ms / MINUTE % 60);
        format!("{}-{}", clock(hours.from), clock(hours.until))
    }
}

impl QuietHours {
    /// When the quiet hours end, if `at` lies in them, where the clocks show UTC + `offset` ms.
    fn end(&self, at: Timestamp, offset: i64) -> Option<Timestamp> {
        let length = (self.until - self.from).rem_euclid(DAY);
        let into = at
            .saturating_add(offset)
            .saturating_sub(self.from)
            .rem_euclid(DAY);
        (into < length).then(|| at.saturating_add(length - into))
    }
}

/// The first moment from `at` on that lies in no quiet hours. `offset` says how far their place is ahead of UTC at a
/// moment, in ms. Quiet hours that leave no moment of the day end after one round of them: a unit is delayed, never
/// silenced.
pub fn after_quiet(
    hours: &[QuietHours],
    at: Timestamp,
    offset: impl Fn(Timestamp) -> i64,
) -> Timestamp {
    let mut at = at;
    // Once more than there are: the end may lie behind a change of the clocks, and in the quiet hours again.
    for _ in 0..=hours.len() {
        let ahead = offset(at);
        match hours.iter().filter_map(|quiet| quiet.end(at, ahead)).max() {
            Some(end) => at = end,
            None => break,
        }
    }
    at
}

fn time_of_day(text: &str) -> Option<i64> {
    let (hour, minute) = text.trim().split_once(':')?;
    let digits = |text: &str, below: i64| {
        (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse::<i64>().ok())
            .flatten()
            .filter(|value| *value < below)
    };
    Some((digits(hour, 24)? * 60 + digits(minute, 60)?) * MINUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * MINUTE;
    /// 2031-03-04T00:00:00Z
    const MIDNIGHT: Timestamp = 1_930_348_800_000;

    fn utc(hours: &[QuietHours], at: Timestamp) -> Timestamp {
        after_quiet(hours, at, |_| 0)
    }

    fn hours(text: &str) -> QuietHours {
        text.parse().unwrap()
    }

    #[test]
    fn the_same_request_is_made_once_in_half_a_minute() {
        let asked = |at| Some(Asked { request: 7, at });
        assert_eq!(repeats(None, 7, 0), None);
        assert_eq!(repeats(asked(0), 7, 29_999), Some(30_000));
        assert_eq!(repeats(asked(0), 7, 30_000), None);
        assert_eq!(repeats(asked(0), 8, 1), None, "another request");
        assert_eq!(
            repeats(asked(6 * HOUR), 7, 0),
            None,
            "the clock was set back"
        );
        assert_eq!(repeats(asked(5_000), 7, 0), Some(30_000), "and a little");
    }

    #[test]
    fn quiet_hours_delay_to_their_end() {
        let quiet = [hours("02:00-04:30")];
        assert_eq!(utc(&quiet, MIDNIGHT + HOUR), MIDNIGHT + HOUR);
        let end = MIDNIGHT + 4 * HOUR + 30 * MINUTE;
        assert_eq!(utc(&quiet, MIDNIGHT + 2 * HOUR), end);
        assert_eq!(utc(&quiet, end - 1), end);
        assert_eq!(utc(&quiet, end), end);
    }

    #[test]
    fn quiet_hours_may_pass_midnight_and_touch_others() {
        let night = [hours("23:00-01:00"), hours("01:00-02:00")];
        assert_eq!(utc(&night, MIDNIGHT - HOUR), MIDNIGHT + 2 * HOUR);
        assert_eq!(utc(&night, MIDNIGHT + 5), MIDNIGHT + 2 * HOUR);
    }

    #[test]
    fn quiet_hours_are_those_of_their_place() {
        let quiet = [hours("02:00-04:30")];
        let there = |at| after_quiet(&quiet, at, |_| 5 * HOUR + 30 * MINUTE);
        assert_eq!(
            there(MIDNIGHT - 3 * HOUR),
            MIDNIGHT - HOUR,
            "half past two there"
        );
        assert_eq!(there(MIDNIGHT + 3 * HOUR), MIDNIGHT + 3 * HOUR);
        // At two the clocks are set forward by an hour, so half past two comes after half past three did.
        let spring = |at| if at < MIDNIGHT + 2 * HOUR { 0 } else { HOUR };
        let end = after_quiet(&quiet, MIDNIGHT + 2 * HOUR, spring);
        assert_eq!(end, MIDNIGHT + 3 * HOUR + 30 * MINUTE);
    }

    #[test]
    fn a_whole_day_of_quiet_hours_still_ends() {
        let always = [hours("00:00-12:00"), hours("12:00-00:00")];
        assert!(utc(&always, MIDNIGHT) > MIDNIGHT);
    }

    #[test]
    fn what_is_no_time_of_day_is_refused_with_an_example() {
        for text in [
            "",
            "2-4",
            "02:00",
            "24:00-01:00",
            "02:60-03:00",
            "03:00-03:00",
            "+2:00-03:00",
        ] {
            let error = text.parse::<QuietHours>().unwrap_err().to_string();
            assert!(error.contains("02:00-04:30"), "{error}");
        }
        let stored = serde_json::to_string(&hours(" 02:00 - 04:30 ")).unwrap();
        assert_eq!(stored, r#""02:00-04:30""#);
    }
}
