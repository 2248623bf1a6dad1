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
        return strict(&spelt_out);
    }
    strict(text).or_else(|| {
        let zoned = MAIL_DATE.parse_timestamp(text).ok()?;
        Some(zoned.as_millisecond())
    })
}

fn strict(text: &str) -> Option<Timestamp> {
    let moment: SystemTime = httpdate::parse_http_date(text).ok()?;
    i64::try_from(moment.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// Turns the RFC 850 form, `Sunday, 06-Nov-94 08:49:37 GMT`, into the preferred one.
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
    // The weekday is not compared with the date.
    Some(format!("Sun, {day} {month} {year:04} {time}"))
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
pub fn any(text: &str, now: Timestamp) -> Option<Timestamp> {
    http_date(text, now).or_else(|| rfc3339(text)).or_else(|| {
        let text = text.trim();
        // A bare date is taken for the first moment of its day.
        let wall: civil::DateTime = text.parse().ok()?;
        let moment = TimeZone::UTC.to_timestamp(wall).ok()?;
        Some(moment.as_millisecond())
    })
}
