//! The tables, their keys and their migrations.
//!
//! Composite keys are big-endian, so that a range scan meets them in order. The schema number is the count of
//! migrations that a file has been through; a new file goes through all of them.

use std::ops::Bound;

use redb::{ReadTransaction, ReadableDatabase, TableDefinition, TableError, WriteTransaction};

use super::trouble::{Outcome, Trouble};
use crate::store::{BudgetKey, ReviewEntry, ReviewId, ReviewKind, UnitId, ValidatorKey, record};
use weir_rules::model::Timestamp;

type Bytes = &'static [u8];

/// Schema number and counters.
pub(super) const META: TableDefinition<'_, &str, Bytes> = TableDefinition::new("meta");
/// The unit's name in JSON -> its number.
pub(super) const UNIT_IDS: TableDefinition<'_, Bytes, u64> = TableDefinition::new("unit_ids");
/// The unit's number -> its name in JSON.
pub(super) const UNIT_NAMES: TableDefinition<'_, u64, Bytes> = TableDefinition::new("unit_names");
/// The unit's number -> head and state.
pub(super) const UNITS: TableDefinition<'_, u64, Bytes> = TableDefinition::new("units");
/// Time, unit -> nothing: who is due, oldest first.
pub(super) const DUE: TableDefinition<'_, Bytes, ()> = TableDefinition::new("due");
/// Unit, record id -> what is remembered of it.
pub(super) const RECORDS: TableDefinition<'_, Bytes, &[u8; record::LEN]> =
    TableDefinition::new("records");
/// First sequence -> the packed entries of one page or a part of it.
pub(super) const OUTBOX: TableDefinition<'_, u64, Bytes> = TableDefinition::new("outbox");
/// Sink -> the first sequence that it has not taken.
pub(super) const SINKS: TableDefinition<'_, &str, u64> = TableDefinition::new("sinks");
/// Sink, sequence -> dead letter in JSON.
pub(super) const DEAD: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("dead_letters");
/// Unit, request -> walk, validator in JSON.
pub(super) const VALIDATORS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("validators");
/// Who, bucket -> budget in JSON.
pub(super) const BUDGETS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("budgets");
/// Unit, number of the poll -> row in JSON.
pub(super) const POLLS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("polls");
/// Number of the poll -> unit: the polls of all units in the order in which they ended.
pub(super) const POLL_ORDER: TableDefinition<'_, u64, u64> = TableDefinition::new("poll_order");
/// Credential -> its sealed state.
pub(super) const CREDENTIALS: TableDefinition<'_, &str, Bytes> =
    TableDefinition::new("credentials");
/// Unit, kind, number -> head, entry in JSON: what waits for a person.
pub(super) const REVIEW: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("review");
/// Unit, record id -> the record's text: where other streams are polled for each record.
pub(super) const KEPT: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("kept_records");
/// Record of a unit -> what it was given by a store that is lost: of a restored store alone.
pub(super) const GIVEN: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("given");
/// Small named values.
pub(super) const NOTES: TableDefinition<'_, &str, Bytes> = TableDefinition::new("notes");

/// Does something with each table; what copies a store must know all of them.
macro_rules! each_table {
    ($do:ident) => {
        $do!(tables::META);
        $do!(tables::UNIT_IDS);
        $do!(tables::UNIT_NAMES);
        $do!(tables::UNITS);
        $do!(tables::DUE);
        $do!(tables::RECORDS);
        $do!(tables::OUTBOX);
        $do!(tables::SINKS);
        $do!(tables::DEAD);
        $do!(tables::VALIDATORS);
        $do!(tables::BUDGETS);
        $do!(tables::POLLS);
        $do!(tables::POLL_ORDER);
        $do!(tables::CREDENTIALS);
        $do!(tables::REVIEW);
        $do!(tables::KEPT);
        $do!(tables::GIVEN);
        $do!(tables::NOTES);
    };
}
pub(super) use each_table;

const SCHEMA_KEY: &str = "schema";
const COUNTERS_KEY: &str = "counters";

/// One step forward. It must leave the file readable by the code of its own schema number.
type Migration = fn(&WriteTransaction) -> Outcome<()>;

const MIGRATIONS: &[Migration] = &[
    create_tables,
    add_credentials,
    add_review,
    add_kept,
    add_given,
];

/// The schema that this program writes.
pub(super) fn newest_schema() -> u64 {
    MIGRATIONS.len() as u64
}

fn create_tables(tx: &WriteTransaction) -> Outcome<()> {
    tx.open_table(UNIT_IDS)?;
    tx.open_table(UNIT_NAMES)?;
    tx.open_table(UNITS)?;
    tx.open_table(DUE)?;
    tx.open_table(RECORDS)?;
    tx.open_table(OUTBOX)?;
    tx.open_table(SINKS)?;
    tx.open_table(DEAD)?;
    tx.open_table(VALIDATORS)?;
    tx.open_table(BUDGETS)?;
    tx.open_table(POLLS)?;
    tx.open_table(POLL_ORDER)?;
    tx.open_table(NOTES)?;
    let first = Counters {
        unit: 1,
        sequence: 1,
        poll: 1,
        entries: 0,
        bytes: 0,
    };
    first.save(&mut tx.open_table(META)?)
}

