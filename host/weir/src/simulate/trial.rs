//! One seed: run and judged.

use std::sync::{Arc, Mutex};

use super::{Finished, Nobody, RunError, Setup, run};

/// Runs a seed.
///
/// # Errors
/// [`RunError::Violation`] when a promise was not kept.
pub fn trial(setup: &Setup, seed: u64) -> Result<Finished, RunError> {
    run(setup, &[], seed, Arc::new(Mutex::new(Nobody)))
}
