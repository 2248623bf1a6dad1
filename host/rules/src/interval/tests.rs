use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::*;

fn run(config: &Interval, found: &[Yield]) -> Vec<Duration> {
    let mut state = IntervalState::default();
    found
        .iter()
        .map(|found| {
            let chosen = next(config, state, *found, Floors::default(), None);
            state = chosen.state;
            chosen.interval
        })
        .collect()
}

#[test]
fn empty_polls_lengthen_geometrically_and_at_most_six_times() {
    let got = run(&Interval::default(), &[Yield::Empty; 8]);
    assert_eq!(
        got,
        [
            45_000, 67_500, 101_250, 151_875, 227_812, 341_718, 341_718, 341_718
        ]
    );
}

#[test]
fn a_productive_poll_shortens_by_a_fifth_down_to_the_minimum() {
    use Yield::{Empty, Productive};
    let got = run(
        &Interval::default(),
        &[
            Empty, Empty, Empty, Productive, Productive, Productive, Productive, Productive,
            Productive, Empty,
        ],
    );
    assert_eq!(
        got,
        [
            45_000, 67_500, 101_250, 81_000, 64_800, 51_840, 41_472, 33_177, 30_000, 45_000
        ]
    );
}

#[test]
fn reset_jumps_to_the_minimum_and_doubles_to_the_ceiling() {
    use Yield::{Empty, Productive};
    let config = Interval {
        min: 500,
        max: 8_000,
        strategy: Strategy::Reset,
        freshness: None,
    };
    let got = run(
        &config,
        &[Productive, Empty, Empty, Empty, Empty, Empty, Productive],
    );
    assert_eq!(got, [500, 1_000, 2_000, 4_000, 8_000, 8_000, 500]);
}

#[test]
fn a_full_page_without_a_next_one_polls_at_the_minimum() {
    let state = IntervalState {
        current: 300_000,
        consecutive_empties: 4,
    };
    let chosen = next(
        &Interval::default(),
        state,
        Yield::FullNoNext,
        Floors::default(),
        None,
    );
    assert_eq!((chosen.interval, chosen.why), (30_000, Why::Truncated));
    assert_eq!(chosen.state.consecutive_empties, 0);
}

#[test]
fn freshness_is_a_ceiling_below_even_the_minimum() {
    let config = Interval {
        freshness: Some(60_000),
        ..Interval::default()
    };
    assert_eq!(
        run(&config, &[Yield::Empty; 4]),
        [45_000, 60_000, 60_000, 60_000]
    );
    let tight = Interval {
        freshness: Some(10_000),
        ..Interval::default()
    };
    assert_eq!(run(&tight, &[Yield::Empty; 2]), [10_000, 10_000]);
}

#[test]
fn the_vendors_pause_beats_the_freshness_and_is_not_remembered() {
    let config = Interval {
        freshness: Some(10_000),
        ..Interval::default()
    };
    let floors = Floors {
        vendor: Some(60_000),
        pressure: None,
    };
    let chosen = next(
        &config,
        IntervalState::default(),
        Yield::Productive,
        floors,
        None,
    );
    assert_eq!(
        (chosen.interval, chosen.pause, chosen.why),
        (60_000, 60_000, Why::VendorAsked)
    );
    let after = next(
        &config,
        chosen.state,
        Yield::Productive,
        Floors::default(),
        None,
    );
    assert_eq!(after.interval, 10_000);
}

#[test]
fn bounds_that_make_no_sense_are_refused_by_name() {
    let inverted = Interval {
        min: 100,
        max: 30,
        ..Interval::default()
    };
    let text = inverted.check().unwrap_err().to_string();
    assert!(
        text.contains("min-interval") && text.contains("max-interval"),
        "{text}"
    );
    let zero = Interval {
        min: 0,
        max: 0,
        ..Interval::default()
    };
    assert_eq!(
        zero.check(),
        Err(IntervalError::Zero {
            field: "min-interval"
        })
    );
    assert_eq!(Interval::default().check(), Ok(()));
}

