//! `weir record`: real answers as walks, without what must not be kept.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;

use crate::cli_support::Place;

const TOKEN: &str = "tok-S3CR3T-9f2";

/// A vendor of two pages, which repeats the token in its links and sends a cookie. It lives as long as the process.
fn vendor() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut bytes = [0; 1024];
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut bytes) {
                    Ok(read @ 1..) => head.extend_from_slice(&bytes[..read]),
                    _ => break,
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let body = if head.contains("after=p2") {
                r#"{"orders":[{"id":3,"updated_at":"2031-03-04T09:30:00Z","email":"c@example.test","total":1.10}],"next":null}"#.to_owned()
            } else {
                format!(
                    r#"{{"orders":[{{"id":1,"updated_at":"2031-03-04T09:10:00Z","email":"a@example.test","total":7.0}},
                        {{"id":2,"updated_at":"2031-03-04T09:10:00Z","email":"b@example.test","total":12345678901234567890}}],
                        "next":"p2","self":"http://127.0.0.1/orders?access_token={TOKEN}"}}"#
                )
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nset-cookie: sid=c00kie\r\nx-session-id: s3ss\r\n\
                 x-ratelimit-remaining: 41\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            // A client that has gone is no fault of the vendor.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn connectors() -> PathBuf {
    let dist = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/connectors");
    let dir =
        std::env::var_os("WEIR_CONNECTORS").map_or_else(|| PathBuf::from(dist), PathBuf::from);
    std::path::absolute(dir).unwrap()
}

fn shop(port: u16) -> Place {
    let place = Place::new();
    let rest = connectors().join("rest.wasm");
    place.make("connectors");
    std::fs::copy(&rest, place.dir().join("connectors/rest.wasm")).unwrap_or_else(|error| {
        panic!(
            "{}: {error}: build it with `cargo xtask build`",
            rest.display()
        )
    });
    place.write(
        "weir.toml",
        &format!(
            r#"
[connection.shop]
connector = "rest"
auth = {{ bearer = {{ env = "SHOP_TOKEN" }} }}

[connection.shop.config]
base_url = "http://127.0.0.1:{port}"

[connection.shop.config.streams.orders]
path = "/orders"
records = "/orders"
id = "/id"
updated_at = "/updated_at"
paging = {{ style = "token", param = "after", token = "/next" }}
page_size = 2

[sink.main]
type = "file"
path = "out.ndjson"
"#
        ),
    );
    place
}

#[test]
fn what_is_recorded_holds_no_secret_passes_the_test_and_leaves_the_store_alone() {
    let place = shop(vendor());
    let with = [("SHOP_TOKEN", TOKEN)];
    let record = [
        "record",
        "--connection",
        "shop",
        "--scrub",
        "/orders/*/email",
        "--out",
        "rest/walks",
    ];
    let recorded = place.weir_with(&record, &with);
    assert_eq!(recorded.exit, 0, "{recorded:?}");
    assert!(
        recorded
            .out
            .contains("rest/walks/orders.json  shop/orders: 2 calls, 3 records"),
        "{recorded:?}"
    );

    let text = place.read("rest/walks/orders.json");
    for gone in [
        TOKEN,
        "S3CR3T",
        "c00kie",
        "s3ss",
        "@example.test",
        "authorization",
    ] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    // Of each call, not of each answer too.
    assert_eq!(text.matches("\"url\"").count(), 2, "{text}");
    for kept in [
        "12345678901234567890",
        "1.10",
        "x-ratelimit-remaining",
        "\"after\", \"p2\"",
        "[redacted]",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }

    let tested = place.weir(&["test", "rest", "--component", "connectors/rest.wasm"]);
    assert_eq!(tested.exit, 0, "{}", tested.out);
    assert!(tested.out.contains("walk orders"), "{}", tested.out);

    // A second recording lies beside the first, and the host still begins at the start.
    assert_eq!(place.weir_with(&record, &with).exit, 0);
    assert!(place.dir().join("rest/walks/orders_2.json").is_file());
    let synced = place.weir_with(&["sync"], &with);
    assert_eq!(synced.exit, 0, "{synced:?}");
    assert_eq!(place.read("out.ndjson").lines().count(), 3);
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let place = shop(1);
    let with = [("SHOP_TOKEN", TOKEN)];
    let unknown = place.weir_with(&["record", "--connection", "shopp"], &with);
    assert_eq!(unknown.exit, 2, "{unknown:?}");
    assert!(unknown.err.contains("shop"), "{unknown:?}");
    let pointer = place.weir_with(
        &["record", "--connection", "shop", "--scrub", "email"],
        &with,
    );
    assert_eq!(pointer.exit, 2, "{pointer:?}");
    assert!(pointer.err.contains("JSON pointer"), "{pointer:?}");
    // Nobody listens on port 1: there is a file without exchanges, and the reason.
    let refused = place.weir_with(&["record", "--connection", "shop"], &with);
    assert!(refused.out.contains("could not connect"), "{refused:?}");
    assert!(
        !place.dir().join("walks/orders.json").exists(),
        "{refused:?}"
    );
    assert_eq!(refused.exit, 1, "{refused:?}");
}
