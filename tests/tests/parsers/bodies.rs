//! What must hold for any text that a vendor or a user can send: one function for each parser. Each panics where it does
//! not. The properties beside this file and the fuzz targets run the same functions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::value::RawValue;
use weir_rules::backoff::Backoff;
use weir_rules::budget::{Admit, Budget, Priority};
use weir_rules::canonical::{Digester, canonical_string};
use weir_rules::fault::{Alert, Context, Decision, FaultHistory, decide};
use weir_rules::http_date::{Anchor, any_form, http_date, rfc3339};
use weir_rules::limits;
use weir_rules::model::{Class, Fault, Scope};
use weir_rules::retry_after::{self, RetryAfter};
use weir_rules::wait::{Answer, vendor_wait};
use weir_sdk::{Response, json, link, time, url};

/// 2031-03-04T10:00:00Z
const NOW: i64 = 1_930_384_800_000;
const DAY: i64 = 86_400_000;

/// The headers of an answer, one `name: value` a line: what becomes of limits and waits.
pub fn limit_headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let headers: Vec<(String, String)> = text
        .lines()
        .take(24)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let at = Anchor::of(&headers, NOW);
    let reading = limits::read(&headers, &at);
    assert_eq!(reading, limits::read(&headers, &at), "read twice");
    for (nth, limit) in reading.limits.iter().enumerate() {
        let others = reading.limits.get(..nth).unwrap_or_default();
        assert!(others.iter().all(|other| other.bucket != limit.bucket));
        assert!((0.0..=1.0).contains(&limits::share_left(limit)));
        assert!(limit.used_percent.is_none_or(f64::is_finite));
        if let (Some(remaining), Some(most)) = (limit.remaining, limit.limit) {
            assert!(remaining <= most);
        }
        let mut budget = Budget::default();
        budget.update(limit, NOW);
        for priority in [Priority::Person, Priority::Schedule, Priority::Backfill] {
            if let Admit::WaitUntil(until) = budget.admit(NOW, 1, priority, 0.0) {
                assert!(until > NOW, "a wait that is over");
            }
        }
    }
    for class in [Class::RateLimited, Class::Temporary] {
        let answer = Answer {
            class,
            headers: &headers,
            at,
            body_wait: None,
            limits: &reading.limits,
            repeats: 0,
        };
        told(class, vendor_wait(&answer));
    }
}

/// No wait is over before it begins, and a very long one is kept and told of.
fn told(class: Class, wait: Option<weir_rules::wait::Wait>) {
    let fault = Fault {
        class,
        scope: Scope::Unit,
        code: String::new(),
        message: String::new(),
        wait: None,
        page_size: None,
        limits: Vec::new(),
    };
    let context = Context {
        now: NOW,
        backoff: Backoff::default(),
        wait,
        deadline: None,
    };
    let mut rng = StdRng::seed_from_u64(7);
    let decided = decide(&fault, &FaultHistory::default(), &context, &mut rng);
    let Decision::Retry { at, .. } = decided.decision else {
        panic!("not tried again: {:?}", decided.decision)
    };
    assert!(at >= NOW, "due before it failed");
    if let Some(wait) = wait {
        let until = NOW.saturating_add(i64::try_from(wait.ms).unwrap_or(i64::MAX));
        assert!(at >= until, "before the vendor's wait is over");
    }
    // What is added on the late side is seconds.
    if at > NOW + DAY + 60_000 {
        let alert = |alert: &Alert| matches!(alert, Alert::LongWait { .. });
        assert!(decided.alerts.iter().any(alert), "a long wait unsaid");
    }
}

/// The values of the IETF's fields, which are structured; the first line is the policy.
pub fn structured_fields(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (policy, now) = text.split_once('\n').unwrap_or(("", &text));
    let lines = format!("ratelimit-policy: {policy}\nratelimit: {now}\n");
    limit_headers(lines.as_bytes());
}

