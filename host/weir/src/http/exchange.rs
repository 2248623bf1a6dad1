//! One call as a connector asked for it: guard, headers, validators, credentials, send, redirects.
//!
//! Promises: credentials go to their origin alone and leave no trace in what is returned; every hop is guarded anew;
//! a call ends within its total limit, redirects included. Redirects are followed for GET and HEAD, at most
//! [`MAX_REDIRECTS`] times; on the way to another scheme, host or port the credentials, the validators and the
//! connector's own headers stay behind, and do not come back.

use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use url::Url;
use weir_rules::model::Class;

use super::credentials::Credential;
use super::guard::{GuardError, Origin, Target, shown};
use super::headers::{self, HeaderError};
use super::{CallLimits, HttpRequest, HttpResponse, Transport, TransportError};
use crate::store::UnitId;

/// How many redirects one call follows: a move to another host, one to another path, and one spare.
pub const MAX_REDIRECTS: usize = 3;

/// The headers that may go along to another origin.
const HARMLESS: [&str; 4] = ["accept", "accept-language", "range", "user-agent"];

/// A place that a connection talks to, and as whom.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint<'p> {
    /// Where.
    pub origin: &'p Origin,
    /// As whom.
    pub credential: &'p Credential,
    /// What the vendor sees as `User-Agent`, unless the connector sets one.
    pub user_agent: &'p str,
}

/// What the connector asks for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// `GET`, `POST`, ...
    pub method: &'static str,
    /// Where, at the endpoint.
    pub target: Target,
    /// To be added to the query.
    pub query: Vec<(String, String)>,
    /// Headers, not yet checked.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Bytes>,
}

/// Why a call did not come to an answer. No text holds a query, a header or a body.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The URL may not be called.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A header cannot be sent.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// No answer.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// A redirect leads where no call may go.
    #[error("{from} answered with a redirect that is not followed: {reason}")]
    Redirect {
        /// The URL that redirected, without its query.
        from: String,
        /// Why.
        reason: GuardError,
    },
    /// Redirects without an end.
    #[error(
        "{from} was redirected more than {MAX_REDIRECTS} times, last to {last}: does the vendor want a sign-in, or is the address out of date?"
    )]
    Endless {
        /// The URL that was called, without its query.
        from: String,
        /// The last one, without its query.
        last: String,
    },
}

impl ExchangeError {
    /// What will fix it. What the connector itself asked wrongly will never work; redirects and networks may mend.
    pub fn class(&self) -> Class {
        match self {
            ExchangeError::Guard(_) | ExchangeError::Header(_) => Class::Permanent,
            ExchangeError::Transport(error) => error.class(),
            ExchangeError::Redirect { .. } | ExchangeError::Endless { .. } => Class::Temporary,
        }
    }

    /// A short code for poll rows and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            ExchangeError::Guard(_) => "guard",
            ExchangeError::Header(_) => "header",
            ExchangeError::Transport(error) => error.code(),
            ExchangeError::Redirect { .. } | ExchangeError::Endless { .. } => "redirect",
        }
    }
}

/// A call that has passed the guard. It may be sent again: with other validators, or with none.
#[derive(Clone, Debug)]
pub struct Exchange<'p> {
    endpoint: Endpoint<'p>,
    method: &'static str,
    url: Url,
    headers: Vec<(String, String)>,
    body: Option<Bytes>,
    unit: Option<UnitId>,
}

/// The vendor's answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status, headers (without cookies) and body. `elapsed` covers all hops.
    pub response: HttpResponse,
    /// Where it came from in the end, without credentials.
    pub url: Url,
}

impl<'p> Exchange<'p> {
    /// Guards what was asked. `from` is the URL of the answer that gave a relative link, where it is known.
    ///
    /// # Errors
    /// [`ExchangeError::Guard`] and [`ExchangeError::Header`].
    pub fn new(
        endpoint: Endpoint<'p>,
        ask: Ask,
        from: Option<&Url>,
    ) -> Result<Self, ExchangeError> {
        let resolved = endpoint.origin.resolve(&ask.target, &ask.query, from)?;
        if let Some(note) = resolved.note {
            tracing::warn!("{note}");
        }
        let admitted = headers::admit(&ask.headers)?;
        if !admitted.left_out.is_empty() {
            let names = admitted.left_out.join(", ");
            tracing::debug!(
                names,
                "headers of the connector that are the host's were left out"
            );
        }
        let mut headers = admitted.headers;
        let own = endpoint.credential.header_name();
        headers.retain(|(name, _)| Some(name.as_str()) != own);
        if !headers.iter().any(|(name, _)| name == "user-agent") {
            headers.push(("user-agent".to_owned(), endpoint.user_agent.to_owned()));
        }
        let mut url = resolved.url;
        endpoint.credential.strip(&mut url);
        Ok(Exchange {
            endpoint,
            method: ask.method,
            url,
            headers,
            body: ask.body,
            unit: None,
        })
    }

