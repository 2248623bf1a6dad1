//! The connector as the host calls it, against hand-made answers and a small search that cuts as Algolia does.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;

use hackernews::HackerNews;
use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, Request, Response};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const T: i64 = NOW / 1000;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll() -> Poll {
    Poll::new("stories", "{}", NOW)
}

#[test]
fn the_query_is_a_window_of_time() {
    let request = poll()
        .since(NOW - 3_600_500)
        .page_size(5000)
        .request::<HackerNews>(None)
        .unwrap();
    assert_eq!(
        request.param("numericFilters"),
        Some("created_at_i>=1930381199,created_at_i<=1930384800")
    );
    assert_eq!(request.param("tags"), Some("story"));
    assert_eq!(request.param("hitsPerPage"), Some("1000"));
    assert_eq!(request.param("query"), None);

    let config = r#"{"query":"wasm","tags":["author_acme"],"from":"2031-03-04T09:00:00Z"}"#;
    let poll = Poll::new("comments", config, NOW);
    let request = poll.request::<HackerNews>(None).unwrap();
    assert_eq!(
        request.param("numericFilters"),
        Some("created_at_i>=1930381200,created_at_i<=1930384800")
    );
    assert_eq!(request.param("tags"), Some("comment,author_acme"));
    assert_eq!(request.param("query"), Some("wasm"));
    let request = poll.since(NOW - 1000).request::<HackerNews>(None).unwrap();
    assert_eq!(
        request.param("numericFilters"),
        Some("created_at_i>=1930384799,created_at_i<=1930384800")
    );
}

#[test]
fn a_full_answer_is_followed_below_its_oldest_second() {
    let mut answers = [fixture!("newest"), fixture!("older"), fixture!("oldest")].into_iter();
    let walk = poll()
        .page_size(2)
        .walk::<HackerNews>(|_| Response::new(200, answers.next().unwrap_or(fixture!("empty"))))
        .unwrap();
    let tops: Vec<_> = walk
        .requests
        .iter()
        .map(|request| request.param("numericFilters").unwrap())
        .collect();
    assert_eq!(
        tops,
        [
            "created_at_i<=1930384800",
            "created_at_i<=1930384780",
            "created_at_i<=1930384770"
        ]
    );
    assert_eq!(
        walk.ids(),
        ["40000009", "40000008", "40000008", "40000007", "40000007"]
    );
    assert_eq!(walk.records[0].0.updated_at, Some(NOW - 10_000));
    assert!(!walk.truncated);
}

/// A search over (second, id), newest first, which gives no more than `cap` hits of a query.
fn search(all: &[(i64, u32)], cap: usize, request: &Request) -> Response {
    let filters = request.param("numericFilters").unwrap();
    let bound = |sign: &str| {
        filters
            .split(',')
            .find_map(|filter| filter.strip_prefix(sign))
            .map(|second| second.parse::<i64>().unwrap())
    };
    let (low, high) = (bound("created_at_i>="), bound("created_at_i<=").unwrap());
    let mut hits: Vec<_> = all
        .iter()
        .filter(|(at, _)| *at <= high && low.is_none_or(|low| *at >= low))
        .collect();
    hits.sort_by(|one, other| other.cmp(one));
    let count = hits.len();
    let number = |name| request.param(name).unwrap().parse::<usize>().unwrap();
    let (size, page) = (number("hitsPerPage"), number("page"));
    let shown: Vec<String> = hits
        .into_iter()
        .take(cap)
        .skip(size * page)
        .take(size)
        .map(|(at, id)| format!(r#"{{"objectID":"{id}","created_at_i":{at}}}"#))
        .collect();
    Response::new(
        200,
        format!(
            r#"{{"hits":[{}],"nbHits":{count},"page":{page}}}"#,
            shown.join(",")
        ),
    )
}

fn ids(walk: &weir_sdk::testing::Walk) -> BTreeSet<u32> {
    walk.ids()
        .into_iter()
        .map(|id| id.parse().unwrap())
        .collect()
}

#[test]
fn the_cap_hides_nothing_as_long_as_no_second_exceeds_it() {
    // 5,000 stories, up to 400 of them in one second.
    let all: Vec<(i64, u32)> = (0..5000)
        .map(|id| (T - i64::from(id / 7) - i64::from(id % 3), id))
        .collect();
    let burst: Vec<(i64, u32)> = (5000..5400).map(|id| (T - 100, id)).collect();
    let all = [all, burst].concat();
    for size in [1000, 300] {
        let walk = poll()
            .page_size(size)
            .walk::<HackerNews>(|request| search(&all, 1000, request))
            .unwrap();
        assert_eq!(ids(&walk).len(), all.len(), "page size {size}");
        assert!(!walk.truncated);
    }
}

#[test]
fn a_second_beyond_the_cap_is_said_and_passed() {
    let mut all: Vec<(i64, u32)> = (0..1200).map(|id| (T - 5, id)).collect();
    all.extend([(T - 1, 9001), (T - 6, 9002), (T - 7, 9003)]);
    for size in [1000, 250] {
        let walk = poll()
            .page_size(size)
            .walk::<HackerNews>(|request| search(&all, 1000, request))
            .unwrap();
        let found = ids(&walk);
        assert!(walk.truncated);
        assert!(
            [9001, 9002, 9003].iter().all(|id| found.contains(id)),
            "what lies beyond is found"
        );
        assert!(found.len() >= 1002, "all that can be had: {}", found.len());
    }
}

#[test]
fn a_page_that_the_server_made_shorter_than_asked_is_not_the_end() {
    let all: Vec<(i64, u32)> = (0..95).map(|id| (T - i64::from(id), id)).collect();
    let walk = poll()
        .walk::<HackerNews>(|request| {
            let mut short = request.clone();
            short.query.retain(|(name, _)| name != "hitsPerPage");
            search(&all, 1000, &short.query("hitsPerPage", 20))
        })
        .unwrap();
    assert_eq!(ids(&walk).len(), 95);
}

#[test]
fn nothing_found_is_a_complete_walk() {
    let walk = poll()
        .walk::<HackerNews>(|_| Response::new(200, fixture!("empty")))
        .unwrap();
    assert_eq!((walk.requests.len(), walk.records.len()), (1, 0));
}

#[test]
fn refusals_mean_what_they_mean() {
    for (status, body, class) in [
        (400, fixture!("bad_filter"), Class::Permanent),
        (429, "", Class::RateLimited),
        (503, "<html></html>", Class::Temporary),
        (200, "<html></html>", Class::Temporary),
        (200, "{}", Class::Incomplete),
        (200, r#"{"hits":null}"#, Class::Incomplete),
        (200, r#"{"hits":[{"objectID":"1"}]}"#, Class::Incomplete),
    ] {
        let fault = poll()
            .read::<HackerNews>(None, Response::new(status, body))
            .unwrap_err();
        assert_eq!(fault.class, class, "{status} {body}");
    }
    let odd = Poll::new("polls", "{}", NOW)
        .request::<HackerNews>(None)
        .unwrap_err();
    assert_eq!(odd.class, Class::Permanent);
    let config = serde_json::from_str(r#"{"from":"last week"}"#).unwrap();
    let odd = HackerNews::describe(Some(&config)).unwrap_err();
    assert!(odd.message.contains("last week"), "{}", odd.message);
}
