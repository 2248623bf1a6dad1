//! Building a call.

use std::fmt::Display;

use crate::{Body, Header, Method, Request, Target};

impl Request {
    /// GET a path below the origin with that id. The host percent-encodes the query; the path is taken as it is (see
    /// [`url::segment`](crate::url::segment) for parts that come from elsewhere).
    pub fn get(origin: &str, path: impl Into<String>) -> Self {
        Request::new(Method::Get, origin, Target::Path(path.into()))
    }

    /// POST a JSON body to a path below the origin.
    pub fn post_json(origin: &str, path: impl Into<String>, json: impl Into<String>) -> Self {
        Request::new(Method::Post, origin, Target::Path(path.into()))
            .body(Body::Text(json.into()))
            .header("content-type", "application/json")
    }

    /// GET a whole URL that the vendor gave: the next page. The host refuses it unless it lies at the origin.
    pub fn follow(origin: &str, link: impl Into<String>) -> Self {
        Request::new(Method::Get, origin, Target::Link(link.into()))
    }

    /// Any method, any target.
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
    pub fn query(mut self, name: &str, value: impl Display) -> Self {
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a query parameter if there is a value for it.
    pub fn query_if(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Adds a header. Credentials are the host's: it drops any that a connector names.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push(Header {
            name: name.to_owned(),
            value: value.into(),
        });
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: Body) -> Self {
        self.body = Some(body);
        self
    }

    /// Sends validators (ETag, Last-Modified) if the host has them, and accepts 304. For pages whose "unchanged" means
    /// that nothing is new behind them either.
    pub fn conditional(mut self) -> Self {
        self.conditional = true;
        self
    }

    /// Which of the vendor's buckets the call spends, and how much of it.
    pub fn spends(mut self, bucket: &str, cost: u32) -> Self {
        self.bucket = Some(bucket.to_owned());
        self.cost = cost;
        self
    }

    /// A call with an effect at the vendor: the host adds a stored idempotency key in this header.
    pub fn idempotent_by(mut self, header: &str) -> Self {
        self.idempotency_header = Some(header.to_owned());
        self
    }

    /// The value of a query parameter, the first of that name: for tests.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}
