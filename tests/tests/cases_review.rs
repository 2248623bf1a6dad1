//! What needs a person: records that cannot be taken, answers that nobody has mapped, what a person decides about them;
//! and the hard cases of dedup.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use support::Rig;
use support::script::{Reply, Script};
use support::shop::{HOUR, USUAL, WINDOW, body, config, ids, named, open, page, poll_at, shop};
use tokio::sync::mpsc;
use weir::control::Request;
use weir::host::Host;
use weir::poll::Outcome;
use weir::store::{ReviewEntry, ReviewKind};
use weir::verbs::{self, Caller};
use weir_rules::model::{Class, Reason};

fn waiting(rig: &Rig) -> Vec<ReviewEntry> {
    let mut entries = rig.host.store.reviews(None, usize::MAX).unwrap();
    entries.retain(|entry| !entry.dropped);
    entries
}

fn of_kind(rig: &Rig, kind: ReviewKind) -> Vec<ReviewEntry> {
    let mut entries = waiting(rig);
    entries.retain(|entry| entry.id.kind == kind);
    entries
}

/// Asks the host as a verb does; the exit code and the answer.
async fn ask(rig: &Rig, request: Request) -> (u8, Value) {
    let caller = Caller {
        running: true,
        progress: mpsc::channel(16).0,
    };
    let reply = verbs::answer(&rig.host, request, caller).await.unwrap();
    (reply.exit, reply.body)
}

async fn listed(rig: &Rig) -> (u8, Vec<String>) {
    let request = Request::Review {
        unit: None,
        all: false,
    };
    let (exit, body) = ask(rig, request).await;
    let entries = body["entries"].as_array().unwrap();
    let ids = entries.iter().map(|entry| entry["id"].as_str().unwrap());
    (exit, ids.map(str::to_owned).collect())
}

async fn retry(rig: &Rig, what: &str) -> (u8, Value) {
    let request = Request::ReviewRetry { what: what.into() };
    ask(rig, request).await
}

async fn give_up(rig: &Rig, id: &str) {
    ask(rig, Request::ReviewDrop { id: id.into() }).await;
}

async fn reset(rig: &Rig, records: bool) {
    let request = Request::Reset {
        unit: "shop/orders".into(),
        records,
        plan: false,
    };
    ask(rig, request).await;
}

