//! What is wanted of an answer, found in one pass over its text.

use super::raw::unescape;
use super::scan::{Key, Scan, looks_like_html};
use super::{Error, Raw};
use crate::Record;
use crate::{Fault, Timestamp, time};

/// What is wanted of an answer: where its records are, which fields of each, and what of the envelope around them. Made
/// once per answer, cheap; [`read`](Plan::read) then passes over the text once.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    envelope: Node,
    record: Node,
    /// The pointer to the array of records; none when only the envelope is wanted.
    records: Option<String>,
    fields: Vec<String>,
    outside: Vec<String>,
}

/// A place that a pointer leads to or through.
#[derive(Clone, Debug, Default)]
struct Node {
    children: Vec<(String, Node)>,
    slots: Vec<usize>,
    records: bool,
}

impl Node {
    /// Calls `mark` on the place that a pointer leads to.
    fn mark(&mut self, pointer: &str, mark: impl FnOnce(&mut Node)) {
        let Some(rest) = pointer.strip_prefix('/') else {
            return mark(self);
        };
        let (part, _) = rest.split_once('/').unwrap_or((rest, ""));
        let below = rest.get(part.len()..).unwrap_or_default();
        let key = part.replace("~1", "/").replace("~0", "~");
        match self.children.iter_mut().find(|(name, _)| *name == key) {
            Some((_, child)) => child.mark(below, mark),
            None => {
                let mut child = Node::default();
                child.mark(below, mark);
                self.children.push((key, child));
            }
        }
    }

    #[inline]
    fn child(&self, key: Key<'_>) -> Option<&Node> {
        if key.escaped {
            self.named(&unescape(key.text)?)
        } else {
            self.named(key.text)
        }
    }

    #[inline]
    fn named(&self, key: &str) -> Option<&Node> {
        let found = self.children.iter().find(|(name, _)| name == key);
        found.map(|(_, node)| node)
    }

    fn clear(&self, slots: &mut [Option<Raw<'_>>]) {
        self.set(slots, None);
        for (_, child) in &self.children {
            child.clear(slots);
        }
    }

    fn set<'a>(&self, slots: &mut [Option<Raw<'a>>], value: Option<Raw<'a>>) {
        for &slot in &self.slots {
            if let Some(slot) = slots.get_mut(slot) {
                *slot = value;
            }
        }
    }
}

impl Plan {
    /// Records are the elements of the array at this pointer; `""` is the whole answer.
    pub fn new(records: &str) -> Self {
        let mut plan = Plan {
            records: Some(records.to_owned()),
            ..Plan::default()
        };
        plan.envelope.mark(records, |node| node.records = true);
        plan
    }

    /// Only the envelope is wanted: the answer is one object, or its records are found otherwise.
    pub fn single() -> Self {
        Plan::default()
    }

    /// Adds a field of each record, by a pointer from the record. Fields are numbered in the order of adding.
    pub fn field(mut self, pointer: &str) -> Self {
        let slot = self.fields.len();
        self.record.mark(pointer, |node| node.slots.push(slot));
        self.fields.push(pointer.to_owned());
        self
    }

    /// Adds something of the answer around the records, by a pointer from the top. Numbered in the order of adding.
    pub fn outside(mut self, pointer: &str) -> Self {
        let slot = self.outside.len();
        self.envelope.mark(pointer, |node| node.slots.push(slot));
        self.outside.push(pointer.to_owned());
        self
    }

