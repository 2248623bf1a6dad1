//! Stamps, zones, windows and watermarks: what a whole host asks for next, and what it may never lose.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use support::script::Script;
use support::shop::{
    HOUR, MIN, S, USUAL, WINDOW, body, calls, config, ids, keeper, listed, matching, ms, open,
    order, page, param, poll_at, shop, shown_later, stamp,
};
use support::{NOW, Rig};
use weir::poll::Outcome;

fn with_overlap(overlap: &str) -> String {
    format!("interval = {{ min = \"10s\", max = \"10m\" }}\noverlap = {{ fixed = \"{overlap}\" }}")
}

/// The bounds of each window that was asked for, in ms.
fn windows(script: &Script) -> Vec<(i64, i64)> {
    script
        .asked()
        .iter()
        .map(|asked| {
            let bound = |name| ms(&param(asked, name).expect("a bound"));
            (bound("since"), bound("until"))
        })
        .collect()
}

#[tokio::test]
async fn case_043_entries_of_one_instant_do_not_hide_each_other() {
    let at = "10:00:00";
    let script = Script::new([
        page(&[("e1", at), ("e2", at), ("e3", at)], r#""next":"t2""#),
        page(&[("e4", at), ("e5", at)], ""),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered(), ["e1@1", "e2@1", "e3@1", "e4@1", "e5@1"]);
}

#[tokio::test]
async fn case_045_ties_that_move_between_pages_are_read_again() {
    let stream = r#"
window = { since = "since" }
paging = { style = "page", param = "page" }
page_size = 3
total = "/total"
"#;
    let at = "10:00:00";
    let three = |a, b, c| page(&[(a, at), (b, at), (c, at)], r#""total":6"#);
    let script = Script::by(|_| page(&[], r#""total":6"#));
    script.then([three("f1", "f2", "f3"), three("f2", "f3", "f5")]);
    let rig = open(&config(stream, USUAL), &script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Incomplete);
    let said = report.message.unwrap_or_default();
    assert!(said.contains('6') && said.contains('4'), "{said}");
    assert_eq!(rig.unit("shop/orders").state.watermark, None);
    script.then([three("f4", "f6", "f1"), three("f2", "f3", "f5")]);
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok);
    assert_eq!(ids(&rig), ["f1", "f2", "f3", "f4", "f5", "f6"]);
}

#[tokio::test]
async fn case_047_a_record_that_shows_up_late_is_delivered_once() {
    let script = keeper(vec![
        order("a", "09:59:30"),
        order("b", "10:01:50"),
        shown_later("late", "10:00:05", "10:02:30"),
    ]);
    let rig = shop(&script).await;
    poll_at(&rig, "10:02:00").await;
    assert_eq!(rig.delivered(), ["a@1", "b@1"]);
    poll_at(&rig, "10:03:00").await;
    poll_at(&rig, "10:04:00").await;
    assert_eq!(rig.delivered(), ["a@1", "b@1", "late@1"]);
}

#[tokio::test]
async fn case_049_the_position_is_what_was_seen_not_when_the_poll_began() {
    // With half a second of overlap, a position taken from the clock (10:00:33.680) would lie behind the row.
    let script = keeper(vec![
        order("seen", "10:00:20"),
        shown_later("committed-later", "10:00:32.869", "10:00:33.900"),
    ]);
    let rig = open(&config(WINDOW, &with_overlap("500ms")), &script).await;
    poll_at(&rig, "10:00:33.680").await;
    assert_eq!(rig.delivered(), ["seen@1"]);
    poll_at(&rig, "10:00:45").await;
    assert_eq!(rig.delivered(), ["seen@1", "committed-later@1"]);
}

#[tokio::test]
async fn case_053_a_date_that_no_calendar_has_costs_no_record() {
    for broken in ["0000-00-00 00:00:00", "2025-00-15T00:00:00Z"] {
        let records: Vec<String> = (1..=100)
            .map(|n| {
                let at = if n == 57 {
                    broken.to_owned()
                } else {
                    stamp(&format!("09:{:02}:00", n % 50))
                };
                format!(r#"{{"id":{n},"at":"{at}"}}"#)
            })
            .collect();
        let script = Script::new([body(&records.join(","), "")]);
        let rig = shop(&script).await;
        let report = rig.poll("shop/orders").await;
        assert_eq!(report.outcome, Outcome::Ok, "{report:?}");
        // The choice: record 57 is delivered too, without a time, and moves nothing.
        let lines = rig.lines();
        assert_eq!(lines.len(), 100);
        assert!(lines.iter().any(|line| line.id == "57"));
        assert_eq!(
            rig.unit("shop/orders").state.watermark,
            Some(ms("09:49:00"))
        );
    }
}

#[tokio::test]
async fn case_055_microseconds_neither_loop_nor_skip() {
    let stream = r#"
order = "ascending"
window = { since = "since" }
paging = { style = "keyset", after_time = "since", after_exclusive = true }
page_size = 1
"#;
    let rows = [
        ("z1", "2031-03-04T10:00:00.982238Z"),
        ("z2", "2031-03-04T10:00:00.982901Z"),
        ("z3", "2031-03-04T10:00:00.983000Z"),
    ];
    let script = Script::by(move |asked| {
        let since: Option<jiff::Timestamp> =
            param(asked, "since").map(|since| since.parse().expect("a stamp"));
        let found = rows.iter().find(|(_, at)| {
            let at: jiff::Timestamp = at.parse().expect("a stamp");
            since.is_none_or(|since| at > since)
        });
        match found {
            Some(row) => page(&[*row], ""),
            None => page(&[], ""),
        }
    });
    let rig = open(&config(stream, USUAL), &script).await;
    rig.clock.set(ms("10:00:05"));
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok);
    assert_eq!(rig.delivered(), ["z1@1", "z2@1", "z3@1"]);
    assert_eq!(script.asked().len(), 4, "three pages, and the end");
    assert_eq!(
        param(&script.asked()[2], "since").as_deref(),
        Some("2031-03-04T10:00:00.982901Z"),
        "as the vendor wrote it"
    );
    let report = rig.poll("shop/orders").await;
    assert_eq!((report.outcome, report.tally.new), (Outcome::Ok, 0));
}

#[tokio::test]
async fn case_057_a_fraction_is_later_than_none() {
    let script = Script::new([
        page(&[("x", "2030-06-01T12:00:00Z")], ""),
        page(
            &[
                ("x", "2030-06-01T12:00:00Z"),
                ("y", "2030-06-01T12:00:00.500Z"),
            ],
            "",
        ),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered(), ["x@1", "y@1"]);
    assert_eq!(
        rig.unit("shop/orders").state.watermark,
        Some(ms("2030-06-01T12:00:00.500Z"))
    );
}

#[tokio::test]
async fn case_059_a_position_that_looks_like_a_number_is_text() {
    let stream = r#"sync = { token = "/latest", param = "oldest" }"#;
    // As a string, and as a bare number: either way its digits are the vendor's.
    for written in [r#""1930384800.000250""#, "1930384800.000250"] {
        let latest = format!(r#""latest":{written}"#);
        let script = Script::by(move |_| page(&[], &latest));
        let rig = open(&config(stream, USUAL), &script).await;
        rig.poll("shop/orders").await;
        let rig = rig.crash().await;
        rig.poll("shop/orders").await;
        assert_eq!(
            param(&script.asked()[1], "oldest").as_deref(),
            Some("1930384800.000250")
        );
    }
}

/// What a vendor makes of a bound without a zone that it reads as so many hours east of Greenwich, in ms.
fn naive(text: &str, format: &str, minutes_east: i64) -> i64 {
    let local = jiff::civil::DateTime::strptime(format, text).expect("the format");
    let utc = jiff::tz::TimeZone::UTC
        .to_timestamp(local)
        .expect("in range");
    utc.as_millisecond() - minutes_east * MIN
}

#[tokio::test]
async fn case_061_a_bound_is_written_in_the_accounts_zone() {
    let stream = r#"window = { since = "since", format = "%Y/%m/%d %H:%M", utc_offset = "-08:00", dst_offset = "-07:00" }"#;
    let orders = vec![
        order("first", "10:00:00"),
        order("a", "10:30:00"),
        order("b", "14:00:00"),
        order("c", "17:59:00"),
    ];
    let script = Script::by(move |asked| {
        let since = param(asked, "since").map(|since| naive(&since, "%Y/%m/%d %H:%M", -8 * 60));
        listed(&matching(&orders, asked.at, since, None), "")
    });
    let rig = open(&config(stream, &with_overlap("1m")), &script).await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered(), ["first@1"]);
    poll_at(&rig, "18:00:00").await;
    assert_eq!(rig.delivered(), ["first@1", "a@1", "b@1", "c@1"]);
}

#[tokio::test]
async fn case_063_the_watermark_does_not_pass_what_was_received() {
    // Nobody told us that the vendor reads bounds in +05:30: it leaves out what is newer than 04:30Z.
    let stream = r#"window = { since = "since", until = "until", format = "%Y-%m-%d %H:%M:%S" }"#;
    let orders = vec![
        order("early", "04:00:00"),
        order("a", "05:00:00"),
        order("b", "07:00:00"),
        order("c", "09:59:00"),
    ];
    let script = Script::by(move |asked| {
        let bound = |name| param(asked, name).map(|text| naive(&text, "%Y-%m-%d %H:%M:%S", 330));
        listed(
            &matching(&orders, asked.at, bound("since"), bound("until")),
            "",
        )
    });
    let rig = open(&config(stream, USUAL), &script).await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered(), ["early@1"]);
    assert_eq!(
        rig.unit("shop/orders").state.watermark,
        Some(ms("04:00:00"))
    );
    poll_at(&rig, "15:30:00").await;
    assert_eq!(ids(&rig), ["a", "b", "c", "early"]);
    // Told of the zone, the first poll has them all.
    let told = stream.replace("%S\"", "%S\", utc_offset = \"+05:30\"");
    let rig = open(&config(&told, USUAL), &script).await;
    rig.poll("shop/orders").await;
    assert_eq!(ids(&rig), ["a", "b", "c", "early"]);
}

#[tokio::test]
async fn case_067_the_watermark_is_the_newest_not_the_last() {
    let (t1, t2, t3) = ("09:01:00", "09:02:00", "09:03:00");
    let script = Script::new([
        page(&[("r1", t3), ("r2", t1), ("r3", t2)], ""),
        page(&[("r1", t3), ("r4", t2), ("r3", t2)], ""),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.unit("shop/orders").state.watermark, Some(ms(t3)));
    rig.poll("shop/orders").await;
    let since = param(&script.asked()[1], "since").map(|since| ms(&since));
    assert_eq!(since, Some(ms(t3) - 5 * MIN));
    assert_eq!(rig.delivered(), ["r1@1", "r2@1", "r3@1", "r4@1"]);
    assert_eq!(rig.unit("shop/orders").state.watermark, Some(ms(t3)));
}

#[tokio::test]
async fn case_069_slices_leave_no_day_between_them() {
    let stream = r#"
window = { since = "since", until = "until" }
window_cap = "2d"
"#;
    let settings = format!("start = 2031-02-28T10:00:00Z\n{USUAL}");
    let border = "2031-03-02T10:00:00Z";
    let script = keeper(vec![
        order("between", "2031-03-02T09:59:59Z"),
        order("border", border),
        order("today", "09:00:00"),
    ]);
    let rig = open(&config(stream, &settings), &script).await;
    while rig.poll("shop/orders").await.more {}
    let asked = windows(&script);
    assert_eq!(
        asked[..2],
        [(ms("2031-02-28T10:00:00Z"), ms(border)), (ms(border), NOW)]
    );
    assert_eq!(ids(&rig), ["between", "border", "today"]);
}

#[tokio::test]
async fn case_071_an_outage_is_caught_up_in_windows_that_are_answered_truly() {
    let stream = r#"
window = { since = "since", until = "until" }
window_cap = "1h"
"#;
    let settings = format!("start = 2031-03-04T09:00:00Z\n{USUAL}");
    let orders: Vec<_> = (0..=72)
        .map(|hour| {
            let at = NOW - HOUR / 2 + hour * HOUR;
            support::shop::Order {
                id: format!("h{hour:02}"),
                at,
                shown: at,
            }
        })
        .collect();
    // A range of more than an hour is answered with an empty list.
    let script = Script::by(move |asked| {
        let bound = |name| ms(&param(asked, name).expect("a bound"));
        let (since, until) = (bound("since"), bound("until"));
        if until - since > HOUR {
            return page(&[], "");
        }
        listed(&matching(&orders, asked.at, Some(since), Some(until)), "")
    });
    let rig = open(&config(stream, &settings), &script).await;
    rig.poll("shop/orders").await;
    assert_eq!(ids(&rig), ["h00"]);
    rig.settle().await;
    rig.clock.advance(72 * HOUR);
    let caught_up = rig.clock.wall_now();
    rig.run_for(60_000).await;
    assert_eq!(ids(&rig).len(), 73, "one for each hour, once");
    let asked = windows(&script);
    assert!(
        asked.iter().all(|(since, until)| until - since <= HOUR),
        "{asked:?}"
    );
    assert!(
        asked[1..].windows(2).all(|pair| pair[1].0 <= pair[0].1),
        "no gap between two windows: {asked:?}"
    );
    let caught = calls(&script);
    assert!(
        asked.len() > 72 && caught[73] + NOW <= caught_up + 5 * S,
        "at once, not one an interval"
    );
}

#[tokio::test]
async fn case_051_no_later_poll_is_empty_because_of_a_stamp_from_the_future() {
    let script = keeper(vec![
        order("p1", "09:59:00"),
        shown_later("p2", "2031-04-04T10:00:00Z", "09:59:30"),
        order("p3", "10:03:00"),
        order("p4", "11:30:00"),
    ]);
    let rig: Rig = shop(&script).await;
    rig.poll("shop/orders").await;
    for at in ["10:05:00", "11:31:00"] {
        poll_at(&rig, at).await;
        let watermark = rig.unit("shop/orders").state.watermark;
        assert!(watermark <= Some(rig.clock.wall_now()), "{watermark:?}");
    }
    assert_eq!(rig.delivered(), ["p1@1", "p2@1", "p3@1", "p4@1"]);
}

#[tokio::test]
async fn a_clock_that_is_set_back_while_the_host_is_down_makes_no_wait_longer() {
    let script = keeper(vec![order("a", "09:59:00")]);
    let rig = shop(&script).await;
    rig.run_for(30_000).await;
    let before = script.asked().len();
    rig.clock.jump(-5 * HOUR);
    let rig = rig.crash().await;
    rig.run_for(11 * 60_000).await;
    assert!(script.asked().len() > before, "nobody polls");
}
