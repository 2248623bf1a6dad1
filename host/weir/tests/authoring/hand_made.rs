//! What `weir test` finds in connectors that break a rule.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use weir::authoring::build::runtime_in;
use weir::authoring::test::{Report, Verdict, run};

use crate::guest::{self, Guest};

const NOW: &str = "2031-03-04T10:00:00Z";

/// Tests a guest with walks of these answers, after what it gives was accepted.
fn tested(guest: &Guest, walks: &[Value]) -> Report {
    let dir = walks_in(walks);
    let connector = runtime_in(None)
        .unwrap()
        .load("guest.wasm".as_ref(), &guest.build())
        .unwrap();
    run(&connector, dir.path(), true).unwrap();
    run(&connector, dir.path(), false).unwrap()
}

fn walks_in(walks: &[Value]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("walks")).unwrap();
    for (number, walk) in walks.iter().enumerate() {
        let path = dir.path().join(format!("walks/{number}.json"));
        fs::write(path, walk.to_string()).unwrap();
    }
    dir
}

fn walk(answers: &[Value]) -> Value {
    let exchanges: Vec<Value> = answers
        .iter()
        .map(|answer| json!({ "response": { "json": answer } }))
        .collect();
    json!({ "stream": "orders", "now": NOW, "exchanges": exchanges })
}

/// What is said of this walk or rule.
fn said<'r>(report: &'r Report, what: &str) -> (Verdict, &'r [String]) {
    let outcome = report.results.iter().find(|outcome| outcome.what == what);
    let outcome = outcome.unwrap_or_else(|| panic!("nothing of {what}: {}", report.text()));
    (outcome.verdict, &outcome.detail)
}

fn fails(report: &Report, what: &str, with: &str) {
    let (verdict, detail) = said(report, what);
    assert_eq!(verdict, Verdict::Failed, "{}", report.text());
    assert!(
        detail.iter().any(|line| line.contains(with)),
        "{}",
        report.text()
    );
}

fn page(records: &[Value], next: &[&str]) -> Value {
    json!({ "ok": { "records": records, "next": next, "truncated": false } })
}

fn record(id: &str, data: &Value) -> Value {
    guest::record(id, json!({ "text": data.to_string() }))
}

#[test]
fn a_connector_that_takes_anything_for_a_page_is_found() {
    let report = tested(&Guest::good(), &[walk(&[json!({ "orders": [] })])]);
    assert_eq!(said(&report, "walk 0").0, Verdict::Ok, "{}", report.text());
    fails(
        &report,
        "hostile answers",
        "a web page with 503: it was taken for a page",
    );
    fails(&report, "hostile answers", "an answer that is cut off");
}

#[test]
fn a_connector_that_crashes_is_found() {
    let guest = Guest::good().body("read-response", "unreachable");
    let report = tested(&guest, &[walk(&[json!([])])]);
    fails(&report, "walk 0", "it crashed");
}

#[test]
fn a_walk_that_goes_round_in_a_circle_is_found() {
    let guest = Guest::good().answer("read-response", page(&[], &["1"]));
    let report = tested(&guest, &[walk(&[json!([]), json!([]), json!([])])]);
    fails(&report, "walk 0", "takes step 1 a second time");
    let report = tested(&guest, &[walk(&[json!([])])]);
    fails(
        &report,
        "walk 0",
        "the walk does not end: the connector goes on with step 1",
    );
}

#[test]
fn a_recorded_answer_that_nobody_asks_for_is_found() {
    let report = tested(&Guest::good(), &[walk(&[json!([]), json!([])])]);
    fails(&report, "walk 0", "the walk ended after 1 of 2 exchanges");
}

#[test]
fn ids_that_are_not_those_of_the_key_are_found() {
    let records = [
        record("a", &json!({ "id": 1 })),
        record("a", &json!({ "id": 2 })),
    ];
    let guest = Guest::good().answer("read-response", page(&records, &[]));
    let report = tested(&guest, &[walk(&[json!([])])]);
    fails(
        &report,
        "ids",
        "two different records of one page have the id \"a\"",
    );
    let guest = Guest::good().answer("read-response", page(&[record("a", &json!({}))], &[]));
    fails(&tested(&guest, &[walk(&[json!([])])]), "ids", "has no /id");
}

#[test]
fn a_stream_that_no_walk_reads_and_a_connector_without_walks_are_found() {
    let missing = json!({ "stream": "orders", "now": NOW, "exchanges": [] });
    let report = tested(&Guest::good(), &[missing]);
    fails(&report, "streams", "stream orders is declared");
    fails(&tested(&Guest::good(), &[]), "walks", "weir record");
}

#[test]
fn a_wrong_walk_says_what_is_wrong_with_it() {
    let unknown = json!({ "stream": "order", "now": NOW, "exchanges": [] });
    fails(&tested(&Guest::good(), &[unknown]), "walk 0", "orders");
    let report = tested(&Guest::good(), &[json!({ "stream": "orders" })]);
    fails(&report, "walk 0", "0.json");
}

#[test]
fn what_is_not_accepted_yet_or_differs_is_shown_as_a_difference() {
    let connector = runtime_in(None)
        .unwrap()
        .load("guest.wasm".as_ref(), &Guest::good().build())
        .unwrap();
    let dir = walks_in(&[walk(&[json!([])])]);
    let report = run(&connector, dir.path(), false).unwrap();
    fails(&report, "walk 0", "not been accepted yet");
    fails(&report, "walk 0", "+    \"method\": \"GET\"");
    let accepted = run(&connector, dir.path(), true).unwrap();
    assert_eq!(said(&accepted, "walk 0").0, Verdict::Accepted);
    let path = dir.path().join("walks/0.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"method\": \"GET\""), "{text}");
    fs::write(&path, text.replace("GET", "POST")).unwrap();
    let report = run(&connector, dir.path(), false).unwrap();
    fails(&report, "walk 0", "exchange 1 differs");
    let (_, detail) = said(&report, "walk 0");
    assert!(
        detail
            .iter()
            .any(|line| line.starts_with('-') && line.contains("POST"))
    );
    assert!(
        detail
            .iter()
            .any(|line| line.starts_with('+') && line.contains("GET"))
    );
}
