//! What may stand in a configuration: the shipped examples, the schema, and what is said of combinations that cannot work.
#![recursion_limit = "256"]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use rest::Rest;
use serde_json::{Value, json};
use weir_sdk::contract::Guest as _;
use weir_sdk::testing::Poll;
use weir_sdk::{AuthScheme, Class, CursorKind, Descriptor, Fault, Guest, Order, Response};

const ORDERS: &str = include_str!("../examples/orders.toml");
const WAREHOUSE: &str = include_str!("../examples/warehouse.toml");

fn describe(config: &Value) -> Result<Descriptor, Fault> {
    Guest::<Rest>::describe(Some(config.to_string()))
}

fn schema() -> Value {
    serde_json::from_str(&Guest::<Rest>::describe(None).unwrap().config_schema).unwrap()
}

/// The `config` table of an example's only connection.
fn example(text: &str) -> Value {
    let file: toml::Table = toml::from_str(text).unwrap();
    let file = serde_json::to_value(file).unwrap();
    let connections = file["connection"].as_object().unwrap();
    connections.values().next().unwrap()["config"].clone()
}

fn config(stream: Value) -> Value {
    let mut keys = json!({"path": "/rows", "id": "/id"});
    for (key, value) in stream.as_object().unwrap() {
        keys[key] = value.clone();
    }
    json!({"base_url": "https://api.example.test", "streams": {"rows": keys, "owners": {"path": "/owners", "id": "/id"}}})
}

#[test]
fn without_a_config_it_says_what_it_takes() {
    let descriptor = Guest::<Rest>::describe(None).unwrap();
    assert_eq!(descriptor.name, "rest");
    assert_eq!(descriptor.origins[0].url, "{base_url}");
    assert!(descriptor.origins[0].auth.contains(&AuthScheme::Bearer));
    assert!(descriptor.streams.is_empty());
    jsonschema::draft202012::meta::validate(&schema()).unwrap();
}

#[test]
fn every_table_of_the_schema_is_closed_and_explained() {
    fn walk(at: &Value, path: &str, open: &mut Vec<String>) {
        if let Value::Object(members) = at {
            let object = members.get("type") == Some(&json!("object"));
            if object && members.contains_key("properties") {
                if members.get("additionalProperties") != Some(&json!(false)) {
                    open.push(format!("{path} is open"));
                }
                for (key, property) in members["properties"].as_object().unwrap() {
                    let explained = ["description", "$ref", "enum"]
                        .iter()
                        .any(|word| property.get(word).is_some());
                    if !explained {
                        open.push(format!("{path}.{key} is not explained"));
                    }
                }
            }
            for (key, value) in members {
                walk(value, &format!("{path}/{key}"), open);
            }
        }
        if let Value::Array(items) = at {
            for item in items {
                walk(item, path, open);
            }
        }
    }
    let mut open = Vec::new();
    walk(&schema(), "", &mut open);
    assert_eq!(open, Vec::<String>::new());
}

