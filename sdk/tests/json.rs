//! The reader against serde_json: on whole texts it finds the same, on broken ones it says so.
#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::Value;
use weir_sdk::json::{self, Error, Plan};
use weir_sdk::{Class, Fault, Response};

/// Any JSON, with strings that hold what trips readers up.
fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z]{0,12}",
        any::<String>(),
        r#"[\\"{}\[\],:/ \n]{0,40}"#,
        "[ -~]{60,200}",
        Just("👋 日本 \u{feff}\u{2028}".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]", "id|items|next|0|1", r#"[~/"\\é{}\[\] ]{0,4}"#]
}

/// All pointers into a value, with the value that each leads to.
fn pointers(value: &Value, at: &str, found: &mut Vec<(String, Value)>) {
    found.push((at.to_owned(), value.clone()));
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(entries) => {
            for (key, item) in entries {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(item, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

fn texts(value: &Value) -> [String; 3] {
    let compact = value.to_string();
    let pretty = serde_json::to_string_pretty(value).unwrap();
    let marked = format!("\u{feff}\r\n {compact}\t ");
    [compact, pretty, marked]
}

proptest! {
    #[test]
    fn every_pointer_finds_what_serde_finds(value in value()) {
        let mut all = Vec::new();
        pointers(&value, "", &mut all);
        let missing = ["/nothing", "/a/nothing", "/99", "/items/x"];
        for text in texts(&value) {
            let mut plan = Plan::single();
            for (pointer, _) in &all {
                plan = plan.outside(pointer);
            }
            for pointer in missing {
                plan = plan.outside(pointer);
            }
            let listing = plan.read(&text).unwrap();
            for (number, (pointer, wanted)) in all.iter().enumerate() {
                let raw = listing.outside(number).unwrap_or_else(|| panic!("{pointer} in {text}"));
                let found: Value = serde_json::from_str(raw.json()).unwrap();
                prop_assert_eq!(&found, wanted, "{} in {}", pointer, text);
                if let Value::String(wanted) = wanted {
                    prop_assert_eq!(&*raw.string().unwrap(), wanted.as_str());
                }
            }
            for (offset, pointer) in missing.iter().enumerate() {
                let found = listing.outside(all.len() + offset).map(|raw| raw.json().to_owned());
                prop_assert_eq!(found.is_some(), value.pointer(pointer).is_some(), "{} in {}", pointer, text);
            }
        }
    }

    #[test]
    fn records_are_slices_of_the_answer(
        records in prop::collection::vec(value(), 0..8),
        before in value(),
        after in value(),
    ) {
        let whole = serde_json::json!({ "a": before, "items": records, "next": after });
        for text in texts(&whole) {
            let plan = Plan::new("/items").field("/id").field("").outside("/next").outside("/items/0");
            let listing = plan.read(&text).unwrap();
            prop_assert_eq!(listing.len(), records.len());
            for (row, record) in listing.rows().zip(&records) {
                let found: Value = serde_json::from_str(row.raw.json()).unwrap();
                prop_assert_eq!(&found, record);
                prop_assert_eq!(row.get(0).is_some(), record.pointer("/id").is_some());
                prop_assert_eq!(row.get(1), Some(row.raw));
                let sent = row.record(&text, "1");
                prop_assert!(matches!(sent.data, weir_sdk::Data::Slice(_)));
                prop_assert_eq!(sent.json(&text), Some(row.raw.json()));
            }
            let next: Value = serde_json::from_str(listing.outside(0).unwrap().json()).unwrap();
            prop_assert_eq!(next, after.clone());
            prop_assert_eq!(listing.outside(1), listing.rows().next().map(|row| row.raw));
        }
    }

    #[test]
    fn a_cut_text_is_never_whole(value in value(), cut in any::<prop::sample::Index>()) {
        let text = Value::from(vec![value]).to_string();
        let mut at = cut.index(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let plan = Plan::new("").field("/a").field("/id/a");
        prop_assert!(plan.read(&text[..at]).is_err(), "{}", &text[..at]);
        prop_assert!(json::at(&text[..at], "/0/a").is_err());
    }

    #[test]
    fn nothing_panics(text in any::<String>(), more in r#"[\[\]{}:,"\\au0-9 .eE+-]{0,80}"#) {
        for text in [text, more] {
            let plan = Plan::new("/a").field("/a").field("/0/a").outside("/b/0").outside("/a/0");
            if let Ok(listing) = plan.read(&text) {
                for row in listing.rows() {
                    let _ = (row.raw.string(), row.raw.id(), row.raw.i64(), row.id(0));
                }
            }
            let _ = json::at(&text, "").map(|raw| raw.map(|raw| (raw.string(), raw.id(), raw.kind())));
        }
    }

    #[test]
    fn what_serde_refuses_outside_of_skipped_values_is_refused(value in value(), at in any::<prop::sample::Index>()) {
        // A byte lost from the structure around the records must not go unseen: only skipped insides are unchecked.
        let text = serde_json::json!({ "items": [value] }).to_string();
        let prefix = r#"{"items":["#.len();
        let mut broken = text.clone();
        broken.remove(at.index(prefix));
        let plan = Plan::new("/items");
        if serde_json::from_str::<Value>(&broken).is_err() {
            prop_assert!(plan.read(&broken).is_err(), "{}", broken);
        }
    }
}

#[test]
fn case_107_a_wrong_shape_names_the_missing_path() {
    let plan = Plan::new("/channels").field("/id");
    for (text, wanted) in [
        (r#"{"ok":true,"channels":{}}"#, "an object at /channels"),
        (r#"{"ok":true,"channels":null}"#, "null at /channels"),
        (r#"{"ok":true}"#, "nothing at /channels"),
        ("[]", "nothing at /channels"),
        ("null", "nothing at /channels"),
    ] {
        let fault = Fault::from(plan.read(text).unwrap_err());
        assert_eq!(fault.class, Class::Incomplete, "{text}");
        assert!(fault.message.contains(wanted), "{text}: {}", fault.message);
    }
    let text = r#"{"channels":[{"id":1},{"name":"b"}]}"#;
    let listing = plan.read(text).unwrap();
    let fault: Fault = listing.last().unwrap().id(0).unwrap_err().into();
    assert_eq!(fault.class, Class::Incomplete);
    assert!(
        fault.message.contains("/channels/1/id"),
        "{}",
        fault.message
    );
}

#[test]
fn case_105_a_web_page_is_temporary_and_quoted_shortly() {
    let page = format!(
        "\u{feff}\n<!DOCTYPE html>\n<html>\u{7} Maintenance {}",
        "x".repeat(5000)
    );
    for result in [
        Plan::new("/a").read(&page).map(|_| ()),
        json::parse::<Value>(&page).map(|_| ()),
    ] {
        let fault = Fault::from(result.unwrap_err());
        assert_eq!(fault.class, Class::Temporary);
        assert!(
            fault.message.contains("<!DOCTYPE html> <html> Maintenance"),
            "{}",
            fault.message
        );
        assert!(fault.message.len() < 300);
    }
}

#[test]
fn case_109_a_body_that_ends_too_late_or_too_early_is_incomplete() {
    for text in [
        r#"[{"id":1},{"id":2}"#,
        r#"[{"id":1}]]"#,
        r#"[{"id":1}] x"#,
        "",
        "  ",
        "[1,]",
        "[1 2]",
        "tru",
        "-",
    ] {
        let plan = Plan::new("").field("/id");
        let error = plan.read(text);
        assert!(error.is_err(), "{text}");
        assert_eq!(
            Fault::from(error.unwrap_err()).class,
            Class::Incomplete,
            "{text}"
        );
    }
}

#[test]
fn case_113_a_byte_order_mark_is_not_part_of_the_record() {
    let text = "\u{feff}[{\"id\":1}]";
    let plan = Plan::new("").field("/id");
    let listing = plan.read(text).unwrap();
    let record = listing.last().unwrap().record(text, "1");
    assert_eq!(record.json(text), Some(r#"{"id":1}"#));
    assert_eq!(
        Response::new(200, text).json::<Vec<Value>>().unwrap().len(),
        1
    );
}

#[test]
fn case_115_a_cut_emoji_does_not_stop_the_page() {
    let text = r#"[{"id":"a\ud83d"},{"id":"\ud83d\udd25"},{"id":"\udd25\ud83d\ud83d\udd25"}]"#;
    let plan = Plan::new("").field("/id");
    let listing = plan.read(text).unwrap();
    let ids: Vec<String> = listing.rows().map(|row| row.id(0).unwrap()).collect();
    assert_eq!(ids, ["a\u{fffd}", "🔥", "\u{fffd}\u{fffd}🔥"]);
}

#[test]
fn case_117_digits_stay_as_they_are() {
    let text = r#"[{"id":9224851642388483},{"id":1285704473650888702},{"id":0.10},{"id":1E2},{"id":"007"}]"#;
    let plan = Plan::new("").field("/id");
    let listing = plan.read(text).unwrap();
    let ids: Vec<String> = listing.rows().map(|row| row.id(0).unwrap()).collect();
    assert_eq!(
        ids,
        [
            "9224851642388483",
            "1285704473650888702",
            "0.10",
            "1E2",
            "007"
        ]
    );
}

#[test]
fn case_119_of_two_equal_keys_the_last_counts() {
    let text = r#"{"items":[{"id":0}],"n":{"a":1,"b":2},"items":[{"id":1,"id":-1,"x":{"y":1},"x":{}}],"n":{"a":3}}"#;
    let plan = Plan::new("/items")
        .field("/id")
        .field("/x/y")
        .outside("/n/a")
        .outside("/n/b");
    let listing = plan.read(text).unwrap();
    assert_eq!(listing.len(), 1);
    let row = listing.last().unwrap();
    assert_eq!(row.id(0).unwrap(), "-1");
    assert_eq!(row.get(1), None);
    assert_eq!(listing.outside(0).and_then(|raw| raw.i64()), Some(3));
    assert_eq!(listing.outside(1), None);
    // Also when the second one is spelled with an escape.
    let text = r#"{"id":1,"\u0069d":2}"#;
    assert_eq!(json::at(text, "/id").unwrap().unwrap().i64(), Some(2));
}

#[test]
fn ids_are_texts_or_numbers_and_nothing_else() {
    for text in ["null", "true", "{}", "[]", r#""""#] {
        assert_eq!(json::at(text, "").unwrap().unwrap().id(), None, "{text}");
    }
    let plan = Plan::new("").field("/id");
    let listing = plan.read(r#"[{"id":null}]"#).unwrap();
    let error = listing.last().unwrap().id(0).unwrap_err();
    assert_eq!(
        error,
        Error::Shape {
            path: "/0/id".to_owned(),
            wanted: "an id",
            found: "null"
        }
    );
}

#[test]
fn deep_nesting_is_skipped_without_recursion() {
    let deep = format!("[{}{}]", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(json::elements(&deep, "").unwrap().len(), 1);
    assert!(json::elements(&deep[..300_000], "").is_err());
}

#[test]
fn long_strings_end_where_they_end() {
    // Quotes, backslashes and brackets at every distance from the start of a block.
    for length in 0..200 {
        let filler = "x".repeat(length);
        for tail in [r#"\""#, r"\\", r"\\\\", r#"\\\"]}"#, "]", "}{", "é", ""] {
            let text = format!(r#"[{{"skip":{{"a":"{filler}{tail}"}},"id":"{filler}{tail}"}},7]"#);
            let wanted: Vec<Value> = serde_json::from_str(&text).unwrap();
            let plan = Plan::new("").field("/id");
            let listing = plan.read(&text).unwrap();
            assert_eq!(listing.len(), 2, "{text}");
            let id = listing.rows().next().and_then(|row| row.get(0)).unwrap();
            assert_eq!(id.string().as_deref(), wanted[0]["id"].as_str(), "{text}");
        }
    }
}
