//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use discourse::Discourse;
use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, Fault, Response, Scope};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const HOUR: i64 = 3_600_000;
const CONFIG: &str = r#"{"url":"https://forum.example.test/","username":"poller"}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll(stream: &str) -> Poll {
    Poll::new(stream, CONFIG, NOW).since(NOW - HOUR)
}

fn fault(response: Response) -> Fault {
    poll("posts").read::<Discourse>(None, response).unwrap_err()
}

#[test]
fn posts_are_walked_down_to_the_window() {
    let walk = poll("posts")
        .since(NOW - 2 * HOUR)
        .walk::<Discourse>(|request| match request.param("before") {
            None => {
                assert!(request.conditional);
                Response::new(200, fixture!("posts_1"))
            }
            Some("5118") => Response::new(200, fixture!("posts_2")),
            other => panic!("asked before {other:?}"),
        })
        .unwrap();
    assert_eq!(walk.ids(), ["5120", "5118", "5118", "5090"]);
    assert_eq!(walk.requests[0].headers[0].name, "api-username");
    assert!(!walk.truncated);
    let changed = walk.records[0].0.updated_at.unwrap();
    assert_eq!(changed, NOW - 109_583);
}

#[test]
fn a_range_of_hidden_posts_is_not_the_end() {
    let mut asked = Vec::new();
    let walk = Poll::new("posts", CONFIG, NOW)
        .walk::<Discourse>(|request| {
            let before = request.param("before").map(|id| id.parse::<u64>().unwrap());
            asked.push(before);
            Response::new(
                200,
                match before {
                    None => r#"{"latest_posts":[{"id":120,"created_at":"2031-03-04T09:00:00Z"}]}"#,
                    // The border alone; then a range in which nothing may be seen; then the first post.
                    Some(120) => {
                        r#"{"latest_posts":[{"id":120,"created_at":"2031-03-04T09:00:00Z"}]}"#
                    }
                    Some(21) => {
                        r#"{"latest_posts":[{"id":3,"created_at":"2031-03-01T09:00:00Z"}]}"#
                    }
                    _ => r#"{"latest_posts":[]}"#,
                },
            )
        })
        .unwrap();
    assert_eq!(asked, [None, Some(120), Some(71), Some(21), Some(3)]);
    assert_eq!(walk.ids(), ["120", "120", "3"]);
}

#[test]
fn five_thousand_ids_without_a_post_are_said_and_not_walked_for_ever() {
    let walk = Poll::new("posts", CONFIG, NOW)
        .walk::<Discourse>(|request| {
            Response::new(
                200,
                match request.param("before") {
                    None => {
                        r#"{"latest_posts":[{"id":90000,"created_at":"2031-03-04T09:00:00Z"}]}"#
                    }
                    Some(_) => r#"{"latest_posts":[]}"#,
                },
            )
        })
        .unwrap();
    assert!(walk.truncated);
    assert!(walk.requests.len() < 110, "{}", walk.requests.len());
}

#[test]
fn an_empty_forum_has_one_page() {
    for (stream, body) in [
        ("posts", r#"{"latest_posts":[]}"#),
        ("topics", r#"{"topic_list":{"topics":[]}}"#),
    ] {
        let walk = poll(stream)
            .walk::<Discourse>(|_| Response::new(200, body))
            .unwrap();
        assert_eq!((walk.requests.len(), walk.records.len()), (1, 0));
    }
}

#[test]
fn a_pinned_topic_does_not_end_the_walk_and_an_old_one_does() {
    let pages = |poll: Poll| {
        poll.walk::<Discourse>(|request| match request.param("page") {
            Some("0") => Response::new(200, fixture!("topics_0")),
            Some("1") => Response::new(200, fixture!("topics_1")),
            other => panic!("page {other:?}"),
        })
        .unwrap()
    };
    let walk = pages(poll("topics"));
    assert_eq!(walk.ids(), ["7", "311", "305"]);
    let walk = pages(poll("topics").since(NOW - 60_000));
    assert_eq!(walk.ids(), ["7", "311"]);
}

#[test]
fn limits_say_whom_they_concern_and_how_long() {
    let all = fault(
        Response::new(
            429,
            "Slow down, too many requests from this IP address. Please retry again in 8 seconds. Error code: ip_10_secs_limit.",
        )
        .with_header("Content-Type", "text/plain")
        .with_header("Retry-After", "8")
        .with_header("Discourse-Rate-Limit-Error-Code", "ip_10_secs_limit"),
    );
    assert_eq!(
        (all.class, all.scope, all.code.as_str(), all.wait),
        (
            Class::RateLimited,
            Scope::Credential,
            "429/ip_10_secs_limit",
            None
        )
    );
    let one = fault(Response::new(
        429,
        r#"{"errors":["You've performed this action too many times."],"error_type":"rate_limit","extras":{"wait_seconds":300,"time_left":"5 minutes"}}"#,
    ));
    assert_eq!(
        (one.class, one.scope, one.code.as_str(), one.wait),
        (
            Class::RateLimited,
            Scope::Unit,
            "429/rate_limit",
            Some(300_000)
        )
    );
}

#[test]
fn refusals_are_told_apart() {
    let key = r#"{"errors":["The API username or key is invalid."],"error_type":"invalid_access"}"#;
    let page = r#"{"errors":["You are not permitted to view the requested resource."],"error_type":"invalid_access"}"#;
    for (status, body, class) in [
        (403, key, Class::AuthRevoked),
        (403, page, Class::Permanent),
        (
            404,
            r#"{"errors":["The requested URL or resource could not be found."],"error_type":"not_found"}"#,
            Class::Permanent,
        ),
        (422, r#"{"errors":["no"]}"#, Class::Permanent),
        (502, "<html>rebuilding</html>", Class::Temporary),
        (503, "", Class::Temporary),
    ] {
        assert_eq!(
            fault(Response::new(status, body)).class,
            class,
            "{status} {body}"
        );
    }
}

#[test]
fn what_is_no_listing_is_a_fault() {
    for body in [
        "",
        "<!doctype html><title>Maintenance</title>",
        r#"{"latest_posts":[{"id":51"#,
        r#"{"latest_posts":"none"}"#,
        "[]",
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
fn it_says_what_it_is() {
    let config = serde_json::from_str(CONFIG).unwrap();
    let descriptor = Discourse::describe(Some(&config)).unwrap();
    assert_eq!(descriptor.origins[0].url, "https://forum.example.test");
    assert_eq!(descriptor.streams.len(), 2);
    assert_eq!(Discourse::describe(None).unwrap().name, "discourse");
}
