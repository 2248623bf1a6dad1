//! The text of a page.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;
use weir_runtime::Connector;
use weir_runtime::contract::{AuthScheme, CursorKind, Descriptor, Limit, Order, Stream};

/// The list of all connectors.
pub(super) fn index(connectors: &[Arc<Connector>]) -> String {
    let mut page =
        "# Connectors\n\n| `connector =` | vendor | streams |\n| --- | --- | --- |\n".to_owned();
    for connector in connectors {
        let described = connector.descriptor();
        let streams: Vec<String> = described
            .streams
            .iter()
            .map(|one| format!("`{}`", one.name))
            .collect();
        let streams = if streams.is_empty() {
            "by configuration".to_owned()
        } else {
            streams.join(", ")
        };
        let name = &described.name;
        line(
            &mut page,
            &format!(
                "| [`{name}`]({name}.md) | {} | {streams} |",
                described.title
            ),
        );
    }
    page
}

/// The page of a connector. `notes` begins with how to configure a connection.
pub(super) fn connector(described: &Descriptor, notes: &str) -> anyhow::Result<String> {
    let schema: Value = serde_json::from_str(&described.config_schema)?;
    let (connection, more) = match notes.split_once("\n## ") {
        Some((connection, more)) => (connection, format!("\n## {more}")),
        None => (notes, String::new()),
    };
    let mut page = format!(
        "<!-- Made by `cargo xtask docs` from what the connector says of itself and from its NOTES.md. -->\n\n# {}\n\n",
        described.title
    );
    let docs = described.docs.as_deref().map_or_else(String::new, |docs| {
        format!(" Vendor's documentation: <{docs}>.")
    });
    line(
        &mut page,
        &format!(
            "Connector `{}`, version {}.{docs}\n",
            described.name, described.version
        ),
    );
    line(&mut page, connection.trim_end());
    line(&mut page, "\n## Where it talks to\n");
    for origin in &described.origins {
        let auth: Vec<String> = origin.auth.iter().map(scheme).collect();
        line(
            &mut page,
            &format!("- <{}>; auth: {}", origin.url, auth.join(", or ")),
        );
    }
    line(&mut page, "\n## Config\n");
    config(&mut page, &schema).context("its config schema")?;
    line(&mut page, "\n## Streams\n");
    if described.name == "rest" {
        line(
            &mut page,
            "The streams are those of the config; this is the example's.\n",
        );
    }
    streams(&mut page, &described.streams);
    pacing(&mut page, described);
    page.push_str(&more);
    Ok(page.trim_end().to_owned() + "\n")
}

fn config(page: &mut String, schema: &Value) -> anyhow::Result<()> {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let fields = schema["properties"]
        .as_object()
        .context("no `properties`")?;
    line(
        page,
        "| key | type | default | meaning |\n| --- | --- | --- | --- |",
    );
    for (name, field) in fields {
        let own = field["description"].as_str();
        let field = resolved(schema, field);
        let kind = kind(schema, field);
        let default = match &field["default"] {
            Value::Null if required.contains(&name.as_str()) => "required".to_owned(),
            Value::Null => String::new(),
            default => format!("`{default}`"),
        };
        let meaning = own.or(field["description"].as_str()).unwrap_or_default();
        let meaning = meaning.replace('|', "\\|");
        line(
            page,
            &format!("| `{name}` | {kind} | {default} | {meaning} |"),
        );
    }
    Ok(())
}

/// The schema that a field refers to.
fn resolved<'a>(schema: &'a Value, field: &'a Value) -> &'a Value {
    let reference = field["$ref"]
        .as_str()
        .and_then(|reference| reference.strip_prefix('#'));
    reference
        .and_then(|pointer| schema.pointer(pointer))
        .unwrap_or(field)
}

