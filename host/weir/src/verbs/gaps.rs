//! `weir gaps`: the holes in the data, until they are closed.

use serde::{Deserialize, Serialize};
use weir_rules::coverage::{Extent, Gap, GapSource};
use weir_rules::model::Timestamp;
use weir_rules::unit::UnitState;

use super::text::{moment, table};
use super::{Failure, Selection};
use crate::control::Reply;
use crate::host::Host;

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Gaps {
    gaps: Vec<UnitGap>,
}

/// One hole: `since <= updated_at < until`, by the vendor's clock.
#[derive(Debug, Serialize, Deserialize)]
struct UnitGap {
    unit: String,
    /// None: from the beginning.
    since: Option<Timestamp>,
    until: Timestamp,
    source: GapSource,
}

/// Done, and 3 when there is a hole: somebody should know.
pub(super) fn answer(host: &Host, unit: Option<&str>) -> Result<Reply, Failure> {
    let mut gaps = Vec::new();
    for row in Selection::parse(unit).units(host)? {
        let unit = row.key.to_string();
        gaps.extend(of(&row.state).into_iter().map(|gap| UnitGap {
            unit: unit.clone(),
            since: (gap.extent.since > Timestamp::MIN).then_some(gap.extent.since),
            until: gap.extent.until,
            source: gap.source,
        }));
    }
    let exit = if gaps.is_empty() { 0 } else { 3 };
    Ok(Reply::with_exit(exit, Gaps { gaps }))
}

/// What is noted as missing, and what lies between neighbouring windows that do not touch.
fn of(state: &UnitState) -> Vec<Gap> {
    let first = state.coverage.extents().first();
    let between = first.map_or_else(Vec::new, |first: &Extent| {
        state.coverage.holes(first.since, 0)
    });
    let untouched = between.into_iter().map(|extent| Gap {
        extent,
        source: GapSource::Untouched,
    });
    let mut gaps = state.gaps.clone();
    for gap in untouched {
        if !gaps.iter().any(|known| {
            known.extent.since <= gap.extent.since && gap.extent.until <= known.extent.until
        }) {
            gaps.push(gap);
        }
    }
    gaps.sort_by_key(|gap| gap.extent);
    gaps
}

pub(super) fn render(answer: &Gaps) -> String {
    if answer.gaps.is_empty() {
        return "No gap is known.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = answer
        .gaps
        .iter()
        .map(|gap| {
            vec![
                gap.unit.clone(),
                gap.since.map_or_else(|| "the beginning".to_owned(), moment),
                moment(gap.until),
                match gap.source {
                    GapSource::Untouched => "two polls' windows do not touch",
                    GapSource::Truncated => "the vendor had more and would not give it",
                    GapSource::GivenUp => "every try failed",
                    GapSource::NoStart => {
                        "the vendor answers narrow windows alone: say where the stream begins with streams.NAME.start"
                    }
                    GapSource::NoOverlap => "records fell off the feed between two polls",
                }
                .to_owned(),
            ]
        })
        .collect();
    table(&["unit", "since", "until", "why"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(since: Timestamp, until: Timestamp) -> Extent {
        Extent { since, until }
    }

    #[test]
    fn what_was_not_read_is_listed_once() {
        let mut state = UnitState::default();
        state.coverage.add(extent(0, 10));
        state.coverage.add(extent(20, 30));
        assert_eq!(of(&state).len(), 1);
        assert_eq!(of(&state)[0].extent, extent(10, 20));
        state.gaps.push(Gap {
            extent: extent(5, 25),
            source: GapSource::Truncated,
        });
        assert_eq!(of(&state).len(), 1, "the noted gap holds the other");
        state.coverage.add(extent(10, 20));
        state.gaps.clear();
        assert!(of(&state).is_empty());
    }
}
