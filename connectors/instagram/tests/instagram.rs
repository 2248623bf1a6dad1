//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use instagram::Instagram;
use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, Fault, Request, Response, Scope, Target};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const CONFIG: &str = r#"{"accounts":["17841400000000001"]}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll(stream: &str) -> Poll {
    Poll::new(stream, CONFIG, NOW).partition("17841400000000001")
}

fn path(request: &Request) -> &str {
    match &request.target {
        Target::Path(path) => path,
        Target::Link(link) => panic!("followed {link}"),
    }
}

fn fault(response: Response) -> Fault {
    poll("media").read::<Instagram>(None, response).unwrap_err()
}

fn error(code: i64, subcode: i64, message: &str) -> String {
    let subcode = match subcode {
        0 => String::new(),
        subcode => format!(r#","error_subcode":{subcode}"#),
    };
    format!(
        r#"{{"error":{{"message":"{message}","type":"OAuthException","code":{code}{subcode},"fbtrace_id":"A1"}}}}"#
    )
}

fn pages(request: &Request) -> Response {
    match request.param("after") {
        None => Response::new(200, fixture!("media_1")),
        Some("QVFIUmJi") => Response::new(200, fixture!("media_2")),
        other => panic!("after {other:?}"),
    }
}

#[test]
fn posts_go_on_by_cursor_and_never_by_the_link_that_holds_the_token() {
    let walk = poll("media")
        .since(NOW - 2 * HOUR)
        .walk::<Instagram>(|request| {
            assert_eq!(path(request), "/17841400000000001/media");
            pages(request)
        })
        .unwrap();
    // The cursor is still there at the end; the link is not.
    assert_eq!(
        walk.ids(),
        [
            "17900000000000003",
            "17900000000000002",
            "17900000000000001"
        ]
    );
    assert_eq!(walk.records[0].0.updated_at, Some(NOW - HOUR / 2));
    let short = poll("media")
        .since(NOW - HOUR)
        .walk::<Instagram>(pages)
        .unwrap();
    assert_eq!(short.requests.len(), 1);
}

#[test]
fn metrics_are_asked_for_post_by_post_for_the_last_days() {
    let walk = poll("media_insights")
        .walk::<Instagram>(|request| match path(request) {
            "/17841400000000001/media" => pages(request),
            "/17900000000000003/insights" => {
                assert_eq!(
                    request.param("metric"),
                    Some("reach,saved,total_interactions")
                );
                Response::new(200, fixture!("media_insights"))
            }
            "/17900000000000002/insights" => Response::new(200, r#"{"data":[]}"#),
            other => panic!("asked for {other}"),
        })
        .unwrap();
    assert_eq!(
        walk.ids(),
        [
            "17900000000000003/insights/reach/lifetime",
            "17900000000000003/insights/saved/lifetime"
        ]
    );
}

#[test]
fn an_accounts_metrics_are_one_record_a_day() {
    let request = poll("account_insights")
        .since(NOW - 2 * DAY)
        .request::<Instagram>(None)
        .unwrap();
    assert_eq!(path(&request), "/17841400000000001/insights");
    assert_eq!(request.param("since"), Some("1930212000"));
    assert_eq!(request.param("until"), Some("1930384800"));
    let walk = poll("account_insights")
        .walk::<Instagram>(|_| Response::new(200, fixture!("account_insights")))
        .unwrap();
    assert_eq!(walk.requests.len(), 1);
    assert_eq!(
        walk.ids(),
        [
            "reach/2031-03-03T08:00:00+0000",
            "reach/2031-03-04T08:00:00+0000",
            "follower_count/2031-03-04T08:00:00+0000"
        ]
    );
    assert_eq!(
        walk.records[1].1,
        r#"{"metric":"reach","period":"day","end_time":"2031-03-04T08:00:00+0000","value":980}"#
    );
}

#[test]
fn limits_wait_as_long_as_the_usage_says_or_an_hour() {
    let usage = r#"{"17841400000000001":[{"type":"instagram","call_count":100,"total_cputime":20,"total_time":30,"estimated_time_to_regain_access":19}]}"#;
    let told = fault(
        Response::new(400, error(80002, 0, "There have been too many calls"))
            .with_header("x-business-use-case-usage", usage),
    );
    // The host reads the minutes.
    assert_eq!(
        (told.class, told.scope, told.wait),
        (Class::RateLimited, Scope::Connection, None)
    );
    let zero = usage.replace(":19", ":0");
    for (code, header, scope) in [
        (4, "", Scope::App),
        (17, "", Scope::Credential),
        (613, "", Scope::Credential),
        (32, "", Scope::Connection),
        (80002, zero.as_str(), Scope::Connection),
        (80014, "", Scope::Connection),
    ] {
        let found = fault(
            Response::new(400, error(code, 0, "too many calls"))
                .with_header("x-business-use-case-usage", header),
        );
        assert_eq!(
            (found.class, found.scope, found.wait),
            (Class::RateLimited, scope, Some(3_600_000)),
            "{code}"
        );
    }
}

#[test]
fn errors_are_told_apart_by_code_and_subcode() {
    for (code, subcode, class) in [
        (190, 463, Class::AuthExpired),
        (190, 460, Class::AuthRevoked),
        (190, 458, Class::AuthRevoked),
        (190, 0, Class::AuthRevoked),
        (102, 0, Class::AuthExpired),
        (10, 0, Class::Permanent),
        (200, 0, Class::Permanent),
        (294, 0, Class::Permanent),
        (100, 0, Class::Permanent),
        (100, 33, Class::Permanent),
        (803, 0, Class::Permanent),
        (368, 0, Class::Permanent),
        (1, 0, Class::Temporary),
        (2, 0, Class::Temporary),
        (1, 99, Class::Temporary),
        (104, 0, Class::Temporary),
        (960, 0, Class::Temporary),
        (9999, 0, Class::Unknown),
    ] {
        let found = fault(Response::new(400, error(code, subcode, "no")));
        assert_eq!(found.class, class, "{code}/{subcode}");
        let name = match subcode {
            0 => code.to_string(),
            subcode => format!("{code}/{subcode}"),
        };
        assert_eq!(found.code, name);
    }
    let moved = fault(Response::new(
        500,
        r#"{"error":{"message":"x","code":9998,"is_transient":true}}"#,
    ));
    assert_eq!(moved.class, Class::Temporary);
}

#[test]
fn too_much_data_is_asked_for_in_smaller_pages() {
    for body in [
        error(100, 1_487_534, "too much data"),
        error(
            1,
            0,
            "Please reduce the amount of data you're asking for, then retry your request",
        ),
    ] {
        let found = fault(Response::new(500, body));
        assert_eq!((found.class, found.page_size), (Class::Temporary, Some(50)));
    }
}

#[test]
fn an_error_in_a_success_is_a_fault() {
    let found = fault(Response::new(200, error(190, 0, "no")));
    assert_eq!(found.class, Class::AuthRevoked);
}

#[test]
fn what_is_no_listing_is_a_fault() {
    for body in [
        "",
        "<html>",
        r#"{"data":[{"id":"1"#,
        r#"{"paging":{}}"#,
        "null",
    ] {
        for stream in ["media", "media_insights", "account_insights"] {
            let fault = poll(stream)
                .read::<Instagram>(None, Response::new(200, body))
                .unwrap_err();
            assert!(
                matches!(fault.class, Class::Incomplete | Class::Temporary),
                "{stream} {body}: {fault:?}"
            );
        }
    }
}

#[test]
fn it_says_what_is_kept_for_how_long() {
    let descriptor = Instagram::describe(None).unwrap();
    let kept: Vec<_> = descriptor
        .streams
        .iter()
        .map(|stream| {
            (
                stream.name.as_str(),
                stream.retention.map(|ms| ms / 86_400_000),
            )
        })
        .collect();
    assert_eq!(
        kept,
        [
            ("media", None),
            ("media_insights", None),
            ("stories", Some(1)),
            ("account_insights", Some(90))
        ]
    );
}
