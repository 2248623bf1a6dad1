//! When not to call: hours in which a vendor runs its own batches, and requests that were just made.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Timestamp};

/// How long the same request is suppressed after it was made, in ms, at a vendor without published limits.
pub const REPEAT: Duration = 30_000;

/// Whether a request is the repeat of one that was made too short a time ago, whoever asks.
///
/// A clock that was set back does not suppress for longer than the time itself.
pub fn repeats(last: Option<Timestamp>, now: Timestamp, within: Duration) -> bool {
    last.is_some_and(|last| now.abs_diff(last) < within)
}

/// A part of the day (UTC) in which a unit is not polled: `02:00-04:30`, also past midnight: `23:00-01:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QuietHours {
    from: i64,
    until: i64,
}

/// Why a text names no quiet hours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no quiet hours: write two times of day in UTC, like `02:00-04:30` or `23:00-01:00`"
)]
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
    /// When the quiet hours end, if `at` lies in them.
    fn end(&self, at: Timestamp) -> Option<Timestamp> {
        let length = (self.until - self.from).rem_euclid(DAY);
        let into = at.saturating_sub(self.from).rem_euclid(DAY);
        (into < length).then(|| at.saturating_add(length - into))
    }
}

/// The first moment from `at` on that lies in no quiet hours. Quiet hours that leave no moment of the day
/// end after one round of them: a unit is delayed, never silenced.
pub fn after_quiet(hours: &[QuietHours], at: Timestamp) -> Timestamp {
    let mut at = at;
    for _ in 0..=hours.len() {
        match hours.iter().filter_map(|quiet| quiet.end(at)).max() {
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

    fn hours(text: &str) -> QuietHours {
        text.parse().unwrap()
    }

    #[test]
    fn the_same_request_is_made_once_in_half_a_minute() {
        assert!(!repeats(None, 0, REPEAT));
        assert!(repeats(Some(0), 29_999, REPEAT));
        assert!(!repeats(Some(0), 30_000, REPEAT));
        assert!(
            !repeats(Some(6 * HOUR), 0, REPEAT),
            "the clock was set back"
        );
    }

    #[test]
    fn quiet_hours_delay_to_their_end() {
        let quiet = [hours("02:00-04:30")];
        assert_eq!(after_quiet(&quiet, MIDNIGHT + HOUR), MIDNIGHT + HOUR);
        let end = MIDNIGHT + 4 * HOUR + 30 * MINUTE;
        assert_eq!(after_quiet(&quiet, MIDNIGHT + 2 * HOUR), end);
        assert_eq!(after_quiet(&quiet, end - 1), end);
        assert_eq!(after_quiet(&quiet, end), end);
    }

    #[test]
    fn quiet_hours_may_pass_midnight_and_touch_others() {
        let night = [hours("23:00-01:00"), hours("01:00-02:00")];
        assert_eq!(after_quiet(&night, MIDNIGHT - HOUR), MIDNIGHT + 2 * HOUR);
        assert_eq!(after_quiet(&night, MIDNIGHT + 5), MIDNIGHT + 2 * HOUR);
    }

    #[test]
    fn a_whole_day_of_quiet_hours_still_ends() {
        let always = [hours("00:00-12:00"), hours("12:00-00:00")];
        assert!(after_quiet(&always, MIDNIGHT) > MIDNIGHT);
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
