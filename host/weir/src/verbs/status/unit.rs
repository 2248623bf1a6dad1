//! One unit, as `weir status` shows it.

use serde::{Deserialize, Serialize};
use weir_rules::miad::Miad;
use weir_rules::model::{Class, Timestamp};
use weir_rules::unit::UnitState;

use crate::store::UnitRow;

/// How much a unit needs a look: the most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Not polled until a person has looked at it.
    Parked,
    /// Records may be missing.
    Gap,
    /// Its last poll did not bring everything.
    Failing,
    /// Its vendor wants a pause.
    Waiting,
    /// It has never been polled to the end.
    New,
    /// Nothing to see.
    Fine,
}

impl Rank {
    pub(super) fn of(state: &UnitState) -> Rank {
        let last = state.last.as_ref().map(|last| last.outcome.as_str());
        match last {
            _ if state.parked.is_some() => Rank::Parked,
            _ if !state.gaps.is_empty() => Rank::Gap,
            Some("failed" | "incomplete" | "truncated" | "needs-sign-in") => Rank::Failing,
            _ if state.waiting.is_some() => Rank::Waiting,
            _ if !state.synced => Rank::New,
            _ => Rank::Fine,
        }
    }
}

/// A unit.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UnitStatus {
    pub(super) unit: String,
    /// A poll of it is in flight.
    pub(super) polling: bool,
    /// How the last poll ended; none before the first.
    pub(super) outcome: Option<String>,
    /// When it ended.
    pub(super) ended: Option<Timestamp>,
    pub(super) message: Option<String>,
    /// When it is due next; none: not until somebody asks.
    pub(super) due: Option<Timestamp>,
    /// A vendor wants a pause until then.
    pub(super) waiting_until: Option<Timestamp>,
    pub(super) parked: Option<ParkedStatus>,
    /// The interval that the last poll chose, in ms, before any floor.
    pub(super) interval: u64,
    /// The newest stamp that has been read whole, in the vendor's time.
    pub(super) watermark: Option<Timestamp>,
    pub(super) gaps: u64,
}

/// Why a unit is not polled.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ParkedStatus {
    pub(super) since: Timestamp,
    pub(super) class: Class,
    pub(super) code: String,
    pub(super) message: String,
}

impl UnitStatus {
    pub(super) fn of(unit: UnitRow, polling: bool) -> UnitStatus {
        let UnitRow {
            id: _,
            key,
            state,
            due,
        } = unit;
        let (outcome, ended, said) = match state.last {
            Some(last) => (Some(last.outcome), Some(last.ended), last.message),
            None => (None, None, None),
        };
        UnitStatus {
            unit: key.to_string(),
            polling,
            outcome,
            ended,
            message: state
                .waiting
                .as_ref()
                .map(|waiting| waiting.why.clone())
                .or(said),
            due,
            waiting_until: state.waiting.map(|waiting| waiting.until),
            parked: state.parked.map(|parked| ParkedStatus {
                since: parked.since,
                class: parked.class,
                code: parked.code,
                message: parked.message,
            }),
            interval: state.interval.current,
            watermark: state.watermark,
            gaps: state.gaps.len() as u64,
        }
    }
}

/// The vendor's slowness holds the unit at the longest interval that it can cause.
pub(super) fn is_pinned(state: &UnitState) -> bool {
    state.miad.interval >= Miad::default().max
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_rules::unit::{Last, Parked, Waiting};

    fn with(change: impl FnOnce(&mut UnitState)) -> UnitState {
        let mut state = UnitState {
            synced: true,
            ..UnitState::default()
        };
        change(&mut state);
        state
    }

    fn ended(outcome: &str) -> Option<Last> {
        Some(Last {
            ended: 5,
            outcome: outcome.to_owned(),
            message: None,
            unkept: None,
        })
    }

    #[test]
    fn what_needs_a_look_comes_first() {
        let parked = Parked {
            since: 1,
            class: Class::Unknown,
            code: "418".into(),
            message: "teapot".into(),
            given_up: false,
        };
        let ranks = [
            with(|s| s.parked = Some(parked)),
            with(|s| s.last = ended("failed")),
            with(|s| {
                s.waiting = Some(Waiting {
                    until: 9,
                    why: "429".into(),
                })
            }),
            with(|s| s.synced = false),
            with(|s| s.last = ended("ok")),
        ]
        .map(|state| Rank::of(&state));
        assert_eq!(
            ranks,
            [
                Rank::Parked,
                Rank::Failing,
                Rank::Waiting,
                Rank::New,
                Rank::Fine
            ]
        );
        assert!(ranks.is_sorted());
    }

    #[test]
    fn a_unit_is_pinned_at_the_ceiling_and_not_before() {
        let at = |interval| with(|s| s.miad.interval = interval);
        assert!(is_pinned(&at(Miad::default().max)));
        assert!(!is_pinned(&at(Miad::default().max - 1)));
    }
}