fn add_credentials(tx: &WriteTransaction) -> Outcome<()> {
    tx.open_table(CREDENTIALS)?;
    Ok(())
}

fn add_review(tx: &WriteTransaction) -> Outcome<()> {
    tx.open_table(REVIEW)?;
    Ok(())
}

fn add_kept(tx: &WriteTransaction) -> Outcome<()> {
    tx.open_table(KEPT)?;
    Ok(())
}

fn add_given(tx: &WriteTransaction) -> Outcome<()> {
    tx.open_table(GIVEN)?;
    Ok(())
}

/// The schema of a file; none when nothing has ever been committed to it.
pub(super) fn schema(db: &impl ReadableDatabase) -> Outcome<Option<u64>> {
    let tx = db.begin_read()?;
    let meta = match tx.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match meta.get(SCHEMA_KEY)? {
        Some(value) => Ok(Some(number(value.value())?)),
        None => Err(Trouble::Row("it has no schema number".into())),
    }
}

/// Brings a file from `schema` to the newest one, in one transaction.
pub(super) fn migrate(db: &redb::Database, schema: u64) -> Outcome<()> {
    let Some(steps) = usize::try_from(schema)
        .ok()
        .and_then(|at| MIGRATIONS.get(at..))
    else {
        return Err(Trouble::Row(format!("its schema {schema} is not known")));
    };
    if steps.is_empty() {
        return Ok(());
    }
    let mut tx = db.begin_write()?;
    tx.set_quick_repair(true);
    for step in steps {
        step(&tx)?;
    }
    tx.open_table(META)?
        .insert(SCHEMA_KEY, newest_schema().to_be_bytes().as_slice())?;
    tx.commit()?;
    Ok(())
}

/// Numbers that are given once, and running totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// The next unit's number.
    pub(super) unit: u64,
    /// The next outbox entry's sequence.
    pub(super) sequence: u64,
    /// The next poll's number.
    pub(super) poll: u64,
    /// Entries in the outbox.
    pub(super) entries: u64,
    /// Bytes of their data.
    pub(super) bytes: u64,
}

impl Counters {
    pub(super) fn load(meta: &impl redb::ReadableTable<&'static str, Bytes>) -> Outcome<Self> {
        let Some(row) = meta.get(COUNTERS_KEY)? else {
            return Err(Trouble::Row("it has no counters".into()));
        };
        let mut row = row.value().chunks(8);
        let mut next = || number(row.next().unwrap_or_default());
        Ok(Counters {
            unit: next()?,
            sequence: next()?,
            poll: next()?,
            entries: next()?,
            bytes: next()?,
        })
    }

    pub(super) fn read(tx: &ReadTransaction) -> Outcome<Self> {
        Counters::load(&tx.open_table(META)?)
    }

    pub(super) fn save(&self, meta: &mut redb::Table<'_, &'static str, Bytes>) -> Outcome<()> {
        let mut row = Vec::with_capacity(40);
        for value in [
            self.unit,
            self.sequence,
            self.poll,
            self.entries,
            self.bytes,
        ] {
            row.extend_from_slice(&value.to_be_bytes());
        }
        meta.insert(COUNTERS_KEY, row.as_slice())?;
        Ok(())
    }
}

fn number(bytes: &[u8]) -> Outcome<u64> {
    bytes
        .try_into()
        .map(u64::from_be_bytes)
        .map_err(|_| Trouble::Row(format!("a number of {} bytes where 8 belong", bytes.len())))
}

/// Two numbers in an order that bytes sort in.
pub(super) fn pair(first: u64, second: u64) -> [u8; 16] {
    ((u128::from(first) << 64) | u128::from(second)).to_be_bytes()
}

/// The numbers of a [`pair`].
pub(super) fn unpair(key: &[u8]) -> Outcome<(u64, u64)> {
    let key: [u8; 16] = key
        .try_into()
        .map_err(|_| Trouble::Row(format!("a key of {} bytes where 16 belong", key.len())))?;
    let both = u128::from_be_bytes(key);
    Ok(((both >> 64) as u64, both as u64))
}

/// A time as a number that sorts like it: times before 1970 come first.
pub(super) fn sortable(time: Timestamp) -> u64 {
    (time as u64) ^ (1 << 63)
}

/// The time of a [`sortable`] number.
pub(super) fn unsortable(number: u64) -> Timestamp {
    (number ^ (1 << 63)) as Timestamp
}

