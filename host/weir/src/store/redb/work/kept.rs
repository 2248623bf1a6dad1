//! The text of records that other streams are polled for.

use redb::ReadableTable as _;

use super::Work;
use crate::store::record;
use crate::store::redb::tables;
use crate::store::redb::trouble::Outcome;
use crate::store::{Commit, Seen};

impl Work<'_> {
    /// Keeps the text of a page's records, also of those that are no news: what was read before their text was kept must
    /// not be missing for ever.
    pub(super) fn keep(&mut self, commit: &Commit, seen: &mut Seen) -> Outcome<()> {
        let mut kept = self.tx.open_table(tables::KEPT)?;
        let mut key = Vec::with_capacity(64);
        for record in &commit.records {
            record::key_into(&mut key, commit.unit.0, &record.id);
            if record.deleted {
                if kept.remove(key.as_slice())?.is_some() {
                    seen.gone.push(record.id.clone());
                }
                continue;
            }
            let text = record.data.as_str().as_bytes();
            let before = kept.get(key.as_slice())?.map(|row| row.value() == text);
            if before.is_none() {
                seen.born.push(record.id.clone());
            }
            if before != Some(true) {
                kept.insert(key.as_slice(), text)?;
            }
        }
        for id in &commit.unlisted {
            record::key_into(&mut key, commit.unit.0, id);
            if kept.remove(key.as_slice())?.is_some() {
                seen.gone.push(id.clone());
            }
        }
        Ok(())
    }
}
