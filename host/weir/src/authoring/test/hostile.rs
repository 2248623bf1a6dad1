//! Answers that no vendor should give and some do: each must come to a fault or to a page, never to a crash.

use std::collections::HashMap;

use serde_json::Value;
use weir_runtime::Connector;
use weir_runtime::contract::{Body, Header, Response};

use super::Outcome;
use super::walks::Walked;
use crate::authoring::walk::play::Played;
use crate::authoring::{count, layout};

/// Bytes of the large answers: more than any page, less than what a host takes.
const LARGE: usize = 2 << 20;
/// Records of the large pages: each may be a way to go on, of which a page may name so many.
const MANY: usize = weir_runtime::limits::STEPS / 2;
/// Brackets of the deep ones.
const DEEP: usize = 50_000;
/// Places of a stream that are tried: its first call, and one further on.
const PLACES: usize = 2;

const HTML: &str =
    "<!doctype html><html><head><title>Sign in</title></head><body>Service</body></html>";

/// One answer.
struct Attack {
    name: &'static str,
    status: u16,
    body: Body,
    headers: Vec<Header>,
    /// It cannot be taken for a page.
    is_fault: bool,
}

/// Tries them all on every stream.
pub(super) fn run(connector: &Connector, walked: &[Walked]) -> Outcome {
    let mut wrong = Vec::new();
    let mut tried = 0;
    let mut places: HashMap<&str, usize> = HashMap::new();
    for walk in walked {
        let mut seen_first = false;
        for played in walk.played.iter().filter(|played| played.read.is_ok()) {
            let count = places.entry(&walk.stream.name).or_default();
            if *count >= PLACES || (played.step.is_none() && seen_first) {
                continue;
            }
            seen_first |= played.step.is_none();
            *count += 1;
            for attack in attacks(&played.response) {
                tried += 1;
                if let Some(why) = try_one(connector, played, &attack) {
                    wrong.push(format!(
                        "stream {}, {}: {why}",
                        walk.stream.name, attack.name
                    ));
                }
            }
        }
    }
    Outcome::of(
        "hostile answers",
        wrong,
        format!(
            "{}, no crash, none taken for a page",
            count(tried, "answer")
        ),
    )
}

fn try_one(connector: &Connector, played: &Played, attack: &Attack) -> Option<String> {
    let response = Response {
        status: attack.status,
        headers: attack.headers.clone(),
        body: attack.body.clone(),
        url: played.response.url.clone(),
        elapsed: 100,
    };
    match connector.read_response(&played.task, played.step.as_deref(), &response) {
        Err(error) => Some(error.kind.to_string()),
        Ok(Ok(page)) if attack.is_fault => Some(format!(
            "it was taken for a page ({}); it must be a fault, or records would be missed",
            count(page.records.len(), "record")
        )),
        Ok(_) => None,
    }
}

fn attacks(good: &Response) -> Vec<Attack> {
    let recorded = good.text().unwrap_or_default();
    let is_json = serde_json::from_str::<Value>(recorded)
        .is_ok_and(|value| value.is_object() || value.is_array());
    let text = |name, status, text: String, is_fault| Attack {
        name,
        status,
        body: Body::Text(text),
        headers: good.headers.clone(),
        is_fault,
    };
    let mut all = vec![
        text("an empty answer", 200, String::new(), is_json),
        text("a web page with 200", 200, HTML.to_owned(), is_json),
        text("a web page with 429", 429, HTML.to_owned(), true),
        text("a web page with 503", 503, HTML.to_owned(), true),
        text("an empty 500", 500, String::new(), true),
        text("an array without an end", 200, "[".repeat(DEEP), is_json),
        text(
            "deep arrays",
            200,
            "[".repeat(DEEP) + &"]".repeat(DEEP),
            false,
        ),
        text(
            "a large string",
            200,
            format!("{{\"a\":\"{}\"}}", "x".repeat(LARGE)),
            false,
        ),
    ];
    for status in [204, 400, 401, 403, 404, 409, 410, 422, 451, 599] {
        all.push(text(
            "an empty answer with another status",
            status,
            String::new(),
            false,
        ));
        all.push(text(
            "an error in JSON",
            status,
            r#"{"error":{"code":7,"message":["x"]}}"#.to_owned(),
            false,
        ));
    }
    for scalar in [
        "null",
        "true",
        "0",
        "\"text\"",
        "[]",
        "{}",
        "[null]",
        "\u{feff}{}",
    ] {
        all.push(text(
            "a value of another kind",
            200,
            scalar.to_owned(),
            false,
        ));
    }
    all.push(Attack {
        name: "bytes that are no text",
        status: 200,
        body: Body::Bytes(vec![0xff, 0xfe, 0x00, 0x80]),
        headers: Vec::new(),
        is_fault: is_json,
    });
    if !is_json {
        return all;
    }
    let half = recorded.floor_char_boundary(recorded.trim_end().len() / 2);
    all.push(text(
        "an answer that is cut off",
        200,
        recorded.get(..half).unwrap_or_default().to_owned(),
        true,
    ));
    for (name, changed) in [
        (
            "numbers for strings and strings for numbers",
            swapped(recorded),
        ),
        ("null in every field", emptied(recorded)),
        ("objects for arrays", unlisted(recorded)),
        ("a large page", repeated(recorded)),
    ] {
        all.extend(changed.map(|changed| text(name, 200, changed, false)));
    }
    let broken = [
        ("link", "<<>;;rel=next, <"),
        ("retry-after", "soon"),
        ("date", "never"),
    ];
    all.push(Attack {
        headers: broken
            .iter()
            .map(|(name, value)| Header {
                name: (*name).to_owned(),
                value: (*value).to_owned(),
            })
            .collect(),
        ..text("broken headers", 200, recorded.to_owned(), false)
    });
    all
}

fn swapped(text: &str) -> Option<String> {
    layout::replace(text, &mut |_, value| match value.as_bytes().first()? {
        b'"' => Some("7".to_owned()),
        b'0'..=b'9' | b'-' => Some("\"x\"".to_owned()),
        b't' | b'f' => Some("{}".to_owned()),
        _ => None,
    })
    .ok()
}

fn emptied(text: &str) -> Option<String> {
    layout::replace(text, &mut |_, value| {
        (!value.starts_with(['{', '['])).then(|| "null".to_owned())
    })
    .ok()
}

fn unlisted(text: &str) -> Option<String> {
    layout::replace(text, &mut |_, value| {
        value.starts_with('[').then(|| "{\"0\":{}}".to_owned())
    })
    .ok()
}

/// The first list with something in it, over and over.
fn repeated(text: &str) -> Option<String> {
    let mut done = false;
    layout::replace(text, &mut |_, value| {
        let inner = value.strip_prefix('[')?.strip_suffix(']')?.trim();
        if done || !inner.starts_with('{') {
            return None;
        }
        done = true;
        let times = (LARGE / inner.len().max(1)).clamp(1, MANY);
        Some(format!("[{}]", vec![inner; times].join(",")))
    })
    .ok()
    .filter(|_| done)
}
