//! One collection: what its records look like, and how it lets itself be listed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::writes::WritesSpec;
use crate::time::TimeFormat;

/// One collection of a vendor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CollectionSpec {
    /// Its name: the `stream` of delivered lines that a judge expects, unless told otherwise.
    pub name: String,
    /// Where it is listed, below the vendor's base: `/v1/orders`.
    pub path: String,
    /// Who writes what and when.
    pub writes: WritesSpec,
    /// What ids look like.
    pub ids: IdKind,
    /// The number of the first id. Ids over 2^53 find clients that read numbers as doubles.
    pub first_id: u64,
    /// Stamps are cut down to a multiple of this many ms.
    pub granularity_ms: i64,
    /// How records spell their stamps.
    pub time_format: TimeFormat,
    /// What the vendor calls the fields of a record.
    pub fields: Fields,
    /// What becomes of a deleted record in listings.
    pub deletion: Deletion,
    /// The records' `views` change this often without being a change of the record; 0: never.
    pub volatile_every_ms: i64,
    /// A record's content takes turns between two states, whatever its revision and stamp say: A, B, A, B.
    pub flips: bool,
    /// In which order records are listed.
    pub order: Order,
    /// Which part of the collection may be asked for.
    pub filter: Filter,
    /// How one gets from page to page.
    pub paging: Paging,
    /// How many records a page holds.
    pub page_size: PageSize,
    /// The most records that one query yields, however one pages.
    pub result_cap: Option<ResultCap>,
    /// What stands around the records.
    pub envelope: Envelope,
    /// ETag and Last-Modified.
    pub validators: Validators,
    /// The share of pages that are shorter than they could be although more follow.
    pub short_pages: f64,
    /// The share of steps that yield an empty page although more follow. Needs a paging style with tokens.
    pub empty_pages: f64,
}

impl Default for CollectionSpec {
    fn default() -> Self {
        CollectionSpec {
            name: "orders".into(),
            path: "/orders".into(),
            writes: WritesSpec::default(),
            ids: IdKind::Number,
            first_id: 1,
            granularity_ms: 1,
            time_format: TimeFormat::Rfc3339Ms,
            fields: Fields::default(),
            deletion: Deletion::Tombstone,
            volatile_every_ms: 0,
            flips: false,
            order: Order::Ascending,
            filter: Filter::default(),
            paging: Paging::default(),
            page_size: PageSize::default(),
            result_cap: None,
            envelope: Envelope::default(),
            validators: Validators::default(),
            short_pages: 0.0,
            empty_pages: 0.0,
        }
    }
}

/// What an id looks like in records and in parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdKind {
    /// A JSON number.
    #[default]
    Number,
    /// A string that sorts like its number: `r_000000000042`.
    Text,
}

/// What a vendor calls the fields of a record, and which others it has besides the made-up ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fields {
    /// The id.
    pub id: String,
    /// The stamp.
    pub stamp: String,
    /// Whether the record is deleted; empty: there is no such field.
    pub deleted: String,
    /// What that field holds: of a record that is there, and of a deleted one.
    pub deleted_is: [Value; 2],
    /// Fields that every record has besides, with their values.
    pub with: Map<String, Value>,
}

impl Default for Fields {
    fn default() -> Self {
        Fields {
            id: "id".into(),
            stamp: "updated_at".into(),
            deleted: "deleted".into(),
            deleted_is: [Value::Bool(false), Value::Bool(true)],
            with: Map::new(),
        }
    }
}

/// What becomes of a deleted record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deletion {
    /// It is listed as a change, said to be deleted, and with a new stamp.
    #[default]
    Tombstone,
    /// It is no longer listed, and nothing says so.
    Vanish,
}

/// The order of a listing. Ties are listed by id in the same direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Oldest stamp first.
    #[default]
    Ascending,
    /// Newest stamp first.
    Descending,
    /// Neither by stamp nor by id, yet the same from call to call.
    Unordered,
}

/// The parameters that narrow a listing. A parameter with an empty name does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Only records with a stamp from here.
    pub since: Bound,
    /// Only records with a stamp up to here.
    pub until: Bound,
    /// How both are spelt.
    pub format: TimeFormat,
    /// A window wider than this is answered as if there were nothing in it; 0: any width is fine. Needs both bounds.
    pub widest_ms: i64,
}

impl Default for Filter {
    fn default() -> Self {
        Filter {
            since: Bound::new("updated_since", true),
            until: Bound::new("updated_until", false),
            format: TimeFormat::Rfc3339Ms,
            widest_ms: 0,
        }
    }
}

impl Filter {
    /// A listing that is always whole.
    pub fn none() -> Self {
        Filter {
            since: Bound::default(),
            until: Bound::default(),
            format: TimeFormat::default(),
            widest_ms: 0,
        }
    }
}

/// One end of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bound {
    /// The parameter's name.
    pub param: String,
    /// A record that lies exactly on it is listed (`>=`, `<=`).
    pub inclusive: bool,
}

