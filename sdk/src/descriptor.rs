//! Saying what a connector is.

use crate::{AuthScheme, CursorKind, Descriptor, Limit, Order, Origin, Pacing, Scope, Stream};

impl Descriptor {
    /// A connector without streams yet. `name` is what the config says (`connector = "github"`), `version` is semver.
    pub fn new(name: &str, title: &str, version: &str) -> Self {
        Descriptor {
            name: name.to_owned(),
            title: title.to_owned(),
            version: version.to_owned(),
            docs: None,
            config_schema: r#"{"type":"object"}"#.to_owned(),
            origins: Vec::new(),
            streams: Vec::new(),
            pacing: Pacing::default(),
            extra: Vec::new(),
        }
    }

    /// Where the vendor documents its API.
    pub fn docs(mut self, url: &str) -> Self {
        self.docs = Some(url.to_owned());
        self
    }

    /// JSON Schema (2020-12) of the config table.
    pub fn config_schema(mut self, schema: impl Into<String>) -> Self {
        self.config_schema = schema.into();
        self
    }

    /// Adds a place that the connector may talk to.
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origins.push(origin);
        self
    }

    /// Adds a stream.
    pub fn stream(mut self, stream: Stream) -> Self {
        self.streams.push(stream);
        self
    }

    /// How fast the vendor may be asked.
    pub fn pacing(mut self, pacing: Pacing) -> Self {
        self.pacing = pacing;
        self
    }

    /// Says something that the contract has no field for.
    pub fn extra(mut self, name: &str, value: impl Into<String>) -> Self {
        self.extra.push((name.to_owned(), value.into()));
        self
    }
}

impl Origin {
    /// A base URL, which may take fields of the config: `https://{shop}.example.test/admin`.
    pub fn new(id: &str, url: impl Into<String>) -> Self {
        Origin {
            id: id.to_owned(),
            url: url.into(),
            auth: Vec::new(),
        }
    }

    /// Adds a scheme that it accepts; the best comes first.
    pub fn auth(mut self, scheme: AuthScheme) -> Self {
        self.auth.push(scheme);
        self
    }
}

#[allow(clippy::derivable_impls)] // the type is generated
impl Default for Pacing {
    /// Nothing known: the host's own defaults.
    fn default() -> Self {
        Pacing {
            min_interval: None,
            max_interval: None,
            unpublished_limits: false,
            concurrency: None,
            backoff_cap: None,
            not_modified_is_free: false,
            documented_limits: Vec::new(),
        }
    }
}

impl Stream {
    /// A stream with the commonest traits: timestamps in ms, no promised order, pages of 100, past windows on request.
    pub fn new(name: &str) -> Self {
        Stream {
            name: name.to_owned(),
            title: name.to_owned(),
            key: Vec::new(),
            schema: None,
            volatile: Vec::new(),
            cursor: CursorKind::Timestamp,
            order: Order::Unordered,
            page_size: 100,
            result_cap: None,
            window_cap: None,
            retention: None,
            granularity: 1,
            settle: None,
            parent: None,
            backfill: true,
            extra: Vec::new(),
        }
    }

    /// Its name for people.
    pub fn title(mut self, title: &str) -> Self {
        self.title = title.to_owned();
        self
    }

    /// Adds a JSON pointer to a field that identifies a record.
    pub fn key(mut self, pointer: &str) -> Self {
        self.key.push(pointer.to_owned());
        self
    }

    /// JSON Schema of a record; its required fields are the schema gate.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// Adds a JSON pointer whose change alone is no change: a score, a comment count.
    pub fn volatile(mut self, pointer: &str) -> Self {
        self.volatile.push(pointer.to_owned());
        self
    }

    /// How a unit knows what is new. Without a filter by time ([`CursorKind::Snapshot`]) no past window can be asked for.
    pub fn cursor(mut self, kind: CursorKind) -> Self {
        self.backfill = kind != CursorKind::Snapshot;
        self.cursor = kind;
        self
    }

    /// The order in which the vendor lists a window.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// How many records a full page holds.
    pub fn page_size(mut self, size: u32) -> Self {
        self.page_size = size;
        self
    }

    /// The most records that the vendor returns for one query, however one pages.
    pub fn result_cap(mut self, cap: u32) -> Self {
        self.result_cap = Some(cap);
        self
    }

    /// The widest window that the vendor answers truthfully, in ms.
    pub fn window_cap(mut self, ms: u64) -> Self {
        self.window_cap = Some(ms);
        self
    }

    /// How long the vendor keeps the data, in ms.
    pub fn retention(mut self, ms: u64) -> Self {
        self.retention = Some(ms);
        self
    }

    /// Resolution of the vendor's timestamps in ms: 1000 for whole seconds.
    pub fn granularity(mut self, ms: u64) -> Self {
        self.granularity = ms;
        self
    }

    /// How late a record may become visible, in ms.
    pub fn settle(mut self, ms: u64) -> Self {
        self.settle = Some(ms);
        self
    }

    /// Poll this stream once per record of that one.
    pub fn parent(mut self, stream: &str) -> Self {
        self.parent = Some(stream.to_owned());
        self
    }

    /// Whether a window in the past can be asked for.
    pub fn backfill(mut self, possible: bool) -> Self {
        self.backfill = possible;
        self
    }
}

impl Default for Limit {
    /// The vendor's default bucket of requests, shared by all who use the credential, with nothing known of it.
    fn default() -> Self {
        Limit {
            bucket: None,
            scope: Scope::Credential,
            quota_unit: "requests".to_owned(),
            limit: None,
            remaining: None,
            used_percent: None,
            per: None,
            resets_in: None,
            restores: None,
            wait: None,
        }
    }
}

impl Limit {
    /// So many requests per so many ms.
    pub fn requests(limit: u64, per_ms: u64) -> Self {
        Limit {
            limit: Some(limit),
            per: Some(per_ms),
            ..Limit::default()
        }
    }
}
