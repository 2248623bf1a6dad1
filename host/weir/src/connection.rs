//! A connection, ready to poll: its configuration put together with what its connector says of itself.
//!
//! Made once, when the configuration or the connector changes; shared by all of its polls. A poll holds the one
//! that it began with, connector included, so that nothing changes under it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use url::Url;
use weir_rules::backoff::{self, Backoff};
use weir_rules::canonical::Digester;
use weir_rules::interval::{Interval, Strategy};
use weir_rules::model;
use weir_rules::overlap::Overlap;
use weir_rules::unit::Settings;
use weir_runtime::Connector;
use weir_runtime::contract::{self, AuthScheme, Descriptor};

use crate::config;
use crate::http::credentials::{self, Credential, CredentialError};
use crate::http::guard::Origin;
use crate::http::redact::Redactor;
use crate::oauth::{Client, Held, Keyring, Setting};

/// A connection that can be polled.
pub struct Connection {
    /// Its name in `weir.toml`.
    pub name: String,
    /// Its connector, as it was when the connection was made ready.
    pub connector: Arc<Connector>,
    /// The connector's configuration as JSON text.
    pub config: Arc<str>,
    /// What the connector says of itself for this configuration.
    pub descriptor: Descriptor,
    /// Where it may call, by the connector's id for the place.
    pub origins: BTreeMap<String, Place>,
    /// The streams that are polled.
    pub streams: BTreeMap<String, Arc<Stream>>,
    /// Masks its secrets.
    pub redactor: Redactor,
    /// Some of its secrets come from files, which may change.
    pub(crate) reads_files: bool,
    /// Tells credentials apart: a change of it means that a person has signed in anew.
    pub fingerprint: String,
    /// Who shares the credential's limits: everyone on the same credential; without one a vendor goes by the caller's
    /// address, which all connections to its hosts share.
    pub shared: String,
    /// Who shares the limits of the whole app: everyone on its connector at its vendor's hosts. One connector may serve
    /// many vendors, who know nothing of each other.
    pub app: String,
}

/// A place that a connection may call.
pub struct Place {
    /// The origin.
    pub origin: Origin,
    /// What proves who we are there.
    pub credential: Credential,
}

/// A stream of a connection, ready to poll.
pub struct Stream {
    /// How it is polled.
    pub settings: Settings,
    /// Hashes its records.
    pub digester: Digester,
    /// Where a record's id stands, for messages.
    pub key: Vec<String>,
    /// What is remembered of its records, and for how long.
    pub dedup: config::Dedup,
    /// Waits after a fault without the vendor's own word.
    pub backoff: Backoff,
    /// Percent of the vendor's quota that is left to others.
    pub reserve: u8,
    /// Who goes first when calls are scarce.
    pub priority: config::Priority,
    /// Hours in which no poll begins.
    pub quiet: config::Quiet,
    /// It is polled once for each record of this stream.
    pub parent: Option<String>,
    /// Other streams are polled once for each of its records.
    pub has_children: bool,
}

/// Why a connection can't be polled. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connection {connection}: {detail}")]
pub struct ConnectionError {
    /// The connection.
    pub connection: String,
    /// What is wrong, and the way out.
    pub detail: String,
}

