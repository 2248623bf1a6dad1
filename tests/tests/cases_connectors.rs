//! Connectors that trap, loop and grow, in a whole host: what that costs, and whom.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what fails here fails a test"
)]

mod support;

#[allow(dead_code, reason = "the runtime's own tests use all of it")]
#[path = "../../host/runtime/tests/all/guest.rs"]
mod guest;

use std::sync::Arc;
use std::time::{Duration, Instant};

use guest::{EMPTY, Guest};
use support::script::{Reply, Script};
use support::shop::{S, USUAL, named};
use support::{Rig, connectors};
use weir::poll::Outcome;
use weir_rules::model::Reason;

/// Connection `bad` of a connector that reads answers with this code, beside three good ones.
async fn beside(read: &str) -> (Rig, Arc<Script>) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(connectors().join("rest.wasm"), dir.path().join("rest.wasm")).unwrap();
    let guest = Guest::good().body("read-response", read);
    std::fs::write(dir.path().join("acme.wasm"), guest.build()).unwrap();
    let mut config = format!(
        "[connection.bad]\nconnector = \"acme\"\n[connection.bad.streams.orders]\n{USUAL}\n"
    );
    for name in ["b", "c", "d"] {
        config.push_str(&named(name, "", USUAL));
    }
    let script =
        Script::by(|_| Reply::ok(r#"{"orders":[{"id":"x","at":"2031-03-04T09:00:00Z"}]}"#));
    let rig = Rig::of(dir.path(), &config, script.clone()).await;
    script.on(&rig.clock);
    (rig, script)
}

/// Polls it until a person has to look at it, which is soon; the others are well all the while.
async fn parked(rig: &Rig, why: &str) {
    for attempt in 1.. {
        let report = rig.poll("bad/orders").await;
        let message = report.message.clone().unwrap_or_default();
        assert!(message.contains(why), "{message}");
        for good in ["b/orders", "c/orders", "d/orders"] {
            assert!(rig.poll(good).await.outcome.is_good(), "{good}");
        }
        if report.outcome == Outcome::Parked {
            assert!(attempt > 2, "parked at attempt {attempt}");
            break;
        }
        assert_eq!(report.outcome, Outcome::Failed, "{report:?}");
        assert!(attempt < 6, "tried for ever");
        rig.clock.advance(60 * S);
    }
    let unit = rig.unit("bad/orders");
    assert!(
        unit.state
            .parked
            .is_some_and(|parked| parked.message.contains(why))
    );
    // It is not polled again by itself.
    let before = rig.polls().len();
    rig.run_for(3_600_000).await;
    let after = &rig.polls()[before..];
    assert!(
        after
            .iter()
            .all(|poll| poll.key.to_string() != "bad/orders")
    );
    assert!(after.len() > 3, "the others go on");
}

#[tokio::test]
async fn case_155_a_trap_costs_one_poll() {
    // Instances are fresh and remember nothing: the answer's status tells the first poll from the others.
    let read = format!(
        "(if (i32.eq (i32.load16_u offset=120 (local.get $args)) (i32.const 203)) (then unreachable)) {EMPTY}"
    );
    let (rig, script) = beside(&read).await;
    script.then([Reply::status(203, "[]")]);
    let first = rig.poll("bad/orders").await;
    assert_eq!(first.outcome, Outcome::Failed);
    let message = first.message.unwrap_or_default();
    assert!(message.contains("unreachable"), "{message}");
    for poll in 2..=10 {
        rig.settle().await;
        rig.clock.advance(60 * S);
        let report = rig.poll("bad/orders").await;
        assert!(report.outcome.is_good(), "poll {poll}: {report:?}");
    }
}

#[tokio::test]
async fn case_155_a_trap_on_every_poll_parks_its_unit() {
    let (rig, _) = beside("unreachable").await;
    parked(&rig, "unreachable").await;
}

#[tokio::test]
async fn case_159_an_endless_loop_ends_holds_up_nobody_and_parks_its_unit() {
    let (rig, _) = beside("(loop (br 0)) (i32.const 0)").await;
    // While it loops, the others are polled as ever.
    let began = Instant::now();
    let (_, looping) = rig
        .host
        .scheduler
        .ask(rig.unit("bad/orders").id, Reason::SyncNow);
    for good in ["b/orders", "c/orders", "d/orders"] {
        assert!(rig.poll(good).await.outcome.is_good(), "{good}");
    }
    let others = began.elapsed();
    looping.await.expect("the poll ends");
    let all = began.elapsed();
    // Its limit is half a second of processor time, and ten times as much by the clock.
    assert!(all < Duration::from_secs(10), "{all:?}");
    assert!(others < all, "{others:?} of {all:?}");
    parked(&rig, "time").await;
}

#[tokio::test]
async fn case_161_memory_ends_at_its_limit_and_parks_its_unit() {
    let (rig, _) = beside("(loop (drop (memory.grow (i32.const 16))) (br 0)) (i32.const 0)").await;
    parked(&rig, "out of memory").await;
}
