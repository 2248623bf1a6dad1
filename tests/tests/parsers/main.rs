//! Parsers of what comes from outside, against texts that nobody would write: see `bodies` for what must hold.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "what fails here fails a test"
)]

mod bodies;
#[allow(dead_code, reason = "the runtime's own tests use all of it")]
#[path = "../../../host/runtime/tests/all/guest.rs"]
mod guest;
mod guests;

use proptest::prelude::*;

/// What stands in the values of headers.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "[0-9]{1,30}(\\.[0-9]{0,6})?",
        "[0-9]{1,4}[/, ][0-9]{1,4}",
        "(-|\\+)?[0-9]{0,3}(ms|s|m|h|%|e9)?",
        "\"?[a-z]{0,4}\"?;(q|w|r|t|pk)=(:?[0-9]{1,12}|\"x\"|-1|1\\.5)(;(w|t)=[0-9]{1,20})?",
        "(limit|remaining|reset|total|resets|used)=[0-9]{1,20}([,;] ?(limit|remaining|reset)=[0-9]{1,9}){0,2}",
        "\\{\"[a-z_]{1,10}\":(\\[?\\{?\"?(call_count|total_time|estimated_time_to_regain_access)\"?:?[0-9.e]{1,9}\\}?\\]?|[0-9]{1,4})\\}",
        "(Mon|Tue|Xyz)(day)?,? [0-9]{1,2}[ -](Mar|Feb|Foo)[ -][0-9]{2,5} [0-9]{2}:[0-9]{2}:[0-9]{2}( GMT| UTC| \\+0100)?",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,12})?(Z|[+-][0-9]{2}:?[0-9]{2})?",
        any::<String>(),
    ]
}

fn name() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "date",
        "retry-after",
        "retry-after-ms",
        "x-retry-after",
        "ratelimit",
        "ratelimit-policy",
        "ratelimit-limit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "x-ratelimit-used",
        "x-rate-limit-reset",
        "x-rate-limit-time-reset-ms",
        "x-app-usage",
        "x-business-usage",
        "x-shop-api-call-limit",
        "limit-info",
        "x-ratelimit-interval-milliseconds",
        "acme-ratelimit-core",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "[a-z-]{1,20}"]
}

/// JSON and what is nearly so.
fn text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        "-?[0-9]{1,25}(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,4})?",
        "\"([a-z]|\\\\u[0-9a-fA-F]{4}|\\\\[nt\"\\\\/])*\"",
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        let member = ("(a|b|id|volatile|one more|\\\\u0061)", inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(" , "))),
            prop::collection::vec(member, 0..5).prop_map(|members| {
                let members: Vec<String> = members
                    .into_iter()
                    .map(|(key, value)| format!("\"{key}\": {value}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    });
    prop_oneof![8 => value, 1 => any::<String>(), 1 => "[\\[\\]{},:\"0-9a-z\\\\ ]{0,40}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn limit_headers(lines in prop::collection::vec((name(), value()), 0..10)) {
        let lines: Vec<String> = lines.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        bodies::limit_headers(lines.join("\n").as_bytes());
    }

    #[test]
    fn structured_fields(policy in value(), now in value()) {
        bodies::structured_fields(format!("{policy}\n{now}").as_bytes());
    }

    #[test]
    fn dates(text in value()) {
        bodies::dates(text.as_bytes());
    }

    #[test]
    fn links(
        text in prop_oneof![
            "(<[a-z/?=&:.]{0,20}>(; ?(rel|anchor|title)\\*?=?\"?[a-z /#]{0,9}\"?){0,3},? ?){0,4}",
            any::<String>(),
        ],
    ) {
        bodies::links(text.as_bytes());
    }

    #[test]
    fn canonical(text in text()) {
        bodies::canonical(text.as_bytes());
    }

    #[test]
    fn body(text in text()) {
        bodies::body(text.as_bytes());
    }

    #[test]
    fn config(
        lines in prop::collection::vec(
            "(\\[(host|sink\\.a|alert|connection\\.[ab](\\.streams\\.s|\\.config)?)\\]|(type|path|data|outbox|connector|auth|interval|overlap|start|freshness|backoff|volatile|rotate|timeout) = (\"[a-z0-9{}%./ ]{0,9}\"|[0-9]{1,20}|-1|1\\.5|true|\\{ [a-z]{2,5} = \"[0-9a-z]{1,4}\" \\}|\\[\\]|2026-0[0-9]-[0-9]{2})|.{0,20})",
            0..8,
        ),
    ) {
        bodies::config(lines.join("\n").as_bytes());
    }
}

/// The fuzz targets' first texts.
#[test]
fn the_seeds_hold() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    type Target = (&'static str, fn(&[u8]));
    let targets: [Target; 7] = [
        ("limit_headers", bodies::limit_headers),
        ("structured_fields", bodies::structured_fields),
        ("dates", bodies::dates),
        ("links", bodies::links),
        ("canonical", bodies::canonical),
        ("body", bodies::body),
        ("config", bodies::config),
    ];
    for (target, run) in targets {
        let mut seeds = 0;
        for seed in std::fs::read_dir(corpus.join(target)).unwrap() {
            run(&std::fs::read(seed.unwrap().path()).unwrap());
            seeds += 1;
        }
        assert!(seeds > 0, "no seeds for {target}");
    }
}

proptest! {
    // Each of them may be compiled.
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_file_loads_or_is_refused(data in prop::collection::vec(any::<u8>(), 0..200)) {
        guests::component(&data);
        let head = [&b"\0asm\x0d\0\x01\0"[..], &data].concat();
        guests::component(&head);
    }

    #[test]
    fn a_damaged_connector_loads_or_is_refused(at in any::<usize>(), byte in any::<u8>()) {
        guests::damaged_component(at, byte);
    }
}

proptest! {
    #[test]
    fn any_result_is_a_page_or_the_connectors_fault(
        words in prop::collection::vec(prop_oneof![4 => 0_u32..16, 2 => 65_536_u32..66_000, 1 => any::<u32>()], 0..60),
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        guests::guest_result(&bytes);
    }
}
