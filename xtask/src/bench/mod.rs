//! `cargo xtask bench`: what weir costs beside what one would write by hand, in one run on one machine, everything on
//! loopback. Absolute numbers are a machine's; the ratios are weir's.
//!
//! Measured are whole processes: start, sync, delivery to a file, end. Runs of the three take turns, and of each number
//! the median counts; of the peaks, the highest. Connectors are compiled beforehand, as they are on every start but the
//! first. Fails when a record was lost or duplicated.

pub(crate) mod floors;
mod measure;
mod report;
pub(crate) mod server;
mod simulation;
mod weir;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};

use crate::cargo;
use crate::product::{Product, product};
use measure::{Cost, measure, median, typical};
use report::{Measured, NoNews, Report, Sync};
use server::{PATH, Vendor};
use weir::Weir;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the result as one JSON object on the last line
    #[arg(long)]
    json: bool,
    /// Records of the collection
    #[arg(long, default_value_t = 200_000, hide = true)]
    records: u64,
    /// Runs of each kind
    #[arg(long, default_value_t = 3, hide = true)]
    runs: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return again_in_release();
    }
    let bench = Bench::new(args)?;
    let report = bench.run()?;
    println!("{}", report.table());
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    }
    let harm = |sync: &Sync| sync.lost + sync.duplicated;
    if harm(&report.sync_100) + harm(&report.sync_1000) > 0 {
        bail!("records were lost or duplicated");
    }
    Ok(())
}

/// The floors are measured too, so they are built as the host is.
fn again_in_release() -> anyhow::Result<()> {
    eprintln!("building the floors ...");
    let mut command = Command::new("cargo");
    command
        .current_dir(cargo::root())
        .args(["build", "--release", "--package", "xtask"]);
    let name = format!("xtask{}", std::env::consts::EXE_SUFFIX);
    let xtask = cargo::build(command)?
        .into_iter()
        .flat_map(|artifact| artifact.files)
        .find(|file| file.file_name().is_some_and(|file| *file == *name))
        .context("cargo built no binary named xtask")?;
    let error = Command::new(&xtask)
        .args(std::env::args_os().skip(1))
        .exec();
    Err(error).with_context(|| xtask.display().to_string())
}

struct Bench<'a> {
    args: &'a Args,
    product: Product,
    dir: tempfile::TempDir,
}

impl<'a> Bench<'a> {
    fn new(args: &'a Args) -> anyhow::Result<Self> {
        let product = product()?;
        let dir = tempfile::Builder::new()
            .prefix("bench-")
            .tempdir_in(cargo::target_dir())
            .context("the measurements need a directory for their data")?;
        Ok(Bench { args, product, dir })
    }

    fn run(&self) -> anyhow::Result<Report> {
        let mut vendor = Vendor::start(self.args.records)?;
        let mut double = Vendor::start(self.args.records * 2)?;
        eprintln!(
            "{} records of {} bytes, {} runs of each kind",
            vendor.records,
            vendor.bytes / vendor.records.max(1),
            self.args.runs
        );
        // Its first sync compiles the connectors; all others take them over.
        let first = Weir::new(
            &self.product,
            self.dir.path().join("first"),
            &vendor.origin,
            1000,
        )?;
        first.sync()?;
        let report = Report {
            sync_1000: self.syncs(1000, &mut vendor, &mut double, &first)?,
            sync_100: self.syncs(100, &mut vendor, &mut double, &first)?,
            no_news: self.no_news(&first, &mut vendor)?,
            first_request_ms: self.first_request(&first, &mut vendor)?,
            simulated: simulation::simulate(&self.product, self.args.runs)?.into(),
        };
        Ok(report)
    }

    /// Full syncs by all three.
    fn syncs(
        &self,
        page_size: u32,
        vendor: &mut Vendor,
        double: &mut Vendor,
        like: &Weir<'_>,
    ) -> anyhow::Result<Sync> {
        let (mut copy, mut dedup, mut weir) = (Vec::new(), Vec::new(), Vec::new());
        let (mut lost, mut duplicated) = (0, 0);
        for run in 1..=self.args.runs {
            eprintln!("page size {page_size}, run {run}");
            copy.push(self.floor("copy", page_size, vendor)?);
            dedup.push(self.floor("dedup", page_size, vendor)?);
            let (cost, verdict) = self.sync(page_size, vendor, like)?;
            weir.push(cost);
            lost += verdict.lost;
            duplicated += verdict.duplicated;
        }
        eprintln!("page size {page_size}, {} records", double.records);
        let (cost, verdict) = self.sync(page_size, double, like)?;
        Ok(Sync::from(Measured {
            copy: typical(&copy),
            dedup: typical(&dedup),
            weir: typical(&weir),
            peak_double: cost.peak,
            lost: lost + verdict.lost,
            duplicated: duplicated + verdict.duplicated,
        }))
    }

    fn sync(
        &self,
        page_size: u32,
        vendor: &mut Vendor,
        like: &Weir<'_>,
    ) -> anyhow::Result<(Cost, server::Verdict)> {
        let dir = self.dir.path().join("weir");
        let weir = Weir::warm(&self.product, dir, &vendor.origin, page_size, like)?;
        let cost = weir.sync()?;
        let verdict = vendor.judge(&weir.output())?;
        fs::remove_dir_all(weir.dir())?;
        Ok((cost, verdict))
    }

    fn floor(&self, kind: &str, page_size: u32, vendor: &Vendor) -> anyhow::Result<Cost> {
        let dir = self.dir.path().join(kind);
        fs::create_dir(&dir)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["bench-floor", kind])
            .arg(format!("{}{PATH}", vendor.origin))
            .arg(page_size.to_string())
            .arg(&dir);
        let cost = measure(command)?;
        check_lines(&dir.join("out.ndjson"), vendor.records)?;
        fs::remove_dir_all(dir)?;
        Ok(cost)
    }

    /// A sync of what has been synced before: calls, and how long the whole process takes.
    fn no_news(&self, synced: &Weir<'_>, vendor: &mut Vendor) -> anyhow::Result<NoNews> {
        eprintln!("nothing new");
        let (mut calls, mut wall) = (Vec::new(), Vec::new());
        for _ in 0..self.args.runs * 3 {
            vendor.seen()?;
            wall.push(synced.sync()?.wall);
            calls.push(vendor.seen()?.calls);
        }
        Ok(NoNews {
            calls: calls.into_iter().max().unwrap_or(0),
            ms: milliseconds(median(wall)),
        })
    }

    /// From the start of a process to the first request that the vendor sees.
    fn first_request(&self, synced: &Weir<'_>, vendor: &mut Vendor) -> anyhow::Result<f64> {
        eprintln!("first request");
        let mut waits = Vec::new();
        for _ in 0..self.args.runs * 3 {
            vendor.seen()?;
            let start = SystemTime::now();
            synced.sync()?;
            let first = vendor.seen()?.first.context("weir sync called nobody")?;
            waits.push(first.duration_since(start).unwrap_or_default());
        }
        Ok(milliseconds(median(waits)))
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// A floor that skips records would be low indeed.
fn check_lines(path: &Path, records: u64) -> anyhow::Result<()> {
    // Line by line: a process begins with the memory of the one that starts it, as far as its peak is concerned.
    let lines = BufReader::new(File::open(path)?).split(b'\n').count() as u64;
    if lines != records {
        bail!("a floor wrote {lines} of {records} records");
    }
    Ok(())
}
