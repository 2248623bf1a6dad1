//! The random seam: where chance comes from.
//!
//! The real host's is seeded by the system. A simulation names the seed, so that the same run comes twice. Whoever
//! draws takes a lock for that moment and draws in one thread's order.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::SeedableRng as _;
use rand::rngs::StdRng;

/// A source of chance for the whole host. For jitter, never for secrets.
#[derive(Debug)]
pub struct Random {
    rng: Mutex<StdRng>,
}

impl Random {
    /// Seeded by the system.
    pub fn of_the_system() -> Random {
        Random::seeded(rand::random())
    }

    /// The same draws for the same seed.
    pub fn seeded(seed: u64) -> Random {
        Random {
            rng: Mutex::new(StdRng::seed_from_u64(seed)),
        }
    }

    /// The source. Not to be held while waiting.
    pub fn lock(&self) -> MutexGuard<'_, StdRng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
