//! Letters in a transaction: what sinks have refused, and what a person decides about it.

use redb::ReadableTable as _;

use super::Work;
use crate::store::redb::tables;
use crate::store::redb::trouble::Outcome;
use crate::store::{DeadLetter, Handled, LetterId, LetterState, Requeued};

impl Work<'_> {
    /// The part of a sink's report that is about letters.
    pub(super) fn letters(&mut self, sink: &str, done: &Handled) -> Outcome<()> {
        if done.letters.is_empty() && done.taken.is_empty() && done.superseded.is_empty() {
            return Ok(());
        }
        self.changed = true;
        let mut letters = self.tx.open_table(tables::DEAD)?;
        for letter in &done.letters {
            letters.insert(
                tables::dead_key(sink, letter.sequence).as_slice(),
                serde_json::to_vec(letter)?.as_slice(),
            )?;
        }
        for sequence in &done.taken {
            letters.remove(tables::dead_key(sink, *sequence).as_slice())?;
        }
        for (sequence, revision) in &done.superseded {
            let key = tables::dead_key(sink, *sequence);
            let Some(mut letter) = read(&letters, &key)? else {
                continue;
            };
            letter.superseded = letter.superseded.max(Some(*revision));
            letter.state = LetterState::Dead;
            letters.insert(key.as_slice(), serde_json::to_vec(&letter)?.as_slice())?;
        }
        Ok(())
    }

    pub(in crate::store::redb) fn requeue(&mut self, id: &LetterId) -> Outcome<Requeued> {
        let mut letters = self.tx.open_table(tables::DEAD)?;
        let key = tables::dead_key(&id.sink, id.sequence);
        let Some(mut letter) = read(&letters, &key)? else {
            return Ok(Requeued::Unknown);
        };
        let has_sink = self.sinks.get(id.sink.as_str())?.is_some();
        if let Err(why) = letter.requeue(has_sink) {
            return Ok(why);
        }
        self.changed = true;
        self.letters_changed = true;
        letters.insert(key.as_slice(), serde_json::to_vec(&letter)?.as_slice())?;
        Ok(Requeued::GoesOut)
    }

    pub(in crate::store::redb) fn drop_letter(
        &mut self,
        id: &LetterId,
    ) -> Outcome<Option<DeadLetter>> {
        let mut letters = self.tx.open_table(tables::DEAD)?;
        let key = tables::dead_key(&id.sink, id.sequence);
        let letter = read(&letters, &key)?.filter(|letter| letter.state == LetterState::Dead);
        if letter.is_some() {
            self.changed = true;
            self.letters_changed = true;
            letters.remove(key.as_slice())?;
        }
        Ok(letter)
    }
}

fn read(
    letters: &impl redb::ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
) -> Outcome<Option<DeadLetter>> {
    match letters.get(key)? {
        Some(row) => Ok(Some(serde_json::from_slice(row.value())?)),
        None => Ok(None),
    }
}
