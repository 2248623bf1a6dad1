//! SIGKILL at any instant: the store opens again, and nothing is lost or delivered twice.
#![allow(clippy::unwrap_used, clippy::panic)]

mod run_support;

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use run_support::vendor::{Vendor, json, orders};
use run_support::*;
use weir_tests::demo::{DEMO_TOKEN, DEMO_TOKEN_VARIABLE, demo_config, demo_judge, demo_spec};
use weir_tests::judge::{Judge, Verdict};
use weir_tests::server::{Server, Stage};
use weir_tests::spec::VendorSpec;
use weir_tests::time::wall;
use weir_tests::vendor::Vendor as Simulated;

/// Other instants with another seed: `WEIR_SEED=7 cargo nextest run -p weir --test run_kill`.
fn seed() -> u64 {
    let seed = std::env::var("WEIR_SEED").ok();
    seed.map_or(20_310_304, |seed| seed.parse().unwrap())
}

const KILLS: usize = 15;

/// The demo's vendors, with records that are not late for as long as in the demo: the test waits for them.
fn vendors() -> Server {
    let prompt = |mut spec: VendorSpec| {
        for collection in &mut spec.collections {
            collection.writes.lag.slow_ms = collection.writes.lag.slow_ms.min(1_500);
        }
        Arc::new(Simulated::new(spec, wall()).unwrap())
    };
    Server::start(Stage::new(demo_spec(seed()).into_iter().map(prompt))).unwrap()
}

fn judged(place: &Place, server: &Server) -> Verdict {
    let mut judge = Judge::new(demo_judge(0));
    for unit in ["shop", "desk", "wms"] {
        if let Ok(file) = File::open(place.path(&format!("out/{unit}.ndjson"))) {
            judge.read(BufReader::new(file)).unwrap();
        }
    }
    judge.verdict(&server.ledger())
}

#[test]
fn a_storm_of_kills_loses_nothing_and_doubles_nothing() {
    let server = vendors();
    let config = format!("{}{FILES}", demo_config(&server.origin()));
    let place = Place::new(&config).env(DEMO_TOKEN_VARIABLE, DEMO_TOKEN);
    let mut dice = StdRng::seed_from_u64(seed());
    for _ in 0..KILLS {
        let running = place.start(&["run"]);
        // A debug build under load needs the first part of it to start at all.
        std::thread::sleep(Duration::from_millis(dice.random_range(5..400)));
        running.kill();
    }

    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(50));
        assert!(!running.is_gone(), "{}", running.log());
    }
    server.freeze();
    let frozen = Instant::now();
    // Whatever was written before it is visible by then, and polled a few seconds later at the latest.
    within(Duration::from_secs(120), "everything is delivered", || {
        assert!(!running.is_gone(), "{}", running.log());
        let mut judge = Judge::new(demo_judge(0));
        for unit in ["shop", "desk", "wms"] {
            let text = std::fs::read_to_string(place.path(&format!("out/{unit}.ndjson"))).ok()?;
            lines(&text).into_iter().for_each(|line| judge.take(line));
        }
        let whole = judge.verdict(&server.ledger()).lost() == 0;
        (whole && frozen.elapsed() > Duration::from_secs(4)).then_some(())
    });
    let ended = running.stop();
    assert_eq!(ended.code(), 0, "{ended:?}");

    let verdict = judged(&place, &server);
    assert!(verdict.is_clean(), "{verdict:#?}");
    assert!(verdict.visible() > 500, "{}", verdict.visible());
    let (status, _) = place.json(&["status"]);
    assert_eq!(status["outbox"]["entries"], 0, "{status}");
}

#[test]
fn case_145_a_first_start_that_is_killed_at_any_instant_can_be_repeated() {
    let vendor = Vendor::new(|_| json(orders(3)));
    let config = format!("{}{FILES}", connection("acme", &vendor.origin(), ""));
    let mut dice = StdRng::seed_from_u64(seed());
    for round in 0..24 {
        let place = Place::new(&config);
        let running = place.start(&["run"]);
        until("the data directory is there", || {
            let mut entries = std::fs::read_dir(place.data()).ok()?;
            entries.next().map(drop)
        });
        std::thread::sleep(Duration::from_micros(dice.random_range(0..50_000)));
        running.kill();
        let (report, exit) = place.sync(&[]);
        assert_eq!(exit, 0, "round {round}: {report}");
        assert_eq!(place.keys("acme"), first_revisions(3), "round {round}");
    }
}
