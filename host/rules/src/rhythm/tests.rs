use super::*;
use crate::interval::{Floors, Interval, IntervalState, Strategy, Yield, next};
use proptest::prelude::*;

/// Chance that follows from its seed.
struct Dice(u64);

impl Dice {
    /// Between 0 and 1, both excluded.
    fn part(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.part()
    }

    /// A silence of this length on average, without a memory.
    fn quiet(&mut self, mean: f64) -> f64 {
        -self.part().ln() * mean
    }
}

/// What a strategy costs: calls, and how long the records waited on average, in ms.
#[derive(Clone, Copy, Debug)]
struct Cost {
    calls: f64,
    waited: f64,
}

/// Polls a source whose records are written at these times, in ms, until `end`.
fn polled(strategy: Strategy, min: u64, max: u64, writes: &[i64], end: i64) -> Cost {
    let config = Interval {
        min,
        max,
        strategy,
        freshness: None,
    };
    let (mut state, mut rhythm) = (IntervalState::default(), Rhythm::default());
    rhythm.observe(false, &[], 0);
    let (mut at, mut calls, mut read, mut waited) = (min as i64, 0, 0, 0);
    while at < end || read < writes.len() {
        calls += i64::from(at < end);
        let lags: Vec<i64> = writes[read..]
            .iter()
            .take_while(|written| **written <= at)
            .map(|written| at - written)
            .collect();
        read += lags.len();
        waited += lags.iter().sum::<i64>();
        rhythm.observe(!lags.is_empty(), &lags, at);
        let found = if lags.is_empty() {
            Yield::Empty
        } else {
            Yield::Productive
        };
        let expected = rhythm.expected(at, config.floor(), config.ceiling());
        let chosen = next(&config, state, found, Floors::default(), Some(expected));
        state = chosen.state;
        at += chosen.interval as i64;
    }
    Cost {
        calls: calls as f64 / end as f64,
        waited: waited as f64 / writes.len().max(1) as f64,
    }
}

/// Sources of one kind: the times of their records, and when the watch ends. Lengths are in shortest intervals.
fn sources(kind: &str, dice: &mut Dice) -> (Vec<f64>, f64) {
    let mut writes = Vec::new();
    let mut at = 0.0;
    let end = match kind {
        "two bursts" => {
            let (busy, quiet) = (dice.between(1.0, 8.0), dice.between(2.0, 32.0));
            let gap = dice.between(0.2, 1.3);
            for begin in [0.0, busy + quiet] {
                at = begin + dice.between(0.0, 0.4);
                while at < begin + busy {
                    writes.push(at);
                    at += dice.quiet(gap);
                }
            }
            2.0 * busy + quiet + 2.0
        }
        "bursts" => {
            let (cycle, gap) = (dice.between(8.0, 40.0), dice.between(0.2, 1.0));
            let busy = cycle * dice.between(0.1, 0.5);
            let mut begin = 0.0;
            while begin < 240.0 {
                at = begin;
                while at < begin + busy {
                    writes.push(at);
                    at += dice.quiet(gap);
                }
                begin += busy + (cycle - busy) * dice.between(0.3, 1.7);
            }
            240.0
        }
        "chance" => {
            let mean = 2.0 * 10_f64.powf(dice.between(-0.5, 1.3));
            while at < 240.0 {
                at += dice.quiet(mean);
                writes.push(at);
            }
            240.0
        }
        "a beat" => {
            let beat = dice.between(1.4, 30.0);
            while at < 240.0 {
                at += beat;
                writes.push(at + dice.between(0.0, 0.2));
            }
            240.0
        }
        _ => {
            while at < 240.0 {
                at += 0.4 * dice.part().powf(-1.0 / 0.9);
                writes.push(at);
            }
            240.0
        }
    };
    writes.retain(|write| *write < end);
    (writes, end)
}

