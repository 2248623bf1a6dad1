//! What a vendor does wrong that is no fault of the network: odd totals, odd tokens, answers of an odd shape.

mod support;

use support::Rig;
use support::script::{Reply, Script};
use weir::poll::Outcome;
use weir_rules::model::Class;

/// A connection of connector `rest` with one stream; `more` is the rest of the stream's keys.
fn connection(name: &str, base: &str, more: &str) -> String {
    format!(
        r#"
[connection.{name}]
connector = "rest"

[connection.{name}.config]
base_url = "{base}"

[connection.{name}.config.streams.notes]
path = "/notes"
records = "/items"
id = "/id"
{more}

[connection.{name}.streams.notes]
interval = {{ min = "10s", max = "10m" }}
"#
    )
}

async fn rig(more: &str, script: &std::sync::Arc<Script>) -> Rig {
    let config = connection("desk", "https://api.example.test/v1", more);
    let rig = Rig::new(&config, script.clone()).await;
    script.on(&rig.clock);
    rig
}

#[tokio::test]
async fn a_collection_that_is_answered_at_once_needs_no_paging() {
    let script = Script::new([Reply::ok(r#"{"items":[{"id":1},{"id":2}]}"#)]);
    let rig = rig("", &script).await;
    let report = rig.poll("desk/notes").await;
    assert_eq!((report.outcome, report.tally.new), (Outcome::Ok, 2));
}

#[tokio::test]
async fn one_answer_may_hold_tens_of_thousands_of_records() {
    let items: Vec<String> = (0..30_000).map(|id| format!(r#"{{"id":{id}}}"#)).collect();
    let script = Script::new([Reply::ok(format!(r#"{{"items":[{}]}}"#, items.join(",")))]);
    let rig = rig("", &script).await;
    let report = rig.poll("desk/notes").await;
    assert_eq!(report.message, None);
    assert_eq!((report.outcome, report.tally.new), (Outcome::Ok, 30_000));
}

#[tokio::test]
async fn a_total_that_is_less_than_what_came_ends_no_walk() {
    let keys = "paging = { style = \"offset\", param = \"offset\" }\ntotal = \"/total\"";
    let script = Script::new([
        Reply::ok(r#"{"items":[{"id":1},{"id":2}],"total":0}"#),
        Reply::ok(r#"{"items":[{"id":3}],"total":0}"#),
        Reply::ok(r#"{"items":[],"total":0}"#),
    ]);
    let rig = rig(keys, &script).await;
    let report = rig.poll("desk/notes").await;
    assert_eq!((report.outcome, report.tally.new), (Outcome::Ok, 3));
}

#[tokio::test]
async fn a_token_that_is_none_is_not_taken_for_the_end() {
    let keys = "paging = { style = \"token\", token = \"/next\", param = \"token\" }";
    let script = Script::new([Reply::ok(r#"{"items":[{"id":1}],"next":{"after":"x"}}"#)]);
    let rig = rig(keys, &script).await;
    let report = rig.poll("desk/notes").await;
    assert_eq!((report.outcome, report.tally.new), (Outcome::Truncated, 1));

    // Languages that have one kind of container write an empty one for "none".
    script.then([Reply::ok(r#"{"items":[{"id":2}],"next":[]}"#)]);
    let report = rig.poll("desk/notes").await;
    assert_eq!((report.outcome, report.tally.new), (Outcome::Ok, 1));
}

#[tokio::test]
async fn a_304_that_nobody_asked_for_passes() {
    let script = Script::new([Reply::status(304, ""), Reply::ok(r#"{"items":[{"id":1}]}"#)]);
    let rig = rig("", &script).await;
    let report = rig.poll("desk/notes").await;
    assert_eq!(
        (report.outcome, report.class),
        (Outcome::Failed, Some(Class::Temporary))
    );
    assert_eq!(rig.poll("desk/notes").await.outcome, Outcome::Ok);
}

#[tokio::test]
async fn a_wait_is_kept_whatever_the_fault_is() {
    for status in [401, 410, 413] {
        let mut calls = 0;
        let script = Script::by(move |_| {
            calls += 1;
            if calls == 1 {
                Reply::status(status, "{}").header("retry-after", "60")
            } else {
                Reply::ok(r#"{"items":[{"id":1}]}"#)
            }
        });
        let rig = rig("", &script).await;
        rig.run_for(20 * 60_000).await;
        let asked = script.asked();
        assert!(asked.len() > 1, "{status} is not the end");
        let first = asked[1].at - asked[0].at;
        assert!(first >= 60_000, "{status}: {first} ms");
    }
}

#[tokio::test]
async fn an_empty_id_is_called_so() {
    let script = Script::new([Reply::ok(r#"{"items":[{"id":""}]}"#)]);
    let rig = rig("", &script).await;
    let said = rig.poll("desk/notes").await.message.unwrap_or_default();
    assert!(said.contains("at /id: it holds an empty string"), "{said}");
}

/// One vendor's word about the whole app holds back all that call this vendor, and nobody else's vendor.
#[tokio::test]
async fn a_limit_of_the_app_is_one_vendors() {
    let config = [
        connection("one", "https://api.example.test/v1", ""),
        connection("two", "https://api.example.test/v2", ""),
        connection("other", "https://other.example/v1", ""),
    ]
    .concat();
    let script = Script::by(|asked| {
        let reply = Reply::ok(r#"{"items":[{"id":1}]}"#);
        if asked.url.contains("/v1") && asked.url.contains("api.example.test") {
            reply.header("x-app-usage", r#"{"call_count":120}"#)
        } else {
            reply
        }
    });
    let rig = Rig::new(&config, script.clone()).await;
    script.on(&rig.clock);
    assert_eq!(rig.poll("one/notes").await.outcome, Outcome::Ok);
    assert_eq!(rig.poll("two/notes").await.outcome, Outcome::Waiting);
    assert_eq!(rig.poll("other/notes").await.outcome, Outcome::Ok);
}

/// A listing that joins tables shows a record twice, a little differently each time.
#[tokio::test]
async fn two_versions_on_one_page_are_not_two_changes_with_every_poll() {
    let page = || {
        Reply::ok(
            r#"{"items":[{"id":7,"rev":3},{"id":1},{"id":7,"rev":4},
                {"id":8,"at":"2031-03-04T09:00:00Z","rev":2},{"id":8,"at":"2031-03-04T08:00:00Z","rev":1}]}"#,
        )
    };
    let script = Script::new([page(), page()]);
    let rig = rig("updated_at = \"/at\"", &script).await;
    assert_eq!(rig.poll("desk/notes").await.tally.new, 3);
    assert_eq!(rig.poll("desk/notes").await.tally.changed, 0);
    assert_eq!(rig.delivered(), ["1@1", "7@1", "8@1"]);
    let texts: Vec<String> = rig
        .lines()
        .iter()
        .map(|line| line.data.to_string())
        .collect();
    assert!(
        texts[1].contains("\"rev\":4") && texts[2].contains("\"rev\":2"),
        "{texts:?}"
    );
}

#[tokio::test]
async fn a_key_that_the_vendor_repeats_in_its_links_is_not_stored() {
    let config = connection(
        "desk",
        "https://api.example.test/v1",
        "paging = { style = \"link\" }",
    )
    .replace(
        "connector = \"rest\"",
        "connector = \"rest\"\nauth = { query = { name = \"api_key\", value = \"S3CR3T+9/f2\" } }",
    );
    let script = Script::by(|asked| match asked.url.contains("page=2") {
        true => Reply::status(500, "{}"),
        false => Reply::ok(r#"{"items":[{"id":1}]}"#)
            .header("etag", "\"e1\"")
            .header("link", &format!("<{}&page=2>; rel=\"next\"", asked.url)),
    });
    let rig = Rig::new(&config, script.clone()).await;
    script.on(&rig.clock);
    rig.poll("desk/notes").await;
    rig.poll("desk/notes").await;
    let asked = script.asked();
    assert!(asked.len() >= 3);
    for call in &asked {
        assert_eq!(call.url.matches("api_key=").count(), 1, "{}", call.url);
    }
    let stored = format!("{:?}", rig.unit("desk/notes"));
    assert!(stored.contains("page=2"), "the walk is stored: {stored}");
    assert!(!stored.contains("S3CR3T"), "{stored}");
}

/// A vendor that answers narrow windows alone is not asked for all of time; what is left out is not left unsaid.
#[tokio::test]
async fn a_past_that_is_not_asked_for_is_a_gap() {
    let keys = "updated_at = \"/at\"\norder = \"ascending\"\nwindow = { since = \"since\", until = \"until\" }\nwindow_cap = \"1h\"";
    let script = Script::by(|_| Reply::ok(r#"{"items":[]}"#));
    let without = rig(keys, &script).await;
    without.poll("desk/notes").await;
    let gaps = without.unit("desk/notes").state.gaps;
    assert_eq!(gaps.len(), 1);
    assert_eq!(gaps[0].extent.until, support::NOW - 3_600_000);
    drop(without);

    let config = connection("desk", "https://api.example.test/v1", keys).replace(
        "[connection.desk.streams.notes]",
        "[connection.desk.streams.notes]\nstart = 2031-03-03T00:00:00Z",
    );
    let with = Rig::new(&config, script.clone()).await;
    script.on(&with.clock);
    with.poll("desk/notes").await;
    assert!(with.unit("desk/notes").state.gaps.is_empty());
}
