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

use std::ops::Range;
use std::sync::{Arc, Mutex};

use weir::config::Overlap;
use weir::simulate::{Came, Checker, Machine, Plan, RunError, Source, TRIES, hunt, run};

/// None of these seeds breaks a promise. `cargo xtask soak` tries more.
fn nothing_breaks(source: &Source, seeds: Range<u64>) {
    let machine = Machine::open(&support::connectors(), Some(support::cache()), 1).unwrap();
    let brief = match source {
        Source::Brief => " --brief",
        _ => "",
    };
    let (count, mut polls) = (seeds.end - seeds.start, 0);
    for seed in seeds {
        match hunt(source, seed, &machine, TRIES) {
            Ok(Came::Clean(finished)) => polls += finished.polls,
            Ok(Came::Broken(found)) => panic!(
                "{found}\nagain: cargo xtask soak{brief} --from {seed} --to {}",
                seed + 1
            ),
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(polls > 20 * count, "only {polls} polls");
}

/// Tests that can run side by side, each over some of the seeds.
macro_rules! seeds {
    ($($name:ident: $source:ident $seeds:expr;)*) => {
        $(
            #[test]
            fn $name() {
                nothing_breaks(&Source::$source, $seeds);
            }
        )*
    };
}

seeds! {
    no_seed_breaks_a_promise_whole_1: Seeds 0..6;
    no_seed_breaks_a_promise_whole_2: Seeds 6..12;
    no_seed_breaks_a_promise_1: Brief 0..25;
    no_seed_breaks_a_promise_2: Brief 25..50;
    no_seed_breaks_a_promise_3: Brief 50..75;
    no_seed_breaks_a_promise_4: Brief 75..100;
    no_seed_breaks_a_promise_5: Brief 100..125;
    no_seed_breaks_a_promise_6: Brief 125..150;
    no_seed_breaks_a_promise_7: Brief 150..175;
    no_seed_breaks_a_promise_8: Brief 175..200;
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
