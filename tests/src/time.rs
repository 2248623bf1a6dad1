//! The spellings of a moment that vendors use. All moments inside are milliseconds since the Unix epoch, UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::{Deserialize, Serialize};

/// How a vendor writes moments in records and reads them in parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeFormat {
    /// `2031-03-04T10:00:00.125Z`
    #[default]
    Rfc3339Ms,
    /// `2031-03-04T10:00:00Z`
    Rfc3339,
    /// `1930384800`, a JSON number
    EpochS,
    /// `1930384800125`, a JSON number
    EpochMs,
}

impl TimeFormat {
    /// The moment as text, without quotes.
    pub fn write(self, ms: i64) -> String {
        match self {
            TimeFormat::Rfc3339Ms => rfc3339(ms, 3),
            TimeFormat::Rfc3339 => rfc3339(ms, 0),
            TimeFormat::EpochS => ms.div_euclid(1000).to_string(),
            TimeFormat::EpochMs => ms.to_string(),
        }
    }

    /// The moment as a JSON value.
    pub fn json(self, ms: i64) -> String {
        match self {
            TimeFormat::Rfc3339Ms | TimeFormat::Rfc3339 => format!("\"{}\"", self.write(ms)),
            TimeFormat::EpochS | TimeFormat::EpochMs => self.write(ms),
        }
    }

    /// Reads a parameter. A vendor that documents one spelling of RFC 3339 takes all of them.
    pub fn read(self, text: &str) -> Option<i64> {
        match self {
            TimeFormat::Rfc3339Ms | TimeFormat::Rfc3339 => text
                .parse::<Timestamp>()
                .ok()
                .map(Timestamp::as_millisecond),
            TimeFormat::EpochS => text
                .parse::<f64>()
                .ok()
                .filter(|seconds| seconds.is_finite())
                .map(|seconds| (seconds * 1000.0) as i64),
            TimeFormat::EpochMs => text.parse().ok(),
        }
    }
}

/// RFC 3339 in UTC with this many digits of a second's fraction.
pub(crate) fn rfc3339(ms: i64, digits: u8) -> String {
    let printer = DateTimePrinter::new().precision(Some(digits));
    Timestamp::from_millisecond(ms).map_or_else(
        |_| ms.to_string(),
        |timestamp| printer.timestamp_to_string(&timestamp),
    )
}

/// RFC 9110's preferred form of a date, to the second below.
pub(crate) fn http_date(ms: i64) -> String {
    let since = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
    httpdate::fmt_http_date(UNIX_EPOCH + since)
}

/// Reads all three forms of RFC 9110's dates.
pub(crate) fn read_http_date(text: &str) -> Option<i64> {
    let since = httpdate::parse_http_date(text)
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// A date in a `strftime` pattern, for the two obsolete forms of RFC 9110.
pub(crate) fn strftime(ms: i64, pattern: &str) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| String::new(),
        |timestamp| timestamp.strftime(pattern).to_string(),
    )
}

/// This machine's wall clock.
pub fn wall() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
}

/// `ms` in whole seconds, rounded up.
pub(crate) fn ceil_seconds(ms: i64) -> i64 {
    ms.div_euclid(1000) + i64::from(ms.rem_euclid(1000) > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_930_384_800_125;

    #[test]
    fn every_format_reads_what_it_wrote() {
        for (format, text, read) in [
            (TimeFormat::Rfc3339Ms, "2031-03-04T10:00:00.125Z", NOW),
            (TimeFormat::Rfc3339, "2031-03-04T10:00:00Z", NOW - 125),
            (TimeFormat::EpochS, "1930384800", NOW - 125),
            (TimeFormat::EpochMs, "1930384800125", NOW),
        ] {
            assert_eq!(format.write(NOW), text);
            assert_eq!(format.read(text), Some(read));
        }
        assert_eq!(
            TimeFormat::Rfc3339.read("2031-03-04T11:00:00+01:00"),
            Some(NOW - 125)
        );
        assert_eq!(TimeFormat::Rfc3339.read("yesterday"), None);
    }

    #[test]
    fn dates_as_http_writes_them() {
        assert_eq!(http_date(NOW), "Tue, 04 Mar 2031 10:00:00 GMT");
        assert_eq!(
            read_http_date("Tue, 04 Mar 2031 10:00:00 GMT"),
            Some(NOW - 125)
        );
        assert_eq!(
            strftime(NOW, "%A, %d-%b-%y %H:%M:%S GMT"),
            "Tuesday, 04-Mar-31 10:00:00 GMT"
        );
        assert_eq!(ceil_seconds(1), 1);
        assert_eq!(ceil_seconds(1000), 1);
        assert_eq!(ceil_seconds(0), 0);
    }
}
