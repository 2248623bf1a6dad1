//! Results of the right type that break a rule: refused whole, with words for the author.

use serde_json::{Value, json};
use weir_runtime::contract::{Body, Response};
use weir_runtime::limits::{CURSOR, HEADERS, PARTITIONS, RECORD, RECORD_ID, RECORDS, STEPS};
use weir_runtime::{CallErrorKind, Connector};

use crate::guest::{self, Guest};
use crate::{load, response, task};

fn invalid<T: std::fmt::Debug, F: std::fmt::Debug>(
    outcome: Result<Result<T, F>, weir_runtime::CallError>,
) -> String {
    match outcome.expect_err("the result is refused").kind {
        CallErrorKind::Invalid(why) => why,
        other => panic!("{other}"),
    }
}

fn connector(function: &str, result: Value) -> std::sync::Arc<Connector> {
    load(&Guest::good().answer(function, json!({ "ok": result })))
}

fn invalid_page(page: Value) -> String {
    let answer = response("[\"Größe\"]");
    invalid(connector("read-response", page).read_response(&task(), None, &answer))
}

fn page_of(data: Value) -> Value {
    let mut page = guest::page();
    page["records"] = json!([guest::record("7", data)]);
    page
}

fn invalid_request(change: impl Fn(&mut Value)) -> String {
    let mut request = guest::request();
    change(&mut request);
    invalid(connector("build-request", request).build_request(&task(), None))
}

#[test]
fn slices_must_lie_within_the_answer() {
    // `["Größe"]` has 11 bytes; ö is bytes 4 and 5, ß 6 and 7.
    for (start, len) in [
        (0, 12),
        (12, 0),
        (11, 1),
        (u32::MAX, 1),
        (1, u32::MAX),
        (5, 2),
        (2, 3),
    ] {
        let why = invalid_page(page_of(json!({ "slice": { "start": start, "len": len } })));
        assert!(why.contains("record 0 (\"7\")"), "{start}+{len}: {why}");
    }
    let bytes = Response {
        body: Body::Bytes(b"[1]".to_vec()),
        ..response("")
    };
    let slice = connector(
        "read-response",
        page_of(json!({ "slice": { "start": 0, "len": 1 } })),
    );
    assert!(invalid(slice.read_response(&task(), None, &bytes)).contains("not text"));
}

#[test]
fn a_page_holds_so_many_records_and_no_more() {
    let mut page = guest::page();
    page["records"] = vec![guest::record("1", json!({ "text": "1" })); RECORDS + 1].into();
    assert!(invalid_page(page).contains(&format!("{} records", RECORDS + 1)));
}

#[test]
fn what_a_vendor_can_send_is_no_fault_of_the_connector() {
    let large = format!("\"{}\"", "x".repeat(RECORD));
    let mut page = guest::page();
    page["records"] = json!([
        guest::record("", json!({ "text": "{}" })),
        guest::record(&"x".repeat(RECORD_ID + 1), json!({ "text": "{}" })),
        guest::record("1", json!({ "text": large })),
    ]);
    let read = connector("read-response", page).read_response(&task(), None, &response(""));
    assert_eq!(read.unwrap().unwrap().records.len(), 3);
}

#[test]
fn cursors_and_steps_are_short_json() {
    let with = |key: &str, value: Value| {
        let mut page = guest::page();
        page[key] = value;
        invalid_page(page)
    };
    let large = format!("\"{}\"", "x".repeat(CURSOR));
    assert!(with("cursor", json!(large)).contains("the cursor"));
    assert!(with("cursor", json!("{")).contains("not JSON"));
    assert!(with("next", json!([large])).contains("a next step"));
    assert!(with("next", json!(["page 2"])).contains("not JSON"));
    assert!(with("next", vec![json!("1"); STEPS + 1].into()).contains("next steps"));
    let limit = json!({ "scope": "app", "quota-unit": "points", "restores": -5.0 });
    assert!(with("limits", json!([limit])).contains("-5"));
}

#[test]
fn requests_are_legal_http_of_modest_size() {
    let header = |name: &str, value: &str| {
        let header = json!({ "name": name, "value": value });
        invalid_request(move |request| request["headers"] = json!([header]))
    };
    assert!(header("", "x").contains("header name"));
    assert!(header("x y", "x").contains("header name"));
    assert!(header("x:", "x").contains("header name"));
    assert!(header("x", "a\r\nhost: evil.example").contains("header x"));
    assert!(header("x", "Größe").contains("header x"));
    assert!(header("x", &"y".repeat(17 << 10)).contains("headers"));
    let many = vec![json!({ "name": "x", "value": "y" }); HEADERS + 1];
    assert!(invalid_request(|request| request["headers"] = json!(many)).contains("65 headers"));
    assert!(invalid_request(|request| request["origin"] = json!("")).contains("origin"));
    assert!(
        invalid_request(|request| request["target"] = json!({ "path": "/a\nb" })).contains("path")
    );
    assert!(invalid_request(|request| request["target"] = json!({ "link": "" })).contains("link"));
    let long = json!([["q", "x".repeat(17 << 10)]]);
    assert!(invalid_request(|request| request["query"] = long.clone()).contains("query"));
    let body = json!({ "text": "x".repeat((1 << 20) + 1) });
    assert!(invalid_request(|request| request["body"] = body.clone()).contains("body"));
    assert!(
        invalid_request(|request| request["idempotency-header"] = json!("a b"))
            .contains("header name")
    );
}

#[test]
fn partitions_are_names() {
    let refuse = |names: Value| invalid(connector("partitions", names).partitions("orders", "{}"));
    assert!(refuse(json!([""])).contains("empty"));
    assert!(refuse(json!(["a", "a"])).contains("twice"));
    assert!(refuse(json!(["a\tb"])).contains("control characters"));
    let many: Vec<_> = (0..=PARTITIONS).map(|n| n.to_string()).collect();
    assert!(refuse(json!(many)).contains("10001 partitions"));
}

#[test]
fn with_a_configuration_there_must_be_streams() {
    let mut descriptor = guest::descriptor();
    descriptor["streams"] = json!([]);
    let connector = connector("describe", descriptor);
    assert!(invalid(connector.describe_for("{}")).contains("no stream"));
}
