//! Paginators, URLs and the default meaning of a status.

use weir_sdk::json;
use weir_sdk::paging::{Keyset, NextUrl, Offset, PageNumber, Token};
use weir_sdk::{Body, Class, Data, Fault, Record, Request, Response, Scope, fault, url};

#[test]
fn a_keyset_keeps_the_vendors_own_text() {
    let at = |text| json::at(text, "").unwrap().unwrap();
    let after = Keyset::after(
        Some(at(r#""2031-03-04T10:00:00.982238Z""#)),
        at("1285704473650888702"),
    )
    .unwrap();
    let request = Request::get("api", "/rows").query("updated_since", "earlier");
    let request = after.apply(request, Some("updated_since"), "after_id");
    assert_eq!(
        request.param("updated_since"),
        Some("2031-03-04T10:00:00.982238Z")
    );
    assert_eq!(request.param("after_id"), Some("1285704473650888702"));
    assert_eq!(request.query.len(), 2);
    assert_eq!(Keyset::after(None, at("null")), None);
}

#[test]
fn case_075_every_spelling_of_the_end_is_the_end() {
    let next = |body| Token::next(json::at(body, "/next").unwrap()).map(|next| next.token);
    for end in [
        "{}",
        r#"{"next":null}"#,
        r#"{"next":""}"#,
        r#"{"next":false}"#,
    ] {
        assert_eq!(next(end), None, "{end}");
    }
    assert_eq!(next(r#"{"next":"a=\u0026b"}"#).as_deref(), Some("a=&b"));
    assert_eq!(
        next(r#"{"next":9007199254740993}"#).as_deref(),
        Some("9007199254740993")
    );
}

#[test]
fn numbers_and_offsets_go_on() {
    let page = PageNumber::first(0, 25).following();
    let request = page.apply(Request::get("api", "/rows"), "page", Some("size"));
    assert_eq!(
        (request.param("page"), request.param("size")),
        (Some("1"), Some("25"))
    );
    let offset = Offset::first(100).following(90).following(10);
    let request = offset.apply(Request::get("api", "/rows"), "offset", None);
    assert_eq!(
        (request.param("offset"), request.param("limit")),
        (Some("100"), None)
    );
}

#[test]
fn next_urls_in_the_body_may_be_relative() {
    let response = Response::new(200, "").with_url("https://api.example.test/v1/items?page=1#top");
    let next =
        |body| NextUrl::from_body(json::at(body, "/next").unwrap(), &response).map(|next| next.url);
    assert_eq!(
        next(r#"{"next":"?page=2"}"#).as_deref(),
        Some("https://api.example.test/v1/items?page=2")
    );
    assert_eq!(
        next(r#"{"next":"/v2/x"}"#).as_deref(),
        Some("https://api.example.test/v2/x")
    );
    for end in ["{}", r#"{"next":null}"#, r#"{"next":"  "}"#] {
        assert_eq!(next(end), None, "{end}");
    }
}

#[test]
fn references_resolve_as_the_rfc_says() {
    // The examples of RFC 3986, section 5.4.
    let base = "http://a/b/c/d;p?q";
    for (reference, wanted) in [
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/../x", "http://a/b/c/g#s/../x"),
    ] {
        assert_eq!(
            url::resolve(base, reference).as_deref(),
            Some(wanted),
            "{reference}"
        );
    }
    assert_eq!(url::resolve("nonsense", "g"), None);
    assert_eq!(
        url::resolve("https://a", "g").as_deref(),
        Some("https://a/g")
    );
}

#[test]
fn parts_of_urls() {
    assert_eq!(url::segment("a/b c?é"), "a%2Fb%20c%3F%C3%A9");
    assert_eq!(url::segment(".."), "%2E%2E");
    let link = "https://a.test/x?after=Y3%3D+d&page=2#page=3";
    assert_eq!(url::param(link, "after").as_deref(), Some("Y3= d"));
    assert_eq!(url::param(link, "page").as_deref(), Some("2"));
    assert_eq!(url::param(link, "none"), None);
}

#[test]
fn a_record_from_elsewhere_is_copied() {
    let answer = String::from(r#"{"id":1}"#);
    let other = String::from(r#"{"id":1}"#);
    assert!(matches!(
        Record::of(&answer, &answer, "1").data,
        Data::Slice(_)
    ));
    assert!(matches!(
        Record::of(&answer, &other, "1").data,
        Data::Text(_)
    ));
    assert!(
        matches!(
            Record::of(&answer[..4], &answer[2..], "1").data,
            Data::Text(_)
        ),
        "only half of it is inside"
    );
    let slice = Record::of(&answer, &answer[6..7], "1");
    assert_eq!(slice.json(&answer), Some("1"));
}

#[test]
fn statuses_mean_what_they_mean_by_default() {
    let of = |status, body: &str| fault::from_status(&Response::new(status, body));
    for (status, class) in [
        (202, Class::Pending),
        (301, Class::Permanent),
        (400, Class::Permanent),
        (401, Class::AuthExpired),
        (403, Class::Permanent),
        (404, Class::Permanent),
        (408, Class::Temporary),
        (410, Class::PositionLost),
        (422, Class::Permanent),
        (425, Class::Temporary),
        (429, Class::RateLimited),
        (444, Class::Unknown),
        (500, Class::Temporary),
        (503, Class::Temporary),
        (511, Class::Temporary),
        (530, Class::Temporary),
        (700, Class::Unknown),
    ] {
        assert_eq!(of(status, "").class, class, "{status}");
        assert_eq!(of(status, "").code, status.to_string());
    }
    assert!(Response::new(200, "").success().is_ok());
    assert!(Response::new(204, "").success().is_ok());
    assert_eq!(
        Response::new(202, "{}").success().unwrap_err().class,
        Class::Pending
    );
}

#[test]
fn case_017_a_403_with_a_limit_signal_is_a_limit() {
    let forbidden = || Response::new(403, r#"{"message":"Resource not accessible"}"#);
    assert_eq!(fault::from_status(&forbidden()).class, Class::Permanent);
    for limited in [
        forbidden().with_header("X-RateLimit-Remaining", "0"),
        forbidden().with_header("X-RateLimit-Remaining", "0.0"),
        forbidden().with_header("Retry-After", "30"),
        Response::new(
            403,
            r#"{"message":"You have exceeded a secondary rate limit."}"#,
        ),
    ] {
        let fault = fault::from_status(&limited);
        assert_eq!(
            (fault.class, fault.scope),
            (Class::RateLimited, Scope::Credential)
        );
        assert_eq!(fault.wait, None, "headers are the host's to read");
    }
    let left = forbidden()
        .with_header("X-RateLimit-Remaining", "4999")
        .with_header("Retry-After", "");
    assert_eq!(fault::from_status(&left).class, Class::Permanent);
}

#[test]
fn messages_are_the_vendors_own_words_and_short() {
    let said = |body: &str| fault::message(&Response::new(400, body));
    assert_eq!(
        said(r#"{"error":{"message":"bad\nfilter"}}"#),
        "HTTP 400: bad filter"
    );
    assert_eq!(
        said(r#"{"title":"Bad","detail":"No such field"}"#),
        "HTTP 400: No such field"
    );
    assert_eq!(
        said(r#"{"errors":[{"message":"first"}]}"#),
        "HTTP 400: first"
    );
    assert_eq!(said(""), "HTTP 400");
    assert_eq!(said("Slow down."), "HTTP 400: Slow down.");
    assert!(said(&"long ".repeat(1000)).chars().count() < 180);
}

#[test]
fn bytes_that_are_no_text_are_incomplete() {
    let mut response = Response::new(200, "");
    response.body = Body::Bytes(vec![0xff, b'{']);
    assert_eq!(response.text().unwrap_err().class, Class::Incomplete);
    response.body = Body::Bytes(b"{\"a\":1}".to_vec());
    let fault: Result<&str, Fault> = response.text();
    assert_eq!(fault.unwrap(), r#"{"a":1}"#);
}
