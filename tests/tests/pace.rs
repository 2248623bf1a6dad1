//! How often a whole host asks: vendors without published limits, quiet hours, promises that can't be kept, starts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use support::script::{Reply, Script};
use support::shop::{HOUR, MIN, S, WINDOW, calls, config, nothing, open, page};
use support::{NOW, Rig};
use weir::poll::Outcome;
use weir_rules::model::Reason;

/// A shop whose vendor publishes no limits.
fn unpublished(settings: &str) -> String {
    config(WINDOW, settings).replace(
        "base_url = ",
        "pacing = { unpublished_limits = true }\nbase_url = ",
    )
}

const SHORT: &str = r#"
interval = { min = "2s", max = "2s" }
overlap = { fixed = "5m" }
backoff = { base = "1s", cap = "1s" }
"#;

/// The intervals that the polls chose, in s.
fn chosen(rig: &Rig) -> Vec<u64> {
    rig.polls()
        .iter()
        .filter(|poll| poll.outcome == "ok")
        .map(|poll| poll.interval / 1_000)
        .collect()
}

async fn polls(rig: &Rig, count: usize) {
    rig.poll("shop/orders").await;
    for _ in 1..count {
        rig.settle().await;
        let due = rig.unit("shop/orders").due.expect("it is due");
        rig.clock.set(due);
        rig.settle().await;
    }
}

#[tokio::test]
async fn one_sign_of_pressure_doubles_the_interval_and_health_brings_it_back_to_exactly_two_seconds()
 {
    let script = Script::by(|_| nothing().taking(50));
    script.then([nothing().taking(50), Reply::status(503, "busy").taking(50)]);
    let rig = open(&unpublished(SHORT), &script).await;
    polls(&rig, 9).await;
    assert_eq!(rig.polls()[1].outcome, "failed");
    let retried = &rig.polls()[1];
    assert!(
        retried.interval >= 4_000,
        "never sooner than it can bear: {retried:?}"
    );
    // The fault weighs in the average for four more polls; then a second comes off with each, down to 2 s for good.
    assert_eq!(chosen(&rig), [2, 4, 4, 4, 3, 2, 2, 2], "{:?}", rig.polls());
}

