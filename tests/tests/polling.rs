//! A whole host against a scripted vendor: what a poll delivers, remembers and asks next.

mod support;

use support::script::{Reply, Script};
use support::{NOW, Rig};
use weir::poll::Outcome;
use weir_rules::model::{Class, Reason};

const S: i64 = 1_000;

/// Orders by time and id, two to a page, an overlap of five minutes.
const SHOP: &str = r#"
[connection.shop]
connector = "rest"
auth = { query = { name = "api_key", value = "S3CR3T-9f2" } }

[connection.shop.config]
base_url = "https://api.example.test/v1"

[connection.shop.config.streams.orders]
path = "/orders"
records = "/orders"
id = "/id"
updated_at = "/at"
deleted = "/gone"
order = "ascending"
window = { since = "since" }
paging = { style = "token", token = "/next", param = "token" }
page_size = 2

[connection.shop.streams.orders]
interval = { min = "10s", max = "10m" }
overlap = { fixed = "5m" }
backoff = { base = "1s", cap = "1m" }
"#;

fn orders(records: &[(&str, &str, &str)], next: Option<&str>) -> Reply {
    let records: Vec<String> = records
        .iter()
        .map(|(id, at, text)| format!(r#"{{"id":"{id}","at":"2031-03-04T{at}Z","text":"{text}"}}"#))
        .collect();
    let next = next.map_or("null".to_owned(), |token| format!("\"{token}\""));
    Reply::ok(format!(
        r#"{{"orders":[{}],"next":{next}}}"#,
        records.join(",")
    ))
}

async fn shop(script: &std::sync::Arc<Script>) -> Rig {
    let rig = Rig::new(SHOP, script.clone()).await;
    script.on(&rig.clock);
    rig
}

#[tokio::test]
async fn every_record_once_and_the_next_window_begins_before_the_newest() {
    let script = Script::new([
        orders(
            &[("a", "09:58:00", "x"), ("b", "09:58:00", "x")],
            Some("t2"),
        ),
        orders(&[("c", "09:59:00", "x")], None),
    ]);
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok);
    assert_eq!((report.tally.new, report.tally.calls), (3, 2));
    assert_eq!(rig.delivered(), ["a@1", "b@1", "c@1"]);

    script.then([orders(&[("c", "09:59:00", "x")], None)]);
    let report = rig.poll("shop/orders").await;
    assert_eq!((report.tally.new, report.tally.unchanged), (0, 1));
    let asked = script.asked();
    assert!(
        asked[2].url.contains("since=2031-03-04T09%3A54%3A00Z"),
        "{}",
        asked[2].url
    );
    assert_eq!(rig.delivered().len(), 3);
}

#[tokio::test]
async fn case_001_a_wait_in_date_form_is_kept_to_the_second() {
    let limited = Reply::status(429, "{}")
        .header("date", "Tue, 04 Mar 2031 10:00:00 GMT")
        .header("retry-after", "Tue, 04 Mar 2031 10:01:30 GMT");
    let script = Script::new([limited, orders(&[("a", "09:58:00", "x")], None)]);
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(
        (report.outcome, report.class),
        (Outcome::Waiting, Some(Class::RateLimited))
    );
    script.then([orders(&[], None), orders(&[], None)]);
    rig.run_for(110 * 1_000).await;
    let asked = script.asked();
    assert!(
        asked[1].at >= NOW + 90 * S,
        "not early: {}",
        asked[1].at - NOW
    );
    assert!(
        asked[1].at <= NOW + 100 * S,
        "and soon: {}",
        asked[1].at - NOW
    );
    assert_eq!(rig.delivered(), ["a@1"]);
}

#[tokio::test]
async fn case_009_a_long_wait_is_a_stored_due_time_and_holds_nobody_else() {
    let config = format!(
        "{SHOP}{}",
        SHOP.replace("connection.shop", "connection.fair")
            .replace("api.example", "fair.example")
            .replace("S3CR3T-9f2", "another-key")
    );
    let script = Script::by(|asked| {
        if asked.url.contains("fair.example") {
            orders(&[], None)
        } else {
            Reply::status(503, "{}").header("retry-after", "3600")
        }
    });
    let rig = Rig::new(&config, script.clone()).await;
    script.on(&rig.clock);
    rig.run_for(60_000).await;
    let count = |host: &str| {
        script
            .asked()
            .iter()
            .filter(|a| a.url.contains(host))
            .count()
    };
    assert_eq!(count("api.example"), 1);
    assert!(
        count("fair.example") >= 3,
        "the other connection keeps its rhythm"
    );

    let rig = rig.crash().await;
    rig.run_for(3_000_000).await;
    assert_eq!(
        count("api.example"),
        1,
        "a restart does not shorten the wait"
    );
    rig.run_for(600_000).await;
    assert_eq!(count("api.example"), 2);
}

#[tokio::test]
async fn case_041_a_record_of_the_saved_second_that_comes_later_is_delivered() {
    let script = Script::new([
        orders(&[("a", "09:50:07", "x"), ("b", "09:50:07", "x")], None),
        orders(
            &[("a", "09:50:07", "x"), ("b", "09:50:07", "x")],
            Some("t2"),
        ),
        orders(&[("c", "09:50:07", "x")], None),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered(), ["a@1", "b@1", "c@1"]);
    // And the vendor was asked for the second itself.
    let asked = &script.asked()[1].url;
    let (_, since) = asked.split_once("since=").expect("a bound");
    assert!(since <= "2031-03-04T09%3A50%3A07Z", "{asked}");
}

#[tokio::test]
async fn case_051_a_stamp_from_the_future_does_not_hide_what_comes_after() {
    let script = Script::new([
        Reply::ok(
            r#"{"orders":[{"id":"p1","at":"2031-03-04T09:59:00Z"},{"id":"p2","at":"2031-04-04T10:00:00Z"}],"next":null}"#,
        ),
        orders(&[("p3", "10:03:00", "x")], None),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    rig.clock.advance(300 * S);
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered(), ["p1@1", "p2@1", "p3@1"]);
    assert!(
        script.asked()[1]
            .url
            .contains("since=2031-03-04T09%3A54%3A00Z")
    );
}

#[tokio::test]
async fn case_065_a_walk_that_was_killed_goes_on_from_its_stored_step() {
    let script = Script::new([
        orders(
            &[("r9", "09:59:09", "x"), ("r8", "09:59:08", "x")],
            Some("t2"),
        ),
        Reply::broken(),
    ]);
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Failed);
    let rig = rig.crash().await;
    script.then([
        orders(
            &[("r7", "09:59:07", "x"), ("r6", "09:59:06", "x")],
            Some("t3"),
        ),
        orders(&[("r5", "09:59:05", "x")], None),
    ]);
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok);
    assert!(
        script.asked()[2].url.contains("token=t2"),
        "{}",
        script.asked()[2].url
    );
    assert_eq!(rig.delivered(), ["r9@1", "r8@1", "r7@1", "r6@1", "r5@1"]);
}

#[tokio::test]
async fn case_075_a_token_that_repeats_on_an_empty_page_ends_the_walk_well() {
    let script = Script::new([
        orders(
            &[("1", "09:01:00", "x"), ("2", "09:02:00", "x")],
            Some("c2"),
        ),
        orders(&[("3", "09:03:00", "x")], Some("c3")),
        orders(&[], Some("c3")),
    ]);
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok);
    assert_eq!(rig.delivered().len(), 3);
}

