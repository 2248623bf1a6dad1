//! Sinks that do not keep up: polling goes on to the outbox's bound, slows down, rests, and recovers by itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use support::Rig;
use support::script::Script;
use support::shop::{MIN, S, USUAL, body, calls, config, open};
use weir::poll::Outcome;
use weir::schedule::Pressure;
use weir::store::Handled;
use weir_rules::model::Reason;

const BOUND: u64 = 64 << 10;

/// Twenty more records, about two KiB, with every call.
fn growing() -> Arc<Script> {
    let shown = AtomicU64::new(0);
    Script::by(move |_| {
        let from = shown.fetch_add(20, Ordering::SeqCst);
        let records: Vec<String> = (from..from + 20)
            .map(|id| {
                format!(
                    r#"{{"id":{id},"at":"2031-03-04T09:00:00Z","text":"{}"}}"#,
                    "x".repeat(80)
                )
            })
            .collect();
        body(&records.join(","), "")
    })
}

fn bytes(rig: &Rig) -> u64 {
    rig.host.store.outbox_size().expect("reads").bytes
}

/// The sink takes all that waits.
async fn take_all(rig: &Rig) {
    let end = *rig.host.store.outbox_end().borrow();
    let taken = rig.host.store.delivered("main", Handled::up_to(end - 1));
    taken.await.expect("the writer lives").expect("it is noted");
}

#[tokio::test]
async fn polling_slows_down_above_the_bound_rests_at_twice_the_bound_and_recovers() {
    let script = growing();
    let text = format!("outbox = \"64KiB\"\n{}", config("", USUAL));
    let rig = open(&text, &script).await;
    // A dead sink does not stop the polling before the bound is reached.
    while bytes(&rig) <= BOUND {
        let before = bytes(&rig);
        rig.run_for(15_000).await;
        assert!(bytes(&rig) > before, "{:?}", rig.polls().last());
    }
    let at_bound = script.asked().len();
    rig.run_for(3 * 60 * 60_000).await;
    let all = calls(&script);
    let slow = &all[at_bound..];
    assert!(slow.len() > 10, "it goes on, slowly: {slow:?}");
    let gaps: Vec<i64> = slow.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| *gap >= 5 * S), "{gaps:?}");
    let late = &gaps[gaps.len() - 5..];
    assert!(
        late.iter().all(|gap| *gap >= 40 * S),
        "slower and slower: {gaps:?}"
    );
    assert!(bytes(&rig) >= 2 * BOUND && bytes(&rig) < 2 * BOUND + (8 << 10));
    assert_eq!(rig.host.scheduler.pressure(), Pressure::Full);
    assert!(
        *all.last().unwrap() < 2 * 60 * MIN,
        "then it rests: {all:?}"
    );
    // Each row of that time says why.
    let rows = rig.polls();
    let held_back = rows.iter().filter(|row| {
        let said = row.message.as_deref().unwrap_or_default();
        said.contains("the sinks do not keep up")
    });
    assert!(held_back.count() >= slow.len() - 1);

    // A person who asks is told at once, and the vendor is not.
    let report = rig.ask("shop/orders", Reason::SyncNow).await;
    assert_eq!(report.outcome, Outcome::Waiting, "{report:?}");
    let said = report.message.unwrap_or_default();
    assert!(said.contains("the sinks do not keep up"), "{said}");
    assert_eq!(calls(&script).len(), all.len());

    take_all(&rig).await;
    rig.run_for(2 * 60_000).await;
    assert_eq!(rig.host.scheduler.pressure(), Pressure::None);
    let after = calls(&script).len() - all.len();
    assert!(
        after >= 8,
        "as often as before: {after} calls in two minutes"
    );
    let last = rig.polls().pop().unwrap();
    assert_eq!(last.message, None, "nothing is held back any more");
}

#[tokio::test]
async fn under_pressure_a_walk_goes_on_page_by_page_and_loses_nothing() {
    let script = Script::by(|asked| {
        let page: u64 = support::shop::param(asked, "page").map_or(0, |page| page.parse().unwrap());
        let records: Vec<String> = (page * 20..page * 20 + 20)
            .map(|id| {
                format!(
                    r#"{{"id":{id},"at":"2031-03-04T09:00:00Z","text":"{}"}}"#,
                    "x".repeat(80)
                )
            })
            .collect();
        let next = match page {
            0..12 => format!(r#""next":"{}""#, page + 1),
            _ => String::new(),
        };
        body(&records.join(","), &next)
    });
    let paging = "paging = { style = \"token\", token = \"/next\", param = \"page\" }";
    let text = format!("outbox = \"16KiB\"\n{}", config(paging, USUAL));
    let rig = open(&text, &script).await;
    rig.run_for(20 * 60_000).await;
    let before = calls(&script).len();
    assert!(
        before < 20,
        "it rests in the middle of the walk: {before} calls"
    );
    for _ in 0..10 {
        take_all(&rig).await;
        rig.run_for(5 * 60_000).await;
    }
    let unit = rig.unit("shop/orders");
    assert!(unit.state.synced, "the walk has ended");
    assert_eq!(rig.host.store.record_count(unit.id).unwrap(), 13 * 20);
}