/// A key of [`DUE`].
pub(super) fn due_key(due: Timestamp, unit: UnitId) -> [u8; 16] {
    pair(sortable(due), unit.0)
}

/// A key of [`VALIDATORS`].
pub(super) fn validator_key(key: &ValidatorKey) -> [u8; 40] {
    let mut bytes = [0; 40];
    let (unit, request) = bytes.split_at_mut(8);
    unit.copy_from_slice(&key.unit.0.to_be_bytes());
    request.copy_from_slice(&key.request);
    bytes
}

/// A key of [`BUDGETS`]: NUL separates, as it is in no name.
pub(super) fn budget_key(key: &BudgetKey) -> Vec<u8> {
    [key.who.as_bytes(), b"\0", key.bucket.as_bytes()].concat()
}

/// A key of [`REVIEW`].
pub(super) fn review_key(id: ReviewId) -> [u8; 13] {
    let mut key = [0; 13];
    let (unit, rest) = key.split_at_mut(8);
    unit.copy_from_slice(&id.unit.0.to_be_bytes());
    let (kind, number) = rest.split_at_mut(1);
    kind.fill(id.kind.letter() as u8);
    number.copy_from_slice(&id.number.to_be_bytes());
    key
}

/// What stands before the JSON of a row of [`REVIEW`]: given up or not, and when it was last met.
pub(super) fn review_head(entry: &ReviewEntry) -> [u8; REVIEW_HEAD] {
    let mut head = [0; REVIEW_HEAD];
    let (dropped, last) = head.split_at_mut(1);
    dropped.fill(u8::from(entry.dropped));
    last.copy_from_slice(&sortable(entry.last).to_be_bytes());
    head
}

/// Bytes of a [`review_head`].
pub(super) const REVIEW_HEAD: usize = 9;

/// Kind, given up or not, and a number that grows with the time of the last sight.
pub(super) fn review_of(key: &[u8], row: &[u8]) -> Outcome<(ReviewKind, bool, u64)> {
    let kind = key
        .get(8)
        .and_then(|letter| ReviewKind::of_letter(char::from(*letter)));
    match (kind, row.split_first_chunk::<REVIEW_HEAD>()) {
        (Some(kind), Some(([dropped, last @ ..], _))) => {
            Ok((kind, *dropped == 1, u64::from_be_bytes(*last)))
        }
        _ => Err(Trouble::Row("an entry for review does not read".into())),
    }
}

/// A key of [`DEAD`].
pub(super) fn dead_key(sink: &str, sequence: u64) -> Vec<u8> {
    [sink.as_bytes(), b"\0", &sequence.to_be_bytes()].concat()
}

/// The borders of the keys of [`DEAD`] that are of this sink, or of all of them.
pub(super) fn of_sink(sink: Option<&str>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    match sink {
        Some(sink) => (
            Bound::Included([sink.as_bytes(), b"\0"].concat()),
            Bound::Excluded([sink.as_bytes(), b"\x01"].concat()),
        ),
        None => (Bound::Unbounded, Bound::Unbounded),
    }
}

/// The borders of all keys that begin with this unit's number.
pub(super) fn of_unit(unit: UnitId) -> (Bound<[u8; 8]>, Bound<[u8; 8]>) {
    let from = Bound::Included(unit.0.to_be_bytes());
    let to = match unit.0.checked_add(1) {
        Some(next) => Bound::Excluded(next.to_be_bytes()),
        None => Bound::Unbounded,
    };
    (from, to)
}

/// The borders as the engine wants them.
pub(super) fn slices<K: AsRef<[u8]>>(
    bounds: &(Bound<K>, Bound<K>),
) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (
        bounds.0.as_ref().map(AsRef::as_ref),
        bounds.1.as_ref().map(AsRef::as_ref),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn due_keys_sort_like_their_times(one in any::<(i64, u64)>(), other in any::<(i64, u64)>()) {
            let key = |(time, unit): (i64, u64)| due_key(time, UnitId(unit));
            prop_assert_eq!(key(one).cmp(&key(other)), one.cmp(&other));
            let (time, unit) = unpair(&key(one)).unwrap();
            prop_assert_eq!((unsortable(time), unit), one);
        }

        #[test]
        fn a_units_keys_lie_within_its_borders(unit in any::<u64>(), id in ".*") {
            let mut key = Vec::new();
            record::key_into(&mut key, unit, &id);
            prop_assert!(holds(unit, &key));
            prop_assert!(!holds(unit.wrapping_add(1), &key));
            prop_assert!(!holds(unit.wrapping_sub(1), &key));
        }
    }

    fn holds(unit: u64, key: &[u8]) -> bool {
        use std::ops::RangeBounds;
        let bounds = of_unit(UnitId(unit));
        let borders: (Bound<&[u8]>, Bound<&[u8]>) = slices(&bounds);
        RangeBounds::<&[u8]>::contains(&(borders.0.as_ref(), borders.1.as_ref()), &key)
    }
}
