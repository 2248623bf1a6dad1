//! The simulation's source of chance: a number stream that is the same for a seed on every machine and with every
//! version of every library, so that a seed printed in a failure still means the same failure next year.

/// SplitMix64 (Steele, Lea, Flood 2014): one word of state, good enough to decide what a vendor does next.
#[derive(Clone, Debug)]
pub struct Dice(u64);

/// The finaliser of SplitMix64: spreads every bit of `x` over the whole word.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A seed for one named part of a vendor, so that parts don't share a stream of numbers: adding a fault must not
/// change what is written.
pub fn seed_for(seed: u64, part: &str) -> u64 {
    part.bytes()
        .fold(mix(seed ^ 0x9e37_79b9_7f4a_7c15), |state, byte| {
            mix(state ^ u64::from(byte))
        })
}

impl Dice {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// 64 bits.
    #[expect(
        clippy::should_implement_trait,
        reason = "it never ends, and is no iterator"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Uniform in `0.0 .. 1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Uniform in `0 .. bound`; 0 for an empty range.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // The bias is under 2^-32 for every bound used here.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `low ..= high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        if high <= low {
            return low;
        }
        low + i64::try_from(self.below(high.abs_diff(low) + 1)).unwrap_or(0)
    }

    /// The time to the next event of a Poisson process, in the unit of `mean`.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // First outputs of SplitMix64 for seed 1234567, as its reference implementation prints them.
        let mut dice = Dice::new(1_234_567);
        assert_eq!(dice.next(), 6_457_827_717_110_365_317);
        assert_eq!(dice.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn ranges_hold() {
        let mut dice = Dice::new(7);
        for _ in 0..1000 {
            assert!(dice.below(3) < 3);
            assert!((-5..=5).contains(&dice.between(-5, 5)));
            assert!((0.0..1.0).contains(&dice.unit()));
            assert!(dice.exponential(10.0) >= 0.0);
        }
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.between(4, 4), 4);
    }
}
