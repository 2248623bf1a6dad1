//! Batches POSTed to somebody else's server.
//!
//! Promises: each request has an `Idempotency-Key`, and every try of the same batch sends the same bytes under the same
//! key; each line has its record's own `key` besides. The transport's rules are those of vendors: https (or loopback),
//! vetted addresses, no redirect, a limit on time and on the answer. The credential goes to the address of the
//! configuration alone and is masked in what the receiver says. What its answers mean is in `answer`.
//!
//! Refuses: to take a batch in part. A batch with a record that the receiver refuses is offered in parts by the loop.

mod answer;

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use url::Url;

use self::answer::Meaning;
use crate::clock::{BoxFuture, Clock};
use crate::config::{Auth, SecretSource, Webhook};
use crate::http::credentials::{AuthScheme, Credential, CredentialError};
use crate::http::exchange::{Ask, Endpoint, Exchange};
use crate::http::guard::{GuardError, Origin, Target};
use crate::http::redact::Redactor;
use crate::http::{CallLimits, Transport};
use crate::sink::format::{Form, Writer};
use crate::sink::{Delivered, Refusal, Remedy, Sink, SinkError};
use crate::store::OutboxEntry;

/// Decoded bytes of a receiver's answer: it has little to say.
const ANSWER: usize = 1 << 20;

/// What a webhook needs of its host.
#[derive(Clone)]
pub struct WebhookSettings {
    /// `[sink.NAME]`.
    pub config: Webhook,
    /// To find the address and connect.
    pub connect: std::time::Duration,
    /// `User-Agent`.
    pub user_agent: String,
}

/// Why a webhook can't be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// Its address.
    #[error("url: {0}")]
    Url(#[from] GuardError),
    /// Its credential.
    #[error(transparent)]
    Auth(#[from] CredentialError),
}

/// A receiver of batches over HTTP.
pub struct WebhookSink {
    name: String,
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    settings: WebhookSettings,
    url: Url,
    origin: Origin,
    credential: Credential,
    redactor: Redactor,
    headers: Vec<(String, String)>,
    writer: Writer,
    form: String,
}

impl WebhookSink {
    /// A webhook as configured. Nothing is sent yet.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub fn new(
        name: impl Into<String>,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
        settings: WebhookSettings,
    ) -> Result<Self, WebhookError> {
        let config = &settings.config;
        let url = config.url.reveal().clone();
        let (origin, credential) = prepare(config)?;
        let mut secrets: Vec<&str> = config
            .headers
            .iter()
            .filter(|(_, value)| *value.source() != SecretSource::Inline)
            .map(|(_, value)| value.reveal())
            .collect();
        // Receivers that are known by their address alone have their secret there.
        secrets.extend(url.query());
        secrets.extend(
            url.path_segments()
                .into_iter()
                .flatten()
                .filter(|part| part.len() >= 16),
        );
        let redactor = Redactor::join([credential.redactor(), &Redactor::new(secrets)]);
        let mut headers: Vec<(String, String)> = config
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.reveal().to_owned()))
            .collect();
        let form = Form::of(config.format);
        headers.push(("content-type".to_owned(), form.content_type.to_owned()));
        if config.gzip {
            headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
        }
        Ok(WebhookSink {
            name: name.into(),
            transport,
            clock,
            form: describe(&settings.config),
            url,
            origin,
            credential,
            redactor,
            headers,
            writer: Writer::new(form),
            settings,
        })
    }

    async fn post(&mut self, batch: &[OutboxEntry], key: &str) -> Result<Delivered, SinkError> {
        let failed = |detail: String| SinkError::new(&self.name, detail);
        let mut body = Vec::new();
        self.writer.batch(batch, &mut body);
        if self.settings.config.gzip {
            body = gzip(&body)
                .map_err(|error| failed(format!("the body cannot be packed: {error}")))?;
        }
        let mut headers = self.headers.clone();
        headers.push(("idempotency-key".to_owned(), key.to_owned()));
        let endpoint = Endpoint {
            origin: &self.origin,
            credential: &self.credential,
            user_agent: &self.settings.user_agent,
        };
        let ask = Ask {
            method: "POST",
            target: Target::Link(self.url.as_str().to_owned()),
            query: Vec::new(),
            headers,
            body: Some(Bytes::from(body)),
        };
        let total = self.settings.config.timeout;
        let limits = CallLimits {
            connect: self.settings.connect.min(total),
            idle: total,
            total,
            body: ANSWER,
        };
        let mut calls = 0;
        let sent = async {
            Exchange::new(endpoint, ask, None)?
                .send(&*self.transport, &[], limits, &mut calls)
                .await
        };
        let answer = sent
            .await
            .map_err(|error| failed(self.redactor.mask(&error.to_string()).into_owned()))?;
        let word = answer::word(&answer.response);
        let word = self.redactor.mask(&word).into_owned();
        let error = |remedy| Err(failed(word.clone()).with(remedy));
        match answer::read(&answer.response, self.clock.wall()) {
            Meaning::Taken => Ok(Delivered {
                done: batch.len(),
                refused: Vec::new(),
            }),
            Meaning::NotNow(None) => error(Remedy::Backoff),
            Meaning::NotNow(Some(ms)) => error(Remedy::Wait(ms)),
            Meaning::Person => error(Remedy::Person),
            Meaning::Refused { .. } if batch.len() > 1 => error(Remedy::Parts),
            Meaning::Refused { door } => Ok(Delivered {
                done: batch.len(),
                refused: vec![(0, Refusal { word, door })],
            }),
        }
    }
}

