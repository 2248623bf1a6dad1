//! Saying what a connector is.

use crate::{AuthScheme, CursorKind, Descriptor, Limit, Order, Origin, Pacing, Scope, Stream};

impl Descriptor {
    /// A connector without streams yet. `name` is what the config says (`connector = "github"`), `version` is semver.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let about = Descriptor::new("acme", "Acme", "1.0.0");
    /// assert_eq!(about.name, "acme");
    /// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let about = Descriptor::new("acme", "Acme", "1.0.0").docs("https://acme.example.test/docs");
    /// assert!(about.docs.is_some());
    /// ```
    pub fn docs(mut self, url: &str) -> Self {
        self.docs = Some(url.to_owned());
        self
    }

    /// JSON Schema (2020-12) of the config table.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let schema = r#"{"type":"object","required":["shop"],"properties":{"shop":{"type":"string"}}}"#;
    /// let about = Descriptor::new("acme", "Acme", "1.0.0").config_schema(schema);
    /// assert!(about.config_schema.contains("shop"));
    /// ```
    pub fn config_schema(mut self, schema: impl Into<String>) -> Self {
        self.config_schema = schema.into();
        self
    }

    /// Adds a place that the connector may talk to.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let about = Descriptor::new("acme", "Acme", "1.0.0").origin(Origin::new("api", "https://api.example.test"));
    /// assert_eq!(about.origins[0].id, "api");
    /// ```
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origins.push(origin);
        self
    }

    /// Adds a stream.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let about = Descriptor::new("acme", "Acme", "1.0.0").stream(Stream::new("orders").key("/id"));
    /// assert_eq!(about.streams.len(), 1);
    /// ```
    pub fn stream(mut self, stream: Stream) -> Self {
        self.streams.push(stream);
        self
    }

    /// How fast the vendor may be asked.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// // One call after the other, and never more often than once a minute.
    /// let pacing = Pacing { concurrency: Some(1), min_interval: Some(60_000), ..Pacing::default() };
    /// let about = Descriptor::new("acme", "Acme", "1.0.0").pacing(pacing);
    /// assert_eq!(about.pacing.concurrency, Some(1));
    /// ```
    pub fn pacing(mut self, pacing: Pacing) -> Self {
        self.pacing = pacing;
        self
    }

    /// Says something that the contract has no field for.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let about = Descriptor::new("acme", "Acme", "1.0.0").extra("tier", "free");
    /// assert_eq!(about.extra[0].1, "free");
    /// ```
    pub fn extra(mut self, name: &str, value: impl Into<String>) -> Self {
        self.extra.push((name.to_owned(), value.into()));
        self
    }
}

impl Origin {
    /// A base URL, which may take fields of the config: `https://{shop}.example.test/admin`.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let origin = Origin::new("admin", "https://{shop}.example.test/admin");
    /// assert_eq!(origin.id, "admin");
    /// ```
    pub fn new(id: &str, url: impl Into<String>) -> Self {
        Origin {
            id: id.to_owned(),
            url: url.into(),
            auth: Vec::new(),
        }
    }

    /// Adds a scheme that it accepts; the best comes first.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let origin = Origin::new("api", "https://api.example.test").auth(AuthScheme::Bearer).auth(AuthScheme::None);
    /// assert_eq!(origin.auth.len(), 2);
    /// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders");
    /// assert_eq!((stream.page_size, stream.granularity), (100, 1));
    /// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").title("Orders");
    /// assert_eq!(stream.title, "Orders");
    /// ```
    pub fn title(mut self, title: &str) -> Self {
        self.title = title.to_owned();
        self
    }

    /// Adds a JSON pointer to a field that identifies a record.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").key("/site").key("/number");
    /// assert_eq!(stream.key, ["/site", "/number"]);
    /// ```
    pub fn key(mut self, pointer: &str) -> Self {
        self.key.push(pointer.to_owned());
        self
    }

