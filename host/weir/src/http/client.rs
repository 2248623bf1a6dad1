//! The transport over real HTTP.
//!
//! Promises: no redirect is followed, no cookie kept, no system proxy used; TLS 1.2 or later with the system's root
//! certificates; only vetted addresses are dialled; the body is decoded, whole and within its cap; every call ends
//! within its limits. Calls to loopback or plain http never load the root certificates, which takes longer than
//! such a call.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use reqwest::{Client, Method, Request, redirect};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout, timeout_at};
use url::{Host, Url};

use super::address::{AddressPolicy, address_allowed};
use super::body::{BodyError, Collector, to_utf8};
use super::dns::{Lookup, Refusal, VettedResolver, system_lookup};
use super::{CallLimits, HttpRequest, HttpResponse, Transport, TransportError};
use crate::clock::BoxFuture;

/// Idle connections are closed after this: shorter than what most vendors' balancers allow, so that a call seldom
/// meets one that is just being closed.
const KEEP_IDLE: Duration = Duration::from_secs(50);

/// Headers that frame a body on its way; a body that has arrived whole and decoded has none of it.
const FRAMING: [&str; 5] = [
    "connection",
    "content-encoding",
    "content-length",
    "keep-alive",
    "transfer-encoding",
];

/// One pool of connections for each kind of call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    tls: bool,
    addresses: AddressPolicy,
    connect: Duration,
}

/// Sends requests over HTTP/1.1 and HTTP/2. Cheap to make: connections, TLS and root certificates come with the first
/// call that needs them.
pub struct HttpClient {
    clients: Mutex<HashMap<Kind, Arc<OnceCell<Client>>>>,
    lookup: Lookup,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpClient {
    /// A client without connections yet.
    pub fn new() -> Self {
        Self::with_lookup(system_lookup())
    }

    pub(super) fn with_lookup(lookup: Lookup) -> Self {
        HttpClient {
            clients: Mutex::new(HashMap::new()),
            lookup,
        }
    }

    async fn client(&self, kind: Kind, host: &str) -> Result<Client, TransportError> {
        let cell = {
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(clients.entry(kind).or_default())
        };
        let build = || async {
            let resolver = VettedResolver {
                lookup: Arc::clone(&self.lookup),
                policy: kind.addresses,
            };
            if kind.tls {
                // Reads some hundred certificates from disk.
                tokio::task::spawn_blocking(move || build(kind, resolver))
                    .await
                    .map_err(|error| error.to_string())?
            } else {
                build(kind, resolver)
            }
        };
        let client = cell.get_or_try_init(build).await;
        client.cloned().map_err(|detail| TransportError::Connect {
            host: host.to_owned(),
            detail: format!(
                "TLS cannot be set up: {detail}; is the package ca-certificates installed?"
            ),
        })
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let started = Instant::now();
        let limits = request.limits;
        let host = authority(&request.url);
        let whole = self.whole(request, &host, started);
        let response = timeout_at(started + limits.total, whole).await;
        response.unwrap_or(Err(TransportError::Timeout {
            host,
            after: limits.total,
        }))
    }

    async fn whole(
        &self,
        request: HttpRequest,
        host: &str,
        started: Instant,
    ) -> Result<HttpResponse, TransportError> {
        // A name is vetted when it is resolved; an address in the URL is never resolved.
        if let Some(address) = literal(&request.url) {
            address_allowed(address, request.addresses).map_err(|reason| {
                TransportError::Refused {
                    host: host.to_owned(),
                    detail: reason.to_owned(),
                }
            })?;
        }
        let limits = request.limits;
        let kind = Kind {
            tls: request.url.scheme() == "https",
            addresses: request.addresses,
            connect: limits.connect,
        };
        let client = self.client(kind, host).await?;
        let request = translate(request, host)?;
        let mut response = client
            .execute(request)
            .await
            .map_err(|error| explain(&error, host, limits))?;

        let status = response.status().as_u16();
        let fail = |error| match error {
            BodyError::TooLarge => TransportError::TooLarge {
                host: host.to_owned(),
                limit: limits.body,
            },
            BodyError::Broken(detail) => TransportError::Broken {
                host: host.to_owned(),
                detail,
            },
        };
        let encoding = header(response.headers(), &CONTENT_ENCODING);
        let mut collector =
            Collector::new(encoding.as_deref(), response.content_length(), limits.body)
                .map_err(fail)?;
        loop {
            let chunk = timeout(limits.idle, response.chunk())
                .await
                .map_err(|_| TransportError::Timeout {
                    host: host.to_owned(),
                    after: limits.idle,
                })?
                .map_err(|error| explain(&error, host, limits))?;
            match chunk {
                Some(chunk) => collector.push(chunk).map_err(fail)?,
                None => break,
            }
        }
        let content_type = header(response.headers(), &CONTENT_TYPE);
        let body = collector.finish().map_err(fail)?;
        Ok(HttpResponse {
            status,
            headers: response
                .headers()
                .iter()
                .filter(|(name, _)| !FRAMING.contains(&name.as_str()))
                .map(|(name, value)| (name.as_str().to_owned(), value_text(value)))
                .collect(),
            body: to_utf8(body, content_type.as_deref(), limits.body).map_err(fail)?,
            elapsed: started.elapsed(),
        })
    }
}

impl Transport for HttpClient {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

fn build(kind: Kind, resolver: VettedResolver) -> Result<Client, String> {
    let builder = Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .no_gzip()
        .no_deflate()
        .retry(reqwest::retry::never())
        .connect_timeout(kind.connect)
        .pool_idle_timeout(KEEP_IDLE)
        .dns_resolver(Arc::new(resolver));
    // Another part of the process may have installed a provider first; either does.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = if kind.tls {
        builder
            .https_only(true)
            .tls_version_min(reqwest::tls::Version::TLS_1_2)
    } else {
        // No root at all: what is not encrypted needs none.
        builder.tls_certs_only([]).http1_only()
    };
    builder.build().map_err(|error| reasons(&error))
}

/// The request as the library wants it.
fn translate(request: HttpRequest, host: &str) -> Result<Request, TransportError> {
    let unsendable = |what: &str| TransportError::Refused {
        host: host.to_owned(),
        detail: format!("the request cannot be sent: {what}"),
    };
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| unsendable("its method is not one"))?;
    let mut translated = Request::new(method, request.url);
    let headers = translated.headers_mut();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate"));
    let all = request.headers.iter().map(|header| (header, false));
    let all = all.chain(request.secret_headers.iter().map(|header| (header, true)));
    for ((name, value), secret) in all {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| unsendable("a header's name is not one"))?;
        let mut value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|_| unsendable("a header holds a control character"))?;
        value.set_sensitive(secret);
        headers.append(name, value);
    }
    if let Some(body) = request.body {
        *translated.body_mut() = Some(body.into());
    }
    Ok(translated)
}

