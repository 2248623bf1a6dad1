//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use github::GitHub;
use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, Data, Fault, Request, Response, Scope, Target};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const HOUR: i64 = 3_600_000;
const CONFIG: &str = r#"{"repos":["acme/widgets","acme/empty"]}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll(stream: &str) -> Poll {
    Poll::new(stream, CONFIG, NOW)
        .partition("acme/widgets")
        .since(NOW - HOUR)
}

fn path(request: &Request) -> &str {
    match &request.target {
        Target::Path(path) | Target::Link(path) => path,
    }
}

fn next(path: &str) -> String {
    format!(
        r#"<https://api.github.com{path}>; rel="next", <https://api.github.com/last>; rel="last""#
    )
}

fn fault(stream: &str, response: Response) -> Fault {
    poll(stream).read::<GitHub>(None, response).unwrap_err()
}

#[test]
fn issues_are_asked_for_by_change_oldest_first() {
    let request = poll("issues")
        .since(NOW - HOUR + 999)
        .request::<GitHub>(None)
        .unwrap();
    assert_eq!(path(&request), "/repos/acme/widgets/issues");
    for (name, value) in [
        ("state", "all"),
        ("sort", "updated"),
        ("direction", "asc"),
        ("per_page", "100"),
        ("since", "2031-03-04T09:00:00Z"),
    ] {
        assert_eq!(request.param(name), Some(value), "{name}");
    }
    assert!(request.conditional);
    let first = Poll::new("issues", CONFIG, NOW)
        .partition("acme/widgets")
        .request::<GitHub>(None)
        .unwrap();
    assert_eq!(first.param("since"), None);
}

#[test]
fn numbered_pages_are_replaced_by_the_last_stamp_so_that_nothing_slips_between_them() {
    let walk = poll("issues")
        .since(NOW - 2 * HOUR)
        .walk::<GitHub>(|request| match (path(request), request.param("since")) {
            ("/repos/acme/widgets/issues", Some("2031-03-04T08:00:00Z")) => {
                Response::new(200, fixture!("issues_page_1"))
                    .with_header("Link", &next("/repositories/515/issues?page=2"))
            }
            ("/repos/acme/widgets/issues", Some("2031-03-04T09:00:01Z")) => {
                assert!(!request.conditional);
                Response::new(200, fixture!("issues_page_2"))
            }
            other => panic!("asked for {other:?}"),
        })
        .unwrap();
    assert_eq!(
        walk.ids(),
        ["1308969059", "1308969060", "1308969060", "9224851642388483"]
    );
    assert!(
        walk.records
            .iter()
            .all(|(record, _)| matches!(record.data, Data::Slice(_)))
    );
    assert_eq!(walk.records[0].0.updated_at, Some(NOW - HOUR));
    assert!(
        walk.records[0].1.starts_with("{\n    \"url\""),
        "byte for byte: {}",
        walk.records[0].1
    );
}

#[test]
fn a_page_within_one_second_and_a_cursor_of_the_vendors_follow_the_link() {
    let walk = poll("issues")
        .since(NOW - HOUR + 2000)
        .walk::<GitHub>(|request| match path(request) {
            "/repos/acme/widgets/issues" => Response::new(200, fixture!("issues_one_second"))
                .with_header("link", &next("/repositories/515/issues?page=2")),
            "https://api.github.com/repositories/515/issues?page=2" => Response::new(200, "[]")
                .with_header("link", &next("/repositories/515/issues?after=Y3%3D&page=3")),
            "https://api.github.com/repositories/515/issues?after=Y3%3D&page=3" => {
                Response::new(200, fixture!("issues_one_second"))
            }
            other => panic!("asked for {other}"),
        })
        .unwrap();
    assert_eq!(
        walk.requests.len(),
        3,
        "an empty page with a next link is not the end"
    );
    assert_eq!(walk.ids().len(), 4);
}

#[test]
fn issues_newer_than_the_window_end_the_walk() {
    let answer =
        Response::new(200, fixture!("issues_page_1")).with_header("link", &next("/x?page=2"));
    let page = poll("issues")
        .until(NOW - HOUR + 1000)
        .read::<GitHub>(None, answer)
        .unwrap();
    assert_eq!(page.records.len(), 2);
    assert!(page.next.is_empty());
}

