//! What a plan found.

use super::{Error, Plan, Raw};
use crate::{Fault, Record, Timestamp, time};

/// What a [`Plan`] found in one answer.
#[derive(Debug)]
pub struct Listing<'p, 'a> {
    pub(super) plan: &'p Plan,
    pub(super) records: Vec<Raw<'a>>,
    /// As many per record as the plan has fields.
    pub(super) fields: Vec<Option<Raw<'a>>>,
    pub(super) outside: Vec<Option<Raw<'a>>>,
}

impl<'p, 'a> Listing<'p, 'a> {
    /// How many records the answer holds.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Does it hold none?
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// What was found around the records, by the number of the plan's [`outside`](Plan::outside).
    pub fn outside(&self, number: usize) -> Option<Raw<'a>> {
        self.outside.get(number).copied().flatten()
    }

    /// The same, but `null` counts as nothing.
    pub fn outside_value(&self, number: usize) -> Option<Raw<'a>> {
        self.outside(number).filter(|value| !value.is_null())
    }

    /// The records, in the vendor's order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_, 'a>> + DoubleEndedIterator {
        let width = self.plan.fields.len();
        self.records
            .iter()
            .enumerate()
            .map(move |(index, &raw)| Row {
                plan: self.plan,
                index,
                raw,
                fields: self
                    .fields
                    .get(index * width..(index + 1) * width)
                    .unwrap_or_default(),
            })
    }

    /// The last record, where keyset paging goes on.
    pub fn last(&self) -> Option<Row<'_, 'a>> {
        self.rows().next_back()
    }

    pub(super) fn into_records(self) -> Vec<Raw<'a>> {
        self.records
    }
}

/// One record, and the fields of it that the plan named.
#[derive(Clone, Copy, Debug)]
pub struct Row<'l, 'a> {
    plan: &'l Plan,
    index: usize,
    /// The whole record.
    pub raw: Raw<'a>,
    fields: &'l [Option<Raw<'a>>],
}

impl<'a> Row<'_, 'a> {
    /// A field, by its number in the plan.
    pub fn get(&self, number: usize) -> Option<Raw<'a>> {
        self.fields.get(number).copied().flatten()
    }

    /// A field without which the answer makes no sense; the fault names its path.
    pub fn need(&self, number: usize) -> Result<Raw<'a>, Error> {
        self.get(number).ok_or_else(|| Error::Missing {
            path: self.path(number),
        })
    }

    /// A field that identifies the record: a string, or a number with its digits as sent.
    pub fn id(&self, number: usize) -> Result<String, Error> {
        let raw = self.need(number)?;
        raw.id().ok_or_else(|| Error::Shape {
            path: self.path(number),
            wanted: "an id",
            found: raw.kind(),
        })
    }

    /// A field that says when; none when it is missing or cannot be read.
    pub fn time(&self, number: usize, format: time::Format) -> Option<Timestamp> {
        self.get(number)?.time(format)
    }

    /// The record for the host, under this id. `text` is the whole text that the plan read.
    pub fn record(&self, text: &str, id: impl Into<String>) -> Record {
        Record::of(text, self.raw.json(), id)
    }

    /// The record for the host, under the id in this field. Where none can be read (it is missing, null, an array) the
    /// record goes to the host without one: a single record like that is set aside for a person, and the rest of the page
    /// goes on.
    pub fn identified(&self, text: &str, number: usize) -> Record {
        self.record(text, self.id(number).unwrap_or_default())
    }

    /// Where a field of this record stands in the answer: `/items/17/id`.
    pub fn path(&self, number: usize) -> String {
        let base = self.plan.records.as_deref().unwrap_or_default();
        let field = self
            .plan
            .fields
            .get(number)
            .map(String::as_str)
            .unwrap_or_default();
        format!("{base}/{}{field}", self.index)
    }

    /// An incomplete answer, because of this field.
    pub fn fault(&self, number: usize, what: &str) -> Fault {
        Fault::incomplete(format!("{} {what}", self.path(number))).code("shape")
    }
}
