//! One value that says until when to wait, in whichever of many forms a vendor wrote it.
//!
//! | form | examples | read as |
//! | --- | --- | --- |
//! | a number below 10^9 | `30`, `7.550697` | seconds from the answer |
//! | from 10^9 | `1930384860`, `1778746368.143` | seconds since the epoch |
//! | from 10^12, 10^15 | `1930384860000` | milli-, microseconds since the epoch |
//! | a span with units | `6m0s`, `8.64s`, `120ms`, `5 minutes` | that span |
//! | a clock span | `00:00:00.033`, `1:30` | hours, minutes and seconds |
//! | a date | `Tue, 04 Mar 2031 10:01:30 GMT`, `2031-03-04T10:01Z` | that moment |
//!
//! The number alone decides between a span and a moment, because the header's name does not: one vendor sends
//! both under one name. Everything is rounded up to the next millisecond, so that nobody comes back early.

use crate::http_date;
use crate::model::{Duration, Timestamp};

/// The longest wait that is believed. A vendor that seems to say more than a year has been misread.
pub(crate) const HORIZON: Duration = 366 * 24 * 60 * 60 * 1000;

/// What a value says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// So many ms from the answer; negative values occur.
    In(i64),
    /// At this moment, by the vendor's clock.
    At(Timestamp),
}

impl Moment {
    /// The ms from `from` to this moment; negative when it is over. None beyond the [`HORIZON`].
    pub(crate) fn from(self, from: Timestamp) -> Option<i64> {
        let wait = match self {
            Moment::In(wait) => wait,
            Moment::At(moment) => moment.saturating_sub(from),
        };
        (wait <= HORIZON as i64).then_some(wait)
    }
}

/// The unit of a plain number, as far as the header's name fixes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// It does not.
    ByMagnitude,
    /// Milliseconds from the answer, unless the number is too large for anything but an epoch.
    Milliseconds,
}

/// Reads a value; none if it is in no known form.
pub(crate) fn read(text: &str, unit: Unit, now: Timestamp) -> Option<Moment> {
    let text = text.trim().trim_matches('"').trim();
    if let Some(thousandths) = thousandths(text) {
        return Some(number(thousandths, unit));
    }
    if let Some(span) = clock_span(text).or_else(|| unit_span(text)) {
        return Some(Moment::In(span));
    }
    http_date::any_form(text, now).map(Moment::At)
}

fn number(thousandths: i64, unit: Unit) -> Moment {
    const E9: i64 = 1_000_000_000_000;
    let whole = ceil_div(thousandths, 1000);
    match thousandths {
        n if n >= E9 * 1_000_000 => Moment::At(ceil_div(whole, 1000)),
        n if n >= E9 * 1000 => Moment::At(whole),
        n if unit == Unit::Milliseconds => Moment::In(ceil_div(n, 1000)),
        n if n >= E9 => Moment::At(n),
        n => Moment::In(n),
    }
}

fn ceil_div(n: i64, by: i64) -> i64 {
    n.div_euclid(by) + i64::from(n.rem_euclid(by) != 0)
}

/// A decimal number times 1,000, rounded up; none for anything but `-?digits(.digits)?`, and for what is too
/// large to be a time.
pub(crate) fn thousandths(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let mut thousandths: i64 = whole.parse().ok()?;
    let (fine, finer) = fraction.split_at(fraction.len().min(3));
    thousandths = thousandths
        .checked_mul(1000)?
        .checked_add(format!("{fine:0<3}").parse().ok()?)?;
    let rest = finer.bytes().any(|b| b != b'0');
    Some(match negative {
        // Up is towards zero here.
        true => -thousandths,
        false => thousandths.checked_add(i64::from(rest))?,
    })
}

/// `[h:]m:s[.fraction]` in ms.
fn clock_span(text: &str) -> Option<i64> {
    let mut parts = text.rsplit(':');
    let seconds = thousandths(parts.next()?)?;
    let minutes: i64 = plain(parts.next()?)?;
    let hours: i64 = parts.next().map_or(Some(0), plain)?;
    if parts.next().is_some() || !(0..60_000).contains(&seconds) || minutes >= 60 {
        return None;
    }
    hours
        .checked_mul(60)?
        .checked_add(minutes)?
        .checked_mul(60_000)?
        .checked_add(seconds)
}

