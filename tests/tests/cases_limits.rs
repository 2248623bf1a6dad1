//! Limits and outages: how long a whole host stays away, and from whom.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::script::{Asked, Reply, Script};
use support::shop::{HOUR, MIN, S, USUAL, WINDOW, calls, config, named, nothing, open, page, shop};
use support::{NOW, Rig, clock::TestClock};
use weir::clock::{BoxFuture, Clock as _};
use weir::http::{HttpRequest, HttpResponse, Transport, TransportError};
use weir::poll::Outcome;
use weir_rules::model::{Class, Reason};

/// Pauses between the calls of a shop that gets these answers first and good ones afterwards, in ms.
async fn pauses(refusals: Vec<Reply>, run: i64) -> Vec<i64> {
    let count = refusals.len();
    let script = Script::by(|_| nothing());
    script.then(refusals);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    rig.run_for(run.unsigned_abs()).await;
    let calls = calls(&script);
    assert!(calls.len() > count, "it never got through: {calls:?}");
    assert_eq!(rig.unit("shop/orders").state.parked, None);
    calls[..=count]
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .collect()
}

fn refused(headers: &[(&str, &str)]) -> Reply {
    headers
        .iter()
        .fold(Reply::status(429, "{}"), |reply, (name, value)| {
            reply.header(name, value)
        })
}

const SECONDARY: &str = r#"{"message":"You have exceeded a secondary rate limit."}"#;

#[tokio::test]
async fn case_003_a_part_of_a_second_is_waited_for_too() {
    // Forty vendors, so that no luck with the late side of the wait hides a wait that is too short. Each refuses whoever
    // comes before its whole 300 s are over.
    let configs: Vec<String> = (0..40)
        .map(|n| named(&format!("shop{n}"), WINDOW, USUAL))
        .collect();
    let mut since = std::collections::HashMap::new();
    let script = Script::by(move |asked| {
        let vendor = asked.url.split('.').next().unwrap_or_default().to_owned();
        if asked.at < *since.entry(vendor).or_insert(asked.at) + 300 * S {
            refused(&[("retry-after", "299.997")])
        } else {
            nothing()
        }
    });
    let rig = open(&configs.concat(), &script).await;
    rig.run_for(315_000).await;
    let polls = rig.polls();
    let of = |outcome: &str| polls.iter().filter(|poll| poll.outcome == outcome).count();
    assert_eq!(of("waiting"), 40, "each was refused once");
    assert!(of("ok") >= 40);
}

#[tokio::test]
async fn case_005_a_negative_wait_is_ordinary_backoff() {
    let pauses = pauses(vec![refused(&[("retry-after", "-1")]); 3], MIN).await;
    // Full jitter: what grows is the ceiling, 1 s, 2 s, 4 s. Nothing is taken for the vendor's minute.
    for (pause, ceiling) in pauses.iter().zip([S, 2 * S, 4 * S]) {
        assert!((0..=ceiling).contains(pause), "{pauses:?}");
    }
    assert!(pauses.iter().sum::<i64>() > 0, "no hot loop: {pauses:?}");
}

#[tokio::test]
async fn case_007_a_penalty_without_a_number_is_sat_out() {
    // Each call that comes before 60 quiet seconds have passed begins them anew.
    let mut last: Option<i64> = None;
    let script = Script::by(move |asked| {
        let quiet = last
            .replace(asked.at)
            .is_some_and(|last| asked.at >= last + MIN);
        if quiet {
            nothing()
        } else {
            Reply::status(403, SECONDARY)
        }
    });
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.class, Some(Class::RateLimited));
    rig.run_for(70_000).await;
    assert_eq!(
        rig.polls()
            .last()
            .map(|poll| poll.outcome.clone())
            .as_deref(),
        Some("ok")
    );
    // A vendor that goes on refusing is left alone for longer each time.
    let pauses = pauses(vec![Reply::status(403, SECONDARY); 3], 15 * MIN).await;
    assert!(
        pauses[0] >= MIN && pauses[1] >= 2 * MIN && pauses[2] >= 4 * MIN,
        "{pauses:?}"
    );
}

