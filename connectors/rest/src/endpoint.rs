//! A stream with its keys checked and put together: how it is asked, and how its answers are read.
//!
//! Promises: a combination of keys that cannot work is an error that names the key and says what would be right. The
//! same check runs when the connection is described and on every call, so there is no second, laxer reading.

use weir_sdk::{Fault, time};

use crate::config::{
    ClassKey, Config, CursorKey, ErrorKeys, MarkKeys, MethodKey, OrderKey, PagingKeys, Scalar,
    SourceKeys, StatusKey, StreamKeys, StyleKey, SyncKeys, UnitKey, UpdatedAtKeys, WaitKeys,
    WindowKeys,
};
use crate::errors::{Rule, Test, Wait};
use crate::stamp::{self, Clock, Format};
use crate::template::{self, Name, Part};

/// Records per page, where nothing is said.
const PAGE_SIZE: u32 = 100;
/// Resolution of the vendor's timestamps in ms, where nothing is said: most write whole seconds.
const GRANULARITY: u64 = 1_000;
/// Headers that carry credentials: the host adds those, and drops any that a connector names.
const CREDENTIALS: [&str; 4] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
];

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

/// What is wrong with one key.
struct Problem {
    key: String,
    what: String,
}

type Checked<T> = Result<T, Problem>;

fn problem<T>(key: impl Into<String>, what: impl Into<String>) -> Checked<T> {
    Err(Problem {
        key: key.into(),
        what: what.into(),
    })
}

/// A configuration that cannot work: only its author can fix it.
pub(crate) fn misconfigured(key: &str, what: &str) -> Fault {
    Fault::permanent(format!("config.{key}: {what}")).code("config")
}

impl Endpoint {
    /// The stream of that name.
    pub(crate) fn of(config: &Config, name: &str) -> Result<Self, Fault> {
        let Some(raw) = config.streams.get(name) else {
            let known: Vec<&str> = config.streams.keys().map(String::as_str).collect();
            return Err(misconfigured(
                "streams",
                &format!("there is no `{name}`; there is {}", known.join(", ")),
            ));
        };
        let keys: StreamKeys = serde_json::from_str(raw.get()).map_err(|error| {
            // The position counts from the stream's own beginning, which nobody sees.
            let text = error.to_string();
            let what = text.split(" at line ").next().unwrap_or(&text);
            misconfigured(&format!("streams.{name}"), what)
        })?;
        Endpoint::check(config, name, keys).map_err(|problem| {
            misconfigured(&format!("streams.{name}.{}", problem.key), &problem.what)
        })
    }

