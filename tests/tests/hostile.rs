//! Whatever a vendor sends, nothing breaks but the poll that it answers: random statuses, headers and bodies against the
//! whole host.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what fails here fails a test"
)]

mod support;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use support::Rig;
use support::script::{Reply, Script};
use support::shop::{USUAL, WINDOW, config, ids, named};
use weir::poll::{Outcome, Report};
use weir_rules::model::Reason;

/// Panics in any thread, caught or not.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn watch_for_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            usual(info);
        }));
    });
}

fn header() -> impl Strategy<Value = (String, String)> {
    let name = prop::sample::select(vec![
        "retry-after",
        "retry-after-ms",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "ratelimit",
        "ratelimit-policy",
        "x-app-usage",
        "x-business-usage",
        "date",
        "etag",
        "last-modified",
        "link",
        "content-type",
        "x-poll-interval",
        "x-odd",
    ]);
    let value = prop_oneof![
        "-?[0-9]{1,22}(\\.[0-9]{1,4})?",
        "\"[a-z]{0,3}\";(q|r|w|t)=-?[0-9]{1,20}",
        "\\{\"[a-z_]{1,9}\":[\\[{0-9.e\"}\\]]{0,12}",
        "(Tue|Foo), [0-9]{1,2} Mar [0-9]{4} [0-9:]{0,8} GMT",
        "<[a-z:/.?=]{0,20}>; rel=\"?next\"?",
        "(W/)?\"[ -~]{0,9}\"?",
        "[ -~]{0,40}",
    ];
    (name, value).prop_map(|(name, value)| (name.to_owned(), value))
}

fn body() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[0-9]{1,30}(\\.[0-9]{1,20})?([eE]-?[0-9]{1,3})?",
        "\"[a-z0-9:TZ./ -]{0,24}\"",
        "\"(\\\\u[0-9a-f]{4}|\\\\n|é|/){0,4}\"",
        Just("\"2031-03-04T09:59:00Z\"".to_owned()),
    ];
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        let member = ("(orders|id|at|next|data|total)", inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..4).prop_map(|members| {
                let members: Vec<String> = members
                    .into_iter()
                    .map(|(key, value)| format!("\"{key}\":{value}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    });
    let record = (
        prop_oneof!["\"[a-z0-9/~ ]{0,6}\"", "-?[0-9]{1,25}", value.clone()],
        prop_oneof![
            Just("\"2031-03-04T09:59:00Z\"".to_owned()),
            Just("\"9999-12-31T23:59:59Z\"".to_owned()),
            value.clone()
        ],
        value.clone(),
    );
    let record =
        record.prop_map(|(id, at, more)| format!("{{\"id\":{id},\"at\":{at},\"more\":{more}}}"));
    let page = (
        prop::collection::vec(record, 0..5),
        prop_oneof![Just("null".to_owned()), value.clone()],
    );
    prop_oneof![
        6 => page.prop_map(|(records, next)| format!("{{\"orders\":[{}],\"next\":{next}}}", records.join(","))),
        3 => value,
        1 => Just("<!DOCTYPE html><html>maintenance</html>".to_owned()),
        1 => (100_usize..2_000).prop_map(|depth| format!("{{\"orders\":[{}{}]}}", "[".repeat(depth), "]".repeat(depth))),
        1 => any::<String>(),
        1 => "\\{\"orders\":\\[\\{\"id\":1,[ -~]{0,20}",
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let status = prop_oneof![
        4 => Just(200_u16),
        3 => prop::sample::select(vec![202, 204, 206, 304, 400, 401, 403, 404, 408, 409, 410, 418, 422, 429, 500, 502, 503, 504]),
        1 => 200_u16..600,
    ];
    (status, prop::collection::vec(header(), 0..5), body()).prop_map(|(status, headers, body)| {
        headers
            .into_iter()
            .fold(Reply::status(status, body), |reply, (name, value)| {
                reply.header(&name, &value)
            })
    })
}

/// Polls a unit, and lets the time pass that the poll waits for.
async fn polled(rig: &Rig, name: &str) -> Report {
    let (_, mut report) = rig.host.scheduler.ask(rig.unit(name).id, Reason::SyncNow);
    for _ in 0..100_000 {
        rig.settle().await;
        if let Ok(report) = report.try_recv() {
            return report;
        }
        if let Some(next) = rig.clock.next_wake() {
            rig.clock.set(next);
        }
    }
    panic!("the poll of {name} does not end")
}

/// The vendor of `shop` answers so, then with an empty page; that of `calm` is as it should be.
async fn met(replies: Vec<Reply>, polls: usize) -> (Rig, Vec<Report>) {
    watch_for_panics();
    let mut replies = VecDeque::from(replies);
    let script = Script::by(move |asked| {
        if asked.url.contains("calm.example.test") {
            return Reply::ok(r#"{"orders":[{"id":"c","at":"2031-03-04T09:00:00Z"}]}"#);
        }
        let empty = || Reply::ok(r#"{"orders":[]}"#);
        replies.pop_front().unwrap_or_else(empty)
    });
    let all = format!("{}{}", config(WINDOW, USUAL), named("calm", WINDOW, USUAL));
    let rig = support::shop::open(&all, &script).await;
    let mut reports = Vec::new();
    for _ in 0..polls {
        reports.push(polled(&rig, "shop/orders").await);
        rig.clock.advance(1_000);
    }
    (rig, reports)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_the_host_goes_on(replies in prop::collection::vec(reply(), 1..10)) {
        block_on(async {
            let (rig, reports) = met(replies, 4).await;
            for report in &reports {
                let message = report.message.as_deref().unwrap_or_default();
                prop_assert!(!message.contains("broke down"), "a panic: {message}");
                prop_assert!(!message.starts_with("connector "), "a trap: {message}");
                prop_assert!(report.outcome != Outcome::Skipped, "{report:?}");
            }
            // Nobody else has noticed.
            let calm = polled(&rig, "calm/orders").await;
            prop_assert!(calm.outcome.is_good(), "{calm:?}");
            prop_assert_eq!(PANICS.load(Ordering::SeqCst), 0);
            // What is delivered is one line of JSON each, under different keys.
            let lines = rig.lines();
            let keys: std::collections::BTreeSet<&str> = lines.iter().map(|line| line.key.as_str()).collect();
            prop_assert_eq!(keys.len(), lines.len());
            Ok(())
        })?;
    }

    /// Limits and dates that make no sense cost no record: the page is as good as without them.
    #[test]
    fn no_header_fails_a_poll(headers in prop::collection::vec(header(), 0..8)) {
        block_on(async {
            let good = r#"{"orders":[{"id":"a","at":"2031-03-04T09:00:00Z"}]}"#;
            let reply = headers.iter().fold(Reply::ok(good), |reply, (name, value)| reply.header(name, value));
            let (rig, reports) = met(vec![reply], 1).await;
            // The connector takes the vendor's word for what kind of text it is.
            if !headers.iter().any(|(name, _)| name == "content-type") {
                prop_assert!(reports[0].outcome.is_good(), "{:?}", reports[0]);
                prop_assert_eq!(ids(&rig), ["a"]);
            }
            prop_assert_eq!(PANICS.load(Ordering::SeqCst), 0);
            Ok(())
        })?;
    }
}