/// Schema and reader know the same keys: the reader takes a configuration that uses every key of the schema, and where
/// the schema has a key that the reader lacks (or the other way round) one of the two complains.
#[test]
fn schema_and_reader_know_the_same_keys() {
    let told = json!({"pointer": "/w", "header": "W", "unit": "ms"});
    let rule = json!({
        "status": [400], "pointer": "/e", "header": "E", "equals": 1, "contains": "x", "class": "temporary",
        "scope": "unit", "code": "c", "message": "/m", "wait": told, "smaller_page": true,
    });
    let time = json!({"pointer": "/at", "format": "naive", "utc_offset": "+01:00", "dst_offset": "+02:00"});
    let everything = json!({
        "base_url": "https://api.example.test",
        "headers": {"X": "y"}, "query": {"a": 1},
        "oauth2": {"token_url": "https://id.example.test/token", "authorize_url": "https://id.example.test/", "scopes": ["r"], "client_in_body": true},
        "pacing": {
            "min_interval": "1s", "max_interval": "1m", "unpublished_limits": true, "concurrency": 2, "backoff_cap": "5m",
            "not_modified_is_free": true,
            "limits": [{"limit": 1, "per": "1s", "bucket": "b", "unit": "points", "scope": "app"}],
        },
        "errors": [rule],
        "streams": {"rows": {
            "title": "Rows", "path": "/rows", "method": "POST", "idempotency_header": "Key", "query": {}, "headers": {}, "body": {},
            "partitions": ["p"], "parent": "owners", "records": "/rows", "missing_is_empty": true, "id": ["/id"],
            "updated_at": time, "deleted": {"pointer": "/gone", "equals": true}, "required": ["/id"], "volatile": ["/v"],
            "count": "/count", "total": "/total", "cursor": "timestamp", "order": "ascending",
            "window": {"since": "s", "until": "u", "format": "date", "utc_offset": "Z", "dst_offset": "Z", "since_exclusive": true, "start": "2020-01-01T00:00:00Z"},
            "sync": {"token": "/t", "param": "t", "url": "/u"},
            "paging": {
                "style": "keyset", "after_id": "i", "after_time": "t", "param": "p", "first": 0, "token": "/t", "token_header": "T",
                "token_end": ["x"], "token_only": true, "after_exclusive": true, "short_page_ends": true, "rel": "next", "url": "/u",
                "has_more": "/m", "is_last": "/l",
            },
            "page_size": 10, "page_size_param": "limit", "granularity": "1s", "settle": "1m", "retention": "90d",
            "window_cap": "1h", "result_cap": 1000, "conditional": true, "poll_after": told, "bucket": "b", "cost": 2, "errors": [rule],
        }},
    });
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&everything)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    // The reader knows them all too: what it complains of is that they contradict each other.
    let fault = describe(&everything).unwrap_err();
    assert!(
        !fault.message.contains("unknown field"),
        "{}",
        fault.message
    );

    // No key of the schema is missing above.
    let mut unused = Vec::new();
    let streams = &everything["streams"]["rows"];
    for (table, used) in [
        (&schema["properties"], &everything),
        (
            &schema["properties"]["oauth2"]["properties"],
            &everything["oauth2"],
        ),
        (
            &schema["properties"]["pacing"]["properties"],
            &everything["pacing"],
        ),
        (
            &schema["properties"]["pacing"]["properties"]["limits"]["items"]["properties"],
            &everything["pacing"]["limits"][0],
        ),
        (&schema["$defs"]["stream"]["properties"], streams),
        (
            &schema["$defs"]["stream"]["properties"]["window"]["properties"],
            &streams["window"],
        ),
        (
            &schema["$defs"]["stream"]["properties"]["sync"]["properties"],
            &streams["sync"],
        ),
        (&schema["$defs"]["paging"]["properties"], &streams["paging"]),
        (&schema["$defs"]["source"]["properties"], &told),
        (&schema["$defs"]["errors"]["items"]["properties"], &rule),
    ] {
        let keys = table.as_object().unwrap().keys();
        unused.extend(keys.filter(|key| used.get(key.as_str()).is_none()).cloned());
    }
    assert_eq!(unused, Vec::<String>::new());
}

#[test]
fn the_examples_are_valid_and_say_what_they_mean() {
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for text in [ORDERS, WAREHOUSE] {
        let config = example(text);
        let errors: Vec<String> = validator
            .iter_errors(&config)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new());
    }
    let orders = describe(&example(ORDERS)).unwrap();
    let stream = &orders.streams[0];
    assert_eq!(
        (stream.cursor, stream.order, stream.page_size),
        (CursorKind::Timestamp, Order::Ascending, 100)
    );
    let warehouse = describe(&example(WAREHOUSE)).unwrap();
    assert!(warehouse.pacing.unpublished_limits);
    let gate: Value =
        serde_json::from_str(warehouse.streams[0].schema.as_deref().unwrap()).unwrap();
    assert_eq!(
        gate["required"],
        json!(["sku_id", "location_code", "pick_count", "last_updated_ts"])
    );
    assert_eq!(
        Guest::<Rest>::partitions("picks".to_owned(), example(WAREHOUSE).to_string()).unwrap(),
        ["LEEDS-02", "YORK-01"]
    );
}