#[tokio::test]
async fn case_011_a_date_that_is_over_is_due_now() {
    let date = [
        ("date", "Tue, 04 Mar 2031 10:00:00 GMT"),
        ("retry-after", "Tue, 04 Mar 2031 09:59:20 GMT"),
    ];
    let pauses = pauses(vec![refused(&date)], MIN).await;
    assert!(pauses[0] <= 5 * S, "{pauses:?}");
}

#[tokio::test]
async fn case_013_a_reset_in_milliseconds_is_a_minute() {
    // A minute is also what a limit without a number gets: three minutes are the vendor's word.
    for (reset, wait) in [("1930384860000", MIN), ("1930384980000", 3 * MIN)] {
        let reset = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)];
        let pauses = pauses(vec![refused(&reset)], 5 * MIN).await;
        assert!(
            (wait - S..=wait + 10 * S).contains(&pauses[0]),
            "{pauses:?}"
        );
    }
}

#[tokio::test]
async fn case_015_a_reset_that_is_over_invents_no_wait() {
    let pauses = pauses(vec![refused(&[("x-ratelimit-reset", "1930384795")])], MIN).await;
    assert!(pauses[0] <= 5 * S, "{pauses:?}");
}

#[tokio::test]
async fn case_017_a_limit_that_only_the_body_names_moves_nothing() {
    let script = Script::by(|_| nothing());
    script.then([
        page(&[("a", "09:58:00")], ""),
        Reply::status(403, SECONDARY),
    ]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    let before = rig.unit("shop/orders").state;
    let report = rig.poll("shop/orders").await;
    assert_eq!(
        (report.outcome, report.class),
        (Outcome::Waiting, Some(Class::RateLimited))
    );
    let after = rig.unit("shop/orders").state;
    assert_eq!(
        (after.watermark, after.cursor),
        (before.watermark, before.cursor)
    );
    assert!(report.due >= Some(rig.clock.wall_now() + MIN), "{report:?}");
    script.then([page(&[("b", "09:59:00")], "")]);
    rig.run_for(75_000).await;
    assert_eq!(
        script.asked()[1].url,
        script.asked()[2].url,
        "the same question again"
    );
    assert_eq!(rig.delivered(), ["a@1", "b@1"]);
}

#[tokio::test]
async fn case_019_a_limit_with_status_400_is_no_bad_request_and_no_lost_sign_in() {
    let config = format!(
        "{}{}",
        config(WINDOW, USUAL),
        "[[connection.shop.config.errors]]\nstatus = 400\npointer = \"/error/code\"\nequals = [4, 17, 32, 80004]\nclass = \"rate-limited\"\n"
    );
    let limited = r#"{"error":{"code":80004,"type":"OAuthException","message":"too many calls"}}"#;
    let script = Script::by(move |asked| {
        if asked.at < NOW + 5 * MIN {
            Reply::status(400, limited)
        } else {
            page(&[("a", "09:58:00")], "")
        }
    });
    let rig = open(&config, &script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(
        (report.outcome, report.class),
        (Outcome::Waiting, Some(Class::RateLimited))
    );
    assert_eq!(rig.host.sign_in.needed("shop"), None);
    rig.run_for(15 * 60_000).await;
    assert_eq!(rig.delivered(), ["a@1"]);
}

#[tokio::test]
async fn case_021_a_limit_waits_for_its_floor_although_some_budget_is_left() {
    let limited = Reply::status(403, SECONDARY)
        .header("x-ratelimit-remaining", "29")
        .header("x-ratelimit-reset", "1930384842");
    let pauses = pauses(vec![limited], 3 * MIN).await;
    // The reset is in 42 s; the penalty's floor is later.
    assert!(pauses[0] >= MIN, "{pauses:?}");
}

#[tokio::test]
async fn a_403_with_a_limit_that_can_be_read_is_a_wait_whatever_the_connector_makes_of_its_status()
{
    // It goes by the status alone.
    let by_status = format!(
        "{}{}",
        config(WINDOW, USUAL),
        "[[connection.shop.config.errors]]\nstatus = 403\nclass = \"permanent\"\n"
    );
    let refused = |headers: &[(&str, &str)]| {
        let reply = Reply::status(403, "{}");
        headers
            .iter()
            .fold(reply, |reply, (name, value)| reply.header(name, value))
    };
    let spent = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1930384980"),
    ];
    let told = [("retry-after", "120")];
    for (headers, wait) in [(&spent[..], 3 * MIN), (&told, 2 * MIN)] {
        let script = Script::by(|_| page(&[("a", "09:58:00")], ""));
        script.then([refused(headers)]);
        let rig = open(&by_status, &script).await;
        let report = rig.poll("shop/orders").await;
        assert_eq!(
            (report.outcome, report.class),
            (Outcome::Waiting, Some(Class::RateLimited)),
            "{headers:?}"
        );
        assert!(report.due >= Some(NOW + wait), "{headers:?}: {report:?}");
        rig.run_for(5 * 60_000).await;
        assert_eq!(rig.delivered(), ["a@1"], "{headers:?}");
    }
    // Without one it is what the connector says: nobody asks again.
    let some_left = [
        ("x-ratelimit-remaining", "29"),
        ("x-ratelimit-reset", "1930384980"),
    ];
    for headers in [&[][..], &some_left] {
        let script = Script::by(|_| page(&[("a", "09:58:00")], ""));
        script.then([refused(headers)]);
        let rig = open(&by_status, &script).await;
        let report = rig.poll("shop/orders").await;
        assert_eq!(
            (report.outcome, report.class),
            (Outcome::Parked, Some(Class::Permanent)),
            "{headers:?}"
        );
        rig.run_for(5 * 60_000).await;
        assert_eq!(script.asked().len(), 1, "{headers:?}");
    }
}

#[tokio::test]
async fn case_023_the_highest_of_all_percentages_slows_the_next_call() {
    let busy = page(&[("a", "09:58:00")], "")
        .header("x-business-usage", r#"{"acct_9":[{"call_count":28,"total_cputime":96,"total_time":40,"estimated_time_to_regain_access":0}]}"#)
        .header("x-app-usage", r#"{"call_count":12}"#);
    let script = Script::by(|_| nothing());
    script.then([busy]);
    let rig = shop(&script).await;
    let report = rig.poll("shop/orders").await;
    assert_eq!(report.outcome, Outcome::Ok, "not blocked yet");
    assert_eq!(rig.delivered(), ["a@1"]);
    rig.run_for(5 * 60_000).await;
    let calls = calls(&script);
    // The interval alone would have been 10 s.
    assert!((MIN..=80 * S).contains(&(calls[1] - calls[0])), "{calls:?}");
}

#[tokio::test]
async fn case_025_a_hundred_refused_connections_stay_within_the_cap() {
    // A base above the cap (1 s and 10 ms) is refused at the start with both named, so the least that fits is taken.
    let settings = "interval = \"1h\"\nbackoff = { base = \"10ms\", cap = \"10ms\" }";
    let script = Script::by(|_| page(&[("a", "09:58:00")], ""));
    script.then(std::iter::repeat_n(Reply::refused(), 100));
    let rig = open(&config(WINDOW, settings), &script).await;
    rig.poll("shop/orders").await;
    rig.run_for(2_000).await;
    let calls = calls(&script);
    assert_eq!(calls.len(), 101);
    assert!(
        calls.windows(2).all(|pair| pair[1] - pair[0] <= 11),
        "{calls:?}"
    );
    assert_eq!(rig.delivered(), ["a@1"]);
}

#[tokio::test]
async fn case_031_two_hundred_connections_do_not_come_back_in_step() {
    let configs: Vec<String> = (0..200)
        .map(|n| named(&format!("shop{n}"), WINDOW, "interval = \"1h\""))
        .collect();
    // One server for all. It is down for two minutes, and falls over again for ten seconds when it gets more than 20
    // requests in one.
    let mut recent = std::collections::VecDeque::new();
    let mut down_until = NOW + 2 * MIN;
    let script = Script::by(move |asked| {
        recent.push_back(asked.at);
        while recent.front().is_some_and(|at| *at <= asked.at - S) {
            recent.pop_front();
        }
        if asked.at >= NOW + 2 * MIN && recent.len() > 20 {
            down_until = asked.at + 10 * S;
        }
        if asked.at < down_until {
            Reply::status(503, "")
        } else {
            nothing()
        }
    });
    let rig = open(&configs.concat(), &script).await;
    let asked: Vec<_> = rig
        .units()
        .iter()
        .map(|unit| {
            rig.host
                .scheduler
                .ask(unit.id, weir_rules::model::Reason::Schedule)
                .1
        })
        .collect();
    for report in asked {
        assert_eq!(
            report.await.expect("the poll ends").class,
            Some(Class::Temporary)
        );
    }
    rig.run_for(30 * 60_000).await;
    let fallen: Vec<_> = rig
        .units()
        .into_iter()
        .filter(|unit| !unit.state.synced)
        .map(|unit| unit.key.to_string())
        .collect();
    assert!(fallen.is_empty(), "not recovered: {fallen:?}");
    let late: Vec<i64> = calls(&script)
        .into_iter()
        .filter(|at| *at >= 2 * MIN)
        .collect();
    let peak = late
        .iter()
        .map(|from| {
            late.iter()
                .filter(|at| (*from..from + S).contains(at))
                .count()
        })
        .max();
    assert!(
        peak.is_some_and(|peak| peak <= 20),
        "{peak:?} in one second"
    );
}

/// A vendor that takes its time, on the test's clock, and counts who is with it.
struct Slow {
    script: Arc<Script>,
    clock: Arc<TestClock>,
    inside: AtomicUsize,
    peak: AtomicUsize,
}

impl Transport for Slow {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            self.peak.fetch_max(inside, Ordering::SeqCst);
            let answer = self.script.send(request).await;
            // One to three seconds, in turns.
            let turn = self.script.asked().len() as u64 % 3;
            self.clock
                .sleep(std::time::Duration::from_secs(1 + turn))
                .await;
            self.inside.fetch_sub(1, Ordering::SeqCst);
            answer
        })
    }
}

