//! The transport seam: one HTTP exchange, with secrets kept apart from text.
//!
//! Promises: connect, header, idle and total timeouts on every call; the body is decoded (content encoding and
//! charset) and capped while it streams; redirects are never followed by the transport; no error text holds a
//! query string, a header or a body.
//!
//! | file | job |
//! | --- | --- |
//! | `guard` | which URLs may be called: pure |
//! | `address` | which IP addresses may be dialled: pure |
//! | `headers` | which headers a connector may set: pure |
//! | `credentials` | what proves who we are, and how it is added |
//! | `redact` | masks known secrets in any text |
//! | `exchange` | one call as a connector asked for it, redirects included |
//! | `client` | the transport over real HTTP |
//! | `dns` | names to vetted addresses |
//! | `body` | reads, decodes and caps an answer's body |

pub mod address;
mod body;
pub mod client;
pub mod credentials;
mod dns;
pub mod exchange;
pub mod guard;
pub mod headers;
pub mod redact;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use url::Url;
use weir_rules::model::Class;

use crate::clock::BoxFuture;
use crate::store::UnitId;
use address::AddressPolicy;

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
    /// Which addresses its host may have.
    pub addresses: AddressPolicy,
    /// What this call may take.
    pub limits: CallLimits,
    /// For which unit it is made, for whoever keeps count; nothing of it is sent.
    pub unit: Option<UnitId>,
}

/// What a call may take.
#[derive(Clone, Copy, Debug)]
pub struct CallLimits {
    /// To find the address, connect and agree on TLS.
    pub connect: Duration,
    /// Silence in the middle of an answer.
    pub idle: Duration,
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
    /// Headers in order, names in lower case, values as text; without those that frame the body.
    pub headers: Vec<(String, String)>,
    /// Decoded content.
    pub body: Bytes,
    /// From the first byte sent to the last byte read.
    pub elapsed: Duration,
}

impl HttpResponse {
    /// The first header of that name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as text: never with a byte order mark. None when it is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok()
    }
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
    #[error(
        "the answer from {host} is larger than {limit} bytes: ask for smaller pages or raise host.max_body"
    )]
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

impl TransportError {
    /// What will fix it. Too large a body goes to review unless the caller can ask for smaller pages; everything else
    /// may pass by itself, a refused address too: what a name resolves to is not in our hands.
    pub fn class(&self) -> Class {
        match self {
            TransportError::Connect { .. }
            | TransportError::Timeout { .. }
            | TransportError::Broken { .. }
            | TransportError::Refused { .. } => Class::Temporary,
            TransportError::TooLarge { .. } => Class::Unknown,
        }
    }

    /// A short code for poll rows and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            TransportError::Connect { .. } => "connect",
            TransportError::Timeout { .. } => "timeout",
            TransportError::Broken { .. } => "broken",
            TransportError::TooLarge { .. } => "too-large",
            TransportError::Refused { .. } => "refused",
        }
    }
}

/// Sends requests: over HTTP, or to a simulated vendor.
pub trait Transport: Send + Sync + 'static {
    /// One exchange.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>>;
}
