//! Building a call.

use std::fmt::Display;

use crate::{Body, Header, Method, Request, Target};

impl Request {
    /// GET a path below the origin with that id. The host percent-encodes the query; the path is taken as it is (see
    /// [`url::segment`](crate::url::segment) for parts that come from elsewhere).
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let request = Request::get("api", format!("/shops/{}/orders", url::segment("a/b")));
    /// assert!(matches!(request.target, weir_sdk::Target::Path(path) if path == "/shops/a%2Fb/orders"));
    /// ```
    pub fn get(origin: &str, path: impl Into<String>) -> Self {
        Request::new(Method::Get, origin, Target::Path(path.into()))
    }

    /// POST a JSON body to a path below the origin.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let request = Request::post_json("api", "/graphql", r#"{"query":"{ orders }"}"#);
    /// assert_eq!(request.headers[0].value, "application/json");
    /// ```
    pub fn post_json(origin: &str, path: impl Into<String>, json: impl Into<String>) -> Self {
        Request::new(Method::Post, origin, Target::Path(path.into()))
            .body(Body::Text(json.into()))
            .header("content-type", "application/json")
    }

    /// GET a whole URL that the vendor gave: the next page. The host refuses it unless it lies at the origin.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let request = Request::follow("api", "https://api.example.test/orders?page=2");
    /// assert_eq!(request.origin, "api");
    /// ```
    pub fn follow(origin: &str, link: impl Into<String>) -> Self {
        Request::new(Method::Get, origin, Target::Link(link.into()))
    }

    /// Any method, any target.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::{Method, Target};
    /// let request = Request::new(Method::Head, "api", Target::Path("/export".to_owned()));
    /// assert_eq!(request.cost, 1);
    /// ```
    pub fn new(method: Method, origin: &str, target: Target) -> Self {
        Request {
            method,
            origin: origin.to_owned(),
            target,
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            conditional: false,
            bucket: None,
            cost: 1,
            idempotency_header: None,
        }
    }

    /// Adds a query parameter.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert_eq!(Request::get("api", "/orders").query("limit", 100).param("limit"), Some("100"));
    /// ```
    pub fn query(mut self, name: &str, value: impl Display) -> Self {
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a query parameter if there is a value for it.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let since: Option<i64> = None;
    /// assert_eq!(Request::get("api", "/orders").query_if("since", since.map(time::rfc3339)).param("since"), None);
    /// ```
    pub fn query_if(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Adds a header. Credentials are the host's: it drops any that a connector names.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let request = Request::get("api", "/orders").header("accept", "application/vnd.acme.v2+json");
    /// assert_eq!(request.headers[0].name, "accept");
    /// ```
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push(Header {
            name: name.to_owned(),
            value: value.into(),
        });
        self
    }

    /// Sets the body.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::{Body, Method, Target};
    /// let request = Request::new(Method::Post, "api", Target::Path("/search".to_owned())).body(Body::Text("q=pumps".to_owned()));
    /// assert!(request.body.is_some());
    /// ```
    pub fn body(mut self, body: Body) -> Self {
        self.body = Some(body);
        self
    }

    /// Sends validators (ETag, Last-Modified) if the host has them, and accepts 304. For pages whose "unchanged" means
    /// that nothing is new behind them either.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert!(Request::get("api", "/releases").conditional().conditional);
    /// ```
    pub fn conditional(mut self) -> Self {
        self.conditional = true;
        self
    }

    /// Which of the vendor's buckets the call spends, and how much of it.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let request = Request::get("api", "/search").spends("search", 5);
    /// assert_eq!((request.bucket.as_deref(), request.cost), (Some("search"), 5));
    /// ```
    pub fn spends(mut self, bucket: &str, cost: u32) -> Self {
        self.bucket = Some(bucket.to_owned());
        self.cost = cost;
        self
    }

    /// A call with an effect at the vendor: the host adds a stored idempotency key in this header.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let request = Request::post_json("api", "/reports", "{}").idempotent_by("idempotency-key");
    /// assert!(request.idempotency_header.is_some());
    /// ```
    pub fn idempotent_by(mut self, header: &str) -> Self {
        self.idempotency_header = Some(header.to_owned());
        self
    }

    /// The value of a query parameter, the first of that name: for tests.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert_eq!(Request::get("api", "/orders").query("page", 2).param("page"), Some("2"));
    /// ```
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}
