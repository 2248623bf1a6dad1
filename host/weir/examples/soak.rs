//! Seed after seed through the simulation, everything seed-made: the command behind `cargo xtask soak` and
//! `cargo xtask planted`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use weir::simulate::{Came, Machine, Source, TRIES, hunt};

/// Tries seeds until a promise is broken, or the time or the seeds are over.
#[derive(Parser)]
struct Args {
    /// The directory of connectors
    #[arg(long)]
    connectors: PathBuf,
    /// Where compiled connectors are kept
    #[arg(long)]
    cache: Option<PathBuf>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Not this seed nor any after it
    #[arg(long)]
    to: Option<u64>,
    /// End after so many minutes
    #[arg(long)]
    minutes: Option<f64>,
    /// Seeds tried at once
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Runs that may be made to shorten a violation's history
    #[arg(long, default_value_t = TRIES)]
    tries: u32,
    /// The last events before a violation that are printed
    #[arg(long, default_value_t = 60)]
    events: usize,
    /// Break this rule on purpose
    #[cfg(feature = "planted")]
    #[arg(long)]
    plant: Option<String>,
    /// Seeds with few records: many in a minute
    #[arg(long)]
    brief: bool,
    /// Go on after a violation, and count
    #[arg(long)]
    all: bool,
    /// One JSON object as the last line
    #[arg(long)]
    json: bool,
    /// The command that a violation is repeated with, without its seeds
    #[arg(long, default_value = "soak")]
    again: String,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match soak(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Breaks the rule of this name.
#[cfg(feature = "planted")]
fn plant(name: Option<&str>) -> Result<(), String> {
    use weir_rules::planted::{Plant, plant};
    let Some(name) = name else {
        return Ok(());
    };
    let found = Plant::ALL.into_iter().find(|plant| plant.name() == name);
    let found = found.ok_or_else(|| {
        let names = Plant::ALL.map(Plant::name).join(", ");
        format!("no rule is called {name}: there are {names}")
    })?;
    plant(Some(found));
    Ok(())
}

#[derive(Default)]
struct Sums {
    seeds: AtomicU64,
    polls: AtomicU64,
    calls: AtomicU64,
    boots: AtomicU64,
    broken: AtomicU64,
    over: AtomicBool,
    found: Mutex<Vec<serde_json::Value>>,
}

fn soak(args: &Args) -> Result<bool, Box<dyn std::error::Error>> {
    #[cfg(feature = "planted")]
    plant(args.plant.as_deref())?;
    let machine = Machine::open(&args.connectors, args.cache.clone(), args.threads)?;
    let sums = Sums::default();
    let next = AtomicU64::new(args.from);
    let began = Instant::now();
    let limit = args
        .minutes
        .map(|minutes| Duration::from_secs_f64(minutes * 60.0));
    let work = || {
        while !sums.over.load(Ordering::Relaxed) {
            if limit.is_some_and(|limit| began.elapsed() >= limit) {
                return;
            }
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if args.to.is_some_and(|to| seed >= to) {
                return;
            }
            let source = if args.brief {
                Source::Brief
            } else {
                Source::Seeds
            };
            let came = hunt(&source, seed, &machine, args.tries);
            sums.seeds.fetch_add(1, Ordering::Relaxed);
            match came {
                Ok(Came::Clean(finished)) => {
                    sums.polls.fetch_add(finished.polls, Ordering::Relaxed);
                    sums.calls.fetch_add(finished.calls, Ordering::Relaxed);
                    sums.boots
                        .fetch_add(u64::from(finished.boots), Ordering::Relaxed);
                }
                Ok(Came::Broken(found)) => {
                    sums.broken.fetch_add(1, Ordering::Relaxed);
                    let text = if args.all {
                        let what = &found.violation.what;
                        format!("seed {seed}: {}: {what}", found.violation.promise)
                    } else {
                        sums.over.store(true, Ordering::Relaxed);
                        format!(
                            "{found:0$}\nagain: {1} --from {seed} --to {2}",
                            args.events,
                            args.again,
                            seed + 1
                        )
                    };
                    println!("{text}");
                    if let Ok(mut all) = sums.found.lock() {
                        all.push(serde_json::json!({
                            "seed": seed,
                            "promise": found.violation.promise,
                            "what": found.violation.what,
                        }));
                    }
                }
                Err(error) => {
                    println!("seed {seed} can't be run: {error}");
                    sums.broken.fetch_add(1, Ordering::Relaxed);
                    sums.over.store(!args.all, Ordering::Relaxed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..args.threads.max(1) {
            scope.spawn(work);
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let count = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
    println!(
        "{} seeds, {} polls, {} calls, {} starts of the host in {seconds:.1} s: {:.0} polls/s; {} broken",
        count(&sums.seeds),
        count(&sums.polls),
        count(&sums.calls),
        count(&sums.boots),
        count(&sums.polls) as f64 / seconds,
        count(&sums.broken),
    );
    if args.json {
        let mut found = sums
            .found
            .lock()
            .map(|found| found.clone())
            .unwrap_or_default();
        found.sort_by_key(|found| found.get("seed").and_then(serde_json::Value::as_u64));
        println!(
            "{}",
            serde_json::json!({ "seeds": count(&sums.seeds), "polls": count(&sums.polls), "found": found })
        );
    }
    Ok(count(&sums.broken) == 0)
}
