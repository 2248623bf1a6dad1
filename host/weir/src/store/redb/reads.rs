//! Reads: each from one snapshot of the last durable state.

use std::collections::HashMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, PoisonError};

use redb::{ReadTransaction, ReadableDatabase as _, ReadableTable as _};
use weir_rules::model::Timestamp;

use super::Shared;
use super::chunk::{Bad, Chunk};
use super::tables::{self, Counters};
use super::trouble::{Outcome, Trouble, guarded};
use super::unit::Head;
use crate::store::record::{self, Remembered};
use crate::store::{
    BudgetKey, BudgetRow, DeadLetter, LetterId, OutboxBatch, OutboxSize, PollRow, RecordRow,
    ReviewCount, ReviewEntry, ReviewId, ReviewKind, Sequence, StoreError, UnitId, UnitKey, UnitRow,
    Unreadable, Validator, ValidatorKey,
};

/// Units' names as the outbox needs them. A unit's name never changes, so nothing here goes stale.
#[derive(Default)]
pub(super) struct NameCache {
    names: Mutex<HashMap<UnitId, Arc<UnitKey>>>,
}

/// Names that the cache holds at most; few units have news at the same time.
const NAMES_CACHED: usize = 1024;

impl NameCache {
    fn get(&self, unit: UnitId, tx: &ReadTransaction) -> Outcome<Arc<UnitKey>> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = names.get(&unit) {
            return Ok(name.clone());
        }
        let name = Arc::new(unit_name(tx, unit)?);
        if names.len() >= NAMES_CACHED {
            names.clear();
        }
        names.insert(unit, name.clone());
        Ok(name)
    }
}

fn unit_name(tx: &ReadTransaction, unit: UnitId) -> Outcome<UnitKey> {
    match tx.open_table(tables::UNIT_NAMES)?.get(unit.0)? {
        Some(name) => Ok(serde_json::from_slice(name.value())?),
        None => Err(Trouble::Row(format!("unit {} has no name", unit.0))),
    }
}

fn unit_row(id: UnitId, key: UnitKey, row: &[u8]) -> Outcome<UnitRow> {
    let (head, state) = Head::split(row)?;
    Ok(UnitRow {
        id,
        key,
        state: serde_json::from_slice(state)?,
        due: head.due,
    })
}

impl Shared {
    fn read<T>(&self, work: impl FnOnce(&ReadTransaction) -> Outcome<T>) -> Result<T, StoreError> {
        guarded(|| self.with_database(|db| work(&db.begin_read()?)))
            .map_err(|trouble| trouble.into_error(self.disk.path()))
    }

    pub(super) fn unit(&self, id: UnitId) -> Result<Option<UnitRow>, StoreError> {
        self.read(|tx| match tx.open_table(tables::UNITS)?.get(id.0)? {
            Some(row) => Ok(Some(unit_row(id, unit_name(tx, id)?, row.value())?)),
            None => Ok(None),
        })
    }

    pub(super) fn find_unit(&self, key: &UnitKey) -> Result<Option<UnitRow>, StoreError> {
        self.read(|tx| {
            let name = serde_json::to_vec(key)?;
            let Some(id) = tx.open_table(tables::UNIT_IDS)?.get(name.as_slice())? else {
                return Ok(None);
            };
            match tx.open_table(tables::UNITS)?.get(id.value())? {
                Some(row) => Ok(Some(unit_row(
                    UnitId(id.value()),
                    key.clone(),
                    row.value(),
                )?)),
                None => Ok(None),
            }
        })
    }

    pub(super) fn for_each_unit(&self, each: &mut dyn FnMut(UnitRow)) -> Result<(), StoreError> {
        self.read(|tx| {
            let names = tx.open_table(tables::UNIT_NAMES)?;
            for row in tx.open_table(tables::UNITS)?.iter()? {
                let (id, row) = row?;
                let Some(name) = names.get(id.value())? else {
                    return Err(Trouble::Row(format!("unit {} has no name", id.value())));
                };
                each(unit_row(
                    UnitId(id.value()),
                    serde_json::from_slice(name.value())?,
                    row.value(),
                )?);
            }
            Ok(())
        })
    }

