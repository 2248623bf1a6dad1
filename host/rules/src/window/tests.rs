use proptest::prelude::*;

use super::*;
use crate::model::Order;

/// 2031-03-04T10:00:00Z
const NOW: Timestamp = 1_930_384_800_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn stream() -> Stream {
    Stream {
        name: "orders".into(),
        cursor: CursorKind::Timestamp,
        order: Order::Ascending,
        page_size: 100,
        result_cap: None,
        window_cap: None,
        retention: None,
        granularity: 1,
        settle: None,
        volatile: vec![],
        required: vec![],
        backfill: true,
    }
}

fn ask(watermark: Option<Timestamp>) -> Ask {
    Ask {
        watermark,
        resume: None,
        overlap: 120_000,
        vendor_now: NOW,
        start: None,
        narrow: None,
    }
}

fn newest(stamps: &[Timestamp], now: Timestamp) -> Newest {
    let mut newest = Newest::default();
    for stamp in stamps {
        newest.observe(*stamp, now, FUTURE_ALLOWANCE);
    }
    newest
}

/// Walks every slice from `first` to the end and hands back the windows.
fn catch_up(stream: &Stream, mut ask: Ask) -> Vec<Window> {
    let mut windows = vec![];
    loop {
        let planned = plan(stream, &ask);
        windows.push(planned.window);
        match planned.resume {
            Some(resume) => ask.resume = Some(resume),
            None => return windows,
        }
        assert!(windows.len() < 100_000, "no end");
    }
}

#[test]
fn a_window_begins_an_overlap_before_the_watermark_and_ends_now() {
    let planned = plan(&stream(), &ask(Some(NOW - 30_000)));
    assert_eq!(
        planned.window,
        Window {
            since: Some(NOW - 150_000),
            until: NOW
        }
    );
    assert!(!planned.capped);
}

#[test]
fn a_first_sync_begins_at_the_users_date_or_at_the_beginning() {
    assert_eq!(plan(&stream(), &ask(None)).window.since, None);
    let dated = Ask {
        start: Some(NOW - DAY),
        ..ask(None)
    };
    assert_eq!(plan(&stream(), &dated).window.since, Some(NOW - DAY));
    let to_come = Ask {
        start: Some(NOW + DAY),
        ..ask(None)
    };
    let empty = plan(&stream(), &to_come).window;
    assert_eq!(empty.since, Some(empty.until));
}

#[test]
fn the_overlap_does_not_reach_behind_the_users_date() {
    let dated = Ask {
        start: Some(NOW - 60_000),
        ..ask(Some(NOW - 30_000))
    };
    assert_eq!(plan(&stream(), &dated).window.since, Some(NOW - 60_000));
}

#[test]
fn bounds_are_widened_to_the_vendors_resolution() {
    let coarse = Stream {
        granularity: 60_000,
        ..stream()
    };
    let now = NOW + 30_500;
    let asked = Ask {
        vendor_now: now,
        ..ask(Some(now - 10_000))
    };
    assert_eq!(
        plan(&coarse, &asked).window,
        Window {
            since: Some(NOW - 2 * MINUTE),
            until: NOW + MINUTE
        }
    );
}

#[test]
fn a_snapshot_has_no_since_and_an_opaque_cursor_is_never_cut() {
    let snapshot = Stream {
        cursor: CursorKind::Snapshot,
        window_cap: Some(1),
        ..stream()
    };
    assert_eq!(plan(&snapshot, &ask(Some(NOW - DAY))).window.since, None);
    let opaque = Stream {
        cursor: CursorKind::Opaque,
        window_cap: Some(1),
        ..stream()
    };
    let planned = plan(&opaque, &ask(Some(NOW - DAY)));
    assert!(!planned.capped);
    assert_eq!(planned.window.since, Some(NOW - DAY - 120_000));
}

#[test]
fn nothing_older_than_the_vendor_keeps_is_asked_for() {
    let kept = Stream {
        retention: Some(DAY as u64),
        ..stream()
    };
    assert_eq!(plan(&kept, &ask(None)).window.since, Some(NOW - DAY));
    assert_eq!(
        plan(&kept, &ask(Some(NOW - 3 * DAY))).window.since,
        Some(NOW - DAY)
    );
}

#[test]
fn a_capped_stream_without_a_start_date_says_what_it_leaves_out() {
    let narrow = Stream {
        window_cap: Some(HOUR as u64),
        ..stream()
    };
    let planned = plan(&narrow, &ask(None));
    assert!(planned.past_unreached && !planned.capped);
    assert_eq!(planned.window.since, Some(NOW - HOUR));
}

