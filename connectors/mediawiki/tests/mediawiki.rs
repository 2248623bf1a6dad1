//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use mediawiki::MediaWiki;
use weir_sdk::testing::Poll;
use weir_sdk::{Class, Fault, Response, Scope};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const HOUR: i64 = 3_600_000;
const CONFIG: &str =
    r#"{"url":"https://wiki.example.test/w","namespaces":[0,1,6],"kinds":["edit","new","log"]}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll() -> Poll {
    Poll::new("recentchanges", CONFIG, NOW).since(NOW - HOUR)
}

fn fault(response: Response) -> Fault {
    poll().read::<MediaWiki>(None, response).unwrap_err()
}

fn error(code: &str) -> String {
    format!(r#"{{"error":{{"code":"{code}","info":"what the wiki says","docref":"see api.php"}}}}"#)
}

#[test]
fn a_window_is_asked_for_oldest_first_in_whole_seconds() {
    let request = poll()
        .since(NOW - HOUR + 999)
        .page_size(5000)
        .request::<MediaWiki>(None)
        .unwrap();
    for (name, value) in [
        ("list", "recentchanges"),
        ("rcdir", "newer"),
        ("rcstart", "2031-03-04T09:00:00Z"),
        ("rcend", "2031-03-04T10:00:00Z"),
        ("rclimit", "500"),
        ("rcnamespace", "0|1|6"),
        ("rctype", "edit|new|log"),
        ("maxlag", "5"),
        ("formatversion", "2"),
    ] {
        assert_eq!(request.param(name), Some(value), "{name}");
    }
    let first = Poll::new("logevents", CONFIG, NOW)
        .request::<MediaWiki>(None)
        .unwrap();
    assert_eq!(first.param("lestart"), None);
    assert_eq!(first.param("ledir"), Some("newer"));
    assert_eq!(first.param("rcnamespace"), None);
}

#[test]
fn every_member_of_continue_is_sent_again() {
    let mut calls = 0;
    let walk = poll()
        .walk::<MediaWiki>(|request| {
            calls += 1;
            match request.param("rccontinue") {
                None => Response::new(200, fixture!("changes_1")),
                Some("20310304094102|9912") => {
                    assert_eq!(request.param("continue"), Some("-||"));
                    assert_eq!(request.param("rcstart"), Some("2031-03-04T09:00:00Z"));
                    Response::new(200, fixture!("changes_2"))
                }
                other => panic!("continued with {other:?}"),
            }
        })
        .unwrap();
    assert_eq!(calls, 2);
    assert_eq!(walk.ids(), ["9910", "9911", "9912"]);
    assert_eq!(walk.records[2].0.updated_at, Some(1_930_383_662_000));
}

#[test]
fn a_continue_with_a_number_and_more_than_one_list_is_kept_whole() {
    let page = poll()
        .read::<MediaWiki>(
            None,
            Response::new(
                200,
                r#"{"continue":{"rcoffset":20,"a":"x|y","continue":"-||b"},"query":{"recentchanges":[]}}"#,
            ),
        )
        .unwrap();
    let request = poll().request::<MediaWiki>(Some(&page.next[0])).unwrap();
    for (name, value) in [("rcoffset", "20"), ("a", "x|y"), ("continue", "-||b")] {
        assert_eq!(request.param(name), Some(value));
    }
}

#[test]
fn errors_in_a_success_are_faults_by_their_code() {
    for (code, class, scope) in [
        ("maxlag", Class::Temporary, Scope::Connection),
        ("readonly", Class::Temporary, Scope::Connection),
        (
            "internal_api_error_DBQueryError",
            Class::Temporary,
            Scope::Unit,
        ),
        ("ratelimited", Class::RateLimited, Scope::Credential),
        ("assertuserfailed", Class::AuthExpired, Scope::Connection),
        (
            "mwoauth-invalid-authorization",
            Class::AuthExpired,
            Scope::Connection,
        ),
        ("readapidenied", Class::Permanent, Scope::Connection),
        ("badcontinue", Class::PositionLost, Scope::Unit),
        ("badtimestamp", Class::Permanent, Scope::Unit),
        ("unknown_list", Class::Permanent, Scope::Unit),
        ("something-new", Class::Unknown, Scope::Unit),
    ] {
        let found = fault(Response::new(200, error(code)));
        assert_eq!(
            (found.class, found.scope, found.code.as_str()),
            (class, scope, code)
        );
        assert_eq!(found.message, "what the wiki says");
    }
}

#[test]
fn what_stands_before_the_wiki_speaks_by_status() {
    let agent = fault(Response::new(
        403,
        "<html>Please set a user-agent and respect our robot policy</html>",
    ));
    assert_eq!(
        (agent.class, agent.code.as_str()),
        (Class::Permanent, "403/user-agent")
    );
    for (status, body, class) in [
        (
            429,
            "<html>Too Many Requests</html>".to_owned(),
            Class::RateLimited,
        ),
        (503, error("maxlag"), Class::Temporary),
        (502, String::new(), Class::Temporary),
        (401, String::new(), Class::AuthExpired),
    ] {
        assert_eq!(fault(Response::new(status, body)).class, class, "{status}");
    }
}

#[test]
fn what_is_no_listing_is_a_fault() {
    for body in [
        "",
        "<!doctype html><title>Wiki error</title>",
        r#"{"query":{"recentchanges":[{"rcid":1"#,
        r#"{"batchcomplete":true}"#,
        "null",
    ] {
        let fault = fault(Response::new(200, body));
        assert!(
            matches!(fault.class, Class::Incomplete | Class::Temporary),
            "{body}: {fault:?}"
        );
    }
}
