//! A webhook sink of the real binary: what it sends, what it does about answers, and what a person is told.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use run_support::vendor::{Act, Asked, Vendor, answer, json, orders, silence};
use run_support::*;

/// A sink that tries again soon.
fn hook(receiver: &Vendor, more: &str) -> String {
    format!(
        "\n[sink.hook]\ntype = \"webhook\"\nurl = \"{}/records\"\nbackoff = {{ base = \"100ms\", cap = \"1s\" }}\ntries = 4\n{more}",
        receiver.origin()
    )
}

fn ids(asked: &Asked) -> Vec<String> {
    let lines = lines(&asked.body);
    lines.into_iter().map(|line| line.id).collect()
}

fn status(code: u16) -> Act {
    answer(code, &[], "")
}

/// Takes everything, and what it has taken.
fn taker() -> (Vendor, Arc<Mutex<Vec<String>>>) {
    let taken: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = taken.clone();
    let receiver = Vendor::new(move |asked| {
        log.lock().unwrap().extend(ids(asked));
        status(204)
    });
    (receiver, taken)
}

fn numbers(range: std::ops::RangeInclusive<usize>) -> Vec<String> {
    range.map(|id| id.to_string()).collect()
}

#[test]
fn a_sync_delivers_under_a_key_and_with_the_credential() {
    let vendor = Vendor::new(|_| json(orders(5)));
    let (receiver, taken) = taker();
    let place = Place::new(&format!(
        "{}{}",
        connection("acme", &vendor.origin(), ""),
        hook(
            &receiver,
            "auth = { bearer = { env = \"HOOK_TOKEN\" } }\nbatch = { records = 3 }"
        )
    ))
    .env("HOOK_TOKEN", "h00k-t0ken-5");
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(*taken.lock().unwrap(), numbers(1..=5));
    let asked = receiver.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].target, "/records");
    for asked in &asked {
        assert_eq!(asked.header("authorization"), Some("Bearer h00k-t0ken-5"));
        assert_eq!(asked.header("content-type"), Some("application/x-ndjson"));
    }
    let key = |at: usize| asked[at].header("idempotency-key").unwrap();
    assert_eq!(key(0).len(), 36);
    assert_ne!(key(0), key(1));
    // A second sync has nothing to send.
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(receiver.asked().len(), 2);
}

#[test]
fn after_a_kill_in_the_middle_of_a_request_the_same_batch_goes_under_the_same_key() {
    let vendor = Vendor::new(|_| json(orders(5)));
    let receiver = Vendor::new(|_| silence());
    let place = Place::new(&format!(
        "{}{}",
        connection("acme", &vendor.origin(), ""),
        hook(&receiver, "")
    ));
    let running = place.start(&["run"]);
    let first = until("a request", || receiver.asked().into_iter().next());
    running.kill();
    // More has come when it starts again.
    vendor.script(|_| json(orders(9)));
    let taken: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = taken.clone();
    receiver.script(move |asked| {
        log.lock().unwrap().extend(ids(asked));
        status(200)
    });
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 0, "{report}");
    let again = &receiver.asked()[1];
    assert_eq!(
        again.header("idempotency-key"),
        first.header("idempotency-key")
    );
    assert_eq!(again.body, first.body);
    assert_eq!(*taken.lock().unwrap(), numbers(1..=9));
}