/// The text's choice: two-day windows over four days, a record at noon of the second day.
#[test]
fn case_069_slices_are_half_open_and_touch() {
    let narrow = Stream {
        window_cap: Some(2 * DAY as u64),
        granularity: DAY as u64,
        ..stream()
    };
    let now = NOW - NOW.rem_euclid(DAY);
    let asked = Ask {
        start: Some(now - 4 * DAY),
        vendor_now: now,
        ..ask(None)
    };
    let windows = catch_up(&narrow, asked);
    assert_eq!(windows.len(), 2);
    assert_eq!(windows[0].since, Some(now - 4 * DAY));
    assert_eq!(windows[0].until, now - 2 * DAY);
    assert_eq!(windows[1].since, Some(now - 2 * DAY));
    assert_eq!(windows[1].until, now);
    let record = now - 3 * DAY + DAY / 2;
    let hits = windows
        .iter()
        .filter(|w| w.since <= Some(record) && record < w.until);
    assert_eq!(hits.count(), 1);
}

/// Down for three days; the vendor answers windows of up to one hour and an empty list to wider ones.
#[test]
fn case_071_an_outage_is_caught_up_in_windows_that_the_vendor_answers() {
    let narrow = Stream {
        window_cap: Some(HOUR as u64),
        ..stream()
    };
    let records: Vec<_> = (0..72).map(|n| NOW - 3 * DAY + n * HOUR + MINUTE).collect();
    let mut asked = ask(Some(NOW - 3 * DAY));
    let (mut got, mut polls) = (std::collections::BTreeSet::<i64>::new(), 0);
    loop {
        let planned = plan(&narrow, &asked);
        let since = planned.window.since.unwrap();
        assert!(planned.window.until - since <= HOUR);
        let page: Vec<_> = records
            .iter()
            .copied()
            .filter(|at| since <= *at && *at < planned.window.until)
            .collect();
        got.extend(&page);
        asked.watermark = advance_watermark(
            asked.watermark,
            &newest(&page, NOW),
            &planned.window,
            planned.capped,
            NOW,
        );
        asked.resume = planned.resume;
        polls += 1;
        if planned.resume.is_none() {
            break;
        }
    }
    assert_eq!(got.len(), 72);
    assert_eq!(polls, 73);
    assert!(asked.watermark.unwrap() >= NOW - HOUR);
}

#[test]
fn an_overlap_wider_than_the_cap_still_reaches_now() {
    let narrow = Stream {
        window_cap: Some(HOUR as u64),
        ..stream()
    };
    let asked = Ask {
        overlap: 5 * HOUR as u64,
        ..ask(Some(NOW))
    };
    let windows = catch_up(&narrow, asked);
    assert_eq!(windows.len(), 5);
    assert_eq!(windows[4].until, NOW);
}

#[test]
fn three_empty_days_do_not_hold_the_watermark_back() {
    let narrow = Stream {
        window_cap: Some(HOUR as u64),
        ..stream()
    };
    let planned = plan(&narrow, &ask(Some(NOW - 3 * DAY)));
    assert!(planned.capped);
    let moved = advance_watermark(
        Some(NOW - 3 * DAY),
        &Newest::default(),
        &planned.window,
        planned.capped,
        NOW,
    );
    assert_eq!(moved, Some(planned.window.until));
    // An uncapped window proves nothing by being empty, and loses nothing by standing still.
    let wide = plan(&stream(), &ask(Some(NOW - 3 * DAY)));
    let stays = advance_watermark(
        Some(NOW - 3 * DAY),
        &Newest::default(),
        &wide.window,
        wide.capped,
        NOW,
    );
    assert_eq!(stays, Some(NOW - 3 * DAY));
}

/// The poll starts at 33.680 s; a row stamped 32.869 commits after it; the newest row read is stamped 20 s.
#[test]
fn case_049_the_watermark_follows_what_was_seen_not_the_clock() {
    let begun = NOW + 33_680;
    let first = plan(
        &stream(),
        &Ask {
            vendor_now: begun,
            ..ask(Some(NOW))
        },
    );
    let seen = newest(&[NOW + 20_000], begun);
    let mark = advance_watermark(Some(NOW), &seen, &first.window, first.capped, begun);
    assert_eq!(mark, Some(NOW + 20_000));
    let no_overlap = Ask {
        overlap: 0,
        vendor_now: begun + MINUTE,
        ..ask(mark)
    };
    let second = plan(&stream(), &no_overlap).window;
    let row = NOW + 32_869;
    assert!(second.since <= Some(row) && row < second.until);
}

