//! One write transaction with all its tables open: what each operation does to them.
//!
//! An operation either changes all that it is about, or answers an error before it has changed anything; any
//! other failure ends the whole transaction.

mod kept;
mod letters;
mod outbox;
mod polls;
mod records;
mod review;

use redb::{ReadableTable as _, ReadableTableMetadata as _, Table, WriteTransaction};
use weir_rules::unit::UnitState;

use super::tables::{self, Counters, OUTBOX, RECORDS};
use super::trouble::{Outcome, Trouble};
use super::unit::Head;
use crate::store::record;
use crate::store::{
    Commit, Conclusion, PollsKept, Seen, Sequence, StoreError, UnitId, UnitKey, UnitRow, Validator,
    ValidatorKey,
};

type Bytes = &'static [u8];

/// The open tables of a write transaction.
pub(super) struct Work<'tx> {
    tx: &'tx WriteTransaction,
    meta: Table<'tx, &'static str, Bytes>,
    units: Table<'tx, u64, Bytes>,
    due: Table<'tx, Bytes, ()>,
    records: Table<'tx, Bytes, &'static [u8; record::LEN]>,
    outbox: Table<'tx, u64, Bytes>,
    sinks: Table<'tx, &'static str, u64>,
    polls: Table<'tx, Bytes, Bytes>,
    poll_order: Table<'tx, u64, u64>,
    validators: Table<'tx, Bytes, Bytes>,
    /// What a lost store gave; none when nothing of it is left.
    given: Option<Table<'tx, Bytes, Bytes>>,
    /// What is given in this transaction; none when nobody writes it down.
    log: Option<Vec<u8>>,
    counters: Counters,
    /// How much of the log of polls is kept.
    kept: PollsKept,
    /// A sink has moved on: chunks may have become superfluous.
    sinks_moved: bool,
    /// Something was written.
    changed: bool,
    /// A person has decided about a letter.
    letters_changed: bool,
}

/// What others want to know of a transaction when it is durable.
pub(super) struct News {
    /// The sequence that the next entry will have.
    pub(super) end: Sequence,
    /// A person has decided about a letter.
    pub(super) letters: bool,
    /// What was given, for the journal.
    pub(super) log: Vec<u8>,
}

impl<'tx> Work<'tx> {
    pub(super) fn begin(
        tx: &'tx WriteTransaction,
        kept: PollsKept,
        journal: bool,
    ) -> Outcome<Self> {
        let meta = tx.open_table(tables::META)?;
        let given = tx.open_table(tables::GIVEN)?;
        let given = (!given.is_empty()?).then_some(given);
        let counters = Counters::load(&meta)?;
        Ok(Work {
            tx,
            meta,
            counters,
            units: tx.open_table(tables::UNITS)?,
            due: tx.open_table(tables::DUE)?,
            records: tx.open_table(RECORDS)?,
            outbox: tx.open_table(OUTBOX)?,
            sinks: tx.open_table(tables::SINKS)?,
            polls: tx.open_table(tables::POLLS)?,
            poll_order: tx.open_table(tables::POLL_ORDER)?,
            validators: tx.open_table(tables::VALIDATORS)?,
            given,
            log: journal.then(Vec::new),
            kept,
            sinks_moved: false,
            changed: false,
            letters_changed: false,
        })
    }

    /// Ends the work; none when nothing was changed.
    pub(super) fn finish(mut self) -> Outcome<Option<News>> {
        if !self.changed {
            return Ok(None);
        }
        if self.sinks_moved {
            self.remove_delivered()?;
        }
        if self.counters != Counters::load(&self.meta)? {
            self.counters.save(&mut self.meta)?;
        }
        Ok(Some(News {
            end: self.counters.sequence,
            letters: self.letters_changed,
            log: self.log.unwrap_or_default(),
        }))
    }

    pub(super) fn ensure_unit(&mut self, key: UnitKey) -> Outcome<UnitRow> {
        let name = serde_json::to_vec(&key)?;
        let mut ids = self.tx.open_table(tables::UNIT_IDS)?;
        let known = ids.get(name.as_slice())?.map(|id| id.value());
        if let Some(id) = known {
            let row = self.units.get(id)?.ok_or_else(|| missing_row(UnitId(id)))?;
            let (head, state) = Head::split(row.value())?;
            return Ok(UnitRow {
                id: UnitId(id),
                key,
                state: serde_json::from_slice(state)?,
                due: head.due,
            });
        }
        self.changed = true;
        let id = self.counters.unit;
        self.counters.unit += 1;
        ids.insert(name.as_slice(), id)?;
        self.tx
            .open_table(tables::UNIT_NAMES)?
            .insert(id, name.as_slice())?;
        let state = UnitState::default();
        self.units
            .insert(id, Head::default().row(&state)?.as_slice())?;
        Ok(UnitRow {
            id: UnitId(id),
            key,
            state,
            due: None,
        })
    }

