//! Which parts of a stream have been walked, and what is missing between them.
//!
//! A source that answers 429 for six hours raises no error anywhere; its hole shows up here. Promises: what is
//! covered was walked to its end and committed; extents are half-open, in the vendor's time, and touching ones
//! become one; a hole stays listed until it is filled; moving the start date back opens a hole and throws nothing
//! away.

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Order, Timestamp, Window};

/// A part of a stream: `since <= updated_at < until`. "From the beginning" is the smallest timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Extent {
    /// First moment.
    pub since: Timestamp,
    /// First moment after it.
    pub until: Timestamp,
}

impl Extent {
    /// The length in ms.
    pub fn width(&self) -> Duration {
        self.until.saturating_sub(self.since).max(0).unsigned_abs()
    }
}

impl From<Window> for Extent {
    fn from(window: Window) -> Self {
        Extent {
            since: window.since.unwrap_or(Timestamp::MIN),
            until: window.until,
        }
    }
}

/// What has been walked of one unit: sorted extents that don't touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    from = "Vec<(Timestamp, Timestamp)>",
    into = "Vec<(Timestamp, Timestamp)>"
)]
pub struct Coverage {
    extents: Vec<Extent>,
}

impl From<Vec<(Timestamp, Timestamp)>> for Coverage {
    fn from(pairs: Vec<(Timestamp, Timestamp)>) -> Self {
        let mut coverage = Coverage::default();
        for (since, until) in pairs {
            coverage.add(Extent { since, until });
        }
        coverage
    }
}

impl From<Coverage> for Vec<(Timestamp, Timestamp)> {
    fn from(coverage: Coverage) -> Self {
        let extents = coverage.extents.into_iter();
        extents.map(|extent| (extent.since, extent.until)).collect()
    }
}

impl Coverage {
    /// What is covered, oldest first.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// An extent has been walked to its end and committed. Empty ones change nothing.
    pub fn add(&mut self, extent: Extent) {
        if extent.since >= extent.until {
            return;
        }
        let first = self
            .extents
            .partition_point(|have| have.until < extent.since);
        let last = self
            .extents
            .partition_point(|have| have.since <= extent.until);
        let merged = self
            .extents
            .get(first..last)
            .unwrap_or_default()
            .iter()
            .fold(extent, |merged, have| Extent {
                since: merged.since.min(have.since),
                until: merged.until.max(have.until),
            });
        self.extents.splice(first..last, [merged]);
    }

    /// Takes in all that another one covers.
    pub fn merge(&mut self, other: &Coverage) {
        for extent in &other.extents {
            self.add(*extent);
        }
    }

    /// The whole extent is covered.
    pub fn covers(&self, extent: Extent) -> bool {
        extent.since >= extent.until || self.missing(extent.since, extent.until).is_empty()
    }

    /// What is not covered between the unit's start and `until`, oldest first.
    pub fn missing(&self, start: Timestamp, until: Timestamp) -> Vec<Extent> {
        let mut missing = Vec::new();
        let mut from = start;
        for have in self.extents.iter().filter(|have| have.until > start) {
            if have.since >= until {
                break;
            }
            if have.since > from {
                missing.push(Extent {
                    since: from,
                    until: have.since,
                });
            }
            from = have.until;
        }
        if from < until {
            missing.push(Extent { since: from, until });
        }
        missing
    }

    /// The holes: what is missing before the newest covered moment and is wider than `threshold` ms. What is
    /// newer is not missing, it is due.
    pub fn holes(&self, start: Timestamp, threshold: Duration) -> Vec<Extent> {
        let Some(newest) = self.extents.last() else {
            return Vec::new();
        };
        let mut holes = self.missing(start, newest.until);
        holes.retain(|hole| hole.width() > threshold);
        holes
    }
}

/// How it is known that something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapSource {
    /// Neighbouring windows don't touch.
    Untouched,
    /// The vendor had more and would not give it.
    Truncated,
    /// Every try of the window failed.
    GivenUp,
    /// Two successive answers of a feed of the newest records have none in common.
    NoOverlap,
}