#[tokio::test]
async fn case_033_an_answer_slower_than_the_interval_has_no_company() {
    let clock = Arc::new(TestClock::new(NOW));
    let script = Script::by(|_: &Asked| nothing());
    script.on(&clock);
    let slow = Arc::new(Slow {
        script: script.clone(),
        clock: clock.clone(),
        inside: AtomicUsize::new(0),
        peak: AtomicUsize::new(0),
    });
    let config = config(WINDOW, "interval = \"1s\"");
    let rig = Rig::on_clock(&config, slow.clone(), clock).await;
    rig.run_for(60_000).await;
    assert_eq!(slow.peak.load(Ordering::SeqCst), 1);
    let count = script.asked().len();
    assert!((15..=61).contains(&count), "{count} calls in a minute");
    // Asked for by a person meanwhile, it is still one.
    let id = rig.unit("shop/orders").id;
    let _waiters: Vec<_> = (0..3)
        .map(|_| rig.host.scheduler.ask(id, Reason::SyncNow))
        .collect();
    rig.run_for(10_000).await;
    assert_eq!(slow.peak.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn case_131_an_outage_is_never_called_a_sign_in() {
    let html = Reply {
        headers: vec![("content-type".into(), "text/html".into())],
        ..Reply::ok("<!DOCTYPE html><html>Sorry, we are down. Please sign in again later.</html>")
    };
    let script = Script::by(|asked| {
        if asked.at < NOW + 10 * MIN {
            Reply::status(503, "")
        } else {
            page(&[("a", "09:58:00")], "")
        }
    });
    script.then([Reply::refused(), html]);
    let rig = shop(&script).await;
    rig.poll("shop/orders").await;
    rig.run_for((HOUR / 2).unsigned_abs()).await;
    let polls = rig.polls();
    let faults: Vec<_> = polls.iter().filter_map(|poll| poll.class).collect();
    assert!(faults.len() > 3);
    assert!(
        faults.iter().all(|class| *class == Class::Temporary),
        "{faults:?}"
    );
    assert_eq!(rig.host.sign_in.needed("shop"), None);
    assert_eq!(rig.delivered(), ["a@1"]);
}

#[tokio::test]
async fn a_clock_that_is_set_makes_no_vendors_wait_shorter_or_longer() {
    for set in [2 * HOUR, -2 * HOUR] {
        let script = Script::by(|_| page(&[("a", "09:58:00")], ""));
        script.then([refused(&[("retry-after", "600")])]);
        let rig = shop(&script).await;
        assert_eq!(rig.poll("shop/orders").await.outcome, Outcome::Waiting);
        rig.clock.jump(set);
        // Neither the schedule nor a person goes early.
        for reason in [Reason::Schedule, Reason::SyncNow] {
            let report = rig.ask("shop/orders", reason).await;
            assert_eq!(report.outcome, Outcome::Waiting, "{set} {reason:?}");
        }
        rig.run_for(590_000).await;
        assert_eq!(script.asked().len(), 1, "{set}: before the wait was over");
        rig.run_for(90_000).await;
        assert!(script.asked().len() > 1, "{set}: long after it was");
        assert_eq!(rig.delivered(), ["a@1"]);
    }
}

/// Two streams on one key, of which a person reads one again and again: what comes free is always taken, and the other's
/// poll waits in short steps for longer than a lease lasts without a sign of life.
#[tokio::test]
async fn a_poll_that_waits_for_room_keeps_its_lease() {
    const STEP: i64 = 900;
    let settings = "interval = \"6h\"";
    let items = format!(
        "[connection.shop.config.streams.items]\npath = \"/items\"\nrecords = \"/orders\"\nid = \"/id\"\n\
         updated_at = \"/at\"\n{WINDOW}\n[connection.shop.streams.items]\n{settings}\n"
    );
    let config = format!(
        "timeout = {{ connect = \"1s\", idle = \"1s\", total = \"1s\" }}\n{}{items}",
        config(WINDOW, settings)
    );
    // The last call of each second is a person's.
    let script = Script::by(|_| {
        nothing()
            .header("x-ratelimit-limit", "20")
            .header("x-ratelimit-remaining", "1")
            .header("x-ratelimit-reset", "1")
    });
    let rig = open(&config, &script).await;
    rig.ask("shop/items", Reason::SyncNow).await;
    let before = script.asked().len();
    let id = rig.unit("shop/orders").id;
    let (_, mut waits) = rig.host.scheduler.ask(id, Reason::Schedule);
    rig.settle().await;
    let steps = 2 * 61_000 / STEP;
    for _ in 0..steps {
        rig.clock.advance(STEP);
        let report = rig.ask("shop/items", Reason::SyncNow).await;
        assert_eq!(report.outcome, Outcome::Ok);
        rig.settle().await;
        assert!(waits.try_recv().is_err(), "it was given up");
    }
    let calls = i64::try_from(script.asked().len() - before).expect("few");
    assert_eq!(calls, steps, "the other poll has made no call");
    rig.run_for(10_000).await;
    let report = waits.await.expect("it ends");
    assert_eq!(report.outcome, Outcome::Ok, "{:?}", report.message);
}
