//! How times are written: in records, and in the parameters of a window.
//!
//! Promises: the bounds of a window are widened to what the vendor's format can say, never narrowed. A zone with
//! summer time has two offsets, and the one that asks for more is used. So a record is asked for twice at worst; it
//! is never left out.

use weir_sdk::{Timestamp, time};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 86_400_000;

/// How the times in records are written; none for a word that is no format.
pub(crate) fn record_format(name: &str, clock: Clock) -> Option<time::Format> {
    Some(match name {
        "rfc3339" => time::Format::Rfc3339,
        "epoch_s" => time::Format::EpochSeconds,
        "epoch_ms" => time::Format::EpochMillis,
        "http_date" => time::Format::HttpDate,
        // The offset further ahead makes the earlier moment, and the watermark must not run ahead of the data.
        "naive" => time::Format::Naive(clock.ahead()),
        _ => return None,
    })
}

/// The zone in which a vendor reads and writes naive times: its offsets in minutes, alike where there is no summer time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    standard: i16,
    summer: i16,
}

impl Clock {
    pub(crate) fn new(standard: i16, summer: i16) -> Self {
        Clock { standard, summer }
    }

    /// Reads `Z`, `+05:30` or `-08:00`.
    pub(crate) fn parse_offset(text: &str) -> Option<i16> {
        if text == "Z" {
            return Some(0);
        }
        let (sign, rest) = match text.split_at_checked(1)? {
            ("+", rest) => (1, rest),
            ("-", rest) => (-1, rest),
            _ => return None,
        };
        let (hours, minutes) = rest.split_once(':')?;
        if hours.len() != 2 || minutes.len() != 2 {
            return None;
        }
        let (hours, minutes) = (hours.parse::<i16>().ok()?, minutes.parse::<i16>().ok()?);
        ((0..24).contains(&hours) && (0..60).contains(&minutes))
            .then_some(sign * (hours * 60 + minutes))
    }

    fn ahead(self) -> i16 {
        self.standard.max(self.summer)
    }

    fn behind(self) -> i16 {
        self.standard.min(self.summer)
    }
}

/// Which end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Lower,
    Upper,
}

/// How a window's bounds are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Rfc3339,
    EpochSeconds,
    EpochMillis,
    HttpDate,
    Date,
    Pattern(String),
}

impl Format {
    /// A format's name, or a pattern; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "rfc3339" => Format::Rfc3339,
            "epoch_s" => Format::EpochSeconds,
            "epoch_ms" => Format::EpochMillis,
            "http_date" => Format::HttpDate,
            "date" => Format::Date,
            pattern if pattern.contains('%') => {
                if let Some(unknown) =
                    directives(pattern).find(|directive| finest(directive).is_none())
                {
                    return Err(format!(
                        "`{unknown}` is not known; there is %Y %m %d %H %M %S %f (milliseconds) %z %:z %%"
                    ));
                }
                if !directives(pattern).any(|directive| directive == "%Y") {
                    return Err("the pattern has no year: write at least \"%Y-%m-%d\"".to_owned());
                }
                Format::Pattern(pattern.to_owned())
            }
            other => {
                return Err(format!(
                    "`{other}` is none of rfc3339, epoch_s, epoch_ms, http_date, date, and no pattern such as \"%Y-%m-%d %H:%M\""
                ));
            }
        })
    }

    /// Whether the vendor reads it in a zone of its own.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Format::Date | Format::Pattern(_))
    }

    /// Whether a record's own text fits as a bound.
    pub(crate) fn is_written_as(&self, record: time::Format) -> bool {
        matches!(
            (self, record),
            (Format::Rfc3339, time::Format::Rfc3339)
                | (Format::EpochSeconds, time::Format::EpochSeconds)
                | (Format::EpochMillis, time::Format::EpochMillis)
                | (Format::HttpDate, time::Format::HttpDate)
        )
    }

    /// Whether it is a number in a JSON body.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Format::EpochSeconds | Format::EpochMillis)
    }

    /// The finest step that both the format and the vendor's timestamps can say, in ms.
    pub(crate) fn resolution(&self, granularity: u64) -> u64 {
        let own = match self {
            Format::Rfc3339 | Format::EpochMillis => 1,
            Format::EpochSeconds | Format::HttpDate => SECOND,
            Format::Date => DAY,
            Format::Pattern(pattern) => directives(pattern).filter_map(finest).min().unwrap_or(DAY),
        };
        granularity.max(1).div_ceil(own).saturating_mul(own)
    }

    /// Writes a bound, widened to `resolution` ms.
    pub(crate) fn write(
        &self,
        at: Timestamp,
        bound: Bound,
        resolution: u64,
        clock: Clock,
    ) -> String {
        let offset = match bound {
            Bound::Lower => clock.behind(),
            Bound::Upper => clock.ahead(),
        };
        let local = at.saturating_add(i64::from(offset) * 60_000);
        let step = i64::try_from(resolution).unwrap_or(i64::MAX).max(1);
        let floor = local.div_euclid(step).saturating_mul(step);
        let local = match bound {
            Bound::Upper if floor < local => floor.saturating_add(step),
            _ => floor,
        };
        match self {
            Format::Rfc3339 => time::rfc3339(local),
            Format::EpochSeconds => time::Format::EpochSeconds.write(local),
            Format::EpochMillis => time::Format::EpochMillis.write(local),
            Format::HttpDate => time::http_date(local),
            Format::Date => filled("%Y-%m-%d", local, offset),
            Format::Pattern(pattern) => filled(pattern, local, offset),
        }
    }
}