impl Sink for WebhookSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn may_refuse(&self) -> bool {
        true
    }

    fn form(&self) -> Option<&str> {
        Some(&self.form)
    }

    fn fit(&mut self, batch: &[OutboxEntry]) -> usize {
        let limits = self.settings.config.batch;
        let most = batch
            .get(..limits.records.min(batch.len()))
            .unwrap_or(batch);
        self.writer.fit(most, limits.bytes)
    }

    fn deliver<'a>(
        &'a mut self,
        batch: &'a [OutboxEntry],
        key: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Delivered, SinkError>> {
        Box::pin(self.post(batch, key.unwrap_or_default()))
    }
}

/// Checks a configuration without sending anything.
///
/// # Errors
/// [`WebhookError`].
pub fn check(config: &Webhook) -> Result<(), WebhookError> {
    prepare(config).map(drop)
}

fn prepare(config: &Webhook) -> Result<(Origin, Credential), WebhookError> {
    let mut base = config.url.reveal().clone();
    base.set_query(None);
    // The address stands in the configuration whole: there is nothing to fill in.
    let origin = Origin::new(
        base.as_str(),
        &Value::Null,
        config.allow_private,
        config.allow_http,
    )?;
    let credential = Credential::new(&config.auth, &[scheme(&config.auth)])?;
    Ok((origin, credential))
}

/// The way to sign that an `auth` means where no connector declares any.
fn scheme(auth: &Auth) -> AuthScheme {
    match auth {
        Auth::None => AuthScheme::None,
        Auth::Bearer(_) => AuthScheme::Bearer,
        Auth::OAuth2(_) => AuthScheme::OAuth2,
        Auth::Basic { .. } => AuthScheme::Basic,
        Auth::Header { .. } => AuthScheme::Header(String::new()),
        Auth::Query { .. } => AuthScheme::Query(String::new()),
    }
}

/// Tells deliveries apart that are not the same although their entries are. The address may be a secret.
fn describe(config: &Webhook) -> String {
    let address = Sha256::digest(config.url.reveal().as_str());
    let address: String = address
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let gzip = if config.gzip { " gzip" } else { "" };
    format!("{}{gzip} {address}", config.format.name())
}

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(body)?;
    packed.finish()
}

#[cfg(test)]
mod tests;
