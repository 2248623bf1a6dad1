//! What a plan found.

use super::{Error, Plan, Raw};
use crate::{Fault, Record, Timestamp, time};

/// What a [`Plan`] found in one answer.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
/// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
/// let listing = plan.read(text)?;
/// assert_eq!(listing.len(), 2);
/// # Ok::<(), json::Error>(())
/// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// assert_eq!(listing.len(), 2);
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Does it hold none?
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// assert!(!listing.is_empty());
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// What was found around the records, by the number of the plan's [`outside`](Plan::outside).
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// assert_eq!(listing.outside(1).and_then(Raw::u64), Some(2));
    /// assert!(listing.outside(0).is_some_and(Raw::is_null));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn outside(&self, number: usize) -> Option<Raw<'a>> {
        self.outside.get(number).copied().flatten()
    }

    /// The same, but `null` counts as nothing.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// assert_eq!(listing.outside_value(0), None);
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn outside_value(&self, number: usize) -> Option<Raw<'a>> {
        self.outside(number).filter(|value| !value.is_null())
    }

    /// The records, in the vendor's order.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// let ids: Result<Vec<_>, _> = listing.rows().map(|row| row.id(0)).collect();
    /// assert_eq!(ids?, ["7", "9"]);
    /// # Ok::<(), json::Error>(())
    /// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// assert_eq!(listing.last().unwrap().id(0)?, "9");
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn last(&self) -> Option<Row<'_, 'a>> {
        self.rows().next_back()
    }

    pub(super) fn into_records(self) -> Vec<Raw<'a>> {
        self.records
    }
}

/// One record, and the fields of it that the plan named.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
/// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
/// let listing = plan.read(text)?;
/// let row = listing.rows().next().unwrap();
/// assert_eq!(row.raw.json(), r#"{"id":7,"at":1930384800}"#);
/// # Ok::<(), json::Error>(())
/// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// let row = listing.rows().next().unwrap();
    /// assert_eq!(row.get(0).and_then(Raw::u64), Some(7));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn get(&self, number: usize) -> Option<Raw<'a>> {
        self.fields.get(number).copied().flatten()
    }

    /// A field without which the answer makes no sense; the fault names its path.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// let error = listing.last().unwrap().need(1).unwrap_err();
    /// assert!(error.to_string().contains("/items/1/at"));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn need(&self, number: usize) -> Result<Raw<'a>, Error> {
        self.get(number).ok_or_else(|| Error::Missing {
            path: self.path(number),
        })
    }

    /// A field that identifies the record: a string, or a number with its digits as sent.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// let row = listing.rows().next().unwrap();
    /// assert_eq!(row.id(0)?, "7");
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn id(&self, number: usize) -> Result<String, Error> {
        let raw = self.need(number)?;
        raw.id().ok_or_else(|| Error::Shape {
            path: self.path(number),
            wanted: "an id",
            found: raw.kind(),
        })
    }

    /// A field that says when; none when it is missing or cannot be read.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// let row = listing.rows().next().unwrap();
    /// assert_eq!(row.time(1, time::Format::EpochSeconds), Some(1_930_384_800_000));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn time(&self, number: usize, format: time::Format) -> Option<Timestamp> {
        self.get(number)?.time(format)
    }

    /// The record for the host, under this id. `text` is the whole text that the plan read.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// let row = listing.rows().next().unwrap();
    /// let record = row.record(text, "item-7");
    /// assert_eq!(record.json(text), Some(row.raw.json()));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn record(&self, text: &str, id: impl Into<String>) -> Record {
        Record::of(text, self.raw.json(), id)
    }

    /// The record for the host, under the id in this field. Where none can be read (it is missing, null, an array) the
    /// record goes to the host without one: a single record like that is set aside for a person, and the rest of the page
    /// goes on.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// let row = listing.rows().next().unwrap();
    /// assert_eq!(row.identified(text, 0).id, "7");
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn identified(&self, text: &str, number: usize) -> Record {
        self.record(text, self.id(number).unwrap_or_default())
    }

    /// Where a field of this record stands in the answer: `/items/17/id`.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// let row = listing.rows().next().unwrap();
    /// assert_eq!(row.path(1), "/items/0/at");
    /// # Ok::<(), json::Error>(())
    /// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
    /// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
    /// let listing = plan.read(text)?;
    /// let row = listing.rows().next().unwrap();
    /// assert_eq!(row.fault(1, "lies in the future").class, Class::Incomplete);
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn fault(&self, number: usize, what: &str) -> Fault {
        Fault::incomplete(format!("{} {what}", self.path(number))).code("shape")
    }
}
