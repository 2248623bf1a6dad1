//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use microsoft_graph::MicrosoftGraph;
use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, Fault, Request, Response, Target};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const CONFIG: &str = r#"{"folders":["inbox","archive"],"select":{"users":["displayName","mail"]}}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll() -> Poll {
    Poll::new("users", CONFIG, NOW)
}

fn target(request: &Request) -> String {
    match &request.target {
        Target::Path(path) => path.clone(),
        Target::Link(link) => link.rsplit('=').next().unwrap().to_owned(),
    }
}

fn fault(status: u16, code: &str) -> Fault {
    let body = format!(r#"{{"error":{{"code":"{code}","message":"what the vendor says"}}}}"#);
    poll()
        .read::<MicrosoftGraph>(None, Response::new(status, body))
        .unwrap_err()
}

#[test]
fn empty_pages_are_passed_and_the_delta_link_is_kept_as_given() {
    let walk = poll()
        .walk::<MicrosoftGraph>(|request| match target(request).as_str() {
            "/users/delta" => {
                assert_eq!(request.param("$select"), Some("displayName,mail"));
                Response::new(200, fixture!("users_1"))
            }
            "pqwSUjGYvb3jQpbwVAwEL7y" => Response::new(200, fixture!("users_empty")),
            "pqwSUjGYvb3jQpbwVAwEL8z" => Response::new(200, fixture!("users_last")),
            other => panic!("asked for {other}"),
        })
        .unwrap();
    assert_eq!(walk.requests.len(), 3);
    assert_eq!(walk.records.len(), 4);
    let (last, _) = &walk.records[2];
    assert!(last.deleted && last.id == "87d349ed-44d7-43e1-9a83-5f2406dee5bd");
    assert_eq!(
        walk.cursor.as_deref(),
        Some(r#"{"link":"https://graph.microsoft.com/v1.0/users/delta?$deltatoken=0aX1S3ZgJkA"}"#)
    );
}

#[test]
fn the_next_poll_begins_at_the_delta_link() {
    let request = poll()
        .cursor(
            r#"{"link":"https://graph.microsoft.com/v1.0/users/delta?$deltatoken=0aX1S3ZgJkA"}"#,
        )
        .request::<MicrosoftGraph>(None)
        .unwrap();
    assert!(matches!(request.target, Target::Link(_)));
    assert_eq!(request.param("$select"), None);
}

#[test]
fn every_stream_has_its_path() {
    for (stream, config, folder, path) in [
        ("groups", "{}", None, "/groups/delta"),
        (
            "messages",
            "{}",
            Some("inbox"),
            "/me/mailFolders/inbox/messages/delta",
        ),
        (
            "messages",
            r#"{"user":"rowan@acme.example.test"}"#,
            Some("archive"),
            "/users/rowan%40acme.example.test/mailFolders/archive/messages/delta",
        ),
        ("files", "{}", None, "/me/drive/root/delta"),
    ] {
        let mut poll = Poll::new(stream, config, NOW);
        if let Some(folder) = folder {
            poll = poll.partition(folder);
        }
        assert_eq!(target(&poll.request::<MicrosoftGraph>(None).unwrap()), path);
    }
    let config = serde_json::from_str(CONFIG).unwrap();
    assert_eq!(
        MicrosoftGraph::partitions(&config, "messages").unwrap(),
        ["inbox", "archive"]
    );
}

#[test]
fn a_file_that_was_deleted_says_so_in_its_own_way() {
    let page = Poll::new("files", "{}", NOW)
        .read::<MicrosoftGraph>(
            None,
            Response::new(
                200,
                r#"{"@odata.deltaLink":"https://graph.microsoft.com/v1.0/x?token=1","value":[
{"id":"01A","name":"pump.pdf","lastModifiedDateTime":"2031-03-04T09:00:00Z"},
{"id":"01B","deleted":{"state":"deleted"}}]}"#,
            ),
        )
        .unwrap();
    assert!(!page.records[0].deleted && page.records[1].deleted);
    assert_eq!(page.records[0].updated_at, Some(NOW - 3_600_000));
}

#[test]
fn a_page_that_leads_nowhere_is_no_answer() {
    let fault = poll()
        .read::<MicrosoftGraph>(None, Response::new(200, r#"{"value":[]}"#))
        .unwrap_err();
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (Class::Incomplete, "links")
    );
}

#[test]
fn refusals_are_told_apart() {
    for (status, code, class) in [
        (410, "resyncRequired", Class::PositionLost),
        (410, "resyncChangesApplyDifferences", Class::PositionLost),
        (404, "syncStateNotFound", Class::PositionLost),
        (400, "SyncStateInvalid", Class::PositionLost),
        (401, "InvalidAuthenticationToken", Class::AuthExpired),
        (403, "ErrorAccountSuspend", Class::AuthRevoked),
        (403, "Authorization_RequestDenied", Class::Permanent),
        (404, "itemNotFound", Class::Permanent),
        (412, "PreconditionFailed", Class::Permanent),
        (429, "TooManyRequests", Class::RateLimited),
        (501, "NotImplemented", Class::Permanent),
        (503, "serviceNotAvailable", Class::Temporary),
        (504, "", Class::Temporary),
        (509, "bandwidthLimitExceeded", Class::Temporary),
    ] {
        assert_eq!(fault(status, code).class, class, "{status} {code}");
    }
}

#[test]
fn what_is_no_listing_is_a_fault() {
    for body in [
        "",
        "<html>",
        r#"{"value":[{"id":"2"#,
        r#"{"other":[]}"#,
        "null",
    ] {
        let fault = poll()
            .read::<MicrosoftGraph>(None, Response::new(200, body))
            .unwrap_err();
        assert!(
            matches!(fault.class, Class::Incomplete | Class::Temporary),
            "{body}: {fault:?}"
        );
    }
}