/// The directives of a pattern: `%Y`, `%:z`, and `%` alone at its end.
fn directives(pattern: &str) -> impl Iterator<Item = &str> {
    let mut rest = pattern;
    std::iter::from_fn(move || {
        let (_, from) = rest.split_at_checked(rest.find('%')?)?;
        let length = match from.strip_prefix("%:") {
            Some(_) => 3,
            None => 1 + from.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (directive, after) = from.split_at_checked(length).unwrap_or((from, ""));
        rest = after;
        Some(directive)
    })
}

/// The step that a directive can tell apart, in ms; none for one that is not known.
fn finest(directive: &str) -> Option<u64> {
    match directive {
        "%Y" | "%m" | "%d" | "%z" | "%:z" | "%%" => Some(DAY),
        "%H" => Some(HOUR),
        "%M" => Some(MINUTE),
        "%S" => Some(SECOND),
        "%f" => Some(1),
        _ => None,
    }
}

/// Fills a pattern with a time that is already local.
fn filled(pattern: &str, local: Timestamp, offset: i16) -> String {
    // 2031-03-04T10:00:00 and, when there is one, .123
    let iso = time::rfc3339(local);
    let part = |from: usize, to: usize| iso.get(from..to).unwrap_or_default();
    let zone = |colon: &str| {
        let sign = if offset < 0 { '-' } else { '+' };
        let minutes = offset.unsigned_abs();
        format!("{sign}{:02}{colon}{:02}", minutes / 60, minutes % 60)
    };
    let mut out = String::with_capacity(pattern.len() + 12);
    let mut rest = pattern;
    for directive in directives(pattern) {
        let (before, after) = rest.split_once(directive).unwrap_or((rest, ""));
        out.push_str(before);
        match directive {
            "%Y" => out.push_str(part(0, 4)),
            "%m" => out.push_str(part(5, 7)),
            "%d" => out.push_str(part(8, 10)),
            "%H" => out.push_str(part(11, 13)),
            "%M" => out.push_str(part(14, 16)),
            "%S" => out.push_str(part(17, 19)),
            "%f" => out.push_str(&format!("{:03}", local.rem_euclid(1_000))),
            "%z" => out.push_str(&zone("")),
            "%:z" => out.push_str(&zone(":")),
            _ => out.push('%'),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2031-03-04T10:00:00.250Z
    const AT: Timestamp = 1_930_384_800_250;

    fn both(format: &str, granularity: u64, clock: Clock) -> (String, String) {
        let format = Format::parse(format).unwrap();
        let resolution = format.resolution(granularity);
        (
            format.write(AT, Bound::Lower, resolution, clock),
            format.write(AT, Bound::Upper, resolution, clock),
        )
    }

    #[test]
    fn bounds_are_widened_to_what_the_format_can_say() {
        for (format, granularity, lower, upper) in [
            (
                "rfc3339",
                1,
                "2031-03-04T10:00:00.250Z",
                "2031-03-04T10:00:00.250Z",
            ),
            (
                "rfc3339",
                1_000,
                "2031-03-04T10:00:00Z",
                "2031-03-04T10:00:01Z",
            ),
            ("epoch_s", 1, "1930384800", "1930384801"),
            ("epoch_ms", 1, "1930384800250", "1930384800250"),
            ("epoch_ms", 60_000, "1930384800000", "1930384860000"),
            (
                "http_date",
                1,
                "Tue, 04 Mar 2031 10:00:00 GMT",
                "Tue, 04 Mar 2031 10:00:01 GMT",
            ),
            ("date", 1, "2031-03-04", "2031-03-05"),
            ("%Y/%m/%d %H:%M", 1, "2031/03/04 10:00", "2031/03/04 10:01"),
            (
                "%d.%m.%Y, %H:%M:%S.%f%z (100%%)",
                1,
                "04.03.2031, 10:00:00.250+0000 (100%)",
                "04.03.2031, 10:00:00.250+0000 (100%)",
            ),
        ] {
            assert_eq!(
                both(format, granularity, Clock::default()),
                (lower.to_owned(), upper.to_owned()),
                "{format}"
            );
        }
    }

    #[test]
    fn case_061_a_naive_bound_is_written_in_the_accounts_zone() {
        let los_angeles = Clock::new(-480, -420);
        let (lower, upper) = both("%Y/%m/%d %H:%M", 1_000, los_angeles);
        // The wider of winter and summer at each end.
        assert_eq!(
            (lower.as_str(), upper.as_str()),
            ("2031/03/04 02:00", "2031/03/04 03:01")
        );
        let (lower, _) = both("%Y-%m-%dT%H:%M:%S%:z", 1_000, Clock::new(330, 330));
        assert_eq!(lower, "2031-03-04T15:30:00+05:30");
    }

    #[test]
    fn unknown_patterns_are_refused_with_what_is_known() {
        for (pattern, word) in [
            ("%Y-%j", "`%j`"),
            ("%H:%M", "no year"),
            ("iso8601", "rfc3339"),
            ("%Y%", "`%`"),
            ("%Y %é", "`%é`"),
        ] {
            let error = Format::parse(pattern).unwrap_err();
            assert!(error.contains(word), "{pattern}: {error}");
        }
    }

    #[test]
    fn offsets() {
        for (text, expected) in [
            ("Z", Some(0)),
            ("+05:30", Some(330)),
            ("-08:00", Some(-480)),
            ("+5:30", None),
            ("PST", None),
            ("", None),
            ("+24:00", None),
        ] {
            assert_eq!(Clock::parse_offset(text), expected, "{text}");
        }
    }

    proptest! {
        /// Read back, the lower bound is never later and the upper never earlier than what was asked for.
        #[test]
        fn a_window_is_never_narrowed(at in 0_i64..4_000_000_000_000, granularity in 1_u64..100_000) {
            for (format, read) in [
                (Format::Rfc3339, time::Format::Rfc3339),
                (Format::EpochSeconds, time::Format::EpochSeconds),
                (Format::EpochMillis, time::Format::EpochMillis),
                (Format::HttpDate, time::Format::HttpDate),
                (Format::Date, time::Format::Naive(0)),
                (Format::Pattern("%Y-%m-%d %H:%M".to_owned()), time::Format::Naive(0)),
            ] {
                let resolution = format.resolution(granularity);
                let lower = format.write(at, Bound::Lower, resolution, Clock::default());
                let upper = format.write(at, Bound::Upper, resolution, Clock::default());
                prop_assert!(read.parse(&lower).unwrap() <= at, "{lower}");
                prop_assert!(read.parse(&upper).unwrap() >= at, "{upper}");
            }
        }
    }
}
