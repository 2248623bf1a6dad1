//! What survives: kills, sinks that lag behind, polls that break down, windows that failed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use support::script::{Reply, Script};
use support::shop::{
    MIN, S, USUAL, WINDOW, body, config, ids, listed, matching, ms, named, nothing, open, order,
    page, param,
};
use support::{NOW, Rig, clock::TestClock};
use weir::clock::BoxFuture;
use weir::http::{HttpRequest, HttpResponse, Transport, TransportError};
use weir::poll::Outcome;
use weir::store::Handled;

/// Everything that waits for the sink is taken; the ids.
async fn take(rig: &Rig, up_to: Option<u64>) -> Vec<String> {
    let batch = rig
        .host
        .store
        .outbox("main", None, usize::MAX)
        .expect("the outbox reads");
    let Some(last) = up_to.or(batch.up_to) else {
        return Vec::new();
    };
    rig.host
        .store
        .delivered("main", Handled::up_to(last))
        .await
        .expect("the writer lives")
        .expect("it is noted");
    batch
        .entries
        .into_iter()
        .filter(|entry| entry.sequence <= last)
        .map(|entry| entry.id)
        .collect()
}

#[tokio::test]
async fn case_139_a_position_is_kept_with_its_own_records_alone() {
    let records = |from: u64, to: u64| {
        let records: Vec<String> = (from..=to)
            .map(|id| format!(r#"{{"id":{id},"at":"2031-03-04T09:00:00Z"}}"#))
            .collect();
        records.join(",")
    };
    let both = [named("a", WINDOW, USUAL), named("b", WINDOW, USUAL)].concat();
    let script = Script::by(|_| nothing());
    script.then([
        body(&records(1, 4500), r#""next":"t2""#),
        body(&records(4501, 9000), ""),
        body(&records(1, 1000), ""),
    ]);
    let rig = open(&both, &script).await;
    rig.poll("a/orders").await;
    rig.poll("b/orders").await;
    // The sink has taken what came from A, and nothing of B.
    let batch = rig
        .host
        .store
        .outbox("main", None, usize::MAX)
        .expect("reads");
    let of_a = |entry: &&weir::store::OutboxEntry| entry.unit.connection == "a";
    let last = batch.entries.iter().rfind(of_a).map(|entry| entry.sequence);
    assert_eq!(take(&rig, last).await.len(), 9000);

    let rig = rig.crash().await;
    rig.run_for(120_000).await;
    let lines = rig.lines();
    assert_eq!(
        lines.len(),
        1000,
        "B's records wait, and A's are not there again"
    );
    assert!(lines.iter().all(|line| line.connection == "b"));
    for unit in ["a/orders", "b/orders"] {
        assert_eq!(rig.unit(unit).state.watermark, Some(ms("09:00:00")));
    }
}

#[tokio::test]
async fn case_139_a_kill_before_the_end_of_a_walk_moves_no_position() {
    let script = Script::by(|_| nothing());
    script.then([
        page(&[("1", "09:00:00"), ("2", "09:59:00")], r#""next":"t2""#),
        Reply::refused(),
    ]);
    let rig = open(&config(WINDOW, USUAL), &script).await;
    rig.poll("shop/orders").await;
    let rig = rig.crash().await;
    assert_eq!(
        ids(&rig),
        ["1", "2"],
        "what was stored with the page is there"
    );
    assert_eq!(rig.unit("shop/orders").state.watermark, None);
    script.then([page(&[("3", "09:30:00")], "")]);
    rig.poll("shop/orders").await;
    assert_eq!(ids(&rig), ["1", "2", "3"]);
    assert_eq!(
        rig.unit("shop/orders").state.watermark,
        Some(ms("09:59:00"))
    );
}

/// A vendor whose second answer never comes.
struct Stuck {
    script: Arc<Script>,
    calls: AtomicUsize,
}

impl Transport for Stuck {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        match self.calls.fetch_add(1, Ordering::SeqCst) {
            1 => Box::pin(std::future::pending()),
            _ => self.script.send(request),
        }
    }
}

#[tokio::test]
async fn case_139_a_kill_between_two_pages_moves_no_position() {
    let script = Script::by(|_| nothing());
    script.then([page(
        &[("1", "09:00:00"), ("2", "09:59:00")],
        r#""next":"t2""#,
    )]);
    let stuck = Arc::new(Stuck {
        script: script.clone(),
        calls: AtomicUsize::new(0),
    });
    let rig = Rig::new(&config(WINDOW, USUAL), stuck.clone()).await;
    script.on(&rig.clock);
    let unit = rig.unit("shop/orders").id;
    let (_, _report) = rig
        .host
        .scheduler
        .ask(unit, weir_rules::model::Reason::Schedule);
    // The second page is on its way, and the first one is stored.
    while stuck.calls.load(Ordering::SeqCst) < 2 || ids(&rig).len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let rig = rig.crash().await;
    assert_eq!(ids(&rig), ["1", "2"]);
    assert_eq!(rig.unit("shop/orders").state.watermark, None);
    script.then([page(&[("3", "09:30:00")], "")]);
    rig.poll("shop/orders").await;
    assert_eq!(ids(&rig), ["1", "2", "3"]);
    assert_eq!(
        rig.unit("shop/orders").state.watermark,
        Some(ms("09:59:00"))
    );
}

#[tokio::test]
async fn case_141_a_sink_that_lags_makes_nothing_come_twice() {
    let orders: Vec<_> = (1..=24)
        .map(|n| order(&format!("o{n}"), "09:59:00"))
        .collect();
    let script = support::shop::keeper(orders);
    let rig = open(
        &config(WINDOW, "interval = \"1s\"\noverlap = { fixed = \"5m\" }"),
        &script,
    )
    .await;
    let mut taken = Vec::new();
    for _ in 0..3 {
        // Sixty polls between one acknowledgement and the next.
        rig.run_for(60_000).await;
        taken.extend(take(&rig, None).await);
    }
    assert!(script.asked().len() > 150, "{}", script.asked().len());
    assert_eq!(taken.len(), 24);
    assert_eq!(rig.lines().len(), 0);
}

/// Does what `instead` does with calls to one host, and asks the script otherwise.
struct But<F> {
    script: Arc<Script>,
    host: &'static str,
    instead: F,
}

impl<F> Transport for But<F>
where
    F: Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let struck = request
            .url
            .host_str()
            .is_some_and(|host| host.starts_with(self.host));
        Box::pin(async move {
            let script = &self.script;
            if struck {
                // Noted first, so that the test can count it.
                let _ = script.send(request).await;
                (self.instead)().await;
                return Err(TransportError::Timeout {
                    host: self.host.into(),
                    after: Duration::from_secs(60),
                });
            }
            script.send(request).await
        })
    }
}

/// Three connections of which `a` is struck.
async fn three<F>(instead: F) -> (Rig, Arc<Script>)
where
    F: Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    let configs = ["a", "b", "c"].map(|name| named(name, WINDOW, USUAL));
    let clock = Arc::new(TestClock::new(NOW));
    let script = Script::by(|_| nothing());
    script.on(&clock);
    let transport = But {
        script: script.clone(),
        host: "a.",
        instead,
    };
    let rig = Rig::on_clock(&configs.concat(), Arc::new(transport), clock).await;
    (rig, script)
}

