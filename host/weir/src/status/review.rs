//! What waits for review, counted: units that are parked aside, which the census counts.

use serde::{Deserialize, Serialize};

use super::Named;
use crate::host::Host;
use crate::store::{ReviewEntry, ReviewKind, StoreError};

/// Entries that are named for one reason.
const NAMED: usize = 3;

/// What waits for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewStatus {
    /// Why.
    pub kind: ReviewKind,
    /// How much.
    pub count: u64,
    /// Some of it.
    pub some: Vec<Named>,
}

/// Looks through what waits.
pub(super) fn of(host: &Host) -> Result<Vec<ReviewStatus>, StoreError> {
    let count = host.store.review_count()?;
    if count.faults + count.records == 0 {
        return Ok(Vec::new());
    }
    let entries = host.store.reviews(None, usize::MAX)?;
    let here = |entry: &ReviewEntry| {
        !entry.dropped && host.config.connections.contains_key(&entry.key.connection)
    };
    let counted = |kind| {
        let mut of_kind = entries
            .iter()
            .filter(|entry| entry.id.kind == kind && here(entry));
        let some: Vec<Named> = of_kind
            .by_ref()
            .take(NAMED)
            .map(|entry| Named {
                unit: entry.key.to_string(),
                what: format!("{}: {}", entry.id, entry.message),
            })
            .collect();
        let count = (some.len() + of_kind.count()) as u64;
        (count > 0).then_some(ReviewStatus { kind, count, some })
    };
    Ok(ReviewKind::ALL.into_iter().filter_map(counted).collect())
}
