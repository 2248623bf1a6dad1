//! What answers mean: records byte for byte, faults by the error map, and shapes that are no listing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use rest::Rest;
use serde_json::{Value, json};
use weir_sdk::testing::Poll;
use weir_sdk::{Body, Class, Fault, Request, Response, Scope};

const NOW: i64 = 1_930_384_800_000;

fn poll(stream: Value) -> Poll {
    let mut keys = json!({"path": "/rows", "records": "/rows", "id": "/id"});
    for (key, value) in stream.as_object().unwrap() {
        keys[key] = value.clone();
    }
    Poll::new(
        "rows",
        &json!({"base_url": "https://api.example.test", "streams": {"rows": keys}}).to_string(),
        NOW,
    )
}

/// The records of one answer, with their JSON.
fn records(stream: Value, response: Response) -> Vec<(String, Option<i64>, bool, String)> {
    let text = response.lossy_text().into_owned();
    let page = poll(stream).read::<Rest>(None, response).unwrap();
    page.records
        .iter()
        .map(|record| {
            let json = record.json(&text).unwrap().to_owned();
            (record.id.clone(), record.updated_at, record.deleted, json)
        })
        .collect()
}

fn fault(stream: Value, response: Response) -> Fault {
    match poll(stream).read::<Rest>(None, response) {
        Ok(page) => panic!("a page of {} records", page.records.len()),
        Err(fault) => fault,
    }
}

