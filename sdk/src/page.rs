//! What an answer held.

use crate::bindings::weir::connector::types as wit;
use crate::{Connector, Data, Fault, Limit, Record, Span, Timestamp, codec};

/// The records of one answer, and where to go from here.
///
/// ```
/// # use weir_sdk::prelude::*;
/// # use weir_sdk::testing::Notes;
/// let page = Page::<Notes>::new().next(paging::Token { token: "p2".to_owned() });
/// assert!(page.records.is_empty() && !page.next.is_empty());
/// ```
pub struct Page<C: Connector + ?Sized> {
    /// The records, in the vendor's order.
    pub records: Vec<Record>,
    /// What to ask next: none when the walk is complete, many to fan out.
    pub next: Vec<C::Step>,
    /// The unit's new cursor, stored when the walk is complete; none keeps the old one.
    pub cursor: Option<C::Cursor>,
    /// The vendor's own count for the whole walk.
    pub total: Option<u64>,
    /// There is more, but the vendor won't give it: the host records a gap.
    pub truncated: bool,
    /// The pause that the vendor asks for before the next poll, in ms.
    pub poll_after: Option<u64>,
    /// Limits that only this connector can read; the host has read the standard headers.
    pub limits: Vec<Limit>,
    /// What the contract has no field for.
    pub extra: Vec<(String, String)>,
}

impl<C: Connector + ?Sized> Default for Page<C> {
    fn default() -> Self {
        Page {
            records: Vec::new(),
            next: Vec::new(),
            cursor: None,
            total: None,
            truncated: false,
            poll_after: None,
            limits: Vec::new(),
            extra: Vec::new(),
        }
    }
}

impl<C: Connector + ?Sized> Page<C> {
    /// No records, no next step: a complete walk that found nothing.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// assert!(Page::<Notes>::new().next.is_empty());
    /// ```
    pub fn new() -> Self {
        Page::default()
    }

    /// With room for so many records.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// assert!(Page::<Notes>::with_capacity(100).records.is_empty());
    /// ```
    pub fn with_capacity(records: usize) -> Self {
        Page {
            records: Vec::with_capacity(records),
            ..Page::default()
        }
    }

    /// Adds a record.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// let mut page = Page::<Notes>::new();
    /// page.push(Record::made(r#"{"id":7}"#, "7"));
    /// assert_eq!(page.records.len(), 1);
    /// ```
    pub fn push(&mut self, record: Record) {
        self.records.push(record);
    }

    /// The id of the last record that has one: where keyset paging goes on.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// let mut page = Page::<Notes>::new();
    /// page.push(Record::made(r#"{"id":7}"#, "7"));
    /// assert_eq!(page.last_id(), Some("7"));
    /// ```
    pub fn last_id(&self) -> Option<&str> {
        let mut ids = self.records.iter().rev().map(|record| record.id.as_str());
        ids.find(|id| !id.is_empty())
    }

    /// Adds a step: the walk is not complete before it has been taken.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// let page = Page::<Notes>::new().next(paging::Token { token: "p2".to_owned() });
    /// assert_eq!(page.next.len(), 1);
    /// ```
    pub fn next(mut self, step: C::Step) -> Self {
        self.next.push(step);
        self
    }

    /// Adds a step if there is one.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// assert!(Page::<Notes>::new().next_if(None).next.is_empty());
    /// ```
    pub fn next_if(mut self, step: Option<C::Step>) -> Self {
        self.next.extend(step);
        self
    }

    /// The unit's new cursor.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// let page = Page::<Notes>::new().cursor(paging::Token { token: "since-7".to_owned() });
    /// assert!(page.cursor.is_some());
    /// ```
    pub fn cursor(mut self, cursor: C::Cursor) -> Self {
        self.cursor = Some(cursor);
        self
    }

    /// The vendor's own count for the whole walk.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// assert_eq!(Page::<Notes>::new().total(Some(250)).total, Some(250));
    /// ```
    pub fn total(mut self, total: Option<u64>) -> Self {
        self.total = total;
        self
    }

