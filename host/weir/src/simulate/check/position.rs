//! What a unit's stored state says of its position, and what one state claims to have read that the one before it did
//! not.

use weir_rules::coverage::{Coverage, GapSource};
use weir_rules::model::{Timestamp, Window};
use weir_rules::unit::UnitState;

/// From a moment to before another one, in the vendor's time.
pub(super) type Span = (Timestamp, Timestamp);

/// What was last known of the unit's stored state.
#[derive(Default)]
pub(super) struct Known {
    pub(super) watermark: Option<Timestamp>,
    pub(super) cursor: Option<String>,
    /// Where the next slice of a catch-up begins.
    pub(super) resume: Option<Timestamp>,
    covered: Vec<Span>,
    /// Where something is said to be missing.
    gaps: Vec<Span>,
    /// Those of them that a side walk can fill.
    pub(super) fillable: Vec<Span>,
    /// And those that nobody can.
    lost: Vec<Span>,
    /// Up to where second looks have read.
    pub(super) settled: Option<Timestamp>,
    pub(super) parked: bool,
}

impl Known {
    pub(super) fn of(state: &UnitState) -> Known {
        // What somebody asks for is no hole.
        let holes = || {
            let gaps = state.gaps.iter();
            gaps.filter(|gap| gap.source != GapSource::Asked)
        };
        let fillable = holes().filter(|gap| {
            gap.lost.is_none() && !matches!(gap.source, GapSource::NoOverlap | GapSource::NoStart)
        });
        Known {
            watermark: state.watermark,
            cursor: state.cursor.clone(),
            resume: state.resume,
            covered: spans(&state.coverage),
            gaps: holes()
                .map(|gap| (gap.extent.since, gap.extent.until))
                .collect(),
            fillable: fillable
                .map(|gap| (gap.extent.since, gap.extent.until))
                .collect(),
            lost: holes()
                .filter(|gap| gap.lost.is_some() || gap.source == GapSource::NoOverlap)
                .map(|gap| (gap.extent.since, gap.extent.until))
                .collect(),
            settled: state.side.settled,
            parked: state.parked.is_some(),
        }
    }

    /// Something is said to be missing there.
    pub(super) fn is_in_gap(&self, stamp: Timestamp) -> bool {
        holds(&self.gaps, stamp)
    }

    /// What is missing there is said to be missing for good.
    pub(super) fn is_lost(&self, stamp: Timestamp) -> bool {
        holds(&self.lost, stamp)
    }

    /// The state claims that what is stamped so has been read, and the one before it did not.
    pub(super) fn claims(&self, before: &Known, stamp: Timestamp) -> bool {
        (holds(&self.covered, stamp) && !holds(&before.covered, stamp))
            || (before.is_in_gap(stamp) && !self.is_in_gap(stamp))
    }

    /// What has moved since then that moves at the end of a walk alone.
    pub(super) fn moved(&self, before: &Known) -> Option<&'static str> {
        if self.watermark != before.watermark {
            Some("watermark")
        } else if self.cursor != before.cursor && self.cursor.is_some() {
            Some("cursor")
        } else if self.covered != before.covered {
            Some("coverage")
        } else if self.resume != before.resume {
            Some("next slice")
        } else if self.settled != before.settled {
            Some("settled part")
        } else if !beyond(&before.gaps, &self.gaps).is_empty() {
            Some("list of gaps")
        } else {
            None
        }
    }

    /// What is claimed to have been read since then, beyond the window that was walked.
    pub(super) fn claimed_beyond(&self, before: &Known, window: Window) -> Option<Span> {
        let walked = [(window.since.unwrap_or(Timestamp::MIN), window.until)];
        let read = beyond(&self.covered, &before.covered);
        let closed = beyond(&before.gaps, &self.gaps);
        let claimed: Vec<Span> = read.into_iter().chain(closed).collect();
        beyond(&claimed, &walked).first().copied()
    }

    /// Where the next main window begins at the latest.
    pub(super) fn next_begins(&self, overlap: i64) -> Timestamp {
        self.resume
            .or(self.watermark.map(|mark| mark.saturating_sub(overlap)))
            .unwrap_or(Timestamp::MIN)
    }
}

fn spans(coverage: &Coverage) -> Vec<Span> {
    let extents = coverage.extents().iter();
    extents.map(|extent| (extent.since, extent.until)).collect()
}

fn holds(spans: &[Span], stamp: Timestamp) -> bool {
    spans
        .iter()
        .any(|(since, until)| (*since..*until).contains(&stamp))
}

/// The parts of these that lie in none of the others.
fn beyond(spans: &[Span], others: &[Span]) -> Vec<Span> {
    let mut others: Vec<Span> = others.to_vec();
    others.sort_unstable();
    let mut rest = Vec::new();
    for (since, until) in spans {
        let mut from = *since;
        for (begin, end) in &others {
            if *end <= from || *begin >= *until {
                continue;
            }
            if *begin > from {
                rest.push((from, *begin));
            }
            from = *end;
        }
        if from < *until {
            rest.push((from, *until));
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beyond_is_what_is_left() {
        assert_eq!(beyond(&[(0, 10)], &[]), [(0, 10)]);
        assert_eq!(
            beyond(&[(0, 10)], &[(4, 6), (2, 3)]),
            [(0, 2), (3, 4), (6, 10)]
        );
        assert_eq!(beyond(&[(0, 10)], &[(-5, 20)]), []);
        assert_eq!(beyond(&[(0, 4), (6, 9)], &[(2, 7)]), [(0, 2), (7, 9)]);
        assert_eq!(beyond(&[(0, 4)], &[(4, 9)]), [(0, 4)]);
    }

    #[test]
    fn a_gap_that_is_gone_claims_what_lay_in_it() {
        let known = |covered: &[Span], gaps: &[Span]| Known {
            covered: covered.to_vec(),
            gaps: gaps.to_vec(),
            ..Known::default()
        };
        let before = known(&[(0, 20)], &[(5, 10)]);
        let after = known(&[(0, 30)], &[(8, 10)]);
        let claimed: Vec<i64> = (-5..35).filter(|at| after.claims(&before, *at)).collect();
        assert_eq!(claimed, (5..8).chain(20..30).collect::<Vec<_>>());
        let window = |since, until| Window {
            since: Some(since),
            until,
        };
        assert_eq!(after.claimed_beyond(&before, window(5, 30)), None);
        assert_eq!(after.claimed_beyond(&before, window(6, 30)), Some((5, 6)));
        assert_eq!(after.moved(&before), Some("coverage"));
        assert_eq!(
            known(&[(0, 20)], &[(5, 9)]).moved(&before),
            Some("list of gaps")
        );
        assert_eq!(known(&[(0, 20)], &[(5, 12)]).moved(&before), None);
    }
}
