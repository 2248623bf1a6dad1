//! `Retry-After` (RFC 9110, section 10.2.3) and its siblings: the vendor's own word on when to come back.
//!
//! | value | outcome |
//! | --- | --- |
//! | seconds, whole or decimal | a wait, rounded up to whole seconds |
//! | ms under a name that says so | a wait |
//! | a date, an epoch, a span with units | a wait, counted from the answer's own `Date` |
//! | a date that is over | due now: skew and slow networks make it, and the vendor's pause is over |
//! | zero, negative, blank, unreadable, more than a year | unusable: as if the vendor had said nothing |
//!
//! Of several readable values the longest counts. A wait of more than a day is believed and marked absurd:
//! going early would be wrong, and so would be silence.

use crate::http_date::Anchor;
use crate::model::Duration;
use crate::moment::{self, Moment, Unit};

/// From here on a wait is [absurd](RetryAfter::Wait).
pub const ABSURD: Duration = 24 * 60 * 60 * 1000;

/// The names under which vendors say it, and the unit of a plain number there.
const NAMES: [(&str, Unit); 6] = [
    ("retry-after", Unit::ByMagnitude),
    ("x-retry-after", Unit::ByMagnitude),
    ("beta-retry-after", Unit::ByMagnitude),
    ("x-ratelimit-retry-after", Unit::ByMagnitude),
    ("retry-after-ms", Unit::Milliseconds),
    ("x-ms-retry-after-ms", Unit::Milliseconds),
];

/// What an answer says about coming back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// Not before this many ms have passed since the answer; never 0.
    Wait(Duration),
    /// The moment is over.
    DueNow,
    /// The header is there, and says nothing that could be followed.
    Unusable,
}

/// Reads the headers of one answer; none if it has no such header.
pub fn read(headers: &[(String, String)], at: &Anchor) -> Option<RetryAfter> {
    headers
        .iter()
        .filter_map(|(name, value)| {
            let unit = unit_of(name)?;
            Some(one(value, unit, at))
        })
        .reduce(|a, b| match (a, b) {
            (RetryAfter::Wait(a), RetryAfter::Wait(b)) => RetryAfter::Wait(a.max(b)),
            (RetryAfter::Wait(ms), _) | (_, RetryAfter::Wait(ms)) => RetryAfter::Wait(ms),
            (RetryAfter::DueNow, _) | (_, RetryAfter::DueNow) => RetryAfter::DueNow,
            _ => RetryAfter::Unusable,
        })
}

/// Whether a header is one of these.
pub(crate) fn unit_of(name: &str) -> Option<Unit> {
    NAMES
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known))
        .map(|(_, unit)| *unit)
}

fn one(value: &str, unit: Unit, at: &Anchor) -> RetryAfter {
    let Some(moment) = readable(value, unit, at) else {
        return RetryAfter::Unusable;
    };
    let Some(wait) = moment.from(at.moment()) else {
        return RetryAfter::Unusable;
    };
    match (Duration::try_from(wait), moment) {
        (Ok(1..), _) => RetryAfter::Wait(whole_seconds(wait.unsigned_abs(), unit)),
        (_, Moment::At(_)) => RetryAfter::DueNow,
        (_, Moment::In(_)) => RetryAfter::Unusable,
    }
}

/// The value, or the latest of several that a proxy joined into one line.
fn readable(value: &str, unit: Unit, at: &Anchor) -> Option<Moment> {
    let now = at.moment();
    moment::read(value, unit, now).or_else(|| {
        value
            .split(',')
            .filter_map(|part| moment::read(part, unit, now))
            .max_by_key(|moment| moment.from(now))
    })
}

