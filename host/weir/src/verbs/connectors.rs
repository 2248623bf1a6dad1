//! `weir connectors`: what the connectors' directory holds, and what each connector says of itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_runtime::Connector;
use weir_runtime::contract::{AuthScheme, CursorKind, Descriptor, Limit, Order, Stream};

use super::Failure;
use super::text::{length, table};
use crate::catalogue::Catalogue;
use crate::config;
use crate::control::Reply;

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Connectors {
    dir: String,
    connectors: Vec<Listed>,
    /// Files that do not run as they are now. An older version may still be running.
    failing: Vec<Failing>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Failing {
    file: String,
    error: String,
}

/// A connector, as it describes itself without a configuration.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    name: String,
    title: String,
    version: String,
    docs: Option<String>,
    file: String,
    /// SHA-256 of the file.
    digest: String,
    /// The version of the contract that it is built for.
    contract: String,
    /// JSON Schema of a connection's `config`.
    config_schema: Value,
    origins: Vec<ListedOrigin>,
    /// Empty where the streams follow from the configuration.
    streams: Vec<ListedStream>,
    limits: ListedLimits,
}

#[derive(Debug, Serialize, Deserialize)]
struct ListedOrigin {
    id: String,
    url: String,
    auth: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ListedStream {
    name: String,
    title: String,
    key: Vec<String>,
    cursor: String,
    order: String,
    page_size: u32,
    result_cap: Option<u32>,
    window_cap_ms: Option<u64>,
    retention_ms: Option<u64>,
    settle_ms: Option<u64>,
    volatile: Vec<String>,
    backfill: bool,
    parent: Option<String>,
}

/// What the vendor allows, and what one call of the connector may use.
#[derive(Debug, Serialize, Deserialize)]
struct ListedLimits {
    min_interval_ms: Option<u64>,
    max_interval_ms: Option<u64>,
    concurrency: Option<u32>,
    /// The vendor publishes no limits: its latency decides.
    unpublished: bool,
    documented: Vec<String>,
    call_memory_bytes: usize,
    call_ms: u64,
    #[serde(default)]
    describe_ms: u64,
    #[serde(default)]
    returned_bytes: usize,
    #[serde(default)]
    file_bytes: usize,
    #[serde(default)]
    log_lines_per_second: u32,
}

/// Lists the directory, or one connector of it.
///
/// # Errors
/// [`Failure::Unknown`] when there is no such connector; its file's error comes along where the name is that of a
/// file that does not load.
pub fn answer(catalogue: &Catalogue, name: Option<&str>) -> Result<Reply, Failure> {
    let files = catalogue.files();
    let mut connectors = Vec::new();
    for known in catalogue.names() {
        if name.is_some_and(|name| name != known) {
            continue;
        }
        if let Some(connector) = catalogue.get(&known) {
            let file = files
                .iter()
                .find(|file| file.name.as_deref() == Some(&known))
                .map_or_else(String::new, |file| file.path.display().to_string());
            connectors.push(Listed::of(&connector, file));
        }
    }
    let failing: Vec<Failing> = files
        .iter()
        .filter_map(|file| {
            let stem = file.path.file_stem().map(|stem| stem.to_string_lossy());
            let meant = name.is_none() || name == stem.as_deref() || name == file.name.as_deref();
            let error = file.error.as_ref().filter(|_| meant)?;
            Some(Failing {
                file: file.path.display().to_string(),
                error: error.clone(),
            })
        })
        .collect();
    if let Some(name) = name
        && connectors.is_empty()
        && failing.is_empty()
    {
        return Err(unknown(catalogue, name));
    }
    let exit = if failing.is_empty() { 0 } else { 1 };
    Ok(Reply::with_exit(
        exit,
        Connectors {
            dir: catalogue.dir().display().to_string(),
            connectors,
            failing,
        },
    ))
}

fn unknown(catalogue: &Catalogue, name: &str) -> Failure {
    let names = catalogue.names();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let dir = catalogue.dir().display();
    Failure::Unknown(if known.is_empty() {
        format!("no connector `{name}`: {dir} holds none that loads")
    } else {
        format!(
            "no connector `{name}` in {dir}: {}",
            config::suggest_name(name, &known)
        )
    })
}

impl Listed {
    fn of(connector: &Connector, file: String) -> Listed {
        let Descriptor {
            name,
            title,
            version,
            docs,
            config_schema,
            origins,
            streams,
            pacing,
            extra: _,
        } = connector.descriptor();
        let limits = connector.limits();
        Listed {
            name: name.clone(),
            title: title.clone(),
            version: version.clone(),
            docs: docs.clone(),
            file,
            digest: connector.digest().to_string(),
            contract: connector.contract_version().to_owned(),
            config_schema: serde_json::from_str(config_schema).unwrap_or_default(),
            origins: origins
                .iter()
                .map(|origin| ListedOrigin {
                    id: origin.id.clone(),
                    url: origin.url.clone(),
                    auth: origin.auth.iter().map(scheme).collect(),
                })
                .collect(),
            streams: streams.iter().map(ListedStream::of).collect(),
            limits: ListedLimits {
                min_interval_ms: pacing.min_interval,
                max_interval_ms: pacing.max_interval,
                concurrency: pacing.concurrency,
                unpublished: pacing.unpublished_limits,
                documented: pacing.documented_limits.iter().map(limit).collect(),
                call_memory_bytes: limits.memory,
                call_ms: ms(limits.call),
                describe_ms: ms(limits.describe),
                returned_bytes: limits.returned,
                file_bytes: limits.file,
                log_lines_per_second: limits.log,
            },
        }
    }
}

fn ms(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl ListedStream {
    fn of(stream: &Stream) -> ListedStream {
        let cursor = match stream.cursor {
            CursorKind::Timestamp => "timestamp",
            CursorKind::Opaque => "opaque",
            CursorKind::Snapshot => "snapshot",
        };
        let order = match stream.order {
            Order::Ascending => "ascending",
            Order::Descending => "descending",
            Order::Unordered => "unordered",
        };
        ListedStream {
            name: stream.name.clone(),
            title: stream.title.clone(),
            key: stream.key.clone(),
            cursor: cursor.to_owned(),
            order: order.to_owned(),
            page_size: stream.page_size,
            result_cap: stream.result_cap,
            window_cap_ms: stream.window_cap,
            retention_ms: stream.retention,
            settle_ms: stream.settle,
            volatile: stream.volatile.clone(),
            backfill: stream.backfill,
            parent: stream.parent.clone(),
        }
    }
}

fn scheme(scheme: &AuthScheme) -> String {
    match scheme {
        AuthScheme::None => "none".to_owned(),
        AuthScheme::Bearer => "bearer".to_owned(),
        AuthScheme::Basic => "basic".to_owned(),
        AuthScheme::Header(name) => format!("header {name}"),
        AuthScheme::Query(name) => format!("query {name}"),
        AuthScheme::Oauth2(oauth2) => format!("oauth2 (tokens from {})", oauth2.token_url),
    }
}

/// `5000 requests per 60 min`
fn limit(limit: &Limit) -> String {
    let amount = limit
        .limit
        .map_or_else(|| "some".to_owned(), |limit| limit.to_string());
    let mut text = format!("{amount} {}", limit.quota_unit);
    if let Some(per) = limit.per {
        text.push_str(&format!(" per {}", length(per)));
    }
    if let Some(restores) = limit.restores {
        text.push_str(&format!(", {restores} more each second"));
    }
    if let Some(bucket) = &limit.bucket {
        text.push_str(&format!(" ({bucket})"));
    }
    text
}

/// One line for each connector, or everything of one.
pub(super) fn render(answer: &Connectors, in_full: bool) -> String {
    let mut text = String::new();
    if in_full {
        for connector in &answer.connectors {
            text.push_str(&describe(connector));
        }
    } else if answer.connectors.is_empty() {
        text.push_str(&format!("No connector in {}.\n", answer.dir));
    } else {
        let rows: Vec<Vec<String>> = answer
            .connectors
            .iter()
            .map(|connector| {
                vec![
                    connector.name.clone(),
                    connector.version.clone(),
                    connector.title.clone(),
                    streams_in_short(connector),
                    connector.file.clone(),
                ]
            })
            .collect();
        text.push_str(&table(
            &["name", "version", "title", "streams", "file"],
            &rows,
        ));
    }
    if !answer.failing.is_empty() {
        text.push_str("do not load:\n");
    }
    for failing in &answer.failing {
        text.push_str(&format!("  {}\n", on_one_line(failing)));
    }
    text
}

/// The error of a file mostly names it already.
fn on_one_line(failing: &Failing) -> String {
    if failing.error.starts_with(&failing.file) {
        failing.error.clone()
    } else {
        format!("{}: {}", failing.file, failing.error)
    }
}

fn streams_in_short(connector: &Listed) -> String {
    if connector.streams.is_empty() {
        return "from the config".to_owned();
    }
    let names: Vec<&str> = connector
        .streams
        .iter()
        .map(|stream| stream.name.as_str())
        .collect();
    names.join(", ")
}

fn describe(connector: &Listed) -> String {
    let mut text = format!(
        "{} {}: {}\n",
        connector.name, connector.version, connector.title
    );
    let mut line = |label: &str, value: &str| text.push_str(&format!("  {label:<10}{value}\n"));
    line("file", &connector.file);
    line("sha256", &connector.digest);
    line(
        "contract",
        &format!("weir:connector {}", connector.contract),
    );
    if let Some(docs) = &connector.docs {
        line("docs", docs);
    }
    for origin in &connector.origins {
        let auth = match origin.auth.as_slice() {
            [] => "none".to_owned(),
            schemes => schemes.join(" or "),
        };
        line(
            "origin",
            &format!("{} {}, auth: {auth}", origin.id, origin.url),
        );
    }
    for documented in &connector.limits.documented {
        line("limit", documented);
    }
    if connector.limits.unpublished {
        line("limit", "not published by the vendor: its latency decides");
    }
    if let Some(concurrency) = connector.limits.concurrency {
        line(
            "limit",
            &format!("{concurrency} calls at once per credential"),
        );
    }
    let least = connector
        .limits
        .min_interval_ms
        .map(|ms| format!("at least {}", length(ms)));
    let most = connector
        .limits
        .max_interval_ms
        .map(|ms| format!("at most {}", length(ms)));
    if least.is_some() || most.is_some() {
        let bounds: Vec<String> = least.into_iter().chain(most).collect();
        line("interval", &bounds.join(", "));
    }
    line(
        "a call",
        &format!(
            "{} of memory, {} of processor time",
            super::text::bytes(connector.limits.call_memory_bytes as u64),
            length(connector.limits.call_ms)
        ),
    );
    line(
        "",
        &format!(
            "{} of results, {} log lines a second; {} for telling what it is",
            super::text::bytes(connector.limits.returned_bytes as u64),
            connector.limits.log_lines_per_second,
            length(connector.limits.describe_ms)
        ),
    );
    text.push_str("\nstreams\n");
    text.push_str(&indented(&streams(connector)));
    text.push_str("\nconfig\n");
    text.push_str(&indented(&config_keys(&connector.config_schema)));
    text
}

fn streams(connector: &Listed) -> String {
    if connector.streams.is_empty() {
        return "They follow from the connection's config: `weir check` names what is wrong with it.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = connector
        .streams
        .iter()
        .map(|stream| {
            vec![
                stream.name.clone(),
                stream.title.clone(),
                stream.cursor.clone(),
                stream.order.clone(),
                stream.page_size.to_string(),
                stream.key.join(" "),
                stream.volatile.join(" "),
            ]
        })
        .collect();
    table(
        &[
            "name", "title", "cursor", "order", "page", "key", "volatile",
        ],
        &rows,
    )
}

/// The schema's outermost keys; what lies deeper is in the JSON form.
fn config_keys(schema: &Value) -> String {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema["properties"].as_object();
    let rows: Vec<Vec<String>> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let must = if required.contains(&name.as_str()) {
                "required".to_owned()
            } else {
                property
                    .get("default")
                    .map_or_else(String::new, |value| format!("default {value}"))
            };
            let about = property["description"].as_str().unwrap_or_default();
            vec![
                name.clone(),
                type_of(property, schema),
                must,
                about.to_owned(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "It takes none.\n".to_owned();
    }
    table(&["key", "type", "", "meaning"], &rows)
}

/// The type in a word or two; what is defined elsewhere in the schema is looked up there.
fn type_of(property: &Value, schema: &Value) -> String {
    let defined = property["$ref"]
        .as_str()
        .and_then(|place| schema.pointer(place.strip_prefix('#')?));
    if let Some(defined) = defined {
        // One step is enough for a table, and a schema may go in circles.
        return one_type(defined);
    }
    one_type(property)
}

fn one_type(property: &Value) -> String {
    let words = |values: &[Value]| -> Vec<String> { values.iter().map(Value::to_string).collect() };
    if let Some(values) = property["enum"].as_array() {
        return words(values).join(" | ");
    }
    match &property["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" | ")
        }
        _ => "any".to_owned(),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schemas_keys_become_a_table() {
        let schema: Value = serde_json::from_str(
            r##"{"required": ["repos"], "$defs": {"count": {"type": "integer"}}, "properties": {
                "limit": {"$ref": "#/$defs/count", "description": "At most this many."},
                "repos": {"type": "array", "description": "Which repositories."},
                "state": {"enum": ["open", "all"], "default": "all"}
            }}"##,
        )
        .unwrap();
        let text = config_keys(&schema);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty())
                    .collect()
            })
            .collect();
        assert_eq!(
            lines,
            [
                vec!["key", "type", "meaning"],
                vec!["limit", "integer", "At most this many."],
                vec!["repos", "array", "required", "Which repositories."],
                vec!["state", "\"open\" | \"all\"", "default \"all\""],
            ]
        );
        assert_eq!(config_keys(&Value::Null), "It takes none.\n");
    }

    #[test]
    fn a_files_error_names_it_once() {
        let failing = |error: &str| Failing {
            file: "connectors/junk.wasm".to_owned(),
            error: error.to_owned(),
        };
        assert_eq!(
            on_one_line(&failing(
                "connectors/junk.wasm: this is no WebAssembly file"
            )),
            "connectors/junk.wasm: this is no WebAssembly file"
        );
        assert_eq!(
            on_one_line(&failing("is a symbolic link")),
            "connectors/junk.wasm: is a symbolic link"
        );
    }
}
