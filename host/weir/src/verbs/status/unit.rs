//! One unit, as `weir status` shows it.

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Timestamp};

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
            gaps: state.gaps.pending().count() as u64,
        }
    }
}