/// Interval 10 s, the first poll takes 65 s, later ones 0.1 s. The choice: the next grid point after the end.
#[test]
fn case_029_no_salvo_after_a_slow_poll() {
    let (mut intended, mut starts) = (0, Vec::new());
    for took in [65_000, 100, 100, 100] {
        starts.push(intended);
        let span = Span {
            intended,
            started: intended,
            ended: intended + took,
        };
        let due = next_due(span, 10_000, 0);
        assert_eq!(due.overrun, took > 10_000);
        intended = due.at;
    }
    assert_eq!(starts, [0, 70_000, 80_000, 90_000]);
}

#[test]
fn case_033_an_answer_slower_than_the_interval_never_overlaps_the_next() {
    let (mut intended, mut busy_until) = (0, 0);
    for took in (0..40).map(|n| 1_000 + n * 700 % 2_000) {
        assert!(intended >= busy_until, "two at once");
        busy_until = intended + took;
        let span = Span {
            intended,
            started: intended,
            ended: busy_until,
        };
        intended = next_due(span, 1_000, 0).at;
    }
}

#[test]
fn small_delays_do_not_add_up() {
    let span = Span {
        intended: 0,
        started: 40,
        ended: 900,
    };
    let due = next_due(span, 60_000, 0);
    assert_eq!(
        due,
        Due {
            at: 60_000,
            overrun: false
        }
    );
}

#[test]
fn a_suspended_machine_polls_once_and_is_not_called_slow() {
    let eight_hours = 8 * 3_600_000;
    let span = Span {
        intended: 10_000,
        started: eight_hours,
        ended: eight_hours + 100,
    };
    let due = next_due(span, 60_000, 0);
    assert_eq!(due.at, 10_000 + 480 * 60_000);
    assert!(!due.overrun);
}

/// The due time is stored by the wall clock; the wait itself runs on the monotonic one.
#[test]
fn case_039_a_clock_set_back_during_a_poll_does_not_stretch_the_wait() {
    let six_hours = 6 * 3_600_000;
    let back = Span {
        intended: six_hours,
        started: six_hours,
        ended: 5_000,
    };
    assert_eq!(next_due(back, 60_000, 0).at, 65_000);
    let forward = Span {
        intended: 0,
        started: 0,
        ended: six_hours,
    };
    assert!(next_due(forward, 60_000, 0).at - six_hours <= 60_000);
}

#[test]
fn the_vendors_pause_counts_from_the_end() {
    let span = Span {
        intended: 0,
        started: 5_000,
        ended: 6_000,
    };
    assert_eq!(next_due(span, 60_000, 60_000).at, 66_000);
}

proptest! {
    #[test]
    fn the_interval_keeps_its_bounds(
        min in 1_u64..10_000_000,
        more in 0_u64..10_000_000,
        freshness in proptest::option::of(1_u64..10_000_000),
        reset in any::<bool>(),
        current in any::<u64>(),
        consecutive_empties in any::<u32>(),
        found in 0_usize..3,
        vendor in proptest::option::of(0_u64..100_000_000),
    ) {
        let strategy = if reset { Strategy::Reset } else { Strategy::Yield };
        let config = Interval { min, max: min + more, strategy, freshness };
        let found = [Yield::Productive, Yield::FullNoNext, Yield::Empty][found];
        let floors = Floors { vendor, pressure: None };
        let chosen = next(&config, IntervalState { current, consecutive_empties }, found, floors, None);
        prop_assert!(chosen.state.current <= config.max);
        prop_assert!(freshness.is_none_or(|fresh| chosen.state.current <= fresh));
        prop_assert!(chosen.state.current >= config.min.min(freshness.unwrap_or(u64::MAX)));
        prop_assert_eq!(chosen.interval, chosen.state.current.max(vendor.unwrap_or(0)));
    }

    #[test]
    fn the_due_time_lies_within_one_interval_after_the_end(
        intended in -1_000_000_000_i64..1_000_000_000,
        late in -10_000_000_i64..10_000_000,
        took in -10_000_000_i64..10_000_000,
        interval in 1_u64..100_000_000,
        pause in 0_u64..100_000_000,
    ) {
        let started = intended + late;
        let ended = started + took;
        let at = next_due(Span { intended, started, ended }, interval, pause).at;
        prop_assert!(at >= ended);
        prop_assert!(at - ended >= pause as i64);
        prop_assert!(at - ended <= interval.max(pause) as i64);
    }
}
