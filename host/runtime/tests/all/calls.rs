//! Connectors that keep the rules.

use serde_json::json;
use weir_runtime::contract::{Class, CursorKind, Data, Header, Method, Scope, Target};

use crate::guest::{self, Guest};
use crate::{load, response, task};

#[test]
fn every_function_answers() {
    let connector = load(&Guest::good().answer("partitions", json!({ "ok": ["a", "b"] })));
    assert_eq!(connector.name(), "acme");
    assert_eq!(connector.contract_version(), "0.1.0");
    let described = connector.descriptor();
    assert_eq!(described.origins[0].url, "https://api.example.test");
    assert_eq!(described.streams[0].cursor, CursorKind::Timestamp);
    assert_eq!(described.pacing.concurrency, Some(2));
    assert_eq!(&connector.describe_for("{}").unwrap().unwrap(), described);

    let partitions = connector.partitions("orders", "{}").unwrap().unwrap();
    assert_eq!(partitions, ["a", "b"]);

    let request = connector.build_request(&task(), None).unwrap().unwrap();
    assert_eq!(request.method, Method::Get);
    assert_eq!(request.target, Target::Path("/orders".into()));
    assert_eq!(request.query, [("limit".to_owned(), "100".to_owned())]);
    assert_eq!(
        request.headers,
        [Header {
            name: "accept".into(),
            value: "application/json".into()
        }]
    );

    let page = connector
        .read_response(&task(), None, &response("[]"))
        .unwrap()
        .unwrap();
    assert!(page.records.is_empty() && page.next.is_empty() && page.cursor.is_none());
}

#[test]
fn records_are_slices_of_the_answer_or_text_of_their_own() {
    let answer = response(r#"[{"id":1,"name":"Größe"},{"id":2}]"#);
    let connector = load(&Guest::good().answer(
        "read-response",
        json!({ "ok": {
            "records": [
                guest::record("1", json!({ "slice": { "start": 1, "len": 25 } })),
                guest::record("2", json!({ "text": r#"{"id":2,"made":true}"# })),
            ],
            "next": [r#"{"page":2}"#],
            "cursor": r#"{"at":2}"#,
            "truncated": true,
            "total": 7,
            "poll-after": 60000,
        }}),
    ));
    let page = connector
        .read_response(&task(), Some("{}"), &answer)
        .unwrap()
        .unwrap();
    assert_eq!(
        page.records[0].json(&answer),
        Some(r#"{"id":1,"name":"Größe"}"#)
    );
    assert_eq!(
        page.records[1].json(&answer),
        Some(r#"{"id":2,"made":true}"#)
    );
    assert!(matches!(page.records[1].data, Data::Text(_)));
    assert_eq!(page.next, [r#"{"page":2}"#]);
    assert_eq!(page.cursor.as_deref(), Some(r#"{"at":2}"#));
    assert!(page.truncated);
    assert_eq!((page.total, page.poll_after), (Some(7), Some(60_000)));
}

#[test]
fn a_connectors_own_fault_is_a_value() {
    let connector = load(&Guest::good().answer(
        "read-response",
        json!({ "err": guest::fault("the vendor is down") }),
    ));
    let fault = connector
        .read_response(&task(), None, &response(""))
        .unwrap()
        .unwrap_err();
    assert_eq!(
        (fault.class, fault.scope),
        (Class::Temporary, Scope::Connection)
    );
    assert_eq!((fault.code.as_str(), fault.wait), ("503", Some(1500)));
    let fault = weir_rules::model::Fault::from(fault);
    assert_eq!(fault.message, "the vendor is down");
}

#[test]
fn nothing_stays_from_one_call_to_the_next() {
    // Traps when it is called for the second time in one instance.
    let connector = load(
        &Guest::good()
            .module("(global $calls (mut i32) (i32.const 0))")
            .body(
                "partitions",
                "(if (global.get $calls) (then unreachable))
                 (global.set $calls (i32.const 1))
                 (i32.const 16)",
            ),
    );
    for _ in 0..10 {
        connector.partitions("orders", "{}").unwrap().unwrap();
    }
    assert_eq!(connector.stats().calls, 11);
    assert_eq!(connector.stats().failed, 0);
}

#[test]
fn case_155_after_a_trap_the_next_call_works() {
    // Traps if the configuration is one byte long.
    let connector = load(&Guest::good().body(
        "partitions",
        "(if (i32.eq (local.get 3) (i32.const 1)) (then unreachable))
         (i32.const 16)",
    ));
    let error = connector.partitions("orders", "1").unwrap_err();
    assert_eq!(error.blame(), weir_runtime::Blame::Connector);
    let text = error.to_string();
    assert!(
        text.starts_with("connector acme: partitions: it crashed: "),
        "{text}"
    );
    assert!(text.contains("unreachable"), "{text}");
    for _ in 0..9 {
        connector.partitions("orders", "{}").unwrap().unwrap();
    }
    assert_eq!(connector.stats().failed, 1);
}