#[tokio::test]
async fn case_079_an_empty_page_with_a_token_is_not_the_last() {
    let script = Script::new([
        orders(
            &[("1", "09:01:00", "x"), ("2", "09:02:00", "x")],
            Some("t2"),
        ),
        orders(&[], Some("t3")),
        orders(&[("3", "09:03:00", "x"), ("4", "09:04:00", "x")], None),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered(), ["1@1", "2@1", "3@1", "4@1"]);
}

#[tokio::test]
async fn a_walk_in_a_circle_is_said_and_moves_no_watermark() {
    let script = Script::new([
        orders(&[("1", "09:01:00", "x"), ("2", "09:02:00", "x")], Some("A")),
        orders(&[("3", "09:03:00", "x"), ("4", "09:04:00", "x")], Some("B")),
        orders(&[("5", "09:05:00", "x"), ("6", "09:06:00", "x")], Some("A")),
    ]);
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Incomplete);
    assert_eq!(
        rig.delivered().len(),
        6,
        "what came is delivered all the same"
    );
    assert_eq!(rig.unit("shop/orders").state.watermark, None);
}

#[tokio::test]
async fn case_087_an_expired_page_token_walks_the_window_again_and_delivers_nothing_twice() {
    let config = SHOP.replace(
        "[connection.shop.config.streams.orders]",
        "[[connection.shop.config.errors]]\nstatus = 400\npointer = \"/error\"\nequals = [\"INVALID_PAGE_TOKEN\", \"EXPIRED_PAGE_TOKEN\"]\nclass = \"position-lost\"\n\n[connection.shop.config.streams.orders]",
    );
    let script = Script::new([
        orders(
            &[("a", "09:01:00", "x"), ("b", "09:02:00", "x")],
            Some("t2"),
        ),
        Reply::status(400, r#"{"error":"EXPIRED_PAGE_TOKEN"}"#),
        orders(
            &[("a", "09:01:00", "x"), ("b", "09:02:00", "x")],
            Some("u2"),
        ),
        orders(&[("c", "09:03:00", "x")], None),
    ]);
    let rig = Rig::new(&config, script.clone()).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.class, Some(Class::PositionLost));
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok);
    assert_eq!(rig.delivered(), ["a@1", "b@1", "c@1"]);
}