#[test]
fn events_are_walked_down_to_the_last_poll_and_no_further() {
    let mut answers = 0;
    let walk = poll("events")
        .since(NOW - HOUR / 2 + 1)
        .walk::<GitHub>(|request| {
            answers += 1;
            let body = match path(request) {
                "/repos/acme/widgets/events" => fixture!("events_page_1"),
                _ => fixture!("events_page_2"),
            };
            Response::new(200, body)
                .with_header(
                    "Link",
                    &next(&format!("/repositories/515/events?page={}", answers + 1)),
                )
                .with_header("X-Poll-Interval", "60")
        })
        .unwrap();
    assert_eq!(walk.requests.len(), 2);
    assert_eq!(
        walk.ids(),
        ["52000000009", "52000000008", "52000000007", "52000000006"]
    );
    assert_eq!(walk.poll_after, Some(60_000));
    assert!(!walk.truncated);
}

#[test]
fn events_that_end_at_their_cap_before_the_last_poll_are_truncated() {
    let answer = || Response::new(200, fixture!("events_page_1"));
    let third = r#"{"url":"https://api.github.com/repositories/515/events?page=3","seen":298}"#;
    let page = poll("events")
        .read::<GitHub>(Some(third), answer())
        .unwrap();
    assert!(page.truncated);
    let short = r#"{"url":"https://api.github.com/repositories/515/events?page=3","seen":100}"#;
    let page = poll("events")
        .read::<GitHub>(Some(short), answer())
        .unwrap();
    assert!(!page.truncated, "all there is");
    let first = Poll::new("events", CONFIG, NOW).partition("acme/widgets");
    let page = first.read::<GitHub>(Some(third), answer()).unwrap();
    assert!(
        !page.truncated,
        "a first poll misses nothing that was promised"
    );
}

#[test]
fn releases_and_commits_are_read_by_their_own_keys() {
    let walk = poll("releases")
        .walk::<GitHub>(|_| Response::new(200, fixture!("releases")))
        .unwrap();
    assert_eq!(walk.ids(), ["987654321"]);
    assert_eq!(walk.requests[0].param("since"), None);
    let config = r#"{"repos":["acme/widgets"],"branch":"release/1"}"#;
    let poll = Poll::new("commits", config, NOW)
        .partition("acme/widgets")
        .since(NOW - 48 * HOUR);
    let walk = poll
        .walk::<GitHub>(|_| Response::new(200, fixture!("commits")))
        .unwrap();
    assert_eq!(walk.ids(), ["7fd1a60b01f91b314f59955a4e4d4e80d8edf11d"]);
    assert_eq!(walk.records[0].0.updated_at, Some(NOW - 22 * HOUR));
    assert_eq!(walk.requests[0].param("sha"), Some("release/1"));
    assert_eq!(
        walk.requests[0].param("since"),
        Some("2031-03-02T10:00:00Z")
    );
}

#[test]
fn empty_listings_and_empty_repositories_are_complete() {
    for stream in ["issues", "events", "releases", "commits"] {
        let walk = poll(stream)
            .walk::<GitHub>(|_| Response::new(200, "[]"))
            .unwrap();
        assert!(walk.records.is_empty() && !walk.truncated);
    }
    let empty = || Response::new(409, fixture!("empty_repository"));
    assert!(
        poll("commits")
            .read::<GitHub>(None, empty())
            .unwrap()
            .records
            .is_empty()
    );
    assert_eq!(
        fault("issues", empty()).class,
        Class::Temporary,
        "a conflict elsewhere"
    );
}