    /// The vendor holds back more than it gave.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// assert!(Page::<Notes>::new().truncated(true).truncated);
    /// ```
    pub fn truncated(mut self, truncated: bool) -> Self {
        self.truncated = truncated;
        self
    }

    /// The pause that the vendor asks for before the next poll, in ms.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// assert_eq!(Page::<Notes>::new().poll_after(Some(60_000)).poll_after, Some(60_000));
    /// ```
    pub fn poll_after(mut self, ms: Option<u64>) -> Self {
        self.poll_after = ms;
        self
    }

    /// Adds a limit that only this connector can read.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::Notes;
    /// let left = Limit { remaining: Some(12), ..Limit::default() };
    /// assert_eq!(Page::<Notes>::new().limit(left).limits.len(), 1);
    /// ```
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limits.push(limit);
        self
    }

    pub(crate) fn into_contract(self) -> Result<wit::Page, Fault> {
        Ok(wit::Page {
            records: self.records,
            next: self
                .next
                .iter()
                .map(|step| codec::write("step", step))
                .collect::<Result<_, _>>()?,
            cursor: self
                .cursor
                .as_ref()
                .map(|cursor| codec::write("cursor", cursor))
                .transpose()?,
            total: self.total,
            truncated: self.truncated,
            poll_after: self.poll_after,
            limits: self.limits,
            extra: self.extra,
        })
    }
}

impl Record {
    /// A record of the answer whose whole text is `text`. When `json` is a slice of `text` only its place is kept, and the
    /// host takes the bytes from there; anything else is copied.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"[{"id":7}]"#;
    /// let record = Record::of(text, &text[1..9], "7");
    /// assert_eq!(record.json(text), Some(r#"{"id":7}"#));
    /// ```
    pub fn of(text: &str, json: &str, id: impl Into<String>) -> Self {
        let data = match place(text, json) {
            Some(span) => Data::Slice(span),
            None => Data::Text(json.to_owned()),
        };
        Record {
            id: id.into(),
            updated_at: None,
            deleted: false,
            data,
        }
    }

    /// A record whose JSON the connector put together itself.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let record = Record::made(r#"{"metric":"reach","value":310}"#, "reach/2031-03-04");
    /// assert_eq!(record.id, "reach/2031-03-04");
    /// ```
    pub fn made(json: impl Into<String>, id: impl Into<String>) -> Self {
        Record {
            id: id.into(),
            updated_at: None,
            deleted: false,
            data: Data::Text(json.into()),
        }
    }

    /// When the vendor says that it changed last.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let record = Record::made("{}", "7").updated_at(time::parse_rfc3339("2031-03-04T10:00:00Z"));
    /// assert_eq!(record.updated_at, Some(1_930_384_800_000));
    /// ```
    pub fn updated_at(mut self, at: impl Into<Option<Timestamp>>) -> Self {
        self.updated_at = at.into();
        self
    }

    /// The vendor says that it is gone.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert!(Record::made("{}", "7").deleted(true).deleted);
    /// ```
    pub fn deleted(mut self, deleted: bool) -> Self {
        self.deleted = deleted;
        self
    }

    /// The record's JSON, given the answer's text: for tests.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let text = r#"[{"id":7}]"#;
    /// let rows = json::elements(text, "")?;
    /// let record = Record::of(text, rows[0].json(), "7");
    /// assert_eq!(record.json(text), Some(r#"{"id":7}"#));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn json<'a>(&'a self, text: &'a str) -> Option<&'a str> {
        match &self.data {
            Data::Text(json) => Some(json),
            Data::Slice(span) => {
                let start = span.start as usize;
                text.get(start..start.checked_add(span.len as usize)?)
            }
        }
    }
}

/// Where `part` stands in `text`, if it is a slice of it.
fn place(text: &str, part: &str) -> Option<Span> {
    let start = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    if end > text.len() {
        return None;
    }
    Some(Span {
        start: u32::try_from(start).ok()?,
        len: u32::try_from(part.len()).ok()?,
    })
}
