//! Moments in and out. Oracle: jiff.

use proptest::prelude::*;
use weir_sdk::time::{self, Format};

const AT: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z

#[test]
fn rfc3339_in_all_its_forms() {
    for (text, wanted) in [
        ("2031-03-04T10:00:00Z", AT),
        ("2031-03-04t10:00:00z", AT),
        ("2031-03-04 10:00:00Z", AT),
        ("2031-03-04T10:00Z", AT), // no seconds: some vendors stop at the minute
        ("2031-03-04T11:00:00+01:00", AT),
        ("2031-03-04T11:00:00+0100", AT),
        ("2031-03-04T11:00:00+01", AT),
        ("2031-03-04T04:30:00-05:30", AT),
        ("2031-03-04T10:00:00.9Z", AT + 900),
        ("2031-03-04T10:00:00.982238Z", AT + 982),
        ("2031-03-04T10:00:00.9829999999999Z", AT + 982),
        ("2031-03-04T10:00:00,5Z", AT + 500),
        ("2031-03-04T09:59:60Z", AT - 1000), // a leap second
        ("1969-12-31T23:59:59.5Z", -500),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        ("2000-02-29T00:00:00Z", 951_782_400_000),
    ] {
        assert_eq!(time::parse_rfc3339(text), Some(wanted), "{text}");
    }
}

#[test]
fn case_053_what_no_calendar_has_is_no_moment() {
    for text in [
        "0000-00-00 00:00:00",
        "2025-00-15T00:00:00Z",
        "2025-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2025-13-01T00:00:00Z",
        "2025-01-01T24:00:00Z",
        "2025-01-01T00:60:00Z",
        "2025-01-01T00:00:00", // no offset
        "2025-01-01",
        "2025-01-01T00:00:00.Z",
        "2025-01-01T00:00:00+1",
        "2025-01-01T00:00:00+01:",
        "2025-01-01T00:00:00+24:00",
        "2025-01-01T00:00:00Z ",
        "2025-1-1T00:00:00Z",
        "+025-01-01T00:00:00Z",
        "",
        "日本-01-01T00:00:00Z",
    ] {
        assert_eq!(time::parse_rfc3339(text), None, "{text}");
    }
}

#[test]
fn http_dates_in_all_three_forms() {
    let wanted = Some(784_111_777_000);
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(time::parse_http_date(text), wanted, "{text}");
    }
    assert_eq!(
        time::parse_http_date("Fri, 07 Oct 2022 22:43:18 UTC"),
        Some(1_665_182_598_000)
    );
    assert_eq!(
        time::parse_http_date("Tuesday, 04-Mar-31 10:00:00 GMT"),
        Some(AT)
    );
    for text in [
        "",
        "yesterday",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "-1",
        "0",
    ] {
        assert_eq!(time::parse_http_date(text), None, "{text}");
    }
    assert_eq!(
        time::http_date(784_111_777_999),
        "Sun, 06 Nov 1994 08:49:37 GMT"
    );
}

#[test]
fn epochs() {
    assert_eq!(time::parse_epoch_seconds("1930384800"), Some(AT));
    assert_eq!(time::parse_epoch_seconds("1930384800.1239"), Some(AT + 123));
    assert_eq!(time::parse_epoch_seconds("-0.5"), Some(-500));
    assert_eq!(time::parse_epoch_millis("1930384800123.9"), Some(AT + 123));
    for text in [
        "",
        "-",
        ".5",
        "1e9",
        "12a",
        "9223372036854775807",
        "+1",
        "--1",
    ] {
        assert_eq!(time::parse_epoch_seconds(text), None, "{text}");
    }
}

#[test]
fn case_061_a_time_without_an_offset_is_read_and_written_in_the_declared_zone() {
    let format = Format::Naive(-480);
    assert_eq!(format.write(AT), "2031-03-04 02:00:00");
    assert_eq!(format.parse("2031-03-04 02:00:00"), Some(AT));
    assert_eq!(format.parse("2031-03-04T02:00"), Some(AT));
    assert_eq!(format.parse("2031-03-04"), Some(AT - 2 * 3_600_000));
    assert_eq!(
        format.parse("2031-03-04T10:00:00Z"),
        Some(AT),
        "an offset after all"
    );
}

proptest! {
    #[test]
    fn rfc3339_agrees_with_the_calendar(at in -62_135_596_800_000_i64..=253_402_300_799_999) {
        let oracle = jiff::Timestamp::from_millisecond(at).unwrap();
        let text = time::rfc3339(at);
        prop_assert_eq!(text.parse::<jiff::Timestamp>().unwrap(), oracle);
        prop_assert_eq!(time::parse_rfc3339(&text), Some(at));
        prop_assert_eq!(time::parse_rfc3339(&oracle.to_string()), Some(at));
    }

    #[test]
    fn every_format_reads_what_it_writes(at in 0_i64..=253_402_300_799_999, minutes in -840_i16..=840) {
        for format in [Format::Rfc3339, Format::EpochMillis, Format::Naive(minutes)] {
            prop_assert_eq!(format.parse(&format.write(at)), Some(at), "{:?}", format);
        }
        for format in [Format::EpochSeconds, Format::HttpDate] {
            prop_assert_eq!(format.parse(&format.write(at)), Some(at / 1000 * 1000), "{:?}", format);
        }
    }

    #[test]
    fn nothing_panics(text in any::<String>(), digits in "[0-9TZ:.+ -]{0,40}", at in any::<i64>()) {
        for text in [text, digits] {
            for format in [Format::Rfc3339, Format::EpochSeconds, Format::EpochMillis, Format::HttpDate, Format::Naive(1)] {
                let _ = format.parse(&text);
                let _ = format.write(at);
            }
        }
    }
}
