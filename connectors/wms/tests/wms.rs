//! The connector as the host calls it, against hand-made answers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use weir_sdk::testing::Poll;
use weir_sdk::{Class, Connector, Fault, Response, Scope, Target};
use wms::Wms;

const NOW: i64 = 1_930_384_800_000; // 2031-03-04T10:00:00Z
const HOUR: i64 = 3_600_000;
const CONFIG: &str = r#"{"url":"https://wms.example.test/api/v1/","sites":["north","south"]}"#;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/", $name, ".json"))
    };
}

fn poll(stream: &str) -> Poll {
    Poll::new(stream, CONFIG, NOW)
        .partition("north")
        .since(NOW - HOUR)
        .page_size(2)
}

fn fault(status: u16, body: &str) -> Fault {
    poll("inventory")
        .read::<Wms>(None, Response::new(status, body))
        .unwrap_err()
}

#[test]
fn a_window_is_read_page_by_page() {
    let walk = poll("inventory")
        .walk::<Wms>(|request| {
            assert!(matches!(&request.target, Target::Path(path) if path == "/inventory"));
            for (name, value) in [
                ("site", "north"),
                ("updated_since", "2031-03-04T09:00:00Z"),
                ("updated_until", "2031-03-04T10:00:00Z"),
                ("page_size", "2"),
            ] {
                assert_eq!(request.param(name), Some(value), "{name}");
            }
            match request.param("page") {
                Some("1") => Response::new(200, fixture!("inventory_1")),
                Some("2") => Response::new(200, fixture!("inventory_2")),
                other => panic!("page {other:?}"),
            }
        })
        .unwrap();
    // A slash in a part stays part of it.
    assert_eq!(
        walk.ids(),
        ["PUMP-2/A-01-3", "PUMP-2/B-07-1", "VALVE%2F9/A-01-3"]
    );
    assert_eq!(walk.total, Some(3));
    let movements = poll("movements")
        .walk::<Wms>(|_| Response::new(200, fixture!("movements")))
        .unwrap();
    assert_eq!(movements.ids(), ["900001"]);
}

#[test]
fn a_page_that_was_cut_is_refused_whole() {
    let found = fault(200, fixture!("inventory_cut"));
    assert_eq!(
        (found.class, found.code.as_str()),
        (Class::Incomplete, "count")
    );
}

#[test]
fn a_row_without_what_makes_it_a_row_is_no_answer() {
    let whole = r#"{"sku_id":"P","location_code":"A","pick_count":1,"last_updated_ts":"2031-03-04T09:00:00Z"}"#;
    for (from, to) in [
        (r#""sku_id":"P","#, ""),
        (r#""location_code":"A""#, r#""location_code":null"#),
        (r#""pick_count":1"#, r#""pick_count":"many""#),
        (r#""pick_count":1,"#, ""),
        (r#""2031-03-04T09:00:00Z""#, r#""yesterday""#),
    ] {
        let body = format!(r#"{{"items":[{}],"count":1}}"#, whole.replace(from, to));
        let found = fault(200, &body);
        assert_eq!(found.class, Class::Incomplete, "{body}");
    }
}

#[test]
fn without_a_page_count_a_full_page_is_followed() {
    let row = |n| {
        format!(
            r#"{{"sku_id":"P{n}","location_code":"A","pick_count":1,"last_updated_ts":"2031-03-04T09:00:00Z"}}"#
        )
    };
    let walk = poll("inventory")
        .walk::<Wms>(|request| {
            let rows = match request.param("page") {
                Some("1") => [row(1), row(2)].join(","),
                _ => row(3),
            };
            Response::new(200, format!(r#"{{"items":[{rows}]}}"#))
        })
        .unwrap();
    assert_eq!(walk.ids().len(), 3);
}

#[test]
fn a_batch_at_night_holds_the_whole_warehouse() {
    let found = fault(
        423,
        r#"{"error":{"code":"BATCH","message":"tables are locked"}}"#,
    );
    assert_eq!(
        (found.class, found.scope, found.code.as_str()),
        (Class::Temporary, Scope::Connection, "423/BATCH")
    );
    for (status, class) in [
        (401, Class::AuthExpired),
        (404, Class::Permanent),
        (429, Class::RateLimited),
        (503, Class::Temporary),
        (504, Class::Temporary),
    ] {
        assert_eq!(fault(status, "").class, class, "{status}");
    }
}

#[test]
fn it_publishes_no_limits_and_its_rows_have_a_schema() {
    let config = serde_json::from_str(CONFIG).unwrap();
    let descriptor = Wms::describe(Some(&config)).unwrap();
    assert!(descriptor.pacing.unpublished_limits);
    assert_eq!(descriptor.origins[0].url, "https://wms.example.test/api/v1");
    for stream in &descriptor.streams {
        let schema: serde_json::Value =
            serde_json::from_str(stream.schema.as_deref().unwrap()).unwrap();
        assert_eq!(schema["required"].as_array().unwrap().len(), 4);
    }
    assert_eq!(
        Wms::partitions(&config, "inventory").unwrap(),
        ["north", "south"]
    );
}
