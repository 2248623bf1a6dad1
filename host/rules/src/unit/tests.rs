use super::*;
use crate::model::Order;
use crate::walk::{Guard, PageFacts};
use crate::window::{FUTURE_ALLOWANCE, Newest};

const S: i64 = 1_000;
const NOW: Timestamp = 1_930_384_800_000;

fn settings(order: Order) -> Settings {
    Settings {
        stream: Stream {
            name: "orders".into(),
            cursor: CursorKind::Timestamp,
            order,
            page_size: 3,
            result_cap: None,
            window_cap: None,
            retention: None,
            granularity: 1_000,
            settle: None,
            volatile: Vec::new(),
            required: Vec::new(),
            backfill: true,
        },
        interval: Interval::default(),
        overlap: Overlap::default(),
        fixed_overlap: Some(120_000),
        start: None,
        unpublished_limits: false,
    }
}

/// One page with records of these stamps.
fn page(walk: &mut Walk, guard: &mut Guard, stamps: &[Timestamp], next: &[&str]) {
    let mut newest = Newest::default();
    for stamp in stamps {
        newest.observe(*stamp, NOW, FUTURE_ALLOWANCE);
    }
    let ids: Vec<String> = stamps.iter().map(ToString::to_string).collect();
    let facts = PageFacts {
        ids: ids.iter().map(String::as_str).collect(),
        content: stamps
            .iter()
            .fold(7, |sum, stamp| sum * 31 + stamp.unsigned_abs()),
        newest,
        oldest: stamps.iter().min().copied(),
        next: next.iter().map(|step| (*step).to_owned()).collect(),
        ..PageFacts::default()
    };
    walk.page(facts, guard);
}

fn end(state: UnitState, walk: &Walk, guard: &Guard, settings: &Settings) -> Completed {
    let tally = Tally {
        new: 1,
        ..Tally::default()
    };
    state.complete(
        walk,
        &End {
            ending: walk.ending(guard),
            settings,
            tally: &tally,
            lags: &[],
            now: NOW,
            floors: Floors::default(),
        },
    )
}

#[test]
fn the_watermark_moves_with_the_end_of_the_walk_and_the_next_window_begins_before_it() {
    let settings = settings(Order::Descending);
    let mut state = UnitState::default();
    let mut walk = state.walk(&settings, Reason::Schedule, NOW);
    let mut guard = Guard::default();
    page(&mut walk, &mut guard, &[NOW - S, NOW - 2 * S], &["older"]);
    assert_eq!(state.watermark, None, "a walk under way moves nothing");
    page(&mut walk, &mut guard, &[NOW - 9 * S], &[]);
    let mut state = end(state, &walk, &guard, &settings).state;
    assert_eq!(state.watermark, Some(NOW - S));
    let next = state.walk(&settings, Reason::Schedule, NOW);
    assert_eq!(next.window.since, Some(NOW - S - 120 * S));
}

#[test]
fn a_fault_keeps_the_walk_and_the_next_poll_goes_on_from_its_step() {
    let settings = settings(Order::Ascending);
    let mut state = UnitState::default();
    let mut walk = state.walk(&settings, Reason::Schedule, NOW);
    page(&mut walk, &mut Guard::default(), &[NOW - 9 * S], &["p2"]);
    state.walk = Some(walk.clone());
    let again = state.walk(&settings, Reason::Schedule, NOW + 60 * S);
    assert_eq!(again.step(), Some(Some("p2")));
    assert_eq!(again.window, walk.window, "its window is frozen");
}

#[test]
fn a_resync_forgets_the_position_and_an_interrupted_one_goes_on() {
    let settings = settings(Order::Ascending);
    let mut state = UnitState {
        watermark: Some(NOW - S),
        cursor: Some("c".into()),
        ..UnitState::default()
    };
    let mut walk = state.walk(&settings, Reason::Resync, NOW);
    assert_eq!((walk.window.since, walk.cursor.as_deref()), (None, None));
    page(&mut walk, &mut Guard::default(), &[NOW - 9 * S], &["p2"]);
    state.walk = Some(walk);
    let again = state.walk(&settings, Reason::Schedule, NOW);
    assert_eq!(again.reason, Reason::Resync);
    assert_eq!(again.step(), Some(Some("p2")));
}

