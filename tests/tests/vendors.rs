//! A whole host against the simulated vendors, under a clock that the test turns: minutes of ties, lag, late edits,
//! deletions, quotas, faults and crashes, judged by the vendors' own ledgers.
#![allow(clippy::expect_used)]

mod support;

use std::sync::Arc;

use support::vendor::Vendors;
use support::{NOW, Rig};
use weir_tests::demo::{DEMO_TOKEN, DEMO_TOKEN_VARIABLE, demo_config, demo_judge, demo_spec};
use weir_tests::judge::Judge;
use weir_tests::ledger::Ledger;
use weir_tests::vendor::Vendor;

/// Polls the demo's vendors for some minutes, with a crash in each of the given moments, and judges what came out.
async fn run(seed: u64, minutes: u64, crash_at: &[u64]) {
    let clock = Arc::new(support::clock::TestClock::new(NOW));
    let vendors: Vec<(String, Arc<Vendor>)> = demo_spec(seed)
        .into_iter()
        .map(|spec| {
            let name = spec.name.clone();
            (
                name,
                Arc::new(Vendor::new(spec, NOW).expect("the demo's specs are right")),
            )
        })
        .collect();
    let transport = Arc::new(Vendors {
        clock: clock.clone(),
        vendors: vendors.clone(),
    });
    let config = demo_config("http://127.0.0.1:9").replace(
        &format!("{{ env = \"{DEMO_TOKEN_VARIABLE}\" }}"),
        &format!("\"{DEMO_TOKEN}\""),
    );
    let mut rig = Rig::on_clock(&config, transport, clock.clone()).await;
    let mut at = 0;
    for second in crash_at {
        rig.run_for((second - at) * 1_000).await;
        at = *second;
        rig = rig.crash().await;
    }
    rig.run_for((minutes * 60 - at) * 1_000).await;
    for (_, vendor) in &vendors {
        vendor.freeze(clock.wall_now());
    }
    // Long enough for the longest run of faults: every unit has read its window after the last write.
    rig.run_for(900_000).await;

    let ledger = vendors
        .iter()
        .map(|(_, vendor)| vendor.ledger(clock.wall_now()))
        .reduce(Ledger::and)
        .expect("there are vendors");
    let mut judge = Judge::new(demo_judge(0));
    for line in rig.lines() {
        judge.take(line);
    }
    let verdict = judge.verdict(&ledger);
    assert!(
        verdict.visible() > 100,
        "seed {seed}: the vendors were silent"
    );
    let last = |unit: &str| {
        let polls = rig.polls();
        let last = polls.iter().rev().find(|poll| poll.key.to_string() == unit);
        last.map(|poll| format!("{} {:?}", poll.outcome, poll.message))
    };
    if crash_at.is_empty() {
        // A wait that came with the answer on its way as the host died can't be known; any other is kept.
        for (name, vendor) in &vendors {
            assert_eq!(
                vendor.counts().early,
                0,
                "seed {seed}: {name} was called before its wait was over"
            );
        }
    }
    assert!(
        verdict.is_clean(),
        "seed {seed}: {verdict:#?}; last polls: {:?}",
        ["shop/orders", "desk/tickets", "wms/items"].map(last)
    );
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_at_three_hard_vendors() {
    for seed in 1..=3 {
        run(seed, 5, &[]).await;
    }
}

#[tokio::test]
async fn nor_when_the_host_is_killed_again_and_again() {
    for seed in 11..=13 {
        run(seed, 3, &[7, 8, 23, 60, 61, 62, 110, 150]).await;
    }
}
