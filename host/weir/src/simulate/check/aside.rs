//! The records that a host has set aside for a person. Such a version is not delivered, and not lost: `weir review` lists it,
//! and this is the list. Beside it: the versions that wait within a walk for its end.

use std::collections::HashMap;

use weir_rules::unit::UnitState;
use weir_tests::world::Version;

use super::held::identify;
use super::truth::Truth;
use crate::store::{ReviewChange, ReviewId};

/// Versions that wait for a person.
#[derive(Default)]
pub(super) struct Aside {
    versions: HashMap<ReviewId, (u64, u32)>,
    /// Held by a stored walk.
    held: Vec<(u64, u32)>,
}

impl Aside {
    pub(super) fn note(&mut self, truth: &Truth, changes: &[ReviewChange]) {
        for (id, entry) in changes {
            let record = entry.as_ref().and_then(|entry| entry.record.as_ref());
            let version = record.and_then(|record| {
                identify(
                    truth,
                    record.id.as_deref().unwrap_or_default(),
                    &record.text,
                )
                .ok()
            });
            match version {
                Some(version) => {
                    self.versions
                        .insert(*id, (version.record, version.revision));
                }
                None => {
                    self.versions.remove(id);
                }
            }
        }
    }

    /// What the unit's stored walks hold. A walk whose position was `lost` is gone with what it held: versions that were
    /// delivered before another one followed them. The walk that is made instead shows what is true now.
    pub(super) fn walks_hold(&mut self, truth: &Truth, state: &UnitState, lost: bool) {
        let walks = state.walk.iter().chain(state.side.walk.as_deref());
        let held = walks.flat_map(|walk| walk.doubles.held());
        if !lost {
            self.held.clear();
        }
        self.held.extend(held.filter_map(|held| {
            let version = identify(truth, &held.id, &held.data).ok()?;
            Some((version.record, version.revision))
        }));
    }

    /// A walk that is not over holds this version.
    pub(super) fn holds(&self, version: &Version) -> bool {
        self.held.contains(&(version.record, version.revision))
    }

    /// This very version waits; a later one of the same record is to be delivered.
    pub(super) fn has(&self, version: &Version) -> bool {
        let mut waiting = self.versions.values();
        waiting.any(|waits| *waits == (version.record, version.revision))
    }
}
