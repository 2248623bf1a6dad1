//! What waits for a person, in a transaction.

use redb::{ReadableTable as _, ReadableTableMetadata as _};

use super::Work;
use crate::store::redb::tables;
use crate::store::redb::trouble::Outcome;
use crate::store::{REVIEWS, ReviewChange, ReviewKind};

impl Work<'_> {
    pub(in crate::store::redb) fn set_reviews(&mut self, changes: &[ReviewChange]) -> Outcome<()> {
        if changes.is_empty() {
            return Ok(());
        }
        self.changed = true;
        let mut table = self.tx.open_table(tables::REVIEW)?;
        for (id, entry) in changes {
            let key = tables::review_key(*id);
            match entry {
                None => {
                    table.remove(key.as_slice())?;
                }
                Some(entry) => {
                    let mut row = tables::review_head(entry).to_vec();
                    serde_json::to_writer(&mut row, entry)?;
                    let known = table.insert(key.as_slice(), row.as_slice())?.is_some();
                    if !known && table.len()? > REVIEWS {
                        remove_oldest(&mut table, &key)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Makes room by the oldest entry that is no hole in the data.
fn remove_oldest(
    table: &mut redb::Table<'_, &'static [u8], &'static [u8]>,
    new: &[u8],
) -> Outcome<()> {
    let mut oldest: Option<(u64, Vec<u8>)> = None;
    for row in table.iter()? {
        let (key, row) = row?;
        let (kind, dropped, last) = tables::review_of(key.value(), row.value())?;
        let hole = kind == ReviewKind::Record && !dropped;
        if !hole && key.value() != new && oldest.as_ref().is_none_or(|(first, _)| last < *first) {
            oldest = Some((last, key.value().to_vec()));
        }
    }
    if let Some((_, key)) = oldest {
        table.remove(key.as_slice())?;
    }
    Ok(())
}