#[test]
fn case_051_a_stamp_from_the_future_does_not_drag_the_watermark_along() {
    let p1 = NOW - MINUTE;
    let p2 = NOW + 31 * DAY;
    let mut seen = Newest::default();
    assert!(!seen.observe(p1, NOW, FUTURE_ALLOWANCE));
    assert!(
        seen.observe(p2, NOW, FUTURE_ALLOWANCE),
        "the first is worth a warning"
    );
    assert!(
        !seen.observe(p2 + 1, NOW, FUTURE_ALLOWANCE),
        "and is warned of once"
    );
    assert_eq!((seen.future, seen.future_count), (Some(p2), 2));
    let planned = plan(&stream(), &ask(None));
    let mark = advance_watermark(None, &seen, &planned.window, planned.capped, NOW);
    assert_eq!(mark, Some(p1));
    let later = NOW + 5 * MINUTE;
    let next = plan(
        &stream(),
        &Ask {
            vendor_now: later,
            ..ask(mark)
        },
    );
    let p3 = NOW + 3 * MINUTE;
    assert!(next.window.since < Some(p3) && p3 < next.window.until);
}

#[test]
fn case_051_a_watermark_that_is_already_poisoned_still_makes_windows_that_reach_now() {
    let planned = plan(&stream(), &ask(Some(NOW + 31 * DAY)));
    assert_eq!(planned.window.since, Some(NOW - 120_000));
}

#[test]
fn case_053_a_record_without_a_stamp_moves_nothing() {
    let planned = plan(&stream(), &ask(Some(NOW - DAY)));
    let mark = advance_watermark(
        Some(NOW - DAY),
        &newest(&[NOW - 5], NOW),
        &planned.window,
        planned.capped,
        NOW,
    );
    assert_eq!(mark, Some(NOW - 5));
    // A zero date that a connector read as 1970 moves nothing back either.
    let mark = advance_watermark(
        mark,
        &newest(&[0], NOW),
        &planned.window,
        planned.capped,
        NOW,
    );
    assert_eq!(mark, Some(NOW - 5));
}

/// Stamps reach the rules as instants: what sorts wrongly as text sorts rightly as a number.
#[test]
fn case_057_a_stamp_with_a_fraction_becomes_the_watermark() {
    let cursor: jiff::Timestamp = "2030-06-01T12:00:00Z".parse().unwrap();
    let record: jiff::Timestamp = "2030-06-01T12:00:00.500Z".parse().unwrap();
    let planned = plan(&stream(), &ask(Some(cursor.as_millisecond())));
    let mark = advance_watermark(
        Some(cursor.as_millisecond()),
        &newest(&[record.as_millisecond()], NOW),
        &planned.window,
        planned.capped,
        NOW,
    );
    assert_eq!(mark, Some(record.as_millisecond()));
}

/// The vendor took the upper bound in its own zone and answered too little: 05:00 of 10:00.
#[test]
fn case_063_the_watermark_is_never_newer_than_what_was_received() {
    let planned = plan(&stream(), &ask(Some(NOW - 6 * HOUR)));
    assert_eq!(planned.window.until, NOW);
    let received = newest(&[NOW - 5 * HOUR], NOW);
    let mark = advance_watermark(
        Some(NOW - 6 * HOUR),
        &received,
        &planned.window,
        planned.capped,
        NOW,
    );
    assert_eq!(mark, Some(NOW - 5 * HOUR));
}

#[test]
fn the_watermark_never_goes_back() {
    let planned = plan(&stream(), &ask(Some(NOW - MINUTE)));
    let older = newest(&[NOW - 90_000], NOW);
    let mark = advance_watermark(
        Some(NOW - MINUTE),
        &older,
        &planned.window,
        planned.capped,
        NOW,
    );
    assert_eq!(mark, Some(NOW - MINUTE));
}

#[test]
fn case_065_the_first_inversion_is_found_within_a_page_and_between_two() {
    let watch = |stamps: &[i64]| {
        let mut watch = OrderWatch::default();
        stamps.iter().for_each(|stamp| watch.observe(*stamp));
        watch
    };
    let inversion = |before, after| Some(Inversion { before, after });
    assert_eq!(watch(&[9, 8, 7]).inversion, inversion(9, 8));
    assert_eq!(watch(&[5, 5, 6]).inversion, None, "ties are in order");
    let mut walk = watch(&[5, 6]);
    walk.page(6, &watch(&[6, 9]));
    assert_eq!((walk.inversion, walk.last), (None, Some(9)));
    walk.page(8, &watch(&[8, 12]));
    assert_eq!(walk.inversion, inversion(9, 8));
    walk.page(2, &watch(&[2, 1]));
    assert_eq!(walk.inversion, inversion(9, 8), "the first one");
}

#[test]
fn case_067_the_watermark_is_the_maximum_not_the_last() {
    let (t1, t2, t3) = (NOW - 30_000, NOW - 20_000, NOW - 10_000);
    let planned = plan(&stream(), &ask(None));
    let mark = advance_watermark(
        None,
        &newest(&[t3, t1, t2], NOW),
        &planned.window,
        planned.capped,
        NOW,
    );
    assert_eq!(mark, Some(t3));
    let next = plan(&stream(), &ask(mark));
    assert!(
        next.window.since < Some(t2),
        "r4 at T2 lies inside the overlap"
    );
}

