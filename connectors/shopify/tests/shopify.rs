//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use shopify::Shopify;
use weir_sdk::testing::Poll;
use weir_sdk::{Body, Class, Connector, Fault, Order, Request, Response, Scope, Target};

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const HOUR: i64 = 3_600_000;
const CONFIG: &str = r#"{"shop":"acme"}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll(stream: &str) -> Poll {
    Poll::new(stream, CONFIG, NOW).since(NOW - HOUR)
}

fn fault(stream: &str, response: Response) -> Fault {
    poll(stream).read::<Shopify>(None, response).unwrap_err()
}

fn variables(request: &Request) -> serde_json::Value {
    match &request.body {
        Some(Body::Text(text)) => {
            serde_json::from_str::<serde_json::Value>(text).unwrap()["variables"].clone()
        }
        other => panic!("no text: {other:?}"),
    }
}

#[test]
fn orders_are_asked_for_by_change_and_their_link_is_followed_as_it_is() {
    let link = "https://acme.myshopify.com/admin/api/2026-10/orders.json?limit=2&page_info=eyJkaXJlY3Rpb24iOiJuZXh0In0";
    let walk = poll("orders")
        .walk::<Shopify>(|request| match &request.target {
            Target::Path(path) => {
                assert_eq!(path, "/orders.json");
                for (name, value) in [
                    ("status", "any"),
                    ("order", "updated_at asc"),
                    ("limit", "100"),
                    ("updated_at_min", "2031-03-04T09:00:00Z"),
                    ("updated_at_max", "2031-03-04T10:00:00Z"),
                ] {
                    assert_eq!(request.param(name), Some(value), "{name}");
                }
                Response::new(200, fixture!("orders_1"))
                    .with_header("Link", &format!("<{link}>; rel=\"next\""))
            }
            Target::Link(found) => {
                assert_eq!(found, link);
                assert!(request.query.is_empty());
                Response::new(200, r#"{"orders":[]}"#)
            }
        })
        .unwrap();
    assert_eq!(walk.ids(), ["5000000000001", "5000000000002"]);
    assert_eq!(walk.records[0].0.updated_at, Some(1_930_381_500_000));
    let customers = poll("customers").request::<Shopify>(None).unwrap();
    assert_eq!(customers.param("status"), None);
}

#[test]
fn products_are_paged_by_cursor_and_tell_the_points_that_are_left() {
    let mut asked = Vec::new();
    let walk = poll("products")
        .walk::<Shopify>(|request| {
            asked.push(variables(request));
            let first = asked.last().unwrap()["after"].is_null();
            Response::new(
                200,
                if first {
                    fixture!("products_1")
                } else {
                    fixture!("products_2")
                },
            )
        })
        .unwrap();
    assert_eq!(walk.ids(), ["gid://shopify/Product/8001"]);
    assert_eq!(
        asked[0]["query"],
        "updated_at:>='2031-03-04T09:00:00Z' AND updated_at:<='2031-03-04T10:00:00Z'"
    );
    assert_eq!(asked[1]["after"], "eyJsYXN0X2lkIjo4MDAxfQ==");
    let page = poll("products")
        .read::<Shopify>(None, Response::new(200, fixture!("products_1")))
        .unwrap();
    let limit = &page.limits[0];
    assert_eq!(
        (
            limit.bucket.as_deref(),
            limit.limit,
            limit.remaining,
            limit.restores
        ),
        (Some("graphql"), Some(2000), Some(1948), Some(100.0))
    );
    let first = Poll::new("inventory_items", CONFIG, NOW)
        .request::<Shopify>(None)
        .unwrap();
    assert_eq!(
        variables(&first)["query"],
        "updated_at:<='2031-03-04T10:00:00Z'"
    );
    assert_eq!(first.bucket.as_deref(), Some("graphql"));
}

#[test]
fn a_throttled_query_waits_until_it_can_be_paid() {
    let found = fault("products", Response::new(200, fixture!("throttled")));
    assert_eq!(
        (found.class, found.scope, found.code.as_str(), found.wait),
        (
            Class::RateLimited,
            Scope::Credential,
            "THROTTLED",
            Some(8_500)
        )
    );
}

#[test]
fn errors_in_a_success_are_faults_by_their_code() {
    for (code, class) in [
        ("ACCESS_DENIED", Class::Permanent),
        ("SHOP_INACTIVE", Class::Permanent),
        ("INTERNAL_SERVER_ERROR", Class::Temporary),
        ("SOMETHING_NEW", Class::Unknown),
    ] {
        let body = format!(
            r#"{{"data":null,"errors":[{{"message":"no","extensions":{{"code":"{code}"}}}}]}}"#
        );
        assert_eq!(
            fault("products", Response::new(200, body)).class,
            class,
            "{code}"
        );
    }
    let dear = fault(
        "products",
        Response::new(
            200,
            r#"{"errors":[{"message":"Query cost is 1204","extensions":{"code":"MAX_COST_EXCEEDED"}}]}"#,
        ),
    );
    assert_eq!((dear.class, dear.page_size), (Class::Temporary, Some(50)));
    let parse = fault("products", Response::new(200, r#"{"errors":"[API] no"}"#));
    assert_eq!(
        (parse.class, parse.message.as_str()),
        (Class::Unknown, "[API] no")
    );
}

#[test]
fn refusals_are_told_apart() {
    for (status, body, class) in [
        (
            401,
            r#"{"errors":"[API] Invalid API key or access token"}"#,
            Class::AuthRevoked,
        ),
        (402, r#"{"errors":"Unavailable Shop"}"#, Class::Permanent),
        (
            403,
            r#"{"errors":"This action requires merchant approval"}"#,
            Class::Permanent,
        ),
        (404, r#"{"errors":"Not Found"}"#, Class::Permanent),
        (
            400,
            r#"{"errors":{"page_info":"Invalid value."}}"#,
            Class::PositionLost,
        ),
        (422, r#"{"errors":{"base":["no"]}}"#, Class::Permanent),
        (423, r#"{"errors":"Locked"}"#, Class::Temporary),
        (
            429,
            r#"{"errors":"Exceeded 2 calls per second for api client."}"#,
            Class::RateLimited,
        ),
        (430, "", Class::RateLimited),
        (503, "", Class::Temporary),
    ] {
        assert_eq!(
            fault("orders", Response::new(status, body)).class,
            class,
            "{status} {body}"
        );
    }
}

#[test]
fn what_is_no_listing_is_a_fault() {
    for stream in ["orders", "products"] {
        for body in [
            "",
            "<html>",
            r#"{"orders":[{"id":5"#,
            r#"{"data":{}}"#,
            "null",
        ] {
            let fault = fault(stream, Response::new(200, body));
            assert!(
                matches!(fault.class, Class::Incomplete | Class::Temporary),
                "{body}: {fault:?}"
            );
        }
    }
}

#[test]
fn shop_and_version_name_the_origin() {
    let config = serde_json::from_str(r#"{"shop":"acme","version":"2026-07"}"#).unwrap();
    let descriptor = Shopify::describe(Some(&config)).unwrap();
    assert_eq!(
        descriptor.origins[0].url,
        "https://acme.myshopify.com/admin/api/2026-07"
    );
    assert_eq!(descriptor.streams.len(), 4);
}

#[test]
fn an_order_is_promised_only_where_the_query_asks_for_one() {
    let streams = Shopify::describe(None).unwrap().streams;
    let order = |name: &str| {
        streams
            .iter()
            .find(|stream| stream.name == name)
            .unwrap()
            .order
    };
    assert_eq!(order("products"), Order::Ascending);
    assert_eq!(order("inventory_items"), Order::Unordered);
}