#[test]
fn the_readmes_examples_are_valid_too() {
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let blocks: Vec<&str> = include_str!("../README.md")
        .split("```toml\n")
        .skip(1)
        .collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let config = example(block.split("```").next().unwrap());
        let errors: Vec<String> = validator
            .iter_errors(&config)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(describe(&config).unwrap().streams.len(), 1);
    }
}

#[test]
fn every_key_stands_in_the_readme() {
    let readme = include_str!("../README.md");
    let schema = schema();
    for table in [
        "",
        "/$defs/stream",
        "/$defs/paging",
        "/$defs/errors/items",
        "/$defs/stream/properties/window",
        "/properties/pacing",
    ] {
        for key in schema.pointer(table).unwrap()["properties"]
            .as_object()
            .unwrap()
            .keys()
        {
            let said = ["`", ".", " "].iter().any(|before| {
                ["`", ".", "["]
                    .iter()
                    .any(|after| readme.contains(&format!("{before}{key}{after}")))
            });
            assert!(said, "{key}");
        }
    }
}

#[test]
fn the_orders_example_walks_by_time_and_id() {
    let now = 1_930_384_800_000;
    let poll = Poll::new("orders", &example(ORDERS).to_string(), now).since(now - 120_000);
    let mut answers = [
        r#"{"orders":[{"id":1,"updated_at":"2031-03-04T09:59:00Z","status":"open"},{"id":2,"updated_at":"2031-03-04T09:59:00Z","status":"deleted"}],"has_more":true}"#,
        r#"{"orders":[{"id":3,"updated_at":"2031-03-04T09:59:30Z","status":"open"}],"has_more":false}"#,
    ]
    .iter();
    let walk = poll
        .walk::<Rest>(|_| Response::new(200, *answers.next().unwrap()))
        .unwrap();
    assert_eq!(walk.ids(), ["1", "2", "3"]);
    assert!(walk.records[1].0.deleted);
    let second = &walk.requests[1];
    assert_eq!(second.param("updated_since"), Some("2031-03-04T09:59:00Z"));
    assert_eq!(
        (second.param("after_id"), second.param("status")),
        (Some("2"), Some("any"))
    );
    let fault = poll.read::<Rest>(
        None,
        Response::new(
            200,
            r#"{"ok":false,"error":"ratelimited","retry_after":12}"#,
        ),
    );
    assert_eq!(fault.unwrap_err().wait, Some(12_000));
}

#[test]
fn the_warehouse_example_refuses_a_short_page() {
    let now = 1_930_384_800_000;
    let poll = Poll::new("picks", &example(WAREHOUSE).to_string(), now)
        .since(now - 120_000)
        .partition("LEEDS-02");
    let request = poll.request::<Rest>(None).unwrap();
    assert!(
        matches!(&request.target, weir_sdk::Target::Path(path) if path == "/locations/LEEDS-02/picks")
    );
    // The bound is exclusive: one second earlier.
    assert_eq!(request.param("changed_after"), Some("1930384679"));
    let body = r#"{"count":2,"total_items":2,"items":[{"sku_id":"A-1","location_code":"LEEDS-02","pick_count":7,"last_updated_ts":1930384711}]}"#;
    assert_eq!(
        poll.read::<Rest>(None, Response::new(200, body))
            .unwrap_err()
            .class,
        Class::Incomplete
    );
    let page = poll
        .read::<Rest>(
            None,
            Response::new(
                200,
                body.replace(
                    "\"count\":2,\"total_items\":2",
                    "\"count\":1,\"total_items\":1",
                ),
            ),
        )
        .unwrap();
    assert_eq!(page.records[0].id, "A-1/LEEDS-02");
    assert_eq!(page.records[0].updated_at, Some(1_930_384_711_000));
    assert!(page.next.is_empty());
}

