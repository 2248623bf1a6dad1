use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::interval::{Floors, Interval};
use crate::model::{CursorKind, Stream};
use crate::overlap::Overlap;
use crate::walk::{Guard, PageFacts};
use crate::window::{Newest, OrderWatch};

const S: i64 = 1_000;
const HOUR: i64 = 3_600 * S;
const DAY: i64 = 24 * HOUR;
/// 2031-03-04T10:00:00Z
const NOW: Timestamp = 1_930_384_800_000;

fn settings(order: Order) -> Settings {
    Settings {
        stream: Stream {
            name: "orders".into(),
            cursor: CursorKind::Timestamp,
            order,
            page_size: 100,
            result_cap: Some(100),
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

/// A unit that has been read whole in these parts.
fn unit(read: &[(i64, i64)]) -> UnitState {
    let mut state = UnitState {
        synced: true,
        ..UnitState::default()
    };
    for (since, until) in read {
        state.coverage.add(Extent {
            since: *since,
            until: *until,
        });
    }
    state
}

/// A vendor that gives at most `cap` records of a window, those that come first by its order.
struct Vendor {
    records: Vec<i64>,
    order: Order,
    cap: usize,
    heeds_until: bool,
}

impl Vendor {
    /// Answers one walk whole. Returns the stamps that it gave.
    fn answer(&self, walk: &mut Walk) -> Vec<i64> {
        let since = walk.window.since.unwrap_or(i64::MIN);
        let until = if self.heeds_until {
            walk.window.until
        } else {
            i64::MAX
        };
        let mut found: Vec<i64> = self
            .records
            .iter()
            .copied()
            .filter(|at| since <= *at && *at < until)
            .collect();
        match self.order {
            Order::Ascending => found.sort_unstable(),
            Order::Descending => found.sort_unstable_by_key(|at| -at),
            Order::Unordered => found.sort_unstable_by_key(|at| at.wrapping_mul(0x9e37) % 1_009),
        }
        let truncated = found.len() > self.cap;
        found.truncate(self.cap);
        let mut newest = Newest::default();
        let mut watch = OrderWatch::default();
        for at in &found {
            newest.observe(*at, NOW, 0);
            watch.observe(*at);
        }
        walk.page(
            PageFacts {
                newest,
                oldest: found.iter().min().copied(),
                order: found.first().map(|first| (*first, watch)),
                truncated,
                ..PageFacts::default()
            },
            &mut Guard::default(),
        );
        found
    }
}

fn end<'a>(walk: &Walk, settings: &'a Settings, tally: &'a Tally, lags: &'a [i64]) -> End<'a> {
    End {
        ending: walk.ending(&Guard::default()),
        settings,
        tally,
        lags,
        now: NOW,
        floors: Floors::default(),
    }
}

/// Makes side walks until there are none to make. Returns what arrived, and the windows that were asked for.
fn fill(
    state: UnitState,
    settings: &Settings,
    vendor: &Vendor,
) -> (UnitState, BTreeSet<i64>, Vec<Window>) {
    let (mut state, mut got, mut windows) = (state, BTreeSet::new(), Vec::new());
    while let Some(mut walk) = state.side_walk(settings, NOW) {
        got.extend(vendor.answer(&mut walk));
        windows.push(walk.window);
        assert!(windows.len() < 20_000, "it never ends: {:?}", state.gaps);
        let tally = Tally::default();
        let ended = state.side_complete(&walk, &end(&walk, settings, &tally, &[]));
        state = ended.state;
    }
    (state, got, windows)
}

#[test]
fn a_unit_without_gaps_and_settle_time_has_no_side_walk_and_stores_nothing() {
    let state = unit(&[(Timestamp::MIN, NOW)]);
    assert_eq!(state.side_due(&settings(Order::Ascending), NOW), None);
    let text = serde_json::to_string(&state).unwrap();
    for key in ["side", "narrow", "disordered", "silent", "feed"] {
        assert!(!text.contains(key), "{key} in {text}");
    }
}

#[test]
fn the_main_walk_goes_first() {
    let settings = settings(Order::Ascending);
    let mut state = unit(&[(0, NOW)]);
    state.ask_for(Extent { since: 0, until: S }, &settings, NOW);
    assert_eq!(state.side_due(&settings, NOW), Some(NOW));
    let mut busy = state.clone();
    busy.walk = Some(busy.walk(&settings, Reason::Schedule, NOW));
    assert_eq!(busy.side_due(&settings, NOW), None);
    busy.walk = None;
    busy.resume = Some(NOW);
    assert_eq!(busy.side_due(&settings, NOW), None);
}

#[test]
fn what_a_newer_walk_missed_again_is_not_closed_by_a_side_walk_that_began_before_it() {
    let settings = settings(Order::Descending);
    let then = NOW - HOUR;
    let mut vendor = Vendor {
        records: (1..=6).map(|n| then - 10 * n * S).collect(),
        order: Order::Descending,
        cap: 3,
        heeds_until: true,
    };
    let mut state = unit(&[(Timestamp::MIN, then - HOUR)]);
    state.watermark = Some(then - HOUR);
    let tally = Tally::default();
    let main = |mut state: UnitState, vendor: &Vendor, now| {
        let mut walk = state.walk(&settings, Reason::Schedule, now);
        vendor.answer(&mut walk);
        state
            .complete(&walk, &end(&walk, &settings, &tally, &[]))
            .state
    };
    state = main(state, &vendor, then);
    // It has read its page and waits.
    let mut side = state.side_walk(&settings, then).unwrap();
    assert_eq!(vendor.answer(&mut side).len(), 3);
    state.side.walk = Some(Box::new(side.clone()));
    // A late record comes into view behind it, and a main walk cannot get down to it.
    let late = then - 45 * S;
    vendor.records.push(late);
    // The next one will not look there any more.
    vendor.records.extend((197..=199).map(|n| then + n * S));
    state = main(state, &vendor, then + 200 * S);
    state = state
        .side_complete(&side, &end(&side, &settings, &tally, &[]))
        .state;
    let (state, got, _) = fill(state, &settings, &vendor);
    assert!(got.contains(&late), "{got:?}");
    assert!(state.gaps.is_empty(), "{:?}", state.gaps);
}

#[test]
fn a_start_that_is_moved_back_opens_a_hole_that_is_filled_and_forward_loses_nothing() {
    let (day_before, at) = (NOW - 2 * DAY, NOW - DAY);
    let back = |start| Settings {
        start: Some(start),
        ..settings(Order::Ascending)
    };
    let mut state = unit(&[(at, NOW)]);
    state.note_holes(&back(at), NOW, NOW);
    assert!(state.gaps.is_empty());
    state.note_holes(&back(day_before), NOW, NOW);
    assert_eq!(
        state.gaps[0].extent,
        Extent {
            since: day_before,
            until: at
        }
    );
    // Not wanted while the start lies behind it; still known when it is moved back again.
    assert_eq!(state.side_due(&back(at), NOW), None);
    let vendor = Vendor {
        records: (0..30).map(|n| day_before + n * HOUR).collect(),
        order: Order::Ascending,
        cap: 100,
        heeds_until: false,
    };
    let (state, got, windows) = fill(state, &back(day_before), &vendor);
    assert_eq!((got.len(), windows.len()), (30, 1));
    assert_eq!(
        state.coverage.extents(),
        [Extent {
            since: day_before,
            until: NOW
        }]
    );
    assert_eq!(state.side.closed.len(), 1);
}

#[test]
fn case_069_windows_of_a_backfill_touch() {
    let mut settings = settings(Order::Ascending);
    settings.stream.window_cap = Some(2 * DAY as u64);
    let mut state = unit(&[(NOW - DAY, NOW)]);
    let asked = Extent {
        since: NOW - 9 * DAY,
        until: NOW - 4 * DAY,
    };
    state.ask_for(asked, &settings, NOW);
    let vendor = Vendor {
        records: vec![NOW - 7 * DAY, NOW - 7 * DAY - 1],
        order: Order::Ascending,
        cap: 100,
        heeds_until: true,
    };
    let (state, got, windows) = fill(state, &settings, &vendor);
    assert_eq!(got.len(), 2);
    assert_eq!(windows.len(), 3);
    assert!(
        windows
            .windows(2)
            .all(|pair| Some(pair[0].until) == pair[1].since)
    );
    assert!(state.gaps.is_empty());
}

#[test]
fn case_169_a_window_that_failed_stays_a_gap_and_those_beside_it_are_not_read_again() {
    let settings = settings(Order::Ascending);
    let mut state = unit(&[(0, 10 * S), (20 * S, NOW)]);
    state.note_holes(
        &Settings {
            start: Some(0),
            ..settings.clone()
        },
        NOW,
        NOW,
    );
    let walk = state.side_walk(&settings, NOW).unwrap();
    assert_eq!(
        (walk.window.since, walk.window.until),
        (Some(10 * S), 20 * S)
    );
    // It fails, and the host starts again.
    state.side.walk = Some(Box::new(walk.clone()));
    let text = serde_json::to_string(&state).unwrap();
    let mut state: UnitState = serde_json::from_str(&text).unwrap();
    let again = state.side_walk(&settings, NOW).unwrap();
    assert_eq!(again.window, walk.window);
    assert_eq!(state.gaps.len(), 1);
}

#[test]
fn a_tie_that_is_larger_than_the_cap_is_given_up_and_all_else_arrives() {
    for order in [Order::Ascending, Order::Descending, Order::Unordered] {
        let mut records: Vec<i64> = (1..50).map(|n| NOW - DAY - n * 7 * S).collect();
        let tie = NOW - DAY - 100 * S;
        records.extend([tie; 9]);
        let vendor = Vendor {
            records: records.clone(),
            order,
            cap: 4,
            heeds_until: true,
        };
        let mut state = unit(&[(NOW - DAY, NOW)]);
        let extent = Extent {
            since: Timestamp::MIN,
            until: NOW - DAY,
        };
        state.gaps.note(Gap::new(extent, GapSource::Truncated, NOW));
        let (state, got, _) = fill(state, &settings(order), &vendor);
        let all: BTreeSet<i64> = records.into_iter().collect();
        assert_eq!(got, all, "{order:?}");
        let lost: Vec<_> = state.gaps.iter().collect();
        assert_eq!(lost.len(), 1, "{order:?} {lost:?}");
        assert!(lost[0].extent.since <= tie && tie < lost[0].extent.until);
        assert!(lost[0].extent.width() <= 1_000);
        assert!(lost[0].lost.as_deref().unwrap().contains("one moment"));
    }
}

/// Newest first, a cap, and no upper bound: what lies behind the cap can't be reached by any window. It is given up at
/// once, though the gap ends at the very record that was seen last.
#[test]
fn what_lies_behind_the_newest_records_alone_is_given_up_without_halving() {
    let settings = settings(Order::Descending);
    let vendor = Vendor {
        records: (0..300).map(|n| NOW - n * 60 * S).collect(),
        order: Order::Descending,
        cap: 100,
        heeds_until: false,
    };
    let oldest_shown = NOW - 99 * 60 * S;
    let mut state = unit(&[(oldest_shown + 1, NOW + S)]);
    let gap = Extent {
        since: NOW - DAY,
        until: oldest_shown + 1,
    };
    state.gaps.note(Gap::new(gap, GapSource::Truncated, NOW));
    let (state, _, windows) = fill(state, &settings, &vendor);
    assert!(windows.len() <= 3, "{windows:?}");
    assert!(state.gaps.iter().all(|gap| gap.lost.is_some()));
    assert!(!state.gaps.is_empty());
}

#[test]
fn what_the_vendor_keeps_no_longer_is_not_asked_for() {
    let mut settings = settings(Order::Ascending);
    settings.stream.retention = Some(90 * DAY as u64);
    let mut state = unit(&[(NOW - DAY, NOW)]);
    let asked = Extent {
        since: NOW - 100 * DAY,
        until: NOW - 80 * DAY,
    };
    state.ask_for(asked, &settings, NOW);
    let walk = state.side_walk(&settings, NOW).unwrap();
    assert_eq!(walk.window.since, Some(NOW - 90 * DAY));
    let lost = state.gaps.iter().find(|gap| gap.lost.is_some()).unwrap();
    assert_eq!(lost.extent.until, NOW - 90 * DAY);
}

#[test]
fn a_window_that_is_refused_for_good_is_given_up_with_the_reason() {
    let settings = settings(Order::Ascending);
    let mut state = unit(&[(NOW - DAY, NOW)]);
    state.ask_for(
        Extent {
            since: 0,
            until: HOUR,
        },
        &settings,
        NOW,
    );
    let walk = state.side_walk(&settings, NOW).unwrap();
    state.side_refused(&walk, "403 not yours");
    assert!(
        state.gaps[0]
            .lost
            .as_deref()
            .unwrap()
            .contains("403 not yours")
    );
    assert_eq!(state.side_due(&settings, NOW), None);
    // Asked for once more, it is tried once more.
    state.ask_for(
        Extent {
            since: 0,
            until: HOUR,
        },
        &settings,
        NOW,
    );
    assert_eq!(state.side_due(&settings, NOW), Some(NOW));
}

#[test]
fn a_walk_that_goes_in_a_circle_is_made_a_few_times_and_then_given_up() {
    let settings = settings(Order::Ascending);
    let mut state = unit(&[(NOW - DAY, NOW)]);
    state.ask_for(
        Extent {
            since: 0,
            until: HOUR,
        },
        &settings,
        NOW,
    );
    let mut now = NOW;
    for _ in 0..PATIENCE {
        let mut walk = state.side_walk(&settings, now).unwrap();
        walk.stalled = true;
        let tally = Tally::default();
        let ended = state.side_complete(
            &walk,
            &End {
                now,
                ..end(&walk, &settings, &tally, &[])
            },
        );
        state = ended.state;
        now = state.side_due(&settings, now).unwrap_or(now);
    }
    assert!(now > NOW, "not at once");
    assert!(state.gaps[0].lost.is_some());
}

#[test]
fn a_settle_pass_is_due_once_per_settle_time_and_what_it_finds_is_said_and_logged() {
    let mut settings = settings(Order::Ascending);
    settings.stream.settle = Some(DAY as u64);
    let mut state = unit(&[(Timestamp::MIN, NOW)]);
    state.side.settled = Some(window::settle_from(DAY as u64, NOW, None));
    assert_eq!(state.side_due(&settings, NOW), Some(NOW + DAY));
    assert_eq!(state.side_walk(&settings, NOW + DAY - 1), None);
    let walk = state.side_walk(&settings, NOW + DAY).unwrap();
    assert_eq!(walk.reason, Reason::Settle);
    assert_eq!(
        (walk.window.since, walk.window.until),
        (Some(NOW - DAY), NOW)
    );
    let before = state.clone();
    let tally = Tally {
        new: 3,
        ..Tally::default()
    };
    let lags = [3 * HOUR; 60];
    let mut done = walk.clone();
    done.pending.clear();
    let ended = state.side_complete(&done, &end(&done, &settings, &tally, &lags));
    let state = ended.state;
    assert!(ended.remark.unwrap().contains("3 new"));
    assert_eq!(state.side.found.as_ref().unwrap().new, 3);
    assert_eq!(state.side.settled, Some(NOW));
    assert!(state.lags.p99().unwrap() >= 3 * HOUR as u64);
    // And nothing of the main walk has moved.
    let main = |state: &UnitState| UnitState {
        lags: Default::default(),
        side: Side::default(),
        ..state.clone()
    };
    assert_eq!(main(&state), main(&before));
}

#[test]
fn a_settle_pass_that_cannot_be_trusted_leaves_its_window_as_a_gap() {
    let mut settings = settings(Order::Ascending);
    settings.stream.settle = Some(DAY as u64);
    for ending in [
        Ending::Stalled,
        Ending::Short {
            total: 9,
            distinct: 8,
        },
    ] {
        let mut state = unit(&[(Timestamp::MIN, NOW)]);
        state.side.settled = Some(NOW - DAY);
        let walk = state.side_walk(&settings, NOW + DAY).unwrap();
        let tally = Tally::default();
        let ended = End {
            ending,
            ..end(&walk, &settings, &tally, &[])
        };
        let state = state.side_complete(&walk, &ended).state;
        let gaps: Vec<Extent> = state.gaps.extents().collect();
        assert_eq!(gaps, [Extent::from(walk.window)], "{ending:?}");
        assert_eq!(state.side.settled, Some(NOW));
        let due = state.side_due(&settings, NOW + DAY);
        assert_eq!(due, Some(NOW + DAY), "it is read again as a gap");
    }
}

#[test]
fn a_clock_that_is_set_back_makes_no_wait_of_a_side_walk_longer() {
    let settings = settings(Order::Ascending);
    let mut state = unit(&[(NOW - DAY, NOW)]);
    let part = Extent {
        since: 0,
        until: HOUR,
    };
    state.ask_for(part, &settings, NOW);
    state.side_rests(NOW, NOW + HOUR, "the vendor answers slowly");
    assert_eq!(state.side_due(&settings, NOW + 60 * S), Some(NOW + HOUR));
    let back = NOW - 25 * HOUR;
    assert_eq!(state.side_due(&settings, back), Some(back));
}

#[test]
fn no_settle_pass_where_the_stream_has_no_windows_or_nobody_wants_one() {
    let mut settings = settings(Order::Ascending);
    let state = unit(&[(Timestamp::MIN, NOW)]);
    assert_eq!(state.settle_time(&settings), None);
    settings.stream.settle = Some(0);
    assert_eq!(state.settle_time(&settings), None);
    settings.stream.settle = Some(DAY as u64);
    assert_eq!(state.settle_time(&settings), Some(DAY as u64));
    settings.stream.cursor = CursorKind::Opaque;
    assert_eq!(state.settle_time(&settings), None);
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Ascending),
        Just(Order::Descending),
        Just(Order::Unordered)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the order, the cap and the ties: all arrives, or lies in a gap that says that it can't be filled.
    #[test]
    fn a_gap_is_filled_or_given_up(
        order in order(),
        cap in 1_usize..6,
        heeds_until in any::<bool>(),
        seconds in prop::collection::vec(0_i64..4_000, 0..60),
        open_end in any::<bool>(),
        window_cap in prop::option::of(60_u64..3_000),
        grain in prop_oneof![Just(1_u64), Just(1_000), Just(60_000)],
    ) {
        let from = NOW - DAY;
        let records: Vec<i64> = seconds.iter().map(|s| from + s * S).collect();
        let mut settings = settings(order);
        settings.stream.granularity = grain;
        settings.stream.window_cap = window_cap.filter(|_| !open_end).map(|s| s * 1_000);
        let vendor = Vendor { records: records.clone(), order, cap, heeds_until };
        let gap = Extent {
            since: if open_end { Timestamp::MIN } else { from },
            until: from + 4_000 * S,
        };
        let mut state = unit(&[(gap.until, NOW)]);
        state.gaps.note(Gap::new(gap, GapSource::Truncated, NOW));
        let (state, got, _) = fill(state, &settings, &vendor);
        for at in &records {
            let lost = state.gaps.iter().any(|gap| {
                gap.lost.is_some() && gap.extent.since <= *at && *at < gap.extent.until
            });
            // Ties of which a part came count as come: the test can't tell them apart.
            prop_assert!(got.contains(at) || lost, "{at}");
        }
        prop_assert!(state.gaps.iter().all(|gap| gap.lost.is_some()));
    }
}