/// A time in any of the forms that vendors use.
pub fn dates(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for name in ["retry-after", "x-retry-after", "retry-after-ms"] {
        let headers = [(name.to_owned(), text.clone().into_owned())];
        let at = Anchor {
            received: NOW,
            date: None,
        };
        let said = retry_after::read(&headers, &at);
        assert_ne!(said, Some(RetryAfter::Wait(0)), "a wait of nothing");
        assert!(said.is_some(), "the header is there");
    }
    for moment in [http_date(&text, NOW), rfc3339(&text), any_form(&text, NOW)] {
        let _ = moment.map(|moment| moment.saturating_sub(NOW));
    }
    if let Some(at) = time::parse_http_date(&text) {
        // Years of more than four digits have no such form.
        let written = time::http_date(at);
        if written.len() == 29 {
            assert_eq!(time::parse_http_date(&written), Some(at), "{written}");
            assert_eq!(http_date(&written, NOW), Some(at), "{written}");
        }
    }
    if let Some(at) = time::parse_rfc3339(&text) {
        assert_eq!(time::parse_rfc3339(&time::rfc3339(at)), Some(at));
        assert_eq!(rfc3339(&time::rfc3339(at)), Some(at));
    }
    for ahead in [-720, 0, 345] {
        let _ = time::parse_naive(&text, ahead);
    }
    for format in [
        time::Format::Rfc3339,
        time::Format::EpochSeconds,
        time::Format::EpochMillis,
        time::Format::HttpDate,
    ] {
        if let Some(at) = format.parse(&text)
            && (0..4_102_444_800_000).contains(&at)
        {
            let whole = at - at.rem_euclid(1_000);
            let again = format.parse(&format.write(at));
            assert!(
                again.is_some_and(|again| (whole..=at).contains(&again)),
                "{at}"
            );
        }
    }
}

/// A `Link` header.
pub fn links(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for link in link::parse(&text) {
        assert!(!link.target.contains('>'));
        assert!(text.contains(&link.target));
    }
    let response = Response::new(200, "")
        .with_header("Link", &text)
        .with_url("https://api.example.test/v1/orders?page=1");
    if let Some(next) = link::next(&response) {
        assert!(next.contains(':'), "{next} is no whole URL");
    }
    let _ = url::resolve("https://api.example.test/v1/orders", &text);
}

/// A record: its canonical form is one form for one value.
pub fn canonical(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut digester = Digester::new(&["/volatile".to_owned()], &[]).expect("pointers");
    let Ok(digest) = digester.digest(text) else {
        return;
    };
    let form = canonical_string(text).expect("what has a hash has a form");
    assert_eq!(
        canonical_string(&form).expect("JSON"),
        form,
        "not idempotent"
    );
    let again = digester.digest(&form).expect("JSON");
    assert_eq!(again.hash, digest.hash, "its own form has another hash");
    // Another order of keys, other white space, and another value of a volatile member.
    let Ok(members) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(text) else {
        return;
    };
    let write = |more: Option<(&str, &str)>| {
        let backwards = members.iter().rev().map(|(key, value)| match key.as_str() {
            "volatile" => ("volatile", "0"),
            key => (key, value.get()),
        });
        let mut text = String::from(" {");
        for (nth, (key, value)) in more.into_iter().chain(backwards).enumerate() {
            let comma = if nth == 0 { "" } else { "\t," };
            let key = serde_json::to_string(key).expect("a text");
            let _ = write!(text, "{comma}\n{key} :{value}");
        }
        text.push_str("}\r\n");
        text
    };
    let other = write(None);
    if !members.contains_key("volatile") {
        assert_eq!(canonical_string(&other).expect("JSON"), form, "{other}");
    }
    let mut hash = |text: &str| digester.digest(text).expect("JSON").hash;
    assert_eq!(hash(&other), digest.hash, "{other}");
    // A member more is another value.
    if !members.contains_key("one more") {
        let more = write(Some(("one more", "null")));
        assert_ne!(hash(&more), digest.hash, "{more}");
    }
}

/// A body, as connectors read it.
pub fn body(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for pointer in ["", "/data", "/0/id", "/a~1b"] {
        let _ = json::at(&text, pointer);
        for element in json::elements(&text, pointer).into_iter().flatten() {
            assert!(text.contains(element.json()));
            let _ = (
                element.id(),
                element.u64(),
                element.string(),
                element.bool(),
            );
            for format in [time::Format::Rfc3339, time::Format::EpochSeconds] {
                let _ = element.time(format);
            }
        }
    }
}

/// A configuration file.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let env = |_: &str| Some("value".to_owned());
    match weir::config::from_text(Path::new("weir.toml"), &text, &env) {
        Ok(config) => assert!(config.host.max_body > 0),
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}
