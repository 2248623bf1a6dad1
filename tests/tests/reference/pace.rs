//! How often to ask: a source that is busy twice, and a vendor that publishes no limits.

use serde_json::{Value, json};
use weir_tests::spec::{
    CollectionSpec, EtagKind, FaultKind, Filter, Paging, ScriptedFault, Validators, WaitForm, When,
    WritesSpec,
};

use super::shop::{handed_over, orders, vendor, written};
use super::{Demo, HOST};
use crate::support::NOW;

const LASTS: i64 = 12_000;

/// A write each 200 ms from 0 to 2 s and from 9 to 11 s. The first comes 40 ms after a poll of the fixed schedule, as the
/// reference's longest wait of 463 ms has it.
fn writes() -> impl Iterator<Item = i64> {
    let burst = |from: i64| (from + 40..=from + 2_050).step_by(200);
    burst(0).chain(burst(9_000))
}

async fn paced(interval: &str) -> Value {
    let start = NOW - 60_000;
    let orders = CollectionSpec {
        writes: WritesSpec {
            initial: 1,
            ..written(writes(), start)
        },
        filter: Filter::none(),
        paging: Paging::None,
        validators: Validators {
            etag: EtagKind::Strong,
            last_modified: false,
        },
        ..orders()
    };
    let vendor = vendor(orders, 3, start);
    let (rig, wire) = vendor.polled("", &format!("interval = {interval}")).await;
    // What was there before is known when the measurement begins.
    rig.poll("shop/orders").await;
    let units = wire.vendor.counts().quota_used;
    rig.run_for(20_000).await;
    let within = |at: i64| at > 0 && at <= LASTS;
    let calls = wire.calls().iter().filter(|call| within(call.at)).count();
    let late = wire
        .calls()
        .iter()
        .filter(|call| call.at > LASTS && call.status == 200)
        .count();
    let waits: Vec<i64> = handed_over(&rig)
        .iter()
        .filter(|(_, written, _)| *written > 0)
        .map(|(_, written, seen)| seen - written)
        .collect();
    json!({
        "calls": calls,
        "units": wire.vendor.counts().quota_used - units - late as u64,
        "mean_ms": waits.iter().sum::<i64>() / waits.len() as i64,
        "max_ms": waits.iter().max(),
        "records": waits.len(),
    })
}

pub(crate) async fn adaptive() -> Demo {
    let range =
        |strategy: &str| format!("{{ min = \"500ms\", max = \"8s\", strategy = \"{strategy}\" }}");
    let fixed = paced("\"500ms\"").await;
    let reset = paced(&range("reset")).await;
    let halves = paced(&range("yield")).await;
    let rhythm = paced(&range("rhythm")).await;
    let number = |of: &str| rhythm[of].as_u64().expect("a number");
    let no_loss = number("calls") <= 12
        && number("mean_ms") <= 414
        && number("max_ms") <= 1_003
        && number("units") <= 10;
    Demo {
        key: "adaptive",
        title: "12 s with writes at 0-2 s and 9-11 s, 500 ms to 8 s: calls, and how long a write waits to be seen",
        how: HOST,
        holds: no_loss
            && (number("calls") < 12 || number("mean_ms") < 414)
            && rhythm["records"] == writes().count(),
        theirs: json!({
            "fixed": { "calls": 24, "mean_ms": 234, "max_ms": 463 },
            "reset": { "calls": 12, "units": 12, "mean_ms": 414, "max_ms": 1003 },
            "reset_with_etag": { "calls": 12, "units": 10 },
        }),
        ours: json!({ "rhythm": rhythm, "reset": reset, "yield": halves, "fixed": fixed }),
    }
}

/// At 2 s, one refusal, and back.
pub(crate) async fn miad() -> Demo {
    let collection = CollectionSpec {
        filter: Filter::none(),
        paging: Paging::None,
        ..orders()
    };
    let mut vendor = vendor(collection, 50, NOW - 60_000);
    vendor.pacing = "unpublished_limits = true";
    let settings = "interval = \"1s\"\nbackoff = { base = \"100ms\", cap = \"100ms\" }";
    let (rig, wire) = vendor.polled("conditional = false", settings).await;
    rig.poll("shop/orders").await;
    rig.run_for(30_000).await;
    let next = wire.calls().len() as u64 + 1;
    wire.vendor.inject(ScriptedFault {
        when: When::Calls {
            from: next,
            to: next,
        },
        collection: None,
        fault: FaultKind::unavailable(WaitForm::None, 0),
    });
    rig.run_for(30_000).await;
    let polls = rig.polls();
    let refused = polls.iter().position(|poll| poll.outcome != "ok");
    let refused = refused.expect("one was refused");
    let intervals: Vec<u64> = polls[refused - 1..]
        .iter()
        .map(|poll| poll.interval)
        .collect();
    let theirs = [2_000, 4_000, 3_000, 2_000, 2_000];
    Demo {
        key: "miad",
        title: "no published limits: the intervals around one refusal, in ms",
        how: HOST,
        holds: intervals.starts_with(&theirs)
            && intervals[4..].iter().all(|interval| *interval == 2_000),
        theirs: json!({ "intervals": theirs }),
        ours: json!({ "intervals": intervals[..5], "least": intervals.iter().min() }),
    }
}
