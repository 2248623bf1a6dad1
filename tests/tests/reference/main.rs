//! The reference measurements, taken with the whole host: scheduler, poll path, store and connector `rest` against the
//! simulated vendor, in one process and under a virtual clock, so that every number is the same on every machine.
//!
//! `theirs` is what others have measured and published of their way; `by_hand` is the same way written down here and run
//! against the same vendor, to show that the load is the same; `ours` is this host. `cargo xtask reference` prints them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what fails here fails a test"
)]

#[path = "../support/mod.rs"]
mod support;

mod conditional;
mod cursor;
mod overlap;
mod pace;
mod rules;
mod shop;

use serde_json::{Map, Value, json};

/// Where the results are written, for whoever prints them.
const OUT: &str = "WEIR_REFERENCE";

/// One measurement.
struct Demo {
    key: &'static str,
    /// What is measured, in one line.
    title: &'static str,
    /// What ran: the whole host, or a rule alone.
    how: &'static str,
    theirs: Value,
    ours: Value,
    /// Ours is at least as good.
    holds: bool,
}

const HOST: &str = "whole host, simulated vendor, virtual clock";
const RULE: &str = "the rule alone";

#[tokio::test]
async fn every_reference_measurement_holds() {
    let demos = vec![
        cursor::demo().await,
        conditional::sixty_polls().await,
        conditional::granularity().await,
        overlap::demo().await,
        pace::adaptive().await,
        pace::miad().await,
        rules::backoff(),
        overlap::lag().await,
    ];
    let mut all = Map::new();
    for demo in &demos {
        let result = json!({
            "title": demo.title,
            "how": demo.how,
            "theirs": demo.theirs,
            "ours": demo.ours,
            "holds": demo.holds,
        });
        all.insert(demo.key.to_owned(), result);
    }
    if let Some(path) = std::env::var_os(OUT) {
        std::fs::write(path, Value::Object(all).to_string()).expect("the results are written");
    }
    let failed: Vec<String> = demos
        .iter()
        .filter(|demo| !demo.holds)
        .map(|demo| format!("{}: theirs {}, ours {}", demo.key, demo.theirs, demo.ours))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