    /// It is made for this unit.
    pub fn made_for(mut self, unit: UnitId) -> Self {
        self.unit = Some(unit);
        self
    }

    /// The URL, without credentials.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Names this exact call: method, URL, headers, body and who asks. The key of its validators.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut feed = |part: &[u8]| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        feed(self.method.as_bytes());
        feed(self.url.as_str().as_bytes());
        feed(self.endpoint.credential.fingerprint().as_bytes());
        feed(self.body.as_deref().unwrap_or_default());
        let mut headers: Vec<_> = self
            .headers
            .iter()
            .filter(|(name, _)| name != "user-agent")
            .collect();
        headers.sort();
        for (name, value) in headers {
            feed(name.as_bytes());
            feed(value.as_bytes());
        }
        hash.finalize().into()
    }

    /// Sends it, follows redirects, and adds each request that was made to `calls`. `conditions` are the headers that
    /// make it conditional, with validators as the vendor gave them, byte for byte.
    ///
    /// # Errors
    /// [`ExchangeError::Transport`], [`ExchangeError::Redirect`] and [`ExchangeError::Endless`].
    pub async fn send(
        &self,
        transport: &dyn Transport,
        conditions: &[(String, String)],
        limits: CallLimits,
        calls: &mut u32,
    ) -> Result<Answer, ExchangeError> {
        let follows = matches!(self.method, "GET" | "HEAD");
        let mut url = self.url.clone();
        let mut at_home = true;
        let mut elapsed = Duration::ZERO;
        for _ in 0..=MAX_REDIRECTS {
            let left = CallLimits {
                total: limits.total.saturating_sub(elapsed),
                ..limits
            };
            *calls = calls.saturating_add(1);
            let mut response = transport
                .send(self.hop(&url, at_home, conditions, left))
                .await?;
            elapsed = elapsed.saturating_add(response.elapsed);
            let location = match response.status {
                301 | 302 | 303 | 307 | 308 if follows => {
                    response.header("location").map(str::to_owned)
                }
                _ => None,
            };
            let Some(location) = location else {
                let cookie = |name: &str| matches!(name, "set-cookie" | "set-cookie2");
                response.headers.retain(|(name, _)| !cookie(name));
                response.elapsed = elapsed;
                return Ok(Answer { response, url });
            };
            let next = self
                .endpoint
                .origin
                .redirect(&location, &url)
                .map_err(|reason| ExchangeError::Redirect {
                    from: shown(&url),
                    reason,
                })?;
            if let Some(note) = next.note {
                tracing::warn!("{note}");
            }
            url = next.url;
            self.endpoint.credential.strip(&mut url);
            at_home = at_home && self.endpoint.origin.covers(&url);
        }
        Err(ExchangeError::Endless {
            from: shown(&self.url),
            last: shown(&url),
        })
    }

    fn hop(
        &self,
        url: &Url,
        at_home: bool,
        conditions: &[(String, String)],
        limits: CallLimits,
    ) -> HttpRequest {
        let origin = self.endpoint.origin;
        let mut url = url.clone();
        let mut headers = self.headers.clone();
        let mut secret_headers = Vec::new();
        if at_home {
            headers.extend(conditions.iter().cloned());
            secret_headers = self
                .endpoint
                .credential
                .sign(&mut url, origin.allows_http());
        } else {
            headers.retain(|(name, _)| HARMLESS.contains(&name.as_str()));
        }
        HttpRequest {
            method: self.method,
            url,
            headers,
            secret_headers,
            body: self.body.clone(),
            addresses: origin.addresses(),
            limits,
            unit: self.unit,
        }
    }
}
