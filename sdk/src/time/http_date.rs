//! The dates of HTTP headers (RFC 9110, section 5.6.7), all three forms.

use super::calendar::{DAY, Date, time_of_day};
use crate::Timestamp;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]; // 1970-01-01 was a Thursday

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37 1994`. The weekday is
/// not checked. Two digits of a year from 70 on belong to the last century, as cookies have it; a connector has no clock
/// to tell better.
///
/// ```
/// use weir_sdk::time;
///
/// assert_eq!(time::parse_http_date("Tue, 04 Mar 2031 10:00:00 GMT"), Some(1_930_384_800_000));
/// ```
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text
        .split([' ', ',', '-'])
        .filter(|word| !word.is_empty())
        .collect();
    let (day, month, year, clock) = match words.as_slice() {
        [_, day, month, year, clock, "GMT" | "UTC"] => (day, month, year, clock),
        [_, month, day, clock, year] => (day, month, year, clock),
        _ => return None,
    };
    let month = MONTHS
        .iter()
        .position(|name| name.eq_ignore_ascii_case(month))?;
    let year = match (year.len(), number(year)?) {
        (2, year) if year < 70 => 2000 + year,
        (2, year) => 1900 + year,
        (4, year) => year,
        _ => return None,
    };
    let date = Date::new(year, i64::try_from(month).ok()? + 1, number(day)?)?;
    let mut parts = clock.split(':');
    let (hour, minute, second) = (
        number(parts.next()?)?,
        number(parts.next()?)?,
        number(parts.next()?)?,
    );
    if parts.next().is_some() {
        return None;
    }
    Some(date.to_days() * DAY + time_of_day(hour, minute, second, 0)?)
}

/// Writes `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// ```
/// use weir_sdk::time;
///
/// assert_eq!(time::http_date(1_930_384_800_000), "Tue, 04 Mar 2031 10:00:00 GMT");
/// ```
pub fn http_date(at: Timestamp) -> String {
    let days = at.div_euclid(DAY);
    let Date { year, month, day } = Date::from_days(days);
    let seconds = at.rem_euclid(DAY) / 1000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let weekday = name(&WEEKDAYS, days.rem_euclid(7));
    let month = name(&MONTHS, month - 1);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

fn name(names: &[&'static str], index: i64) -> &'static str {
    usize::try_from(index)
        .ok()
        .and_then(|index| names.get(index))
        .copied()
        .unwrap_or_default()
}

fn number(text: &str) -> Option<i64> {
    let short = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    short.then(|| text.parse().ok()).flatten()
}