#[test]
fn case_149_one_refused_record_holds_up_no_other_and_ends_with_a_person() {
    let vendor = Vendor::new(|_| json(orders(10)));
    let tries: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let taken: Arc<Mutex<Vec<String>>> = Arc::default();
    let (times, log) = (tries.clone(), taken.clone());
    let receiver = Vendor::new(move |asked| {
        let ids = ids(asked);
        if ids == ["5"] {
            times.lock().unwrap().push(Instant::now());
        }
        if ids.iter().any(|id| id == "5") {
            return answer(400, &[], "no such field: text");
        }
        log.lock().unwrap().extend(ids);
        status(200)
    });
    let place = Place::new(&format!(
        "{}{}",
        connection("acme", &vendor.origin(), ""),
        hook(&receiver, "")
    ));
    let mut running = place.start(&["run"]);
    running.until_said("it is a dead letter");
    let told = until("the record is set aside", || {
        let (status, exit) = place.json(&["status"]);
        (status["dead_letters"] == 1).then_some((status, exit))
    });
    assert_eq!(told.1, 3, "it needs a person: {}", told.0);
    assert_eq!(told.0["sinks"][0]["dead"], 1);
    let mut all = taken.lock().unwrap().clone();
    all.sort_by_key(|id| id.parse::<usize>().unwrap());
    assert_eq!(all, [numbers(1..=4), numbers(6..=10)].concat());
    let tries = tries.lock().unwrap().clone();
    assert_eq!(tries.len(), 4, "as often as configured");
    let gaps: Vec<_> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.is_sorted(), "a growing schedule: {gaps:?}");
    let text = place.ask(&["status"]);
    assert!(
        text.out.contains("1 record that a sink refused for good"),
        "{text:?}"
    );
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.json(&["status"]).1, 3, "without a host too");
}

#[test]
fn a_sink_that_knows_us_no_more_says_so_and_goes_on_when_a_person_says() {
    let vendor = Vendor::new(|_| json(orders(6)));
    let receiver = Vendor::new(|_| answer(401, &[], "unknown token h00k-t0ken-5"));
    let place = Place::new(&format!(
        "{}{}",
        connection("acme", &vendor.origin(), ""),
        hook(&receiver, "auth = { bearer = { env = \"HOOK_TOKEN\" } }")
    ))
    .env("HOOK_TOKEN", "h00k-t0ken-5");
    let mut running = place.start(&["run"]);
    running.until_said("nothing is delivered until");
    let told = until("the status says so", || {
        let text = place.ask(&["status"]);
        text.out.contains("it needs you").then_some(text)
    });
    assert_eq!(told.code(), 3);
    assert!(
        told.out.contains("HTTP 401: unknown token [secret]"),
        "{told:?}"
    );
    let calls = vendor.count("/acme");
    until("polling goes on", || {
        (vendor.count("/acme") > calls).then_some(())
    });
    assert_eq!(receiver.asked().len(), 1, "it is left alone");
    let taken: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = taken.clone();
    receiver.script(move |asked| {
        log.lock().unwrap().extend(ids(asked));
        status(200)
    });
    let resumed = place.ask(&["resume", "sink.hook"]);
    assert_eq!(resumed.code(), 0, "{resumed:?}");
    assert!(resumed.out.contains("tried again now"), "{resumed:?}");
    until("everything is delivered", || {
        (taken.lock().unwrap().len() == 6).then_some(())
    });
    let ended = running.stop();
    assert_eq!(ended.code(), 0);
    assert!(!ended.err.contains("h00k-t0ken-5"), "{ended:?}");
    assert_ne!(place.ask(&["resume", "sink.none"]).code(), 0);
}

#[test]
fn a_wait_is_kept_to_over_a_restart() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let receiver = Vendor::new(|_| answer(503, &[("retry-after", "3600")], ""));
    let place = Place::new(&format!(
        "{}{}",
        connection("acme", &vendor.origin(), ""),
        hook(&receiver, "")
    ));
    let mut running = place.start(&["run"]);
    running.until_said("nothing is delivered");
    running.kill();
    let mut running = place.start(&["run"]);
    running.until_said("it wants to be left alone");
    let (status, _) = place.json(&["status"]);
    let failing = &status["sinks"][0]["delivery"]["failing"];
    let wait = failing["next"].as_i64().unwrap() - status["now"].as_i64().unwrap();
    assert!((3_500_000..3_700_000).contains(&wait), "{status}");
    running.kill();
    assert_eq!(receiver.asked().len(), 1);
}
