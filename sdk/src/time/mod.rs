//! Moments as vendors write them, in and out. A moment is milliseconds since the Unix epoch, UTC.
//!
//! Finer fractions than a millisecond are cut off here, never rounded up; whoever pages by a finer stamp sends the
//! vendor's own text back instead of a moment.

mod calendar;
mod http_date;
mod iso;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
pub use http_date::{http_date, parse_http_date};
pub use iso::{parse_naive, parse_rfc3339, rfc3339};

/// How a vendor writes its moments.
///
/// ```
/// use weir_sdk::time::Format;
///
/// assert_eq!(Format::EpochSeconds.parse("1930384800"), Format::Rfc3339.parse("2031-03-04T10:00:00Z"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `2031-03-04T10:00:00Z`, with any offset and any fraction (RFC 3339); `T` may be a space.
    #[default]
    Rfc3339,
    /// Whole or decimal seconds since the epoch.
    EpochSeconds,
    /// Milliseconds since the epoch.
    EpochMillis,
    /// `Tue, 04 Mar 2031 10:00:00 GMT` and the two older forms (RFC 9110, section 5.6.7).
    HttpDate,
    /// `2031-03-04 10:00:00` or `2031-03-04`, without an offset, in a zone that is so many minutes ahead of UTC. A zone
    /// with summer time has no fixed number: ask such a vendor in UTC.
    Naive(i16),
}

impl Format {
    /// Reads a moment; none when the text is none in this format.
    ///
    /// ```
    /// use weir_sdk::time::Format;
    ///
    /// assert_eq!(Format::EpochMillis.parse("1930384800000"), Some(1_930_384_800_000));
    /// assert_eq!(Format::Rfc3339.parse("0000-00-00"), None);
    /// ```
    pub fn parse(self, text: &str) -> Option<Timestamp> {
        let text = text.trim();
        match self {
            Format::Rfc3339 => parse_rfc3339(text),
            Format::EpochSeconds => parse_epoch_seconds(text),
            Format::EpochMillis => parse_epoch_millis(text),
            Format::HttpDate => parse_http_date(text),
            Format::Naive(minutes) => parse_naive(text, minutes),
        }
    }

    /// Writes a moment. Formats of whole seconds cut the rest off.
    ///
    /// ```
    /// use weir_sdk::time::Format;
    ///
    /// assert_eq!(Format::Naive(60).write(1_930_384_800_000), "2031-03-04 11:00:00");
    /// ```
    pub fn write(self, at: Timestamp) -> String {
        match self {
            Format::Rfc3339 => rfc3339(at),
            Format::EpochSeconds => at.div_euclid(1000).to_string(),
            Format::EpochMillis => at.to_string(),
            Format::HttpDate => http_date(at),
            Format::Naive(minutes) => iso::naive(at, minutes),
        }
    }
}

/// Seconds since the epoch, with a fraction or without.
///
/// ```
/// use weir_sdk::time;
///
/// assert_eq!(time::parse_epoch_seconds("1930384800.25"), Some(1_930_384_800_250));
/// ```
pub fn parse_epoch_seconds(text: &str) -> Option<Timestamp> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty()
        || !whole
            .bytes()
            .chain(fraction.bytes())
            .all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let seconds: i64 = whole.parse().ok()?;
    seconds
        .checked_mul(1000)?
        .checked_add(iso::millis(fraction))?
        .checked_mul(sign)
}

/// Milliseconds since the epoch; a fraction is cut off.
///
/// ```
/// use weir_sdk::time;
///
/// assert_eq!(time::parse_epoch_millis("1930384800000"), Some(1_930_384_800_000));
/// ```
pub fn parse_epoch_millis(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    whole.parse().ok()
}