    fn check(config: &Config, name: &str, keys: StreamKeys) -> Checked<Self> {
        let id = keys.id.into_vec();
        if id.is_empty() {
            return problem("id", "is empty: name at least one pointer, such as \"/id\"");
        }
        for pointer in &id {
            pointer_in("id", pointer)?;
        }
        pointer_in("records", &keys.records)?;
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
        for (key, pointer) in [("count", &keys.count), ("total", &keys.total)] {
            if let Some(pointer) = pointer {
                pointer_in(key, pointer)?;
            }
        }
        let updated_at = keys.updated_at.map(check_updated_at).transpose()?;
        let deleted = keys.deleted.map(check_mark).transpose()?;
        let mut errors = Vec::with_capacity(keys.errors.len() + config.errors.len());
        for rule in &keys.errors {
            errors.push(check_rule(rule)?);
        }
        for rule in &config.errors {
            errors.push(check_rule(rule)?);
        }

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

    /// Whether a poll can ask for the lower bound of its window.
    pub(crate) fn asks_since(&self) -> bool {
        self.window.since.is_some() || self.mentions(|name| name == Name::Since)
    }

    /// Whether path, query or body hold such a placeholder.
    fn mentions(&self, wanted: impl Fn(Name<'_>) -> bool + Copy) -> bool {
        template::names(&self.path, wanted)
            || self
                .query
                .iter()
                .any(|(_, value)| template::names(&value.text, wanted))
            || self
                .body
                .as_ref()
                .is_some_and(|body| body_names(body, wanted))
    }

    fn check_cursor(&self, asked: Option<CursorKey>) -> Checked<CursorKey> {
        let natural = match (&self.sync, self.asks_since()) {
            (Some(_), _) => CursorKey::Opaque,
            (None, true) => CursorKey::Timestamp,
            (None, false) => CursorKey::Snapshot,
        };
        let cursor = asked.unwrap_or(natural);
        match cursor {
            CursorKey::Opaque if self.sync.is_none() => problem(
                "cursor",
                "`opaque` needs a `sync` table: sync = { token = \"/next_sync_token\", param = \"sync_token\" }",
            ),
            CursorKey::Timestamp if !self.asks_since() => problem(
                "cursor",
                "`timestamp` needs a way to ask: window = { since = \"updated_since\" }, or {since} in a query value",
            ),
            CursorKey::Timestamp if self.updated_at.is_none() => problem(
                "updated_at",
                "is missing, and a window without it never moves on: name the field, such as \"/updated_at\"",
            ),
            CursorKey::Timestamp | CursorKey::Snapshot if self.sync.is_some() => problem(
                "cursor",
                "there is a `sync` table, so leave `cursor` out or write \"opaque\"",
            ),
            CursorKey::Snapshot if self.asks_since() => problem(
                "cursor",
                "`snapshot` reads everything each time, yet the stream asks for a window: leave one of them out",
            ),
            cursor => Ok(cursor),
        }
    }

    fn check_call(&self, config: &Config, name: &str) -> Checked<()> {
        if !self.path.starts_with('/') {
            return problem(
                "path",
                "has to start with a slash: it is appended to base_url",
            );
        }
        for part in template::parts(&self.path) {
            if let Part::Unknown(word) = part {
                return problem(
                    "path",
                    format!(
                        "{word} is no placeholder; there is {{partition}}, {{+partition}} and {{parent.FIELD}}"
                    ),
                );
            }
        }
        for (header, _) in &self.headers {
            if CREDENTIALS.contains(&header.to_ascii_lowercase().as_str()) {
                return problem(
                    "headers",
                    format!("`{header}` carries a credential: say it in the connection's `auth`"),
                );
            }
        }
        let sliced = !self.partitions.is_empty() || self.parent.is_some();
        let slices = |name: Name<'_>| matches!(name, Name::Partition | Name::Parent(_));
        if !self.partitions.is_empty() && self.parent.is_some() {
            return problem(
                "parent",
                "there are `partitions` too: a stream is sliced by one of them",
            );
        }
        if sliced && !self.mentions(slices) {
            let key = if self.parent.is_some() {
                "parent"
            } else {
                "partitions"
            };
            return problem(
                key,
                "nothing asks for the slice: put {partition} or {parent.FIELD} into `path`, `query` or `body`",
            );
        }
        if !sliced && self.mentions(slices) {
            return problem(
                "partitions",
                "is missing, and {partition} or {parent.FIELD} is used: name the slices, or a `parent`",
            );
        }
        if self.parent.is_none() && self.mentions(|name| matches!(name, Name::Parent(_))) {
            return problem(
                "parent",
                "is missing, and {parent.FIELD} is used: name the stream to take it from",
            );
        }
        if let Some(parent) = &self.parent
            && (parent == name || !config.streams.contains_key(parent))
        {
            return problem(
                "parent",
                format!("`{parent}` is not another stream of this connection"),
            );
        }
        if self.result_cap.is_some_and(|cap| cap < self.page_size) {
            return problem("result_cap", "is smaller than page_size");
        }
        if self.body.is_some() && self.method == MethodKey::Get {
            return problem("body", "a GET carries none: add method = \"POST\"");
        }
        if self.window.start.is_none()
            && self
                .body
                .as_ref()
                .is_some_and(|body| body_names(body, |name| name == Name::Since))
        {
            return problem(
                "window.start",
                "is missing, and the body asks for {since}: a first sync has to begin somewhere",
            );
        }
        self.check_params()
    }

    /// Parameters that begin with a slash are places in the body; two keys must not name the same one, except that a
    /// keyset position takes the place of the window's bound.
    fn check_params(&self) -> Checked<()> {
        let keyset_time = match &self.paging {
            Paging::Keyset { time, .. } => time.as_ref().map(|after| &after.param),
            _ => None,
        };
        let page = match &self.paging {
            Paging::Keyset { id, .. } => id.as_ref().map(|param| ("paging.after_id", param)),
            Paging::Token { param, .. } | Paging::Page { param, .. } | Paging::Offset { param } => {
                Some(("paging.param", param))
            }
            Paging::None | Paging::Link { .. } | Paging::NextUrl { .. } => None,
        };
        let sync = match &self.sync {
            Some(Sync::Token { param, .. }) => Some(("sync.param", param)),
            _ => None,
        };
        let named: Vec<(&str, &String)> = [
            self.window
                .since
                .as_ref()
                .map(|param| ("window.since", param)),
            self.window
                .until
                .as_ref()
                .map(|param| ("window.until", param)),
            self.page_size_param
                .as_ref()
                .map(|param| ("page_size_param", param)),
            page,
            sync,
        ]
        .into_iter()
        .flatten()
        .collect();
        for (at, (key, param)) in named.iter().enumerate() {
            // Some vendors take the sync token and the page token in one parameter.
            let shared = |other: &str| *key == "sync.param" && other == "paging.param";
            if let Some((other, _)) = named
                .iter()
                .take(at)
                .find(|(other, p)| p == param && !shared(other))
            {
                return problem(*key, format!("`{param}` is already taken by `{other}`"));
            }
        }
        let keyset_time = keyset_time.map(|param| ("paging.after_time", param));
        for (key, param) in named.into_iter().chain(keyset_time) {
            if param.is_empty() {
                return problem(key, "is empty: name the parameter");
            }
            if param.starts_with('/') && self.method == MethodKey::Get {
                return problem(
                    key,
                    format!(
                        "`{param}` is a place in the body, and a GET carries none: add method = \"POST\""
                    ),
                );
            }
        }
        Ok(())
    }
}

/// The connection's values, overridden by the stream's.
fn merged<T: Clone>(
    shared: &std::collections::BTreeMap<String, T>,
    own: std::collections::BTreeMap<String, T>,
) -> Vec<(String, T)> {
    let inherited = shared.iter().filter(|(name, _)| !own.contains_key(*name));
    let mut all: Vec<(String, T)> = inherited
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    all.extend(own);
    all
}

fn body_names(body: &serde_json::Value, wanted: impl Fn(Name<'_>) -> bool + Copy) -> bool {
    match body {
        serde_json::Value::String(text) => template::names(text, wanted),
        serde_json::Value::Array(items) => items.iter().any(|item| body_names(item, wanted)),
        serde_json::Value::Object(members) => {
            members.values().any(|member| body_names(member, wanted))
        }
        _ => false,
    }
}

fn pointer_in(key: &str, pointer: &str) -> Checked<()> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return problem(
            key,
            format!(
                "`{pointer}` is no JSON pointer: write \"/{}\"",
                pointer.replace('.', "/")
            ),
        );
    }
    Ok(())
}

fn check_updated_at(keys: UpdatedAtKeys) -> Checked<UpdatedAt> {
    pointer_in("updated_at", &keys.pointer)?;
    let clock = check_clock(
        "updated_at",
        keys.utc_offset.as_deref(),
        keys.dst_offset.as_deref(),
    )?;
    let format = keys.format.as_deref().unwrap_or("rfc3339");
    let naive = format == "naive";
    if naive && clock.is_none() {
        return problem(
            "updated_at.utc_offset",
            "is missing, and naive times mean nothing without it: write \"+00:00\" for UTC",
        );
    }
    if !naive && clock.is_some() {
        return problem(
            "updated_at.utc_offset",
            format!("belongs to format = \"naive\", and the format is `{format}`"),
        );
    }
    let Some(format) = stamp::record_format(format, clock.unwrap_or_default()) else {
        return problem(
            "updated_at.format",
            format!("`{format}` is none of rfc3339, epoch_s, epoch_ms, http_date, naive"),
        );
    };
    Ok(UpdatedAt {
        pointer: keys.pointer,
        format,
    })
}

fn check_clock(key: &str, utc: Option<&str>, dst: Option<&str>) -> Checked<Option<Clock>> {
    let read = |name: &str, text: &str| match Clock::parse_offset(text) {
        Some(offset) => Ok(offset),
        None => problem(
            format!("{key}.{name}"),
            format!("`{text}` is no offset: write \"+05:30\" or \"-08:00\""),
        ),
    };
    match (utc, dst) {
        (None, None) => Ok(None),
        (None, Some(_)) => problem(
            format!("{key}.utc_offset"),
            "is missing: `dst_offset` alone says nothing about winter",
        ),
        (Some(utc), dst) => {
            let standard = read("utc_offset", utc)?;
            let summer = dst.map(|dst| read("dst_offset", dst)).transpose()?;
            Ok(Some(Clock::new(standard, summer.unwrap_or(standard))))
        }
    }
}

fn check_mark(keys: MarkKeys) -> Checked<Mark> {
    pointer_in("deleted", &keys.pointer)?;
    Ok(Mark {
        pointer: keys.pointer,
        equals: keys.equals,
    })
}

fn check_window(keys: Option<&WindowKeys>, granularity: u64) -> Checked<Window> {
    let Some(keys) = keys else {
        let format = Format::default();
        let resolution = format.resolution(granularity);
        return Ok(Window {
            since: None,
            until: None,
            format,
            clock: Clock::default(),
            since_exclusive: false,
            start: None,
            resolution,
        });
    };
    let text = keys.format.as_deref().unwrap_or("rfc3339");
    let format = match Format::parse(text) {
        Ok(format) => format,
        Err(what) => return problem("window.format", what),
    };
    let clock = check_clock(
        "window",
        keys.utc_offset.as_deref(),
        keys.dst_offset.as_deref(),
    )?;
    if clock.is_some() && !format.is_local() {
        return problem(
            "window.utc_offset",
            format!("`{text}` is always UTC: leave the offset out"),
        );
    }
    let start = match keys.start.as_deref() {
        None => None,
        Some(text) => match time::parse_rfc3339(text) {
            Some(ms) => Some(ms),
            None => {
                return problem(
                    "window.start",
                    format!("`{text}` is no RFC 3339 time: write \"2020-01-01T00:00:00Z\""),
                );
            }
        },
    };
    let resolution = format.resolution(granularity);
    Ok(Window {
        since: keys.since.clone(),
        until: keys.until.clone(),
        format,
        clock: clock.unwrap_or_default(),
        since_exclusive: keys.since_exclusive,
        start,
        resolution,
    })
}

fn check_sync(keys: SyncKeys) -> Checked<Sync> {
    match (keys.token, keys.param, keys.url) {
        (Some(pointer), Some(param), None) => {
            pointer_in("sync.token", &pointer).map(|()| Sync::Token { pointer, param })
        }
        (None, None, Some(pointer)) => {
            pointer_in("sync.url", &pointer).map(|()| Sync::Url { pointer })
        }
        (Some(_), None, None) => problem(
            "sync.param",
            "is missing: name the parameter that takes the token in the next poll",
        ),
        _ => problem("sync", "takes either `token` with `param`, or `url`"),
    }
}

fn check_paging(
    keys: PagingKeys,
    id: &[String],
    updated_at: Option<&UpdatedAt>,
    order: OrderKey,
    window: &Window,
) -> Checked<Paging> {
    let style = keys.style;
    let foreign = [
        ("after_id", keys.after_id.is_some(), &[StyleKey::Keyset][..]),
        ("after_time", keys.after_time.is_some(), &[StyleKey::Keyset]),
        (
            "param",
            keys.param.is_some(),
            &[StyleKey::Token, StyleKey::Page, StyleKey::Offset],
        ),
        ("first", keys.first.is_some(), &[StyleKey::Page]),
        ("token", keys.token.is_some(), &[StyleKey::Token]),
        (
            "token_header",
            keys.token_header.is_some(),
            &[StyleKey::Token],
        ),
        ("token_end", !keys.token_end.is_empty(), &[StyleKey::Token]),
        ("token_only", keys.token_only, &[StyleKey::Token]),
        ("after_exclusive", keys.after_exclusive, &[StyleKey::Keyset]),
        (
            "short_page_ends",
            keys.short_page_ends,
            &[StyleKey::Keyset, StyleKey::Page, StyleKey::Offset],
        ),
        ("rel", keys.rel.is_some(), &[StyleKey::Link]),
        ("url", keys.url.is_some(), &[StyleKey::NextUrl]),
    ];
    for (key, given, styles) in foreign {
        if given && !styles.contains(&style) {
            let names: Vec<&str> = styles.iter().map(|style| style.name()).collect();
            return problem(
                format!("paging.{key}"),
                format!(
                    "belongs to style {}, and the style is `{}`",
                    names.join(" or "),
                    style.name()
                ),
            );
        }
    }
    let param = |what: &str| match keys.param.clone() {
        Some(param) => Ok(param),
        None => problem(
            "paging.param",
            format!("is missing: name the parameter that takes {what}"),
        ),
    };
    Ok(match style {
        StyleKey::None => Paging::None,
        StyleKey::Keyset => {
            if keys.after_id.is_none() && keys.after_time.is_none() {
                return problem(
                    "paging.after_id",
                    "is missing: name the parameter that takes the last record's id, or `after_time`",
                );
            }
            if keys.after_id.is_some() && id.len() != 1 {
                return problem(
                    "paging.after_id",
                    "takes one id, and `id` names several fields: use another style",
                );
            }
            let time = match (keys.after_time, updated_at) {
                (None, _) if keys.after_exclusive => {
                    return problem(
                        "paging.after_exclusive",
                        "says something of `after_time`, which is missing",
                    );
                }
                (None, _) => None,
                (Some(_), None) => {
                    return problem(
                        "paging.after_time",
                        "needs `updated_at`: the time of the last record is what it takes",
                    );
                }
                (Some(_), Some(_)) if order == OrderKey::Unordered => {
                    return problem(
                        "order",
                        "is missing: paging by time needs \"ascending\" or \"descending\"",
                    );
                }
                (Some(param), Some(updated_at)) => {
                    let shared = window.since.as_ref() == Some(&param)
                        || window.until.as_ref() == Some(&param);
                    Some(After {
                        exclusive: keys.after_exclusive
                            || (window.since.as_ref() == Some(&param) && window.since_exclusive),
                        as_written: !shared || window.format.is_written_as(updated_at.format),
                        param,
                    })
                }
            };
            Paging::Keyset {
                id: keys.after_id,
                time,
            }
        }
        StyleKey::Token => {
            let place = match (keys.token.clone(), keys.token_header.clone()) {
                (Some(pointer), None) => {
                    pointer_in("paging.token", &pointer).map(|()| Place::Body(pointer))?
                }
                (None, Some(header)) => Place::Header(header.to_ascii_lowercase()),
                _ => {
                    return problem(
                        "paging.token",
                        "name either `token` (a pointer into the body) or `token_header`",
                    );
                }
            };
            let param = param("the token")?;
            Paging::Token {
                place,
                param,
                end: keys.token_end,
                alone: keys.token_only,
            }
        }
        StyleKey::Page => Paging::Page {
            param: param("the page's number")?,
            first: keys.first.unwrap_or(1),
        },
        StyleKey::Offset => Paging::Offset {
            param: param("the offset")?,
        },
        StyleKey::Link => Paging::Link {
            rel: keys.rel.unwrap_or_else(|| "next".to_owned()),
        },
        StyleKey::NextUrl => match keys.url {
            Some(pointer) => {
                pointer_in("paging.url", &pointer).map(|()| Paging::NextUrl { pointer })?
            }
            None => {
                return problem(
                    "paging.url",
                    "is missing: point at the next page's URL, such as \"/links/next\"",
                );
            }
        },
    })
}

/// Reads a duration that the vendor tells.
fn check_told(key: &str, keys: &SourceKeys) -> Checked<Told> {
    let place = match (&keys.pointer, &keys.header) {
        (Some(pointer), None) => pointer_in(key, pointer).map(|()| Place::Body(pointer.clone()))?,
        (None, Some(header)) => Place::Header(header.to_ascii_lowercase()),
        _ => return problem(key, "takes either `pointer` or `header`, and `unit`"),
    };
    Ok(Told {
        place,
        unit: keys.unit,
    })
}

/// One rule of the error map.
fn check_rule(keys: &ErrorKeys) -> Checked<Rule> {
    let place = match (&keys.pointer, &keys.header) {
        (Some(pointer), None) => {
            pointer_in("errors.pointer", pointer).map(|()| Some(Place::Body(pointer.clone())))?
        }
        (None, Some(header)) => Some(Place::Header(header.to_ascii_lowercase())),
        (None, None) => None,
        (Some(_), Some(_)) => {
            return problem(
                "errors.header",
                "there is a `pointer` too: a rule looks at one place",
            );
        }
    };
    if place.is_none() && keys.status.is_none() {
        return problem(
            "errors",
            "a rule needs a `status`, a `pointer` or a `header`: else it would fit every answer",
        );
    }
    let test = match (&keys.equals, &keys.contains) {
        (Some(_), Some(_)) => {
            return problem(
                "errors.contains",
                "there is `equals` too: a rule compares once",
            );
        }
        (Some(values), None) => Test::Equals(values.to_vec()),
        (None, Some(part)) => Test::Contains(part.clone()),
        (None, None) => Test::Present,
    };
    if place.is_none() && !matches!(test, Test::Present) {
        return problem(
            "errors.pointer",
            "is missing: say which field `equals` or `contains` is about",
        );
    }
    let statuses = match &keys.status {
        None => Vec::new(),
        Some(StatusKey::One(status)) => vec![(*status, *status)],
        Some(StatusKey::Many(many)) => many.iter().map(|status| (*status, *status)).collect(),
        Some(StatusKey::Hundred(text)) => match text
            .strip_suffix("xx")
            .and_then(|digit| digit.parse::<u16>().ok())
        {
            Some(digit @ 1..=5) => vec![(digit * 100, digit * 100 + 99)],
            _ => {
                return problem(
                    "errors.status",
                    format!("`{text}` is no status: write 429, \"5xx\" or [403, 429]"),
                );
            }
        },
    };
    let wait = match &keys.wait {
        None => None,
        Some(WaitKeys::Fixed(millis)) => Some(Wait::Fixed(millis.0)),
        Some(WaitKeys::Told(told)) => Some(Wait::Told(check_told("errors.wait", told)?)),
    };
    if keys.class == ClassKey::Empty
        && (wait.is_some() || keys.smaller_page || keys.scope.is_some())
    {
        return problem(
            "errors.class",
            "`empty` is no error, so it takes no `wait`, `scope` or `smaller_page`",
        );
    }
    if let Some(message) = &keys.message {
        pointer_in("errors.message", message)?;
    }
    Ok(Rule {
        statuses,
        place,
        test,
        class: keys.class,
        scope: keys.scope,
        code: keys.code.clone(),
        message: keys.message.clone(),
        wait,
        smaller_page: keys.smaller_page,
    })
}