impl Connection {
    /// Puts a connection together. Calls the connector, so it belongs on a wasm worker. `source` is where the settings
    /// were read from, for messages; credentials that expire are held by the `keyring`.
    pub fn ready(
        name: &str,
        settings: &config::Connection,
        connector: Arc<Connector>,
        source: &config::Source,
        keyring: &Keyring,
    ) -> Result<Connection, ConnectionError> {
        let redactor = credentials::redactor_of(&settings.auth);
        let wrong = |detail: String| ConnectionError {
            connection: name.to_owned(),
            detail: redactor.mask(&detail).into_owned(),
        };
        let schema = &connector.descriptor().config_schema;
        if let Err(errors) = config::validate_connector_config(schema, &settings.config, name) {
            let mut text = String::new();
            for error in errors.into_iter().map(|error| source.locate(error)) {
                // Writing to a string can't fail.
                let _ = write!(text, "{}{error}", if text.is_empty() { "" } else { "; " });
            }
            return Err(wrong(text));
        }
        let descriptor = match connector.describe_for(&settings.config) {
            Ok(Ok(descriptor)) => descriptor,
            Ok(Err(fault)) => {
                return Err(wrong(format!(
                    "connector {} does not accept its config: {}",
                    connector.name(),
                    fault.message
                )));
            }
            Err(error) => return Err(wrong(error.to_string())),
        };
        let values = serde_json::from_str(&settings.config)
            .map_err(|error| wrong(format!("config is not JSON: {error}")))?;

        let mut origins = BTreeMap::new();
        for declared in &descriptor.origins {
            let origin = Origin::new(
                &declared.url,
                &values,
                settings.allow_private,
                settings.allow_http,
            )
            .map_err(|error| wrong(error.to_string()))?;
            let setting = Setting {
                connection: name,
                declared: None,
                config: &values,
                allow_private: settings.allow_private,
                allow_http: settings.allow_http,
            };
            let credential = credential(&settings.auth, &declared.auth, setting, source, keyring)
                .map_err(wrong)?;
            origins.insert(declared.id.clone(), Place { origin, credential });
        }

        let mut streams = BTreeMap::new();
        for declared in &descriptor.streams {
            let Some(wanted) = settings.stream(&declared.name) else {
                continue;
            };
            check_line(declared, &descriptor, settings).map_err(wrong)?;
            let mut stream = Stream::ready(declared, wanted, &descriptor.pacing)
                .map_err(|detail| wrong(format!("streams.{}: {detail}", declared.name)))?;
            stream.has_children = descriptor.streams.iter().any(|other| {
                other.parent.as_ref() == Some(&declared.name)
                    && settings.stream(&other.name).is_some()
            });
            streams.insert(declared.name.clone(), Arc::new(stream));
        }
        if let Some(named) = &settings.streams {
            let known: Vec<&str> = descriptor.streams.iter().map(|s| s.name.as_str()).collect();
            if let Some(unknown) = named.keys().find(|name| !known.contains(&name.as_str())) {
                return Err(wrong(format!(
                    "streams.{unknown}: connector {} has no such stream: {}",
                    connector.name(),
                    config::suggest_name(unknown, &known)
                )));
            }
        }
        let fingerprint = origins
            .values()
            .map(|place| place.credential.fingerprint())
            .find(|fingerprint| *fingerprint != "none")
            .unwrap_or("none")
            .to_owned();
        let renewal = origins
            .values()
            .find_map(|place| place.credential.renewal());
        let (fingerprint, key, redactor) = match renewal {
            Some((client, held)) => (
                client.proof().to_owned(),
                fingerprint,
                Redactor::join([&redactor, client.redactor()]).and_live(held.live()),
            ),
            None => (fingerprint.clone(), fingerprint, redactor),
        };
        let hosts: BTreeSet<String> = origins
            .values()
            .map(|place| place.origin.base().origin().ascii_serialization())
            .collect();
        let hosts = Vec::from_iter(hosts).join(", ");
        let shared = if key == "none" {
            format!("callers of {hosts}")
        } else {
            format!("credential {key}")
        };
        let app = format!("connector {} at {hosts}", connector.name());
        Ok(Connection {
            name: name.to_owned(),
            shared,
            app,
            config: settings.config.clone(),
            connector,
            descriptor,
            origins,
            streams,
            redactor,
            reads_files: !settings.auth.files().is_empty(),
            fingerprint,
        })
    }

    /// The client and the credential, where the host renews its tokens.
    pub fn renewal(&self) -> Option<(&Arc<Client>, &Arc<Held>)> {
        self.origins
            .values()
            .find_map(|place| place.credential.renewal())
    }

    /// A person can sign in with `weir login`.
    pub fn takes_sign_in(&self) -> bool {
        self.renewal()
            .is_some_and(|(client, _)| client.takes_sign_in())
    }

    /// A step or cursor as it may be stored: some vendors repeat the key that they were sent in the links that they
    /// give. Every call gets it anew.
    pub(crate) fn unsigned(&self, json: String) -> String {
        if matches!(self.redactor.mask(&json), Cow::Borrowed(_)) {
            return json;
        }
        let Ok(mut value) = serde_json::from_str(&json) else {
            return json;
        };
        self.unsign(&mut value);
        value.to_string()
    }

