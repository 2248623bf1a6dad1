//! Connectors that mean harm, in a whole host: whatever they do costs their own connection, and says whose fault it is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what fails here fails a test"
)]

mod support;

#[allow(dead_code, reason = "the runtime's own tests use all of it")]
#[path = "../../host/runtime/tests/all/guest.rs"]
mod guest;

use std::sync::Arc;

use guest::Guest;
use serde_json::{Value, json};
use support::script::{Reply, Script};
use support::shop::{S, USUAL, named};
use support::{Rig, connectors};
use weir::poll::Outcome;
use weir::status::Snapshot;

/// Connection `bad` of this connector beside a good one.
async fn beside(guest: Guest) -> (Rig, Arc<Script>) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(connectors().join("rest.wasm"), dir.path().join("rest.wasm")).unwrap();
    std::fs::write(dir.path().join("acme.wasm"), guest.build()).unwrap();
    let config = format!(
        "[connection.bad]\nconnector = \"acme\"\n[connection.bad.streams.orders]\n{USUAL}\n{}",
        named("good", "", USUAL)
    );
    let script =
        Script::by(|_| Reply::ok(r#"{"orders":[{"id":"x","at":"2031-03-04T09:00:00Z"}]}"#));
    let rig = Rig::of(dir.path(), &config, script.clone()).await;
    script.on(&rig.clock);
    (rig, script)
}

/// It is polled until its connection is parked, with this reason; the other one is well all the while. What `weir status`
/// says then.
async fn parked(rig: &Rig, why: &str) -> Snapshot {
    for attempt in 1.. {
        let report = rig.poll("bad/orders").await;
        let message = report.message.clone().unwrap_or_default();
        assert!(message.contains(why), "{message}");
        assert!(message.contains("connector acme"), "blame: {message}");
        assert!(rig.poll("good/orders").await.outcome.is_good());
        if report.outcome == Outcome::Parked {
            break;
        }
        assert!(attempt < 6, "tried for ever: {report:?}");
        rig.clock.advance(60 * S);
    }
    let view = Snapshot::of(&rig.host, true, &mut |_, _, _, _| {}).unwrap();
    let need = view
        .needs
        .iter()
        .find(|need| need.text.contains("bad/orders"));
    let need = need.unwrap_or_else(|| panic!("{:?}", view.needs));
    assert!(need.text.contains(why), "{need:?}");
    view
}

/// A page of these values, in the contract's own words.
fn page(more: Value) -> Value {
    let mut page = guest::page();
    for (key, value) in more.as_object().unwrap() {
        page[key] = value.clone();
    }
    json!({ "ok": page })
}

#[tokio::test]
async fn a_step_that_is_too_long_is_its_fault() {
    let long = format!("\"{}\"", "x".repeat(70_000));
    let guest = Guest::good()
        .pages(8)
        .answer("read-response", page(json!({ "next": [long] })));
    let (rig, _) = beside(guest).await;
    parked(&rig, "invalid result").await;
}

#[tokio::test]
async fn a_cursor_that_is_too_long_is_its_fault() {
    let long = format!("\"{}\"", "x".repeat(70_000));
    let guest = Guest::good()
        .pages(8)
        .answer("read-response", page(json!({ "cursor": long })));
    let (rig, _) = beside(guest).await;
    parked(&rig, "invalid result").await;
}

/// Lets the vendor's own text, a JSON string, be the next step.
const BODY_AS_STEP: &str = "
    (i32.store (i32.const 512) (i32.load offset=136 (local.get $args)))
    (i32.store (i32.const 516) (i32.load offset=140 (local.get $args)))
    (i32.store (i32.const 32) (i32.const 512))
    (i32.store (i32.const 36) (i32.const 1))
    (i32.const 16)";

#[tokio::test]
async fn a_step_that_grows_for_ever_ends_at_its_limit() {
    let guest = Guest::good().pages(8).body("read-response", BODY_AS_STEP);
    let (rig, script) = beside(guest).await;
    let grown = (1..=17).map(|n| Reply::ok(format!("\"{}\"", "x".repeat(n * 4_000))));
    script.then(grown);
    let report = rig.poll("bad/orders").await;
    let message = report.message.unwrap_or_default();
    assert!(
        message.contains("connector acme") && message.contains("step"),
        "{message}"
    );
    // 64 KiB are reached with the seventeenth.
    let asked = script.asked();
    let calls = asked
        .iter()
        .filter(|asked| asked.url.contains("api.example.test"))
        .count();
    assert!((16..=18).contains(&calls), "{calls} calls");
    assert!(rig.poll("good/orders").await.outcome.is_good());
}

/// Every way to ask for a place that was not declared; none of them makes a call.
#[tokio::test]
async fn a_request_to_another_place_is_its_fault_and_makes_no_call() {
    let targets = [
        json!({ "path": "//evil.test/x" }),
        json!({ "path": "https://evil.test/x" }),
        json!({ "path": "/../../admin" }),
        json!({ "path": "/a/%2e%2e/b" }),
        json!({ "link": "https://evil.test/x" }),
        json!({ "link": "https://api.example.test@evil.test/x" }),
        json!({ "link": "https://user:word@api.example.test/x" }),
        json!({ "link": "https://2130706433/x" }),
        json!({ "link": "https://0x7f.1/x" }),
        json!({ "link": "https://0177.0.0.1/x" }),
        json!({ "link": "https://[::ffff:127.0.0.1]/x" }),
        json!({ "link": "https://127.1/x" }),
        json!({ "link": "https://169.254.169.254/latest/meta-data" }),
        json!({ "link": "file:///etc/passwd" }),
    ];
    for target in targets {
        let mut request = guest::request();
        request["target"] = target.clone();
        let guest = Guest::good().answer("build-request", json!({ "ok": request }));
        let (rig, script) = beside(guest).await;
        let report = rig.poll("bad/orders").await;
        assert!(!report.outcome.is_good(), "{target}: {report:?}");
        assert_eq!(script.asked().len(), 0, "{target}: a call was made");
        let message = report.message.unwrap_or_default();
        assert!(message.contains("is refused"), "{target}: {message}");
        assert!(!message.contains("word"), "{message}");
        assert!(rig.poll("good/orders").await.outcome.is_good());
    }
}

#[tokio::test]
async fn an_undeclared_origin_is_its_fault_and_makes_no_call() {
    let mut request = guest::request();
    request["origin"] = json!("elsewhere");
    let (rig, script) =
        beside(Guest::good().answer("build-request", json!({ "ok": request }))).await;
    let report = rig.poll("bad/orders").await;
    assert!(!report.outcome.is_good(), "{report:?}");
    assert!(report.message.unwrap_or_default().contains("elsewhere"));
    assert_eq!(script.asked().len(), 0);
}

#[tokio::test]
async fn headers_that_smuggle_are_its_fault_or_left_out() {
    for (name, value) in [
        ("x-a", "b\r\nauthorization: stolen"),
        ("x\r\nhost", "evil.test"),
        ("x-a", "null\u{0}byte"),
        ("", "empty"),
        ("x a", "space"),
    ] {
        let mut request = guest::request();
        request["headers"] = json!([{ "name": name, "value": value }]);
        let (rig, script) =
            beside(Guest::good().answer("build-request", json!({ "ok": request }))).await;
        let report = rig.poll("bad/orders").await;
        assert!(!report.outcome.is_good(), "{name:?}: {report:?}");
        assert!(
            report
                .message
                .unwrap_or_default()
                .contains("connector acme")
        );
        assert_eq!(script.asked().len(), 0, "{name:?}");
    }
    for name in [
        "Host",
        "Content-Length",
        "Authorization",
        "Cookie",
        "Connection",
        "Transfer-Encoding",
        "TE",
        "Upgrade",
        "Proxy-Authorization",
    ] {
        let mut request = guest::request();
        request["headers"] = json!([{ "name": name, "value": "evil.test" }]);
        let (rig, script) =
            beside(Guest::good().answer("build-request", json!({ "ok": request }))).await;
        rig.poll("bad/orders").await;
        for asked in script.asked() {
            let sent = asked
                .headers
                .iter()
                .any(|(known, value)| known.eq_ignore_ascii_case(name) && value == "evil.test");
            assert!(!sent, "{name} went out");
        }
    }
}

/// While one connector floods the log in every call, the others are polled in time, and it is told how much was dropped.
#[tokio::test]
async fn a_log_flood_costs_nobody_else() {
    let flood = "(loop (call $log (i32.const 2) (i32.const 20000) (i32.const 40000))
                       (br 0)) (i32.const 0)";
    let (rig, _) = beside(Guest::good().with_log().body("read-response", flood)).await;
    parked(&rig, "out of time").await;
}
