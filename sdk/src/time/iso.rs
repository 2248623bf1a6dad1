//! RFC 3339, and the same without an offset.

use super::calendar::{DAY, Date, time_of_day};
use crate::Timestamp;

/// Reads `2031-03-04T10:00:00.123456Z`: any fraction, any offset (also `+0100` and `+01`), `T` or a space, seconds may be
/// missing (some vendors stop at the minute). None when there is no offset: that is no moment.
///
/// ```
/// use weir_sdk::time;
///
/// assert_eq!(time::parse_rfc3339("2031-03-04T11:00:00+01:00"), Some(1_930_384_800_000));
/// ```
pub fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let mut text = Digits(text.as_bytes());
    let local = text.date_time()?;
    let offset = text.offset()?;
    text.0.is_empty().then(|| local - offset * 60_000)
}

/// Reads a time without an offset in a zone so many minutes ahead of UTC. A day alone is its first moment. With an offset
/// after all, that one counts.
///
/// ```
/// use weir_sdk::time;
///
/// // 60 minutes ahead of UTC.
/// assert_eq!(time::parse_naive("2031-03-04 11:00:00", 60), Some(1_930_384_800_000));
/// ```
pub fn parse_naive(text: &str, ahead_minutes: i16) -> Option<Timestamp> {
    let mut digits = Digits(text.as_bytes());
    let local = if text.len() == 10 {
        digits.date()?.to_days() * DAY
    } else {
        digits.date_time()?
    };
    if digits.0.is_empty() {
        Some(local - i64::from(ahead_minutes) * 60_000)
    } else {
        parse_rfc3339(text)
    }
}

/// Writes `2031-03-04T10:00:00Z`, with `.123` when there is a fraction.
///
/// ```
/// use weir_sdk::time;
///
/// assert_eq!(time::rfc3339(1_930_384_800_000), "2031-03-04T10:00:00Z");
/// ```
pub fn rfc3339(at: Timestamp) -> String {
    let mut text = local(at, 'T');
    text.push('Z');
    text
}

pub(super) fn naive(at: Timestamp, ahead_minutes: i16) -> String {
    local(at.saturating_add(i64::from(ahead_minutes) * 60_000), ' ')
}

fn local(at: Timestamp, between: char) -> String {
    let Date { year, month, day } = Date::from_days(at.div_euclid(DAY));
    let ms = at.rem_euclid(DAY);
    let (hour, minute, second, millis) =
        (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    let mut text = String::with_capacity(24);
    if (0..10_000).contains(&year) {
        push(&mut text, year, 4);
    } else {
        text = format!("{year:04}");
    }
    let parts = [('-', month), ('-', day), (between, hour), (':', minute)];
    for (before, number) in parts.into_iter().chain([(':', second)]) {
        text.push(before);
        push(&mut text, number, 2);
    }
    if millis > 0 {
        text.push('.');
        push(&mut text, millis, 3);
    }
    text
}

/// Writes the last so many digits of a number that is not negative: requests are full of times, and the machinery of
/// `format!` takes many times as long.
fn push(text: &mut String, number: i64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = number / 10_i64.pow(place) % 10;
        text.push(char::from(b'0' + u8::try_from(digit).unwrap_or(0)));
    }
}

/// The first three digits of a fraction, as ms.
pub(super) fn millis(fraction: &str) -> i64 {
    fraction
        .bytes()
        .chain([b'0'; 3])
        .take(3)
        .fold(0, |sum, digit| {
            sum * 10 + i64::from(digit.wrapping_sub(b'0'))
        })
}

struct Digits<'a>(&'a [u8]);

impl Digits<'_> {
    fn date(&mut self) -> Option<Date> {
        let year = self.number(4)?;
        self.byte(b"-")?;
        let month = self.number(2)?;
        self.byte(b"-")?;
        Date::new(year, month, self.number(2)?)
    }

    fn date_time(&mut self) -> Option<i64> {
        let date = self.date()?;
        self.byte(b"Tt ")?;
        let hour = self.number(2)?;
        self.byte(b":")?;
        let minute = self.number(2)?;
        let mut second = 0;
        let mut millis = 0;
        if self.byte(b":").is_some() {
            second = self.number(2)?;
            if self.byte(b".,").is_some() {
                millis = self.fraction()?;
            }
        }
        Some(date.to_days() * DAY + time_of_day(hour, minute, second, millis)?)
    }

    /// Minutes ahead of UTC.
    fn offset(&mut self) -> Option<i64> {
        if self.byte(b"Zz").is_some() {
            return Some(0);
        }
        let sign = if self.byte(b"+-")? == b'-' { -1 } else { 1 };
        let hours = self.number(2)?;
        let colon = self.byte(b":").is_some();
        let minutes = if colon || !self.0.is_empty() {
            self.number(2)?
        } else {
            0
        };
        (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        let (head, rest) = self.0.split_at_checked(digits)?;
        if !head.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.0 = rest;
        Some(
            head.iter()
                .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')),
        )
    }

    fn fraction(&mut self) -> Option<i64> {
        let length = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        if length == 0 {
            None
        } else {
            Some(millis(std::str::from_utf8(digits).ok()?))
        }
    }

    fn byte(&mut self, allowed: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        if !allowed.contains(&first) {
            return None;
        }
        self.0 = rest;
        Some(first)
    }
}
