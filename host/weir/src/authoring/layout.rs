//! JSON laid out for people: the same values, digits and order, on lines that fit; and parts of it replaced.
//!
//! Nothing is read into numbers on the way: `1.10` stays `1.10`, and of two equal keys both stay.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What fits on one line stays on one.
const WIDTH: usize = 100;

/// A JSON text, laid out.
///
/// # Errors
/// It is not JSON.
pub fn pretty(text: &str) -> serde_json::Result<String> {
    let mut out = String::new();
    write(&mut out, text, 0, 0)?;
    Ok(out)
}

/// A JSON text without blanks between its parts.
///
/// # Errors
/// It is not JSON.
pub fn compact(text: &str) -> serde_json::Result<String> {
    replace(text, &mut |_, _| None)
}

/// The text with some of its scalars replaced. `change` is asked for every value, from the outside in, with the path to
/// it; what it gives is JSON and takes the value's place.
///
/// # Errors
/// It is not JSON.
pub fn replace(
    text: &str,
    change: &mut dyn FnMut(&[String], &str) -> Option<String>,
) -> serde_json::Result<String> {
    let mut path = Vec::new();
    let mut out = String::with_capacity(text.len());
    rewrite(&mut out, text, &mut path, change)?;
    Ok(out)
}

fn rewrite(
    out: &mut String,
    text: &str,
    path: &mut Vec<String>,
    change: &mut dyn FnMut(&[String], &str) -> Option<String>,
) -> serde_json::Result<()> {
    if let Some(other) = change(path, text.trim()) {
        out.push_str(&other);
        return Ok(());
    }
    match parts(text)? {
        Parts::Scalar(text) => out.push_str(text),
        Parts::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                path.push(place.to_string());
                rewrite(out, item.get(), path, change)?;
                path.pop();
            }
            out.push(']');
        }
        Parts::Object(members) => {
            out.push('{');
            for (place, (key, value)) in members.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                out.push_str(&quoted(key));
                out.push(':');
                path.push(key.clone());
                rewrite(out, value.get(), path, change)?;
                path.pop();
            }
            out.push('}');
        }
    }
    Ok(())
}

/// Writes a value that begins at this column, in lines that are indented by so much.
fn write(out: &mut String, text: &str, indent: usize, column: usize) -> serde_json::Result<()> {
    let parts = parts(text)?;
    let (open, close, lines): (_, _, Vec<(String, &str)>) = match &parts {
        Parts::Scalar(text) => {
            out.push_str(text);
            return Ok(());
        }
        Parts::Array(items) => {
            let items = items.iter().map(|item| (String::new(), item.get()));
            ('[', ']', items.collect())
        }
        Parts::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (format!("{}: ", quoted(key)), value.get()));
            ('{', '}', members.collect())
        }
    };
    if let Some(line) = one_line(text, WIDTH.saturating_sub(column))? {
        out.push_str(&line);
        return Ok(());
    }
    out.push(open);
    let inner = indent + 2;
    for (place, (head, value)) in lines.iter().enumerate() {
        out.push_str(if place > 0 { ",\n" } else { "\n" });
        out.extend(std::iter::repeat_n(' ', inner));
        out.push_str(head);
        write(out, value, inner, inner + head.chars().count())?;
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
    out.push(close);
    Ok(())
}

/// The value on one line, if it fits.
fn one_line(text: &str, width: usize) -> serde_json::Result<Option<String>> {
    // Blanks are all that laying out takes away.
    if text
        .chars()
        .filter(|c| !c.is_whitespace())
        .take(width + 1)
        .count()
        > width
    {
        return Ok(None);
    }
    let mut out = String::new();
    flat(&mut out, text)?;
    Ok((out.chars().count() <= width).then_some(out))
}