#[tokio::test]
async fn case_089_a_lost_sync_token_reads_all_again_and_delivers_what_changed() {
    let config = r#"
[connection.cal]
connector = "rest"
[connection.cal.config]
base_url = "https://cal.example.test"
[connection.cal.config.streams.events]
path = "/events"
records = "/items"
id = "/id"
paging = { style = "token", token = "/nextPage", param = "page" }
sync = { token = "/nextSync", param = "sync" }
page_size = 2
[[connection.cal.config.errors]]
status = 410
class = "position-lost"
[connection.cal.streams.events]
backoff = { base = "1s", cap = "1m" }
"#;
    let page = |items: &str, more: &str| Reply::ok(format!(r#"{{"items":[{items}],{more}}}"#));
    let script = Script::new([
        page(r#"{"id":"a","v":1},{"id":"b","v":1}"#, r#""nextSync":"s1""#),
        Reply::status(410, r#"{"error":"fullSyncRequired"}"#),
        page(r#"{"id":"a","v":1},{"id":"b","v":2}"#, r#""nextPage":"p2""#),
        page(r#"{"id":"c","v":1}"#, r#""nextSync":"s2""#),
        page("", r#""nextSync":"s3""#),
    ]);
    let rig = Rig::new(config, script.clone()).await;
    rig.poll("cal/events").await;
    let report = rig.poll("cal/events").await;
    assert_eq!(
        report.class,
        Some(Class::PositionLost),
        "a 410 is never an empty success"
    );
    rig.poll("cal/events").await;
    rig.poll("cal/events").await;
    assert_eq!(rig.delivered(), ["a@1", "b@1", "b@2", "c@1"]);
    let asked: Vec<String> = script.asked().into_iter().map(|asked| asked.url).collect();
    assert!(
        asked[1].contains("sync=s1") && !asked[2].contains("sync="),
        "{asked:?}"
    );
    assert!(asked[4].contains("sync=s2"), "{asked:?}");
}

#[tokio::test]
async fn case_097_a_full_page_is_never_vouched_for_by_a_304() {
    let script = Script::new([
        orders(&[("1", "09:01:00", "x"), ("2", "09:02:00", "x")], None).header("etag", "\"e1\""),
        orders(
            &[("1", "09:01:00", "x"), ("2", "09:02:00", "x")],
            Some("t2"),
        ),
        orders(&[("3", "09:03:00", "x")], None),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    rig.poll("shop/orders").await;
    assert_eq!(script.asked()[1].header("if-none-match"), None);
    assert_eq!(rig.delivered(), ["1@1", "2@1", "3@1"]);
}

#[tokio::test]
async fn case_099_a_304_is_a_success_without_news_whatever_body_it_has() {
    // The window's bound stays the same only while the stream has no records.
    let script = Script::new([
        orders(&[], None).header("etag", "W/\"123--gzip\""),
        Reply::status(304, ""),
        Reply::status(304, "{}"),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    for _ in 0..2 {
        let report = rig.poll("shop/orders").await;
        assert_eq!(report.outcome, Outcome::NotModified, "{:?}", report.message);
    }
    for asked in &script.asked()[1..] {
        assert_eq!(
            asked.header("if-none-match"),
            Some("W/\"123--gzip\""),
            "byte for byte"
        );
    }
}

#[tokio::test]
async fn case_105_a_page_of_html_with_200_is_no_success_with_zero_records() {
    for kind in ["text/html", "application/json"] {
        let html = Reply {
            headers: vec![("content-type".into(), kind.into())],
            ..Reply::ok("<!DOCTYPE html><html>maintenance</html>")
        };
        let script = Script::new([html, orders(&[("1", "09:01:00", "x")], None)]);
        let rig = shop(&script).await;
        let report = rig.poll("shop/orders").await;
        assert_eq!(report.outcome, Outcome::Failed, "{kind}: {report:?}");
        rig.poll("shop/orders").await;
        assert_eq!(rig.delivered(), ["1@1"]);
    }
}

#[tokio::test]
async fn case_107_a_wrong_shape_is_not_an_empty_list() {
    for body in [r#"{"ok":true,"orders":{}}"#, r#"{"ok":true}"#, "[]", "null"] {
        let script = Script::new([Reply::ok(body)]);
        let rig = shop(&script).await;
        let report = rig.poll("shop/orders").await;
        assert_eq!(report.class, Some(Class::Incomplete), "{body}");
        let message = report.message.unwrap_or_default();
        assert!(message.contains("/orders"), "names the path: {message}");
        assert_eq!(rig.polls()[0].outcome, "failed");
    }
}

#[tokio::test]
async fn case_113_117_bytes_are_kept_and_a_half_pair_stops_nobody() {
    let body = "\u{feff}{\"orders\":[{\"id\":9224851642388483,\"at\":\"2031-03-04T09:01:00Z\",\"price\":0.10,\"n\":1E2},\
        {\"id\":1285704473650888702,\"at\":\"2031-03-04T09:01:00Z\",\"name\":\"\\ud83d\"}],\"next\":null}";
    let script = Script::new([Reply::ok(body)]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    assert_eq!(
        rig.delivered(),
        ["9224851642388483@1", "1285704473650888702@1"]
    );
    let lines = rig.lines();
    assert!(lines[0].data.get().contains("\"price\":0.10,\"n\":1E2"));
    assert!(lines[1].data.get().contains("\\ufffd"));
}

#[tokio::test]
async fn case_123_the_last_of_two_versions_in_one_walk_is_delivered_last() {
    let script = Script::new([
        orders(&[("7", "09:00:00", "rev 1")], None),
        orders(&[("7", "09:00:00", "rev 2")], None),
        orders(
            &[("7", "09:00:00", "rev 3"), ("8", "09:00:00", "x")],
            Some("t2"),
        ),
        orders(&[("7", "09:00:01", "rev 4")], None),
    ]);
    let rig = shop(&script).await;
    for _ in 0..3 {
        rig.poll("shop/orders").await;
    }
    assert_eq!(rig.delivered(), ["7@1", "7@2", "7@3", "8@1", "7@4"]);
    assert!(rig.lines()[4].data.get().contains("rev 4"));
}

#[tokio::test]
async fn case_127_an_id_that_comes_back_after_its_deletion_is_delivered() {
    let script = Script::new([
        orders(&[("1", "09:00:00", "A")], None),
        Reply::ok(r#"{"orders":[{"id":"1","at":"2031-03-04T09:02:00Z","gone":true}],"next":null}"#),
        orders(&[("1", "09:05:00", "A")], None),
    ]);
    let rig = shop(&script).await;
    for _ in 0..3 {
        rig.poll("shop/orders").await;
    }
    assert_eq!(rig.delivered(), ["1@1", "1@2", "1@3"]);
}

#[tokio::test]
async fn case_129_a_revoked_token_stops_its_connection_alone_until_a_person_resumes_it() {
    let config = format!(
        "{SHOP}{}",
        SHOP.replace("connection.shop", "connection.fair")
            .replace("api.example", "fair.example")
            .replace("S3CR3T-9f2", "another-key")
    );
    let script = Script::by(|asked| {
        if asked.url.contains("fair.example") {
            orders(&[], None)
        } else {
            Reply::status(401, r#"{"error":"revoked"}"#)
        }
    });
    let rig = Rig::new(&config, script.clone()).await;
    rig.poll("shop/orders").await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::NeedsSignIn);
    let calls = |host: &str| {
        script
            .asked()
            .iter()
            .filter(|a| a.url.contains(host))
            .count()
    };
    assert_eq!(
        calls("api.example"),
        2,
        "tried once more, and no more than that"
    );
    rig.run_for(600_000).await;
    assert_eq!(calls("api.example"), 2);
    assert!(calls("fair.example") > 3);
    let rig = rig.crash().await;
    rig.run_for(60_000).await;
    assert_eq!(calls("api.example"), 2, "a restart does not forget it");
    // Another credential counts as signing in.
    let rig = rig
        .restart_with(&config.replace("S3CR3T-9f2", "N3W-K3Y-77"))
        .await;
    rig.run_for(60_000).await;
    assert!(calls("api.example") > 2);
}

#[tokio::test]
async fn case_135_a_key_in_the_query_is_in_no_row_and_no_report() {
    let echo = |asked: &support::script::Asked| {
        Reply::status(
            404,
            format!(r#"{{"message":"no route for {}"}}"#, asked.url),
        )
    };
    let script = Script::by(echo);
    script.then([Reply::refused(), Reply::ok("{ half")]);
    let rig = shop(&script).await;
    for _ in 0..3 {
        let report = rig.poll("shop/orders").await;
        assert!(!format!("{report:?}").contains("S3CR3T-9f2"), "{report:?}");
    }
    assert!(
        script
            .asked()
            .iter()
            .all(|asked| asked.url.contains("api_key=S3CR3T-9f2"))
    );
    let kept = format!("{:?}{:?}", rig.polls(), rig.units());
    assert!(!kept.contains("S3CR3T-9f2"), "{kept}");
    assert!(kept.contains("404"), "path and status remain");
}

#[tokio::test]
async fn case_029_a_slow_poll_is_not_followed_by_a_salvo() {
    let mut first = true;
    let script = Script::by(move |_| {
        let slow = std::mem::take(&mut first);
        orders(&[], None).taking(if slow { 65 * S } else { 100 })
    });
    let rig = shop(&script).await;
    rig.run_for(100_000).await;
    let starts: Vec<i64> = script.asked().iter().map(|asked| asked.at - NOW).collect();
    assert!(
        starts.windows(2).all(|pair| pair[1] - pair[0] >= 10 * S),
        "{starts:?}"
    );
    assert!(starts.len() >= 3, "{starts:?}");
}

#[tokio::test]
async fn case_039_a_clock_that_is_set_makes_no_poll_late_or_early() {
    for jump in [-6 * 3_600 * S, 6 * 3_600 * S] {
        let script = Script::by(|_| orders(&[], None));
        let rig = shop(&script).await;
        rig.run_for(5_000).await;
        let before = script.asked().len();
        assert_eq!(before, 1);
        rig.clock.jump(jump);
        rig.run_for(20_000).await;
        let after = script.asked().len();
        assert!((2..=3).contains(&after), "jump {jump}: {after} polls");
    }
}

#[tokio::test]
async fn case_035_a_person_joins_the_schedule_and_a_resync_delivers_only_what_changed() {
    let script = Script::new([
        orders(&[("a", "09:01:00", "x"), ("b", "09:02:00", "x")], None),
        orders(&[("a", "09:01:00", "x"), ("b", "09:02:00", "y")], None),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    let report = rig.ask("shop/orders", Reason::Resync).await;
    assert_eq!((report.tally.changed, report.tally.unchanged), (1, 1));
    assert!(
        !script.asked()[1].url.contains("since="),
        "everything is read"
    );
    assert_eq!(rig.delivered(), ["a@1", "b@1", "b@2"]);
}

#[tokio::test]
async fn a_limit_holds_back_everyone_on_the_credential_and_nobody_else() {
    let two_streams = format!(
        "{SHOP}{}",
        SHOP.split_once("[connection.shop.config.streams.orders]")
            .map(
                |(_, stream)| format!("[connection.shop.config.streams.orders]{stream}")
                    .replace("orders", "returns")
            )
            .unwrap_or_default()
    );
    let mut refused = false;
    let script = Script::by(move |asked| {
        if asked.url.contains("/orders") && !std::mem::replace(&mut refused, true) {
            Reply::status(429, "{}").header("retry-after", "120")
        } else if asked.url.contains("/orders") {
            orders(&[], None)
        } else {
            Reply::ok(r#"{"returns":[],"next":null}"#)
        }
    });
    let rig = Rig::new(&two_streams, script.clone()).await;
    script.on(&rig.clock);
    rig.poll("shop/orders").await;
    let report = rig.poll("shop/returns").await;
    assert_eq!(report.outcome, Outcome::Waiting, "{report:?}");
    assert_eq!(
        script.asked().len(),
        1,
        "nobody on the key calls before the wait is over"
    );
    let rig = rig.crash().await;
    let report = rig.poll("shop/returns").await;
    assert_eq!(report.outcome, Outcome::Waiting, "nor after a restart");
    rig.clock.advance(131 * S);
    let report = rig.poll("shop/returns").await;
    assert_eq!(report.outcome, Outcome::Ok);
}

#[tokio::test]
async fn unknown_answers_are_tried_a_few_times_and_then_shown_to_a_person() {
    let script = Script::by(|_| Reply::status(419, r#"{"error":"teapot"}"#));
    let rig = shop(&script).await;
    rig.run_for(3_600_000).await;
    assert_eq!(script.asked().len(), 4, "once, and three retries");
    let parked = rig.unit("shop/orders").state.parked.expect("parked");
    assert!(parked.code.contains("419"), "{parked:?}");
}

#[tokio::test]
async fn a_304_still_tells_of_limits_and_of_the_pause_before_the_next_poll() {
    let config = SHOP.replace(
        "page_size = 2\n",
        "page_size = 2\npoll_after = { header = \"x-poll-interval\", unit = \"s\" }\n",
    );
    let script = Script::new([
        orders(&[], None)
            .header("etag", "\"e1\"")
            .header("x-poll-interval", "900"),
        Reply::status(304, "")
            .header("x-ratelimit-limit", "60")
            .header("x-ratelimit-remaining", "0")
            .header("x-ratelimit-reset", "1930386600"),
    ]);
    let rig = Rig::new(&config, script.clone()).await;
    rig.poll("shop/orders").await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::NotModified);
    assert!(
        report.due >= Some(NOW + 900 * S),
        "the pause that came with the page still holds"
    );
    let report = rig.poll("shop/orders").await;
    assert_eq!(
        report.outcome,
        Outcome::Waiting,
        "the 304 said that nothing is left"
    );
    assert!(report.due >= Some(1_930_386_600_000));
    assert_eq!(script.asked().len(), 2);
}

#[tokio::test]
async fn a_person_who_asks_gets_what_came_after_an_interrupted_walk_too() {
    let script = Script::new([
        orders(
            &[("a", "09:58:00", "x"), ("b", "09:58:30", "x")],
            Some("t2"),
        ),
        Reply::broken(),
        orders(&[("c", "09:59:00", "x")], None),
        orders(&[("d", "10:05:00", "x")], None),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    rig.clock.advance(600 * S);
    let report = rig.ask("shop/orders", Reason::SyncNow).await;
    assert!(report.more, "the walk's window ended before the request");
    let report = rig.ask("shop/orders", Reason::SyncNow).await;
    assert!(!report.more);
    assert_eq!(rig.delivered(), ["a@1", "b@1", "c@1", "d@1"]);
}
