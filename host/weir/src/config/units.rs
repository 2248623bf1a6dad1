//! Durations and sizes as people write them: a whole number and a unit, nothing guessed.

use weir_rules::model::Duration;

/// What a duration may look like, for error texts.
pub(super) const DURATION_HELP: &str =
    "a whole number and a unit: ms, s, m, h or d; example: \"30s\"";

/// What a size may look like, for error texts.
pub(super) const SIZE_HELP: &str = "a whole number and a unit: B, KB, MB, GB (powers of 1000) or KiB, MiB, GiB (powers of 1024); example: \"16MiB\"";

/// The longest duration that means anything here: a hundred years.
const LONGEST: Duration = 100 * 365 * 86_400_000;

/// Reads `500ms`, `30s`, `5m`, `1h`, `1d` as milliseconds. Zero, a bare number, fractions and every other unit are
/// refused.
pub(super) fn duration(text: &str) -> Result<Duration, &'static str> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "" => return Err("has no unit"),
        _ => return Err("has a unit that is not known"),
    };
    match number.checked_mul(factor) {
        Some(0) => Err("is zero"),
        Some(ms) if ms <= LONGEST => Ok(ms),
        _ => Err("is longer than 100 years"),
    }
}

/// Reads `100MB`, `16MiB` as bytes; the unit may be in any case. Zero is refused.
pub(super) fn size(text: &str) -> Result<u64, &'static str> {
    let (number, unit) = split(text)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "" => return Err("has no unit"),
        _ => return Err("has a unit that is not known"),
    };
    match number.checked_mul(factor) {
        Some(0) => Err("is zero"),
        Some(bytes) => Ok(bytes),
        None => Err("is too large"),
    }
}

/// The digits and what follows them.
fn split(text: &str) -> Result<(u64, &str), &'static str> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() {
        return Err("does not begin with a whole number");
    }
    let number = digits.parse().map_err(|_| "is too large")?;
    Ok((number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_in_every_unit() {
        let read: Vec<_> = ["500ms", "30s", "5m", "1h", "2d"].map(duration).to_vec();
        assert_eq!(
            read,
            [
                Ok(500),
                Ok(30_000),
                Ok(300_000),
                Ok(3_600_000),
                Ok(172_800_000)
            ]
        );
    }

    #[test]
    fn case_167_a_duration_that_is_not_plain_is_refused() {
        for text in [
            "5",
            "5seconds",
            "",
            "s",
            "0s",
            "0ms",
            "-5s",
            "1.5s",
            " 5s",
            "5 s",
            "5s ",
            "5S",
            "1h30m",
            "99999999999999999999s",
            "40000d",
            "٣s",
        ] {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn sizes_in_both_families() {
        assert_eq!(size("100MB"), Ok(100_000_000));
        assert_eq!(size("16MiB"), Ok(16 << 20));
        assert_eq!(size("16mib"), Ok(16 << 20));
        for text in ["0MB", "16", "16M", "MB", "-1MB", "99999999999GB"] {
            assert!(size(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_only_digits_and_unit_pass(text in ".{0,24}") {
            if duration(&text).is_ok() {
                prop_assert!(text.starts_with(|c: char| c.is_ascii_digit()));
                prop_assert!(text.ends_with(['s', 'm', 'h', 'd']));
            }
            let _ = size(&text);
        }
    }
}