    fn unsign(&self, value: &mut serde_json::Value) {
        use serde_json::Value;
        match value {
            Value::String(text) => {
                let Ok(url) = Url::parse(text) else { return };
                let mut clean = url.clone();
                for place in self.origins.values() {
                    place.credential.strip(&mut clean);
                }
                if clean != url {
                    *text = clean.into();
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.unsign(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.unsign(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Polls of it that may be in flight at once.
    pub fn concurrency(&self) -> usize {
        self.descriptor
            .pacing
            .concurrency
            .map_or(usize::MAX, |polls| polls.max(1) as usize)
    }
}

impl Stream {
    fn ready(
        declared: &contract::Stream,
        wanted: &config::StreamSettings,
        pacing: &contract::Pacing,
    ) -> Result<Stream, String> {
        let mut stream = model::Stream::from(declared);
        stream.volatile.extend(wanted.volatile.iter().cloned());
        if let Some(size) = wanted.page_size {
            stream.page_size = size;
        }
        stream.settle = wanted.settle.or(stream.settle);
        let digester = Digester::new(&stream.volatile, &stream.required)
            .map_err(|error| format!("volatile: {error}"))?;

        let defaults = Interval::default();
        let min = wanted.interval.min.or(pacing.min_interval);
        let max = wanted.interval.max.or(pacing.max_interval);
        let min = min.unwrap_or(defaults.min.min(max.unwrap_or(defaults.min)));
        let interval = Interval {
            min,
            max: max.unwrap_or(defaults.max).max(min),
            strategy: match wanted.interval.strategy {
                config::Strategy::Yield => Strategy::Yield,
                config::Strategy::Reset => Strategy::Reset,
                config::Strategy::Rhythm => Strategy::Rhythm,
            },
            freshness: wanted.freshness,
        };
        interval.check().map_err(|error| error.to_string())?;

        let base = wanted.backoff.base.unwrap_or(backoff::BASE);
        let cap = wanted
            .backoff
            .cap
            .or(pacing.backoff_cap)
            .unwrap_or(backoff::CAP);
        let backoff = Backoff::new(base.min(cap), cap).map_err(|error| error.to_string())?;

        if wanted.dedup.retain.is_some() && stream.cursor == model::CursorKind::Snapshot {
            return Err(
                "dedup.retain: every poll reads the whole stream, so nothing of it may be forgotten; use dedup.max \
                 to bound it"
                    .to_owned(),
            );
        }
        let mut overlap = Overlap::default();
        let mut fixed_overlap = None;
        match wanted.overlap {
            config::Overlap::Floor(Some(floor)) => overlap.floor = floor,
            config::Overlap::Floor(None) => {}
            config::Overlap::Fixed(fixed) => fixed_overlap = Some(fixed),
        }
        // Two records within one tick of the vendor's clock can't be told apart.
        overlap.floor = overlap.floor.max(stream.granularity);
        Ok(Stream {
            settings: Settings {
                stream,
                interval,
                overlap,
                fixed_overlap,
                start: wanted.start,
                unpublished_limits: pacing.unpublished_limits,
            },
            digester,
            key: declared.key.clone(),
            dedup: wanted.dedup,
            backoff,
            reserve: wanted.reserve,
            priority: wanted.priority,
            quiet: wanted.quiet.clone(),
            parent: declared.parent.clone(),
            has_children: false,
        })
    }
}

/// A stream below another one needs that one to be polled too, and so on up to one that stands by itself.
fn check_line(
    declared: &contract::Stream,
    descriptor: &Descriptor,
    settings: &config::Connection,
) -> Result<(), String> {
    let mut at = declared;
    for _ in 0..=descriptor.streams.len() {
        let (name, Some(parent)) = (&at.name, &at.parent) else {
            return Ok(());
        };
        let of_that_name = |stream: &&contract::Stream| stream.name == *parent;
        let above = descriptor.streams.iter().find(of_that_name);
        let Some(above) = above.filter(|_| settings.stream(parent).is_some()) else {
            return Err(format!(
                "stream {name} is polled once for each record of {parent}, which is not polled: add `streams.{parent} = \
                 {{}}`, or leave {name} out with `streams.{name} = {{ enabled = false }}`"
            ));
        };
        at = above;
    }
    Err(format!(
        "stream {} is below itself: this is a fault of the connector",
        declared.name
    ))
}

/// Fits the configuration's `auth` to what an origin declares.
fn credential(
    auth: &config::Auth,
    declared: &[AuthScheme],
    setting: Setting<'_>,
    source: &config::Source,
    keyring: &Keyring,
) -> Result<Credential, String> {
    let schemes: Vec<_> = declared.iter().map(scheme).collect();
    let open = |scheme: &credentials::AuthScheme| *scheme == credentials::AuthScheme::None;
    let config::Auth::OAuth2(settings) = auth else {
        return Credential::new(auth, &schemes).map_err(|error| error.to_string());
    };
    if schemes.iter().all(open) {
        return Ok(Credential::none());
    }
    let by_connector = declared.iter().find_map(|scheme| match scheme {
        AuthScheme::Oauth2(oauth2) => Some(oauth2),
        _ => None,
    });
    // Whoever takes a bearer token takes one that is renewed; where from, the configuration must say then.
    if by_connector.is_none() && !schemes.contains(&credentials::AuthScheme::Bearer) {
        return Err(CredentialError::new(auth, &schemes).to_string());
    }
    let connection = setting.connection;
    let setting = Setting {
        declared: by_connector,
        ..setting
    };
    let client = Client::new(settings, &setting).map_err(|error| {
        let key = format!("connection.{connection}.auth.oauth2.{}", error.key);
        source
            .error(&key, None, error.problem, error.help)
            .to_string()
    })?;
    let held = keyring.held(&client);
    Ok(Credential::renewed_by(Arc::new(client), held))
}

fn scheme(declared: &AuthScheme) -> credentials::AuthScheme {
    match declared {
        AuthScheme::None => credentials::AuthScheme::None,
        AuthScheme::Bearer => credentials::AuthScheme::Bearer,
        AuthScheme::Basic => credentials::AuthScheme::Basic,
        AuthScheme::Header(name) => credentials::AuthScheme::Header(name.clone()),
        AuthScheme::Query(name) => credentials::AuthScheme::Query(name.clone()),
        AuthScheme::Oauth2(_) => credentials::AuthScheme::OAuth2,
    }
}
