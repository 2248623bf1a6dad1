//! Seeds of the simulation: vendors, records, faults and crashes of which nobody has thought, and none of them may break
//! a promise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what fails here fails a test"
)]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use weir::config::Overlap;
use weir::simulate::{Came, Checker, Machine, Plan, RunError, Source, TRIES, hunt, run};

/// Seeds that are tried each time. `cargo xtask soak` tries more.
const SEEDS: u64 = 24;

#[test]
fn no_seed_breaks_a_promise() {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get().min(8));
    let machine = Machine::open(&support::connectors(), Some(support::cache()), threads).unwrap();
    let (next, polls) = (AtomicU64::new(0), AtomicU64::new(0));
    let broken = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while broken.lock().unwrap().is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= SEEDS {
                        return;
                    }
                    match hunt(&Source::Seeds, seed, &machine, TRIES) {
                        Ok(Came::Clean(finished)) => {
                            polls.fetch_add(finished.polls, Ordering::Relaxed);
                        }
                        Ok(Came::Broken(found)) => {
                            *broken.lock().unwrap() = Some(format!(
                                "{found}\nagain: cargo xtask soak --from {seed} --to {}",
                                seed + 1
                            ));
                        }
                        Err(error) => *broken.lock().unwrap() = Some(error.to_string()),
                    }
                }
            });
        }
    });
    if let Some(broken) = broken.into_inner().unwrap() {
        panic!("{broken}");
    }
    let polls = polls.into_inner();
    assert!(polls > 100 * SEEDS, "only {polls} polls");
}

/// The host reads with one overlap, and the checker is told of a larger one: what lies between is missing.
#[test]
fn a_host_that_keeps_less_than_was_promised_is_found_out() {
    let machine = Machine::open(&support::connectors(), Some(support::cache()), 1).unwrap();
    let found = (0..100).find_map(|seed| {
        let plan = Plan::of_seed(seed).unwrap();
        let mut setup = plan.setup(&machine);
        for connection in setup.config.connections.values_mut() {
            for stream in connection
                .streams
                .iter_mut()
                .flat_map(|all| all.values_mut())
            {
                stream.overlap = Overlap::Fixed(0);
            }
        }
        let checker = Checker::new(&plan.config, plan.start + plan.calm);
        let watch = Arc::new(Mutex::new(checker));
        match run(&setup, &plan.happenings, seed, watch) {
            Err(RunError::Violation(violation)) => Some((seed, violation)),
            _ => None,
        }
    });
    let (seed, violation) = found.expect("a hundred seeds and no record that came late");
    assert_eq!(
        violation.promise, "what the vendor shows is delivered",
        "seed {seed}: {violation}"
    );
}
