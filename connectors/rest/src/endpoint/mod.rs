//! A stream with its keys checked and put together: how it is asked, and how its answers are read.
//!
//! Promises: a combination of keys that cannot work is an error that names the key and says what would be right. The
//! same check runs when the connection is described and on every call, so there is no second, laxer reading.

mod paging;
mod parts;
mod problem;
mod together;

use std::collections::BTreeMap;

use weir_sdk::{Fault, time};

use crate::config::{Config, CursorKey, MethodKey, OrderKey, Scalar, StreamKeys, UnitKey};
use crate::errors::Rule;
use crate::stamp::{Clock, Format};
use paging::check_paging;
use parts::{check_mark, check_rule, check_sync, check_told, check_updated_at, check_window};
pub(crate) use problem::misconfigured;
use problem::{Checked, pointer_in, problem};

/// Records per page, where nothing is said.
const PAGE_SIZE: u32 = 100;
/// Resolution of the vendor's timestamps in ms, where nothing is said: most write whole seconds.
const GRANULARITY: u64 = 1_000;

/// A stream, ready to use.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) title: Option<String>,
    pub(crate) path: String,
    pub(crate) method: MethodKey,
    pub(crate) query: Vec<(String, Scalar)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<serde_json::Value>,
    pub(crate) partitions: Vec<String>,
    pub(crate) parent: Option<String>,

    pub(crate) records: String,
    pub(crate) missing_is_empty: bool,
    pub(crate) id: Vec<String>,
    pub(crate) updated_at: Option<UpdatedAt>,
    pub(crate) deleted: Option<Mark>,
    pub(crate) required: Vec<String>,
    pub(crate) volatile: Vec<String>,
    pub(crate) count: Option<String>,
    pub(crate) total: Option<String>,

    pub(crate) cursor: CursorKey,
    pub(crate) order: OrderKey,
    pub(crate) window: Window,
    pub(crate) sync: Option<Sync>,
    pub(crate) paging: Paging,
    pub(crate) has_more: Option<String>,
    pub(crate) is_last: Option<String>,
    /// A page with fewer records than asked for is the last one: the vendor promises it.
    pub(crate) short_page_ends: bool,
    pub(crate) page_size: u32,
    pub(crate) page_size_param: Option<String>,

    /// Resolution of the vendor's timestamps in ms, and not finer than what its window parameters can say.
    pub(crate) granularity: u64,
    pub(crate) settle: Option<u64>,
    pub(crate) retention: Option<u64>,
    pub(crate) window_cap: Option<u64>,
    pub(crate) result_cap: Option<u32>,

    pub(crate) conditional: bool,
    /// The call has an effect at the vendor: in which header it takes a key for that.
    pub(crate) idempotency_header: Option<String>,
    pub(crate) poll_after: Option<Told>,
    pub(crate) bucket: Option<String>,
    pub(crate) cost: u32,
    pub(crate) errors: Vec<Rule>,
}

/// Where a record's time of change stands, and how it is written.
#[derive(Debug)]
pub(crate) struct UpdatedAt {
    pub(crate) pointer: String,
    pub(crate) format: time::Format,
}

/// A field that says yes: by this value, or by being there.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) pointer: String,
    pub(crate) equals: Option<Scalar>,
}

/// A place in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Body(String),
    Header(String),
}

impl Place {
    /// The pointer, when it is a place in the body.
    pub(crate) fn pointer(&self) -> Option<&str> {
        match self {
            Place::Body(pointer) => Some(pointer),
            Place::Header(_) => None,
        }
    }
}

/// A duration that the vendor tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) place: Place,
    pub(crate) unit: UnitKey,
}

/// How a window is asked for.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) format: Format,
    pub(crate) clock: Clock,
    pub(crate) since_exclusive: bool,
    /// The lower bound of a first sync, in ms since the epoch.
    pub(crate) start: Option<i64>,
    /// The resolution that bounds are widened to, in ms.
    pub(crate) resolution: u64,
}

/// The vendor's token that outlives a poll.
#[derive(Debug)]
pub(crate) enum Sync {
    Token { pointer: String, param: String },
    Url { pointer: String },
}

impl Sync {
    pub(crate) fn pointer(&self) -> &str {
        match self {
            Sync::Token { pointer, .. } | Sync::Url { pointer } => pointer,
        }
    }
}

/// The parameter that takes the last record's time of change.
#[derive(Debug)]
pub(crate) struct After {
    pub(crate) param: String,
    /// The vendor leaves out records at exactly that time.
    pub(crate) exclusive: bool,
    /// The vendor's own text is sent back, with every digit; else it is written in the window's format.
    pub(crate) as_written: bool,
}

/// How to get from page to page.
#[derive(Debug)]
pub(crate) enum Paging {
    None,
    Keyset {
        id: Option<String>,
        time: Option<After>,
    },
    Token {
        place: Place,
        param: String,
        end: Vec<Scalar>,
        alone: bool,
    },
    Page {
        param: String,
        first: u64,
    },
    Offset {
        param: String,
    },
    Link {
        rel: String,
    },
    NextUrl {
        pointer: String,
    },
}

impl Endpoint {
    /// The stream of that name.
    pub(crate) fn of(config: &Config, name: &str) -> Result<Self, Fault> {
        let mut endpoint = Endpoint::asked(config, name)?;
        // The stream's own rules come first.
        let rules = config
            .errors()
            .map_err(|error| unreadable("errors", &error))?;
        for rule in &rules {
            let rule =
                check_rule(rule).map_err(|problem| misconfigured(&problem.key, &problem.what))?;
            endpoint.errors.push(rule);
        }
        Ok(endpoint)
    }

