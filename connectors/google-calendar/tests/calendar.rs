//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use google_calendar::GoogleCalendar;
use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, Fault, Response, Scope, Target};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const CONFIG: &str = r#"{"calendars":["primary","team@acme.example.test"]}"#;
const TOKEN: &str = r#"{"token":"CPDAlvWDx70CEPDAlvWDx70CGAU="}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll() -> Poll {
    Poll::new("events", CONFIG, NOW)
        .partition("team@acme.example.test")
        .page_size(2500)
}

fn fault(status: u16, body: &str) -> Fault {
    poll()
        .read::<GoogleCalendar>(None, Response::new(status, body))
        .unwrap_err()
}

fn reasons(reason: &str, message: &str) -> String {
    format!(
        r#"{{"error":{{"errors":[{{"domain":"usageLimits","reason":"{reason}","message":"{message}"}}],"code":403,"message":"{message}"}}}}"#
    )
}

#[test]
fn a_first_walk_lists_all_and_keeps_the_last_pages_token() {
    let walk = poll()
        .since(NOW - 1000)
        .walk::<GoogleCalendar>(|request| {
            assert!(
                matches!(&request.target, Target::Path(path) if path == "/calendars/team%40acme.example.test/events")
            );
            for never in ["timeMin", "updatedMin", "orderBy", "q", "syncToken"] {
                assert_eq!(request.param(never), None);
            }
            assert_eq!(request.param("showDeleted"), Some("true"));
            match request.param("pageToken") {
                None => Response::new(200, fixture!("events_1")),
                Some("CkoKPDk5") => Response::new(200, fixture!("events_2")),
                other => panic!("page {other:?}"),
            }
        })
        .unwrap();
    assert_eq!(
        walk.ids(),
        ["7abc001", "7abc002_20310306T080000Z", "7abc003"]
    );
    let deleted: Vec<bool> = walk
        .records
        .iter()
        .map(|(record, _)| record.deleted)
        .collect();
    assert_eq!(deleted, [false, true, false]);
    assert_eq!(walk.cursor.as_deref(), Some(TOKEN));
}

#[test]
fn the_next_poll_sends_the_token_on_every_page() {
    let poll = poll().cursor(TOKEN);
    let first = poll.request::<GoogleCalendar>(None).unwrap();
    assert_eq!(
        first.param("syncToken"),
        Some("CPDAlvWDx70CEPDAlvWDx70CGAU=")
    );
    let page = poll
        .read::<GoogleCalendar>(None, Response::new(200, fixture!("events_1")))
        .unwrap();
    assert_eq!(page.cursor, None);
    let second = poll.request::<GoogleCalendar>(Some(&page.next[0])).unwrap();
    assert_eq!(second.param("syncToken"), first.param("syncToken"));
    assert_eq!(second.param("pageToken"), Some("CkoKPDk5"));
}

#[test]
fn a_last_page_without_a_token_is_no_answer() {
    let fault = fault(200, r#"{"kind":"calendar#events","items":[]}"#);
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (Class::Incomplete, "sync-token")
    );
}

#[test]
fn a_token_that_is_no_longer_known_is_a_lost_position() {
    for (status, reason) in [
        (410, "fullSyncRequired"),
        (410, "updatedMinTooLongAgo"),
        (400, "fullSyncRequired"),
    ] {
        let found = fault(status, &reasons(reason, "Sync token is no longer valid."));
        assert_eq!(found.class, Class::PositionLost, "{status} {reason}");
    }
}

#[test]
fn limits_come_as_403_and_say_in_words_how_long() {
    let user = fault(
        403,
        &reasons(
            "userRateLimitExceeded",
            "User-rate limit exceeded.  Retry after 2031-03-04T10:05:00.500Z",
        ),
    );
    assert_eq!(
        (user.class, user.scope, user.wait),
        (Class::RateLimited, Scope::Credential, Some(300_500))
    );
    let plain = fault(403, &reasons("rateLimitExceeded", "Rate Limit Exceeded"));
    assert_eq!((plain.class, plain.wait), (Class::RateLimited, None));
    // The day ends at midnight in California, which is 08:00 UTC in winter: in 22 hours.
    let day = fault(403, &reasons("dailyLimitExceeded", "Daily Limit Exceeded"));
    assert_eq!(
        (day.class, day.wait),
        (Class::RateLimited, Some(22 * 3_600_000))
    );
    let exhausted = fault(
        429,
        r#"{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}"#,
    );
    assert_eq!(exhausted.class, Class::RateLimited);
    let wrapped = fault(
        403,
        &format!("[{}]", reasons("rateLimitExceeded", "slow down")),
    );
    assert_eq!(wrapped.class, Class::RateLimited);
}

#[test]
fn refusals_are_told_apart() {
    for (status, body, class) in [
        (
            401,
            reasons("authError", "Invalid Credentials"),
            Class::AuthExpired,
        ),
        (
            403,
            reasons("insufficientPermissions", "Insufficient Permission"),
            Class::Permanent,
        ),
        (
            403,
            reasons("accessNotConfigured", "not enabled"),
            Class::Permanent,
        ),
        (
            400,
            reasons("syncTokenWithRequestRestrictions", "no"),
            Class::Permanent,
        ),
        (404, reasons("notFound", "Not Found"), Class::Permanent),
        (
            500,
            reasons("backendError", "Backend Error"),
            Class::Temporary,
        ),
        (503, String::new(), Class::Temporary),
    ] {
        assert_eq!(fault(status, &body).class, class, "{status} {body}");
    }
}

#[test]
fn what_is_no_listing_is_a_fault() {
    for body in [
        "",
        "<html>",
        r#"{"items":[{"id":"7a"#,
        r#"{"kind":"x"}"#,
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
fn calendars_are_partitions_of_events_alone() {
    let config = serde_json::from_str(CONFIG).unwrap();
    assert_eq!(
        GoogleCalendar::partitions(&config, "events").unwrap().len(),
        2
    );
    assert!(
        GoogleCalendar::partitions(&config, "calendars")
            .unwrap()
            .is_empty()
    );
    let none = serde_json::from_str("{}").unwrap();
    assert_eq!(
        GoogleCalendar::partitions(&none, "events").unwrap(),
        ["primary"]
    );
}
