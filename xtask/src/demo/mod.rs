//! `cargo xtask demo`: the real binary against three simulated vendors for half a minute, killed once in the middle,
//! and then judged: what the vendors showed against what was delivered.
//!
//! Fails when a record was lost or duplicated, or when a line says something that no vendor has shown. Whatever
//! happens, it ends within a bounded time and leaves no process behind.

pub(crate) mod host;
mod report;
mod run;
mod view;

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use tokio::signal::unix::{SignalKind, signal};

use crate::cargo;
use crate::product::product;
use report::Report;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long the vendors are polled before it is counted
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(10..=3600))]
    seconds: u64,
    /// Whatever is random about the vendors follows from it [default: another one each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Print the result as one JSON object on the last line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let product = product()?;
    kept_on_failure("demo-", |dir| {
        let plan = run::Plan {
            product,
            dir: dir.to_owned(),
            seconds: Duration::from_secs(args.seconds),
            seed: args.seed.unwrap_or_else(some_seed),
        };
        let report = until_interrupted(run::run(&plan))?;
        show(&report, args.json)
    })
}

/// Works in a directory of its own, which stays when the work fails.
pub(crate) fn kept_on_failure(
    prefix: &str,
    work: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let target = cargo::target_dir();
    fs::create_dir_all(&target)?;
    let dir = tempfile::Builder::new()
        .prefix(prefix)
        .tempdir_in(&target)
        .context("a directory is needed for the data")?;
    let ended = work(dir.path());
    if ended.is_err() {
        let kept = dir.keep();
        eprintln!(
            "configuration, log, data and output are kept in {}",
            kept.display()
        );
    }
    ended
}

/// Runs until the end, or until Ctrl-C or SIGTERM.
pub(crate) fn until_interrupted<T>(
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            tokio::select! {
                ended = work => ended,
                // What the run has started is killed as it is dropped.
                why = interrupted() => why.and_then(|signal| bail!("ended by {signal}")),
            }
        })
}

fn show(report: &Report, json: bool) -> anyhow::Result<()> {
    println!("{}", report.table());
    if json {
        println!("{}", serde_json::to_string(report)?);
    }
    report.fail()
}

/// Waits for Ctrl-C or SIGTERM.
async fn interrupted() -> anyhow::Result<&'static str> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(tokio::select! {
        _ = interrupt.recv() => "Ctrl-C",
        _ = terminate.recv() => "SIGTERM",
    })
}

pub(crate) fn some_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| u64::from(since.subsec_micros()))
}
