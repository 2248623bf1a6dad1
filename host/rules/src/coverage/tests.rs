use proptest::prelude::*;

use super::*;

fn extent(since: i64, until: i64) -> Extent {
    Extent { since, until }
}

fn coverage(extents: &[(i64, i64)]) -> Coverage {
    Coverage::from(extents.to_vec())
}

fn only(extent: Option<Extent>) -> Coverage {
    let mut coverage = Coverage::default();
    extent.into_iter().for_each(|extent| coverage.add(extent));
    coverage
}

#[test]
fn touching_extents_become_one() {
    let got = coverage(&[(0, 10), (20, 30), (10, 20), (40, 50), (45, 60), (7, 7)]);
    assert_eq!(got.extents(), [extent(0, 30), extent(40, 60)]);
    assert!(got.covers(extent(5, 30)) && !got.covers(extent(5, 31)));
}

#[test]
fn moving_the_start_back_opens_a_hole_and_keeps_the_rest() {
    let got = coverage(&[(100, 200)]);
    assert_eq!(got.holes(100, 0), []);
    assert_eq!(got.holes(50, 0), [extent(50, 100)]);
    assert_eq!(got.holes(150, 0), []);
    assert_eq!(got.missing(50, 250), [extent(50, 100), extent(200, 250)]);
}

#[test]
fn small_cracks_are_no_gap() {
    let got = coverage(&[(0, 100), (105, 200), (300, 400)]);
    assert_eq!(got.holes(0, 10), [extent(200, 300)]);
    assert_eq!(Coverage::default().holes(0, 0), []);
}

#[test]
fn a_first_sync_covers_from_the_beginning() {
    let mut got = Coverage::default();
    got.add(Extent::from(Window {
        since: None,
        until: 500,
    }));
    assert_eq!(got.missing(Timestamp::MIN, 500), []);
    let text = serde_json::to_string(&got).unwrap();
    assert_eq!(text, "[[-9223372036854775808,500]]");
    assert_eq!(serde_json::from_str::<Coverage>(&text).unwrap(), got);
}

/// W1 and W3 go well, W2 fails on all tries, and the host starts again.
#[test]
fn case_169_a_window_that_failed_stays_open() {
    let (w1, w2, w3) = (extent(0, 10), extent(10, 20), extent(20, 30));
    let mut before = Coverage::default();
    before.add(w1);
    before.add(w3);
    let stored = serde_json::to_string(&before).unwrap();
    let mut after: Coverage = serde_json::from_str(&stored).unwrap();
    assert_eq!(after.holes(0, 0), [w2]);
    after.add(w2);
    assert_eq!(after.holes(0, 0), []);
    assert_eq!(after.extents(), [extent(0, 30)]);
}

#[test]
fn a_truncated_walk_vouches_for_what_it_passed() {
    let window = Window {
        since: Some(0),
        until: 100,
    };
    let rising = walked_part(Order::Ascending, window, Some(3), Some(60));
    assert_eq!(rising, Some(extent(0, 60)));
    assert_eq!(left_over(window, &only(rising)), [extent(60, 100)]);
    let falling = walked_part(Order::Descending, window, Some(40), Some(99));
    assert_eq!(falling, Some(extent(41, 100)));
    assert_eq!(left_over(window, &only(falling)), [extent(0, 41)]);
    assert_eq!(
        walked_part(Order::Unordered, window, Some(3), Some(60)),
        None
    );
    assert_eq!(walked_part(Order::Ascending, window, None, None), None);
    assert_eq!(left_over(window, &only(None)), [extent(0, 100)]);
}

#[test]
fn a_window_is_cut_at_a_moment_that_the_vendor_can_tell() {
    assert_eq!(
        split(extent(0, 10_000), 1_000),
        Some((extent(0, 5_000), extent(5_000, 10_000)))
    );
    assert_eq!(
        split(extent(0, 3_000), 2_000),
        Some((extent(0, 2_000), extent(2_000, 3_000)))
    );
    assert_eq!(split(extent(0, 1_000), 1_000), None);
    assert_eq!(split(extent(5, 6), 1), None);
    assert_eq!(split(extent(Timestamp::MIN, 0), 1), None);
}

/// Ids 1 to 300, then 450 to 749, one a minute.
#[test]
fn case_073_two_answers_without_a_common_record_are_a_gap() {
    let minute = 60_000;
    let second = Feed {
        records: 300,
        known: 0,
        newest_before: Some(300 * minute),
        oldest: Some(450 * minute),
    };
    let gap = fell_off(&second).unwrap();
    assert!((301..450).all(|id| {
        let at = id * minute;
        gap.since <= at && at < gap.until
    }));
    assert!(gap.since > 300 * minute && gap.until <= 450 * minute);
    assert_eq!(fell_off(&Feed { known: 1, ..second }), None);
    let first = Feed {
        newest_before: None,
        ..second
    };
    assert_eq!(fell_off(&first), None);
    let quiet = Feed {
        records: 0,
        oldest: None,
        ..second
    };
    assert_eq!(fell_off(&quiet), None);
}

proptest! {
    #[test]
    fn coverage_is_what_was_added(
        pairs in prop::collection::vec((0_i64..60, 0_i64..20), 0..20),
        start in 0_i64..80,
        length in 0_i64..80,
    ) {
        let pairs: Vec<_> = pairs.iter().map(|(since, width)| (*since, since + width)).collect();
        let got = coverage(&pairs);
        let inside = |at: i64| pairs.iter().any(|(since, until)| *since <= at && at < *until);
        let has = |extents: &[Extent], at: i64| extents.iter().any(|e| e.since <= at && at < e.until);
        let missing = got.missing(start, start + length);
        for at in 0..200 {
            prop_assert_eq!(has(got.extents(), at), inside(at));
            let asked = start <= at && at < start + length;
            prop_assert_eq!(has(&missing, at), asked && !inside(at));
        }
        // Sorted, not empty, not touching.
        for list in [got.extents(), &missing[..]] {
            prop_assert!(list.iter().all(|e| e.since < e.until));
            prop_assert!(list.windows(2).all(|pair| pair[0].until < pair[1].since));
        }
    }

    #[test]
    fn the_order_of_adding_does_not_matter(
        mut pairs in prop::collection::vec((0_i64..60, 0_i64..20), 0..20),
    ) {
        let forward = coverage(&pairs);
        pairs.reverse();
        let backward = coverage(&pairs);
        prop_assert_eq!(&forward, &backward);
        let mut merged = forward.clone();
        merged.merge(&backward);
        prop_assert_eq!(merged, forward);
    }

    #[test]
    fn the_halves_touch_and_are_both_smaller(
        since in -1_000_000_i64..1_000_000,
        width in 1_i64..1_000_000,
        granularity in 1_u64..100_000,
    ) {
        let whole = extent(since, since + width);
        if let Some((left, right)) = split(whole, granularity) {
            prop_assert_eq!((left.since, right.until), (whole.since, whole.until));
            prop_assert_eq!(left.until, right.since);
            prop_assert!(left.width() > 0 && right.width() > 0);
            prop_assert_eq!(left.until.rem_euclid(granularity as i64), 0);
        }
    }
}
