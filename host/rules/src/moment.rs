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
    http_date::any(text, now).map(Moment::At)
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
