//! The transport seam: one HTTP exchange, with secrets kept apart from text.
//!
//! Promises: connect, header, idle and total timeouts on every call; the body is decoded (content encoding and
//! charset) and capped while it streams; redirects are never followed by the transport; no error text holds a
//! query string, a header or a body.

use std::time::Duration;

use bytes::Bytes;
use url::Url;

use crate::clock::BoxFuture;

/// One request, ready to send.
#[derive(Clone)]
pub struct HttpRequest {
    /// `GET`, `POST`, ...
    pub method: &'static str,
    /// Where to; may hold a secret in its query, so it is never printed whole.
    pub url: Url,
    /// Plain headers.
    pub headers: Vec<(String, String)>,
    /// The headers that carry credentials.
    pub secret_headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Bytes>,
    /// What this call may take.
    pub limits: CallLimits,
}

/// What a call may take.
#[derive(Clone, Copy, Debug)]
pub struct CallLimits {
    /// To connect.
    pub connect: Duration,
    /// For the whole call.
    pub total: Duration,
    /// Decoded bytes of the body.
    pub body: usize,
}

/// One answer, whole and decoded.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Headers in order, names in lower case, values as text.
    pub headers: Vec<(String, String)>,
    /// Decoded content.
    pub body: Bytes,
    /// From the first byte sent to the last byte read.
    pub elapsed: Duration,
}

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TransportError {
    /// No connection.
    #[error("could not connect to {host}: {detail}")]
    Connect {
        /// Host and port.
        host: String,
        /// What the system said.
        detail: String,
    },
    /// Out of time.
    #[error("no whole answer from {host} within {after:?}")]
    Timeout {
        /// Host and port.
        host: String,
        /// The limit that was hit.
        after: Duration,
    },
    /// The answer broke off or its encoding was cut or damaged.
    #[error("the answer from {host} broke off: {detail}")]
    Broken {
        /// Host and port.
        host: String,
        /// What was missing.
        detail: String,
    },
    /// The body passed the cap.
    #[error("the answer from {host} is larger than {limit} bytes")]
    TooLarge {
        /// Host and port.
        host: String,
        /// The cap.
        limit: usize,
    },
    /// Refused by the guard: a host or address that may not be called.
    #[error("refused to call {host}: {detail}")]
    Refused {
        /// Host and port.
        host: String,
        /// Which rule.
        detail: String,
    },
}

/// Sends requests: over HTTP, or to a simulated vendor.
pub trait Transport: Send + Sync + 'static {
    /// One exchange.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>>;
}