#[test]
fn a_walk_that_went_in_a_circle_moves_nothing_until_patience_ends() {
    let settings = settings(Order::Ascending);
    let mut state = UnitState {
        watermark: Some(NOW - 600 * S),
        ..UnitState::default()
    };
    for round in 1..=PATIENCE {
        let mut walk = state.walk(&settings, Reason::Schedule, NOW);
        let mut guard = Guard::default();
        page(&mut walk, &mut guard, &[NOW - 9 * S], &["a"]);
        page(&mut walk, &mut guard, &[NOW - 8 * S], &["a"]);
        assert_eq!(walk.ending(&guard), Ending::Stalled);
        state = end(state, &walk, &guard, &settings).state;
        if round < PATIENCE {
            assert_eq!(state.watermark, Some(NOW - 600 * S));
            assert!(state.gaps.is_empty());
        }
    }
    assert_eq!(state.watermark, Some(NOW - 8 * S));
    assert_eq!(state.gaps.len(), 1, "what was not read is listed");
}

/// A record that becomes visible late, while a catch-up is reading what is newer, lies in none of the later slices.
#[test]
fn after_a_catch_up_in_slices_the_next_window_begins_an_overlap_before_its_first_slice() {
    let settings = settings(Order::Ascending);
    let mut state = UnitState {
        watermark: Some(NOW - 600 * S),
        synced: true,
        ..UnitState::default()
    };
    // The first slice is cut short, and takes long.
    let mut walk = state.walk(&settings, Reason::Schedule, NOW - 300 * S);
    let mut guard = Guard::default();
    page(&mut walk, &mut guard, &[NOW - 500 * S, NOW - 400 * S], &[]);
    walk.truncated = true;
    let completed = end(state, &walk, &guard, &settings);
    assert!(completed.more);
    let mut state = completed.state;
    let mut walk = state.walk(&settings, Reason::Schedule, NOW - 10 * S);
    let mut guard = Guard::default();
    page(&mut walk, &mut guard, &[NOW - 400 * S, NOW - 20 * S], &[]);
    let completed = end(state, &walk, &guard, &settings);
    assert!(!completed.more);
    let mut state = completed.state;
    assert_eq!(state.watermark, Some(NOW - 300 * S));
    assert_eq!(state.catching_up, None);
    let mut walk = state.walk(&settings, Reason::Schedule, NOW);
    assert_eq!(walk.window.since, Some(NOW - 420 * S));
    // From then on as ever.
    let mut guard = Guard::default();
    page(&mut walk, &mut guard, &[NOW - 20 * S], &[]);
    let state = end(state, &walk, &guard, &settings).state;
    assert_eq!(state.watermark, Some(NOW - 20 * S));
}

#[test]
fn a_walk_cut_short_on_the_way_up_goes_on_at_its_newest_stamp() {
    let settings = settings(Order::Ascending);
    let mut state = UnitState {
        watermark: Some(NOW - 600 * S),
        synced: true,
        ..UnitState::default()
    };
    let mut walk = state.walk(&settings, Reason::Schedule, NOW);
    let mut guard = Guard::default();
    page(&mut walk, &mut guard, &[NOW - 500 * S, NOW - 400 * S], &[]);
    walk.truncated = true;
    let completed = end(state, &walk, &guard, &settings);
    assert!(completed.more);
    assert!(completed.state.gaps.is_empty());
    let mut state = completed.state;
    let next = state.walk(&settings, Reason::Schedule, NOW);
    assert_eq!(
        next.window.since,
        Some(NOW - 400 * S),
        "and is not cut short at the same place again"
    );
}

#[test]
fn what_a_descending_walk_could_not_reach_is_a_gap_listed_once() {
    let settings = settings(Order::Descending);
    let mut state = UnitState {
        watermark: Some(NOW - 600 * S),
        coverage: Coverage::from(vec![(Timestamp::MIN, NOW - 600 * S)]),
        ..UnitState::default()
    };
    for _ in 0..2 {
        let mut walk = state.walk(&settings, Reason::Schedule, NOW);
        let mut guard = Guard::default();
        page(&mut walk, &mut guard, &[NOW - S, NOW - 100 * S], &[]);
        walk.truncated = true;
        state = end(state, &walk, &guard, &settings).state;
        state.watermark = Some(NOW - 600 * S);
    }
    assert_eq!(state.gaps.len(), 1);
    assert_eq!(state.gaps[0].source, GapSource::Truncated);
    assert!(state.gaps[0].extent.until <= NOW - 100 * S + 1);
}

#[test]
fn case_051_a_stamp_from_the_future_does_not_drag_the_watermark() {
    let settings = settings(Order::Ascending);
    let mut state = UnitState::default();
    let mut walk = state.walk(&settings, Reason::Schedule, NOW);
    let mut guard = Guard::default();
    page(
        &mut walk,
        &mut guard,
        &[NOW - 60 * S, NOW + 31 * 86_400 * S],
        &[],
    );
    let state = end(state, &walk, &guard, &settings).state;
    assert_eq!(state.watermark, Some(NOW - 60 * S));
}