#[test]
fn what_cannot_work_is_named_with_what_is_right() {
    let keyset = |more: Value| {
        let mut paging = json!({"style": "keyset", "after_id": "after"});
        for (key, value) in more.as_object().unwrap() {
            paging[key] = value.clone();
        }
        json!({"paging": paging})
    };
    for (stream, key, hint) in [
        (json!({"recrods": "/rows"}), "streams.rows", "recrods"),
        (json!({"settle": "5seconds"}), "streams.rows", "\"30s\""),
        (json!({"id": []}), "id", "\"/id\""),
        (json!({"id": "id"}), "id", "\"/id\""),
        (
            json!({"records": "data.items"}),
            "records",
            "\"/data/items\"",
        ),
        (json!({"path": "rows"}), "path", "slash"),
        (json!({"path": "/rows/{repo}"}), "path", "{partition}"),
        (json!({"path": "/rows?x=1"}), "path", "query"),
        (
            json!({"path": "/rows/{partition}"}),
            "partitions",
            "missing",
        ),
        (json!({"path": "/rows/{parent.id}"}), "partitions", "parent"),
        (json!({"partitions": ["a"]}), "partitions", "{partition}"),
        (
            json!({"path": "/{parent.id}", "parent": "rows"}),
            "parent",
            "`rows`",
        ),
        (
            json!({"path": "/{parent.id}", "parent": "ghosts"}),
            "parent",
            "`ghosts`",
        ),
        (
            json!({"path": "/{partition}", "parent": "owners", "partitions": ["a"]}),
            "parent",
            "partitions",
        ),
        (json!({"body": {}}), "body", "POST"),
        (
            json!({"headers": {"Authorization": "Bearer x"}}),
            "headers",
            "auth",
        ),
        (
            json!({"updated_at": {"pointer": "/at", "format": "naive"}}),
            "updated_at.utc_offset",
            "+00:00",
        ),
        (
            json!({"updated_at": {"pointer": "/at", "utc_offset": "+01:00"}}),
            "updated_at.utc_offset",
            "naive",
        ),
        (
            json!({"updated_at": {"pointer": "/at", "format": "iso"}}),
            "updated_at.format",
            "rfc3339",
        ),
        (json!({"window": {"since": "s"}}), "updated_at", "missing"),
        (json!({"cursor": "timestamp"}), "cursor", "window"),
        (json!({"cursor": "opaque"}), "cursor", "sync"),
        (
            json!({"cursor": "snapshot", "updated_at": "/at", "window": {"since": "s"}}),
            "cursor",
            "snapshot",
        ),
        (
            json!({"cursor": "snapshot", "sync": {"url": "/u"}}),
            "cursor",
            "opaque",
        ),
        (json!({"sync": {"token": "/t"}}), "sync.param", "missing"),
        (
            json!({"sync": {"token": "/t", "param": "t", "url": "/u"}}),
            "sync",
            "either",
        ),
        (
            json!({"window": {"since": "s", "format": "%Y %q"}}),
            "window.format",
            "%q",
        ),
        (
            json!({"window": {"since": "s", "utc_offset": "PST"}}),
            "window.utc_offset",
            "-08:00",
        ),
        (
            json!({"window": {"since": "s", "utc_offset": "+01:00"}}),
            "window.utc_offset",
            "UTC",
        ),
        (
            json!({"window": {"since": "s", "dst_offset": "+01:00", "format": "date"}}),
            "window.utc_offset",
            "winter",
        ),
        (
            json!({"window": {"since": "s", "start": "yesterday"}}),
            "window.start",
            "2020-01-01T00:00:00Z",
        ),
        (
            json!({"window": {"since": "s", "until": "s"}, "updated_at": "/at"}),
            "window.until",
            "`window.since`",
        ),
        (
            json!({"window": {"since": "/s"}, "updated_at": "/at"}),
            "window.since",
            "POST",
        ),
        (
            json!({"method": "POST", "body": {"q": "{since}"}, "updated_at": "/at"}),
            "window.start",
            "missing",
        ),
        (
            json!({"method": "POST", "body": [], "page_size_param": "/0/limit"}),
            "page_size_param",
            "/0/limit",
        ),
        (keyset(json!({"param": "p"})), "paging.param", "`keyset`"),
        (
            keyset(json!({"after_time": "t"})),
            "paging.after_time",
            "updated_at",
        ),
        (
            keyset(json!({"after_exclusive": true})),
            "paging.after_exclusive",
            "after_time",
        ),
        (
            json!({"paging": {"style": "keyset"}}),
            "paging.after_id",
            "missing",
        ),
        (
            json!({"paging": {"style": "keyset", "after_id": "a"}, "id": ["/a", "/b"]}),
            "paging.after_id",
            "another style",
        ),
        (
            json!({"paging": {"style": "keyset", "after_time": "t"}, "updated_at": "/at"}),
            "order",
            "ascending",
        ),
        (
            json!({"paging": {"style": "token", "param": "c"}}),
            "paging.token",
            "token_header",
        ),
        (
            json!({"paging": {"style": "token", "token": "/t"}}),
            "paging.param",
            "missing",
        ),
        (
            json!({"paging": {"style": "page"}}),
            "paging.param",
            "number",
        ),
        (
            json!({"paging": {"style": "offset"}}),
            "paging.param",
            "offset",
        ),
        (
            json!({"paging": {"style": "next_url"}}),
            "paging.url",
            "/links/next",
        ),
        (
            json!({"paging": {"style": "link", "short_page_ends": true}}),
            "paging.short_page_ends",
            "`link`",
        ),
        (
            json!({"paging": {"style": "scroll"}}),
            "streams.rows",
            "scroll",
        ),
        (
            json!({"paging": {"style": "page", "param": "limit"}, "page_size_param": "limit"}),
            "paging.param",
            "already taken",
        ),
        (
            json!({"page_size": 200, "result_cap": 100}),
            "result_cap",
            "page_size",
        ),
        (json!({"page_size": 0}), "page_size", "0"),
        (
            json!({"window": {"since": "s"}, "updated_at": "/at", "window_cap": "1h"}),
            "window_cap",
            "window.until",
        ),
        (json!({"required": [""]}), "required", "whole record"),
        (json!({"poll_after": {"unit": "s"}}), "poll_after", "header"),
        (
            json!({"errors": [{"class": "temporary"}]}),
            "errors",
            "status",
        ),
        (
            json!({"errors": [{"status": 400, "class": "broken"}]}),
            "streams.rows",
            "broken",
        ),
        (
            json!({"errors": [{"status": 400, "equals": 1, "class": "temporary"}]}),
            "errors.pointer",
            "missing",
        ),
        (
            json!({"errors": [{"pointer": "/e", "equals": 1, "contains": "x", "class": "temporary"}]}),
            "errors.contains",
            "equals",
        ),
        (
            json!({"errors": [{"pointer": "/e", "header": "E", "class": "temporary"}]}),
            "errors.header",
            "pointer",
        ),
        (
            json!({"errors": [{"status": "4x", "class": "temporary"}]}),
            "errors.status",
            "5xx",
        ),
        (
            json!({"errors": [{"status": 404, "class": "empty", "wait": "1s"}]}),
            "errors.class",
            "empty",
        ),
        (
            json!({"errors": [{"status": 429, "class": "rate-limited", "wait": {"unit": "s"}}]}),
            "errors.wait",
            "pointer",
        ),
    ] {
        let fault = match describe(&config(stream.clone())) {
            Ok(_) => panic!("{stream} was accepted"),
            Err(fault) => fault,
        };
        assert_eq!(
            (fault.class, fault.code.as_str()),
            (Class::Permanent, "config"),
            "{stream}"
        );
        assert!(
            fault.message.contains(key) && fault.message.contains(hint),
            "{stream}: {}",
            fault.message
        );
        assert!(
            fault.message.contains("streams.rows"),
            "{stream}: {}",
            fault.message
        );
    }
}