fn good(id: u32) -> String {
    format!(r#"{{"id":{id},"at":"2031-03-04T09:{:02}:00Z"}}"#, id % 60)
}

/// Seven good records around these.
fn among_good(odd: &[&str]) -> String {
    let mut all: Vec<String> = (1..=7).map(good).collect();
    for (place, odd) in odd.iter().enumerate() {
        all.insert(place * 2, (*odd).to_owned());
    }
    all.join(",")
}

#[tokio::test]
async fn single_records_that_cannot_be_taken_hold_up_no_other_one() {
    let deep = format!(
        r#"{{"id":"deep","x":{}1{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let large = format!(r#"{{"id":"large","x":"{}"}}"#, "x".repeat(1 << 20));
    let long_id = format!(r#"{{"id":"{}"}}"#, "i".repeat(2_000));
    let odd = [
        "null",
        r#"{"id":null,"key":"T0KEN-shop-77"}"#,
        r#"{"id":["a"]}"#,
        &deep,
        &large,
        &long_id,
    ];
    let records = among_good(&odd);
    let script = Script::by(move |_| body(&records, ""));
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok, "{:?}", report.message);
    assert_eq!((report.tally.new, report.tally.set_aside), (7, 6));
    assert_eq!(ids(&rig), ["1", "2", "3", "4", "5", "6", "7"]);
    assert!(rig.unit("shop/orders").state.watermark.is_some());
    assert_eq!(rig.polls()[0].tally.set_aside, 6);

    let entries = of_kind(&rig, ReviewKind::Record);
    let whys: Vec<&str> = entries.iter().map(|entry| &*entry.message).collect();
    for why in [
        "no id could be read at /id",
        "nested deeper",
        "1048",
        "its id has 2000",
    ] {
        assert!(
            whys.iter().any(|told| told.contains(why)),
            "{why}: {whys:?}"
        );
    }
    for entry in &entries {
        let record = entry.record.as_ref().unwrap();
        assert!(record.text.len() <= 4 << 10);
        assert!(!record.text.contains("T0KEN"), "{}", record.text);
    }
    assert_eq!(listed(&rig).await.0, 3);

    // The same again costs no delivery and no new entry.
    let before = waiting(&rig);
    let report = poll_at(&rig, "10:01:00").await;
    assert_eq!((report.tally.unchanged, report.tally.set_aside), (7, 6));
    assert_eq!(waiting(&rig), before);
}

#[tokio::test]
async fn a_record_that_its_vendor_has_mended_is_delivered_like_any_other() {
    let required = format!("{WINDOW}required = [\"/name\"]\n");
    let named = |id: u32| format!(r#"{{"id":{id},"at":"2031-03-04T09:59:00Z","name":"n"}}"#);
    let broken = r#"{"id":9,"at":"2031-03-04T09:59:30Z"}"#;
    let page = |nine: &str| body(&[named(1), named(2), nine.to_owned()].join(","), "");
    let mended = r#"{"id":9,"at":"2031-03-04T09:59:30Z","name":"n"}"#;
    let script = Script::new([page(broken), page(broken), page(mended)]);
    let rig = open(&config(&required, USUAL), &script).await;
    for _ in 0..2 {
        let report = rig.poll("shop/orders").await;
        assert_eq!((report.outcome, report.tally.set_aside), (Outcome::Ok, 1));
    }
    assert_eq!(rig.delivered(), ["1@1", "2@1"]);
    let [entry] = &of_kind(&rig, ReviewKind::Record)[..] else {
        panic!("one waits");
    };
    assert_eq!(entry.record.as_ref().unwrap().id.as_deref(), Some("9"));
    assert!(entry.message.contains("/name"), "{}", entry.message);
    // A person wants it to be looked at again.
    let (exit, _) = retry(&rig, &entry.id.to_string()).await;
    assert_eq!(exit, 0);
    assert_eq!(rig.delivered(), ["1@1", "2@1", "9@1"]);
    assert_eq!(listed(&rig).await, (0, vec![]));
}

#[tokio::test]
async fn a_record_without_an_id_is_settled_once_a_whole_walk_shows_it_no_more() {
    let with = |odd: &str| body(&format!("{},{odd},{}", good(1), good(2)), "");
    let script = Script::new([with("null"), with("null"), with(&good(3))]);
    // Every poll reads all of it.
    let rig = open(&config("conditional = false\n", USUAL), &script).await;
    for left in [1, 1, 0] {
        rig.poll("shop/orders").await;
        assert_eq!(of_kind(&rig, ReviewKind::Record).len(), left);
    }
    assert_eq!(ids(&rig), ["1", "2", "3"]);
}

#[tokio::test]
async fn a_page_of_which_most_is_broken_is_refused_whole() {
    let most = format!("{},{},null,{{}},[]", good(1), good(2));
    let script = Script::new([body(&most, "")]);
    let all_good = || body(&format!("{},{}", good(1), good(2)), "");
    script.then([all_good()]);
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(
        report.class,
        Some(Class::Incomplete),
        "{:?}",
        report.message
    );
    assert_eq!(rig.delivered().len(), 0);
    assert_eq!(of_kind(&rig, ReviewKind::Record).len(), 0);
    rig.poll("shop/orders").await;
    assert_eq!(ids(&rig), ["1", "2"]);
}

#[tokio::test]
async fn what_a_vendor_shows_again_and_again_holds_a_unit_up_no_longer() {
    // The last page holds nothing but one broken record: three times that may be an accident.
    let script = Script::by(|asked| match support::shop::param(asked, "token") {
        None => page(&[("1", "09:00:00"), ("2", "09:01:00")], r#""next":"t2""#),
        Some(_) => body("null", ""),
    });
    let rig = shop(&script).await;
    for _ in 0..3 {
        let report = rig.poll("shop/orders").await;
        assert_eq!(
            report.class,
            Some(Class::Incomplete),
            "{:?}",
            report.message
        );
    }
    assert_eq!(rig.unit("shop/orders").state.watermark, None);
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok, "{:?}", report.message);
    assert!(rig.unit("shop/orders").state.watermark.is_some());
    assert_eq!(of_kind(&rig, ReviewKind::Record).len(), 1);
}

#[tokio::test]
async fn a_stream_that_has_changed_its_shape_stays_refused_and_shows_its_answer() {
    let renamed: Vec<String> = (0..20).map(|n| format!(r#"{{"ID":{n}}}"#)).collect();
    let renamed = renamed.join(",");
    let script = Script::by(move |_| body(&renamed, ""));
    let rig = shop(&script).await;
    for _ in 0..8 {
        let report = rig.poll("shop/orders").await;
        assert_eq!(report.class, Some(Class::Incomplete));
    }
    assert_eq!(of_kind(&rig, ReviewKind::Record).len(), 0);
    let [entry] = &of_kind(&rig, ReviewKind::Refused)[..] else {
        panic!("a person should see it");
    };
    assert!(entry.answer.as_ref().unwrap().body.contains(r#"{"ID":0}"#));
}

#[tokio::test]
async fn too_many_records_set_aside_park_the_unit_instead_of_pushing_any_out() {
    let calls = Arc::new(Mutex::new(0_u32));
    let script = Script::by(move |_| {
        let mut call = calls.lock().unwrap();
        *call += 1;
        let records: Vec<String> = (0..90)
            .flat_map(|n| [good(n), format!(r#"{{"odd":{}}}"#, *call * 1_000 + n)])
            .collect();
        body(&records.join(","), "")
    });
    let rig = shop(&script).await;
    let outcomes = [
        rig.poll("shop/orders").await.outcome,
        rig.poll("shop/orders").await.outcome,
        rig.poll("shop/orders").await.outcome,
    ];
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Ok, Outcome::Parked]);
    assert_eq!(of_kind(&rig, ReviewKind::Record).len(), 200);
    assert_eq!(of_kind(&rig, ReviewKind::Parked).len(), 1);
}

#[tokio::test]
async fn a_record_that_was_given_up_waits_again_only_when_it_changes() {
    let version = Arc::new(Mutex::new(1_u32));
    let shown = version.clone();
    let script = Script::by(move |_| {
        let odd = format!(r#"{{"id":["{}"]}}"#, *shown.lock().unwrap());
        body(&format!("{},{odd}", good(1)), "")
    });
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    let id = of_kind(&rig, ReviewKind::Record)[0].id.to_string();
    give_up(&rig, &id).await;
    rig.poll("shop/orders").await;
    assert_eq!(listed(&rig).await, (0, vec![]));
    *version.lock().unwrap() = 2;
    rig.poll("shop/orders").await;
    assert_eq!(listed(&rig).await.0, 3);
}

#[tokio::test]
async fn an_unknown_answer_is_tried_three_times_and_then_shown_with_what_it_said() {
    let both = [named("shop", WINDOW, USUAL), named("fair", WINDOW, USUAL)].concat();
    let script = Script::by(|asked| {
        if asked.url.starts_with("https://fair") {
            return page(&[("1", "09:00:00")], "");
        }
        let more = " and more".repeat(300);
        let said = format!(r#"{{"code":418,"said":"a teapot; you sent T0KEN-shop-77{more}"}}"#);
        Reply::ok(said)
            .header("x-request-id", "r-17")
            .header("set-something", "else")
    });
    let rule = r#"errors = [{ pointer = "/code", equals = 418, class = "unknown" }]"#;
    let with_rule = both.replace("/v1\"", &format!("/v1\"\n{rule}"));
    let rig = open(&with_rule, &script).await;
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        outcomes.push(rig.poll("shop/orders").await.outcome);
        assert_eq!(waiting(&rig).len(), 1, "it is shown from the first time on");
    }
    assert_eq!(
        outcomes,
        [
            Outcome::Failed,
            Outcome::Failed,
            Outcome::Failed,
            Outcome::Parked
        ]
    );
    assert_eq!(rig.unit("shop/orders").due, None);
    // The other one goes on.
    assert_eq!(rig.poll("fair/orders").await.outcome, Outcome::Ok);

    let [entry] = &waiting(&rig)[..] else {
        panic!("one waits");
    };
    assert_eq!(
        (entry.id.kind, entry.class),
        (ReviewKind::Parked, Some(Class::Unknown))
    );
    let answer = entry.answer.as_ref().unwrap();
    assert!(
        answer
            .request
            .starts_with("GET https://shop.example.test/v1/orders"),
        "{}",
        answer.request
    );
    assert_eq!(answer.status, Some(200));
    let names: Vec<&str> = answer.headers.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["content-type", "x-request-id"]);
    assert!(
        answer.body.contains("a teapot; you sent [secret]"),
        "{}",
        answer.body
    );
    assert!(answer.body.len() <= 1 << 10 && answer.bytes > 2_000);
    assert!(!format!("{entry:?}").contains("T0KEN"));
    let (exit, listed) = listed(&rig).await;
    assert_eq!((exit, &listed[..]), (3, &[entry.id.to_string()][..]));
}

#[tokio::test]
async fn a_parked_unit_is_polled_again_when_a_person_says_so() {
    let mended = Arc::new(Mutex::new(false));
    let vendor = mended.clone();
    let script = Script::by(move |_| match *vendor.lock().unwrap() {
        true => page(&[("1", "09:00:00")], ""),
        false => Reply::status(404, r#"{"message":"no such shop"}"#),
    });
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(
        (report.outcome, report.class),
        (Outcome::Parked, Some(Class::Permanent))
    );
    let id = of_kind(&rig, ReviewKind::Parked)[0].id.to_string();
    // Not mended yet.
    assert_eq!(retry(&rig, &id).await.0, 3);
    assert!(rig.unit("shop/orders").state.parked.is_some());
    *mended.lock().unwrap() = true;
    let (exit, answer) = retry(&rig, "shop").await;
    assert_eq!(
        (exit, &answer["units"][0]["outcome"]),
        (0, &"ok".into()),
        "{answer}"
    );
    assert_eq!(rig.delivered(), ["1@1"]);
    assert_eq!(waiting(&rig), []);
    assert!(rig.unit("shop/orders").due.is_some());
}

#[tokio::test]
async fn a_unit_that_was_given_up_asks_for_nobody_over_a_restart_too() {
    let script = Script::by(|_| Reply::status(404, "gone"));
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    let id = of_kind(&rig, ReviewKind::Parked)[0].id.to_string();
    give_up(&rig, &id).await;
    let rig = rig.crash().await;
    assert_eq!(listed(&rig).await, (0, vec![]));
    rig.run_for(2 * HOUR as u64).await;
    assert_eq!(script.asked().len(), 1, "it is not polled");
    // It can be brought back all the same.
    assert_eq!(retry(&rig, "shop/orders").await.0, 3);
    assert_eq!(script.asked().len(), 2);
}

#[tokio::test]
async fn data_that_will_be_gone_soon_is_tried_on_and_shown_to_a_person() {
    let stream = format!("{WINDOW}retention = \"10d\"\n");
    let good = Arc::new(Mutex::new(true));
    let vendor = good.clone();
    let script = Script::by(move |_| match *vendor.lock().unwrap() {
        true => page(&[("1", "09:59:00")], ""),
        false => Reply::status(500, ""),
    });
    let settings = "interval = \"6h\"\nbackoff = { base = \"1m\", cap = \"6h\" }\n";
    let rig = open(&config(&stream, settings), &script).await;
    rig.poll("shop/orders").await;
    *good.lock().unwrap() = false;
    let day = 24 * HOUR as u64;
    rig.run_for(2 * day).await;
    assert_eq!(waiting(&rig), [], "there is time");
    rig.run_for(7 * day + day / 2).await;
    assert_eq!(of_kind(&rig, ReviewKind::Expiring).len(), 1);
    let before = script.asked().len();
    rig.run_for(3 * day).await;
    assert!(script.asked().len() > before + 12, "it is never given up");
    *good.lock().unwrap() = true;
    rig.run_for(day).await;
    assert_eq!(waiting(&rig), []);
}

/// A report that is made by a POST.
const REPORT: &str = r#"
method = "POST"
idempotency_header = "Idempotency-Key"
body = { kind = "orders" }
"#;

#[tokio::test]
async fn a_call_with_an_effect_carries_one_key_through_all_its_tries() {
    let host: Arc<OnceLock<Arc<Host>>> = Arc::default();
    let keys: Arc<Mutex<Vec<String>>> = Arc::default();
    let (reader, noted) = (host.clone(), keys.clone());
    let script = Script::by(move |asked| {
        let key = asked.header("idempotency-key").expect("a key").to_owned();
        let store = &reader.get().expect("the host is known").store;
        let stored = store.note("write/1/1").unwrap();
        let first = noted.lock().unwrap().is_empty();
        if first {
            let stored = String::from_utf8(stored.expect("stored before the call")).unwrap();
            assert!(stored.contains(&key), "{stored}");
        }
        noted.lock().unwrap().push(key);
        match noted.lock().unwrap().len() {
            1 => Reply::status(503, ""),
            2 => Reply::broken(),
            3 => Reply::status(202, "{}"),
            _ => page(&[("1", "09:00:00")], ""),
        }
    });
    let rig = open(&config(REPORT, USUAL), &script).await;
    let _ = host.set(rig.host.clone());
    rig.poll("shop/orders").await;
    rig.poll("shop/orders").await;
    let rig = rig.crash().await;
    for _ in 0..3 {
        rig.poll("shop/orders").await;
    }
    let keys = keys.lock().unwrap().clone();
    assert_eq!(keys.len(), 5, "{keys:?}");
    assert!(keys[..4].iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_ne!(keys[4], keys[0], "another walk is another call");
    assert_eq!(keys[0].len(), 36);
    for walk in 1..=2 {
        let stored = rig.host.store.note(&format!("write/1/{walk}")).unwrap();
        assert_eq!(stored, None, "what is answered for good is forgotten");
    }
}

#[tokio::test]
async fn dedup_max_parks_the_stream_instead_of_growing() {
    let bounded = |most: u32| config(WINDOW, &format!("{USUAL}dedup = {{ max = {most} }}\n"));
    let script = Script::by(|asked| match support::shop::param(asked, "token") {
        None => page(&[("1", "09:00:00"), ("2", "09:01:00")], r#""next":"t2""#),
        Some(_) => page(&[("3", "09:02:00"), ("4", "09:03:00")], ""),
    });
    let rig = open(&bounded(3), &script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Parked, "{:?}", report.message);
    assert_eq!(
        rig.delivered(),
        ["1@1", "2@1"],
        "the page that is too much is not taken"
    );
    let unit = rig.unit("shop/orders");
    assert_eq!((unit.due, unit.state.watermark), (None, None));
    assert_eq!(
        rig.polls().last().unwrap().code.as_deref(),
        Some("dedup.max")
    );
    let entry = &of_kind(&rig, ReviewKind::Parked)[0];
    assert!(
        entry.message.contains("dedup.max is 3"),
        "{}",
        entry.message
    );
    let rig = rig.restart_with(&bounded(4)).await;
    script.on(&rig.clock);
    assert_eq!(retry(&rig, "shop").await.0, 0);
    assert_eq!(rig.delivered(), ["1@1", "2@1", "3@1", "4@1"]);
}

#[tokio::test]
async fn dedup_retain_forgets_what_no_poll_reads_again_and_gives_no_key_twice() {
    let settings =
        "interval = \"6h\"\noverlap = { fixed = \"5m\" }\ndedup = { retain = \"10d\" }\n";
    let orders: Arc<Mutex<Vec<(&str, String)>>> = Arc::default();
    let shown = orders.clone();
    let script = Script::by(move |asked| {
        let since = support::shop::param(asked, "since").unwrap_or_default();
        let orders = shown.lock().unwrap().clone();
        let orders: Vec<(&str, &str)> = orders
            .iter()
            .filter(|(_, at)| **at >= *since)
            .map(|(id, at)| (*id, &**at))
            .collect();
        page(&orders, "")
    });
    let rig = open(&config(WINDOW, settings), &script).await;
    let add = |id, at: &str| orders.lock().unwrap().push((id, at.to_owned()));
    add("old", "2031-03-04T09:59:00Z");
    let day = 24 * HOUR as u64;
    rig.run_for(HOUR as u64).await;
    // A stream that stands still is read again from its newest record: nothing of that may be forgotten.
    rig.run_for(30 * day).await;
    assert_eq!(rig.delivered(), ["old@1"]);
    add("new", "2031-04-03T09:59:00Z");
    rig.run_for(3 * day).await;
    assert_eq!(
        rig.host
            .store
            .record_count(rig.unit("shop/orders").id)
            .unwrap(),
        1
    );
    // All of it again: what was forgotten comes as an insert, under a revision that it never had.
    rig.ask("shop/orders", Reason::Resync).await;
    assert_eq!(rig.delivered(), ["old@1", "new@1", "old@2"]);
}

#[tokio::test]
async fn case_123_two_versions_in_every_walk_do_not_flip() {
    let version = |n: u32| format!(r#"{{"id":7,"at":"2031-03-04T10:00:00Z","rev":{n}}}"#);
    let walk = |pages: &[u32]| -> Vec<Reply> {
        let last = pages.len() - 1;
        pages
            .iter()
            .enumerate()
            .map(|(at, n)| {
                let next = format!(r#""next":"t{at}""#);
                body(&version(*n), if at == last { "" } else { &next })
            })
            .collect()
    };
    let script = Script::new([]);
    let rig = shop(&script).await;
    let poll = async |pages: &[u32]| {
        script.then(walk(pages));
        let before = rig.lines().len();
        rig.clock.advance(60_000);
        let report = rig.poll("shop/orders").await;
        assert_eq!(report.outcome, Outcome::Ok, "{:?}", report.message);
        let lines = rig.lines();
        let new = lines[before..].iter().map(|line| {
            let data: Value = serde_json::from_str(line.data.get()).unwrap();
            data["rev"].as_u64().unwrap()
        });
        new.collect::<Vec<u64>>()
    };
    assert_eq!(
        poll(&[1, 2]).await,
        [1, 2],
        "the last version of a walk wins"
    );
    for _ in 0..3 {
        assert_eq!(
            poll(&[1, 2]).await,
            [] as [u64; 0],
            "the same walk is no news"
        );
    }
    assert_eq!(poll(&[1]).await, [1], "the old version alone is a change");
    assert_eq!(poll(&[2]).await, [2], "and so is the new one after it");
    assert_eq!(poll(&[3, 4]).await, [3, 4]);
}

#[tokio::test]
async fn a_version_that_waits_for_the_end_of_its_walk_survives_a_crash() {
    let version = |n: u32| format!(r#"{{"id":7,"at":"2031-03-04T10:00:00Z","rev":{n}}}"#);
    let other = r#"{"id":8,"at":"2031-03-04T09:59:00Z"}"#;
    let script = Script::new([
        body(&version(1), r#""next":"t2""#),
        body(&version(2), ""),
        // The old one first, and then the host dies before the next page has come.
        body(&version(1), r#""next":"t2""#),
        Reply::status(500, ""),
        body(other, ""),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    rig.settle().await;
    rig.clock.advance(60_000);
    assert_eq!(rig.poll("shop/orders").await.outcome, Outcome::Failed);
    let rig = rig.crash().await;
    rig.clock.advance(60_000);
    rig.settle().await;
    assert_eq!(rig.delivered(), ["7@1", "7@2", "8@1", "7@3"]);
}

#[tokio::test]
async fn after_a_reset_a_unit_walks_from_its_start_and_delivers_nothing_twice() {
    let script = Script::by(|asked| {
        let since = support::shop::param(asked, "since");
        let all = [("1", "07:00:00"), ("2", "09:59:00")];
        let from = usize::from(since.is_some());
        page(&all[from..], "").header("etag", "\"e\"")
    });
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    rig.poll("shop/orders").await;
    let asked = script.asked().len();
    reset(&rig, false).await;
    let unit = rig.unit("shop/orders");
    assert_eq!((unit.state.watermark, unit.state.synced), (None, false));
    rig.clock.advance(60_000);
    rig.settle().await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok);
    let first = &script.asked()[asked];
    assert_eq!(support::shop::param(first, "since"), None, "from the start");
    assert_eq!(
        first.header("if-none-match"),
        None,
        "a 304 would hide what is to be read"
    );
    assert_eq!(rig.delivered(), ["1@1", "2@1"]);

    reset(&rig, true).await;
    rig.clock.advance(60_000);
    rig.settle().await;
    rig.poll("shop/orders").await;
    assert_eq!(
        rig.delivered(),
        ["1@1", "2@1", "1@2", "2@2"],
        "no key comes twice"
    );
    let ops: Vec<String> = rig
        .lines()
        .iter()
        .map(|line| format!("{:?}", line.op))
        .collect();
    assert!(
        ops.iter().all(|op| op.to_lowercase().contains("insert")),
        "{ops:?}"
    );
}

#[tokio::test]
async fn only_a_yes_resets_and_the_plan_changes_nothing() {
    let script = Script::by(|_| page(&[("1", "09:00:00")], ""));
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    let before = rig.unit("shop/orders").state;
    let request = Request::Reset {
        unit: "shop".into(),
        records: true,
        plan: true,
    };
    let (exit, plan) = ask(&rig, request).await;
    assert_eq!(
        (exit, &plan["done"], &plan["units"][0]["known"]),
        (0, &false.into(), &1.into())
    );
    assert_eq!(rig.unit("shop/orders").state, before);
}