    /// Passes over the text once. Fails when it is not JSON, is cut, or has no array where the records should be.
    pub fn read<'p, 'a>(&'p self, text: &'a str) -> Result<Listing<'p, 'a>, Error> {
        if looks_like_html(text) {
            return Err(Error::html(text));
        }
        let mut reader = Reader {
            plan: self,
            scan: Scan::new(text),
            records: Vec::new(),
            fields: Vec::new(),
            row: vec![None; self.fields.len()],
            seen: false,
        };
        let mut outside = vec![None; self.outside.len()];
        reader.envelope(&self.envelope, &mut outside)?;
        reader.scan.end()?;
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

struct Reader<'p, 'a> {
    plan: &'p Plan,
    scan: Scan<'a>,
    records: Vec<Raw<'a>>,
    /// As many per record as the plan has fields.
    fields: Vec<Option<Raw<'a>>>,
    row: Vec<Option<Raw<'a>>>,
    seen: bool,
}

impl<'a> Reader<'_, 'a> {
    fn envelope(&mut self, node: &Node, slots: &mut [Option<Raw<'a>>]) -> Result<(), Error> {
        let start = self.scan.at();
        if node.records {
            if node.children.is_empty() {
                self.listing()?;
            } else {
                // Something below the records is wanted too ("/items/0/id"): pass over them twice.
                self.listing()?;
                let mut again = Scan::new(self.scan.since(start));
                walk(&mut again, node, slots)?;
            }
        } else {
            match self.scan.peek() {
                Some(b'{') if !node.children.is_empty() => {
                    self.scan.take(b'{');
                    self.scan.space();
                    if !self.scan.take(b'}') {
                        loop {
                            let key = self.scan.key()?;
                            match node.child(key) {
                                Some(child) => {
                                    self.forget(child, slots);
                                    self.envelope(child, slots)?;
                                }
                                None => self.scan.skip()?,
                            }
                            if !self.scan.more(b'}')? {
                                break;
                            }
                        }
                    }
                }
                Some(b'[') if !node.children.is_empty() => {
                    self.scan.take(b'[');
                    self.scan.space();
                    let mut index = 0_usize;
                    if !self.scan.take(b']') {
                        loop {
                            match node.named(&index.to_string()) {
                                Some(child) => self.envelope(child, slots)?,
                                None => self.scan.skip()?,
                            }
                            index += 1;
                            if !self.scan.more(b']')? {
                                break;
                            }
                        }
                    }
                }
                _ => self.scan.skip()?,
            }
        }
        node.set(slots, Some(Raw(self.scan.since(start))));
        Ok(())
    }

    /// The same key came before in this object: the last one counts.
    fn forget(&mut self, node: &Node, slots: &mut [Option<Raw<'a>>]) {
        node.clear(slots);
        if self.seen && holds_records(node) {
            self.records.clear();
            self.fields.clear();
            self.seen = false;
        }
    }

    fn listing(&mut self) -> Result<(), Error> {
        let plan = self.plan;
        if !self.scan.take(b'[') {
            let start = self.scan.at();
            self.scan.skip()?;
            let found = Raw(self.scan.since(start)).kind();
            let path = plan.records.clone().unwrap_or_default();
            return Err(Error::Shape {
                path,
                wanted: "an array of records",
                found,
            });
        }
        self.seen = true;
        self.scan.space();
        if self.scan.take(b']') {
            return Ok(());
        }
        let mut row = std::mem::take(&mut self.row);
        loop {
            let start = self.scan.at();
            row.fill(None);
            walk(&mut self.scan, &plan.record, &mut row)?;
            self.records.push(Raw(self.scan.since(start)));
            self.fields.extend_from_slice(&row);
            if !self.scan.more(b']')? {
                self.row = row;
                return Ok(());
            }
        }
    }
}

fn holds_records(node: &Node) -> bool {
    node.records || node.children.iter().any(|(_, child)| holds_records(child))
}

/// Passes over one value and notes what the pointers below it lead to. As deep as the pointers, not as the text.
fn walk<'a>(scan: &mut Scan<'a>, node: &Node, slots: &mut [Option<Raw<'a>>]) -> Result<(), Error> {
    let start = scan.at();
    match scan.peek() {
        Some(b'{') if !node.children.is_empty() => {
            scan.take(b'{');
            scan.space();
            if !scan.take(b'}') {
                loop {
                    let key = scan.key()?;
                    match node.child(key) {
                        Some(child) => {
                            if !child.children.is_empty() {
                                child.clear(slots);
                            }
                            walk(scan, child, slots)?;
                        }
                        None => scan.skip()?,
                    }
                    if !scan.more(b'}')? {
                        break;
                    }
                }
            }
        }
        Some(b'[') if !node.children.is_empty() => {
            scan.take(b'[');
            scan.space();
            let mut index = 0_usize;
            if !scan.take(b']') {
                loop {
                    match node.named(&index.to_string()) {
                        Some(child) => walk(scan, child, slots)?,
                        None => scan.skip()?,
                    }
                    index += 1;
                    if !scan.more(b']')? {
                        break;
                    }
                }
            }
        }
        _ => scan.skip()?,
    }
    node.set(slots, Some(Raw(scan.since(start))));
    Ok(())
}

/// What a [`Plan`] found in one answer.
#[derive(Debug)]
pub struct Listing<'p, 'a> {
    plan: &'p Plan,
    records: Vec<Raw<'a>>,
    fields: Vec<Option<Raw<'a>>>,
    outside: Vec<Option<Raw<'a>>>,
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
