//! How long to wait after a failure for which the vendor named no time: full jitter.
//!
//! `wait = uniform(0, min(cap, base x 2^(attempt-1)))`. Clients that failed in the same instant spread over the
//! whole of each window, so that a vendor that comes back is not knocked over by the crowd. The growing ceiling
//! is capped before it is multiplied: a hundred failures in a row are as safe as one.

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use crate::model::Duration;

/// The default of [`Backoff::base`] in ms.
pub const BASE: Duration = 5_000;
/// The default of [`Backoff::cap`] in ms.
pub const CAP: Duration = 1_800_000;

/// The bounds of a backoff: checked when made, so that drawing from it can't fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Bounds", into = "Bounds")]
pub struct Backoff {
    base: Duration,
    cap: Duration,
}

/// The bounds as written in a configuration, in ms.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Bounds {
    base: Duration,
    cap: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            base: BASE,
            cap: CAP,
        }
    }
}

impl TryFrom<Bounds> for Backoff {
    type Error = BackoffError;

    fn try_from(bounds: Bounds) -> Result<Self, BackoffError> {
        Backoff::new(bounds.base, bounds.cap)
    }
}

impl From<Backoff> for Bounds {
    fn from(backoff: Backoff) -> Self {
        Bounds {
            base: backoff.base,
            cap: backoff.cap,
        }
    }
}

/// Why bounds were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackoffError {
    /// The range is empty.
    #[error(
        "backoff base ({base} ms) is longer than backoff cap ({cap} ms): swap them or raise the cap"
    )]
    Inverted {
        /// As configured.
        base: Duration,
        /// As configured.
        cap: Duration,
    },
    /// A loop without a pause.
    #[error(
        "backoff base ({base} ms) and backoff cap ({cap} ms) must both be at least 1 ms: a failed call would be repeated without a pause"
    )]
    Zero {
        /// As configured.
        base: Duration,
        /// As configured.
        cap: Duration,
    },
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            base: BASE,
            cap: CAP,
        }
    }
}

impl Backoff {
    /// Bounds in ms. The cap should lie near the vendor's reset window. Refuses zero and a base above the cap.
    pub fn new(base: Duration, cap: Duration) -> Result<Self, BackoffError> {
        if base == 0 || cap == 0 {
            return Err(BackoffError::Zero { base, cap });
        }
        if base > cap {
            return Err(BackoffError::Inverted { base, cap });
        }
        Ok(Backoff { base, cap })
    }

    /// The same backoff with another cap, as a connector's descriptor asks; its base comes down with it.
    pub fn capped(self, cap: Duration) -> Self {
        let cap = cap.max(1);
        Backoff {
            base: self.base.min(cap),
            cap,
        }
    }

    /// The longest wait ever, in ms.
    pub fn cap(&self) -> Duration {
        self.cap
    }

    /// The longest wait after that many failures in a row, in ms: 5, 10, 20, ... 1280, 1800 s by default.
    /// Attempts count from 1; 0 is read as 1.
    pub fn ceiling(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1);
        // What can't be doubled without passing the cap is the cap: nothing here can overflow.
        if doublings >= 64 || self.base > self.cap >> doublings {
            self.cap
        } else {
            self.base << doublings
        }
    }

    /// Draws the wait after that many failures in a row, in ms: from 0 to the ceiling, all equally likely.
    pub fn draw<R: Rng + ?Sized>(&self, attempt: u32, rng: &mut R) -> Duration {
        rng.random_range(0..=self.ceiling(attempt))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn the_ceilings_double_up_to_the_cap() {
        let backoff = Backoff::default();
        let seconds: Vec<_> = (1..=11).map(|n| backoff.ceiling(n) / 1_000).collect();
        assert_eq!(
            seconds,
            [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 1_800, 1_800]
        );
    }

    #[test]
    fn case_025_a_hundred_failures_stay_within_the_cap() {
        // A base above the cap is refused, so the connector's cap brings the base down with it.
        let backoff = Backoff::new(1_000, 1_000).unwrap().capped(10);
        let mut rng = StdRng::seed_from_u64(25);
        for attempt in (1..=100).chain([u32::MAX]) {
            assert_eq!(backoff.ceiling(attempt), 10);
            assert!(backoff.draw(attempt, &mut rng) <= 10);
        }
    }

    #[test]
    fn case_027_bounds_the_wrong_way_round_are_refused_with_both_named() {
        let inverted = Backoff::new(100, 30).unwrap_err().to_string();
        assert!(
            inverted.contains("base (100 ms)") && inverted.contains("cap (30 ms)"),
            "{inverted}"
        );
        let zero = Backoff::new(0, 0).unwrap_err().to_string();
        assert!(
            zero.contains("base (0 ms)") && zero.contains("cap (0 ms)"),
            "{zero}"
        );
        assert!(serde_json::from_str::<Backoff>(r#"{"base":100,"cap":30}"#).is_err());
        assert!(serde_json::from_str::<Backoff>(r#"{"base":0,"cap":0}"#).is_err());
        assert_eq!(
            serde_json::from_str::<Backoff>("{}").unwrap(),
            Backoff::default()
        );
    }

    /// 200 clients fail in the same instant and keep failing until 120 s; more than 20 calls in one second knock
    /// the vendor over again.
    #[test]
    fn case_031_a_crowd_spreads_out_and_recovers() {
        let backoff = Backoff::default();
        let mut rng = StdRng::seed_from_u64(31);
        let mut waiting: Vec<(u64, u32)> =
            (0..200).map(|_| (backoff.draw(1, &mut rng), 2)).collect();
        let mut peaks = vec![0_u32; 3_600];
        let mut recovered = 0;
        for second in 0..3_600_u64 {
            let now: Vec<_> = waiting
                .extract_if(.., |(at, _)| *at / 1_000 == second)
                .collect();
            peaks[second as usize] = now.len() as u32;
            let down = second < 120 || now.len() > 20;
            for (at, attempt) in now {
                if down {
                    // At least one second on, so that each second is judged once.
                    let next = (at + backoff.draw(attempt, &mut rng)).max((second + 1) * 1_000);
                    waiting.push((next, attempt + 1));
                } else {
                    recovered += 1;
                }
            }
        }
        assert_eq!(recovered, 200);
        assert!(peaks[120..].iter().all(|peak| *peak <= 20), "{peaks:?}");
    }

    proptest! {
        #[test]
        fn every_wait_lies_between_zero_and_the_ceiling(
            base in 1_u64..=u64::MAX,
            more: u64,
            attempt: u32,
            seed: u64,
        ) {
            let cap = base.saturating_add(more);
            let backoff = Backoff::new(base, cap).unwrap();
            let ceiling = backoff.ceiling(attempt);
            let exact = (u128::from(base) << attempt.saturating_sub(1).min(64)).min(u128::from(cap));
            prop_assert_eq!(u128::from(ceiling), exact);
            prop_assert!(backoff.draw(attempt, &mut StdRng::seed_from_u64(seed)) <= ceiling);
        }
    }
}
