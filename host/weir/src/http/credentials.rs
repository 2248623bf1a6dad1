//! What proves who we are: added to a request after the connector has spoken, only at its origin, only over https
//! (loopback aside), and shown to nobody.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use url::Url;

use super::guard::{is_loopback, remove_query_parameter, set_query_parameter};
use super::redact::Redactor;
use crate::config::{Auth, Secret, SecretSource};
use crate::oauth::{Access, Client, Held, Trouble};

/// A way to authenticate that an origin declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthScheme {
    /// It works without.
    None,
    /// `Authorization: Bearer`.
    Bearer,
    /// `Authorization: Basic`.
    Basic,
    /// A header of that name; an empty name leaves it to the configuration.
    Header(String),
    /// A query parameter of that name; an empty name leaves it to the configuration.
    Query(String),
    /// A token by OAuth 2: renewed by the host, or one that the user has got elsewhere, as `bearer`.
    OAuth2,
}

/// The configuration's `auth` does not fit the connector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("auth = {given} does not fit: the connector accepts {accepted}; example: {example}")]
pub struct CredentialError {
    given: &'static str,
    accepted: String,
    example: String,
}

/// One credential, ready to sign requests to one origin.
#[derive(Clone)]
pub struct Credential {
    way: Way,
    fingerprint: String,
    redactor: Redactor,
    /// Of the token, where it is one of many.
    number: Option<u64>,
}

#[derive(Clone)]
enum Way {
    None,
    Header {
        name: String,
        value: Secret,
    },
    Query {
        name: String,
        value: Secret,
    },
    /// Signs nothing by itself: [`Credential::current`] does with the token of the moment.
    Renewed {
        client: Arc<Client>,
        held: Arc<Held>,
    },
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({})", self.fingerprint)
    }
}

impl Credential {
    /// No credential.
    pub fn none() -> Self {
        Credential {
            way: Way::None,
            fingerprint: "none".to_owned(),
            redactor: Redactor::default(),
            number: None,
        }
    }

    /// Tokens that are renewed by the host.
    pub fn renewed_by(client: Arc<Client>, held: Arc<Held>) -> Self {
        Credential {
            fingerprint: client.key().to_owned(),
            redactor: Redactor::join([client.redactor()]).and_live(held.live()),
            way: Way::Renewed { client, held },
            number: None,
        }
    }

    /// Whose tokens they are, when they are renewed by the host.
    pub fn renewal(&self) -> Option<(&Arc<Client>, &Arc<Held>)> {
        match &self.way {
            Way::Renewed { client, held } => Some((client, held)),
            _ => None,
        }
    }