    pub(super) fn due(
        &self,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, UnitId)>, StoreError> {
        self.read(|tx| {
            let last = tables::due_key(until, UnitId(u64::MAX));
            let mut due = Vec::new();
            for row in tx
                .open_table(tables::DUE)?
                .range::<&[u8]>(..=last.as_slice())?
                .take(limit)
            {
                let (time, unit) = tables::unpair(row?.0.value())?;
                due.push((tables::unsortable(time), UnitId(unit)));
            }
            Ok(due)
        })
    }

    pub(super) fn validator(&self, key: &ValidatorKey) -> Result<Option<Validator>, StoreError> {
        self.read(|tx| {
            let table = tx.open_table(tables::VALIDATORS)?;
            let Some(row) = table.get(tables::validator_key(key).as_slice())? else {
                return Ok(None);
            };
            // Behind the number of the walk.
            Ok(Some(serde_json::from_slice(
                row.value().get(8..).unwrap_or_default(),
            )?))
        })
    }

    pub(super) fn budgets(&self) -> Result<Vec<(BudgetKey, BudgetRow)>, StoreError> {
        self.read(|tx| {
            let mut budgets = Vec::new();
            for row in tx.open_table(tables::BUDGETS)?.iter()? {
                let (key, row) = row?;
                let key = String::from_utf8_lossy(key.value());
                let (who, bucket) = key.split_once('\0').unwrap_or((&key, ""));
                let key = BudgetKey {
                    who: who.to_owned(),
                    bucket: bucket.to_owned(),
                };
                // What an older program wrote in another form is forgotten: the next answer tells anew.
                if let Ok(row) = serde_json::from_slice(row.value()) {
                    budgets.push((key, row));
                }
            }
            Ok(budgets)
        })
    }

    pub(super) fn polls(
        &self,
        unit: Option<UnitId>,
        limit: usize,
    ) -> Result<Vec<PollRow>, StoreError> {
        let mut rows = Vec::new();
        if limit > 0 {
            self.each_poll(unit, &mut |row| {
                rows.push(row);
                rows.len() < limit
            })?;
        }
        Ok(rows)
    }

    pub(super) fn each_poll(
        &self,
        unit: Option<UnitId>,
        each: &mut dyn FnMut(PollRow) -> bool,
    ) -> Result<(), StoreError> {
        self.read(|tx| {
            let polls = tx.open_table(tables::POLLS)?;
            if let Some(unit) = unit {
                let bounds = tables::of_unit(unit);
                for row in polls.range::<&[u8]>(tables::slices(&bounds))?.rev() {
                    if !each(serde_json::from_slice(row?.1.value())?) {
                        break;
                    }
                }
                return Ok(());
            }
            for row in tx.open_table(tables::POLL_ORDER)?.iter()?.rev() {
                let (number, unit) = row?;
                let key = tables::pair(unit.value(), number.value());
                if let Some(poll) = polls.get(key.as_slice())?
                    && !each(serde_json::from_slice(poll.value())?)
                {
                    break;
                }
            }
            Ok(())
        })
    }