fn calls_of(script: &Script, host: &str) -> Vec<i64> {
    let start = format!("https://{host}.");
    let asked = script.asked().into_iter();
    asked
        .filter(|asked| asked.url.starts_with(&start))
        .map(|asked| asked.at - NOW)
        .collect()
}

#[tokio::test]
async fn case_151_a_poll_that_panics_costs_itself_alone() {
    let (rig, script) = three(|| Box::pin(async { panic!("struck on purpose") })).await;
    rig.run_for(10 * 60_000).await;
    let struck = calls_of(&script, "a");
    assert!(struck.len() > 2, "tried again: {struck:?}");
    assert!(
        struck.windows(2).all(|pair| pair[1] - pair[0] >= 30 * S),
        "and not in a hot loop: {struck:?}"
    );
    for healthy in ["b", "c"] {
        let calls = calls_of(&script, healthy);
        assert!(calls.len() > 5, "{healthy}: {calls:?}");
        assert!(
            calls.last().is_some_and(|last| *last > 6 * MIN),
            "{healthy}: {calls:?}"
        );
    }
    let report = rig.poll("a/orders").await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(
        report
            .message
            .is_some_and(|message| message.contains("broke down"))
    );
    // A stop still works, and other units still answer.
    assert_eq!(rig.poll("b/orders").await.outcome, Outcome::Ok);
    rig.host.stop.stop();
    rig.host.clone().run().await;
}