#[tokio::test]
async fn an_incomplete_body_is_a_sign_of_pressure_though_it_came_quickly() {
    let script = Script::by(|_| nothing().taking(50));
    script.then([
        nothing().taking(50),
        Reply::ok(r#"{"orders":[{"id":"#).taking(50),
    ]);
    let rig = open(&unpublished(SHORT), &script).await;
    polls(&rig, 2).await;
    let state = rig.unit("shop/orders").state;
    assert_eq!(state.miad.interval, 4_000, "{:?}", rig.polls());
}

#[tokio::test]
async fn a_slow_vendor_wins_over_the_promised_freshness_and_it_is_said() {
    let script = Script::by(|_| nothing().taking(2_000));
    let settings = format!(
        "{}freshness = \"5s\"\n",
        SHORT.replace("max = \"2s\"", "max = \"1m\"")
    );
    let rig = open(&unpublished(&settings), &script).await;
    polls(&rig, 8).await;
    let last = rig.polls().pop().expect("a poll");
    assert!(last.interval >= 300_000, "{last:?}");
    assert!(
        last.why
            .contains("the promised freshness of 5 s is not kept: the vendor's slow answers"),
        "{last:?}"
    );
    let state = rig.unit("shop/orders").state;
    assert!(state.last.and_then(|last| last.unkept).is_some());
    assert!(state.miad.is_pinned(&weir_rules::miad::Miad::default()));
}

#[tokio::test]
async fn the_same_request_is_held_back_for_half_a_minute_whoever_asks_besides_the_schedule() {
    let script = Script::by(|_| nothing());
    let settings = SHORT.replace("2s", "10m");
    let rig = open(&unpublished(&settings), &script).await;
    rig.poll("shop/orders").await;
    rig.settle().await;
    rig.clock.advance(12 * S);
    let report = rig.ask("shop/orders", Reason::SyncNow).await;
    assert_eq!(report.outcome, Outcome::Waiting);
    let said = report.message.expect("it says why");
    assert!(said.contains("asked 12 s ago"), "{said}");
    assert_eq!(report.due, Some(NOW + 30 * S), "held back, not dropped");
    assert_eq!(script.asked().len(), 1);
    rig.clock.set(NOW + 30 * S);
    rig.settle().await;
    assert_eq!(script.asked().len(), 2, "and made when its time is over");
}

#[tokio::test]
async fn a_repeat_is_none_after_a_fault_for_a_later_page_or_where_limits_are_published() {
    // Two pages, then a fault, then all over again: each is needed at once.
    let script = Script::by(|_| nothing());
    script.then([
        page(&[("1", "09:00:00")], r#""next":"t2""#),
        page(&[("2", "09:00:01")], ""),
        Reply::status(503, "busy"),
    ]);
    let rig = open(&unpublished(&SHORT.replace("2s", "10m")), &script).await;
    rig.poll("shop/orders").await;
    assert_eq!(script.asked().len(), 2, "both pages");
    rig.settle().await;
    rig.clock.advance(40 * S);
    let failed = rig.ask("shop/orders", Reason::SyncNow).await;
    assert_eq!(failed.outcome, Outcome::Failed);
    let again = rig.ask("shop/orders", Reason::SyncNow).await;
    assert_eq!(
        again.outcome,
        Outcome::Ok,
        "a retry is no repeat: {again:?}"
    );

    let script = Script::by(|_| nothing());
    let rig = open(&config(WINDOW, &SHORT.replace("2s", "10m")), &script).await;
    for _ in 0..3 {
        let report = rig.ask("shop/orders", Reason::SyncNow).await;
        assert_eq!(report.outcome, Outcome::Ok, "limits are published here");
    }
}

#[tokio::test]
async fn no_poll_begins_in_quiet_hours_and_the_row_before_says_so() {
    // It is ten o'clock.
    let script = Script::by(|_| nothing());
    let settings = r#"
interval = { min = "10m", max = "10m" }
quiet = { hours = ["11:30-13:00"], zone = "+01:00" }
"#;
    let rig = open(&config(WINDOW, settings), &script).await;
    rig.run_for(4 * HOUR.unsigned_abs()).await;
    let inside = calls(&script)
        .into_iter()
        .filter(|at| (30 * MIN..2 * HOUR).contains(at))
        .count();
    assert_eq!(inside, 0, "{:?}", calls(&script));
    assert!(calls(&script).contains(&(2 * HOUR)), "{:?}", calls(&script));
    let before = rig
        .polls()
        .into_iter()
        .rfind(|poll| poll.started < NOW + 30 * MIN)
        .expect("polls before");
    assert!(
        before
            .why
            .ends_with("quiet hours until 2031-03-04 13:00+01:00"),
        "{before:?}"
    );
}

#[tokio::test]
async fn a_person_is_told_of_the_quiet_hours_too() {
    let script = Script::by(|_| nothing());
    let settings = "interval = \"10m\"\nquiet = [\"09:00-10:30\"]\n";
    let rig = open(&config(WINDOW, settings), &script).await;
    let report = rig.ask("shop/orders", Reason::SyncNow).await;
    assert_eq!(report.outcome, Outcome::Waiting);
    assert_eq!(report.due, Some(NOW + 30 * MIN));
    assert!(report.message.expect("why").contains("quiet hours"));
    assert_eq!(script.asked().len(), 0);
}

#[tokio::test]
async fn a_unit_whose_polls_take_longer_than_its_interval_says_so() {
    let script = Script::by(|_| nothing().taking(25 * S));
    let rig = open(&config(WINDOW, "interval = \"10s\"\n"), &script).await;
    rig.run_for(2 * MIN.unsigned_abs()).await;
    let polls = rig.polls();
    let said = polls.iter().filter(|poll| {
        poll.why
            .contains("the poll took longer (25 s) than its interval (10 s)")
    });
    assert_eq!(said.count(), polls.len(), "{polls:?}");
    let unkept = rig
        .unit("shop/orders")
        .state
        .last
        .and_then(|last| last.unkept);
    assert!(unkept.is_some());
}

#[tokio::test]
async fn starts_missed_while_the_host_was_down_or_asleep_are_made_up_for_once() {
    let script = Script::by(|_| nothing());
    let rig = open(&config(WINDOW, "interval = \"10m\"\n"), &script).await;
    rig.run_for(1_000).await;
    assert_eq!(script.asked().len(), 1);
    // Asleep for a night: the clock is hours further with nothing in between.
    rig.settle().await;
    rig.clock.advance(8 * HOUR);
    rig.settle().await;
    assert_eq!(script.asked().len(), 2, "once, not forty-eight times");
    let first = calls(&script)[0];
    let due = rig.unit("shop/orders").due.expect("due");
    assert_eq!(
        (due - NOW - first) % (10 * MIN),
        0,
        "on the same grid as before"
    );
    // Down for a night.
    let clock = rig.clock.clone();
    rig.settle().await;
    clock.advance(8 * HOUR);
    let rig = rig.crash().await;
    rig.run_for(2_000).await;
    let made = script.asked().len();
    assert!((2..=4).contains(&made), "{made}");
}

#[tokio::test]
async fn units_do_not_start_together() {
    let script = Script::by(|_| nothing());
    let configs: Vec<String> = (0..40)
        .map(|n| {
            format!(
                "[connection.c.config.streams.s{n}]\npath = \"/s{n}\"\nrecords = \"/orders\"\nid = \"/id\"\n"
            )
        })
        .collect();
    let text = format!(
        "[connection.c]\nconnector = \"rest\"\n[connection.c.config]\nbase_url = \"https://c.example.test\"\n{}",
        configs.concat()
    );
    let rig = open(&text, &script).await;
    rig.run_for(5_000).await;
    let mut starts = calls(&script);
    assert_eq!(starts.len(), 40);
    starts.sort_unstable();
    let together = starts.windows(10).map(|ten| ten[9] - ten[0]).min();
    assert!(together.is_some_and(|ms| ms > 100), "{starts:?}");
    assert!(
        starts[39] <= 4_000,
        "a tenth of a second for each: {starts:?}"
    );
}

#[tokio::test]
async fn of_what_is_left_a_person_gets_more_than_the_schedule_and_waits_name_the_connection() {
    let script = Script::by(|_| {
        nothing()
            .header("x-ratelimit-limit", "100")
            .header("x-ratelimit-remaining", "15")
            .header("x-ratelimit-reset", "3600")
    });
    let rig = open(&config(WINDOW, "interval = \"10s\"\n"), &script).await;
    rig.run_for(MIN.unsigned_abs()).await;
    let held = rig.polls().pop().expect("polls");
    assert_eq!(
        held.outcome,
        "waiting",
        "what is left is spread: {:?}",
        rig.polls()
    );
    assert_eq!(
        held.message.as_deref(),
        Some("the vendor's limit for everyone on the credential of shop has no room")
    );
    let due = rig.unit("shop/orders").due;
    assert!(due > Some(NOW + 2 * MIN), "before the ceiling, not at it");
    let asked = rig.ask("shop/orders", Reason::SyncNow).await;
    assert_eq!(
        asked.outcome,
        Outcome::Ok,
        "a person does not wait: {asked:?}"
    );
}

#[tokio::test]
async fn what_a_vendor_says_of_its_limits_against_reason_is_ignored_and_said_once() {
    let script = Script::by(|_| {
        nothing()
            .header("x-ratelimit-limit", "100")
            .header("x-ratelimit-remaining", "250")
            .header("x-ratelimit-reset", "soon")
    });
    let rig = open(&config(WINDOW, "interval = \"10s\"\n"), &script).await;
    rig.run_for(MIN.unsigned_abs()).await;
    assert!(rig.polls().iter().all(|poll| poll.outcome == "ok"));
    let remarks = rig.host.remarks.all();
    assert_eq!(remarks.len(), 2, "{remarks:?}");
    assert!(
        remarks
            .iter()
            .all(|remark| remark.connection == "shop" && remark.times >= 5)
    );
    assert!(
        remarks
            .iter()
            .any(|remark| remark.text.contains("no known form of a time"))
    );
}
