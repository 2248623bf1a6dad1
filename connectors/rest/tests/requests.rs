//! The calls that a configuration makes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use rest::Rest;
use serde_json::{Value, json};
use weir_sdk::testing::Poll;
use weir_sdk::{Body, Class, Method, Request, Target};

/// 2031-03-04T10:00:00Z
const NOW: i64 = 1_930_384_800_000;
const SINCE: i64 = NOW - 120_250;

fn config(shared: Value, stream: Value) -> String {
    let mut keys =
        json!({"path": "/rows", "records": "/rows", "id": "/id", "updated_at": "/updated_at"});
    for (key, value) in stream.as_object().unwrap() {
        keys[key] = value.clone();
    }
    let mut config = json!({"base_url": "https://api.example.test", "streams": {"rows": keys, "owners": {"path": "/owners", "id": "/id"}}});
    for (key, value) in shared.as_object().unwrap() {
        config[key] = value.clone();
    }
    config.to_string()
}

fn first(stream: Value) -> Request {
    poll(stream).request::<Rest>(None).unwrap()
}

fn poll(stream: Value) -> Poll {
    Poll::new("rows", &config(json!({}), stream), NOW).since(SINCE)
}

fn path(request: &Request) -> &str {
    match &request.target {
        Target::Path(path) => path,
        Target::Link(link) => panic!("a link to {link}"),
    }
}

fn body(request: &Request) -> Value {
    match &request.body {
        Some(Body::Text(text)) => serde_json::from_str(text).unwrap(),
        _ => panic!("no text"),
    }
}

fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    request
        .headers
        .iter()
        .find(|header| header.name == name)
        .map(|header| header.value.as_str())
}

#[test]
fn a_window_in_the_query_in_every_format() {
    for (window, since, until) in [
        (
            json!({"since": "s", "until": "u"}),
            "2031-03-04T09:57:59Z",
            "2031-03-04T10:00:00Z",
        ),
        (
            json!({"since": "s", "until": "u", "since_exclusive": true}),
            "2031-03-04T09:57:58Z",
            "2031-03-04T10:00:00Z",
        ),
        (
            json!({"since": "s", "until": "u", "format": "epoch_s"}),
            "1930384679",
            "1930384800",
        ),
        (
            json!({"since": "s", "until": "u", "format": "date"}),
            "2031-03-04",
            "2031-03-05",
        ),
        (
            json!({"since": "s", "until": "u", "format": "%Y/%m/%d %H:%M", "utc_offset": "-08:00", "dst_offset": "-07:00"}),
            "2031/03/04 01:57",
            "2031/03/04 03:00",
        ),
    ] {
        let request = first(json!({"window": window}));
        assert_eq!(
            (request.param("s"), request.param("u")),
            (Some(since), Some(until)),
            "{window}"
        );
    }
}

#[test]
fn a_first_sync_leaves_the_lower_bound_out_or_begins_at_the_start() {
    let poll = |window: Value| {
        Poll::new("rows", &config(json!({}), json!({"window": window})), NOW)
            .request::<Rest>(None)
            .unwrap()
    };
    assert_eq!(poll(json!({"since": "s"})).param("s"), None);
    assert_eq!(
        poll(json!({"since": "s", "start": "2020-01-01T00:00:00Z"})).param("s"),
        Some("2020-01-01T00:00:00Z")
    );
}

#[test]
fn placeholders_in_the_query() {
    let query = json!({"filter": "updated_at>={since},updated_at<{until}", "size": "{page_size}", "fixed": 3, "plain": "{x}"});
    let request = first(json!({"query": query, "window": {"format": "epoch_s"}}));
    assert_eq!(
        request.param("filter"),
        Some("updated_at>=1930384679,updated_at<1930384800")
    );
    assert_eq!(request.param("size"), Some("100"));
    assert_eq!(
        (request.param("fixed"), request.param("plain")),
        (Some("3"), Some("{x}"))
    );
    // Without a lower bound the parameter would be half filled: it is left out.
    let query = json!({"filter": "updated_at>={since}"});
    let request = Poll::new("rows", &config(json!({}), json!({"query": query})), NOW)
        .request::<Rest>(None)
        .unwrap();
    assert_eq!(request.param("filter"), None);
}

#[test]
fn shared_query_and_headers_yield_to_the_streams_own() {
    let shared = json!({"query": {"version": "3", "lang": "en"}, "headers": {"Accept": "application/vnd.acme+json"}});
    let config = config(
        shared,
        json!({"query": {"lang": "de"}, "headers": {"X-Part": "a"}}),
    );
    let request = Poll::new("rows", &config, NOW)
        .request::<Rest>(None)
        .unwrap();
    assert_eq!(
        (request.param("version"), request.param("lang")),
        (Some("3"), Some("de"))
    );
    assert_eq!(request.query.len(), 2);
    assert_eq!(
        header(&request, "Accept"),
        Some("application/vnd.acme+json")
    );
    assert_eq!(header(&request, "accept"), None);
    assert_eq!(header(&request, "X-Part"), Some("a"));
    assert_eq!(
        (request.method, request.conditional, request.cost),
        (Method::Get, true, 1)
    );
}