    /// What a call that is made now is signed with.
    ///
    /// # Errors
    /// When there is no token to be had.
    pub async fn current(&self) -> Result<Cow<'_, Credential>, Trouble> {
        match &self.way {
            Way::Renewed { client, held } => {
                let access = held.access(client).await?;
                Ok(Cow::Owned(self.with(&access)))
            }
            _ => Ok(Cow::Borrowed(self)),
        }
    }

    /// What the call is signed with after the vendor has refused `used`; none where there is nothing else.
    ///
    /// # Errors
    /// When there is no other token to be had.
    pub async fn after(&self, used: &Credential) -> Result<Option<Credential>, Trouble> {
        match (&self.way, used.number) {
            (Way::Renewed { client, held }, Some(number)) => {
                let access = held.renewed(client, number).await?;
                Ok(Some(self.with(&access)))
            }
            _ => Ok(None),
        }
    }

    fn with(&self, access: &Access) -> Credential {
        Credential {
            way: Way::authorization(format!("Bearer {}", access.token().reveal())),
            fingerprint: self.fingerprint.clone(),
            redactor: self.redactor.clone(),
            number: Some(access.number()),
        }
    }

    /// Fits a connection's `auth` to the schemes that an origin declares. An origin that declares none (or only
    /// [`AuthScheme::None`]) gets no credential.
    pub fn new(auth: &Auth, schemes: &[AuthScheme]) -> Result<Self, CredentialError> {
        if schemes.iter().all(|scheme| *scheme == AuthScheme::None) {
            return Ok(Credential::none());
        }
        let way = schemes.iter().find_map(|scheme| Way::fit(auth, scheme));
        let way = way.ok_or_else(|| CredentialError::new(auth, schemes))?;
        let secrets = secrets(auth);
        let mut redactor = Redactor::new(secrets.iter().map(|secret| secret.reveal()));
        if let Way::Header { value, .. } = &way
            && matches!(auth, Auth::Basic { .. })
        {
            let encoded = value.reveal().trim_start_matches("Basic ");
            redactor = Redactor::join([&redactor, &Redactor::new([encoded])]);
        }
        Ok(Credential {
            fingerprint: fingerprint(auth),
            way,
            redactor,
            number: None,
        })
    }

    /// A short hash that tells credentials apart and tells nothing else: the key of what is shared by everyone on it.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Masks this credential's secrets.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Adds it to a call whose URL the caller knows to lie at its origin: the headers to send, or a query parameter in
    /// the URL. Nothing goes out unencrypted, unless to loopback or with the user's `allow_http`.
    pub(super) fn sign(&self, url: &mut Url, allow_http: bool) -> Vec<(String, String)> {
        if url.scheme() != "https" && !is_loopback(url) && !allow_http {
            return Vec::new();
        }
        match &self.way {
            Way::Header { name, value } => vec![(name.clone(), value.reveal().to_owned())],
            Way::Query { name, value } => {
                set_query_parameter(url, name, value.reveal());
                Vec::new()
            }
            Way::None | Way::Renewed { .. } => Vec::new(),
        }
    }

    /// The name of the header that is this credential's alone.
    pub(super) fn header_name(&self) -> Option<&str> {
        match &self.way {
            Way::Header { name, .. } => Some(name),
            Way::Renewed { .. } => Some("authorization"),
            _ => None,
        }
    }

    /// Takes this credential out of a URL that will be shown, stored or sent elsewhere.
    pub(crate) fn strip(&self, url: &mut Url) {
        if let Way::Query { name, .. } = &self.way {
            remove_query_parameter(url, name);
        }
    }
}

impl Way {
    fn authorization(value: String) -> Way {
        Way::Header {
            name: "authorization".to_owned(),
            value: Secret::new(value),
        }
    }

    fn fit(auth: &Auth, scheme: &AuthScheme) -> Option<Way> {
        match (auth, scheme) {
            (Auth::None, AuthScheme::None) => Some(Way::None),
            (Auth::Bearer(token), AuthScheme::Bearer | AuthScheme::OAuth2) => {
                Some(Way::authorization(format!("Bearer {}", token.reveal())))
            }
            (Auth::Basic { user, password }, AuthScheme::Basic) => {
                let pair = format!("{}:{}", user.reveal(), password.reveal());
                Some(Way::authorization(format!(
                    "Basic {}",
                    STANDARD.encode(pair)
                )))
            }
            (Auth::Header { name, value }, AuthScheme::Header(declared)) => Some(Way::Header {
                name: agreed(name.as_deref(), declared, true)?,
                value: value.clone(),
            }),
            (Auth::Query { name, value }, AuthScheme::Query(declared)) => Some(Way::Query {
                name: agreed(name.as_deref(), declared, false)?,
                value: value.clone(),
            }),
            _ => None,
        }
    }
}

/// The name on which the configuration and the connector agree; either may leave it to the other.
fn agreed(given: Option<&str>, declared: &str, ignore_case: bool) -> Option<String> {
    let name = match given {
        None if declared.is_empty() => return None,
        None => declared,
        Some(given) if declared.is_empty() || given == declared => given,
        Some(given) if ignore_case && given.eq_ignore_ascii_case(declared) => given,
        Some(_) => return None,
    };
    Some(if ignore_case {
        name.to_ascii_lowercase()
    } else {
        name.to_owned()
    })
}

