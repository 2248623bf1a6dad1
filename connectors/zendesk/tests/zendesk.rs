//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, Fault, Response, Target};
use zendesk::Zendesk;

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const HOUR: i64 = 3_600_000;
const CONFIG: &str = r#"{"subdomain":"acme","include":["slas","metric_sets"]}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll(stream: &str) -> Poll {
    Poll::new(stream, CONFIG, NOW).page_size(1000)
}

fn fault(response: Response) -> Fault {
    poll("tickets").read::<Zendesk>(None, response).unwrap_err()
}

#[test]
fn a_first_export_begins_at_the_window_and_goes_on_by_cursor() {
    let walk = poll("tickets")
        .since(NOW - HOUR)
        .walk::<Zendesk>(|request| {
            assert!(
                matches!(&request.target, Target::Path(path) if path == "/incremental/tickets/cursor.json")
            );
            assert_eq!(request.param("include"), Some("slas,metric_sets"));
            assert_eq!(request.param("per_page"), Some("1000"));
            match (request.param("start_time"), request.param("cursor")) {
                (Some("1930381200"), None) => Response::new(200, fixture!("tickets_1")),
                (None, Some("MTkzMDM4MTg2MC4wfHwxN3w=")) => Response::new(200, fixture!("tickets_2")),
                other => panic!("asked for {other:?}"),
            }
        })
        .unwrap();
    assert_eq!(walk.ids(), ["41", "17", "42"]);
    let deleted: Vec<bool> = walk
        .records
        .iter()
        .map(|(record, _)| record.deleted)
        .collect();
    assert_eq!(deleted, [false, true, false]);
    assert_eq!(
        walk.cursor.as_deref(),
        Some(r#"{"cursor":"MTkzMDM4MjQwMC4wfHw0Mnw="}"#)
    );
}

#[test]
fn an_end_without_a_cursor_keeps_the_old_one() {
    let cursor = r#"{"cursor":"MTkzMDM4MjQwMC4wfHw0Mnw="}"#;
    let walk = poll("tickets")
        .cursor(cursor)
        .walk::<Zendesk>(|request| {
            assert_eq!(request.param("cursor"), Some("MTkzMDM4MjQwMC4wfHw0Mnw="));
            assert_eq!(request.param("start_time"), None);
            Response::new(200, fixture!("tickets_end"))
        })
        .unwrap();
    assert_eq!((walk.requests.len(), walk.cursor), (1, None));
}

#[test]
fn the_last_minute_is_never_asked_for() {
    for since in [NOW, NOW - 30_000] {
        let request = poll("users").since(since).request::<Zendesk>(None).unwrap();
        let newest = ((NOW - 120_000) / 1000).to_string();
        assert_eq!(request.param("start_time"), Some(newest.as_str()));
    }
    let request = poll("users").request::<Zendesk>(None).unwrap();
    assert_eq!(request.param("start_time"), Some("0"));
    assert_eq!(
        request.bucket.as_deref(),
        Some("zendesk-incremental-exports-cursor")
    );
}

#[test]
fn organizations_are_read_whole() {
    let walk = poll("organizations")
        .walk::<Zendesk>(|request| match request.param("page[after]") {
            None => Response::new(200, fixture!("organizations_1")),
            Some("aXQ1") => Response::new(200, fixture!("organizations_2")),
            other => panic!("after {other:?}"),
        })
        .unwrap();
    assert_eq!(walk.ids(), ["360001", "360002"]);
    // No cursor outlives the poll.
    assert_eq!(walk.cursor, None);
}

#[test]
fn more_without_a_place_is_no_answer() {
    let fault = fault(Response::new(
        200,
        r#"{"tickets":[],"after_cursor":null,"end_of_stream":false}"#,
    ));
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (Class::Incomplete, "cursor")
    );
}

#[test]
fn refusals_are_told_apart() {
    let lost = fault(Response::new(
        422,
        r#"{"error":"InvalidValue","description":"Invalid cursor"}"#,
    ));
    assert_eq!(
        (lost.class, lost.code.as_str()),
        (Class::PositionLost, "422/InvalidValue")
    );
    let recent = fault(Response::new(
        422,
        r#"{"error":"InvalidValue","description":"Too recent start_time. Use a start_time older than 60 seconds"}"#,
    ));
    assert_eq!(
        (recent.class, recent.wait),
        (Class::Temporary, Some(60_000))
    );
    let slow = fault(Response::new(504, "upstream request timeout"));
    assert_eq!((slow.class, slow.page_size), (Class::Temporary, Some(500)));
    for (status, body, class) in [
        (
            401,
            r#"{"error":"Couldn't authenticate you"}"#,
            Class::AuthExpired,
        ),
        (
            403,
            r#"{"error":{"title":"Forbidden","message":"You do not have access to this page."}}"#,
            Class::Permanent,
        ),
        (
            404,
            r#"{"error":"RecordNotFound","description":"Not found"}"#,
            Class::Permanent,
        ),
        (429, "", Class::RateLimited),
        (503, "", Class::Temporary),
    ] {
        assert_eq!(fault(Response::new(status, body)).class, class, "{status}");
    }
}

#[test]
fn what_is_no_listing_is_a_fault() {
    for body in [
        "",
        "<html>",
        r#"{"tickets":[{"id":4"#,
        r#"{"users":[]}"#,
        "null",
    ] {
        let fault = fault(Response::new(200, body));
        assert!(
            matches!(fault.class, Class::Incomplete | Class::Temporary),
            "{body}: {fault:?}"
        );
    }
}

#[test]
fn the_account_names_the_origin() {
    let config = serde_json::from_str(CONFIG).unwrap();
    let descriptor = Zendesk::describe(Some(&config)).unwrap();
    assert_eq!(descriptor.origins[0].url, "https://acme.zendesk.com/api/v2");
}
