//! `[sink.NAME]` with `type = "webhook"`.

use std::fmt;
use std::time::Duration;

use url::Url;

use super::auth::{self, Auth};
use super::reader::{Entry, Report, Section};
use super::secret::{Secret, SecretSource};
use super::stream::Backoff;
use crate::http::guard::{has_userinfo, is_loopback};
use crate::http::headers;

/// `type = "webhook"`: batches are POSTed to somebody else's server.
///
/// ```toml
/// [sink.warehouse]
/// type = "webhook"
/// url = "https://ingest.example.test/records"
/// auth = { bearer = { env = "WAREHOUSE_TOKEN" } }
/// batch = { records = 100, bytes = "1MiB" }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// `url`: where to; also by reference, as a secret is, where the address is one.
    pub url: Address,
    /// `auth`: as for connections. Default: none.
    pub auth: Auth,
    /// `headers`: more of them, names in lower case; values may be references. Default: none.
    pub headers: Vec<(String, Secret)>,
    /// `format`. Default `"ndjson"`.
    pub format: Format,
    /// `batch`: what one request holds at most.
    pub batch: Batch,
    /// `gzip`: bodies are packed. Default `false`.
    pub gzip: bool,
    /// `timeout`: for the whole request. Default `"30s"`.
    pub timeout: Duration,
    /// `backoff`: between tries. Default `{ base = "5s", cap = "1m" }`.
    pub backoff: Backoff,
    /// `tries`: of a record that is refused, 1 to 100; then it is a dead letter. Default 6.
    pub tries: u32,
    /// `allow_private`: the receiver is in a private network. Default `false`.
    pub allow_private: bool,
    /// `allow_http`: the receiver is called without TLS. Default `false`; loopback needs no word.
    pub allow_http: bool,
}

/// An address that may hold a secret: shown without its path and query.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// The whole of it.
    pub fn reveal(&self) -> &Url {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.origin().ascii_serialization())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// How records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `"ndjson"`: one JSON object per line.
    #[default]
    Ndjson,
    /// `"json"`: one JSON array per request.
    Json,
}

impl Format {
    /// The word for it in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Format::Ndjson => "ndjson",
            Format::Json => "json",
        }
    }
}

/// `batch = { records, bytes }`: whichever is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// `records`: 1 to 10000. Default 100.
    pub records: usize,
    /// `bytes`: of the body before it is packed, `"1KiB"` to `"16MiB"`; one record may be larger. Default `"1MiB"`.
    pub bytes: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            records: 100,
            bytes: 1 << 20,
        }
    }
}

const BYTES: (u64, u64) = (1 << 10, 16 << 20);
const URL_HELP: &str = "allowed: a whole https address, or a reference to one; example: url = \"https://ingest.example.test/records\"";

impl Webhook {
    pub(super) fn read(section: &mut Section<'_>, report: &mut Report<'_>) -> Option<Self> {
        let mut flag = |key: &'static str, report: &mut Report<'_>| {
            let at = section.get(report, key);
            at.and_then(|at| at.flag(report)).unwrap_or(false)
        };
        let gzip = flag("gzip", report);
        let allow_private = flag("allow_private", report);
        let allow_http = flag("allow_http", report);
        let auth = section
            .get(report, "auth")
            .map(|at| Self::auth(&at, report))
            .unwrap_or_default();
        let headers = section
            .get(report, "headers")
            .map(|at| Self::headers(&at, report))
            .unwrap_or_default();
        let format = section
            .get(report, "format")
            .and_then(|at| {
                let words = [("ndjson", Format::Ndjson), ("json", Format::Json)];
                at.word(report, &words)
            })
            .unwrap_or_default();
        let batch = section
            .get(report, "batch")
            .map(|at| Batch::read(&at, report))
            .unwrap_or_default();
        let timeout = section
            .get(report, "timeout")
            .and_then(|at| at.duration(report))
            .unwrap_or(30_000);
        let defaults = Backoff {
            base: Some(5_000),
            cap: Some(60_000),
        };
        let backoff = section
            .get(report, "backoff")
            .map_or(defaults, |at| Backoff::read(&at, report, defaults));
        let tries = section
            .get(report, "tries")
            .and_then(|at| at.number(report, 1..101))
            .and_then(|tries| u32::try_from(tries).ok())
            .unwrap_or(6);
        let Some(at) = section.get(report, "url") else {
            report.missing(section, "url", URL_HELP);
            return None;
        };
        Some(Webhook {
            url: Self::url(&at, allow_http, report)?,
            auth,
            headers,
            format,
            batch,
            gzip,
            timeout: Duration::from_millis(timeout),
            backoff,
            tries,
            allow_private,
            allow_http,
        })
    }