impl Bound {
    /// A bound with this parameter.
    pub fn new(param: &str, inclusive: bool) -> Self {
        Bound {
            param: param.into(),
            inclusive,
        }
    }
}

/// How one gets from page to page. Field names may be dotted paths: `paging.next.after`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "style", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Paging {
    /// The client says after which (stamp, id) to go on.
    Keyset {
        /// The parameter with the stamp; may be the filter's own `since`.
        after_time: String,
        /// The parameter with the id.
        after_id: String,
    },
    /// The client names the last record that it has: the list goes on behind it.
    AfterId {
        /// The parameter with the id.
        param: String,
    },
    /// The vendor gives a token for the next page.
    Token {
        /// The parameter that takes it.
        param: String,
        /// The field of the answer that holds it.
        field: String,
        /// How the last page is told apart.
        #[serde(default)]
        end: End,
        /// A token is refused with 410 when it is older than this; 0: never.
        #[serde(default)]
        ttl_ms: i64,
    },
    /// Page numbers. Unstable when records are written in the meantime, as everywhere.
    Page {
        /// The parameter.
        param: String,
        /// The number of the first page: 0 or 1.
        first: u64,
    },
    /// The number of records to leave out. As unstable as page numbers.
    Offset {
        /// The parameter.
        param: String,
    },
    /// `Link: <...>; rel="next"` with a token in it.
    Link {
        /// The link says only path and query.
        #[serde(default)]
        relative: bool,
    },
    /// The whole next URL in the body.
    NextUrl {
        /// The field of the answer that holds it.
        field: String,
        /// The URL says only path and query.
        #[serde(default)]
        relative: bool,
        /// How the last page is told apart: by null, an empty string or absence.
        #[serde(default)]
        end: End,
    },
    /// A change feed: records in the order in which they became visible, and a token that outlives the poll. The
    /// token is there on every page, the last one included; `has_more` of the envelope tells the end.
    Feed {
        /// The parameter that takes the token.
        param: String,
        /// The field of the answer that holds it.
        field: String,
        /// A token is refused with 410 when it is older than this; 0: never.
        #[serde(default)]
        ttl_ms: i64,
    },
    /// No paging: what does not fit on the page cannot be had.
    None,
}

impl Default for Paging {
    fn default() -> Self {
        Paging::Keyset {
            after_time: "updated_since".into(),
            after_id: "after_id".into(),
        }
    }
}

/// How a vendor with tokens says that a page is the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The field is missing.
    #[default]
    Absent,
    /// The field is null.
    Null,
    /// The field is `""`.
    EmptyString,
    /// The field holds a token as ever; `has_more` of the envelope is false.
    HasMoreFalse,
    /// The field holds a token as ever; the page after the last one is empty.
    EmptyPage,
}

/// How many records a page holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PageSize {
    /// The parameter; empty: the client has no say.
    pub param: String,
    /// Without the parameter.
    pub default: usize,
    /// Larger wishes are cut down to this.
    pub max: usize,
}

impl Default for PageSize {
    fn default() -> Self {
        PageSize {
            param: "limit".into(),
            default: 20,
            max: 100,
        }
    }
}

impl PageSize {
    /// Pages of exactly this size.
    pub fn fixed(size: usize) -> Self {
        PageSize {
            param: String::new(),
            default: size,
            max: size,
        }
    }
}

/// The most records that one query yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultCap {
    /// How many.
    pub records: u64,
    /// Going beyond is answered with 400; otherwise the listing just ends.
    pub refuse: bool,
}

/// What stands around the records. Field names may be dotted paths; an empty name means that there is no such
/// field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Envelope {
    /// The array of records; empty: the body is the array.
    pub records: String,
    /// Whether more pages follow.
    pub has_more: String,
    /// Whether this is the last page: the same, said the other way round.
    pub last: String,
    /// How many records are on this page.
    pub count: String,
    /// How many pages there are, by the size that was asked for.
    pub pages: String,
    /// How many records match the query.
    pub total: Total,
    /// Fields that every answer has besides, with their values.
    pub with: Map<String, Value>,
}

impl Default for Envelope {
    fn default() -> Self {
        Envelope {
            records: "data".into(),
            has_more: "has_more".into(),
            last: String::new(),
            count: String::new(),
            pages: String::new(),
            total: Total::default(),
            with: Map::new(),
        }
    }
}

/// The vendor's own count of what matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Total {
    /// The field.
    pub field: String,
    /// How far the count is off.
    pub wrong_by: i64,
}

/// Whether answers can be asked for on condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Validators {
    /// An ETag over the body.
    pub etag: EtagKind,
    /// The moment, to the second, at which the collection last changed.
    pub last_modified: bool,
}

/// Which ETags a vendor sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EtagKind {
    /// None.
    #[default]
    None,
    /// `"..."`
    Strong,
    /// `W/"..."`
    Weak,
}