fn kind(schema: &Value, field: &Value) -> String {
    if let Some(words) = field["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    match field["type"].as_str() {
        Some("array") => format!(
            "list of {}",
            plural(&kind(schema, resolved(schema, &field["items"])))
        ),
        Some("string") => "text".to_owned(),
        Some("object") => "table".to_owned(),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

fn plural(kind: &str) -> String {
    if kind.contains('`') {
        kind.to_owned()
    } else {
        format!("{kind}s")
    }
}

fn streams(page: &mut String, streams: &[Stream]) {
    for stream in streams {
        line(page, &format!("### `{}`: {}\n", stream.name, stream.title));
        line(page, &format!("- Identified by {}.", pointers(&stream.key)));
        line(
            page,
            &format!("- {} {}", cursor(stream.cursor), order(stream.order)),
        );
        let mut facts = vec![format!("pages of {}", stream.page_size)];
        let cap = stream
            .result_cap
            .map(|cap| format!("at most {cap} records for one query"));
        facts.extend(cap);
        let timed = stream.cursor == CursorKind::Timestamp;
        for (what, ms) in [
            ("windows of at most", stream.window_cap),
            ("kept by the vendor for", stream.retention),
            ("may become visible late, by", stream.settle),
            ("a resolution of", timed.then_some(stream.granularity)),
        ] {
            facts.extend(ms.map(|ms| format!("{what} {}", length(ms))));
        }
        line(page, &format!("- Facts: {}.", facts.join("; ")));
        if !stream.volatile.is_empty() {
            line(
                page,
                &format!("- No change by itself: {}.", pointers(&stream.volatile)),
            );
        }
        if let Some(parent) = &stream.parent {
            line(
                page,
                &format!("- Polled once for each record of `{parent}`."),
            );
        }
        if !stream.backfill {
            line(page, "- A window in the past cannot be asked for.");
        }
        page.push('\n');
    }
}

fn pacing(page: &mut String, described: &Descriptor) {
    let pacing = &described.pacing;
    let mut facts = Vec::new();
    if pacing.unpublished_limits {
        facts.push("The vendor publishes no limits: the pace follows its latency.".to_owned());
    }
    facts.extend(pacing.documented_limits.iter().map(limit));
    facts.extend(
        pacing
            .min_interval
            .map(|ms| format!("Never polled more often than every {}.", length(ms))),
    );
    facts.extend(
        pacing
            .concurrency
            .map(|calls| format!("At most {calls} call(s) in flight for one credential.")),
    );
    if pacing.not_modified_is_free {
        facts.push("An answer that nothing changed costs no quota.".to_owned());
    }
    line(page, "## Limits\n");
    if facts.is_empty() {
        facts.push("What the vendor's headers say.".to_owned());
    }
    for fact in facts {
        line(page, &format!("- {fact}"));
    }
}

fn limit(limit: &Limit) -> String {
    let bucket = limit
        .bucket
        .as_ref()
        .map_or_else(String::new, |bucket| format!(" for `{bucket}`"));
    let amount = limit
        .limit
        .map_or_else(String::new, |amount| format!("{amount} "));
    let per = limit
        .per
        .map_or_else(String::new, |ms| format!(" in {}", length(ms)));
    let restores = limit
        .restores
        .map_or_else(String::new, |each| format!(", {each} a second come back"));
    format!(
        "Documented: {amount}{}{per}{bucket}{restores}.",
        limit.quota_unit
    )
}

fn cursor(cursor: CursorKind) -> &'static str {
    match cursor {
        CursorKind::Timestamp => "What changed since the watermark is asked for;",
        CursorKind::Opaque => "The vendor's own token says where to go on;",
        CursorKind::Snapshot => "Every poll reads the whole collection;",
    }
}

fn order(order: Order) -> &'static str {
    match order {
        Order::Ascending => "oldest first.",
        Order::Descending => "newest first.",
        Order::Unordered => "in no order.",
    }
}

fn scheme(scheme: &AuthScheme) -> String {
    match scheme {
        AuthScheme::None => "`none`".to_owned(),
        AuthScheme::Bearer => "`bearer`".to_owned(),
        AuthScheme::Basic => "`basic`".to_owned(),
        AuthScheme::Header(name) => format!("`header` ({name})"),
        AuthScheme::Query(name) => format!("`query` ({name})"),
        AuthScheme::Oauth2(oauth2) if oauth2.scopes.is_empty() => "`oauth2`".to_owned(),
        AuthScheme::Oauth2(oauth2) => format!("`oauth2` ({})", oauth2.scopes.join(" ")),
    }
}

fn pointers(pointers: &[String]) -> String {
    let pointers: Vec<String> = pointers.iter().map(|one| format!("`{one}`")).collect();
    pointers.join(", ")
}

/// `900 ms`, `90 s`, `30 days`: the largest unit that divides it.
fn length(ms: u64) -> String {
    let units = [
        (86_400_000, "day"),
        (3_600_000, "hour"),
        (60_000, "minute"),
        (1_000, "second"),
    ];
    for (unit, name) in units {
        if ms >= unit && ms.is_multiple_of(unit) {
            let n = ms / unit;
            return if n == 1 {
                format!("1 {name}")
            } else {
                format!("{n} {name}s")
            };
        }
    }
    format!("{ms} ms")
}

fn line(page: &mut String, text: &str) {
    // Writing into a String cannot fail.
    let _ = writeln!(page, "{text}");
}
