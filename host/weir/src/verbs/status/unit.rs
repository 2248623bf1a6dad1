//! One unit, as `weir status` shows it.

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Timestamp};

use crate::status::{Oddities, late_words};
use crate::store::UnitRow;

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
    /// What is promised of its interval and not kept, and why.
    pub(super) unkept: Option<String>,
    /// When it is due next; none: not until somebody asks.
    pub(super) due: Option<Timestamp>,
    /// A vendor wants a pause until then.
    pub(super) waiting_until: Option<Timestamp>,
    pub(super) parked: Option<ParkedStatus>,
    /// The interval that the last poll chose, in ms, before any floor.
    pub(super) interval: u64,
    /// The newest stamp that has been read whole, in the vendor's time.
    pub(super) watermark: Option<Timestamp>,
    /// Open gaps; what can't be read while every try fails is one.
    pub(super) gaps: u64,
    /// Since when nothing has been read whole, by the vendor's clock, because every try fails.
    #[serde(default)]
    pub(super) behind: Option<Timestamp>,
    /// What is odd about it without being a fault of a poll.
    #[serde(default)]
    pub(super) odd: Vec<String>,
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
    pub(super) fn of(unit: UnitRow, oddities: Oddities, polling: bool) -> UnitStatus {
        let UnitRow {
            id: _,
            key,
            state,
            due,
        } = unit;
        let (outcome, ended, said, unkept) = match state.last {
            Some(last) => (
                Some(last.outcome),
                Some(last.ended),
                last.message,
                last.unkept,
            ),
            None => (None, None, None, None),
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
            unkept,
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
            gaps: state.gaps.pending().chain(&oddities.behind).count() as u64,
            behind: oddities.behind.as_ref().map(|gap| gap.extent.since),
            odd: odd(oddities),
        }
    }
}

fn odd(oddities: Oddities) -> Vec<String> {
    let late = oddities.late.as_ref().map(late_words);
    let disordered = oddities
        .disordered
        .then(|| "listed in another order than its connector says".to_owned());
    oddities
        .still
        .into_iter()
        .chain(late)
        .chain(disordered)
        .collect()
}
