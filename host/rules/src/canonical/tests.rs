use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn hash(text: &str) -> [u8; 32] {
    Digester::default().digest(text).unwrap().hash
}

fn same(a: &str, b: &str) -> bool {
    hash(a) == hash(b)
}

fn pointers(list: &[&str]) -> Vec<String> {
    list.iter().map(|pointer| (*pointer).to_owned()).collect()
}

fn without(volatile: &[&str]) -> Digester {
    Digester::new(&pointers(volatile), &[]).unwrap()
}

fn canonical_without(volatile: &[&str], text: &str) -> String {
    let mut digester = without(volatile);
    String::from_utf8(digester.canonical(text).unwrap().to_vec()).unwrap()
}

fn missing(required: &[&str], text: &str) -> Vec<String> {
    let mut digester = Digester::new(&[], &pointers(required)).unwrap();
    digester.digest(text).unwrap().missing
}

fn syntax(text: &str) -> usize {
    match canonical_string(text) {
        Err(CanonicalError::Syntax { offset, .. }) => offset,
        other => panic!("{text:?} gave {other:?}"),
    }
}

#[test]
fn the_hash_is_sha_256_of_the_canonical_form() {
    let expected: [u8; 32] = Sha256::digest(br#"{"a":[1,2.50],"b":"x"}"#).into();
    assert_eq!(hash("{ \"b\" : \"x\",\n\t\"a\": [1, 2.50] }"), expected);
}

#[test]
fn case_113_a_byte_order_mark_is_no_content() {
    assert!(same("\u{feff}{\"id\":1}", r#"{"id":1}"#));
    assert!(same("\u{feff} [{\"id\":1}]", r#"[{"id":1}]"#));
    assert_eq!(
        canonical_string("\u{feff}{\"id\":1}").unwrap(),
        r#"{"id":1}"#
    );
    // Only at the start.
    assert_eq!(syntax("{\u{feff}\"id\":1}"), 1);
}

#[test]
fn case_115_half_a_surrogate_pair_says_the_replacement_character() {
    assert!(same(r#"{"name":"\ud83d"}"#, r#"{"name":"\ufffd"}"#));
    assert!(same(r#"{"name":"\udd25!"}"#, "{\"name\":\"\u{fffd}!\"}"));
    assert!(same(r#""\ud83d\ud83d\udd25""#, "\"\u{fffd}\u{1f525}\""));
    assert!(same(r#""\ud83d\u0041""#, "\"\u{fffd}A\""));
    assert!(same(
        r#"{"name":"\ud83d\udd25"}"#,
        "{\"name\":\"\u{1f525}\"}"
    ));
}

#[test]
fn case_115_repaired_text_can_be_read_by_a_strict_parser() {
    let page = r#"{"n":"\ud83d","ok":"\ud83d\udd25","low":"\uDD25x","twice":"\ud83d\ud83d","plain":"\\ud83d"}"#;
    assert!(serde_json::from_str::<Value>(page).is_err());
    let repaired = repair_surrogates(page);
    let value: Value = serde_json::from_str(&repaired).unwrap();
    assert_eq!(value["n"], "\u{fffd}");
    assert_eq!(value["ok"], "\u{1f525}");
    assert_eq!(value["low"], "\u{fffd}x");
    assert_eq!(value["twice"], "\u{fffd}\u{fffd}");
    assert_eq!(value["plain"], "\\ud83d");
    assert_eq!(repaired.len(), page.len());
    assert!(same(page, &repaired));
}

#[test]
fn text_without_surrogates_is_not_copied() {
    for text in [
        r#"{"a":"\u00e4\n\\"}"#,
        "",
        "\\",
        "\\u",
        "\\ud8",
        "\"\\ud83d\\udd25\"",
    ] {
        assert!(
            matches!(repair_surrogates(text), std::borrow::Cow::Borrowed(_)),
            "{text}"
        );
    }
}

#[test]
fn case_117_numbers_stay_as_they_are_written() {
    let record = r#"{"id":9224851642388483,"other":1285704473650888702,"money":0.10,"exp":1E2}"#;
    assert_eq!(
        canonical_string(record).unwrap(),
        r#"{"exp":1E2,"id":9224851642388483,"money":0.10,"other":1285704473650888702}"#
    );
    // The rule: another spelling is another value.
    assert!(!same("9224851642388483", "9224851642388484"));
    assert!(!same("0.10", "0.1"));
    assert!(!same("1E2", "1e2"));
    assert!(!same("1E2", "100"));
    assert!(!same("0", "-0"));
}

#[test]
fn case_119_of_a_repeated_key_the_last_value_counts() {
    let first = r#"{"id":1,"qty":1,"qty":-1}"#;
    let second = r#"{"id":1,"qty":-1,"qty":1}"#;
    assert_eq!(canonical_string(first).unwrap(), r#"{"id":1,"qty":-1}"#);
    assert_eq!(canonical_string(second).unwrap(), r#"{"id":1,"qty":1}"#);
    assert!(!same(first, second));
    // The same key however it is escaped, and however far apart.
    assert_eq!(
        canonical_string(r#"{"qty":1,"z":0,"\u0071ty":2,"a":[],"qt\u0079":3}"#).unwrap(),
        r#"{"a":[],"qty":3,"z":0}"#
    );
    assert_eq!(
        crate::json_pointer::pointer_value(first, "/qty"),
        Some("-1"),
        "the same rule for a value that is looked up"
    );
}

#[test]
fn case_121_order_of_keys_and_white_space_are_no_change() {
    let first = r#"{"id":1,"a":1,"b":{"x":1,"y":2}}"#;
    let second = r#"{"b":{"y":2,"x":1},"id":1,"a":1}"#;
    let third = "{ \"b\": { \"y\": 2, \"x\": 1 },\r\n \"id\": 1,\t\"a\": 1 }";
    assert!(same(first, second));
    assert!(same(first, third));
    // The rule for numbers holds: `1.0` is not `1`.
    assert!(!same(first, r#"{"id":1,"a":1.0,"b":{"x":1,"y":2}}"#));
    // The order of an array's elements counts.
    assert!(!same("[1,2]", "[2,1]"));
}

#[test]
fn strings_count_by_what_they_say() {
    assert!(same(r#""\u0041\/\t\u00e4""#, "\"A/\\u0009ä\""));
    assert!(same(r#"{"\u0061":1}"#, r#"{"a":1}"#));
    assert!(!same(r#""a""#, r#""a ""#));
    assert_eq!(
        canonical_string(r#""\n\u0000\u001F\"\\\/""#).unwrap(),
        r#""\u000a\u0000\u001f\"\\/""#
    );
    // A string that looks like an escape is not one.
    assert!(!same(r#""\\u0041""#, r#""A""#));
    assert!(!same(r#""1""#, "1"));
    assert!(!same(r#""null""#, "null"));
}

#[test]
fn keys_sort_by_what_they_say() {
    assert_eq!(
        canonical_string(r#"{"b":1,"a":2,"B":3,"":4}"#).unwrap(),
        r#"{"":4,"B":3,"a":2,"b":1}"#
    );
    // A quote (0x22) sorts before `#`, although its escape begins with a backslash (0x5c).
    assert_eq!(
        canonical_string(r##"{"#":1,"\"":2,"a\\":3,"aZ":4}"##).unwrap(),
        r##"{"\"":2,"#":1,"aZ":4,"a\\":3}"##
    );
    // Prefixes first, then by bytes.
    assert_eq!(
        canonical_string(r#"{"ab":1,"a":2,"ä":3,"a!":4}"#).unwrap(),
        r#"{"a":2,"a!":4,"ab":1,"ä":3}"#
    );
}

#[test]
fn what_is_volatile_is_left_out_at_any_depth() {
    let text = r#"{"id":1,"votes":5,"user":{"name":"x","seen":9},"items":[{"n":1,"score":3},{"n":2,"score":4}]}"#;
    assert_eq!(
        canonical_without(&["/votes", "/user/seen", "/items/*/score"], text),
        r#"{"id":1,"items":[{"n":1},{"n":2}],"user":{"name":"x"}}"#
    );
    assert_eq!(
        canonical_without(&["/items/1", "/items/*/n", "/nothing/here"], text),
        r#"{"id":1,"items":[{"score":3}],"user":{"name":"x","seen":9},"votes":5}"#
    );
    // An index and every element say what they say together.
    assert_eq!(
        canonical_without(&["/items/0/n", "/items/*/score"], text),
        r#"{"id":1,"items":[{},{"n":2}],"user":{"name":"x","seen":9},"votes":5}"#
    );
    // All of an object or array may go, first, middle or last.
    assert_eq!(
        canonical_without(&["/a", "/b", "/c"], r#"{"c":1,"b":2,"a":3}"#),
        "{}"
    );
    assert_eq!(canonical_without(&["/0", "/2"], "[1,2,3]"), "[2]");
    assert_eq!(canonical_without(&["/*"], "[1,2,3]"), "[]");
}

#[test]
fn volatile_keys_are_found_by_value() {
    assert_eq!(
        canonical_without(&["/a~1b", "/m~0n", "/"], r#"{"a/b":1,"m~n":2,"":3,"x":4}"#),
        r#"{"x":4}"#
    );
    assert_eq!(
        canonical_without(&["/votes"], r#"{"\u0076otes":1,"x":2}"#),
        r#"{"x":2}"#
    );
    // In an object a star is a key, and digits are too.
    assert_eq!(
        canonical_without(&["/*", "/0"], r#"{"*":1,"0":2,"1":3}"#),
        r#"{"1":3}"#
    );
    // In an array a key is nothing.
    assert_eq!(canonical_without(&["/01", "/-", "/a"], "[1,2]"), "[1,2]");
}

#[test]
fn a_volatile_part_must_still_be_json() {
    assert!(without(&["/votes"]).digest(r#"{"votes":tru}"#).is_err());
}

#[test]
fn required_fields_are_looked_for() {
    let text = r#"{"id":1,"user":{"name":null},"tags":["a"]}"#;
    assert!(missing(&["/id", "/user/name", "/tags/0", ""], text).is_empty());
    assert_eq!(
        missing(&["/id", "/user/mail", "/tags/1", "/nope"], text),
        ["/user/mail", "/tags/1", "/nope"]
    );
    assert_eq!(missing(&["/id"], "[]"), ["/id"]);
    // Volatile and required at once: looked for, and left out.
    let mut both = Digester::new(
        &pointers(&["/user"]),
        &pointers(&["/user/name", "/user/mail"]),
    )
    .unwrap();
    let digest = both.digest(text).unwrap();
    assert_eq!(digest.missing, ["/user/mail"]);
    assert_eq!(digest.hash, hash(r#"{"id":1,"tags":["a"]}"#));
}

#[test]
fn a_required_field_under_an_overruled_key_is_missing() {
    assert_eq!(missing(&["/a/x"], r#"{"a":{"x":1},"a":{}}"#), ["/a/x"]);
    assert!(missing(&["/a/x"], r#"{"a":{},"a":{"x":1}}"#).is_empty());
}

#[test]
fn a_required_pointer_given_twice_is_one_demand() {
    assert!(missing(&["/id", "/id"], r#"{"id":1}"#).is_empty());
    assert_eq!(missing(&["/id", "/a", "/id"], "{}"), ["/id", "/a"]);
}

#[test]
fn a_digester_forgets_the_record_before() {
    let mut digester = Digester::new(&[], &pointers(&["/id"])).unwrap();
    assert!(
        digester
            .digest(r#"{"id":1,"a":2}"#)
            .unwrap()
            .missing
            .is_empty()
    );
    assert_eq!(digester.digest(r#"{"a":2}"#).unwrap().missing, ["/id"]);
    assert!(digester.digest(r#"{"b":{"z":1,"#).is_err());
    assert_eq!(
        digester.digest(r#"{"b":1,"a":2}"#).unwrap().hash,
        hash(r#"{"a":2,"b":1}"#)
    );
}

#[test]
fn pointers_that_are_none_are_refused() {
    let refuse = |pointer: &str| Digester::new(&pointers(&[pointer]), &[]).unwrap_err();
    assert_eq!(refuse("votes"), PointerError::NoSlash("votes".into()));
    assert_eq!(refuse("/a~2"), PointerError::Tilde("/a~2".into()));
    assert_eq!(refuse("/a~"), PointerError::Tilde("/a~".into()));
    assert_eq!(refuse(""), PointerError::WholeRecord);
}

#[test]
fn what_is_not_json_is_refused_at_its_offset() {
    for (text, offset) in [
        ("", 0),
        ("  ", 2),
        ("nul", 0),
        ("nullx", 4),
        ("01", 1),
        ("-", 1),
        ("1.", 2),
        ("1e+", 3),
        (".5", 0),
        ("+1", 0),
        ("NaN", 0),
        ("[1,]", 3),
        ("[,1]", 1),
        ("[1 2]", 3),
        ("[1", 2),
        ("{\"a\":1,}", 7),
        ("{\"a\" 1}", 5),
        ("{a:1}", 1),
        ("{\"a\":1 \"b\":2}", 7),
        ("\"abc", 4),
        ("\"a\nb\"", 2),
        ("\"a\\x\"", 2),
        ("\"\\u12g4\"", 1),
        ("\"\\", 1),
        ("{} {}", 3),
        ("[]]", 2),
        ("'a'", 0),
    ] {
        assert_eq!(syntax(text), offset, "{text:?}");
    }
}

#[test]
fn nesting_ends_before_the_stack_does() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(canonical_string(&nested(MAX_DEPTH as usize)).is_ok());
    assert_eq!(
        canonical_string(&nested(MAX_DEPTH as usize + 1)),
        Err(CanonicalError::TooDeep {
            offset: MAX_DEPTH as usize
        })
    );
    assert!(canonical_string(&"[".repeat(1_000_000)).is_err());
    assert!(canonical_string(&"{\"a\":".repeat(1_000_000)).is_err());
}

#[test]
fn values_are_found_by_pointer() {
    let text = "\u{feff} {\"a\":{\"b\":[10, {\"c\":\"x\\\"y\"} ]},\"a/b\":1.50} ";
    let at = |pointer| crate::json_pointer::pointer_value(text, pointer);
    assert_eq!(at("/a/b/0"), Some("10"));
    assert_eq!(at("/a/b/1/c"), Some("\"x\\\"y\""));
    assert_eq!(at("/a~1b"), Some("1.50"));
    assert_eq!(at("/a/b"), Some("[10, {\"c\":\"x\\\"y\"} ]"));
    assert_eq!(at("/a/b/2"), None);
    assert_eq!(at("/a/b/01"), None);
    assert_eq!(at("/a~1b/0"), None);
    assert_eq!(at("a"), None);
    assert!(at("").unwrap().starts_with('{') && at("").unwrap().ends_with('}'));
    assert_eq!(
        crate::json_pointer::pointer_value("{\"a\":1} x", "/a"),
        None
    );
}

/// Strings that try the scanner's word boundaries and every escape.
fn strings() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,3}",
        "[ -~]{0,20}",
        "\\PC{0,12}",
        proptest::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1_000_000..1_000_000).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        strings().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((strings(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Writes a value with keys in an order, white space and escapes that `seed` picks.
fn spell(value: &Value, seed: &mut u64, out: &mut String) {
    fn pick(seed: &mut u64, of: u64) -> u64 {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % of
    }
    fn blank(seed: &mut u64, out: &mut String) {
        out.push_str(["", "", " ", "\n\t", "\r\n  "][pick(seed, 5) as usize]);
    }
    fn string(text: &str, seed: &mut u64, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            let must = c < ' ' || c == '"' || c == '\\';
            if must || pick(seed, 4) == 0 {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let hex = if pick(seed, 2) == 0 {
                        format!("\\u{unit:04x}")
                    } else {
                        format!("\\u{unit:04X}")
                    };
                    out.push_str(&hex);
                }
            } else {
                out.push(c);
            }
        }
        out.push('"');
    }
    blank(seed, out);
    match value {
        Value::Array(elements) => {
            out.push('[');
            for (n, element) in elements.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                spell(element, seed, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            let mut members: Vec<_> = members.iter().collect();
            for n in (1..members.len()).rev() {
                members.swap(n, pick(seed, n as u64 + 1) as usize);
            }
            for (n, (key, element)) in members.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                blank(seed, out);
                string(key, seed, out);
                blank(seed, out);
                out.push(':');
                spell(element, seed, out);
            }
            out.push('}');
        }
        Value::String(text) => string(text, seed, out),
        other => out.push_str(&other.to_string()),
    }
    blank(seed, out);
}

proptest! {
    #[test]
    fn spelling_never_changes_the_hash(value in values(), mut seed in any::<u64>()) {
        let mut spelt = String::new();
        spell(&value, &mut seed, &mut spelt);
        prop_assert!(same(&value.to_string(), &spelt), "{spelt}");
    }

    #[test]
    fn another_value_has_another_hash(a in values(), b in values()) {
        prop_assert_eq!(a == b, same(&a.to_string(), &b.to_string()));
    }

    #[test]
    fn the_canonical_form_is_json_of_the_same_value_and_its_own_canonical_form(value in values()) {
        let canonical = canonical_string(&value.to_string()).unwrap();
        let read: Value = serde_json::from_str(&canonical).unwrap();
        prop_assert_eq!(read, value);
        prop_assert_eq!(canonical_string(&canonical).unwrap(), canonical);
    }

    #[test]
    fn any_text_is_hashed_or_refused_as_a_strict_parser_does(text in "[\\[\\]{}\",:0-9a-fu\\\\ .eE+\\-tnl]{0,24}") {
        let ours = canonical_string(&text).is_ok();
        // The strict parser refuses halves of surrogate pairs; ours reads them.
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&repair_surrogates(&text)).is_ok();
        prop_assert_eq!(ours, theirs, "{}", text);
    }

    #[test]
    fn no_text_panics(text in any::<String>(), pointer in any::<String>()) {
        let _ = canonical_string(&text);
        let _ = repair_surrogates(&text);
        let _ = crate::json_pointer::pointer_value(&text, &pointer);
        let _ = Digester::new(std::slice::from_ref(&pointer), std::slice::from_ref(&pointer));
    }

    #[test]
    fn leaving_out_a_field_makes_its_value_irrelevant(value in values(), other in values()) {
        let with = |field: &Value| format!(r#"{{"z":1,"v":{field},"a":[{{"v":{field}}}]}}"#);
        let mut digester = without(&["/v", "/a/*/v"]);
        prop_assert_eq!(digester.digest(&with(&value)).unwrap(), digester.digest(&with(&other)).unwrap());
    }
}