#[tokio::test]
async fn case_157_a_call_that_never_comes_back_is_given_up() {
    // The transport's own limits fail: nothing ends this call. A connector can't hang by itself: it makes no calls and
    // its clock stands still.
    let (rig, script) = three(|| Box::pin(std::future::pending())).await;
    let (_, mut report) = rig
        .host
        .scheduler
        .ask(rig.unit("a/orders").id, weir_rules::model::Reason::SyncNow);
    for _ in 0..40 {
        rig.clock.advance(10 * S);
        // Not more than a few turns of the executor: what is due has begun, and what hangs goes on hanging.
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    }
    let report = report.try_recv().expect("told");
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(
        report
            .message
            .is_some_and(|message| message.contains("no sign of life"))
    );
    let struck = calls_of(&script, "a");
    assert!(struck.len() >= 2, "polled again: {struck:?}");
    // A call may take a minute, and the lease has a minute to spare.
    assert!(
        (2 * MIN..=3 * MIN).contains(&(struck[1] - struck[0])),
        "{struck:?}"
    );
    for healthy in ["b", "c"] {
        assert!(calls_of(&script, healthy).len() > 3);
    }
}

#[tokio::test]
async fn case_169_a_window_that_failed_is_not_done() {
    // Slices are walked one after the other: W2 is tried until it answers, and nothing behind it counts before.
    let stream = "window = { since = \"since\", until = \"until\" }\nwindow_cap = \"1d\"\n";
    let settings = format!("start = 2031-03-01T10:00:00Z\n{USUAL}");
    let orders = [
        order("w1", "2031-03-02T00:00:00Z"),
        order("w2", "2031-03-03T00:00:00Z"),
        order("w3", "2031-03-04T00:00:00Z"),
    ];
    let script = Script::by(move |asked| {
        let bound = |name| param(asked, name).map(|text| ms(&text));
        let (since, until) = (bound("since"), bound("until"));
        if since == Some(ms("2031-03-02T10:00:00Z")) && asked.at < NOW + 10 * MIN {
            return Reply::status(500, "");
        }
        listed(&matching(&orders, asked.at, since, until), "")
    });
    let rig = open(&config(stream, &settings), &script).await;
    rig.run_for(9 * 60_000).await;
    assert_eq!(ids(&rig), ["w1"]);
    let covered = rig.unit("shop/orders").state;
    assert!(
        covered.watermark < Some(ms("2031-03-02T10:00:01Z")),
        "{covered:?}"
    );
    let rig = rig.crash().await;
    let before = script.asked().len();
    rig.run_for(5 * 60_000).await;
    assert_eq!(rig.delivered(), ["w1@1", "w2@1", "w3@1"]);
    // The catch-up went on with W2; W1 was not read again.
    for asked in &script.asked()[before..] {
        let since = param(asked, "since").map(|since| ms(&since));
        assert!(since >= Some(ms("2031-03-02T10:00:00Z")), "{}", asked.url);
    }
}
