//! Entries that the sink has refused and that are tried again, and later entries of the same records behind them.

use std::collections::HashSet;
use std::time::Duration;

use crate::store::{OutboxEntry, Sequence, UnitKey};

/// An entry that waits for its next try. Times are by the monotonic clock.
pub(super) struct Held {
    pub(super) entry: OutboxEntry,
    pub(super) tries: u32,
    pub(super) next: Duration,
    /// The key under which it is delivered by itself.
    pub(super) key: Option<String>,
    /// How many entries the sink had taken when it first refused this one.
    pub(super) since: u64,
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

    /// All of them may be tried at once.
    pub(super) fn hurry(&mut self) {
        for held in &mut self.entries {
            held.next = Duration::ZERO;
        }
    }

    pub(super) fn get(&mut self, sequence: Sequence) -> Option<&mut Held> {
        self.entries
            .iter_mut()
            .find(|held| held.entry.sequence == sequence)
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
        let mut seen: HashSet<(&UnitKey, &str)> = HashSet::new();
        self.entries
            .iter()
            .filter(move |held| seen.insert((&held.entry.unit, held.entry.id.as_str())))
    }
}
