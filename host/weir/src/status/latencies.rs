//! How long calls took: counts per bound, as a histogram of the metrics wants them.

/// The upper bounds in ms; what takes longer than the last is counted in the total alone.
const BOUNDS: [u64; 12] = [
    10, 25, 50, 100, 250, 500, 800, 1_000, 2_500, 5_000, 10_000, 30_000,
];

/// Calls counted by how long they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Calls up to each of the [`BOUNDS`], and above the one before.
    counts: [u64; BOUNDS.len()],
    total: u64,
    /// In ms.
    sum: u64,
}

impl Latencies {
    /// Counts a call that took that many ms.
    pub fn add(&mut self, ms: u64) {
        let place = BOUNDS.iter().position(|bound| ms <= *bound);
        if let Some(count) = place.and_then(|place| self.counts.get_mut(place)) {
            *count += 1;
        }
        self.total += 1;
        self.sum = self.sum.saturating_add(ms);
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Latencies) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Each bound in ms with the calls up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut so_far = 0;
        BOUNDS
            .into_iter()
            .zip(self.counts)
            .map(move |(bound, count)| {
                so_far += count;
                (bound, so_far)
            })
    }

    /// All calls.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What they took all together, in ms.
    pub fn sum(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_counted_up_to_its_bound_and_in_the_total() {
        let mut one = Latencies::default();
        for ms in [0, 10, 11, 60_000] {
            one.add(ms);
        }
        let mut both = Latencies::default();
        both.add(30_000);
        both.merge(&one);
        let counts: Vec<u64> = both.cumulative().map(|(_, count)| count).collect();
        assert_eq!((counts[0], counts[1], counts[10], counts[11]), (2, 3, 3, 4));
        assert_eq!((both.total(), both.sum()), (5, 90_021));
    }
}
