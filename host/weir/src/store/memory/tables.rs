//! What a store in memory holds, and what each operation does to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_rules::model::Timestamp;
use weir_rules::unit::UnitState;

use super::Committed;
use super::letters::Letters;
use super::outbox::Outbox;
use super::polls::PollLog;
use super::review::Review;
use crate::store::intent_note;
use crate::store::record::{Remembered, Sight};
use crate::store::{
    BudgetKey, BudgetRow, Commit, Conclusion, Handled, OutboxEntry, PollRow, PollsKept,
    PreparedRecord, RecordRow, Seen, StoreError, Swept, Ticket, UnitId, UnitKey, UnitRow,
    Validator, ValidatorKey, hex,
};

/// All tables.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) outbox: Outbox,
    pub(super) letters: Letters,
    pub(super) review: Review,
    /// The unit with the number 1 comes first.
    units: Vec<Unit>,
    ids: HashMap<Arc<UnitKey>, UnitId>,
    due: BTreeSet<(Timestamp, UnitId)>,
    budgets: BTreeMap<BudgetKey, BudgetRow>,
    polls: PollLog,
    credentials: BTreeMap<String, Vec<u8>>,
    notes: BTreeMap<String, Vec<u8>>,
}

/// One unit, with all that is its own.
struct Unit {
    key: Arc<UnitKey>,
    state: UnitState,
    due: Option<Timestamp>,
    /// Records of an earlier epoch are forgotten.
    epoch: u32,
    /// Records of this epoch, deleted ones included.
    known: u64,
    /// The highest revision that was forgotten.
    floor: u32,
    records: BTreeMap<String, Remembered>,
    /// The text of records that other streams are polled for.
    kept: BTreeMap<String, String>,
    validators: HashMap<[u8; 32], Validator>,
}

impl Unit {
    fn row(&self, id: UnitId) -> UnitRow {
        UnitRow {
            id,
            key: (*self.key).clone(),
            state: self.state.clone(),
            due: self.due,
        }
    }

    /// Would the page make the unit remember more than it may?
    fn too_many(&self, commit: &Commit) -> Option<StoreError> {
        let most = commit.dedup.most?;
        let more = commit
            .records
            .iter()
            .filter(|record| {
                let known = self.records.get(&record.id);
                known.is_none_or(|row| row.epoch != self.epoch)
            })
            .count() as u64;
        let known = self.known;
        let full = more > 0 && known.saturating_add(more) > most;
        full.then_some(StoreError::TooManyRecords { known, more, most })
    }

    /// Decides for each record of a page whether it is news; changes nothing yet.
    fn sift<'c>(&self, commit: &'c Commit, seen: &mut Seen) -> News<'c> {
        let mut news = News::default();
        for record in &commit.records {
            // A page may have a record twice.
            let earlier = news.rows.get(record.id.as_str()).copied();
            let known = earlier.or_else(|| self.records.get(&record.id).copied());
            let (deleted, now) = (record.deleted, commit.seen_at);
            let (op, row) = match known {
                None => {
                    news.known += 1;
                    let first =
                        Remembered::first(record.hash, deleted, now, self.epoch, self.floor);
                    (Remembered::first_op(deleted), first)
                }
                Some(old) => match old.seen_again(record.hash, deleted, now, self.epoch) {
                    Sight::Same => {
                        seen.unchanged += 1;
                        continue;
                    }
                    Sight::News(op, row) => {
                        if old.last_changed >= commit.dedup.walk_began {
                            seen.doubles.push((record.id.clone(), hex(&old.hash)));
                        }
                        news.known += u64::from(old.epoch != self.epoch);
                        (op, row)
                    }
                },
            };
            let lag = record.updated_at.map(|stamp| now.saturating_sub(stamp));
            seen.count(op, lag);
            news.entries
                .push(self.entry(record, op, row.revision, commit.seen_at));
            news.rows.insert(&record.id, row);
        }
        news
    }

    /// Remembers what was decided.
    fn remember(&mut self, rows: HashMap<&str, Remembered>, known: u64) {
        self.known += known;
        for (id, row) in rows {
            match self.records.get_mut(id) {
                Some(old) => *old = row,
                None => {
                    self.records.insert(id.to_owned(), row);
                }
            }
        }
    }

    /// Keeps the text of a page's records.
    fn keep(&mut self, records: &[PreparedRecord]) {
        for record in records {
            if record.deleted {
                self.kept.remove(&record.id);
            } else {
                let text = record.data.as_str().to_owned();
                self.kept.insert(record.id.clone(), text);
            }
        }
    }

    fn entry(
        &self,
        record: &PreparedRecord,
        op: crate::store::Op,
        revision: u32,
        seen_at: Timestamp,
    ) -> OutboxEntry {
        OutboxEntry {
            sequence: 0,
            unit: self.key.clone(),
            id: record.id.clone(),
            revision: u64::from(revision),
            op,
            updated_at: record.updated_at,
            seen_at,
            data: record.data.clone(),
        }
    }
}

