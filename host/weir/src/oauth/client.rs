//! Who asks for tokens, where, and for what: `auth.oauth2` put together with what the connector declares.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;
use weir_runtime::contract;

use crate::config::{self, ClientAuth, Grant, Secret};
use crate::http::address::AddressPolicy;
use crate::http::guard::{self, Origin};
use crate::http::redact::Redactor;

/// A place that secrets are sent to.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) url: Url,
    pub(super) addresses: AddressPolicy,
}

/// The client of a connection.
pub struct Client {
    key: String,
    proof: String,
    pub(super) grant: Grant,
    pub(super) id: Secret,
    pub(super) secret: Option<Secret>,
    /// The refresh token to begin with.
    pub(super) first: Option<Secret>,
    pub(super) token: Endpoint,
    pub(super) authorize: Option<Url>,
    pub(super) device: Option<Endpoint>,
    pub(super) redirect: Option<Url>,
    pub(super) scopes: Vec<String>,
    pub(super) in_body: bool,
    pub(super) params: BTreeMap<String, String>,
    redactor: Redactor,
}

/// What a client is made of, besides its own settings.
pub struct Setting<'a> {
    /// The connection's name.
    pub connection: &'a str,
    /// The connector's word, where it has one.
    pub declared: Option<&'a contract::Oauth2>,
    /// The connector's configuration, for the fields of the URLs that it declares.
    pub config: &'a Value,
    /// The vendor may have a private address.
    pub allow_private: bool,
    /// Secrets may go out unencrypted.
    pub allow_http: bool,
}

/// What is wrong with a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// The key below `auth.oauth2`.
    pub key: &'static str,
    /// What is wrong.
    pub problem: String,
    /// The way out.
    pub help: &'static str,
}

impl Client {
    /// Puts a client together.
    ///
    /// # Errors
    /// When a URL is missing that neither the configuration nor the connector gives, or one may not be called.
    pub fn new(settings: &config::OAuth2, setting: &Setting<'_>) -> Result<Client, ClientError> {
        let declared = setting.declared;
        let token_url = settings.token_url.as_deref();
        let token = token_url
            .map(|url| setting.endpoint("token_url", url, &Value::Null))
            .or_else(|| {
                declared.map(|by| setting.endpoint("token_url", &by.token_url, setting.config))
            });
        let token = token.unwrap_or_else(|| {
            Err(ClientError {
                key: "token_url",
                problem: "is missing: the connector does not say where tokens come from".to_owned(),
                help: "example: token_url = \"https://id.example.com/oauth/token\"",
            })
        })?;
        let authorize_url = settings.authorize_url.as_deref();
        let authorize = authorize_url
            .map(|url| setting.endpoint("authorize_url", url, &Value::Null))
            .or_else(|| {
                let url = declared?.authorize_url.as_deref()?;
                Some(setting.endpoint("authorize_url", url, setting.config))
            })
            .transpose()?;
        let device_url = settings.device_url.as_deref();
        let device = device_url
            .map(|url| setting.endpoint("device_url", url, &Value::Null))
            .transpose()?;
        let scopes = settings
            .scopes
            .clone()
            .or_else(|| declared.map(|by| by.scopes.clone()));
        let in_body = match settings.client_auth {
            Some(way) => way == ClientAuth::Body,
            None => declared.is_some_and(|by| by.client_in_body),
        };
        let mut client = Client {
            key: String::new(),
            proof: String::new(),
            grant: settings.grant,
            id: settings.client_id.clone(),
            secret: settings.client_secret.clone(),
            first: settings.refresh_token.clone(),
            token,
            authorize: authorize.map(|endpoint| endpoint.url),
            device,
            redirect: settings.redirect.clone(),
            scopes: scopes.unwrap_or_default(),
            in_body,
            params: settings.params.clone(),
            redactor: Redactor::default(),
        };
        let account = settings.account.as_deref().unwrap_or(setting.connection);
        client.key = client.fingerprint(account);
        client.proof = client.fingerprint_with_secret();
        client.redactor = client.own_redactor(settings);
        Ok(client)
    }

