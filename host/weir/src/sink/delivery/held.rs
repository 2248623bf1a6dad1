//! Entries that the sink has refused and that are tried again, and later entries of the same records behind them.

use std::time::Duration;

use crate::store::{OutboxEntry, Sequence};

/// An entry that waits for its next try. Times are by the monotonic clock.
pub(super) struct Held {
    pub(super) entry: OutboxEntry,
    pub(super) tries: u32,
    pub(super) next: Duration,
}

/// Held entries in outbox order.
#[derive(Default)]
pub(super) struct HeldEntries {
    entries: Vec<Held>,
}

impl HeldEntries {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn hold(&mut self, held: Held) {
        let place = self
            .entries
            .partition_point(|other| other.entry.sequence < held.entry.sequence);
        self.entries.insert(place, held);
    }

    /// The oldest: nothing from here on may be acknowledged.
    pub(super) fn oldest(&self) -> Option<Sequence> {
        self.entries.first().map(|held| held.entry.sequence)
    }

    /// Does an earlier entry of the same record wait here?
    pub(super) fn blocks(&self, entry: &OutboxEntry) -> bool {
        self.entries
            .iter()
            .any(|held| same_record(&held.entry, entry))
    }

    /// An entry that may be tried now.
    pub(super) fn due(&self, now: Duration) -> Option<Sequence> {
        self.first_of_each()
            .find(|held| held.next <= now)
            .map(|held| held.entry.sequence)
    }

    /// When the next may be tried.
    pub(super) fn next_try(&self) -> Option<Duration> {
        self.first_of_each().map(|held| held.next).min()
    }

    pub(super) fn get(&self, sequence: Sequence) -> Option<&OutboxEntry> {
        let held = self.entries.iter().map(|held| &held.entry);
        held.into_iter().find(|entry| entry.sequence == sequence)
    }

    pub(super) fn take(&mut self, sequence: Sequence) -> Option<Held> {
        let at = self
            .entries
            .iter()
            .position(|held| held.entry.sequence == sequence)?;
        Some(self.entries.remove(at))
    }

    /// Of each record only the first: the others wait behind it.
    fn first_of_each(&self) -> impl Iterator<Item = &Held> {
        self.entries.iter().enumerate().filter_map(|(at, held)| {
            let mut earlier = self.entries.iter().take(at);
            let waits = earlier.any(|earlier| same_record(&earlier.entry, &held.entry));
            (!waits).then_some(held)
        })
    }
}

fn same_record(one: &OutboxEntry, other: &OutboxEntry) -> bool {
    one.id == other.id && one.unit == other.unit
}
