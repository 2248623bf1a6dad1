//! How fast a month is simulated: one busy and one quiet connection, one thread.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::cargo;
use crate::product::Product;

/// What `weir simulate --json` says.
#[derive(Deserialize)]
pub(super) struct Simulation {
    pub(super) polls: u64,
    pub(super) polls_per_second: f64,
}

/// Simulates a month, so many times; the fastest counts, as whatever else runs only makes it slower.
pub(super) fn simulate(product: &Product, runs: usize) -> anyhow::Result<Simulation> {
    let vendors = cargo::root().join("tests/vendors");
    let mut best: Option<Simulation> = None;
    for run in 1..=runs.max(1) {
        eprintln!("simulated month, run {run}");
        let output = Command::new(&product.weir)
            .args(["simulate", "--json", "--days", "30", "--seeds", "1"])
            .arg("--connector")
            .arg(product.connectors.join("rest.wasm"))
            .arg("--config")
            .arg(vendors.join("weir.toml"))
            .args(
                ["shop.toml", "desk.toml"]
                    .map(|file| format!("--vendor={}", vendors.join(file).display())),
            )
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("weir simulate")?;
        if !output.status.success() {
            bail!(
                "weir simulate failed: {}",
                String::from_utf8_lossy(&output.stdout)
            );
        }
        let simulation: Simulation = serde_json::from_slice(&output.stdout)?;
        if best
            .as_ref()
            .is_none_or(|best| best.polls_per_second < simulation.polls_per_second)
        {
            best = Some(simulation);
        }
    }
    best.context("nothing was simulated")
}