/// A part of a stream that may hold records which never arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Where.
    pub extent: Extent,
    /// How it is known.
    pub source: GapSource,
}

/// What a truncated walk may still vouch for: up to the newest stamp it saw, or down to the oldest, by the order of
/// the listing. The last stamp itself is left out, since others may share it. None where the order says nothing.
pub fn walked_part(
    order: Order,
    window: Window,
    oldest: Option<Timestamp>,
    newest: Option<Timestamp>,
) -> Option<Extent> {
    let whole = Extent::from(window);
    let part = match order {
        Order::Ascending => Extent {
            until: newest?.min(whole.until),
            ..whole
        },
        Order::Descending => Extent {
            since: oldest?.saturating_add(1).max(whole.since),
            ..whole
        },
        Order::Unordered => return None,
    };
    (part.since < part.until).then_some(part)
}

/// The rest of a window, given the part that was walked.
pub fn left_over(window: Window, walked: Option<Extent>) -> Vec<Extent> {
    let whole = Extent::from(window);
    let mut done = Coverage::default();
    if let Some(walked) = walked {
        done.add(walked);
    }
    done.missing(whole.since, whole.until)
}

/// Cuts an extent whose answer hit the vendor's result cap in two that touch, at a moment that the vendor can
/// tell apart. None: it can't be cut, so many records share one stamp that only a person can help.
pub fn split(extent: Extent, granularity: Duration) -> Option<(Extent, Extent)> {
    let grain = i64::try_from(granularity).unwrap_or(i64::MAX).max(1);
    if extent.since == Timestamp::MIN {
        return None;
    }
    let half = extent
        .since
        .saturating_add(i64::try_from(extent.width() / 2).ok()?);
    let down = half.saturating_sub(half.rem_euclid(grain));
    let middle = if down > extent.since {
        down
    } else {
        down.saturating_add(grain)
    };
    (extent.since < middle && middle < extent.until).then_some((
        Extent {
            until: middle,
            ..extent
        },
        Extent {
            since: middle,
            ..extent
        },
    ))
}

/// One answer of a feed that shows only the newest records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feed {
    /// Records in the answer, all its pages together.
    pub records: u64,
    /// Of them: known from earlier polls.
    pub known: u64,
    /// The newest stamp of the polls before; none on a first poll.
    pub newest_before: Option<Timestamp>,
    /// The oldest stamp of this answer.
    pub oldest: Option<Timestamp>,
}

/// The gap between two successive answers that share nothing: records came and went between the two polls. The unit
/// should poll at its minimum. Answers with stamps that overlap all the same, and quiet feeds, have none.
pub fn fell_off(feed: &Feed) -> Option<Gap> {
    let (before, oldest) = (feed.newest_before?, feed.oldest?);
    let extent = Extent {
        since: before.saturating_add(1),
        until: oldest,
    };
    (feed.records > 0 && feed.known == 0 && extent.since < extent.until).then_some(Gap {
        extent,
        source: GapSource::NoOverlap,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent(since: i64, until: i64) -> Extent {
        Extent { since, until }
    }

    fn coverage(extents: &[(i64, i64)]) -> Coverage {
        Coverage::from(extents.to_vec())
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
        assert_eq!(left_over(window, rising), [extent(60, 100)]);
        let falling = walked_part(Order::Descending, window, Some(40), Some(99));
        assert_eq!(falling, Some(extent(41, 100)));
        assert_eq!(left_over(window, falling), [extent(0, 41)]);
        assert_eq!(
            walked_part(Order::Unordered, window, Some(3), Some(60)),
            None
        );
        assert_eq!(walked_part(Order::Ascending, window, None, None), None);
        assert_eq!(left_over(window, None), [extent(0, 100)]);
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
        assert_eq!(gap.source, GapSource::NoOverlap);
        assert!((301..450).all(|id| {
            let at = id * minute;
            gap.extent.since <= at && at < gap.extent.until
        }));
        assert!(gap.extent.since > 300 * minute && gap.extent.until <= 450 * minute);
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
}