#[test]
fn the_state_survives_being_stored_and_an_older_one_can_be_read() {
    let settings = settings(Order::Ascending);
    let mut state = UnitState::default();
    let walk = state.walk(&settings, Reason::Schedule, NOW);
    state.walk = Some(walk);
    let text = serde_json::to_string(&state).expect("plain data");
    assert_eq!(
        serde_json::from_str::<UnitState>(&text).expect("the same"),
        state
    );
    assert_eq!(
        serde_json::from_str::<UnitState>("{}").expect("all fields have defaults"),
        UnitState::default()
    );
}

#[test]
fn the_overlap_is_measured_by_the_vendors_clock_whatever_ours_says() {
    let settings = Settings {
        fixed_overlap: None,
        ..settings(Order::Ascending)
    };
    let tally = Tally {
        new: 60,
        ..Tally::default()
    };
    // The records became visible 20 s late; a host that is ahead of the vendor saw them later than that, by its own clock.
    let chosen = |ahead: i64, dates: usize| {
        let mut state = UnitState {
            synced: true,
            ..UnitState::default()
        };
        for _ in 0..dates {
            state.clock.observe(NOW - ahead, NOW, NOW);
        }
        let mut walk = state.walk(&settings, Reason::Schedule, NOW);
        let mut guard = Guard::default();
        page(&mut walk, &mut guard, &[NOW - ahead - 20 * S], &[]);
        let end = End {
            ending: walk.ending(&guard),
            settings: &settings,
            tally: &tally,
            lags: &[20 * S + ahead; 60],
            now: NOW,
            floors: Floors::default(),
        };
        state.complete(&walk, &end).state.overlap(&settings)
    };
    let right = chosen(0, 1);
    assert!((40_000..=45_000).contains(&right), "{right}");
    for ahead in [90 * S, -90 * S, 600 * S, -600 * S] {
        let got = chosen(ahead, 1);
        assert!(right.abs_diff(got) <= 8_000, "{ahead}: {got}");
    }
    // Nothing is known of the vendor's clock.
    assert!(chosen(-90 * S, 0) >= settings.overlap.initial);
}

/// Four hours in which every poll fails are no lag of the vendor's, whether the walk was begun before them or after.
#[test]
fn the_time_in_which_every_poll_failed_is_no_lag() {
    let settings = Settings {
        fixed_overlap: None,
        ..settings(Order::Ascending)
    };
    let hours = 4 * 3_600 * S;
    let records: Vec<i64> = (0..60).map(|n| n * hours / 60).collect();
    for taken_up in [false, true] {
        let mut state = UnitState {
            watermark: Some(NOW - hours),
            synced: true,
            ..UnitState::default()
        };
        state.clock.observe(NOW, NOW, NOW);
        let read = |mut state: UnitState, now: Timestamp, begun: Timestamp, lags: &[i64]| {
            let mut walk = state.walk(&settings, Reason::Schedule, begun);
            if begun < now {
                walk = walk.resume(settings.stream.page_size).unwrap();
            }
            page(&mut walk, &mut Guard::default(), &[now - S], &[]);
            let end = End {
                ending: Ending::Complete,
                settings: &settings,
                tally: &Tally {
                    new: lags.len() as u64,
                    ..Tally::default()
                },
                lags,
                now,
                floors: Floors::default(),
            };
            state.complete(&walk, &end).state
        };
        state = read(state, NOW - hours, NOW - hours, &[]);
        state.last = Some(Last {
            ended: NOW - 60 * S,
            outcome: "failed".into(),
            message: None,
            unkept: None,
        });
        let begun = if taken_up { NOW - hours + S } else { NOW };
        let state = read(state, NOW, begun, &records);
        let overlap = state.overlap(&settings);
        assert!(overlap <= 240_000, "{taken_up}: {overlap}");
    }
}

/// Polls until there is nothing more to catch up with, at a vendor that lists upwards and gives at most `cap` records.
/// Returns the windows that were asked for, and adds what was shown.
fn catch_up(
    mut state: UnitState,
    settings: &Settings,
    records: &[Timestamp],
    cap: usize,
    shown: &mut Vec<Timestamp>,
) -> (UnitState, Vec<Window>) {
    let mut windows = Vec::new();
    loop {
        let mut walk = state.walk(settings, Reason::Schedule, NOW);
        windows.push(walk.window);
        assert!(windows.len() < 50, "it never ends: {windows:?}");
        let since = walk.window.since.unwrap_or(Timestamp::MIN);
        let mut found: Vec<Timestamp> = records.to_vec();
        found.retain(|at| since <= *at && *at < walk.window.until);
        found.sort_unstable();
        let cut = found.len() > cap;
        found.truncate(cap);
        let mut guard = Guard::default();
        page(&mut walk, &mut guard, &found, &[]);
        walk.truncated |= cut;
        shown.extend(&found);
        let completed = end(state, &walk, &guard, settings);
        state = completed.state;
        if !completed.more {
            return (state, windows);
        }
    }
}

