//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use slack::Slack;
use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, Fault, Response, Scope, Target};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const HOUR: i64 = 3_600_000;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn messages() -> Poll {
    Poll::new("messages", "{}", NOW)
        .partition("C0000000001")
        .since(NOW - HOUR + 5)
}

fn fault(status: u16, body: &str) -> Fault {
    messages()
        .read::<Slack>(None, Response::new(status, body))
        .unwrap_err()
}

fn error(code: &str) -> Fault {
    fault(200, &format!(r#"{{"ok":false,"error":"{code}"}}"#))
}

#[test]
fn channels_go_on_until_the_cursor_is_empty() {
    let walk = Poll::new(
        "channels",
        r#"{"types":["public_channel","private_channel"]}"#,
        NOW,
    )
    .walk::<Slack>(|request| {
        assert_eq!(
            request.param("types"),
            Some("public_channel,private_channel")
        );
        assert_eq!(request.param("exclude_archived"), Some("true"));
        match request.param("cursor") {
            None => Response::new(200, fixture!("channels_1")),
            Some("dGVhbTpDMDAwMDAwMDAwMg==") => Response::new(200, fixture!("channels_2")),
            other => panic!("cursor {other:?}"),
        }
    })
    .unwrap();
    assert_eq!(walk.ids(), ["C0000000001"]);
    assert_eq!(walk.records[0].0.updated_at, Some(1_930_380_000_123));
}

#[test]
fn messages_are_read_channel_by_channel_in_a_window() {
    let walk = messages()
        .walk::<Slack>(|request| {
            assert!(
                matches!(&request.target, Target::Path(path) if path == "/conversations.history")
            );
            for (name, value) in [
                ("channel", "C0000000001"),
                ("oldest", "1930381200.005"),
                ("latest", "1930384800.000"),
                ("inclusive", "true"),
            ] {
                assert_eq!(request.param(name), Some(value), "{name}");
            }
            assert_eq!(request.bucket.as_deref(), Some("conversations.history"));
            match request.param("cursor") {
                None => Response::new(200, fixture!("messages_1")),
                Some("bmV4dF90czoxOTMwMzg0NzEw") => Response::new(200, fixture!("messages_2")),
                other => panic!("cursor {other:?}"),
            }
        })
        .unwrap();
    // Stamps are ids: no digit of them may be lost.
    assert_eq!(
        walk.ids(),
        [
            "1930384711.000200",
            "1930384710.123456",
            "1930384000.000100"
        ]
    );
    assert_eq!(walk.records[1].0.updated_at, Some(1_930_384_710_123));
    let alone = Poll::new("messages", "{}", NOW).request::<Slack>(None);
    assert_eq!(alone.unwrap_err().class, Class::Permanent);
}

#[test]
fn a_user_who_left_is_deleted() {
    let walk = Poll::new("users", "{}", NOW)
        .walk::<Slack>(|_| {
            Response::new(
                200,
                r#"{"ok":true,"members":[{"id":"U1","name":"rowan","deleted":false,"updated":1930380000},{"id":"U2","name":"linn","deleted":true,"updated":1930381000}]}"#,
            )
        })
        .unwrap();
    let deleted: Vec<bool> = walk
        .records
        .iter()
        .map(|(record, _)| record.deleted)
        .collect();
    assert_eq!(deleted, [false, true]);
}

#[test]
fn errors_in_a_success_are_faults_by_their_word() {
    for (code, class, scope) in [
        ("ratelimited", Class::RateLimited, Scope::Credential),
        ("token_expired", Class::AuthExpired, Scope::Connection),
        ("invalid_auth", Class::AuthRevoked, Scope::Connection),
        ("token_revoked", Class::AuthRevoked, Scope::Connection),
        ("account_inactive", Class::AuthRevoked, Scope::Connection),
        ("missing_scope", Class::Permanent, Scope::Unit),
        ("not_in_channel", Class::Permanent, Scope::Unit),
        ("channel_not_found", Class::Permanent, Scope::Unit),
        ("invalid_cursor", Class::PositionLost, Scope::Unit),
        ("internal_error", Class::Temporary, Scope::Unit),
        ("fatal_error", Class::Temporary, Scope::Unit),
        ("something_new", Class::Unknown, Scope::Unit),
    ] {
        let found = error(code);
        assert_eq!(
            (found.class, found.scope, found.code.as_str()),
            (class, scope, code)
        );
    }
    let scope = fault(
        200,
        r#"{"ok":false,"error":"missing_scope","needed":"channels:history","provided":"users:read"}"#,
    );
    assert!(
        scope.message.ends_with("channels:history"),
        "{}",
        scope.message
    );
}

#[test]
fn statuses_count_too() {
    for (status, class) in [
        (429, Class::RateLimited),
        (500, Class::Temporary),
        (503, Class::Temporary),
    ] {
        assert_eq!(fault(status, "").class, class);
    }
}

#[test]
fn what_is_no_listing_is_a_fault() {
    for body in [
        "",
        "<html>",
        r#"{"ok":true,"messages":[{"ts":"1"#,
        r#"{"messages":[]}"#,
        r#"{"ok":true}"#,
        "null",
    ] {
        let fault = fault(200, body);
        assert!(
            matches!(fault.class, Class::Incomplete | Class::Temporary),
            "{body}: {fault:?}"
        );
    }
}

#[test]
fn messages_lie_below_channels() {
    let descriptor = Slack::describe(None).unwrap();
    let messages = descriptor
        .streams
        .iter()
        .find(|stream| stream.name == "messages");
    assert_eq!(messages.unwrap().parent.as_deref(), Some("channels"));
}
