//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use reddit::Reddit;
use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, Response, Scope, Target};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const HOUR: i64 = 3_600_000;
const CONFIG: &str = r#"{"subreddits":["pumps","valves+gaskets"]}"#;
const EMPTY: &str =
    r#"{"kind":"Listing","data":{"after":null,"dist":0,"children":[],"before":null}}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll() -> Poll {
    Poll::new("posts", CONFIG, NOW).partition("pumps")
}

#[test]
fn a_walk_goes_down_from_the_top_to_the_window() {
    let pages = |poll: Poll| {
        poll.walk::<Reddit>(|request| {
            assert_eq!(request.param("before"), None);
            assert_eq!(request.param("limit"), Some("100"));
            match request.param("after") {
                None => Response::new(200, fixture!("new_1")),
                Some("t3_1qa0b2") => Response::new(200, fixture!("new_2")),
                other => panic!("after {other:?}"),
            }
        })
        .unwrap()
    };
    let whole = pages(poll().since(NOW - HOUR));
    assert_eq!(whole.ids(), ["t3_1qa0b9", "t3_1qa0b2", "t3_1q9zz0"]);
    assert!(!whole.truncated);
    assert_eq!(whole.records[0].0.updated_at, Some(1_930_384_711_000));
    // The record is the item itself, as sent.
    assert!(whole.records[0].1.starts_with(r#"{"subreddit":"pumps""#));
    let short = pages(poll().since(NOW - 60_000 * 30));
    assert_eq!(short.ids(), ["t3_1qa0b9", "t3_1qa0b2"]);
}

#[test]
fn each_subreddit_and_listing_has_its_path() {
    for (stream, partition, path) in [
        ("posts", "pumps", "/r/pumps/new"),
        ("comments", "valves+gaskets", "/r/valves+gaskets/comments"),
    ] {
        let request = Poll::new(stream, CONFIG, NOW)
            .partition(partition)
            .request::<Reddit>(None)
            .unwrap();
        assert!(matches!(request.target, Target::Path(found) if found == path));
    }
    let config = serde_json::from_str(CONFIG).unwrap();
    let partitions = Reddit::partitions(&config, "posts").unwrap();
    assert_eq!(partitions, ["pumps", "valves+gaskets"]);
}

/// A subreddit with a new post each second since long ago, of which the listing shows the newest thousand.
fn busy(poll: Poll) -> weir_sdk::testing::Walk {
    poll.walk::<Reddit>(|request| {
        let seen: i64 = request.param("count").map_or(0, |n| n.parse().unwrap());
        let items: Vec<String> = (seen..(seen + 100).min(1000))
            .map(|n| {
                let at = NOW / 1000 - n;
                format!(r#"{{"kind":"t3","data":{{"name":"t3_{at}","created_utc":{at}.0}}}}"#)
            })
            .collect();
        let after = match seen + 100 {
            1000.. => "null".to_owned(),
            more => format!("\"t3_{}\"", NOW / 1000 - more + 1),
        };
        Response::new(
            200,
            format!(
                r#"{{"kind":"Listing","data":{{"after":{after},"children":[{}]}}}}"#,
                items.join(",")
            ),
        )
    })
    .unwrap()
}

#[test]
fn a_horizon_that_is_nearer_than_the_window_is_said() {
    let walk = busy(poll().since(NOW - HOUR));
    assert_eq!((walk.records.len(), walk.truncated), (1000, true));
    let walk = busy(poll().since(NOW - 500_000));
    assert_eq!((walk.requests.len(), walk.truncated), (6, false));
    // A first poll takes what there is.
    let walk = busy(poll());
    assert_eq!((walk.records.len(), walk.truncated), (1000, false));
}

#[test]
fn an_empty_listing_is_the_end() {
    let walk = poll()
        .since(NOW - HOUR)
        .walk::<Reddit>(|_| Response::new(200, EMPTY))
        .unwrap();
    assert_eq!((walk.requests.len(), walk.truncated), (1, false));
}

#[test]
fn refusals_are_told_apart() {
    let fault = |response| poll().read::<Reddit>(None, response).unwrap_err();
    let scope = fault(
        Response::new(403, r#"{"message":"Forbidden","error":403}"#).with_header(
            "www-authenticate",
            r#"Bearer realm="reddit", error="insufficient_scope""#,
        ),
    );
    assert_eq!(
        (scope.class, scope.code.as_str(), scope.scope),
        (Class::Permanent, "403/scope", Scope::Connection)
    );
    let private = fault(Response::new(
        403,
        r#"{"reason":"private","message":"Forbidden","error":403}"#,
    ));
    assert_eq!(
        (private.class, private.scope),
        (Class::Permanent, Scope::Unit)
    );
    assert!(private.message.ends_with("private"));
    for (status, body, class) in [
        (
            401,
            r#"{"message":"Unauthorized","error":401}"#,
            Class::AuthExpired,
        ),
        (
            404,
            r#"{"reason":"banned","message":"Not Found","error":404}"#,
            Class::Permanent,
        ),
        (302, "", Class::Permanent),
        (429, "<html>Too Many Requests</html>", Class::RateLimited),
        (500, "", Class::Temporary),
        (520, "", Class::Temporary),
        (522, "", Class::Temporary),
    ] {
        let found =
            fault(Response::new(status, body).with_header("Content-Type", "application/json"));
        assert_eq!(found.class, class, "{status}");
    }
}

#[test]
fn what_is_no_listing_is_a_fault() {
    for body in [
        "",
        "<!doctype html><title>Ow!</title>",
        r#"{"kind":"Listing","data":{"children":[{"kind":"t3","data":{"na"#,
        r#"{"kind":"Listing","data":{}}"#,
        "null",
    ] {
        let fault = poll()
            .read::<Reddit>(None, Response::new(200, body))
            .unwrap_err();
        assert!(
            matches!(fault.class, Class::Incomplete | Class::Temporary),
            "{body}: {fault:?}"
        );
    }
}
