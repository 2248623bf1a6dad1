//! Reading an answer.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{Body, Fault, Header, Response, fault, json};

impl Response {
    /// An answer with a text body: for tests.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let answer = Response::new(200, r#"{"orders":[]}"#);
    /// assert_eq!(answer.status, 200);
    /// ```
    pub fn new(status: u16, body: impl Into<String>) -> Self {
        Response {
            status,
            headers: Vec::new(),
            body: Body::Text(body.into()),
            url: "https://api.example.test/".to_owned(),
            elapsed: 10,
        }
    }

    /// Adds a header: for tests.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let answer = Response::new(429, "").with_header("Retry-After", "30");
    /// assert_eq!(answer.header("retry-after"), Some("30"));
    /// ```
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push(Header {
            name: name.to_owned(),
            value: value.to_owned(),
        });
        self
    }

    /// Sets the URL that was asked: for tests.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let answer = Response::new(200, "[]").with_url("https://api.example.test/orders");
    /// assert_eq!(answer.url, "https://api.example.test/orders");
    /// ```
    pub fn with_url(mut self, url: &str) -> Self {
        self.url = url.to_owned();
        self
    }

    /// The answer if its status says success; else the fault that the status means by default. 202 is no success: what
    /// was asked for is not ready.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert!(Response::new(204, "").success().is_ok());
    /// assert_eq!(Response::new(503, "").success().unwrap_err().class, Class::Temporary);
    /// ```
    pub fn success(&self) -> Result<&Self, Fault> {
        match self.status {
            202 => Err(fault::from_status(self)),
            200..=299 => Ok(self),
            _ => Err(fault::from_status(self)),
        }
    }

    /// The first header of that name, trimmed; names differ in case from vendor to vendor.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let answer = Response::new(200, "").with_header("X-Page", " 2 ");
    /// assert_eq!(answer.header("x-page"), Some("2"));
    /// ```
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header_lines(name).next()
    }

    /// All headers of that name, in order.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let answer = Response::new(200, "").with_header("link", "<a>").with_header("Link", "<b>");
    /// assert_eq!(answer.header_lines("link").count(), 2);
    /// ```
    pub fn header_lines<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value.trim())
    }

    /// The body as text. Bytes that are not UTF-8 are an incomplete answer.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert_eq!(Response::new(200, "id,name").text()?, "id,name");
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn text(&self) -> Result<&str, Fault> {
        match &self.body {
            Body::Text(text) => Ok(text),
            Body::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|error| {
                Fault::incomplete(format!("the answer is not UTF-8 text: {error}")).code("encoding")
            }),
        }
    }

    /// The body as text, with U+FFFD for what is not UTF-8: for messages.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::Body;
    /// let mut answer = Response::new(500, "");
    /// answer.body = Body::Bytes(vec![b'o', 0xff]);
    /// assert_eq!(answer.lossy_text(), "o\u{fffd}");
    /// ```
    pub fn lossy_text(&self) -> Cow<'_, str> {
        match &self.body {
            Body::Text(text) => Cow::Borrowed(text),
            Body::Bytes(bytes) => String::from_utf8_lossy(bytes),
        }
    }

    /// The body, parsed by serde. For small answers; pages of records are read faster by [`Plan`](crate::json::Plan).
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let ids: Vec<u64> = Response::new(200, "[7,9]").json()?;
    /// assert_eq!(ids, [7, 9]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Fault> {
        Ok(json::parse(self.text()?)?)
    }
}