/// Vendors count whole seconds; a fraction is rounded up.
fn whole_seconds(wait: Duration, unit: Unit) -> Duration {
    match unit {
        Unit::ByMagnitude => wait.div_ceil(1000) * 1000,
        Unit::Milliseconds => wait,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2031-03-04T10:00:00Z
    const NOW: i64 = 1_930_384_800_000;
    const AT: Anchor = Anchor {
        received: NOW,
        date: Some(NOW),
    };

    fn said(lines: &[(&str, &str)]) -> Option<RetryAfter> {
        let headers: Vec<_> = lines
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        read(&headers, &AT)
    }

    fn value(value: &str) -> Option<RetryAfter> {
        said(&[("Retry-After", value)])
    }

    #[test]
    fn case_001_a_date_is_not_cast_to_a_number() {
        let date = "Tue, 04 Mar 2031 10:01:30 GMT";
        assert_eq!(value(date), Some(RetryAfter::Wait(90_000)));
        assert_eq!(
            value("Tuesday, 04-Mar-31 10:01:30 GMT"),
            Some(RetryAfter::Wait(90_000))
        );
        assert_eq!(
            value("Tue Mar  4 10:01:30 2031"),
            Some(RetryAfter::Wait(90_000))
        );
    }

    #[test]
    fn case_001_a_date_counts_from_the_answers_own_date() {
        // Our clock is ten minutes late; the vendor's two stamps agree.
        let at = Anchor {
            received: NOW - 600_000,
            date: Some(NOW),
        };
        let headers = [(
            "retry-after".to_owned(),
            "Tue, 04 Mar 2031 10:01:30 GMT".to_owned(),
        )];
        assert_eq!(read(&headers, &at), Some(RetryAfter::Wait(90_000)));
        let undated = Anchor {
            received: NOW,
            date: None,
        };
        assert_eq!(read(&headers, &undated), Some(RetryAfter::Wait(90_000)));
    }

    #[test]
    fn case_003_decimal_seconds_are_rounded_up() {
        assert_eq!(value("299.997"), Some(RetryAfter::Wait(300_000)));
        assert_eq!(value("2.0"), Some(RetryAfter::Wait(2000)));
        assert_eq!(value("0.0001"), Some(RetryAfter::Wait(1000)));
    }

    #[test]
    fn case_005_what_makes_no_sense_is_unusable() {
        for text in [
            "-1",
            "0",
            "0.0",
            "",
            "  ",
            "soon",
            "1e3",
            "-0.5",
            "NaN",
            "99999999999999999999999",
        ] {
            assert_eq!(value(text), Some(RetryAfter::Unusable), "{text:?}");
        }
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[("x-other", "5")]), None);
    }

    #[test]
    fn case_009_a_long_wait_is_not_capped() {
        assert_eq!(value("3600"), Some(RetryAfter::Wait(3_600_000)));
        assert_eq!(value("172800"), Some(RetryAfter::Wait(172_800_000)));
        // More than a year is a misreading.
        assert_eq!(value("999999999"), Some(RetryAfter::Unusable));
        assert_eq!(
            value("Tue, 04 Mar 2042 10:00:00 GMT"),
            Some(RetryAfter::Unusable)
        );
    }

    #[test]
    fn case_011_a_date_that_is_over_is_due_now() {
        assert_eq!(
            value("Tue, 04 Mar 2031 09:59:20 GMT"),
            Some(RetryAfter::DueNow)
        );
        assert_eq!(
            value("Tue, 04 Mar 2031 10:00:00 GMT"),
            Some(RetryAfter::DueNow)
        );
        assert_eq!(value("1930384795"), Some(RetryAfter::DueNow));
    }

    #[test]
    fn siblings_and_their_units() {
        assert_eq!(
            said(&[("retry-after-ms", "1250")]),
            Some(RetryAfter::Wait(1250))
        );
        assert_eq!(
            said(&[("X-MS-Retry-After-MS", "100")]),
            Some(RetryAfter::Wait(100))
        );
        assert_eq!(
            said(&[("x-retry-after", "7")]),
            Some(RetryAfter::Wait(7000))
        );
        assert_eq!(
            said(&[("x-ratelimit-retry-after", "7")]),
            Some(RetryAfter::Wait(7000))
        );
        assert_eq!(
            said(&[("Beta-Retry-After", "7")]),
            Some(RetryAfter::Wait(7000))
        );
        assert_eq!(value("2031-03-04T10:00:05Z"), Some(RetryAfter::Wait(5000)));
        assert_eq!(value("1930384860"), Some(RetryAfter::Wait(60_000)));
        assert_eq!(value("1m30s"), Some(RetryAfter::Wait(90_000)));
    }

    #[test]
    fn the_longest_readable_value_counts() {
        let lines = [
            ("retry-after", "-1"),
            ("retry-after-ms", "250"),
            ("x-retry-after", "2"),
        ];
        assert_eq!(said(&lines), Some(RetryAfter::Wait(2000)));
        assert_eq!(
            said(&[("retry-after", "5"), ("Retry-After", "30")]),
            Some(RetryAfter::Wait(30_000))
        );
        assert_eq!(value("5, 30"), Some(RetryAfter::Wait(30_000)));
        let over = [
            ("retry-after", "x"),
            ("x-retry-after", "Tue, 04 Mar 2031 09:59:20 GMT"),
        ];
        assert_eq!(said(&over), Some(RetryAfter::DueNow));
    }

    proptest! {
        #[test]
        fn no_header_panics_or_gives_a_wait_of_nothing(name in 0..NAMES.len(), text in any::<String>(), received in any::<i64>()) {
            let headers = [(NAMES[name].0.to_owned(), text)];
            for date in [None, Some(NOW)] {
                if let Some(RetryAfter::Wait(ms)) = read(&headers, &Anchor { received, date }) {
                    prop_assert!((1..=moment::HORIZON + 1000).contains(&ms));
                }
            }
        }

        #[test]
        fn seconds_are_never_cut_short(seconds in 1_u64..1_000_000, fraction in 0_u32..1000) {
            let text = format!("{seconds}.{fraction:03}");
            let Some(RetryAfter::Wait(ms)) = value(&text) else { panic!("{text}") };
            prop_assert!(ms >= seconds * 1000 + u64::from(fraction));
            prop_assert!(ms < (seconds + 2) * 1000);
        }
    }
}
