//! `connection.NAME.auth`: the credential, by reference.

use std::path::PathBuf;

use super::oauth2::OAuth2;
use super::reader::{Entry, Report};
pub(super) use super::reference::secret;
use super::reference::{file_secret, plain_or_secret};
use super::secret::{Secret, SecretSource};

/// `auth = { ... }`: how the connection proves who it is. The connector never sees it.
///
/// ```toml
/// auth = { bearer = { env = "GITHUB_TOKEN" } }
/// auth = { basic = { user = "ops", password = { file = "secrets/shop" } } }
/// auth = { header = { name = "X-Api-Key", value = { env = "SHOP_KEY" } } }
/// auth = { query = { name = "api_key", value = { env = "SHOP_KEY" } } }
/// auth = { oauth2 = { client_id = "weir-42", client_secret = { env = "SHOP_SECRET" } } }
/// ```
///
/// A secret is `{ env = "NAME" }`, `{ file = "path" }` (for its owner alone), `{ command = ["program", "argument"] }` or
/// `{ systemd = "name" }`. Written into the configuration itself it works too, with a
/// warning each time.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Auth {
    /// No credential.
    #[default]
    None,
    /// `Authorization: Bearer <secret>`.
    Bearer(Secret),
    /// `Authorization: Basic <user:password>`.
    Basic {
        /// The user's name; some vendors put the secret here.
        user: Secret,
        /// The password; may be empty where the vendor wants it so (`password = ""`).
        password: Secret,
    },
    /// A header of its own.
    Header {
        /// `name`: default: the one that the connector declares.
        name: Option<String>,
        /// `value`: the secret.
        value: Secret,
    },
    /// A query parameter.
    Query {
        /// `name`: default: the one that the connector declares.
        name: Option<String>,
        /// `value`: the secret.
        value: Secret,
    },
    /// Tokens that expire, renewed by the host.
    OAuth2(Box<OAuth2>),
}

const HELP: &str =
    "example: auth = { bearer = { env = \"SHOP_TOKEN\" } }; also basic, header, query, oauth2";

impl Auth {
    /// The word for it in configurations and messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Auth::None => "none",
            Auth::Bearer(_) => "bearer",
            Auth::Basic { .. } => "basic",
            Auth::Header { .. } => "header",
            Auth::Query { .. } => "query",
            Auth::OAuth2(_) => "oauth2",
        }
    }

    /// Its secrets that are read again when their files change.
    fn renewable(&self) -> Vec<&Secret> {
        match self {
            // Its tokens are renewed by the host.
            Auth::None | Auth::OAuth2(_) => Vec::new(),
            Auth::Bearer(value) | Auth::Header { value, .. } | Auth::Query { value, .. } => {
                vec![value]
            }
            Auth::Basic { user, password } => vec![user, password],
        }
    }

    /// The files that they come from.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let file = |secret: &&Secret| secret.file();
        self.renewable().iter().filter_map(file).collect()
    }

    /// The same with what the files hold now.
    pub(crate) fn read_again(&self) -> Result<Auth, String> {
        let again = |secret: &Secret| match secret.file() {
            Some(path) => file_secret(&path).map_err(|problem| problem.to_string()),
            None => Ok(secret.clone()),
        };
        Ok(match self {
            Auth::None | Auth::OAuth2(_) => self.clone(),
            Auth::Bearer(value) => Auth::Bearer(again(value)?),
            Auth::Basic { user, password } => {
                let user = again(user)?;
                if user.reveal().contains(':') {
                    return Err(format!(
                        "{} holds a user with a colon, which basic authentication cannot carry",
                        user.source()
                    ));
                }
                Auth::Basic {
                    user,
                    password: again(password)?,
                }
            }
            Auth::Header { name, value } => Auth::Header {
                name: name.clone(),
                value: again(value)?,
            },
            Auth::Query { name, value } => Auth::Query {
                name: name.clone(),
                value: again(value)?,
            },
        })
    }

    /// `allow_http`: what is secret may go out unencrypted.
    pub(super) fn read(at: &Entry<'_>, allow_http: bool, report: &mut Report<'_>) -> Self {
        let at = &Entry {
            private: true,
            ..at.clone()
        };
        if at.value.as_str() == Some("none") {
            return Auth::None;
        }
        let Some(section) = at.section(report, HELP) else {
            return Auth::None;
        };
        let mut section = section.private();
        let ways = [
            section
                .get(report, "bearer")
                .map(|at| Self::bearer(&at, report)),
            section
                .get(report, "basic")
                .map(|at| Self::basic(&at, report)),
            section.get(report, "header").map(|at| {
                Self::named(&at, report).map(|(name, value)| Auth::Header { name, value })
            }),
            section.get(report, "query").map(|at| {
                Self::named(&at, report).map(|(name, value)| Auth::Query { name, value })
            }),
            section.get(report, "oauth2").map(|at| {
                OAuth2::read(&at, allow_http, report).map(|oauth2| Auth::OAuth2(Box::new(oauth2)))
            }),
        ];
        let mut given = ways.into_iter().flatten();
        let auth = match (given.next(), given.next()) {
            (Some(auth), None) => auth.unwrap_or_default(),
            (None, _) => {
                report.complain(at, "names no way to prove who you are", HELP);
                Auth::None
            }
            (Some(_), Some(_)) => {
                report.complain(at, "names more than one way; one is allowed", HELP);
                Auth::None
            }
        };
        section.finish(report);
        auth
    }

    fn bearer(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Self> {
        secret(at, report).map(Auth::Bearer)
    }

    fn basic(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Self> {
        let help = "example: basic = { user = \"ops\", password = { env = \"SHOP_PASSWORD\" } }";
        let mut section = at.section(report, help)?;
        let user = section.get(report, "user");
        let password = section.get(report, "password");
        let (Some(user), Some(password)) = (user, password) else {
            report.complain(at, "needs user and password", help);
            return None;
        };
        section.finish(report);
        let user = plain_or_secret(&user, report);
        let password = match password.value.as_str() {
            Some("") => Some(Secret::from_source("", SecretSource::Inline)),
            _ => secret(&password, report),
        };
        if user
            .as_ref()
            .is_some_and(|user| user.reveal().contains(':'))
        {
            report.complain(
                at,
                "has a user with a colon, which basic authentication cannot carry",
                help,
            );
            return None;
        }
        Some(Auth::Basic {
            user: user?,
            password: password?,
        })
    }

    /// `{ name = "X-Api-Key", value = secret }`, or the secret alone when the connector declares the name.
    fn named(at: &Entry<'_>, report: &mut Report<'_>) -> Option<(Option<String>, Secret)> {
        let help = "example: { name = \"X-Api-Key\", value = { env = \"SHOP_KEY\" } }";
        let named = at
            .value
            .as_table()
            .is_some_and(|table| table.contains_key("value") || table.contains_key("name"));
        if !named {
            return secret(at, report).map(|value| (None, value));
        }
        let mut section = at.section(report, help)?;
        let name = section.get(report, "name");
        let Some(value) = section.get(report, "value") else {
            report.complain(at, "needs a value", help);
            return None;
        };
        section.finish(report);
        let name = match name {
            Some(name) => {
                let text = name.filled(report, help)?;
                let plain = |c: char| c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?={}&#".contains(c);
                if !text.chars().all(plain) {
                    report.complain(&name, "is not a name for a header or a parameter", help);
                    return None;
                }
                Some(text.to_owned())
            }
            None => None,
        };
        Some((name, secret(&value, report)?))
    }
}