#[test]
fn the_connections_own_keys_are_checked_too() {
    let with = |key: &str, value: Value| {
        let mut config = config(json!({}));
        config[key] = value;
        describe(&config).unwrap_err().message
    };
    let message = with(
        "pacing",
        json!({"min_interval": "1m", "max_interval": "1s"}),
    );
    assert!(
        message.contains("pacing.min_interval") && message.contains("pacing.max_interval"),
        "{message}"
    );
    assert!(with("base_url", json!("api.example.test")).contains("https://"));
    assert!(with("streams", json!({})).contains("streams"));
    assert!(with("bse_url", json!("x")).contains("bse_url"));
    assert!(with("errors", json!([{"class": "temporary"}])).contains("config.errors"));
    let unknown = Poll::new("ghosts", &config(json!({})).to_string(), 0)
        .request::<Rest>(None)
        .unwrap_err();
    assert!(
        unknown.message.contains("owners, rows"),
        "{}",
        unknown.message
    );
}

#[test]
fn descriptors_follow_from_the_keys() {
    let descriptor = describe(&json!({
        "base_url": "https://api.example.test",
        "oauth2": {"token_url": "https://id.example.test/token", "scopes": ["read"]},
        "pacing": {"concurrency": 2, "limits": [{"limit": 100, "per": "1m"}]},
        "streams": {
            "all": {"path": "/all", "id": "/id"},
            "changes": {"path": "/changes", "id": "/id", "sync": {"url": "/delta"}, "parent": "all", "query": {"of": "{parent.id}"}},
            "rows": {
                "title": "Rows", "path": "/rows", "id": ["/a", "/b"], "updated_at": "/at", "window": {"since": "s", "until": "u", "format": "%Y-%m-%d %H:%M"},
                "volatile": ["/score"], "settle": "10m", "retention": "90d", "window_cap": "1h", "result_cap": 1000, "order": "descending",
            },
        },
    }))
    .unwrap();
    assert!(
        matches!(&descriptor.origins[0].auth[0], AuthScheme::Oauth2(oauth2) if oauth2.scopes == ["read"])
    );
    assert_eq!(descriptor.pacing.concurrency, Some(2));
    assert_eq!(
        (
            descriptor.pacing.documented_limits[0].limit,
            descriptor.pacing.documented_limits[0].per
        ),
        (Some(100), Some(60_000))
    );
    let [all, changes, rows] = descriptor.streams.as_slice() else {
        panic!("three streams")
    };
    assert_eq!((all.cursor, all.backfill), (CursorKind::Snapshot, false));
    // One answer holds everything, so no answer is a full page.
    assert!(all.page_size >= 100_000);
    assert_eq!(
        (changes.cursor, changes.parent.as_deref()),
        (CursorKind::Opaque, Some("all"))
    );
    assert_eq!(
        (rows.title.as_str(), rows.order, rows.backfill),
        ("Rows", Order::Descending, true)
    );
    // Its parameters cannot say seconds.
    assert_eq!(
        (rows.granularity, rows.settle, rows.retention),
        (60_000, Some(600_000), Some(7_776_000_000))
    );
    assert_eq!(
        (rows.window_cap, rows.result_cap, rows.key.len()),
        (Some(3_600_000), Some(1000), 2)
    );
}
