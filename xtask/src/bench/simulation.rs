//! How fast a month is simulated, on one thread: one busy connection by itself, and a busy and a quiet one with all that
//! goes wrong and with whoever checks the promises.
//!
//! A poll is a whole one: due, leased, asked for by the real connector, answered by the simulated vendor, read by the
//! connector, told apart from what is known, committed, delivered, and due again. About half of the answers are 304s, and
//! three polls in ten bring news.

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

/// Both ways.
pub(super) struct Simulations {
    /// Nothing goes wrong, and nobody checks.
    pub(super) calm: Simulation,
    pub(super) troubled: Simulation,
}

/// Simulates a month, so many times; the fastest counts, as whatever else runs only makes it slower.
pub(super) fn simulate(product: &Product, runs: usize) -> anyhow::Result<Simulations> {
    let runs = runs.max(1);
    let calm = ["--calm", "--connection", "shop"];
    Ok(Simulations {
        calm: fastest(product, runs, &calm, &["shop.toml"])?,
        troubled: fastest(product, runs, &[], &["shop.toml", "desk.toml"])?,
    })
}

fn fastest(
    product: &Product,
    runs: usize,
    how: &[&str],
    vendors: &[&str],
) -> anyhow::Result<Simulation> {
    let dir = cargo::root().join("tests/vendors");
    let mut best: Option<Simulation> = None;
    for run in 1..=runs {
        eprintln!("simulated month, {}, run {run}", vendors.join(" and "));
        let output = Command::new(&product.weir)
            .args(["simulate", "--json", "--days", "30", "--seeds", "1"])
            .args(how)
            .arg("--connector")
            .arg(product.connectors.join("rest.wasm"))
            .arg("--config")
            .arg(dir.join("weir.toml"))
            .args(
                vendors
                    .iter()
                    .map(|file| format!("--vendor={}", dir.join(file).display())),
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