/// What a page brings, before it is stored.
#[derive(Default)]
struct News<'c> {
    entries: Vec<OutboxEntry>,
    rows: HashMap<&'c str, Remembered>,
    /// Records that were not known before.
    known: u64,
}

/// The lease of a page, when it arrived, and its records.
struct Page<'a> {
    ticket: Option<Ticket>,
    seen_at: Option<Timestamp>,
    records: &'a [PreparedRecord],
    seen: &'a Seen,
}

impl Tables {
    fn unit(&self, id: UnitId) -> Option<&Unit> {
        self.units.get(place(id)?)
    }

    fn unit_mut(&mut self, id: UnitId) -> Result<&mut Unit, StoreError> {
        place(id)
            .and_then(|place| self.units.get_mut(place))
            .ok_or(StoreError::UnknownUnit { unit: id })
    }

    pub(super) fn contains(&self, id: UnitId) -> bool {
        self.unit(id).is_some()
    }

    pub(super) fn find(&self, key: &UnitKey) -> Option<UnitId> {
        self.ids.get(key).copied()
    }

    pub(super) fn key_of(&self, id: UnitId) -> Option<Arc<UnitKey>> {
        self.unit(id).map(|unit| unit.key.clone())
    }

    pub(super) fn named(&self, name: &str) -> Option<UnitId> {
        let found = self.ids.iter().find(|(key, _)| key.to_string() == name);
        found.map(|(_, id)| *id)
    }

    pub(super) fn row(&self, id: UnitId) -> Option<UnitRow> {
        self.unit(id).map(|unit| unit.row(id))
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = UnitRow> + '_ {
        (1..)
            .zip(&self.units)
            .map(|(id, unit)| unit.row(UnitId(id)))
    }

    pub(super) fn ensure(&mut self, key: &UnitKey) -> UnitRow {
        if let Some(row) = self.find(key).and_then(|id| self.row(id)) {
            return row;
        }
        let key = Arc::new(key.clone());
        let unit = Unit {
            key: key.clone(),
            state: UnitState::default(),
            due: None,
            epoch: 0,
            known: 0,
            floor: 0,
            records: BTreeMap::new(),
            kept: BTreeMap::new(),
            validators: HashMap::new(),
        };
        let id = UnitId(self.units.len() as u64 + 1);
        let row = unit.row(id);
        self.units.push(unit);
        self.ids.insert(key, id);
        row
    }

