//! The interval for a vendor that publishes no limits: inferred from how quickly it answers.
//!
//! Multiplicative increase, additive decrease. One sign of pressure doubles the interval; a healthy average takes
//! one second off it. A vendor that is going under is left alone at once and approached again with care. A
//! unit that stays at the ceiling is an alert, not a steady state.

use serde::{Deserialize, Serialize};

use crate::model::Duration;

/// The numbers, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Miad {
    /// How many latencies are averaged.
    pub samples: usize,
    /// An average above this is pressure.
    pub ceiling: Duration,
    /// An average below this is health.
    pub healthy: Duration,
    /// What health takes off the interval.
    pub step: Duration,
    /// The shortest interval.
    pub min: Duration,
    /// The longest interval.
    pub max: Duration,
}

impl Default for Miad {
    fn default() -> Self {
        Miad {
            samples: 25,
            ceiling: 800,
            healthy: 200,
            step: 1_000,
            min: 2_000,
            max: 300_000,
        }
    }
}

/// What is remembered of a unit's latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MiadState {
    /// The last latencies in ms, oldest first.
    pub latencies: Vec<u32>,
    /// The interval in ms; 0 before the first call.
    pub interval: Duration,
}

impl MiadState {
    /// The interval stands at its ceiling.
    pub fn is_pinned(&self, config: &Miad) -> bool {
        self.interval >= config.max.max(config.min)
    }
}

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Answered after that many ms.
    Answered(Duration),
    /// 429, 503 or 504, no answer in time, a connection that broke, or a body that is incomplete. Counts as a
    /// latency over the ceiling, whatever it took: one call that hung for a minute must not weigh like eighty.
    Failed,
}

impl Call {
    /// A call with an answer of that status.
    pub fn answered(status: u16, latency: Duration) -> Self {
        match status {
            429 | 503 | 504 => Call::Failed,
            _ => Call::Answered(latency),
        }
    }
}

/// What became of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Doubled.
    Raised,
    /// One step down.
    Lowered,
    /// Neither.
    Held,
}

/// The interval after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// To be stored.
    pub state: MiadState,
    /// What became of the interval.
    pub moved: Move,
    /// It stands at the ceiling: tell a person.
    pub pinned: bool,
}

/// The interval after one call; [`MiadState::interval`] of the answer.
pub fn step(config: &Miad, mut state: MiadState, call: Call) -> Stepped {
    let latency = match call {
        Call::Answered(latency) => latency,
        Call::Failed => config.ceiling.saturating_add(1),
    };
    state
        .latencies
        .push(u32::try_from(latency).unwrap_or(u32::MAX));
    let surplus = state.latencies.len().saturating_sub(config.samples.max(1));
    state.latencies.drain(..surplus);

    let max = config.max.max(config.min);
    let current = state.interval.clamp(config.min, max);
    let (interval, moved) = if call == Call::Failed || passes(&state.latencies, config.ceiling) {
        (current.saturating_mul(2).min(max), Move::Raised)
    } else if under(&state.latencies, config.healthy) {
        let lowered = current.saturating_sub(config.step).max(config.min);
        (
            lowered,
            if lowered < current {
                Move::Lowered
            } else {
                Move::Held
            },
        )
    } else {
        (current, Move::Held)
    };
    state.interval = interval;
    Stepped {
        moved,
        pinned: interval >= max,
        state,
    }
}

/// The average is above the bound. Compared as sums, so that nothing is rounded.
fn passes(latencies: &[u32], bound: Duration) -> bool {
    sum(latencies) > u128::from(bound) * latencies.len() as u128
}

fn under(latencies: &[u32], bound: Duration) -> bool {
    sum(latencies) < u128::from(bound) * latencies.len() as u128
}

fn sum(latencies: &[u32]) -> u128 {
    latencies.iter().map(|latency| u128::from(*latency)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(mut state: MiadState, calls: &[Call]) -> MiadState {
        for call in calls {
            state = step(&Miad::default(), state, *call).state;
        }
        state
    }

    #[test]
    fn one_backpressure_doubles_and_health_brings_it_back_to_exactly_the_minimum() {
        let state = run(MiadState::default(), &[Call::Answered(50)]);
        assert_eq!(state.interval, 2_000);
        let pressed = step(&Miad::default(), state, Call::answered(429, 20));
        assert_eq!(
            (pressed.state.interval, pressed.moved),
            (4_000, Move::Raised)
        );
        let back = run(pressed.state, &[Call::Answered(50); 40]);
        assert_eq!(back.interval, 2_000);
    }

    #[test]
    fn pressure_comes_as_a_status_a_failure_or_a_slow_average() {
        for call in [
            Call::answered(429, 5),
            Call::answered(503, 5),
            Call::answered(504, 5),
            Call::Failed,
            Call::Answered(801),
        ] {
            let stepped = step(&Miad::default(), MiadState::default(), call);
            assert_eq!(stepped.moved, Move::Raised, "{call:?}");
        }
        let at_the_mark = step(&Miad::default(), MiadState::default(), Call::Answered(800));
        assert_eq!(at_the_mark.moved, Move::Held);
        assert_eq!(Call::answered(500, 5), Call::Answered(5));
    }

    #[test]
    fn between_the_marks_it_holds() {
        let state = run(MiadState::default(), &[Call::Failed]);
        assert_eq!(state.interval, 4_000);
        let held = run(
            MiadState {
                latencies: vec![],
                ..state
            },
            &[Call::Answered(500); 30],
        );
        assert_eq!(held.interval, 4_000);
    }

    #[test]
    fn a_hung_call_counts_once_not_for_the_next_twenty_five() {
        let healthy = run(MiadState::default(), &[Call::Answered(50); 25]);
        let hung = step(&Miad::default(), healthy, Call::Failed).state;
        assert_eq!(hung.interval, 4_000);
        assert_eq!(run(hung, &[Call::Answered(50); 2]).interval, 2_000);
    }

    #[test]
    fn only_the_last_25_count() {
        let slow = run(MiadState::default(), &[Call::Answered(5_000); 25]);
        assert_eq!(slow.interval, 300_000);
        let quick = run(slow, &[Call::Answered(10); 25]);
        assert_eq!(quick.latencies, vec![10; 25]);
    }

    #[test]
    fn a_unit_at_its_ceiling_is_an_alert() {
        let mut state = MiadState::default();
        for n in 1..=8 {
            let stepped = step(&Miad::default(), state, Call::Failed);
            assert_eq!(stepped.pinned, n == 8, "after {n}");
            state = stepped.state;
        }
        assert_eq!(state.interval, 300_000);
    }

    proptest! {
        #[test]
        fn the_interval_keeps_its_bounds(
            interval: u64,
            calls in prop::collection::vec(prop::option::of(0_u64..100_000), 1..200),
        ) {
            let config = Miad::default();
            let mut state = MiadState { interval, ..MiadState::default() };
            for call in calls {
                let call = call.map_or(Call::Failed, Call::Answered);
                state = step(&config, state, call).state;
                prop_assert!((config.min..=config.max).contains(&state.interval));
                prop_assert!(state.latencies.len() <= config.samples);
            }
        }
    }
}