#[test]
fn what_lies_beyond_the_window_was_seen_by_chance() {
    let planned = Planned {
        window: Window {
            since: Some(NOW - HOUR),
            until: NOW - MINUTE,
        },
        ..plan(&stream(), &ask(None))
    };
    let mark = advance_watermark(
        None,
        &newest(&[NOW - 1], NOW),
        &planned.window,
        planned.capped,
        NOW,
    );
    assert_eq!(mark, Some(NOW - MINUTE));
}

#[test]
fn a_settle_pass_reads_once_what_has_grown_old_enough() {
    let settle = DAY as u64;
    let synced = NOW;
    let from = settle_from(settle, synced, None);
    assert_eq!(from, NOW - DAY);
    assert_eq!(
        plan_settle(&stream(), settle, from, None, NOW + DAY - 1),
        None
    );
    let first = plan_settle(&stream(), settle, from, None, NOW + DAY).unwrap();
    assert_eq!(
        first.window,
        Window {
            since: Some(NOW - DAY),
            until: NOW
        }
    );
    assert_eq!(
        plan_settle(
            &stream(),
            settle,
            first.window.until,
            None,
            NOW + DAY + HOUR
        ),
        None
    );
    let second = plan_settle(&stream(), settle, first.window.until, None, NOW + 2 * DAY).unwrap();
    assert_eq!(second.window.since, Some(first.window.until));
}

#[test]
fn a_settle_pass_is_cut_like_any_other_window() {
    let narrow = Stream {
        window_cap: Some(HOUR as u64),
        ..stream()
    };
    let first = plan_settle(&narrow, DAY as u64, NOW - 3 * DAY, None, NOW).unwrap();
    assert_eq!(first.window.until, NOW - 3 * DAY + HOUR);
    assert!(first.capped);
}

proptest! {
    #[test]
    fn slices_touch_and_cover_everything_from_since_to_now(
        behind in 0_i64..500_000_000,
        cap in 1_u64..100_000_000,
        granularity in prop::sample::select(vec![1_u64, 1_000, 60_000, 86_400_000]),
        overlap in 0_u64..10_000_000,
        now in 1_000_000_000_000_i64..2_000_000_000_000,
    ) {
        // Few enough slices to walk them all.
        let cap = cap.max(behind as u64 / 500 + 1);
        let stream = Stream { window_cap: Some(cap), granularity, ..stream() };
        let asked = Ask {
            watermark: Some(now - behind),
            resume: None,
            overlap,
            vendor_now: now,
            start: None,
            narrow: None,
        };
        let windows = catch_up(&stream, asked);
        prop_assert!(windows[0].since.unwrap() <= now - behind - overlap as i64);
        prop_assert!(windows[windows.len() - 1].until >= now);
        for window in &windows {
            let width = window.until - window.since.unwrap();
            prop_assert!(width <= (cap.max(granularity)) as i64);
            prop_assert_eq!(window.since.unwrap().rem_euclid(granularity as i64), 0);
        }
        for pair in windows.windows(2) {
            prop_assert_eq!(Some(pair[0].until), pair[1].since);
        }
    }

    #[test]
    fn settle_passes_touch_and_never_read_what_is_too_young(
        settle in 1_u64..1_000_000,
        ticks in prop::collection::vec(0_i64..2_000_000, 1..40),
    ) {
        let mut now = NOW;
        let mut settled = settle_from(settle, now, None);
        for tick in ticks {
            now += tick;
            if let Some(planned) = plan_settle(&stream(), settle, settled, None, now) {
                prop_assert_eq!(planned.window.since, Some(settled));
                prop_assert!(planned.window.until <= now - settle as i64);
                settled = planned.window.until;
            }
            prop_assert!(now < settle_due(settle, settled));
        }
    }

    #[test]
    fn the_watermark_never_goes_back_and_never_passes_the_vendors_clock(
        old in prop::option::of(NOW - DAY..NOW),
        stamps in prop::collection::vec(NOW - 2 * DAY..NOW + 2 * DAY, 0..20),
        cap in prop::option::of(1_u64..DAY as u64),
    ) {
        let stream = Stream { window_cap: cap, ..stream() };
        let planned = plan(&stream, &ask(old));
        let mark = advance_watermark(old, &newest(&stamps, NOW), &planned.window, planned.capped, NOW);
        prop_assert!(mark >= old);
        prop_assert!(mark <= Some(NOW));
        prop_assert!(mark <= old.max(Some(planned.window.until)));
    }
}
