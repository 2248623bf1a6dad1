//! Records in a transaction: which are news, how many may be remembered, and what is forgotten.

use std::ops::Bound;

use redb::ReadableTable as _;
use weir_rules::model::Timestamp;
use weir_rules::unit::UnitState;

use super::Work;
use crate::store::record::{self, Remembered, Sight};
use crate::store::redb::chunk::News;
use crate::store::redb::given::{self, Given};
use crate::store::redb::tables;
use crate::store::redb::trouble::{Outcome, Trouble};
use crate::store::redb::unit::Head;
use crate::store::{Commit, Op, PreparedRecord, Seen, StoreError, Swept, UnitId, hex};

/// Records that change within one walk and are told of, of one page.
const DOUBLES: usize = 64;

impl Work<'_> {
    /// Would the page make its unit remember more than it may?
    pub(super) fn too_many(
        &self,
        commit: &Commit,
        head: &Head,
        most: u64,
    ) -> Outcome<Option<StoreError>> {
        let records = commit.records.len() as u64;
        if head.records.saturating_add(records) <= most {
            return Ok(None);
        }
        let mut more = 0;
        let mut key = Vec::with_capacity(64);
        for record in &commit.records {
            record::key_into(&mut key, commit.unit.0, &record.id);
            let known = self
                .records
                .get(key.as_slice())?
                .is_some_and(|row| Remembered::from_bytes(row.value()).epoch == head.epoch);
            more += u64::from(!known);
        }
        let known = head.records;
        let full = more > 0 && known.saturating_add(more) > most;
        Ok(full.then_some(StoreError::TooManyRecords { known, more, most }))
    }

    /// Decides for each record of a page whether it is news, and remembers it.
    pub(super) fn sift<'c>(
        &mut self,
        commit: &'c Commit,
        head: &mut Head,
        seen: &mut Seen,
    ) -> Outcome<Vec<News<'c>>> {
        let mut news = Vec::with_capacity(commit.records.len());
        let mut key = Vec::with_capacity(64);
        // Where the last record was new the next one most likely is too. Then its row is written at once, which
        // finds what was there before in the same descent of the tree.
        let mut expect_new = head.records == 0;
        let unit = self.unit_name(commit.unit)?;
        for record in &commit.records {
            record::key_into(&mut key, commit.unit.0, &record.id);
            if let Some((op, row)) = self.given_before(&unit, &key, record, commit, head)? {
                expect_new = false;
                seen.count(op, lag(record, commit));
                news.push(News {
                    record,
                    op,
                    revision: u64::from(row.revision),
                });
                continue;
            }
            let first = Remembered::first(
                record.hash,
                record.deleted,
                commit.seen_at,
                head.epoch,
                head.floor,
            );
            let before = if expect_new {
                self.records.insert(key.as_slice(), &first.to_bytes())?
            } else {
                self.records.get(key.as_slice())?
            }
            .map(|row| Remembered::from_bytes(row.value()));
            let (op, row) = match before {
                None => {
                    if !expect_new {
                        self.records.insert(key.as_slice(), &first.to_bytes())?;
                    }
                    head.records += 1;
                    (Remembered::first_op(record.deleted), first)
                }
                Some(old) => {
                    match old.seen_again(record.hash, record.deleted, commit.seen_at, head.epoch) {
                        Sight::Same => {
                            if expect_new {
                                self.records.insert(key.as_slice(), &old.to_bytes())?;
                            }
                            seen.unchanged += 1;
                            expect_new = false;
                            continue;
                        }
                        Sight::News(op, row) => {
                            if old.last_changed >= commit.dedup.walk_began
                                && seen.doubles.len() < DOUBLES
                            {
                                seen.doubles.push((record.id.clone(), hex(&old.hash)));
                            }
                            self.records.insert(key.as_slice(), &row.to_bytes())?;
                            head.records += u64::from(old.epoch != head.epoch);
                            (op, row)
                        }
                    }
                }
            };
            expect_new = before.is_none();
            seen.count(op, lag(record, commit));
            news.push(News {
                record,
                op,
                revision: u64::from(row.revision),
            });
        }
        if let Some(log) = &mut self.log {
            for one in &news {
                // No record has come near the end of 32 bits: each revision is a call at least.
                let revision = u32::try_from(one.revision).unwrap_or(u32::MAX);
                let given = Given::new(&one.record.hash, one.op, revision);
                given::put(log, given::name(&unit, &one.record.id), given);
            }
        }
        Ok(news)
    }

    /// The unit's name as the journal goes by it; empty when nobody asks for it.
    fn unit_name(&self, unit: UnitId) -> Outcome<Vec<u8>> {
        if self.log.is_none() && self.given.is_none() {
            return Ok(Vec::new());
        }
        let names = self.tx.open_table(tables::UNIT_NAMES)?;
        let name = names.get(unit.0)?.map(|name| name.value().to_vec());
        name.ok_or_else(|| Trouble::Row(format!("unit {} has no name", unit.0)))
    }

    /// A record that a store which is lost has delivered since the copy that this one was made of: it is delivered
    /// again, for what lay in the lost outbox is not known.
    fn given_before(
        &mut self,
        unit: &[u8],
        key: &[u8],
        record: &PreparedRecord,
        commit: &Commit,
        head: &mut Head,
    ) -> Outcome<Option<(Op, Remembered)>> {
        let Some(given) = &mut self.given else {
            return Ok(None);
        };
        let name = given::name(unit, &record.id);
        let Some(row) = given
            .remove(name.as_slice())?
            .map(|row| Given::of_row(row.value()))
        else {
            return Ok(None);
        };
        self.changed = true;
        let known = self
            .records
            .get(key)?
            .map(|row| Remembered::from_bytes(row.value()));
        let again = row.and_then(|row| {
            row.again(
                known,
                record.hash,
                record.deleted,
                commit.seen_at,
                head.epoch,
            )
        });
        if let Some((_, row)) = &again {
            self.records.insert(key, &row.to_bytes())?;
            head.records += u64::from(known.is_none_or(|known| known.epoch != head.epoch));
        }
        Ok(again)
    }

    pub(in crate::store::redb) fn forget_records(
        &mut self,
        unit: UnitId,
    ) -> Outcome<Result<u64, StoreError>> {
        let (mut head, state) = {
            let Some(row) = self.units.get(unit.0)? else {
                return Ok(Err(StoreError::UnknownUnit { unit }));
            };
            let (head, state) = Head::split(row.value())?;
            (head, serde_json::from_slice::<UnitState>(state)?)
        };
        self.changed = true;
        head.epoch = head.epoch.saturating_add(1);
        let forgotten = std::mem::take(&mut head.records);
        self.units.insert(unit.0, head.row(&state)?.as_slice())?;
        Ok(Ok(forgotten))
    }

    /// Forgets records that have not changed since `before`, and those of earlier epochs.
    pub(in crate::store::redb) fn forget_older(
        &mut self,
        unit: UnitId,
        before: Timestamp,
        after: Option<&str>,
        limit: usize,
    ) -> Outcome<Result<Swept, StoreError>> {
        let (mut head, state) = {
            let Some(row) = self.units.get(unit.0)? else {
                return Ok(Err(StoreError::UnknownUnit { unit }));
            };
            let (head, state) = Head::split(row.value())?;
            (head, serde_json::from_slice::<UnitState>(state)?)
        };
        let mut swept = Swept::default();
        let mut old = Vec::new();
        {
            let bounds = tables::of_unit(unit);
            let (mut from, to) = tables::slices(&bounds);
            let mut key = Vec::new();
            if let Some(after) = after {
                record::key_into(&mut key, unit.0, after);
                from = Bound::Excluded(key.as_slice());
            }
            let mut looked_at = 0;
            for row in self.records.range::<&[u8]>((from, to))? {
                let (key, row) = row?;
                let remembered = Remembered::from_bytes(row.value());
                if remembered.last_changed < before || remembered.epoch != head.epoch {
                    head.floor = head.floor.max(remembered.revision);
                    swept.forgotten += u64::from(remembered.epoch == head.epoch);
                    old.push(key.value().to_vec());
                }
                looked_at += 1;
                if looked_at >= limit {
                    let id = key.value().get(8..).unwrap_or_default();
                    swept.next = Some(String::from_utf8_lossy(id).into_owned());
                    break;
                }
            }
        }
        if old.is_empty() {
            return Ok(Ok(swept));
        }
        self.changed = true;
        for key in old {
            self.records.remove(key.as_slice())?;
        }
        head.records = head.records.saturating_sub(swept.forgotten);
        self.units.insert(unit.0, head.row(&state)?.as_slice())?;
        Ok(Ok(swept))
    }
}

/// How long after its vendor's stamp a record came.
fn lag(record: &PreparedRecord, commit: &Commit) -> Option<i64> {
    record
        .updated_at
        .map(|stamp| commit.seen_at.saturating_sub(stamp))
}