/// What is secret in an `auth`. A user's name written plainly beside a password is not.
fn secrets(auth: &Auth) -> Vec<&Secret> {
    match auth {
        Auth::None => Vec::new(),
        Auth::Bearer(value) | Auth::Header { value, .. } | Auth::Query { value, .. } => vec![value],
        Auth::Basic { user, password } => {
            let plain = *user.source() == SecretSource::Inline && !password.reveal().is_empty();
            if plain {
                vec![password]
            } else {
                vec![user, password]
            }
        }
        Auth::OAuth2(settings) => settings.secrets().collect(),
    }
}

/// Masks everything that is secret in an `auth`, also before it is known what the connector accepts.
pub fn redactor_of(auth: &Auth) -> Redactor {
    Redactor::new(secrets(auth).into_iter().map(Secret::reveal))
}

/// Twelve hex digits: enough to tell a user's credentials apart.
fn fingerprint(auth: &Auth) -> String {
    let mut hash = Sha256::new();
    hash.update(b"weir credential\0");
    let mut feed = |part: &str| {
        hash.update(part.len().to_be_bytes());
        hash.update(part.as_bytes());
    };
    match auth {
        Auth::None => return "none".to_owned(),
        Auth::Bearer(value) | Auth::Header { value, .. } | Auth::Query { value, .. } => {
            feed(value.reveal())
        }
        Auth::Basic { user, password } => {
            feed(user.reveal());
            feed(password.reveal());
        }
        // A client has a fingerprint of its own.
        Auth::OAuth2(settings) => settings.secrets().for_each(|secret| feed(secret.reveal())),
    }
    hash.finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl CredentialError {
    pub(crate) fn new(auth: &Auth, schemes: &[AuthScheme]) -> Self {
        let mut accepted: Vec<String> = Vec::new();
        for word in schemes.iter().flat_map(describe) {
            if !accepted.contains(&word) {
                accepted.push(word);
            }
        }
        CredentialError {
            given: auth.kind(),
            accepted: accepted.join(", "),
            example: schemes
                .iter()
                .find_map(example)
                .unwrap_or_else(|| "no auth at all".to_owned()),
        }
    }
}

fn describe(scheme: &AuthScheme) -> Vec<String> {
    vec![match scheme {
        AuthScheme::None => "none".to_owned(),
        AuthScheme::OAuth2 => return vec!["oauth2".to_owned(), "bearer".to_owned()],
        AuthScheme::Bearer => "bearer".to_owned(),
        AuthScheme::Basic => "basic".to_owned(),
        AuthScheme::Header(name) if name.is_empty() => "header (of any name)".to_owned(),
        AuthScheme::Query(name) if name.is_empty() => "query (of any name)".to_owned(),
        AuthScheme::Header(name) => format!("header {name}"),
        AuthScheme::Query(name) => format!("query {name}"),
    }]
}

fn example(scheme: &AuthScheme) -> Option<String> {
    let secret = "{ env = \"NAME\" }";
    Some(match scheme {
        AuthScheme::None => return None,
        AuthScheme::OAuth2 => {
            format!("auth = {{ oauth2 = {{ client_id = \"weir-42\", client_secret = {secret} }} }}")
        }
        AuthScheme::Bearer => format!("auth = {{ bearer = {secret} }}"),
        AuthScheme::Basic => {
            format!("auth = {{ basic = {{ user = \"ops\", password = {secret} }} }}")
        }
        AuthScheme::Header(name) if !name.is_empty() => format!("auth = {{ header = {secret} }}"),
        AuthScheme::Query(name) if !name.is_empty() => format!("auth = {{ query = {secret} }}"),
        AuthScheme::Header(_) => {
            format!("auth = {{ header = {{ name = \"X-Api-Key\", value = {secret} }} }}")
        }
        AuthScheme::Query(_) => {
            format!("auth = {{ query = {{ name = \"api_key\", value = {secret} }} }}")
        }
    })
}

#[cfg(test)]
mod tests;