    pub(super) fn records(
        &self,
        unit: UnitId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecordRow>, StoreError> {
        self.read(|tx| {
            let Some(head) = head(tx, unit)? else {
                return Ok(Vec::new());
            };
            let bounds = tables::of_unit(unit);
            let (mut from, to) = tables::slices(&bounds);
            let mut key = Vec::new();
            if let Some(after) = after {
                record::key_into(&mut key, unit.0, after);
                from = Bound::Excluded(key.as_slice());
            }
            let mut rows = Vec::new();
            for row in tx.open_table(tables::RECORDS)?.range::<&[u8]>((from, to))? {
                if rows.len() == limit {
                    break;
                }
                let (key, row) = row?;
                let remembered = Remembered::from_bytes(row.value());
                if remembered.epoch == head.epoch {
                    let id = key.value().get(8..).unwrap_or_default();
                    rows.push(remembered.row(String::from_utf8_lossy(id).into_owned()));
                }
            }
            Ok(rows)
        })
    }

    pub(super) fn record_count(&self, unit: UnitId) -> Result<u64, StoreError> {
        self.read(|tx| Ok(head(tx, unit)?.map_or(0, |head| head.records)))
    }

    pub(super) fn outbox(
        &self,
        sink: &str,
        after: Option<Sequence>,
        max_bytes: usize,
    ) -> Result<OutboxBatch, StoreError> {
        self.read(|tx| {
            let mut batch = OutboxBatch::default();
            let Some(position) = tx
                .open_table(tables::SINKS)?
                .get(sink)?
                .map(|position| position.value())
            else {
                return Ok(batch);
            };
            let from = after.map_or(position, |after| position.max(after.saturating_add(1)));
            let outbox = tx.open_table(tables::OUTBOX)?;
            // The chunk that holds `from` may begin before it.
            let first = match outbox.range(..=from)?.next_back() {
                Some(row) => row?.0.value(),
                None => from,
            };
            let mut rows = outbox.range(first..)?.peekable();
            let mut bytes = 0;
            while let Some(row) = rows.next() {
                let (first, value) = row?;
                let (first, value) = (first.value(), value.value());
                // Sequences have no holes, so a chunk ends where the next begins, whatever it says itself.
                let end = match rows.peek() {
                    Some(Ok((next, _))) => next.value(),
                    _ => Counters::read(tx)?.sequence,
                };
                if end <= from {
                    continue;
                }
                let mut bad = Vec::new();
                match Chunk::open(first, value) {
                    Ok(chunk) => {
                        let name = self.names.get(chunk.header.unit, tx)?;
                        chunk.entries(from, &name, &mut batch.entries, &mut bad);
                    }
                    Err(detail) => bad.push(Bad {
                        sequence: first.max(from),
                        detail: detail.into(),
                        raw: value.to_vec(),
                    }),
                }
                batch
                    .unreadable
                    .extend(bad.into_iter().map(|bad| Unreadable {
                        sequence: bad.sequence,
                        detail: bad.detail,
                        raw: bad.raw,
                    }));
                batch.up_to = Some(end - 1);
                bytes += value.len();
                if bytes >= max_bytes {
                    break;
                }
            }
            Ok(batch)
        })
    }

    pub(super) fn outbox_size(&self) -> Result<OutboxSize, StoreError> {
        self.read(|tx| {
            let counters = Counters::read(tx)?;
            let outbox = tx.open_table(tables::OUTBOX)?;
            let Some((first, chunk)) = outbox.first()? else {
                return Ok(OutboxSize::default());
            };
            let mut slowest = Sequence::MAX;
            for row in tx.open_table(tables::SINKS)?.iter()? {
                slowest = slowest.min(row?.1.value());
            }
            let first = first.value();
            // Of the oldest chunk the slowest sink may have taken a part.
            let (taken, taken_bytes, oldest) = match Chunk::open(first, chunk.value()) {
                Ok(chunk) if slowest != Sequence::MAX && slowest > first => (
                    slowest - first,
                    chunk.data_bytes_before(slowest),
                    Some(chunk.header.seen_at),
                ),
                Ok(chunk) => (0, 0, Some(chunk.header.seen_at)),
                Err(_) => (0, 0, None),
            };
            Ok(OutboxSize {
                entries: counters.entries.saturating_sub(taken),
                bytes: counters.bytes.saturating_sub(taken_bytes),
                oldest,
            })
        })
    }

    pub(super) fn for_each_letter(
        &self,
        sink: Option<&str>,
        each: &mut dyn FnMut(DeadLetter) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.read(|tx| {
            let table = tx.open_table(tables::DEAD)?;
            let bounds = tables::of_sink(sink);
            for row in table.range::<&[u8]>(tables::slices(&bounds))? {
                if each(serde_json::from_slice(row?.1.value())?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    pub(super) fn letter(&self, id: &LetterId) -> Result<Option<DeadLetter>, StoreError> {
        self.read(|tx| {
            let table = tx.open_table(tables::DEAD)?;
            let key = tables::dead_key(&id.sink, id.sequence);
            match table.get(key.as_slice())? {
                Some(row) => Ok(Some(serde_json::from_slice(row.value())?)),
                None => Ok(None),
            }
        })
    }

    pub(super) fn credential(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|tx| {
            Ok(tx
                .open_table(tables::CREDENTIALS)?
                .get(key)?
                .map(|value| value.value().to_vec()))
        })
    }

    pub(super) fn reviews(
        &self,
        unit: Option<UnitId>,
        limit: usize,
    ) -> Result<Vec<ReviewEntry>, StoreError> {
        self.read(|tx| {
            let table = tx.open_table(tables::REVIEW)?;
            let bounds = unit.map(tables::of_unit);
            let range = match &bounds {
                Some(bounds) => tables::slices(bounds),
                None => (Bound::Unbounded, Bound::Unbounded),
            };
            let mut entries = Vec::new();
            for row in table.range::<&[u8]>(range)?.take(limit) {
                entries.push(review_entry(row?.1.value())?);
            }
            Ok(entries)
        })
    }

    pub(super) fn review(&self, id: ReviewId) -> Result<Option<ReviewEntry>, StoreError> {
        self.read(|tx| {
            let table = tx.open_table(tables::REVIEW)?;
            match table.get(tables::review_key(id).as_slice())? {
                Some(row) => review_entry(row.value()).map(Some),
                None => Ok(None),
            }
        })
    }

    pub(super) fn review_count(&self) -> Result<ReviewCount, StoreError> {
        self.read(|tx| {
            let mut count = ReviewCount::default();
            for row in tx.open_table(tables::REVIEW)?.iter()? {
                let (key, row) = row?;
                let (kind, dropped, _) = tables::review_of(key.value(), row.value())?;
                count.all += 1;
                match kind {
                    _ if dropped => {}
                    ReviewKind::Record => count.records += 1,
                    _ => count.faults += 1,
                }
            }
            Ok(count)
        })
    }

    pub(super) fn kept_record(&self, unit: UnitId, id: &str) -> Result<Option<String>, StoreError> {
        self.read(|tx| {
            let mut key = Vec::new();
            record::key_into(&mut key, unit.0, id);
            let kept = tx.open_table(tables::KEPT)?;
            let text = kept.get(key.as_slice())?;
            text.map(|text| text_of(text.value())).transpose()
        })
    }

    pub(super) fn for_each_kept(
        &self,
        unit: UnitId,
        each: &mut dyn FnMut(&str),
    ) -> Result<(), StoreError> {
        self.read(|tx| {
            let kept = tx.open_table(tables::KEPT)?;
            let bounds = tables::of_unit(unit);
            for row in kept.range::<&[u8]>(tables::slices(&bounds))? {
                let (key, _) = row?;
                let id = key.value().get(8..).unwrap_or_default();
                each(&text_of(id)?);
            }
            Ok(())
        })
    }

    pub(super) fn note(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|tx| {
            Ok(tx
                .open_table(tables::NOTES)?
                .get(key)?
                .map(|value| value.value().to_vec()))
        })
    }
}

fn text_of(bytes: &[u8]) -> Outcome<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Trouble::Row("a kept record is no text".into()))
}

fn review_entry(row: &[u8]) -> Outcome<ReviewEntry> {
    Ok(serde_json::from_slice(
        row.get(tables::REVIEW_HEAD..).unwrap_or_default(),
    )?)
}

fn head(tx: &ReadTransaction, unit: UnitId) -> Outcome<Option<Head>> {
    match tx.open_table(tables::UNITS)?.get(unit.0)? {
        Some(row) => Ok(Some(Head::split(row.value())?.0)),
        None => Ok(None),
    }
}