#[test]
fn case_117_big_numbers_keep_their_digits() {
    let body =
        r#"{"rows":[{"id":9224851642388483,"price":0.10,"n":1E2},{"id":1285704473650888702}]}"#;
    let got = records(json!({}), Response::new(200, body));
    assert_eq!(got[0].0, "9224851642388483");
    assert_eq!(got[0].3, r#"{"id":9224851642388483,"price":0.10,"n":1E2}"#);
    assert_eq!(got[1].0, "1285704473650888702");
}

#[test]
fn case_113_a_byte_order_mark_is_passed_over() {
    let got = records(
        json!({"records": ""}),
        Response::new(200, "\u{feff}[{\"id\":1}]"),
    );
    assert_eq!(
        got,
        [("1".to_owned(), None, false, r#"{"id":1}"#.to_owned())]
    );
}

#[test]
fn case_115_a_lone_surrogate_stops_nothing() {
    let body = r#"{"rows":[{"id":"a\ud83d","name":"\ud83d"},{"id":"b","name":"\ud83d\udd25"}]}"#;
    let got = records(json!({}), Response::new(200, body));
    assert_eq!(got[0].0, "a\u{fffd}");
    assert_eq!(got[0].3, r#"{"id":"a\ud83d","name":"\ud83d"}"#);
    assert_eq!(got[1].0, "b");
}

#[test]
fn case_053_a_zero_date_is_a_record_without_a_time() {
    let body = r#"{"rows":[{"id":1,"at":"0000-00-00 00:00:00"},{"id":2,"at":"2025-00-15T00:00:00Z"},{"id":3,"at":"2031-03-04T10:00:00Z"}]}"#;
    let times: Vec<_> = records(json!({"updated_at": "/at"}), Response::new(200, body))
        .iter()
        .map(|r| r.1)
        .collect();
    assert_eq!(times, [None, None, Some(NOW)]);
}

#[test]
fn times_in_every_format() {
    for (format, value) in [
        (json!("/at"), r#""2031-03-04T11:00:00.000000+01:00""#),
        (json!({"pointer": "/at", "format": "epoch_s"}), "1930384800"),
        (
            json!({"pointer": "/at", "format": "epoch_ms"}),
            "1930384800000",
        ),
        (
            json!({"pointer": "/at", "format": "http_date"}),
            r#""Tue, 04 Mar 2031 10:00:00 GMT""#,
        ),
        (
            json!({"pointer": "/at", "format": "naive", "utc_offset": "+05:30"}),
            r#""2031-03-04 15:30:00""#,
        ),
        // In doubt between winter and summer the earlier moment: the watermark must not run ahead.
        (
            json!({"pointer": "/at", "format": "naive", "utc_offset": "-08:00", "dst_offset": "-07:00"}),
            r#""2031-03-04 03:00:00""#,
        ),
    ] {
        let body = format!(r#"{{"rows":[{{"id":1,"at":{value}}}]}}"#);
        assert_eq!(
            records(json!({"updated_at": format}), Response::new(200, body))[0].1,
            Some(NOW),
            "{format}"
        );
    }
}

#[test]
fn compound_ids_never_collide() {
    let body = r#"{"rows":[{"sku":"a/b","place":"c"},{"sku":"a","place":"b/c"},{"sku":"a~1b","place":"c"}]}"#;
    let ids: Vec<_> = records(json!({"id": ["/sku", "/place"]}), Response::new(200, body))
        .into_iter()
        .map(|r| r.0)
        .collect();
    assert_eq!(ids, ["a~1b/c", "a/b~1c", "a~01b/c"]);
}

#[test]
fn deletions() {
    let body = r#"{"rows":[{"id":1},{"id":2,"gone":null},{"id":3,"gone":"2031-01-01"},{"id":4,"gone":false},{"id":5,"gone":{"reason":"x"}}]}"#;
    let gone: Vec<_> = records(json!({"deleted": "/gone"}), Response::new(200, body))
        .iter()
        .map(|r| r.2)
        .collect();
    assert_eq!(gone, [false, false, true, false, true]);
    let body = r#"{"rows":[{"id":1,"status":"cancelled"},{"id":2,"status":"open"},{"id":3}]}"#;
    let stream = json!({"deleted": {"pointer": "/status", "equals": "cancelled"}});
    let gone: Vec<_> = records(stream, Response::new(200, body))
        .iter()
        .map(|r| r.2)
        .collect();
    assert_eq!(gone, [true, false, false]);
}

#[test]
fn case_107_a_wrong_shape_is_not_zero_records() {
    for body in [
        r#"{"ok":true,"rows":{}}"#,
        r#"{"ok":true}"#,
        "[]",
        "null",
        "",
        r#"{"rows":[{"id":1}"#,
    ] {
        let fault = fault(json!({}), Response::new(200, body));
        assert_eq!(fault.class, Class::Incomplete, "{body}: {}", fault.message);
        assert!(!fault.message.is_empty());
    }
}

#[test]
fn a_record_without_an_id_is_the_hosts_to_set_aside() {
    let page = poll(json!({}))
        .read::<Rest>(
            None,
            Response::new(200, r#"{"rows":[{"id":1},{"name":"x"}]}"#),
        )
        .unwrap();
    let ids: Vec<_> = page.records.iter().map(|record| &record.id).collect();
    assert_eq!(ids, ["1", ""]);
}

#[test]
fn case_105_a_web_page_is_temporary() {
    let fault = fault(
        json!({}),
        Response::new(200, "<!DOCTYPE html><html>maintenance</html>"),
    );
    assert_eq!(fault.class, Class::Temporary);
}

#[test]
fn a_missing_array_is_empty_only_where_the_configuration_says_so() {
    let stream = json!({"missing_is_empty": true, "paging": {"style": "token", "token": "/next", "param": "c"}});
    for body in [r#"{"next":"t2"}"#, r#"{"rows":null,"next":"t2"}"#] {
        let page = poll(stream.clone())
            .read::<Rest>(None, Response::new(200, body))
            .unwrap();
        assert_eq!((page.records.len(), page.next.len()), (0, 1), "{body}");
    }
    assert_eq!(
        fault(stream.clone(), Response::new(200, r#"{"rows":{}}"#)).class,
        Class::Incomplete
    );
    assert_eq!(
        fault(stream, Response::new(200, r#"{"next":"#)).class,
        Class::Incomplete
    );
}

#[test]
fn an_array_shorter_than_its_own_count_is_incomplete() {
    let stream = json!({"count": "/count"});
    let short = fault(
        stream.clone(),
        Response::new(200, r#"{"count":3,"rows":[{"id":1},{"id":2}]}"#),
    );
    assert_eq!(
        (short.class, short.code.as_str()),
        (Class::Incomplete, "count")
    );
    assert_eq!(
        records(
            stream,
            Response::new(200, r#"{"rows":[{"id":1},{"id":2}],"count":2}"#)
        )
        .len(),
        2
    );
}

#[test]
fn an_error_in_a_200_is_the_class_that_the_map_says() {
    let stream = json!({"errors": [
        {"pointer": "/error", "equals": "ratelimited", "class": "rate-limited", "wait": {"pointer": "/retry_in", "unit": "ms"}},
        {"pointer": "/error", "equals": ["token_revoked", "account_inactive"], "class": "auth-revoked"},
        {"pointer": "/ok", "equals": false, "class": "unknown", "code": "/error"},
    ]});
    let limited = fault(
        stream.clone(),
        Response::new(
            200,
            r#"{"ok":false,"error":"ratelimited","retry_in":1500.2}"#,
        ),
    );
    assert_eq!(
        (limited.class, limited.scope, limited.wait),
        (Class::RateLimited, Scope::Credential, Some(1501))
    );
    assert_eq!(limited.code, "ratelimited");
    let revoked = fault(
        stream.clone(),
        Response::new(200, r#"{"ok":false,"error":"account_inactive"}"#),
    );
    assert_eq!(
        (revoked.class, revoked.scope),
        (Class::AuthRevoked, Scope::Connection)
    );
    let other = fault(
        stream.clone(),
        Response::new(200, r#"{"ok":false,"error":"new_in_2031","rows":[]}"#),
    );
    assert_eq!(
        (other.class, other.code.as_str()),
        (Class::Unknown, "new_in_2031")
    );
    assert_eq!(
        records(
            stream,
            Response::new(200, r#"{"ok":true,"rows":[{"id":1}]}"#)
        )
        .len(),
        1
    );
}

#[test]
fn case_019_a_limit_behind_status_400() {
    let stream = json!({"errors": [
        {"status": 400, "pointer": "/error/code", "equals": [4, 17, 80004], "class": "rate-limited", "wait": "5m", "message": "/error/message"},
    ]});
    let body = r#"{"error":{"code":80004,"type":"OAuthException","message":"too many calls"}}"#;
    let limited = fault(stream.clone(), Response::new(400, body));
    assert_eq!(
        (limited.class, limited.code.as_str(), limited.wait),
        (Class::RateLimited, "80004", Some(300_000))
    );
    assert_eq!(limited.message, "HTTP 400: too many calls");
    // Another code keeps the status's usual meaning.
    assert_eq!(
        fault(stream, Response::new(400, r#"{"error":{"code":100}}"#)).class,
        Class::Permanent
    );
}

#[test]
fn rules_look_at_headers_and_text_too() {
    let stream = json!({"errors": [
        {"status": "5xx", "pointer": "/error/message", "contains": "Reduce the Amount", "class": "temporary", "smaller_page": true},
        {"header": "X-Reason", "equals": "burst", "class": "rate-limited", "scope": "app", "wait": {"header": "X-Wait", "unit": "m"}},
    ]});
    let body = r#"{"error":{"message":"Please reduce the amount of data you're asking for"}}"#;
    let big = fault(stream.clone(), Response::new(500, body));
    assert_eq!((big.class, big.page_size), (Class::Temporary, Some(50)));
    let burst = Response::new(403, "no")
        .with_header("x-reason", "burst")
        .with_header("x-wait", "2");
    let burst = fault(stream.clone(), burst);
    assert_eq!(
        (burst.class, burst.scope, burst.wait),
        (Class::RateLimited, Scope::App, Some(120_000))
    );
    assert_eq!(
        fault(stream, Response::new(403, "no")).class,
        Class::Permanent
    );
}

#[test]
fn presence_ignores_what_says_no() {
    let stream = json!({"errors": [{"pointer": "/errors", "class": "temporary"}]});
    for nothing in ["null", "false", "[]", "{}", "\"\"", "0"] {
        let body = format!(r#"{{"rows":[],"errors":{nothing}}}"#);
        assert_eq!(records(stream.clone(), Response::new(200, body)).len(), 0);
    }
    assert_eq!(
        fault(
            stream,
            Response::new(200, r#"{"rows":[],"errors":[{"m":1}]}"#)
        )
        .class,
        Class::Temporary
    );
}

#[test]
fn a_wait_that_makes_no_sense_is_none() {
    let stream =
        json!({"errors": [{"status": 429, "class": "rate-limited", "wait": {"pointer": "/wait"}}]});
    for (wait, expected) in [
        ("0", None),
        ("-5", None),
        ("\"soon\"", None),
        ("null", None),
        ("\"2.5\"", Some(2500)),
        ("1e400", None),
    ] {
        let body = format!(r#"{{"wait":{wait}}}"#);
        assert_eq!(
            fault(stream.clone(), Response::new(429, body)).wait,
            expected,
            "{wait}"
        );
    }
}

#[test]
fn an_empty_class_is_no_error() {
    let stream = json!({"errors": [{"status": 404, "pointer": "/message", "contains": "no rows", "class": "empty"}]});
    let page = poll(stream.clone())
        .read::<Rest>(None, Response::new(404, r#"{"message":"No rows found"}"#))
        .unwrap();
    assert!(page.records.is_empty() && page.next.is_empty());
    assert_eq!(
        fault(stream, Response::new(404, r#"{"message":"gone"}"#)).class,
        Class::Permanent
    );
    assert!(
        poll(json!({}))
            .read::<Rest>(None, Response::new(204, ""))
            .unwrap()
            .records
            .is_empty()
    );
}

#[test]
fn statuses_without_a_rule_mean_the_usual() {
    for (status, class) in [
        (202, Class::Pending),
        (401, Class::AuthExpired),
        (410, Class::PositionLost),
        (429, Class::RateLimited),
        (503, Class::Temporary),
        (404, Class::Permanent),
    ] {
        assert_eq!(
            fault(json!({}), Response::new(status, "{}")).class,
            class,
            "{status}"
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_incomplete() {
    let mut response = Response::new(200, "");
    response.body = Body::Bytes(vec![b'{', 0xff, b'}']);
    assert_eq!(fault(json!({}), response).class, Class::Incomplete);
}

#[test]
fn poll_after_and_totals() {
    let stream = json!({"poll_after": {"header": "X-Poll-Interval"}, "total": "/total"});
    let response =
        Response::new(200, r#"{"total":7,"rows":[]}"#).with_header("x-poll-interval", "60");
    let page = poll(stream).read::<Rest>(None, response).unwrap();
    assert_eq!((page.poll_after, page.total), (Some(60_000), Some(7)));
}

/// The vendor of these tests gives a sync token on the last page only.
#[test]
fn case_089_a_sync_token_is_stored_from_the_last_page() {
    let stream = json!({
        "paging": {"style": "token", "token": "/next", "param": "page"},
        "sync": {"token": "/sync", "param": "sync"},
        "deleted": {"pointer": "/status", "equals": "cancelled"},
    });
    let answer = |request: &Request| {
        let body = match (request.param("sync"), request.param("page")) {
            (None, None) => {
                json!({"rows": [{"id": "a"}, {"id": "b"}], "next": "p2", "sync": "not yet"})
            }
            (None, Some("p2")) => json!({"rows": [{"id": "c"}], "sync": "s2"}),
            (Some("s2"), None) => {
                json!({"rows": [{"id": "a", "status": "cancelled"}], "sync": "s3"})
            }
            _ => return Response::new(410, r#"{"error":"fullSyncRequired"}"#),
        };
        Response::new(200, body.to_string())
    };
    let first = poll(stream.clone()).walk::<Rest>(answer).unwrap();
    assert_eq!(first.ids(), ["a", "b", "c"]);
    assert_eq!(first.cursor.as_deref(), Some(r#""s2""#));
    let second = poll(stream.clone())
        .cursor(r#""s2""#)
        .walk::<Rest>(answer)
        .unwrap();
    assert_eq!(second.cursor.as_deref(), Some(r#""s3""#));
    assert!(second.records[0].0.deleted);
    let lost = poll(stream)
        .cursor(r#""s1""#)
        .walk::<Rest>(answer)
        .unwrap_err();
    assert_eq!(lost.class, Class::PositionLost);
}

#[test]
fn a_delta_url_begins_the_next_poll_and_an_empty_end_keeps_the_old_one() {
    let stream = json!({
        "paging": {"style": "next_url", "url": "/nextLink"},
        "sync": {"url": "/deltaLink"},
    });
    let response = Response::new(200, r#"{"rows":[],"deltaLink":"/delta?token=1"}"#)
        .with_url("https://api.example.test/rows");
    let page = poll(stream.clone()).read::<Rest>(None, response).unwrap();
    assert_eq!(
        page.cursor.as_deref(),
        Some(r#""https://api.example.test/delta?token=1""#)
    );
    let next = poll(stream.clone())
        .cursor(&page.cursor.unwrap())
        .request::<Rest>(None)
        .unwrap();
    assert!(
        matches!(next.target, weir_sdk::Target::Link(link) if link == "https://api.example.test/delta?token=1")
    );
    let kept = poll(stream)
        .cursor(r#""x""#)
        .read::<Rest>(None, Response::new(200, r#"{"rows":[],"deltaLink":null}"#))
        .unwrap();
    assert_eq!(kept.cursor, None);
}
