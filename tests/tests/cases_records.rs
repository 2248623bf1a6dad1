//! Records: which contents are equal, which keys are the same record, and what one odd record may cost the others.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use support::Rig;
use support::script::Script;
use support::shop::{USUAL, body, config, named, open, page, poll_at, shop};
use weir::poll::Outcome;

/// A shop whose polls bring these records, one answer after the other.
async fn polled(answers: &[&str]) -> Rig {
    let script = Script::new(answers.iter().map(|records| body(records, "")));
    let rig = open(&config("", USUAL), &script).await;
    for _ in answers {
        let report = rig.poll("shop/orders").await;
        assert_eq!(report.outcome, Outcome::Ok, "{:?}", report.message);
    }
    rig
}

#[tokio::test]
async fn case_113_a_byte_order_mark_changes_no_hash() {
    let script = Script::new([
        support::script::Reply::ok("\u{feff}{\"orders\":[{\"id\":1}]}"),
        body(r#"{"id":1}"#, ""),
    ]);
    let rig = open(&config("", USUAL), &script).await;
    rig.poll("shop/orders").await;
    rig.poll("shop/orders").await;
    assert_eq!(
        rig.delivered(),
        ["1@1"],
        "the same body without the mark is no change"
    );
    assert_eq!(rig.lines()[0].data.get(), r#"{"id":1}"#);
}

#[tokio::test]
async fn case_115_one_cut_emoji_stops_no_stream() {
    let records: Vec<String> = (1..=100)
        .map(|id| {
            let name = match id {
                42 => r"\ud83d",
                43 => r"\ud83d\udd25",
                _ => "plain",
            };
            format!(
                r#"{{"id":{id},"at":"2031-03-04T09:{:02}:00Z","name":"{name}"}}"#,
                id % 50
            )
        })
        .collect();
    let records = records.join(",");
    let script = Script::by(move |_| body(&records, ""));
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!((report.outcome, report.tally.new), (Outcome::Ok, 100));
    // The choice: record 42 comes with the replacement character.
    let lines = rig.lines();
    let name = |id: &str| {
        let line = lines.iter().find(|line| line.id == id).expect("delivered");
        let data: serde_json::Value = serde_json::from_str(line.data.get()).expect("strict JSON");
        data["name"].as_str().expect("text").to_owned()
    };
    assert_eq!(name("42"), "\u{fffd}");
    assert_eq!(name("43"), "\u{1f525}");
    assert!(
        rig.unit("shop/orders").state.watermark.is_some(),
        "the position moves on"
    );
    let report = poll_at(&rig, "10:01:00").await;
    assert_eq!((report.outcome, report.tally.unchanged), (Outcome::Ok, 100));
}

#[tokio::test]
async fn case_117_digits_arrive_as_they_were_sent() {
    let rig = polled(&[
        r#"{"id":9224851642388483,"money":0.10,"n":1E2},{"id":1285704473650888702,"parent":9224851642388483}"#,
    ])
    .await;
    let lines = rig.lines();
    assert_eq!(
        (&*lines[0].id, &*lines[1].id),
        ("9224851642388483", "1285704473650888702")
    );
    assert!(lines[0].data.get().contains(r#""money":0.10,"n":1E2"#));
    assert!(lines[1].data.get().contains("9224851642388483"));
}

#[tokio::test]
async fn case_119_of_a_repeated_key_the_last_value_counts() {
    let rig = polled(&[
        r#"{"id":1,"qty":1,"qty":-1}"#,
        // Only what does not count is different.
        r#"{"id":1,"qty":7,"qty":-1}"#,
        r#"{"id":1,"qty":-1,"qty":1}"#,
    ])
    .await;
    assert_eq!(rig.delivered(), ["1@1", "1@2"]);
    // What is delivered is the vendor's text: a reader that takes the last value, as nearly all do, reads the same.
    let read = |at: usize| {
        let data: serde_json::Value =
            serde_json::from_str(rig.lines()[at].data.get()).expect("JSON");
        data["qty"].as_i64()
    };
    assert_eq!((read(0), read(1)), (Some(-1), Some(1)));
}

#[tokio::test]
async fn case_119_a_repeated_id_or_time_is_read_by_the_same_rule() {
    let script = Script::new([page(&[], "")]);
    script.then([body(
        r#"{"id":"x","id":"y","at":"2031-03-04T09:00:00Z","at":"2031-03-04T09:30:00Z"}"#,
        "",
    )]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    rig.poll("shop/orders").await;
    assert_eq!(rig.delivered(), ["y@1"]);
    assert_eq!(
        rig.unit("shop/orders").state.watermark,
        Some(support::shop::ms("09:30:00"))
    );
}

#[tokio::test]
async fn case_121_the_order_of_keys_is_no_change() {
    let rig = polled(&[
        r#"{"id":1,"a":1,"b":{"x":1,"y":2},"list":[1,2]}"#,
        r#"{"b":{"y":2,"x":1},"list":[1,2],"id":1,"a":1}"#,
        "{ \"id\" : 1,\n \"a\":1,\t\"b\":{\"x\":1, \"y\":2}, \"list\":[ 1, 2 ] }",
    ])
    .await;
    assert_eq!(rig.delivered(), ["1@1"]);
    // The rule for numbers: as they are written, so that no digit of a big one is lost. `1.0` is another text than `1`.
    let rig = polled(&[r#"{"id":1,"a":1}"#, r#"{"id":1,"a":1.0}"#]).await;
    assert_eq!(rig.delivered(), ["1@1", "1@2"]);
    let rig = polled(&[r#"{"id":1,"list":[1,2]}"#, r#"{"id":1,"list":[2,1]}"#]).await;
    assert_eq!(
        rig.delivered(),
        ["1@1", "1@2"],
        "the order of elements counts"
    );
}

#[tokio::test]
async fn case_123_no_version_goes_back_behind_a_later_one() {
    let revision = |n: u32| format!(r#"{{"id":7,"at":"2031-03-04T10:00:00Z","rev":{n}}}"#);
    let script = Script::new([
        body(&revision(1), ""),
        body(&revision(2), ""),
        body(&revision(3), r#""next":"t2""#),
        body(&revision(4), ""),
    ]);
    let rig = shop(&script).await;
    for _ in 0..3 {
        rig.poll("shop/orders").await;
    }
    let revisions: Vec<String> = rig
        .lines()
        .iter()
        .map(|line| {
            line.data
                .get()
                .split("\"rev\":")
                .nth(1)
                .expect("a rev")
                .to_owned()
        })
        .collect();
    assert_eq!(revisions, ["1}", "2}", "3}", "4}"]);
}

#[tokio::test]
async fn case_125_equal_contents_and_equal_ids_are_different_records() {
    let ping = r#"{"id":1,"text":"ping"},{"id":2,"text":"ping"},{"id":3,"text":"ping"}"#;
    let both = [named("shop", "", USUAL), named("fair", "", USUAL)].concat();
    let script = Script::by(move |_| body(ping, ""));
    let rig = open(&both, &script).await;
    rig.poll("shop/orders").await;
    rig.poll("fair/orders").await;
    rig.poll("shop/orders").await;
    let mut keys: Vec<String> = rig
        .lines()
        .iter()
        .map(|line| format!("{}/{}", line.connection, line.id))
        .collect();
    keys.sort();
    assert_eq!(
        keys,
        ["fair/1", "fair/2", "fair/3", "shop/1", "shop/2", "shop/3"]
    );
}

#[tokio::test]
async fn case_127_a_key_that_is_used_again_is_a_record() {
    let record =
        |name: &str, at: &str| format!(r#"{{"id":1,"name":"{name}","at":"2031-03-04T{at}Z"}}"#);
    let script = Script::new([
        body(&record("A", "09:50:00"), ""),
        page(&[], ""),
        body(&record("B", "09:55:00"), ""),
    ]);
    let rig = shop(&script).await;
    for _ in 0..3 {
        rig.poll("shop/orders").await;
    }
    let lines = rig.lines();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].data.get().contains("\"B\""));
}
