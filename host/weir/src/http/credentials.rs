//! What proves who we are: added to a request after the connector has spoken, only at its origin, only over https
//! (loopback aside), and shown to nobody.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use url::Url;

use super::guard::{is_loopback, remove_query_parameter, set_query_parameter};
use super::redact::Redactor;
use crate::config::{Auth, Secret, SecretSource};

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
    /// A token by OAuth 2; one that the user has got elsewhere goes as `bearer`.
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
}

#[derive(Clone)]
enum Way {
    None,
    Header { name: String, value: Secret },
    Query { name: String, value: Secret },
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
            Way::None => Vec::new(),
        }
    }

    /// The name of the header that is this credential's alone.
    pub(super) fn header_name(&self) -> Option<&str> {
        match &self.way {
            Way::Header { name, .. } => Some(name),
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
    fn fit(auth: &Auth, scheme: &AuthScheme) -> Option<Way> {
        let authorization = |value: String| Way::Header {
            name: "authorization".to_owned(),
            value: Secret::new(value),
        };
        match (auth, scheme) {
            (Auth::None, AuthScheme::None) => Some(Way::None),
            (Auth::Bearer(token), AuthScheme::Bearer | AuthScheme::OAuth2) => {
                Some(authorization(format!("Bearer {}", token.reveal())))
            }
            (Auth::Basic { user, password }, AuthScheme::Basic) => {
                let pair = format!("{}:{}", user.reveal(), password.reveal());
                Some(authorization(format!("Basic {}", STANDARD.encode(pair))))
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
    }
    hash.finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl CredentialError {
    fn new(auth: &Auth, schemes: &[AuthScheme]) -> Self {
        let accepted: Vec<String> = schemes.iter().map(describe).collect();
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

fn describe(scheme: &AuthScheme) -> String {
    match scheme {
        AuthScheme::None => "none".to_owned(),
        AuthScheme::Bearer | AuthScheme::OAuth2 => "bearer".to_owned(),
        AuthScheme::Basic => "basic".to_owned(),
        AuthScheme::Header(name) if name.is_empty() => "header (of any name)".to_owned(),
        AuthScheme::Query(name) if name.is_empty() => "query (of any name)".to_owned(),
        AuthScheme::Header(name) => format!("header {name}"),
        AuthScheme::Query(name) => format!("query {name}"),
    }
}

fn example(scheme: &AuthScheme) -> Option<String> {
    let secret = "{ env = \"NAME\" }";
    Some(match scheme {
        AuthScheme::None => return None,
        AuthScheme::Bearer | AuthScheme::OAuth2 => format!("auth = {{ bearer = {secret} }}"),
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
mod tests {
    use super::*;

    fn bearer(token: &str) -> Auth {
        Auth::Bearer(Secret::new(token))
    }

    #[test]
    fn each_scheme_signs_in_its_own_way() {
        let sign = |auth: &Auth, scheme: AuthScheme| {
            let mut url = Url::parse("https://api.example.test/x?page=1").unwrap();
            let headers = Credential::new(auth, &[scheme])
                .unwrap()
                .sign(&mut url, false);
            (headers, url.to_string())
        };
        let plain = "https://api.example.test/x?page=1".to_owned();
        assert_eq!(
            sign(&bearer("tok_XYZ"), AuthScheme::Bearer),
            (
                vec![("authorization".into(), "Bearer tok_XYZ".into())],
                plain.clone()
            )
        );
        let basic = Auth::Basic {
            user: Secret::new("Aladdin"),
            password: Secret::new("open sesame"),
        };
        // The example of RFC 7617.
        assert_eq!(
            sign(&basic, AuthScheme::Basic),
            (
                vec![(
                    "authorization".into(),
                    "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".into()
                )],
                plain.clone()
            )
        );
        let header = Auth::Header {
            name: None,
            value: Secret::new("k1"),
        };
        assert_eq!(
            sign(&header, AuthScheme::Header("X-Api-Key".into())),
            (vec![("x-api-key".into(), "k1".into())], plain)
        );
        let query = Auth::Query {
            name: Some("key".into()),
            value: Secret::new("k&1"),
        };
        assert_eq!(
            sign(&query, AuthScheme::Query(String::new())),
            (
                Vec::new(),
                "https://api.example.test/x?page=1&key=k%261".to_owned()
            )
        );
    }

    #[test]
    fn a_credential_is_not_sent_unencrypted() {
        let credential = Credential::new(&bearer("tok_XYZ"), &[AuthScheme::Bearer]).unwrap();
        let mut url = Url::parse("http://api.example.test/").unwrap();
        assert!(credential.sign(&mut url, false).is_empty());
        let mut url = Url::parse("http://127.0.0.1:8080/").unwrap();
        assert_eq!(credential.sign(&mut url, false).len(), 1);
    }

    #[test]
    fn auth_that_does_not_fit_says_what_would() {
        let error = Credential::new(
            &bearer("tok_XYZ"),
            &[AuthScheme::Header("X-Api-Key".into())],
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "auth = bearer does not fit: the connector accepts header X-Api-Key; example: auth = { header = { env = \"NAME\" } }"
        );
        assert!(Credential::new(&Auth::None, &[AuthScheme::Bearer]).is_err());
        assert!(Credential::new(&Auth::None, &[AuthScheme::Bearer, AuthScheme::None]).is_ok());
    }

    #[test]
    fn fingerprints_tell_credentials_apart_and_nothing_else() {
        let of = |auth: &Auth| fingerprint(auth);
        assert_eq!(of(&bearer("tok_XYZ")), of(&bearer("tok_XYZ")));
        assert_ne!(of(&bearer("tok_XYZ")), of(&bearer("tok_XYz")));
        assert_eq!(of(&bearer("tok_XYZ")).len(), 12);
        let debug = format!(
            "{:?}",
            Credential::new(&bearer("tok_XYZ"), &[AuthScheme::Bearer]).unwrap()
        );
        assert!(!debug.contains("tok_XYZ"));
    }

    #[test]
    fn the_encoded_pair_of_basic_is_masked_and_the_users_name_is_not() {
        let auth = Auth::Basic {
            user: Secret::new("operator"),
            password: Secret::new("hunter22"),
        };
        let credential = Credential::new(&auth, &[AuthScheme::Basic]).unwrap();
        let masked = credential
            .redactor()
            .mask("operator sent Basic b3BlcmF0b3I6aHVudGVyMjI= for hunter22")
            .into_owned();
        assert_eq!(masked, "operator sent Basic [secret] for [secret]");
    }
}
