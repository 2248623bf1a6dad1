//! `weir gaps`: the holes in the data, until they are closed.

use serde::{Deserialize, Serialize};
use weir_rules::coverage::{Extent, Gap, GapSource};
use weir_rules::model::Timestamp;
use weir_rules::unit::UnitState;

use super::text::{count, moment, table};
use super::{Failure, Selection};
use crate::control::Reply;
use crate::host::Host;
use crate::store::{ReviewEntry, ReviewKind};

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Gaps {
    gaps: Vec<UnitGap>,
    /// Records that could not be taken and wait for review: single holes.
    #[serde(default)]
    set_aside: u64,
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
    let selection = Selection::parse(unit);
    let waits = |entry: &ReviewEntry| {
        entry.id.kind == ReviewKind::Record && !entry.dropped && selection.holds(&entry.key)
    };
    let entries = host.store.reviews(None, usize::MAX)?;
    let set_aside = entries.iter().filter(|entry| waits(entry)).count() as u64;
    let exit = if gaps.is_empty() && set_aside == 0 {
        0
    } else {
        3
    };
    Ok(Reply::with_exit(exit, Gaps { gaps, set_aside }))
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
    let set_aside = match answer.set_aside {
        0 => String::new(),
        records => format!(
            "{} could not be taken and wait: `weir review` has them.\n",
            count(records, "record")
        ),
    };
    if answer.gaps.is_empty() {
        return if set_aside.is_empty() {
            "No gap is known.\n".to_owned()
        } else {
            set_aside
        };
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
    table(&["unit", "since", "until", "why"], &rows) + &set_aside
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