#[test]
fn partitions_are_one_segment_or_a_path() {
    let of = |template: &str, partition: &str| {
        let poll = poll(json!({"path": template, "partitions": ["x"]})).partition(partition);
        path(&poll.request::<Rest>(None).unwrap()).to_owned()
    };
    assert_eq!(
        of("/shops/{partition}/rows", "a/b c"),
        "/shops/a%2Fb%20c/rows"
    );
    assert_eq!(
        of("/repos/{+partition}/rows", "acme/an vil"),
        "/repos/acme/an%20vil/rows"
    );
    assert_eq!(
        of("/repos/{+partition}/rows", "../../admin"),
        "/repos/%2E%2E/%2E%2E/admin/rows"
    );
    assert_eq!(of("/shops/{partition}/rows", ".."), "/shops/%2E%2E/rows");
    let missing = poll(json!({"path": "/shops/{partition}", "partitions": ["x"]}))
        .request::<Rest>(None)
        .unwrap_err();
    assert_eq!(missing.class, Class::Permanent);
}

#[test]
fn a_parents_fields_fill_the_path() {
    let config = config(
        json!({}),
        json!({"path": "/owners/{parent.id}/rows", "parent": "owners", "query": {"kind": "{parent.type.name}"}}),
    );
    let mut task = weir_sdk::bindings::weir::connector::types::Task {
        stream: "rows".to_owned(),
        partition: Some("9224851642388483".to_owned()),
        parent: Some(r#"{"id":9224851642388483,"type":{"name":"a b"}}"#.to_owned()),
        config,
        cursor: None,
        window: weir_sdk::Window {
            since: None,
            until: NOW,
        },
        reason: weir_sdk::Reason::Schedule,
        now: NOW,
        page_size: 10,
    };
    use weir_sdk::contract::Guest as _;
    let request = weir_sdk::Guest::<Rest>::build_request(task.clone(), None).unwrap();
    assert_eq!(path(&request), "/owners/9224851642388483/rows");
    assert_eq!(request.param("kind"), Some("a b"));
    task.parent = Some(r#"{"id":1}"#.to_owned());
    let fault = weir_sdk::Guest::<Rest>::build_request(task, None).unwrap_err();
    assert!(fault.message.contains("/type/name"), "{}", fault.message);
}

#[test]
fn a_post_puts_parameters_into_its_body() {
    let request = poll(json!({
        "method": "POST",
        "body": {"query": "rows(updated: \">={since}\") { id }", "variables": {"from": "{since}", "first": "{page_size}", "size": 0}},
        "page_size_param": "/variables/size",
        "window": {"until": "/variables/until", "format": "epoch_ms", "start": "2020-01-01T00:00:00Z"},
        "paging": {"style": "token", "token": "/next", "param": "/variables/after"},
    }))
    .request::<Rest>(Some(r#"{"token":"007"}"#))
    .unwrap();
    assert_eq!(
        body(&request),
        json!({
            "query": "rows(updated: \">=1930384679000\") { id }",
            "variables": {"from": 1930384679000_i64, "first": 100, "size": 100, "until": 1930384800000_i64, "after": "007"},
        })
    );
    assert!(request.query.is_empty());
    assert_eq!((request.method, request.conditional), (Method::Post, false));
    assert_eq!(header(&request, "content-type"), Some("application/json"));
}

#[test]
fn a_keyset_position_takes_the_place_of_the_windows_bound() {
    let request = poll(json!({
        "order": "ascending", "window": {"since": "updated_since"}, "page_size_param": "limit",
        "paging": {"style": "keyset", "after_id": "after_id", "after_time": "updated_since"},
    }))
    .request::<Rest>(Some(
        r#"{"after":{"id":7,"time":"2031-03-04T09:58:13.123456Z"}}"#,
    ))
    .unwrap();
    let query: Vec<(&str, &str)> = request
        .query
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        query,
        [
            ("updated_since", "2031-03-04T09:58:13.123456Z"),
            ("limit", "100"),
            ("after_id", "7")
        ]
    );
}

#[test]
fn a_token_may_have_to_stand_alone() {
    let stream = json!({
        "query": {"status": "any"}, "window": {"since": "since"}, "page_size_param": "limit",
        "paging": {"style": "token", "token": "/next", "param": "page_info", "token_only": true},
    });
    assert_eq!(first(stream.clone()).query.len(), 3);
    let later = poll(stream)
        .request::<Rest>(Some(r#"{"token":"t"}"#))
        .unwrap();
    let names: Vec<&str> = later.query.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["limit", "page_info"]);
}

#[test]
fn a_step_of_another_version_is_a_lost_position() {
    let fault = poll(json!({}))
        .request::<Rest>(Some(r#"{"leaf":3}"#))
        .unwrap_err();
    assert_eq!(fault.class, Class::PositionLost);
}
