//! Which records have letters: what must wait behind a held one, and what a delivery makes too old to go out.

use std::collections::HashMap;
use std::sync::Arc;

use crate::store::{LetterState, OutboxEntry, Sequence, UnitKey};

/// Letters of one sink by record. Letters whose bytes did not read have no record and are only counted.
#[derive(Default)]
pub(super) struct LetterIndex {
    records: HashMap<Record, Vec<(Sequence, LetterState)>>,
    dead: usize,
}

#[derive(PartialEq, Eq, Hash)]
struct Record {
    unit: Arc<UnitKey>,
    id: String,
}

impl Record {
    fn of(entry: &OutboxEntry) -> Self {
        Record {
            unit: entry.unit.clone(),
            id: entry.id.clone(),
        }
    }
}

impl LetterIndex {
    /// Dead letters, all of them.
    pub(super) fn dead(&self) -> usize {
        self.dead
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// A letter that has no record.
    pub(super) fn unreadable(&mut self) {
        self.dead += 1;
    }

    pub(super) fn set(&mut self, entry: &OutboxEntry, state: LetterState) {
        self.forget(entry);
        self.dead += usize::from(state == LetterState::Dead);
        let letters = self.records.entry(Record::of(entry)).or_default();
        letters.push((entry.sequence, state));
    }

    pub(super) fn forget(&mut self, entry: &OutboxEntry) {
        let record = Record::of(entry);
        let Some(letters) = self.records.get_mut(&record) else {
            return;
        };
        letters.retain(|(sequence, state)| {
            let stays = *sequence != entry.sequence;
            self.dead -= usize::from(!stays && *state == LetterState::Dead);
            stays
        });
        if letters.is_empty() {
            self.records.remove(&record);
        }
    }

    /// Is an earlier entry of the same record held?
    pub(super) fn blocks(&self, entry: &OutboxEntry) -> bool {
        self.earlier(entry)
            .any(|(_, state)| *state == LetterState::Held)
    }

    /// The dead letters of the same record that are older.
    pub(super) fn outdated(&self, entry: &OutboxEntry) -> Vec<Sequence> {
        self.earlier(entry)
            .filter(|(_, state)| *state == LetterState::Dead)
            .map(|(sequence, _)| *sequence)
            .collect()
    }

    fn earlier(&self, entry: &OutboxEntry) -> impl Iterator<Item = &(Sequence, LetterState)> {
        let letters = if self.records.is_empty() {
            None
        } else {
            self.records.get(&Record::of(entry))
        };
        letters
            .into_iter()
            .flatten()
            .filter(|(sequence, _)| *sequence < entry.sequence)
    }
}
