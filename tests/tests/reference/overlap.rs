//! A unit that never overlaps itself, and windows that overlap on purpose.

use serde_json::{Value, json};
use weir_rules::model::Reason;
use weir_tests::spec::{Bound, CollectionSpec, Filter, Lag, Paging, WritesSpec};
use weir_tests::time::TimeFormat;

use super::shop::{distinct, handed_over, orders, vendor, written};
use super::{Demo, HOST};
use crate::support::{NOW, Rig};

const SCHEDULE: i64 = 400;
const CALL: i64 = 900;
const LASTS: i64 = 4_000;
/// A record each 300 ms: with that, the three ways by hand come to the reference's figures.
const EACH: i64 = 300;

fn there_at(at: i64) -> i64 {
    at / EACH + 1
}

/// What a timer does that starts a call each 400 ms, whatever is under way, from a cursor that moves when a call ends.
/// The last calls are those whose answer has come about when the timer ends.
fn timer() -> Value {
    let (mut processed, mut distinct) = (0, 0);
    let starts: Vec<i64> = (0..)
        .map(|tick| tick * SCHEDULE)
        .take_while(|at| at + CALL <= LASTS + SCHEDULE / 2)
        .collect();
    for at in &starts {
        let ended = starts.iter().filter(|start| **start + CALL <= *at);
        let cursor = ended.map(|start| there_at(*start)).max().unwrap_or(0);
        processed += there_at(*at) - cursor;
        distinct = distinct.max(there_at(*at));
    }
    json!({ "processed": processed, "distinct": distinct, "duplicates": processed - distinct })
}

/// The same timer that leaves out a tick while a call is under way, and ends with its last whole call.
fn guarded() -> Value {
    let (mut at, mut distinct) = (0, 0);
    while at + CALL <= LASTS {
        distinct = there_at(at);
        at += (CALL + SCHEDULE - 1) / SCHEDULE * SCHEDULE;
    }
    json!({ "distinct": distinct, "duplicates": 0 })
}

/// Call after call; the last one began before the end.
fn serial() -> Value {
    let last = (LASTS - 1) / CALL * CALL;
    json!({ "distinct": there_at(last), "duplicates": 0 })
}

async fn ours(callers: bool) -> Value {
    let orders = CollectionSpec {
        writes: written((0..LASTS + 2_000).step_by(EACH as usize), NOW),
        filter: Filter::none(),
        paging: Paging::None,
        ..orders()
    };
    let mut vendor = vendor(orders, CALL as u64, NOW);
    vendor.waits = true;
    let settings = "interval = { min = \"400ms\", max = \"8s\" }";
    let (rig, wire) = vendor.polled("conditional = false", settings).await;
    let unit = rig.unit("shop/orders").id;
    // The schedule's first start is spread; here it is now.
    let (_, first) = rig.host.scheduler.ask(unit, Reason::Schedule);
    rig.run_for(500).await;
    let mut asked = vec![first];
    if callers {
        for _ in 0..3 {
            asked.push(rig.host.scheduler.ask(unit, Reason::SyncNow).1);
        }
    }
    run_until(&rig, LASTS - 1).await;
    // The calls that began within the four seconds come to their end, and no other is counted.
    let began = wire.calls().len();
    while handed_over_by(&rig) < began {
        rig.run_for(100).await;
    }
    for report in asked {
        report.await.expect("the poll ends");
    }
    let until = wire.calls()[began - 1].at;
    let lines: Vec<_> = handed_over(&rig)
        .into_iter()
        .filter(|(_, written, _)| *written <= until)
        .collect();
    json!({
        "calls": began,
        "distinct": distinct(&lines),
        "duplicates": lines.len() - distinct(&lines),
        "calls_at_once": wire.most_at_once(),
    })
}

async fn run_until(rig: &Rig, at: i64) {
    let left = NOW + at - rig.clock.wall_now();
    rig.run_for(left.max(0).unsigned_abs()).await;
}

/// Polls that have ended.
fn handed_over_by(rig: &Rig) -> usize {
    rig.polls().len()
}

pub(crate) async fn demo() -> Demo {
    let (alone, with_callers) = (ours(false).await, ours(true).await);
    let by_hand = json!({ "timer": timer(), "guarded": guarded(), "serial": serial() });
    let good = |ours: &Value, least: u64| {
        ours["duplicates"] == 0
            && ours["calls_at_once"] == 1
            && ours["distinct"].as_u64() >= Some(least)
    };
    Demo {
        key: "overlap",
        title: "4 s of a 400 ms schedule against calls of 900 ms: distinct records and duplicates",
        how: HOST,
        holds: good(&alone, 13)
            && good(&with_callers, 13)
            && by_hand["timer"]["processed"] == 30
            && by_hand["timer"]["duplicates"] == 19
            && by_hand["guarded"]["distinct"] == 9
            && by_hand["serial"]["distinct"] == 13,
        theirs: json!({
            "timer": { "processed": 30, "duplicates": 19 },
            "guarded": { "distinct": 9, "duplicates": 0 },
            "serial": { "distinct": 13, "duplicates": 0 },
            "by_hand": by_hand,
        }),
        ours: json!({ "alone": alone, "with_three_syncs": with_callers }),
    }
}

/// Records that become visible 40 s after their stamp.
pub(crate) async fn lag() -> Demo {
    const LATE: i64 = 40_000;
    let start = NOW - 600_000;
    let orders = CollectionSpec {
        writes: WritesSpec {
            initial: 1,
            per_second: 1.0,
            lag: Lag::fixed(LATE),
            ..WritesSpec::default()
        },
        filter: Filter {
            since: Bound::new("since", true),
            until: Bound::default(),
            format: TimeFormat::Rfc3339Ms,
            ..Filter::none()
        },
        paging: Paging::None,
        ..orders()
    };
    let vendor = vendor(orders, 0, start);
    let stream = "window = { since = \"since\" }\npage_size = 1000\npage_size_param = \"limit\"";
    let (rig, wire) = vendor.polled(stream, "interval = \"500ms\"").await;
    rig.poll("shop/orders").await;
    rig.run_for(300_000).await;
    let newest = |unit: &weir::store::UnitRow| unit.state.watermark.expect("it has read something");
    let before = newest(&rig.unit("shop/orders"));
    rig.poll("shop/orders").await;
    let asked = wire.calls().last().expect("it was asked").url.clone();
    let since = asked.split("since=").nth(1).expect("a bound");
    let since = since.split('&').next().unwrap_or(since).replace("%3A", ":");
    let since: jiff::Timestamp = since.parse().expect("RFC 3339");
    let overlap = before - since.as_millisecond();
    Demo {
        key: "lag",
        title: "records become visible 40 s after their stamp: the overlap that is chosen, in ms",
        how: HOST,
        // The logarithmic classes of the lag log are rounded up, by at most an eighth.
        holds: (2 * LATE..=2 * LATE + 2 * LATE / 8 + 2_000).contains(&overlap),
        theirs: json!({ "p99": LATE, "overlap": 2 * LATE }),
        ours: json!({ "overlap": overlap }),
    }
}
