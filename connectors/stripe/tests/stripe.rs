//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use stripe::Stripe;
use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, CursorKind, Fault, Response, Scope, Target};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const CONFIG: &str = r#"{"account":"acct_Acme1","version":"2030-08-27.basil","event_types":["charge.succeeded","customer.*"]}"#;
const EMPTY: &str = r#"{"object":"list","url":"/v1/events","has_more":false,"data":[]}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll(stream: &str) -> Poll {
    Poll::new(stream, CONFIG, NOW).since(NOW - HOUR)
}

fn fault(response: Response) -> Fault {
    poll("events").read::<Stripe>(None, response).unwrap_err()
}

fn error(kind: &str, code: &str, more: &str) -> String {
    format!(
        r#"{{"error":{{"type":"{kind}","code":"{code}","message":"what the vendor says"{more}}}}}"#
    )
}

#[test]
fn events_are_walked_newest_first_by_the_last_id() {
    let walk = poll("events")
        .walk::<Stripe>(|request| {
            assert_eq!(request.param("created[gte]"), Some("1930381200"));
            assert_eq!(request.param("created[lte]"), Some("1930384800"));
            match request.param("starting_after") {
                None => Response::new(200, fixture!("events_1")),
                Some("evt_1Qx0000000000002") => Response::new(200, fixture!("events_2")),
                other => panic!("after {other:?}"),
            }
        })
        .unwrap();
    assert_eq!(
        walk.ids(),
        [
            "evt_1Qx0000000000003",
            "evt_1Qx0000000000002",
            "evt_1Qx0000000000001"
        ]
    );
    let types: Vec<_> = walk.requests[0]
        .query
        .iter()
        .filter(|(name, _)| name == "types[]")
        .map(|(_, kind)| kind.as_str())
        .collect();
    assert_eq!(types, ["charge.succeeded", "customer.*"]);
    let headers: Vec<_> = walk.requests[0]
        .headers
        .iter()
        .map(|header| (header.name.as_str(), header.value.as_str()))
        .collect();
    assert_eq!(
        headers,
        [
            ("stripe-account", "acct_Acme1"),
            ("stripe-version", "2030-08-27.basil")
        ]
    );
}

#[test]
fn events_older_than_the_vendor_keeps_are_a_gap_and_not_an_error() {
    let walk = poll("events")
        .since(NOW - 40 * DAY)
        .walk::<Stripe>(|request| {
            let oldest = ((NOW - 30 * DAY) / 1000).to_string();
            assert_eq!(request.param("created[gte]"), Some(oldest.as_str()));
            Response::new(200, EMPTY)
        })
        .unwrap();
    assert!(walk.truncated);
    let walk = poll("charges")
        .since(NOW - 40 * DAY)
        .walk::<Stripe>(|request| {
            let oldest = ((NOW - 40 * DAY) / 1000).to_string();
            assert_eq!(request.param("created[gte]"), Some(oldest.as_str()));
            Response::new(200, EMPTY)
        })
        .unwrap();
    assert!(!walk.truncated);
}

#[test]
fn every_stream_has_its_path() {
    let descriptor = Stripe::describe(None).unwrap();
    assert_eq!(descriptor.streams.len(), 13);
    for stream in &descriptor.streams {
        assert_eq!(stream.cursor, CursorKind::Timestamp);
        let request = poll(&stream.name).request::<Stripe>(None).unwrap();
        assert!(
            matches!(&request.target, Target::Path(path) if *path == format!("/{}", stream.name))
        );
        if stream.name != "events" {
            assert_eq!(request.param("types[]"), None);
        }
    }
}

#[test]
fn a_lock_is_no_spent_quota() {
    let lock = fault(
        Response::new(429, error("invalid_request_error", "lock_timeout", ""))
            .with_header("Stripe-Should-Retry", "true"),
    );
    assert_eq!((lock.class, lock.scope), (Class::Temporary, Scope::Unit));
    let spent = fault(Response::new(
        429,
        error("invalid_request_error", "rate_limit", ""),
    ));
    assert_eq!(
        (spent.class, spent.scope),
        (Class::RateLimited, Scope::Credential)
    );
}

#[test]
fn the_vendor_says_whether_to_try_again() {
    for (status, again, class) in [
        (400, "false", Class::Permanent),
        (402, "false", Class::Permanent),
        (409, "true", Class::Temporary),
        (424, "true", Class::Temporary),
        (500, "true", Class::Temporary),
        (500, "false", Class::Temporary),
    ] {
        let found = fault(
            Response::new(status, error("api_error", "some_code", ""))
                .with_header("Stripe-Should-Retry", again),
        );
        assert_eq!(found.class, class, "{status} {again}");
        assert_eq!(found.code, format!("{status}/some_code"));
    }
}

#[test]
fn lost_positions_and_lost_access_are_told_apart() {
    for (status, body, class) in [
        (
            400,
            r#"{"error":{"type":"invalid_request_error","message":"This event has aged out of our retention policy."}}"#.to_owned(),
            Class::PositionLost,
        ),
        (
            400,
            error("invalid_request_error", "resource_missing", r#","param":"starting_after""#),
            Class::PositionLost,
        ),
        (404, error("invalid_request_error", "resource_missing", ""), Class::Permanent),
        (401, error("invalid_request_error", "api_key_expired", ""), Class::AuthExpired),
        (403, error("invalid_request_error", "account_invalid", ""), Class::AuthRevoked),
        (403, error("invalid_request_error", "secret_key_required", ""), Class::Permanent),
    ] {
        assert_eq!(fault(Response::new(status, body.clone())).class, class, "{status} {body}");
    }
}

#[test]
fn what_is_no_listing_is_a_fault() {
    for body in [
        "",
        "<html>",
        r#"{"object":"list","data":[{"id":"evt"#,
        r#"{"object":"list"}"#,
        "null",
    ] {
        let fault = fault(Response::new(200, body));
        assert!(
            matches!(fault.class, Class::Incomplete | Class::Temporary),
            "{body}: {fault:?}"
        );
    }
}