    /// A connector's word on which credential fits is missing here: what it would name must be named.
    fn auth(at: &Entry<'_>, report: &mut Report<'_>) -> Auth {
        let auth = Auth::read(at, true, report);
        if matches!(auth, Auth::OAuth2(_)) {
            let help = "allowed for a sink: bearer, basic, header, query";
            report.complain(
                at,
                "is for connections: a sink's tokens are not renewed",
                help,
            );
            return Auth::None;
        }
        if let Auth::Header { name: None, .. } | Auth::Query { name: None, .. } = auth {
            let help =
                "example: auth = { header = { name = \"X-Api-Key\", value = { env = \"KEY\" } } }";
            report.complain(at, "needs a name", help);
        }
        auth
    }

    fn url(at: &Entry<'_>, allow_http: bool, report: &mut Report<'_>) -> Option<Address> {
        // The address may hold a secret: it is never quoted.
        let at = &Entry {
            private: true,
            ..at.clone()
        };
        let secret;
        let text = if at.value.is_str() {
            at.filled(report, URL_HELP)?
        } else {
            secret = auth::secret(at, report)?;
            match report.stand_in {
                Some("") => return None,
                Some(_) => "https://sink.example.test",
                None => secret.reveal(),
            }
        };
        let wrong = |problem: &str, help: &str, report: &mut Report<'_>| {
            report.complain(at, problem, help);
            None
        };
        let mut url = match Url::parse(text.trim()) {
            Ok(url) if matches!(url.scheme(), "https" | "http") && url.has_host() => url,
            _ => return wrong("is not an https address", URL_HELP, report),
        };
        if has_userinfo(&url) {
            let help =
                "write it as auth = { basic = { user = \"...\", password = { env = \"...\" } } }";
            return wrong("holds a user or a password", help, report);
        }
        if url.scheme() == "http" && !is_loopback(&url) && !allow_http {
            let help = "use https, or set allow_http = true for this sink";
            return wrong("is not encrypted", help, report);
        }
        url.set_fragment(None);
        Some(Address(url))
    }

    fn headers(at: &Entry<'_>, report: &mut Report<'_>) -> Vec<(String, Secret)> {
        const OURS: [&str; 4] = [
            "content-type",
            "content-encoding",
            "idempotency-key",
            "user-agent",
        ];
        let help =
            "example: headers = { X-Source = \"weir\", X-Team-Key = { env = \"TEAM_KEY\" } }";
        let mut headers = Vec::new();
        let Some(section) = at.section(report, help) else {
            return headers;
        };
        for (name, at) in section.private().entries(report) {
            let value = match at.value.as_str() {
                Some(_) => at
                    .filled(report, help)
                    .map(|text| Secret::from_source(text, SecretSource::Inline)),
                None => auth::secret(&at, report),
            };
            let Some(value) = value else { continue };
            let lower = name.to_ascii_lowercase();
            match headers::admit(&[(lower.clone(), value.reveal().to_owned())]) {
                Ok(admitted) if admitted.left_out.is_empty() && !OURS.contains(&lower.as_str()) => {
                    headers.push((lower, value));
                }
                Ok(_) => {
                    let help = "leave it out; a credential goes as auth = { ... }";
                    report.complain(&at, "is a header that weir sets itself", help);
                }
                Err(_) => report.complain(&at, "is not a header that can be sent", help),
            }
        }
        headers
    }
}

impl Batch {
    fn read(at: &Entry<'_>, report: &mut Report<'_>) -> Self {
        let mut batch = Batch::default();
        let help = "example: batch = { records = 100, bytes = \"1MiB\" }";
        let Some(mut section) = at.section(report, help) else {
            return batch;
        };
        if let Some(records) = section
            .get(report, "records")
            .and_then(|at| at.number(report, 1..10_001))
        {
            batch.records = usize::try_from(records).unwrap_or(batch.records);
        }
        if let Some(at) = section.get(report, "bytes")
            && let Some(bytes) = at.size(report)
        {
            if (BYTES.0..=BYTES.1).contains(&bytes) {
                batch.bytes = usize::try_from(bytes).unwrap_or(batch.bytes);
            } else {
                report.complain(&at, "is out of range", "allowed: \"1KiB\" to \"16MiB\"");
            }
        }
        section.finish(report);
        batch
    }
}