#[test]
fn more_records_of_one_moment_than_the_vendor_gives_hold_up_nothing_behind_them() {
    let settings = settings(Order::Ascending);
    let tie = NOW - 300 * S;
    // The stamps are finer than the windows.
    for within in [0, 300] {
        let mut records: Vec<Timestamp> = (1..=5).map(|n| NOW - 400 * S + n * S).collect();
        records.extend((0..9).map(|n| tie + n * within / 9));
        records.extend([NOW - 200 * S, NOW - 100 * S]);
        let mut shown = Vec::new();
        let (state, windows) = catch_up(UnitState::default(), &settings, &records, 4, &mut shown);
        assert!(windows.len() <= 6, "{windows:?}");
        assert_eq!(shown.last(), Some(&(NOW - 100 * S)), "what lies behind");
        assert!(shown.contains(&tie), "what can be reached of it");
        let gaps: Vec<Extent> = state.gaps.iter().map(|gap| gap.extent).collect();
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        assert!(tie <= gaps[0].since && gaps[0].until == tie + S, "{gaps:?}");
        assert_eq!(state.resume, None);
        // And so with every poll that comes by there: what is new arrives, the gap is listed once.
        records.push(NOW - 2 * S);
        let mut shown = Vec::new();
        let (state, _) = catch_up(state, &settings, &records, 4, &mut shown);
        assert_eq!(shown.last(), Some(&(NOW - 2 * S)));
        assert_eq!(state.gaps.len(), 1);
    }
}

/// It shows the same whatever is asked for, so where it was cut short says nothing of the moment that was asked for.
#[test]
fn at_a_vendor_that_does_not_heed_the_bound_a_walk_that_was_cut_short_rests() {
    for cursor in [
        CursorKind::Timestamp,
        CursorKind::Opaque,
        CursorKind::Snapshot,
    ] {
        let mut settings = settings(Order::Ascending);
        settings.stream.cursor = cursor;
        let mut state = UnitState::default();
        let mut polls = 0;
        loop {
            let mut walk = state.walk(&settings, Reason::Schedule, NOW);
            let mut guard = Guard::default();
            page(&mut walk, &mut guard, &[NOW - 900 * S, NOW - 500 * S], &[]);
            walk.truncated = true;
            let completed = end(state, &walk, &guard, &settings);
            state = completed.state;
            polls += 1;
            if !completed.more {
                break;
            }
            assert!(polls < 3, "{cursor:?} is asked again at once, for ever");
        }
        assert!(!state.gaps.is_empty(), "{cursor:?}: the rest is listed");
    }
}

/// The vendor answers nothing to wide windows, and nobody said where the stream begins: a resync reads its youngest part.
#[test]
fn what_a_resync_in_narrow_windows_does_not_reach_is_listed_until_it_can_be_read() {
    let mut settings = settings(Order::Ascending);
    let narrow = |stage| {
        Some(Narrow {
            width: 1_200_000,
            stage,
            pause: 0,
        })
    };
    let mut state = UnitState {
        watermark: Some(NOW - 600 * S),
        coverage: Coverage::from(vec![(Timestamp::MIN, NOW - 600 * S)]),
        synced: true,
        narrow: narrow(Stage::Proven),
        ..UnitState::default()
    };
    let walked = |mut state: UnitState, settings: &Settings, reason| {
        let mut walk = state.walk(settings, reason, NOW);
        page(&mut walk, &mut Guard::default(), &[NOW - S], &[]);
        end(state, &walk, &Guard::default(), settings).state
    };
    state = walked(state, &settings, Reason::Resync);
    state = walked(state, &settings, Reason::Schedule);
    let unread = |state: &UnitState| {
        let gaps = state.gaps.iter();
        gaps.map(|gap| (gap.source, gap.extent.since, gap.extent.until))
            .collect::<Vec<_>>()
    };
    let until = NOW - 1_200_000;
    assert_eq!(
        unread(&state),
        [(GapSource::NoStart, Timestamp::MIN, until)]
    );
    // As soon as it can be asked for, it is a hole that is filled.
    let start = NOW - 86_400 * S;
    settings.start = Some(start);
    let with_start = walked(state.clone(), &settings, Reason::Schedule);
    assert_eq!(unread(&with_start), [(GapSource::Untouched, start, until)]);
    settings.start = None;
    state.narrow = narrow(Stage::Resting { until: NOW + 1 });
    let any_width = walked(state, &settings, Reason::Schedule);
    assert_eq!(
        unread(&any_width),
        [(GapSource::Untouched, Timestamp::MIN, until)]
    );
}