#[test]
fn limits_are_told_apart_from_missing_permission() {
    for status in [403, 429] {
        let primary = Response::new(status, fixture!("primary_limit"))
            .with_header("X-RateLimit-Remaining", "0")
            .with_header("X-RateLimit-Reset", "1930386000");
        let primary = fault("issues", primary);
        assert_eq!(
            (primary.class, primary.scope),
            (Class::RateLimited, Scope::Credential)
        );
        assert_eq!(
            primary.wait, None,
            "the reset is in a header, which the host has read"
        );

        let secondary = || Response::new(status, fixture!("secondary_limit"));
        assert_eq!(fault("issues", secondary()).class, Class::RateLimited);
        assert_eq!(fault("issues", secondary()).wait, Some(60_000));
        assert_eq!(
            fault("issues", secondary().with_header("retry-after", "")).wait,
            Some(60_000)
        );
        assert_eq!(
            fault("issues", secondary().with_header("retry-after", "30")).wait,
            None
        );
    }
    let forbidden =
        Response::new(403, fixture!("forbidden")).with_header("X-RateLimit-Remaining", "4999");
    let forbidden = fault("issues", forbidden);
    assert_eq!(
        (forbidden.class, forbidden.scope),
        (Class::Permanent, Scope::Unit)
    );
    let bare = fault("issues", Response::new(429, ""));
    assert_eq!(bare.class, Class::RateLimited);
    let locked = fault("issues", Response::new(403, fixture!("locked_out")));
    assert_eq!(
        (locked.class, locked.scope),
        (Class::Temporary, Scope::Credential)
    );
    let sso = Response::new(403, fixture!("forbidden"))
        .with_header("X-GitHub-SSO", "required; url=https://x");
    assert_eq!(fault("issues", sso).code, "403/sso");
}

#[test]
fn refusals_mean_what_they_mean() {
    for (status, body, class) in [
        (202, "{}", Class::Pending),
        (401, fixture!("bad_credentials"), Class::AuthExpired),
        (404, fixture!("not_found"), Class::Permanent),
        (410, fixture!("issues_disabled"), Class::Permanent),
        (422, r#"{"message":"Validation Failed"}"#, Class::Permanent),
        (
            451,
            r#"{"message":"Repository access blocked"}"#,
            Class::Permanent,
        ),
        (502, "<html>502</html>", Class::Temporary),
        (503, "", Class::Temporary),
        (
            200,
            "<!DOCTYPE html><html>Unicorn!</html>",
            Class::Temporary,
        ),
        (200, r#"{"message":"odd"}"#, Class::Incomplete),
        (200, r#"[{"id":1},{"id":"#, Class::Incomplete),
    ] {
        let fault = fault("issues", Response::new(status, body));
        assert_eq!(fault.class, class, "{status} {body}");
    }
}

#[test]
fn a_record_without_an_id_is_the_hosts_to_set_aside() {
    let page = poll("issues")
        .read::<GitHub>(None, Response::new(200, r#"[{"number":1},{"id":7}]"#))
        .unwrap();
    let ids: Vec<_> = page.records.iter().map(|record| &record.id).collect();
    assert_eq!(ids, ["", "7"]);
}

#[test]
fn a_partition_cannot_leave_its_place() {
    for odd in ["acme", "", "acme/../../user"] {
        let request = Poll::new("issues", CONFIG, NOW)
            .partition(odd)
            .request::<GitHub>(None);
        match request {
            Ok(request) => assert_eq!(path(&request), "/repos/acme/..%2F..%2Fuser/issues"),
            Err(fault) => assert_eq!(fault.class, Class::Permanent),
        }
    }
    let config = serde_json::from_str(CONFIG).unwrap();
    assert_eq!(
        GitHub::partitions(&config, "issues").unwrap(),
        ["acme/widgets", "acme/empty"]
    );
}

#[test]
fn it_describes_itself_with_and_without_a_config() {
    let listed = GitHub::describe(None).unwrap();
    assert_eq!(listed.origins[0].url, "https://api.github.com");
    let names: Vec<&str> = listed
        .streams
        .iter()
        .map(|stream| stream.name.as_str())
        .collect();
    assert_eq!(names, ["issues", "events", "releases", "commits"]);
    serde_json::from_str::<serde_json::Value>(&listed.config_schema).unwrap();
    let config =
        serde_json::from_str(r#"{"repos":["a/b"],"url":"https://github.example.test/api/v3"}"#)
            .unwrap();
    let enterprise = GitHub::describe(Some(&config)).unwrap();
    assert_eq!(
        enterprise.origins[0].url,
        "https://github.example.test/api/v3"
    );
}

#[test]
fn a_step_of_another_version_is_a_lost_position() {
    let lost = poll("issues")
        .request::<GitHub>(Some(r#"{"seen":"many"}"#))
        .unwrap_err();
    assert_eq!(lost.class, Class::PositionLost);
}
