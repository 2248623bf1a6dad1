//! The outbox in memory: pages of entries, and each sink's place among them.

use std::collections::{BTreeMap, VecDeque};

use crate::store::{OutboxBatch, OutboxEntry, OutboxSize, Sequence};

/// A sink reads a large page in parts of about this size.
const PART_BYTES: usize = 120 << 10;

/// Entries that wait, and the sinks' places.
pub(super) struct Outbox {
    /// The entries of one page each; none is empty, and sequences have no holes.
    pages: VecDeque<Vec<OutboxEntry>>,
    /// The sequence that the next entry will have.
    end: Sequence,
    /// Sink -> the first sequence that it has not taken.
    sinks: BTreeMap<String, Sequence>,
}

impl Default for Outbox {
    fn default() -> Self {
        Outbox {
            pages: VecDeque::new(),
            end: 1,
            sinks: BTreeMap::new(),
        }
    }
}

impl Outbox {
    pub(super) fn end(&self) -> Sequence {
        self.end
    }

    /// Takes in the entries of a page; numbers them.
    pub(super) fn put(&mut self, entries: Vec<OutboxEntry>) {
        let mut bytes = PART_BYTES;
        for mut entry in entries {
            entry.sequence = self.end;
            self.end += 1;
            bytes += weight(&entry);
            match self.pages.back_mut() {
                Some(part) if bytes <= PART_BYTES => part.push(entry),
                _ => {
                    bytes = weight(&entry);
                    self.pages.push_back(vec![entry]);
                }
            }
        }
    }

    pub(super) fn has_sinks(&self, names: &[String]) -> bool {
        self.sinks.len() == names.len() && names.iter().all(|name| self.sinks.contains_key(name))
    }

    pub(super) fn has_sink(&self, name: &str) -> bool {
        self.sinks.contains_key(name)
    }

    pub(super) fn set_sinks(&mut self, names: &[String]) {
        let oldest = self
            .pages
            .front()
            .and_then(|page| first(page))
            .unwrap_or(self.end);
        self.sinks.retain(|name, _| names.contains(name));
        for name in names {
            self.sinks.entry(name.clone()).or_insert(oldest);
        }
        self.remove_delivered();
    }

    /// Would the sink's place change?
    pub(super) fn would_move(&self, sink: &str, up_to: Sequence) -> bool {
        let next = up_to.saturating_add(1).min(self.end);
        self.sinks.get(sink).is_some_and(|place| next > *place)
    }

    /// The sink has taken everything up to there.
    pub(super) fn delivered(&mut self, sink: &str, up_to: Sequence) {
        let next = up_to.saturating_add(1).min(self.end);
        if let Some(place) = self.sinks.get_mut(sink)
            && next > *place
        {
            *place = next;
            self.remove_delivered();
        }
    }

    /// Removes the pages that every sink has passed. Where no sink is configured nothing is: they wait for one.
    fn remove_delivered(&mut self) {
        let Some(slowest) = self.sinks.values().min() else {
            return;
        };
        let passed =
            |page: &Vec<OutboxEntry>| page.last().is_none_or(|last| last.sequence < *slowest);
        while self.pages.front().is_some_and(passed) {
            self.pages.pop_front();
        }
    }

    /// What the sink is to take next, in whole pages.
    pub(super) fn batch(
        &self,
        sink: &str,
        after: Option<Sequence>,
        max_bytes: usize,
    ) -> OutboxBatch {
        let mut batch = OutboxBatch::default();
        let Some(place) = self.sinks.get(sink) else {
            return batch;
        };
        let from = after.map_or(*place, |after| after.saturating_add(1).max(*place));
        let behind = |page: &Vec<OutboxEntry>| page.last().is_none_or(|last| last.sequence < from);
        let mut bytes = 0;
        for page in self.pages.range(self.pages.partition_point(behind)..) {
            let entries = page.iter().filter(|entry| entry.sequence >= from);
            batch.entries.extend(entries.cloned());
            batch.up_to = page.last().map(|last| last.sequence);
            bytes += page.iter().map(weight).sum::<usize>();
            if bytes >= max_bytes {
                break;
            }
        }
        batch
    }

    pub(super) fn size(&self) -> OutboxSize {
        let Some(page) = self.pages.front() else {
            return OutboxSize::default();
        };
        let slowest = self.sinks.values().min().copied().unwrap_or(0);
        let waiting = self
            .pages
            .iter()
            .flatten()
            .filter(|entry| entry.sequence >= slowest);
        let (entries, bytes) = waiting.fold((0, 0), |(entries, bytes), entry| {
            (entries + 1, bytes + entry.data.as_str().len() as u64)
        });
        OutboxSize {
            entries,
            bytes,
            oldest: page.first().map(|first| first.seen_at),
        }
    }
}

fn first(page: &[OutboxEntry]) -> Option<Sequence> {
    page.first().map(|first| first.sequence)
}

fn weight(entry: &OutboxEntry) -> usize {
    entry.data.as_str().len() + entry.id.len()
}