    pub(super) fn page(&mut self, commit: Commit) -> Outcome<Result<Seen, StoreError>> {
        let Some(mut head) = self.head(commit.unit)? else {
            return Ok(Err(StoreError::UnknownUnit { unit: commit.unit }));
        };
        let mut seen = Seen::default();
        if let Some(most) = commit.dedup.most
            && let Some(refusal) = self.too_many(&commit, &head, most)?
        {
            return Ok(Err(refusal));
        }
        let news = self.sift(&commit, &mut head, &mut seen)?;
        self.put_in_outbox(&commit, &news)?;
        if commit.dedup.keep {
            self.keep(&commit, &mut seen)?;
        }
        for (key, validator) in &commit.validators {
            self.set_validator(key, validator.as_ref())?;
        }
        if !commit.budgets.is_empty() {
            let mut budgets = self.tx.open_table(tables::BUDGETS)?;
            for (key, row) in &commit.budgets {
                budgets.insert(
                    tables::budget_key(key).as_slice(),
                    serde_json::to_vec(row)?.as_slice(),
                )?;
            }
        }
        let conclusion = (commit.conclude)(&seen);
        self.conclude(commit.unit, head, conclusion)?;
        Ok(Ok(seen))
    }

    pub(super) fn update_unit(
        &mut self,
        unit: UnitId,
        change: Box<dyn FnOnce(UnitState) -> Conclusion + Send>,
    ) -> Outcome<Result<(), StoreError>> {
        let (head, state) = {
            let Some(row) = self.units.get(unit.0)? else {
                return Ok(Err(StoreError::UnknownUnit { unit }));
            };
            let (head, state) = Head::split(row.value())?;
            (head, serde_json::from_slice(state)?)
        };
        self.conclude(unit, head, change(state))?;
        Ok(Ok(()))
    }

    fn head(&self, unit: UnitId) -> Outcome<Option<Head>> {
        match self.units.get(unit.0)? {
            Some(row) => Ok(Some(Head::split(row.value())?.0)),
            None => Ok(None),
        }
    }

    fn conclude(&mut self, unit: UnitId, mut head: Head, conclusion: Conclusion) -> Outcome<()> {
        self.changed = true;
        if let Some(due) = conclusion.due
            && due != head.due
        {
            if let Some(old) = head.due {
                self.due.remove(tables::due_key(old, unit).as_slice())?;
            }
            if let Some(new) = due {
                self.due.insert(tables::due_key(new, unit).as_slice(), ())?;
            }
            head.due = due;
        }
        if let Some(poll) = conclusion.poll {
            self.add_poll(unit, &mut head, poll)?;
        }
        if let Some(walk) = conclusion.keep_validators_of {
            self.keep_validators(unit, walk)?;
        }
        self.set_reviews(&conclusion.review)?;
        for note in &conclusion.forget_notes {
            self.set_note(note, None)?;
        }
        self.units
            .insert(unit.0, head.row(&conclusion.state)?.as_slice())?;
        Ok(())
    }

    fn set_validator(&mut self, key: &ValidatorKey, validator: Option<&Validator>) -> Outcome<()> {
        let key = tables::validator_key(key);
        match validator {
            Some(validator) => {
                let mut row = validator.walk.to_be_bytes().to_vec();
                serde_json::to_writer(&mut row, validator)?;
                self.validators.insert(key.as_slice(), row.as_slice())?;
            }
            None => {
                self.validators.remove(key.as_slice())?;
            }
        }
        Ok(())
    }

    fn keep_validators(&mut self, unit: UnitId, walk: u64) -> Outcome<()> {
        let bounds = tables::of_unit(unit);
        let walk = walk.to_be_bytes();
        let mut old = Vec::new();
        for row in self.validators.range::<&[u8]>(tables::slices(&bounds))? {
            let (key, value) = row?;
            if !value.value().starts_with(&walk) {
                old.push(key.value().to_vec());
            }
        }
        for key in old {
            self.validators.remove(key.as_slice())?;
        }
        Ok(())
    }

    pub(super) fn set_credential(&mut self, key: &str, sealed: Option<&[u8]>) -> Outcome<()> {
        self.changed = true;
        let mut credentials = self.tx.open_table(tables::CREDENTIALS)?;
        match sealed {
            Some(sealed) => credentials.insert(key, sealed)?,
            None => credentials.remove(key)?,
        };
        Ok(())
    }

    pub(super) fn set_note(&mut self, key: &str, value: Option<&[u8]>) -> Outcome<()> {
        self.changed = true;
        let mut notes = self.tx.open_table(tables::NOTES)?;
        match value {
            Some(value) => notes.insert(key, value)?,
            None => notes.remove(key)?,
        };
        Ok(())
    }
}

fn missing_row(unit: UnitId) -> Trouble {
    Trouble::Row(format!("unit {} has a name and no row", unit.0))
}
