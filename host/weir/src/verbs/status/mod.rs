//! `weir status`: how everything is, in numbers and with what needs a person first.
//!
//! Of the units themselves it lists those that need a look, the worst first, and fills up with others to [`LISTED`].

mod show;
mod sinks;
mod unit;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Caller, Failure};
use crate::control::Reply;
use crate::host::Host;
use crate::status::{Rank, Snapshot};

pub(super) use show::render;
use unit::UnitStatus;

/// Units that are listed unless all are asked for.
const LISTED: usize = 20;

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Status {
    #[serde(flatten)]
    view: Snapshot,
    units: Vec<UnitStatus>,
}

pub(super) fn answer(host: &Arc<Host>, all: bool, caller: &Caller) -> Result<Reply, Failure> {
    let limit = if all { usize::MAX } else { LISTED };
    // Sorted by rank, then by number: the last one is the first to be left out.
    let mut listed: BTreeMap<(Rank, u64), UnitStatus> = BTreeMap::new();
    let view = Snapshot::of(
        host,
        caller.running,
        &mut |unit, rank, oddities, polling| {
            let place = (rank, unit.id.0);
            if listed.len() < limit
                || listed
                    .last_key_value()
                    .is_some_and(|(last, _)| place < *last)
            {
                listed.insert(place, UnitStatus::of(unit, oddities, polling));
                if listed.len() > limit {
                    listed.pop_last();
                }
            }
        },
    )?;
    let exit = if view.needs.is_empty() { 0 } else { 3 };
    let status = Status {
        view,
        units: listed.into_values().collect(),
    };
    Ok(Reply::with_exit(exit, status))
}
