//! Seeds of the simulation: vendors, records, faults and crashes of which nobody has thought, and none of them may break
//! a promise.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what fails here fails a test"
)]

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use weir::simulate::{Came, Machine, Source, hunt};

/// Seeds that are tried each time. `cargo xtask soak` tries more.
const SEEDS: u64 = 60;

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
                    match hunt(&Source::Seeds, seed, &machine, true) {
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
