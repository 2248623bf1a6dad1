//! A configuration of `rest` that is read off a recording: for vendors that have no connector of their own.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::recording::Interaction;

/// How deep an array of records may lie.
const DEPTH: usize = 3;

/// How the names of ids end.
const NAMES: [&str; 8] = ["id", "ts", "key", "name", "code", "sku", "slug", "sha"];

/// The stream's name in a guessed configuration.
pub(super) const STREAM: &str = "recorded";

/// The configuration for answers that belong together: a walk, or a single call.
pub(super) fn config(walk: &[&Interaction]) -> Value {
    let bodies: Vec<Value> = walk.iter().map(|one| body(one)).collect();
    let fullest = bodies.iter().max_by_key(|body| records(body).1.len());
    let (pointer, found) = fullest.map_or((String::new(), &[][..]), records);
    let mut stream = Map::new();
    let path = walk.first().map_or("/", |one| one.request.url.path());
    stream.insert("path".to_owned(), json!(path));
    stream.insert("records".to_owned(), json!(pointer));
    let id = id_of(found).unwrap_or_else(|| "/id".to_owned());
    stream.insert("id".to_owned(), json!(id));
    if let Some(paging) = paging(walk, &bodies) {
        stream.insert("paging".to_owned(), paging);
    }
    let base = walk.first().map_or_else(
        || "https://api.example.test".to_owned(),
        |one| one.request.url.origin().ascii_serialization(),
    );
    json!({ "base_url": base, "streams": { STREAM: stream } })
}

/// The answer's body as JSON; null if it is none.
pub(super) fn body(interaction: &Interaction) -> Value {
    serde_json::from_str(&interaction.response.body).unwrap_or_default()
}

/// The records of a body, and where they lie: the longest array near the root whose objects can be told apart. An array that
/// is part of a single object (the versions of a field) has no ids, and is none.
pub(super) fn records(body: &Value) -> (String, &[Value]) {
    let mut arrays = Vec::new();
    find_arrays(body, String::new(), 0, &mut arrays);
    arrays
        .into_iter()
        .filter(|(_, array)| array.iter().all(Value::is_object))
        .filter(|(_, array)| array.is_empty() || id_of(array).is_some())
        // Of equally long ones the one nearest to the root, which was found first.
        .rev()
        .max_by_key(|(_, array)| array.len())
        .unwrap_or((String::new(), &[]))
}

fn find_arrays<'a>(
    value: &'a Value,
    pointer: String,
    depth: usize,
    found: &mut Vec<(String, &'a [Value])>,
) {
    match value {
        Value::Array(array) => found.push((pointer, array)),
        Value::Object(fields) if depth < DEPTH => {
            for (name, value) in fields {
                let below = format!("{pointer}/{}", escape(name));
                find_arrays(value, below, depth + 1, found);
            }
        }
        _ => {}
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Where the field lies that tells the records apart: `id`, else one whose name ends like one of an id; in the record
/// itself, else in an object that it wraps.
fn id_of(records: &[Value]) -> Option<String> {
    let first = records.iter().find_map(Value::as_object)?;
    let wrapped = first
        .iter()
        .filter_map(|(name, value)| Some((format!("/{}", escape(name)), value.as_object()?)));
    std::iter::once((String::new(), first))
        .chain(wrapped)
        .find_map(|(at, fields)| {
            let pointers = |wanted: fn(&str) -> bool| {
                let names = fields.keys().filter(move |name| wanted(name));
                names.map(|name| format!("{at}/{}", escape(name)))
            };
            pointers(|name| name == "id")
                .chain(pointers(sounds_like_id))
                .find(|pointer| tells_apart(records, pointer))
        })
}

fn sounds_like_id(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|end| name.ends_with(end))
}

fn tells_apart(records: &[Value], pointer: &str) -> bool {
    let values: BTreeSet<String> = records
        .iter()
        .filter_map(|record| record.pointer(pointer))
        .filter(|value| value.is_string() || value.is_number())
        .map(Value::to_string)
        .collect();
    values.len() == records.len()
}

/// How the recorded client got from page to page.
fn paging(walk: &[&Interaction], bodies: &[Value]) -> Option<Value> {
    let linked = walk.iter().any(|one| {
        let headers = &one.response.headers;
        headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("link") && value.contains("rel=\"next\"")
        })
    });
    if linked {
        return Some(json!({ "style": "link" }));
    }
    let more = bodies.iter().find_map(flag);
    // The token of a page is the parameter of the next call.
    let token = walk.windows(2).zip(bodies).find_map(|(pair, body)| {
        let [_, next] = pair else { return None };
        next.request.url.query_pairs().find_map(|(param, value)| {
            let pointer = scalar(body, &value, String::new(), 0)?;
            Some((param.into_owned(), pointer))
        })
    });
    // A walk of one page may still say how it would go on.
    let (param, pointer) = token.or_else(|| bodies.iter().find_map(offered))?;
    let mut paging = json!({ "style": "token", "param": param, "token": pointer });
    if let (Some(more), Some(paging)) = (more, paging.as_object_mut()) {
        paging.insert("has_more".to_owned(), json!(more));
    }
    Some(paging)
}

/// Where a body says whether there is more.
fn flag(body: &Value) -> Option<String> {
    let name = body.as_object()?.iter().find(|(name, value)| {
        let plain = name.to_ascii_lowercase().replace(['_', '-'], "");
        plain == "hasmore" && value.is_boolean()
    })?;
    Some(format!("/{}", escape(name.0)))
}

/// A token that a body offers under one of its usual names.
fn offered(body: &Value) -> Option<(String, String)> {
    body.as_object()?.iter().find_map(|(name, value)| {
        let plain = name.to_ascii_lowercase().replace(['_', '-'], "");
        let is_token = ["nextcursor", "nextpagetoken", "offset"].contains(&plain.as_str());
        let filled = value.as_str().is_some_and(|text| !text.is_empty()) || value.is_number();
        (is_token && filled).then(|| (name.clone(), format!("/{}", escape(name))))
    })
}

/// Where a text or number stands in a body, outside of its records.
fn scalar(value: &Value, wanted: &str, pointer: String, depth: usize) -> Option<String> {
    match value {
        // A short value may be anything.
        Value::String(text) if text == wanted && text.len() > 3 => Some(pointer),
        Value::Number(number) if number.to_string() == wanted && wanted.len() > 3 => Some(pointer),
        Value::Object(fields) if depth < DEPTH => fields.iter().find_map(|(name, value)| {
            scalar(
                value,
                wanted,
                format!("{pointer}/{}", escape(name)),
                depth + 1,
            )
        }),
        _ => None,
    }
}
