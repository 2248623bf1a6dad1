//! The limits that nobody publishes: answers that take longer the more is asked, and a point of giving in.

use std::collections::VecDeque;

use crate::dice::Dice;
use crate::spec::LatencySpec;

/// The span over which load is measured.
const SPAN_MS: i64 = 10_000;

/// The calls of the last ten seconds.
#[derive(Debug, Default)]
pub(super) struct Load {
    calls: VecDeque<i64>,
}

impl Load {
    /// Counts a call; answers how long it takes, and whether the vendor gives in.
    pub(super) fn take(&mut self, spec: &LatencySpec, now: i64, dice: &mut Dice) -> (u64, bool) {
        while self.calls.front().is_some_and(|at| at + SPAN_MS <= now) {
            self.calls.pop_front();
        }
        self.calls.push_back(now);
        let per_second = self.calls.len() as f64 * 1000.0 / SPAN_MS as f64;
        let over = (per_second - spec.easy_per_second).max(0.0);
        let slower = (over * spec.slower_by_ms as f64) as u64;
        let latency = spec.base_ms + dice.below(spec.jitter_ms + 1) + slower;
        let gives_in = spec.give_in_per_second > 0.0 && per_second >= spec.give_in_per_second;
        (latency, gives_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_grows_with_load_and_recovers() {
        let spec = LatencySpec {
            base_ms: 100,
            jitter_ms: 0,
            easy_per_second: 1.0,
            slower_by_ms: 200,
            give_in_per_second: 5.0,
        };
        let mut load = Load::default();
        let mut dice = Dice::new(1);
        assert_eq!(load.take(&spec, 0, &mut dice), (100, false));
        let (busy, gives_in) = (0..49)
            .map(|_| load.take(&spec, 5000, &mut dice))
            .last()
            .unwrap();
        assert!(busy > 800 && gives_in, "{busy}");
        assert_eq!(load.take(&spec, 60_000, &mut dice), (100, false));
    }
}