fn plain(digits: &str) -> Option<i64> {
    digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

/// One or more numbers with a unit each, in ms: `6m0s`, `1.5 hours`.
pub(crate) fn unit_span(text: &str) -> Option<i64> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut span: i64 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(number_end);
        let tail = tail.trim_start();
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit() || c.is_whitespace())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let amount = thousandths(number)?;
        let part = match unit {
            "ns" => ceil_div(amount, 1_000_000_000),
            "us" | "µs" | "μs" => ceil_div(amount, 1_000_000),
            "ms" | "msec" | "millisecond" | "milliseconds" => ceil_div(amount, 1000),
            "s" | "sec" | "secs" | "second" | "seconds" => amount,
            "m" | "min" | "mins" | "minute" | "minutes" => amount.checked_mul(60)?,
            "h" | "hr" | "hrs" | "hour" | "hours" => amount.checked_mul(3600)?,
            "d" | "day" | "days" => amount.checked_mul(86_400)?,
            _ => return None,
        };
        span = span.checked_add(part)?;
        rest = tail.trim_start();
    }
    Some(span)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2031-03-04T10:00:00Z
    const NOW: Timestamp = 1_930_384_800_000;

    fn by_magnitude(text: &str) -> Option<Moment> {
        read(text, Unit::ByMagnitude, NOW)
    }

    #[test]
    fn the_magnitude_of_a_number_decides() {
        assert_eq!(by_magnitude("30"), Some(Moment::In(30_000)));
        assert_eq!(by_magnitude("7.550697"), Some(Moment::In(7551)));
        assert_eq!(by_magnitude("10.000"), Some(Moment::In(10_000)));
        assert_eq!(by_magnitude("999999999"), Some(Moment::In(999_999_999_000)));
        assert_eq!(by_magnitude("1930384860"), Some(Moment::At(NOW + 60_000)));
        assert_eq!(by_magnitude("1930384800.143"), Some(Moment::At(NOW + 143)));
        assert_eq!(
            by_magnitude("1930384860000"),
            Some(Moment::At(NOW + 60_000))
        );
        assert_eq!(
            by_magnitude("1930384860000001"),
            Some(Moment::At(NOW + 60_001))
        );
        assert_eq!(by_magnitude("-5"), Some(Moment::In(-5000)));
        assert_eq!(by_magnitude("\"30\""), Some(Moment::In(30_000)));
    }

    #[test]
    fn a_name_in_milliseconds_counts_in_them() {
        let read = |text| super::read(text, Unit::Milliseconds, NOW);
        assert_eq!(read("27928"), Some(Moment::In(27_928)));
        assert_eq!(read("0.5"), Some(Moment::In(1)));
        assert_eq!(read("1930384860000"), Some(Moment::At(NOW + 60_000)));
        assert_eq!(read("00:00:00.033"), Some(Moment::In(33)));
    }

    #[test]
    fn spans_with_units() {
        for (text, ms) in [
            ("6m0s", 360_000),
            ("8.64s", 8640),
            ("120ms", 120),
            ("0s", 0),
            ("1h2m3s", 3_723_000),
            ("1.5 hours", 5_400_000),
            ("5 minutes", 300_000),
            ("2d", 172_800_000),
            ("1500us", 2),
            ("1:30", 90_000),
            ("01:00:00", 3_600_000),
        ] {
            assert_eq!(by_magnitude(text), Some(Moment::In(ms)), "{text}");
        }
    }

    #[test]
    fn dates() {
        for text in [
            "Tue, 04 Mar 2031 10:01:00 GMT",
            "2031-03-04T10:01Z",
            "2031-03-04T10:01:00.0000000Z",
        ] {
            assert_eq!(by_magnitude(text), Some(Moment::At(NOW + 60_000)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            " ",
            "soon",
            "1e5",
            "0x10",
            "--1",
            "1.",
            ".5",
            "5 parsecs",
            "s",
            "1:60:00",
            "99:99",
            "1:2:3:4",
            "99999999999999999999",
            "NaN",
            "inf",
        ] {
            assert_eq!(by_magnitude(text), None, "{text}");
        }
    }

    #[test]
    fn nothing_is_believed_beyond_the_horizon() {
        let horizon = i64::try_from(HORIZON).unwrap();
        assert_eq!(Moment::In(horizon).from(NOW), Some(horizon));
        assert_eq!(Moment::In(horizon + 1).from(NOW), None);
        assert_eq!(Moment::At(i64::MAX).from(NOW), None);
        assert_eq!(Moment::At(NOW - 5000).from(NOW), Some(-5000));
        assert_eq!(Moment::At(i64::MIN).from(i64::MAX), Some(i64::MIN));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), near in "[-+]?[0-9]{0,22}[.:]?[0-9]{0,8} ?[a-zµ]{0,3}") {
            for text in [text, near] {
                let _ = (by_magnitude(&text), read(&text, Unit::Milliseconds, NOW));
            }
        }

        #[test]
        fn a_decimal_number_is_never_rounded_down(whole in 0_u32..1_000_000, fraction in "[0-9]{1,9}") {
            let text = format!("{whole}.{fraction}");
            let exact: f64 = text.parse().unwrap();
            let Some(Moment::In(ms)) = by_magnitude(&text) else { panic!("{text}") };
            prop_assert!(ms as f64 >= exact * 1000.0 - 1e-3, "{ms} for {text}");
            prop_assert!((ms as f64) < exact * 1000.0 + 1.0 + 1e-3, "{ms} for {text}");
        }
    }
}