    /// Tells credentials apart and tells nothing else; stays the same while tokens come and go, and when the client's
    /// secret is changed.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Changes when anything changes that the vendor may have refused.
    pub fn proof(&self) -> &str {
        &self.proof
    }

    /// Masks what the configuration holds of it.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// A person can sign in for it.
    pub fn takes_sign_in(&self) -> bool {
        self.grant == Grant::RefreshToken && (self.authorize.is_some() || self.device.is_some())
    }

    /// The token URL as it may be shown.
    pub(super) fn shown(&self) -> String {
        guard::shown(&self.token.url)
    }

    /// The pair of `Authorization: Basic`, each half encoded as RFC 6749 section 2.3.1 wants it. None where the client
    /// has no secret, or says it in the body.
    pub(super) fn basic(&self) -> Option<String> {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let secret = self.secret.as_ref().filter(|_| !self.in_body)?;
        let encoded =
            |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(self.id.reveal()), encoded(secret.reveal()));
        Some(STANDARD.encode(pair))
    }

    /// What identifies the client in a form.
    pub(super) fn identify<'c>(&'c self, form: &mut Vec<(&'c str, &'c str)>) {
        if self.in_body || self.secret.is_none() {
            form.push(("client_id", self.id.reveal()));
        }
        if let Some(secret) = self.secret.as_ref().filter(|_| self.in_body) {
            form.push(("client_secret", secret.reveal()));
        }
        let params = self.params.iter();
        form.extend(params.map(|(name, value)| (name.as_str(), value.as_str())));
    }

    fn fingerprint(&self, account: &str) -> String {
        let mut parts = vec![self.token.url.as_str(), self.id.reveal()];
        let scopes = self.scopes.join(" ");
        let params = serde_json::to_string(&self.params).unwrap_or_default();
        match (self.grant, &self.first) {
            (Grant::ClientCredentials, _) => parts.extend(["client", &scopes, &params]),
            (Grant::RefreshToken, Some(first)) => parts.extend(["token", first.reveal()]),
            (Grant::RefreshToken, None) => parts.extend(["account", account]),
        }
        hash(&parts)
    }

    fn fingerprint_with_secret(&self) -> String {
        let secret = self.secret.as_ref().map_or("", Secret::reveal);
        hash(&[&self.key, secret])
    }

    fn own_redactor(&self, settings: &config::OAuth2) -> Redactor {
        let plain = Redactor::new(settings.secrets().map(Secret::reveal));
        let basic = self.basic().unwrap_or_default();
        Redactor::join([&plain, &Redactor::new([basic.trim_end_matches('=')])])
    }
}

impl Setting<'_> {
    /// A URL of the configuration or the descriptor, checked as any place that credentials are sent to.
    fn endpoint(
        &self,
        key: &'static str,
        template: &str,
        config: &Value,
    ) -> Result<Endpoint, ClientError> {
        let wrong = |problem: String| ClientError {
            key,
            problem,
            help: "allowed: a whole https URL; example: \"https://id.example.com/oauth/token\"",
        };
        let filled = guard::fill(template, config).map_err(wrong)?;
        let url = Url::parse(&filled).map_err(|error| wrong(format!("is not a URL: {error}")))?;
        let mut bare = url.clone();
        // Unlike an API's base, it may have a query of its own, and its path is taken as it is.
        bare.set_query(None);
        let origin = Origin::new(
            bare.as_str(),
            &Value::Null,
            self.allow_private,
            self.allow_http,
        )
        .map_err(|error| wrong(error.to_string()))?;
        Ok(Endpoint {
            url,
            addresses: origin.addresses(),
        })
    }
}

/// Twelve hex digits: enough to tell a user's credentials apart.
fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    hash.update(b"weir oauth2 credential\0");
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let hash = hash.finalize();
    hash.iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
