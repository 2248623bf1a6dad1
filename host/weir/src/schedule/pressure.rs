//! What polling does while the sinks do not keep up.
//!
//! Up to the outbox's bound it does not care. Above it, polls begin one at a time with a pause between them that grows
//! with what waits, and each makes one call: positions stay fresh and the vendor's changes are noticed, while the
//! outbox grows by a page now and then. At twice the bound nothing more is asked for, so that a sink that is dead for
//! weeks fills no disk. It ends by itself when the sinks have caught up.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The pause between two polls, a little above the bound and close to twice as much.
const PAUSE: (u64, u64) = (5_000, 60_000);

/// How polling goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pressure {
    /// As the units' intervals say.
    #[default]
    None,
    /// One poll of one call at a time, with so many ms from one start to the next.
    Slow {
        /// In ms.
        pause: u64,
    },
    /// Not at all.
    Full,
}

impl Pressure {
    /// What follows from the bytes that wait and their bound.
    pub fn of(bytes: u64, bound: u64) -> Pressure {
        let bound = bound.max(1);
        let over = bytes.saturating_sub(bound);
        if over == 0 {
            Pressure::None
        } else if over >= bound {
            Pressure::Full
        } else {
            let range = u128::from(PAUSE.1 - PAUSE.0);
            let more = range * u128::from(over) / u128::from(bound);
            Pressure::Slow {
                pause: PAUSE.0 + u64::try_from(more).unwrap_or(PAUSE.1),
            }
        }
    }

    /// The words for logs, poll rows and `weir status`; none where there is nothing to say.
    pub fn why(self) -> Option<&'static str> {
        match self {
            Pressure::None => None,
            Pressure::Slow { .. } => Some("polling is slowed down: the sinks do not keep up"),
            Pressure::Full => Some("nothing is polled: the sinks do not keep up"),
        }
    }
}

/// The pressure as last measured, and when the next poll may begin under it.
#[derive(Default)]
pub(super) struct Valve {
    state: Mutex<(Pressure, Duration)>,
}

impl Valve {
    pub(super) fn pressure(&self) -> Pressure {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Sets the pressure; what it was.
    pub(super) fn set(&self, pressure: Pressure) -> Pressure {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut state.0, pressure)
    }

    /// When a poll that nobody asked for may begin, by the monotonic clock; none: not at all.
    pub(super) fn opens(&self, now: Duration) -> Option<Duration> {
        let (pressure, next) = *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match pressure {
            Pressure::None => Some(now),
            Pressure::Slow { .. } => Some(next.max(now)),
            Pressure::Full => None,
        }
    }

    /// A poll that nobody asked for begins.
    pub(super) fn passed(&self, now: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Pressure::Slow { pause } = state.0 {
            state.1 = now.saturating_add(Duration::from_millis(pause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_from_the_bound_to_twice_the_bound() {
        let slow = |pause| Pressure::Slow { pause };
        assert_eq!(Pressure::of(0, 100), Pressure::None);
        assert_eq!(Pressure::of(100, 100), Pressure::None);
        assert_eq!(Pressure::of(101, 100), slow(5_550));
        assert_eq!(Pressure::of(150, 100), slow(32_500));
        assert_eq!(Pressure::of(199, 100), slow(59_450));
        assert_eq!(Pressure::of(200, 100), Pressure::Full);
        assert_eq!(Pressure::of(u64::MAX, u64::MAX / 2), Pressure::Full);
        assert_eq!(Pressure::of(5, 0), Pressure::Full);
    }

    #[test]
    fn one_poll_passes_in_each_pause() {
        let valve = Valve::default();
        let at = Duration::from_secs;
        assert_eq!(valve.opens(at(7)), Some(at(7)));
        assert_eq!(valve.set(Pressure::Slow { pause: 5_000 }), Pressure::None);
        assert_eq!(valve.opens(at(7)), Some(at(7)));
        valve.passed(at(7));
        assert_eq!(valve.opens(at(8)), Some(at(12)));
        assert_eq!(valve.opens(at(20)), Some(at(20)));
        valve.set(Pressure::Full);
        assert_eq!(valve.opens(at(20)), None);
        valve.set(Pressure::None);
        assert_eq!(valve.opens(at(9)), Some(at(9)));
    }
}
