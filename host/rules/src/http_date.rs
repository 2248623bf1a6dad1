//! Dates as vendors write them in headers, and the moment that an answer counts from.
//!
//! Reads the three forms of RFC 9110 section 5.6.7, what RFC 5322 allows beyond them (`4 Mar`, `+0000`), and
//! RFC 3339 with any number of fraction digits or without seconds. Says none to everything else: a date that
//! cannot be read is no date, and never a fault.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;

use crate::model::Timestamp;

/// A two-digit year that would lie further ahead than this is of the past century (RFC 9110, 5.6.7).
const YEARS_AHEAD: i64 = 50;

/// Reads weekdays without comparing them with the date: a wrong weekday does not make a time unreadable.
static MAIL_DATE: rfc2822::DateTimeParser = rfc2822::DateTimeParser::new().relaxed_weekday(true);

/// When an answer was given, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// When it arrived, by our clock.
    pub received: Timestamp,
    /// Its `Date`, by the vendor's clock; none if absent or unreadable.
    pub date: Option<Timestamp>,
}

impl Anchor {
    /// The anchor of an answer that arrived at `received`.
    pub fn of(headers: &[(String, String)], received: Timestamp) -> Self {
        let date = values(headers, "date").find_map(|value| http_date(value, received));
        Self { received, date }
    }

    /// What a moment that the vendor names is compared with: its own clock, so that ours may be wrong.
    pub fn moment(&self) -> Timestamp {
        self.date.unwrap_or(self.received)
    }
}