#[test]
fn fewer_calls_and_shorter_waits_than_doubling_for_sources_of_every_kind() {
    for (min, max) in [(500, 8_000), (30_000, 1_800_000)] {
        for kind in ["two bursts", "bursts", "chance", "a beat", "heavy tails"] {
            let mut sums = [Cost {
                calls: 0.0,
                waited: 0.0,
            }; 2];
            let mut dice = Dice(7);
            for _ in 0..60 {
                let (writes, end) = sources(kind, &mut dice);
                let ms = |length: f64| (length * min as f64) as i64;
                let writes: Vec<i64> = writes.into_iter().map(ms).collect();
                for (sum, strategy) in sums.iter_mut().zip([Strategy::Reset, Strategy::Rhythm]) {
                    let cost = polled(strategy, min, max, &writes, ms(end));
                    sum.calls += cost.calls;
                    sum.waited += cost.waited;
                }
            }
            let [reset, rhythm] = sums;
            assert!(
                rhythm.calls < reset.calls && rhythm.waited < reset.waited,
                "{kind}, from {min} to {max} ms: reset {reset:?}, rhythm {rhythm:?}"
            );
        }
    }
}

#[test]
fn a_dense_source_is_read_at_about_the_minimum_and_its_end_is_told_by_the_age_of_the_last_record() {
    let mut rhythm = Rhythm::default();
    rhythm.observe(false, &[], 0);
    for poll in 1..=20 {
        rhythm.observe(true, &[450, 250, 50], poll * 500);
    }
    assert!(rhythm.expected(10_000, 500, 8_000) <= 700);
    // Three quarters of a second without a record are long for this source.
    assert!(rhythm.expected(10_700, 500, 8_000) > 1_000);
}

#[test]
fn what_becomes_visible_late_as_a_rule_is_no_silence() {
    let (mut prompt, mut late) = (Rhythm::default(), Rhythm::default());
    for rhythm in [&mut prompt, &mut late] {
        rhythm.observe(false, &[], 0);
    }
    for poll in 1..=30 {
        prompt.observe(true, &[10_000], poll * 60_000);
        late.observe(true, &[250_000], poll * 60_000);
    }
    let expected = |rhythm: &Rhythm| rhythm.expected(30 * 60_000, 30_000, 1_800_000);
    let (prompt, late) = (expected(&prompt), expected(&late));
    assert!(prompt.abs_diff(late) < prompt / 20, "{prompt} and {late}");
}

#[test]
fn a_silence_without_end_reaches_the_ceiling() {
    let mut rhythm = Rhythm::default();
    let mut at = 0;
    let mut waits = Vec::new();
    for _ in 0..400 {
        rhythm.observe(false, &[], at);
        let wait = rhythm.expected(at, 30_000, 1_800_000);
        waits.push(wait);
        at += wait.clamp(30_000, 1_800_000) as i64;
    }
    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
    assert_eq!(waits.last(), Some(&1_800_000));
}

#[test]
fn the_state_is_small_and_survives_its_stored_form() {
    let mut rhythm = Rhythm::default();
    let mut dice = Dice(3);
    for poll in 0..10_000_i64 {
        let lags: Vec<i64> = (0..5).map(|_| dice.between(0.0, 60_000.0) as i64).collect();
        rhythm.observe(true, &lags, poll * 60_000);
    }
    let text = serde_json::to_string(&rhythm).unwrap();
    assert!(text.len() < 2_500, "{}", text.len());
    assert_eq!(serde_json::from_str::<Rhythm>(&text).unwrap(), rhythm);
}

proptest! {
    #[test]
    fn whatever_came_the_wait_is_one(
        polls in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<i64>(), 0..8), any::<i64>()), 0..20),
        now: i64,
        floor in 1_u64..10_000_000,
        more in 0_u64..10_000_000_000,
    ) {
        let mut rhythm = Rhythm::default();
        for (productive, lags, at) in &polls {
            rhythm.observe(*productive, lags, *at);
        }
        prop_assert!(rhythm.expected(now, floor, floor + more) <= floor + more);
        prop_assert!(rhythm.silences.len() <= 256);
    }

    #[test]
    fn each_length_has_one_class(quiet in 1_u64..u64::MAX / 2) {
        let class = u32::from(class(quiet));
        prop_assert!(bound(class) <= quiet as f64 * 1.000_000_1);
        prop_assert!(quiet as f64 <= bound(class + 1) * 1.000_000_1);
    }
}
