//! SIGKILL at any instant: the store opens again, and nothing is lost or delivered twice.
#![allow(clippy::unwrap_used, clippy::panic)]

mod run_support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use run_support::vendor::{Vendor, json, orders};
use run_support::*;
use weir_tests::demo::{DEMO_TOKEN, DEMO_TOKEN_VARIABLE, demo_judge, storm_config, storm_spec};
use weir_tests::judge::{Judge, Verdict, waits};
use weir_tests::server::{Server, Stage};
use weir_tests::spec::VendorSpec;
use weir_tests::time::wall;
use weir_tests::vendor::Vendor as Simulated;

/// Other instants with another seed: `WEIR_SEED=7 cargo nextest run -p weir --test run_kill`.
fn seed() -> u64 {
    let seed = std::env::var("WEIR_SEED").ok();
    seed.map_or(20_310_304, |seed| seed.parse().unwrap())
}

const KILLS: usize = 16;
/// Small files, so that a kill often comes around a rotation.
const ROTATED: &str = "\n[sink.rotated]\ntype = \"file\"\npath = \"rotated/{connection}.ndjson\"\nrotate = { size = \"8KiB\" }\n";

/// An answer may die with the host that asked for it, until it is stored.
const UNREAD: i64 = 2_000;

fn vendors() -> Server {
    let vendor = |spec: VendorSpec| Arc::new(Simulated::new(spec, wall()).unwrap());
    Server::start(Stage::new(storm_spec(seed()).into_iter().map(vendor))).unwrap()
}

/// What each of the two sinks has got, judged.
fn judged(place: &Place, server: &Server) -> [Verdict; 2] {
    let ledger = server.ledger();
    ["out", "rotated"].map(|sink| {
        let mut judge = Judge::new(demo_judge(0));
        for unit in ["shop", "desk", "wms"] {
            for file in files(&place.path(sink), unit) {
                let text = std::fs::read_to_string(file).unwrap_or_default();
                lines(&text).into_iter().for_each(|line| judge.take(line));
            }
        }
        judge.verdict(&ledger)
    })
}

/// `shop.2031-03-04.1.ndjson`, `shop.2031-03-04.2.ndjson`, ..., `shop.ndjson`
fn files(dir: &Path, unit: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(middle) = name
            .strip_prefix(unit)
            .and_then(|rest| rest.strip_suffix(".ndjson"))
        else {
            continue;
        };
        let order = match middle
            .strip_prefix('.')
            .and_then(|middle| middle.split_once('.'))
        {
            Some((day, number)) => (day.to_owned(), number.parse().unwrap()),
            None => ("later".to_owned(), 0_u64),
        };
        files.push((order, path));
    }
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}

#[test]
fn a_storm_of_kills_loses_nothing_and_doubles_nothing() {
    let server = vendors();
    let connections = storm_config(&server.origin());
    let config = format!("{connections}{FILES}{ROTATED}");
    let place = Place::new(&config).env(DEMO_TOKEN_VARIABLE, DEMO_TOKEN);
    let mut dice = StdRng::seed_from_u64(seed());
    let mut deaths = Vec::new();
    for round in 0..KILLS {
        let running = match round % 4 {
            3 => place.start(&["sync", "--full"]),
            _ => place.start(&["run"]),
        };
        // Half of them while it starts, half of them while it polls and delivers.
        let instants = if round % 2 == 0 { 5..400 } else { 300..1_500 };
        std::thread::sleep(Duration::from_millis(dice.random_range(instants)));
        running.kill();
        deaths.push(wall());
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
    // Whatever was written before it is visible by then, and polled when the vendors' faults let it.
    loop {
        assert!(!running.is_gone(), "{}", running.log());
        let verdicts = judged(&place, &server);
        let whole = verdicts.iter().all(|verdict| verdict.lost() == 0);
        if whole && frozen.elapsed() > Duration::from_secs(4) {
            break;
        }
        assert!(
            frozen.elapsed() < Duration::from_secs(120),
            "not everything is delivered: {verdicts:#?}\n{}\n{}",
            place.ask(&["status", "--all"]).out,
            place.ask(&["polls", "--limit", "60"]).out
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = running.stop();
    assert_eq!(ended.code(), 0, "{ended:?}");

    for verdict in judged(&place, &server) {
        assert!(verdict.is_clean(), "{verdict:#?}");
        assert!(verdict.visible() > 500, "{}", verdict.visible());
    }
    for vendor in server.vendors() {
        let broken = waits::broken(&vendor.calls(), &deaths, UNREAD);
        assert!(broken.is_empty(), "{}: {broken:#?}", vendor.spec().name);
    }
    let rotated = ["shop", "desk", "wms"].map(|unit| files(&place.path("rotated"), unit).len());
    assert!(rotated.iter().sum::<usize>() > 6, "{rotated:?}");
    let (status, _) = place.json(&["status"]);
    assert_eq!(status["outbox"]["entries"], 0, "{status}");
}

#[test]
fn case_145_a_first_start_that_is_killed_at_any_instant_can_be_repeated() {
    let vendor = Vendor::new(|_| json(orders(3)));
    let config = format!("{}{FILES}", connection("acme", &vendor.origin(), ""));
    let mut dice = StdRng::seed_from_u64(seed());
    for round in 0..16 {
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
