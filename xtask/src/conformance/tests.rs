use serde_json::{Value, json};

use super::feed::{self, Outcome};
use super::guess;
use super::recording::Recording;
use crate::connectors;

/// A vendor that nobody has heard of: two pages by token, then a 429, in one file.
fn recorded() -> Recording {
    let page = |ids: &[u64], next: Value| {
        json!({ "items": ids.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>(), "next_cursor": next }).to_string()
    };
    let call = |query: &str, status: u16, headers: Value, body: String| {
        json!({
            "from": 0,
            "request": { "method": "GET", "url": format!("https://api.unheard.test/v1/items{query}") },
            "response": { "status": status, "headers": headers, "body": body },
        })
    };
    let limits = json!([["X-RateLimit-Limit", "100"], ["X-RateLimit-Remaining", "7"]]);
    serde_json::from_value(json!({
        "sources": [{ "vendor": "unheard" }],
        "interactions": [
            call("?limit=2", 200, limits, page(&[1, 2], json!("tok-2"))),
            call("?limit=2&after=tok-2", 200, json!([]), page(&[3], Value::Null)),
            call("?limit=2&after=tok-2", 429, json!([["Retry-After", "9"]]), "<html>slow down</html>".to_owned()),
        ],
    }))
    .unwrap()
}

#[test]
fn a_configuration_is_read_off_a_recording() {
    let recording = recorded();
    let walk: Vec<_> = recording.interactions.iter().collect();
    assert_eq!(
        guess::config(&walk),
        json!({
            "base_url": "https://api.unheard.test",
            "streams": { "recorded": {
                "path": "/v1/items",
                "records": "/items",
                "id": "/id",
                "paging": { "style": "token", "param": "after", "token": "/next_cursor" },
            } },
        })
    );
}

#[test]
fn a_recorded_walk_arrives_whole_and_a_loss_is_noticed() {
    let connectors = connectors::load_built("rest").unwrap();
    let mut recording = recorded();
    let fed = feed::recording(&recording, &connectors);
    let records: Vec<_> = fed
        .iter()
        .map(|fed| match &fed.outcome {
            Outcome::Page { records, next, .. } => format!("{records} records, {next} next"),
            Outcome::Fault { fault, wait } => format!(
                "{}, wait {:?}",
                fault.class.name(),
                wait.map(|wait| wait.ms)
            ),
            Outcome::Trap(why) => why.clone(),
        })
        .collect();
    assert_eq!(
        records,
        [
            "2 records, 1 next",
            "1 records, 0 next",
            "rate-limited, wait Some(9000)"
        ]
    );
    assert!(fed[1].read_as.continues);
    assert_eq!(fed[0].headers.reading.limits.len(), 1);
    assert!(fed.iter().all(|fed| fed.trouble().is_none()));

    // Two records that cannot be told apart would be one to the dedup.
    recording.interactions[0].response.body =
        r#"{"items":[{"id":1},{"id":1}],"next_cursor":"tok-2"}"#.to_owned();
    let fed = feed::recording(&recording, &connectors);
    assert_eq!(
        fed[0].trouble().as_deref(),
        Some("1 of its records share an id")
    );
}
