//! Streams below streams, asked for by a person.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use run_support::vendor::{Vendor, json};
use run_support::*;

#[test]
fn one_sync_reads_a_stream_and_what_hangs_below_it() {
    let vendor = Vendor::new(|asked| {
        json(match asked.target.split('?').next().unwrap() {
            "/chat/orders" => r#"{"orders":[{"id":1},{"id":2}]}"#,
            "/chat/orders/1/items" => r#"[{"id":"bolt"},{"id":"nut"}]"#,
            "/chat/orders/2/items" => r#"[{"id":"bolt"}]"#,
            _ => "[]",
        })
    });
    let below = r#"
[connection.chat.config.streams.items]
path = "/orders/{parent.id}/items"
id = "/id"
parent = "orders"
[connection.chat.streams.items]
"#;
    let place = Place::new(&format!(
        "{}{below}{FILES}",
        connection("chat", &vendor.origin(), "")
    ));
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 0, "{report}");
    let units: Vec<&str> = report["units"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unit| unit["unit"].as_str().unwrap())
        .collect();
    assert_eq!(units, ["chat/items/1", "chat/items/2", "chat/orders"]);
    let mut keys = place.keys("chat");
    keys.sort();
    assert_eq!(keys, ["1@1", "2@1", "bolt@1", "bolt@1", "nut@1"]);
    // A second one finds all of it known.
    let (report, exit) = place.sync(&["chat/items/1"]);
    assert_eq!((exit, report["units"].as_array().unwrap().len()), (0, 1));
    assert_eq!(place.keys("chat").len(), 5);
}