fn flat(out: &mut String, text: &str) -> serde_json::Result<()> {
    match parts(text)? {
        Parts::Scalar(text) => out.push_str(text),
        Parts::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                flat(out, item.get())?;
            }
            out.push(']');
        }
        Parts::Object(members) if members.is_empty() => out.push_str("{}"),
        Parts::Object(members) => {
            out.push_str("{ ");
            for (place, (key, value)) in members.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                out.push_str(&quoted(key));
                out.push_str(": ");
                flat(out, value.get())?;
            }
            out.push_str(" }");
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// One level of a value.
enum Parts<'a> {
    Scalar(&'a str),
    Array(Vec<&'a RawValue>),
    Object(Vec<(String, &'a RawValue)>),
}

fn parts(text: &str) -> serde_json::Result<Parts<'_>> {
    let text = text.trim();
    let mut reader = serde_json::Deserializer::from_str(text);
    let parts = match text.as_bytes().first() {
        Some(b'[') => reader.deserialize_seq(OneLevel)?,
        Some(b'{') => reader.deserialize_map(OneLevel)?,
        _ => {
            let scalar: &RawValue = serde_json::from_str(text)?;
            return Ok(Parts::Scalar(scalar.get()));
        }
    };
    reader.end()?;
    Ok(parts)
}

struct OneLevel;

impl<'de> Visitor<'de> for OneLevel {
    type Value = Parts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Parts::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Parts::Object(members))
    }
}

/// The JSON pointer to the value that is exactly these bytes of the text; none when they are no value of it.
pub fn pointer_to(text: &str, start: usize, end: usize) -> Option<String> {
    let mut pointer = String::new();
    let mut around = text;
    loop {
        let trimmed = around.trim();
        let from = offset(text, trimmed)?;
        if from == start && from + trimmed.len() == end {
            return Some(pointer);
        }
        let holds = |value: &RawValue| {
            offset(text, value.get())
                .is_some_and(|from| from <= start && end <= from + value.get().len())
        };
        let (token, value) = match parts(trimmed).ok()? {
            Parts::Scalar(_) => return None,
            Parts::Array(items) => {
                let place = items.iter().position(|item| holds(item))?;
                (place.to_string(), *items.get(place)?)
            }
            Parts::Object(members) => members.into_iter().find(|(_, value)| holds(value))?,
        };
        pointer.push('/');
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        around = value.get();
    }
}

/// Where a slice of the text begins in it.
fn offset(text: &str, part: &str) -> Option<usize> {
    part.as_ptr().addr().checked_sub(text.as_ptr().addr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn what_fits_stays_on_a_line_and_digits_stay_as_they_are() {
        let text = r#"{"id":12345678901234567890123,"price":1.10,"a":{"b":[]},"a":{"b":[1,  2]}}"#;
        assert_eq!(
            pretty(text).unwrap(),
            r#"{ "id": 12345678901234567890123, "price": 1.10, "a": { "b": [] }, "a": { "b": [1, 2] } }"#
        );
        let long = format!(r#"{{"a":"{0}","b":["{0}",{{"c":"{0}"}}]}}"#, "x".repeat(60));
        let laid = pretty(&long).unwrap();
        assert!(laid.lines().count() > 3, "{laid}");
        assert!(laid.lines().all(|line| line.len() < 100), "{laid}");
        assert_eq!(compact(&laid).unwrap(), long);
    }

    #[test]
    fn a_slice_is_found_by_its_place() {
        let text = r#" { "items" : [ {"id":1}, {"id":1} ], "a/b": {"~": [7]} } "#;
        let at = |part: &str, nth: usize| {
            let (start, _) = text.match_indices(part).nth(nth).unwrap();
            pointer_to(text, start, start + part.len())
        };
        assert_eq!(at(r#"{"id":1}"#, 0).unwrap(), "/items/0");
        assert_eq!(at(r#"{"id":1}"#, 1).unwrap(), "/items/1");
        assert_eq!(at("[7]", 0).unwrap(), "/a~1b/~0");
        assert_eq!(at(text.trim(), 0).unwrap(), "");
        assert_eq!(at(r#""id":1"#, 0), None);
        assert_eq!(pointer_to("id,name", 0, 2), None);
    }

    #[test]
    fn parts_are_replaced_where_they_stand() {
        let out = replace(r#"{"a":[1,{"b":"x"}],"b":"y"}"#, &mut |path, _| {
            (path.last().is_some_and(|last| last == "b")).then(|| "null".to_owned())
        });
        assert_eq!(out.unwrap(), r#"{"a":[1,{"b":null}],"b":null}"#);
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,30}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".{0,8}", inner, 0..6).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn layout_changes_no_value(value in json()) {
            let text = value.to_string();
            let laid = pretty(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&laid).unwrap(), value);
            prop_assert_eq!(pretty(&laid).unwrap(), laid.clone());
            prop_assert_eq!(compact(&laid).unwrap(), compact(&text).unwrap());
        }
    }
}
