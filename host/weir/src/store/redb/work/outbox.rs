//! The outbox in a transaction: entries come in by pages and go when the slowest sink has passed them.

use redb::ReadableTable as _;

use super::Work;
use crate::store::redb::chunk::{self, News};
use crate::store::redb::tables;
use crate::store::redb::trouble::Outcome;
use crate::store::{Commit, Handled, intent_note};

impl Work<'_> {
    pub(super) fn put_in_outbox(&mut self, commit: &Commit, mut news: &[News<'_>]) -> Outcome<()> {
        while !news.is_empty() {
            let (count, length) = chunk::measure(news);
            let (now, later) = news.split_at_checked(count).unwrap_or((news, &[]));
            let mut place = self.outbox.insert_reserve(self.counters.sequence, length)?;
            let header = chunk::pack(now, commit.unit, commit.seen_at, place.as_mut());
            self.counters.sequence += u64::from(header.count);
            self.counters.entries += u64::from(header.count);
            self.counters.bytes += header.data_bytes;
            news = later;
        }
        Ok(())
    }

    pub(in crate::store::redb) fn set_sinks(&mut self, names: &[String]) -> Outcome<()> {
        let mut known = Vec::new();
        for row in self.sinks.iter()? {
            known.push(row?.0.value().to_owned());
        }
        if known.len() == names.len() && names.iter().all(|name| known.contains(name)) {
            return Ok(());
        }
        self.changed = true;
        for gone in known.iter().filter(|name| !names.contains(name)) {
            self.sinks.remove(gone.as_str())?;
        }
        let oldest = match self.outbox.first()? {
            Some((first, _)) => first.value(),
            None => self.counters.sequence,
        };
        for new in names.iter().filter(|name| !known.contains(name)) {
            self.sinks.insert(new.as_str(), oldest)?;
        }
        self.sinks_moved = true;
        Ok(())
    }

    pub(in crate::store::redb) fn delivered(&mut self, sink: &str, done: &Handled) -> Outcome<()> {
        let Some(position) = self.sinks.get(sink)?.map(|position| position.value()) else {
            // The configuration no longer names it.
            return Ok(());
        };
        let next = done.up_to.saturating_add(1).min(self.counters.sequence);
        if next > position {
            self.sinks.insert(sink, next)?;
            self.sinks_moved = true;
            self.changed = true;
        }
        self.letters(sink, done)?;
        if done.settled {
            let mut notes = self.tx.open_table(tables::NOTES)?;
            let known = notes.remove(intent_note(sink).as_str())?.is_some();
            self.changed |= known;
        }
        Ok(())
    }

    /// Removes the chunks that every sink has passed. Where no sink is configured nothing is: the entries wait
    /// for one.
    pub(super) fn remove_delivered(&mut self) -> Outcome<()> {
        let mut slowest = None;
        for row in self.sinks.iter()? {
            let position = row?.1.value();
            slowest = Some(slowest.map_or(position, |slowest: u64| slowest.min(position)));
        }
        let Some(slowest) = slowest else {
            return Ok(());
        };
        loop {
            let (first, header) = match self.outbox.first()? {
                Some((first, chunk)) if first.value() < slowest => {
                    (first.value(), chunk::Header::read(chunk.value()))
                }
                _ => break,
            };
            // Sequences have no holes: a chunk ends where the next begins.
            let end = match self.outbox.range(first + 1..)?.next() {
                Some(next) => next?.0.value(),
                None => self.counters.sequence,
            };
            if end > slowest {
                break;
            }
            self.outbox.remove(first)?;
            if let Some(header) = header {
                self.counters.entries = self
                    .counters
                    .entries
                    .saturating_sub(u64::from(header.count));
                self.counters.bytes = self.counters.bytes.saturating_sub(header.data_bytes);
            }
        }
        if self.outbox.first()?.is_none() {
            // Whatever a damaged chunk may have left in the totals.
            self.counters.entries = 0;
            self.counters.bytes = 0;
        }
        Ok(())
    }
}
