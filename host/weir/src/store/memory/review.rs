//! What waits for a person, in memory.

use std::collections::BTreeMap;

use crate::store::{REVIEWS, ReviewChange, ReviewCount, ReviewEntry, ReviewId, ReviewKind, UnitId};

/// All entries.
#[derive(Default)]
pub(super) struct Review {
    entries: BTreeMap<ReviewId, ReviewEntry>,
}

impl Review {
    pub(super) fn set(&mut self, changes: Vec<ReviewChange>) {
        for (id, entry) in changes {
            let Some(entry) = entry else {
                self.entries.remove(&id);
                continue;
            };
            let known = self.entries.insert(id, *entry).is_some();
            if !known && self.entries.len() as u64 > REVIEWS {
                self.remove_oldest(id);
            }
        }
    }

    /// Makes room by the oldest entry that is no hole in the data.
    fn remove_oldest(&mut self, new: ReviewId) {
        let oldest = self
            .entries
            .values()
            .filter(|entry| entry.id.kind != ReviewKind::Record || entry.dropped)
            .filter(|entry| entry.id != new)
            .min_by_key(|entry| entry.last)
            .map(|entry| entry.id);
        if let Some(oldest) = oldest {
            self.entries.remove(&oldest);
        }
    }

    pub(super) fn of(&self, unit: Option<UnitId>, limit: usize) -> Vec<ReviewEntry> {
        if self.entries.is_empty() {
            return Vec::new();
        }
        self.entries
            .values()
            .filter(|entry| unit.is_none_or(|unit| entry.id.unit == unit))
            .take(limit)
            .cloned()
            .collect()
    }

    pub(super) fn get(&self, id: ReviewId) -> Option<ReviewEntry> {
        self.entries.get(&id).cloned()
    }

    pub(super) fn count(&self) -> ReviewCount {
        let mut count = ReviewCount::default();
        for entry in self.entries.values() {
            count.all += 1;
            match entry.id.kind {
                _ if entry.dropped => {}
                ReviewKind::Record => count.records += 1,
                _ => count.faults += 1,
            }
        }
        count
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut ReviewEntry> {
        self.entries.values_mut()
    }
}
