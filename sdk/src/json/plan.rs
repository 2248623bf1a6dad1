//! What is wanted of an answer, found in one pass over its text.

use super::listing::Listing;
use super::node::Node;
use super::scan::{Scan, looks_like_html};
use super::{Error, Raw};

/// What is wanted of an answer: where its records are, which fields of each, and what of the envelope around them. Made
/// once per answer, cheap; [`read`](Plan::read) then passes over the text once.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let text = r#"{"items":[{"id":7,"at":1930384800},{"id":9}],"next":null,"total":2}"#;
/// let plan = Plan::new("/items").field("/id").field("/at").outside("/next").outside("/total");
/// let listing = plan.read(text)?;
/// assert_eq!(listing.rows().len(), 2);
/// # Ok::<(), json::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Plan {
    envelope: Node,
    record: Node,
    /// The pointer to the array of records; none when only the envelope is wanted.
    pub(super) records: Option<String>,
    pub(super) fields: Vec<String>,
    outside: Vec<String>,
}

impl Plan {
    /// Records are the elements of the array at this pointer; `""` is the whole answer.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let plan = Plan::new("");
    /// assert_eq!(plan.read("[1,2,3]")?.len(), 3);
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn new(records: &str) -> Self {
        let mut plan = Plan {
            records: Some(records.to_owned()),
            ..Plan::default()
        };
        plan.envelope.mark(records, |node| node.records = true);
        plan
    }

    /// Only the envelope is wanted: the answer is one object, or its records are found otherwise.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let plan = Plan::single().outside("/status");
    /// assert_eq!(plan.read(r#"{"status":"done"}"#)?.outside(0).and_then(Raw::id).as_deref(), Some("done"));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn single() -> Self {
        Plan::default()
    }

    /// Adds a field of each record, by a pointer from the record. Fields are numbered in the order of adding.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let plan = Plan::new("").field("/user/login");
    /// assert_eq!(plan.read(r#"[{"user":{"login":"rowan"}}]"#)?.last().unwrap().id(0)?, "rowan");
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn field(mut self, pointer: &str) -> Self {
        let slot = self.fields.len();
        self.record.mark(pointer, |node| node.slots.push(slot));
        self.fields.push(pointer.to_owned());
        self
    }

    /// Adds something of the answer around the records, by a pointer from the top. Numbered in the order of adding.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let plan = Plan::new("/items").outside("/total");
    /// assert_eq!(plan.read(r#"{"items":[],"total":0}"#)?.outside(0).and_then(Raw::u64), Some(0));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn outside(mut self, pointer: &str) -> Self {
        let slot = self.outside.len();
        self.envelope.mark(pointer, |node| node.slots.push(slot));
        self.outside.push(pointer.to_owned());
        self
    }

    /// Passes over the text once. Fails when it is not JSON, is cut, or has no array where the records should be.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let plan = Plan::new("/items");
    /// assert!(plan.read(r#"{"items":[]}"#).is_ok());
    /// // Cut off, or something else altogether.
    /// assert!(plan.read(r#"{"items":["#).is_err() && plan.read("<html>").is_err());
    /// ```
    pub fn read<'p, 'a>(&'p self, text: &'a str) -> Result<Listing<'p, 'a>, Error> {
        if looks_like_html(text) {
            return Err(Error::html(text));
        }
        let mut scan = Scan::new(text);
        let mut outside = vec![None; self.outside.len()];
        let mut reader = Reader {
            plan: self,
            records: Vec::new(),
            fields: Vec::new(),
            seen: false,
        };
        reader.envelope(&mut scan, &self.envelope, &mut outside)?;
        scan.end()?;
        match &self.records {
            Some(path) if !reader.seen => Err(Error::Missing { path: path.clone() }),
            _ => Ok(Listing {
                plan: self,
                records: reader.records,
                fields: reader.fields,
                outside,
            }),
        }
    }
}

/// Passes over an answer.
struct Reader<'p, 'a> {
    plan: &'p Plan,
    records: Vec<Raw<'a>>,
    fields: Vec<Option<Raw<'a>>>,
    /// The array of records has been met.
    seen: bool,
}

impl<'a> Reader<'_, 'a> {
    fn envelope(
        &mut self,
        scan: &mut Scan<'a>,
        node: &Node,
        slots: &mut [Option<Raw<'a>>],
    ) -> Result<(), Error> {
        let start = scan.at();
        if node.records {
            self.listing(scan)?;
            if !node.children.is_empty() {
                // Something below the records is wanted as well ("/items/0/id"): these are passed over twice.
                return node.collect(&mut Scan::new(scan.since(start)), slots);
            }
        } else {
            node.descend(scan, |scan, child| {
                self.forget(child, slots);
                self.envelope(scan, child, slots)
            })?;
        }
        node.set(slots, Some(Raw(scan.since(start))));
        Ok(())
    }

    /// Of two equal keys the last one counts: what an earlier one led to is forgotten.
    fn forget(&mut self, node: &Node, slots: &mut [Option<Raw<'a>>]) {
        node.clear(slots);
        if self.seen && node.leads_to_records() {
            self.records.clear();
            self.fields.clear();
            self.seen = false;
        }
    }

    fn listing(&mut self, scan: &mut Scan<'a>) -> Result<(), Error> {
        let plan = self.plan;
        if scan.peek() != Some(b'[') {
            let start = scan.at();
            scan.skip()?;
            let found = Raw(scan.since(start)).kind();
            let path = plan.records.clone().unwrap_or_default();
            return Err(Error::Shape {
                path,
                wanted: "an array of records",
                found,
            });
        }
        self.seen = true;
        let mut row = vec![None; plan.fields.len()];
        scan.array(|scan| {
            let start = scan.at();
            row.fill(None);
            plan.record.collect(scan, &mut row)?;
            self.records.push(Raw(scan.since(start)));
            self.fields.extend_from_slice(&row);
            Ok(())
        })
    }
}