    pub(super) fn page(
        &mut self,
        mut commit: Commit,
        kept: &PollsKept,
        told: impl FnOnce(&Committed<'_>),
    ) -> Result<Seen, StoreError> {
        let id = commit.unit;
        let unit = self.unit_mut(id)?;
        if let Some(refusal) = unit.too_many(&commit) {
            return Err(refusal);
        }
        let conclude = std::mem::replace(&mut commit.conclude, Box::new(|_| Conclusion::default()));
        let mut seen = Seen::default();
        let unit = self.unit_mut(id)?;
        let News {
            entries,
            rows,
            known,
        } = unit.sift(&commit, &mut seen);
        if commit.dedup.keep {
            for record in &commit.records {
                match (record.deleted, unit.kept.contains_key(&record.id)) {
                    (false, false) => seen.born.push(record.id.clone()),
                    (true, true) => seen.gone.push(record.id.clone()),
                    _ => {}
                }
            }
            let unlisted = commit.unlisted.iter();
            seen.gone
                .extend(unlisted.filter(|id| unit.kept.contains_key(*id)).cloned());
        }
        let conclusion = caught(|| conclude(&seen))?;
        unit.remember(rows, known);
        if commit.dedup.keep {
            unit.keep(&commit.records);
            for id in &commit.unlisted {
                unit.kept.remove(id);
            }
        }
        for (key, validator) in commit.validators.drain(..) {
            // A validator belongs to its own unit, which is nearly always this one.
            let unit = self.unit_mut(key.unit)?;
            match validator {
                Some(validator) => unit.validators.insert(key.request, validator),
                None => unit.validators.remove(&key.request),
            };
        }
        self.outbox.put(entries);
        self.budgets.extend(commit.budgets.drain(..));
        let page = Page {
            ticket: Some(commit.ticket),
            seen_at: Some(commit.seen_at),
            records: &commit.records,
            seen: &seen,
        };
        self.conclude(id, conclusion, kept, &page, told)?;
        Ok(seen)
    }

    pub(super) fn update(
        &mut self,
        id: UnitId,
        kept: &PollsKept,
        change: Box<dyn FnOnce(UnitState) -> Conclusion + Send>,
        told: impl FnOnce(&Committed<'_>),
    ) -> Result<(), StoreError> {
        let state = self.unit_mut(id)?.state.clone();
        let conclusion = caught(|| change(state))?;
        let page = Page {
            ticket: None,
            seen_at: None,
            records: &[],
            seen: &Seen::default(),
        };
        self.conclude(id, conclusion, kept, &page, told)
    }

    fn conclude(
        &mut self,
        id: UnitId,
        conclusion: Conclusion,
        kept: &PollsKept,
        page: &Page<'_>,
        told: impl FnOnce(&Committed<'_>),
    ) -> Result<(), StoreError> {
        let unit = place(id)
            .and_then(|place| self.units.get_mut(place))
            .ok_or(StoreError::UnknownUnit { unit: id })?;
        if let Some(due) = conclusion.due
            && due != unit.due
        {
            if let Some(old) = unit.due {
                self.due.remove(&(old, id));
            }
            if let Some(new) = due {
                self.due.insert((new, id));
            }
            unit.due = due;
        }
        let ended = conclusion.poll.is_some();
        if let Some(poll) = conclusion.poll {
            self.polls.add(id, poll, kept);
        }
        if let Some(walk) = conclusion.keep_validators_of {
            unit.validators
                .retain(|_, validator| validator.walk == walk);
        }
        unit.state = conclusion.state;
        for note in &conclusion.forget_notes {
            self.notes.remove(note);
        }
        told(&Committed {
            unit: id,
            key: &unit.key,
            ticket: page.ticket,
            seen_at: page.seen_at,
            records: page.records,
            seen: page.seen,
            state: &unit.state,
            due: unit.due,
            poll: ended.then(|| self.polls.last()).flatten(),
            review: &conclusion.review,
        });
        self.review.set(conclusion.review);
        Ok(())
    }

    pub(super) fn forget_records(&mut self, id: UnitId) -> Result<u64, StoreError> {
        let unit = self.unit_mut(id)?;
        unit.epoch = unit.epoch.saturating_add(1);
        Ok(std::mem::take(&mut unit.known))
    }

    pub(super) fn forget_older(
        &mut self,
        id: UnitId,
        before: Timestamp,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Swept, StoreError> {
        let unit = self.unit_mut(id)?;
        let mut swept = Swept::default();
        let mut old = Vec::new();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = unit.records.range::<str, _>((from, Bound::Unbounded));
        for (place, (id, row)) in (1..).zip(rows) {
            if row.last_changed < before || row.epoch != unit.epoch {
                unit.floor = unit.floor.max(row.revision);
                swept.forgotten += u64::from(row.epoch == unit.epoch);
                old.push(id.clone());
            }
            if place >= limit {
                swept.next = Some(id.clone());
                break;
            }
        }
        for id in old {
            unit.records.remove(&id);
        }
        unit.known = unit.known.saturating_sub(swept.forgotten);
        Ok(swept)
    }

    pub(super) fn validator(&self, key: &ValidatorKey) -> Option<Validator> {
        self.unit(key.unit)?.validators.get(&key.request).cloned()
    }

    pub(super) fn budgets(&self) -> Vec<(BudgetKey, BudgetRow)> {
        let rows = self.budgets.iter();
        rows.map(|(key, row)| (key.clone(), row.clone())).collect()
    }

    pub(super) fn polls(&self, unit: Option<UnitId>, limit: usize) -> Vec<PollRow> {
        self.polls.newest_first(unit).take(limit).cloned().collect()
    }

    pub(super) fn each_poll(&self, unit: Option<UnitId>, each: &mut dyn FnMut(PollRow) -> bool) {
        for row in self.polls.newest_first(unit) {
            if !each(row.clone()) {
                return;
            }
        }
    }

    pub(super) fn records(
        &self,
        unit: UnitId,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<RecordRow> {
        let Some(unit) = self.unit(unit) else {
            return Vec::new();
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        unit.records
            .range::<str, _>((from, Bound::Unbounded))
            .filter(|(_, record)| record.epoch == unit.epoch)
            .take(limit)
            .map(|(id, record)| record.row(id.clone()))
            .collect()
    }

    pub(super) fn kept_record(&self, unit: UnitId, id: &str) -> Option<String> {
        self.unit(unit)?.kept.get(id).cloned()
    }

    pub(super) fn for_each_kept(&self, unit: UnitId, each: &mut dyn FnMut(&str)) {
        if let Some(unit) = self.unit(unit) {
            unit.kept.keys().for_each(|id| each(id));
        }
    }

    pub(super) fn record_count(&self, unit: UnitId) -> u64 {
        self.unit(unit).map_or(0, |unit| unit.known)
    }

    pub(super) fn due(&self, until: Timestamp, limit: usize) -> Vec<(Timestamp, UnitId)> {
        let until = (until, UnitId(u64::MAX));
        self.due.range(..=until).take(limit).copied().collect()
    }

    /// Does a sink's report change anything?
    pub(super) fn would_change(&self, sink: &str, done: &Handled) -> bool {
        let settles = done.settled && self.notes.contains_key(&intent_note(sink));
        self.outbox.has_sink(sink)
            && (settles || Letters::concern(done) || self.outbox.would_move(sink, done.up_to))
    }

    pub(super) fn delivered(&mut self, sink: &str, done: &Handled) {
        if !self.outbox.has_sink(sink) {
            // The configuration no longer names it.
            return;
        }
        self.outbox.delivered(sink, done.up_to);
        self.letters.handled(sink, done);
        if done.settled {
            self.notes.remove(&intent_note(sink));
        }
    }

    pub(super) fn credential(&self, key: &str) -> Option<Vec<u8>> {
        self.credentials.get(key).cloned()
    }

    pub(super) fn set_credential(&mut self, key: &str, sealed: Option<Vec<u8>>) {
        match sealed {
            Some(sealed) => self.credentials.insert(key.to_owned(), sealed),
            None => self.credentials.remove(key),
        };
    }

    pub(super) fn note(&self, key: &str) -> Option<Vec<u8>> {
        self.notes.get(key).cloned()
    }

    pub(super) fn set_note(&mut self, key: &str, value: Option<Vec<u8>>) {
        match value {
            Some(value) => self.notes.insert(key.to_owned(), value),
            None => self.notes.remove(key),
        };
    }

    /// What a new process finds is what was written as text, so it is read as text.
    pub(super) fn read_as_from_disk(&mut self) -> Result<(), StoreError> {
        for unit in &mut self.units {
            unit.state = through_text(&unit.state)?;
            for validator in unit.validators.values_mut() {
                *validator = through_text(validator)?;
            }
        }
        for budget in self.budgets.values_mut() {
            *budget = through_text(budget)?;
        }
        for letter in self.letters.all_mut() {
            *letter = through_text(letter)?;
        }
        for entry in self.review.all_mut() {
            *entry = through_text(entry)?;
        }
        for poll in self.polls.all_mut() {
            *poll = through_text(poll)?;
        }
        Ok(())
    }
}

/// A rule that panics fails its transaction, and the store lives on.
fn caught(conclude: impl FnOnce() -> Conclusion) -> Result<Conclusion, StoreError> {
    catch_unwind(AssertUnwindSafe(conclude)).map_err(|_| StoreError::Io {
        path: "memory".into(),
        detail: "a conclusion panicked, which is a fault of weir".to_owned(),
    })
}

fn place(id: UnitId) -> Option<usize> {
    usize::try_from(id.0.checked_sub(1)?).ok()
}

fn through_text<T: Serialize + DeserializeOwned>(row: &T) -> Result<T, StoreError> {
    let read = serde_json::to_vec(row).and_then(|text| serde_json::from_slice(&text));
    read.map_err(|error| StoreError::Damaged {
        path: "memory".into(),
        detail: error.to_string(),
    })
}
