use proptest::prelude::*;

use super::*;
use crate::model::Order;

fn extent(since: i64, until: i64) -> Extent {
    Extent { since, until }
}

fn gap(since: i64, until: i64, source: GapSource) -> Gap {
    Gap::new(extent(since, until), source, 1)
}

fn stream(cursor: CursorKind) -> Stream {
    Stream {
        name: "orders".into(),
        cursor,
        order: Order::Unordered,
        page_size: 100,
        result_cap: None,
        window_cap: None,
        retention: None,
        granularity: 1,
        settle: None,
        volatile: Vec::new(),
        required: Vec::new(),
        backfill: true,
    }
}

#[test]
fn a_gap_is_closed_by_what_is_walked_and_by_no_more() {
    let mut gaps = Gaps::default();
    gaps.note(gap(0, 100, GapSource::Truncated));
    assert!(gaps.close(extent(40, 60), By::Main).is_empty());
    let left: Vec<Extent> = gaps.iter().map(|gap| gap.extent).collect();
    assert_eq!(left, [extent(0, 40), extent(60, 100)]);
    assert_eq!(gaps.close(extent(0, 50), By::Backfill).len(), 1);
    assert_eq!(gaps.len(), 1);
    assert_eq!(gaps.close(extent(50, 100), By::Main).len(), 1);
    assert!(gaps.is_empty());
}

#[test]
fn what_was_asked_for_is_read_again_and_what_fell_off_a_feed_stays() {
    let mut gaps = Gaps::default();
    gaps.note(gap(0, 100, GapSource::Asked));
    gaps.note(gap(0, 100, GapSource::NoOverlap));
    assert!(gaps.close(extent(0, 100), By::Main).is_empty());
    assert_eq!(gaps.close(extent(0, 100), By::Backfill).len(), 1);
    assert_eq!(gaps[0].source, GapSource::NoOverlap);
    assert!(matches!(
        outlook(&gaps[0], &stream(CursorKind::Snapshot), None, 200),
        Outlook::Lost(_)
    ));
    assert_eq!(gaps.pending().count(), 1);
    assert_eq!(gaps.accept(|gap| gap.source == GapSource::NoOverlap), 1);
    assert_eq!((gaps.pending().count(), gaps.len()), (0, 1));
}

#[test]
fn what_can_not_be_filled_stays_listed_with_its_reason_and_is_not_found_again() {
    let mut gaps = Gaps::default();
    gaps.note(gap(0, 100, GapSource::Truncated));
    gaps.give_up(extent(40, 50), "no way");
    assert_eq!(gaps.len(), 3);
    assert_eq!(gaps.open_within(extent(0, 100)), 90);
    gaps.note(gap(42, 48, GapSource::Truncated));
    assert_eq!(gaps.len(), 3, "it is a part of what is listed");
    gaps.close(extent(0, 40), By::Backfill);
    gaps.close(extent(50, 100), By::Backfill);
    assert_eq!(gaps[0].lost.as_deref(), Some("no way"));
    gaps.close(extent(0, 100), By::Main);
    assert!(
        gaps.is_empty(),
        "a walk that brings it all the same closes it"
    );
}

#[test]
fn what_the_vendor_keeps_no_longer_is_lost() {
    let day = 86_400_000;
    let kept = Stream {
        retention: Some(90 * day as u64),
        ..stream(CursorKind::Timestamp)
    };
    let mut gaps = Gaps::default();
    gaps.note(gap(0, 20 * day, GapSource::Untouched));
    gaps.expire(&kept, 100 * day);
    let lost: Vec<_> = gaps.iter().filter(|gap| gap.lost.is_some()).collect();
    assert_eq!((lost.len(), lost[0].extent), (1, extent(0, 10 * day)));
    assert!(
        lost[0]
            .lost
            .as_deref()
            .unwrap_or_default()
            .contains("90 days")
    );
    gaps.expire(&kept, 120 * day);
    assert_eq!(gaps.len(), 1, "both parts are lost, for one reason");
    assert_eq!(gaps[0].extent, extent(0, 20 * day));
}

#[test]
fn what_a_gap_means_depends_on_the_stream() {
    let truncated = gap(10, 20, GapSource::Untouched);
    let of = |cursor, start| outlook(&truncated, &stream(cursor), start, 100);
    assert_eq!(of(CursorKind::Timestamp, None), Outlook::Fillable);
    assert_eq!(of(CursorKind::Timestamp, Some(20)), Outlook::Unwanted);
    assert_eq!(of(CursorKind::Snapshot, None), Outlook::NextPoll);
    assert_eq!(of(CursorKind::Opaque, None), Outlook::NeedsResync);
    let no_start = gap(Timestamp::MIN, 20, GapSource::NoStart);
    assert_eq!(
        outlook(&no_start, &stream(CursorKind::Timestamp), None, 100),
        Outlook::NeedsStart
    );
}

#[test]
fn older_rows_can_be_read() {
    let old = r#"[{"extent":{"since":1,"until":2},"source":"truncated"}]"#;
    let gaps: Gaps = serde_json::from_str(old).unwrap();
    assert_eq!(
        gaps[0],
        Gap {
            found: 0,
            ..gap(1, 2, GapSource::Truncated)
        }
    );
}

proptest! {
    #[test]
    fn nothing_leaves_the_list_without_having_been_walked(
        found in prop::collection::vec((0_i64..2_000, 1_i64..6), 0..300),
        walked in prop::collection::vec((0_i64..2_000, 1_i64..300), 0..8),
    ) {
        let mut gaps = Gaps::default();
        for (since, width) in &found {
            gaps.note(gap(*since, since + width, GapSource::Truncated));
        }
        prop_assert!(gaps.len() <= MOST);
        for (since, width) in &walked {
            gaps.close(extent(*since, since + width), By::Backfill);
        }
        let inside = |list: &[(i64, i64)], at: i64| list.iter().any(|(since, width)| *since <= at && at < since + width);
        for at in 0..2_400 {
            let listed = gaps.iter().any(|gap| gap.extent.since <= at && at < gap.extent.until);
            if inside(&found, at) && !inside(&walked, at) {
                prop_assert!(listed, "{at} was dropped");
            }
            if inside(&walked, at) {
                prop_assert!(!listed, "{at} was walked");
            }
        }
    }
}