/// The values of a header, in the order of their lines. Header names have no case.
pub(crate) fn values<'a>(
    headers: &'a [(String, String)],
    name: &'a str,
) -> impl Iterator<Item = &'a str> {
    headers
        .iter()
        .filter(move |(header, _)| header.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// An HTTP date in any of its three forms. `now` decides the century of a two-digit year.
pub fn http_date(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    // Not a legal zone, but some vendors' `Date` ends so, and it can mean only one thing.
    let greenwich = text.strip_suffix("UTC").map(|stem| format!("{stem}GMT"));
    let text = greenwich.as_deref().unwrap_or(text);
    if let Some(spelt_out) = with_full_year(text, now) {
        return mail(&spelt_out);
    }
    strict(text).or_else(|| mail(text))
}

/// The preferred form and what is close to it.
fn mail(text: &str) -> Option<Timestamp> {
    let moment = MAIL_DATE.parse_timestamp(text).ok()?;
    Some(moment.as_millisecond())
}

fn strict(text: &str) -> Option<Timestamp> {
    let moment: SystemTime = httpdate::parse_http_date(text).ok()?;
    i64::try_from(moment.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// Turns the RFC 850 form, `Sunday, 06-Nov-94 08:49:37 GMT`, into the preferred one without its weekday.
fn with_full_year(text: &str, now: Timestamp) -> Option<String> {
    let (_, rest) = text.split_once(", ")?;
    let (date, time) = rest.split_once(' ')?;
    let mut parts = date.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let year = match year.len() {
        2 => full_year(year.parse().ok()?, now)?,
        4 => year.parse().ok()?,
        _ => return None,
    };
    Some(format!("{day} {month} {year:04} {time}"))
}

fn full_year(two_digits: u8, now: Timestamp) -> Option<i64> {
    let now = jiff::Timestamp::from_millisecond(now).ok()?;
    let this_year = i64::from(TimeZone::UTC.to_datetime(now).year());
    // The latest year that ends so and is not too far ahead.
    let latest = this_year + YEARS_AHEAD;
    Some(latest - (latest - i64::from(two_digits)).rem_euclid(100))
}

/// An RFC 3339 timestamp, also without seconds and with any number of fraction digits; what is finer than a
/// millisecond is cut off. A time without a zone is not a timestamp.
pub fn rfc3339(text: &str) -> Option<Timestamp> {
    let moment: jiff::Timestamp = text.trim().parse().ok()?;
    Some(moment.as_millisecond())
}

/// A moment in any form that a header may hold: as [`http_date`], as [`rfc3339`], or as the latter without a
/// zone, which is then UTC.
pub fn any_form(text: &str, now: Timestamp) -> Option<Timestamp> {
    http_date(text, now).or_else(|| rfc3339(text)).or_else(|| {
        let text = text.trim();
        // A bare date is taken for the first moment of its day.
        let wall: civil::DateTime = text.parse().ok()?;
        let moment = TimeZone::UTC.to_timestamp(wall).ok()?;
        Some(moment.as_millisecond())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2031-03-04T10:00:00Z
    const NOW: Timestamp = 1_930_384_800_000;
    /// 1994-11-06T08:49:37Z
    const RFC_EXAMPLE: Timestamp = 784_111_777_000;

    fn headers(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        lines.iter().map(owned).collect()
    }

    #[test]
    fn the_three_forms_of_the_standard() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(http_date(text, NOW), Some(RFC_EXAMPLE), "{text}");
        }
    }

    #[test]
    fn near_misses_that_can_mean_only_one_thing() {
        for text in [
            " Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994 09:49:37 +0100",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Mon, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(http_date(text, NOW), Some(RFC_EXAMPLE), "{text}");
        }
    }

    #[test]
    fn a_two_digit_year_lies_at_most_fifty_years_ahead() {
        let year = |two: &str| {
            let text = format!("Sunday, 06-Nov-{two} 00:00:00 GMT");
            let moment = jiff::Timestamp::from_millisecond(http_date(&text, NOW).unwrap()).unwrap();
            TimeZone::UTC.to_datetime(moment).year()
        };
        assert_eq!(year("31"), 2031);
        assert_eq!(year("81"), 2081);
        assert_eq!(year("82"), 1982);
        assert_eq!(year("99"), 1999);
        assert_eq!(year("00"), 2000);
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "soon",
            "0",
            "-1",
            "1930384800",
            "Tue, 32 Mar 2031 10:00:00 GMT",
            "10:00:00",
        ] {
            assert_eq!(http_date(text, NOW), None, "{text}");
        }
    }

    #[test]
    fn timestamps_of_any_precision() {
        assert_eq!(rfc3339("2031-03-04T10:00:00Z"), Some(NOW));
        assert_eq!(rfc3339("2031-03-04T10:00Z"), Some(NOW));
        assert_eq!(rfc3339("2031-03-04T11:00+01:00"), Some(NOW));
        assert_eq!(rfc3339("2031-03-04T10:00:00.000+0000"), Some(NOW));
        assert_eq!(rfc3339("2031-03-04t10:00:00.1239z"), Some(NOW + 123));
        assert_eq!(rfc3339("2031-03-04T10:00:00.9606191Z"), Some(NOW + 960));
        assert_eq!(rfc3339("2031-03-04 10:00:00Z"), Some(NOW));
        assert_eq!(rfc3339("2031-03-04T10:00:00"), None);
        assert_eq!(rfc3339("2031-02-30T10:00:00Z"), None);
        assert_eq!(any_form("2031-03-04T10:00:00", NOW), Some(NOW));
        assert_eq!(any_form("Tue, 04 Mar 2031 10:00:00 GMT", NOW), Some(NOW));
        assert_eq!(any_form("tomorrow", NOW), None);
    }

    #[test]
    fn the_anchor_is_the_answers_own_date() {
        let local = NOW + 5_000;
        let dated = Anchor::of(
            &headers(&[("DATE", "Tue, 04 Mar 2031 10:00:00 GMT")]),
            local,
        );
        assert_eq!(dated.moment(), NOW);
        // An illegal zone that is clear, and a date that is none.
        let utc = Anchor::of(
            &headers(&[("date", "Tue, 04 Mar 2031 10:00:00 UTC")]),
            local,
        );
        assert_eq!(utc.moment(), NOW);
        let bad = Anchor::of(&headers(&[("date", "yesterday")]), local);
        assert_eq!((bad.date, bad.moment()), (None, local));
        assert_eq!(Anchor::of(&[], local).moment(), local);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), now in any::<i64>()) {
            let _ = (http_date(&text, now), rfc3339(&text), any_form(&text, now));
        }

        #[test]
        fn what_is_formatted_is_read(seconds in 0_i64..4_102_444_800) {
            let moment = UNIX_EPOCH + std::time::Duration::from_secs(seconds.unsigned_abs());
            prop_assert_eq!(http_date(&httpdate::fmt_http_date(moment), NOW), Some(seconds * 1000));
        }
    }
}