    /// JSON Schema of a record; its required fields are the schema gate.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").schema(r#"{"required":["id","updated_at"]}"#);
    /// assert!(stream.schema.is_some());
    /// ```
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// The schema gate in short: fields without which a record is not taken. Name those that the vendor always sends, the
    /// stamp among them: a record that lacks it comes from a vendor in trouble, and is no change. Replaces the schema.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").required(&["id", "updated_at"]);
    /// assert_eq!(stream.schema.as_deref(), Some(r#"{"type":"object","required":["id","updated_at"]}"#));
    /// ```
    pub fn required(self, fields: &[&str]) -> Self {
        let fields = serde_json::Value::from(fields);
        self.schema(format!(r#"{{"type":"object","required":{fields}}}"#))
    }

    /// Adds a JSON pointer whose change alone is no change: a score, a comment count.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").volatile("/views").volatile("/assets/*/downloads");
    /// assert_eq!(stream.volatile.len(), 2);
    /// ```
    pub fn volatile(mut self, pointer: &str) -> Self {
        self.volatile.push(pointer.to_owned());
        self
    }

    /// How a unit knows what is new. Without a filter by time ([`CursorKind::Snapshot`]) no past window can be asked for.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").cursor(CursorKind::Snapshot);
    /// assert!(!stream.backfill);
    /// ```
    pub fn cursor(mut self, kind: CursorKind) -> Self {
        self.backfill = kind != CursorKind::Snapshot;
        self.cursor = kind;
        self
    }

    /// The order in which the vendor lists a window.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").order(Order::Descending);
    /// assert_eq!(stream.order, Order::Descending);
    /// ```
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// How many records a full page holds.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").page_size(250);
    /// assert_eq!(stream.page_size, 250);
    /// ```
    pub fn page_size(mut self, size: u32) -> Self {
        self.page_size = size;
        self
    }

    /// The most records that the vendor returns for one query, however one pages.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").result_cap(1000);
    /// assert_eq!(stream.result_cap, Some(1000));
    /// ```
    pub fn result_cap(mut self, cap: u32) -> Self {
        self.result_cap = Some(cap);
        self
    }

    /// The widest window that the vendor answers truthfully, in ms.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").window_cap(7 * 24 * 3_600_000);
    /// assert_eq!(stream.window_cap, Some(604_800_000));
    /// ```
    pub fn window_cap(mut self, ms: u64) -> Self {
        self.window_cap = Some(ms);
        self
    }

    /// How long the vendor keeps the data, in ms.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").retention(90 * 24 * 3_600_000);
    /// assert!(stream.retention.is_some());
    /// ```
    pub fn retention(mut self, ms: u64) -> Self {
        self.retention = Some(ms);
        self
    }

    /// Resolution of the vendor's timestamps in ms: 1000 for whole seconds.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").granularity(1000);
    /// assert_eq!(stream.granularity, 1000);
    /// ```
    pub fn granularity(mut self, ms: u64) -> Self {
        self.granularity = ms;
        self
    }

    /// How late a record may become visible, in ms.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").settle(6 * 3_600_000);
    /// assert_eq!(stream.settle, Some(21_600_000));
    /// ```
    pub fn settle(mut self, ms: u64) -> Self {
        self.settle = Some(ms);
        self
    }

    /// Poll this stream once per record of that one.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").parent("customers");
    /// assert_eq!(stream.parent.as_deref(), Some("customers"));
    /// ```
    pub fn parent(mut self, stream: &str) -> Self {
        self.parent = Some(stream.to_owned());
        self
    }

    /// Whether a window in the past can be asked for.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let stream = Stream::new("orders").backfill(false);
    /// assert!(!stream.backfill);
    /// ```
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
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let limit = Limit::requests(20, 60_000);
    /// assert_eq!((limit.limit, limit.per), (Some(20), Some(60_000)));
    /// ```
    pub fn requests(limit: u64, per_ms: u64) -> Self {
        Limit {
            limit: Some(limit),
            per: Some(per_ms),
            ..Limit::default()
        }
    }
}