/// Host and port: all that error texts say of a URL.
pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or("nowhere");
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(value_text)
}

/// A value as text: UTF-8 where it is, else byte by byte as Latin-1, which HTTP once meant.
fn value_text(value: &HeaderValue) -> String {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value
            .as_bytes()
            .iter()
            .map(|byte| char::from(*byte))
            .collect(),
    }
}

/// What went wrong, without the URL that the library's own text would show.
fn explain(error: &reqwest::Error, host: &str, limits: CallLimits) -> TransportError {
    let host = host.to_owned();
    if let Some(refusal) = causes(error).find_map(|cause| cause.downcast_ref::<Refusal>()) {
        return TransportError::Refused {
            host,
            detail: refusal.to_string(),
        };
    }
    if error.is_connect() && error.is_timeout() {
        return TransportError::Timeout {
            host,
            after: limits.connect,
        };
    }
    let detail = reasons(error);
    if error.is_connect() {
        TransportError::Connect { host, detail }
    } else {
        TransportError::Broken { host, detail }
    }
}

/// The causes of an error, without the error itself: the library's own text holds the URL.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let mut next = error.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

/// The texts of the causes, each once, without the library's own "client error (Connect)".
fn reasons(error: &reqwest::Error) -> String {
    let mut told: Vec<String> = Vec::new();
    for cause in causes(error) {
        let text = cause.to_string();
        if !text.starts_with("client error (") && !told.iter().any(|before| before.contains(&text))
        {
            told.push(text);
        }
    }
    match told.is_empty() {
        true => "no reason was given".to_owned(),
        false => told.join(": "),
    }
}
