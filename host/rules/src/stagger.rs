//! When a unit starts for the first time: a spread that is its own, and always the same.
//!
//! A thousand units that all start at boot, or at midnight, are a burst that a vendor counts as abuse. Each gets
//! its own place in the interval, from a hash of its name, so that a restart doesn't shuffle them.

use sha2::{Digest, Sha256};

use crate::model::{Duration, Timestamp};

/// The unit's place within `over` ms: `0 <= offset < over`.
pub fn offset(unit: &str, over: Duration) -> Duration {
    let digest = Sha256::digest(unit.as_bytes());
    let hash = digest
        .iter()
        .take(8)
        .fold(0_u64, |hash, byte| hash << 8 | u64::from(*byte));
    // The high bits of the product: even over any length, without the bias of a remainder.
    u64::try_from((u128::from(hash) * u128::from(over)) >> 64).unwrap_or(0)
}

/// When a unit that was never polled is due.
pub fn first_start(unit: &str, now: Timestamp, over: Duration) -> Timestamp {
    now.saturating_add(i64::try_from(offset(unit, over)).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_spread_is_even() {
        let mut tenths = [0_u32; 10];
        for n in 0..10_000 {
            let at = offset(&format!("shop-{n}/orders"), 30_000);
            tenths[(at / 3_000) as usize] += 1;
        }
        assert!(
            tenths.iter().all(|count| (900..=1_100).contains(count)),
            "{tenths:?}"
        );
    }

    #[test]
    fn a_unit_keeps_its_place() {
        assert_eq!(offset("acme/orders", 30_000), offset("acme/orders", 30_000));
        assert_ne!(offset("acme/orders", 30_000), offset("acme/items", 30_000));
        assert_eq!(first_start("acme/orders", 77, 0), 77);
    }

    proptest! {
        #[test]
        fn it_lies_within_the_interval(unit: String, over in 1_u64..) {
            prop_assert!(offset(&unit, over) < over);
        }
    }
}