    /// The same without the error map for all streams, which nobody needs who only asks.
    pub(crate) fn asked(config: &Config, name: &str) -> Result<Self, Fault> {
        let Some(raw) = config.streams.get(name) else {
            let known: Vec<&str> = config.streams.keys().map(String::as_str).collect();
            return Err(misconfigured(
                "streams",
                &format!("there is no `{name}`; there is {}", known.join(", ")),
            ));
        };
        let keys: StreamKeys = serde_json::from_str(raw.get())
            .map_err(|error| unreadable(&format!("streams.{name}"), &error))?;
        Endpoint::check(config, name, keys).map_err(|problem| {
            misconfigured(&format!("streams.{name}.{}", problem.key), &problem.what)
        })
    }

    fn check(config: &Config, name: &str, keys: StreamKeys) -> Checked<Self> {
        check_pointers(&keys)?;
        let id = keys.id.into_vec();
        if id.is_empty() {
            return problem("id", "is empty: name at least one pointer, such as \"/id\"");
        }
        for pointer in &id {
            pointer_in("id", pointer)?;
        }
        let updated_at = keys.updated_at.map(check_updated_at).transpose()?;
        let deleted = keys.deleted.map(check_mark).transpose()?;
        let errors = keys.errors.iter().map(check_rule).collect::<Checked<_>>()?;
        let granularity = keys.granularity.map_or(GRANULARITY, |g| g.0).max(1);
        let window = check_window(keys.window.as_ref(), granularity)?;
        let sync = keys.sync.map(check_sync).transpose()?;
        let order = keys.order.unwrap_or(OrderKey::Unordered);
        let page_size = keys.page_size.unwrap_or(PAGE_SIZE);
        if page_size == 0 {
            return problem("page_size", "is 0: use the vendor's largest, often 100");
        }
        let paging_keys = keys.paging.unwrap_or_default();
        for (key, pointer) in [
            ("paging.has_more", &paging_keys.has_more),
            ("paging.is_last", &paging_keys.is_last),
        ] {
            if let Some(pointer) = pointer {
                pointer_in(key, pointer)?;
            }
        }
        let (has_more, is_last) = (paging_keys.has_more.clone(), paging_keys.is_last.clone());
        let short_page_ends = paging_keys.short_page_ends;
        let paging = check_paging(paging_keys, &id, updated_at.as_ref(), order, &window)?;

        let endpoint = Endpoint {
            title: keys.title,
            path: keys.path,
            method: keys.method,
            query: merged(&config.query, keys.query),
            headers: merged(&config.headers, keys.headers),
            body: keys.body,
            partitions: keys.partitions,
            parent: keys.parent,
            records: keys.records,
            missing_is_empty: keys.missing_is_empty,
            id,
            updated_at,
            deleted,
            required: keys.required,
            volatile: keys.volatile,
            count: keys.count,
            total: keys.total,
            cursor: CursorKey::Snapshot,
            order,
            granularity: granularity.max(window.resolution),
            window,
            sync,
            paging,
            has_more,
            is_last,
            short_page_ends,
            page_size,
            page_size_param: keys.page_size_param,
            settle: keys.settle.map(|d| d.0),
            retention: keys.retention.map(|d| d.0),
            window_cap: keys.window_cap.map(|d| d.0),
            result_cap: keys.result_cap,
            conditional: keys.conditional.unwrap_or(keys.method == MethodKey::Get),
            idempotency_header: idempotency_header(keys.method, keys.idempotency_header)?,
            poll_after: keys
                .poll_after
                .as_ref()
                .map(|told| check_told("poll_after", told))
                .transpose()?,
            bucket: keys.bucket,
            cost: keys.cost.unwrap_or(1),
            errors,
        };
        let endpoint = Endpoint {
            cursor: endpoint.check_cursor(keys.cursor)?,
            ..endpoint
        };
        endpoint.check_call(config, name)?;
        Ok(endpoint)
    }
}

/// The pointers that stand for themselves.
fn check_pointers(keys: &StreamKeys) -> Checked<()> {
    pointer_in("records", &keys.records)?;
    for (key, pointer) in [("count", &keys.count), ("total", &keys.total)] {
        if let Some(pointer) = pointer {
            pointer_in(key, pointer)?;
        }
    }
    for (key, list) in [("required", &keys.required), ("volatile", &keys.volatile)] {
        for pointer in list {
            pointer_in(key, pointer)?;
            if pointer.is_empty() {
                return problem(
                    key,
                    "\"\" is the whole record: name a field, such as \"/sku\"",
                );
            }
        }
    }
    Ok(())
}

/// The connection's values, overridden by the stream's.
fn merged<T: Clone>(shared: &BTreeMap<String, T>, own: BTreeMap<String, T>) -> Vec<(String, T)> {
    let inherited = shared.iter().filter(|(name, _)| !own.contains_key(*name));
    let mut all: Vec<(String, T)> = inherited
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    all.extend(own);
    all
}

/// Only a call with an effect needs a key, and a GET has none.
fn idempotency_header(method: MethodKey, header: Option<String>) -> Checked<Option<String>> {
    match header {
        Some(_) if method == MethodKey::Get => problem(
            "idempotency_header",
            "needs method = \"POST\": a GET has no effect that could happen twice",
        ),
        header => Ok(header),
    }
}

/// What a part of the configuration that is read by itself has wrong. The position would count from the part's own
/// beginning, which nobody sees.
fn unreadable(key: &str, error: &serde_json::Error) -> Fault {
    let text = error.to_string();
    misconfigured(key, text.split(" at line ").next().unwrap_or(&text))
}
