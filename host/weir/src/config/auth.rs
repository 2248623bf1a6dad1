//! `connection.NAME.auth`: the credential, by reference.

use std::fs;
use std::sync::Arc;

use toml::de::DeValue;

use super::reader::{Entry, Report};
use super::secret::{Secret, SecretSource};

/// `auth = { ... }`: how the connection proves who it is. The connector never sees it.
///
/// ```toml
/// auth = { bearer = { env = "GITHUB_TOKEN" } }
/// auth = { basic = { user = "ops", password = { file = "secrets/shop" } } }
/// auth = { header = { name = "X-Api-Key", value = { env = "SHOP_KEY" } } }
/// auth = { query = { name = "api_key", value = { env = "SHOP_KEY" } } }
/// ```
///
/// A secret is `{ env = "NAME" }` or `{ file = "path" }`. Written into the configuration itself it works too, with a
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
}

const HELP: &str =
    "example: auth = { bearer = { env = \"SHOP_TOKEN\" } }; also basic, header, query";
const SECRET_HELP: &str =
    "allowed: { env = \"NAME\" } or { file = \"path\" }; example: { env = \"SHOP_TOKEN\" }";

impl Auth {
    /// The word for it in configurations and messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Auth::None => "none",
            Auth::Bearer(_) => "bearer",
            Auth::Basic { .. } => "basic",
            Auth::Header { .. } => "header",
            Auth::Query { .. } => "query",
        }
    }

    pub(super) fn read(at: &Entry<'_>, report: &mut Report<'_>) -> Self {
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

/// A user's name is no secret by itself, so it may be written plainly.
fn plain_or_secret(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Secret> {
    match at.value.as_str() {
        Some(plain) => clean(at, plain, SecretSource::Inline, report),
        None => secret(at, report),
    }
}

/// Resolves a reference to a secret.
pub(super) fn secret(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Secret> {
    if let DeValue::String(inline) = at.value {
        report.warn(
            at,
            "is a secret written into the configuration",
            "better: { env = \"NAME\" } or { file = \"path\" }",
        );
        return clean(at, inline, SecretSource::Inline, report);
    }
    let mut section = at.section(report, SECRET_HELP)?;
    let env = section.get(report, "env");
    let file = section.get(report, "file");
    section.finish(report);
    match (env, file) {
        (Some(env), None) => from_env(&env, report),
        (None, Some(file)) => from_file(&file, report),
        _ => {
            report.complain(at, "needs one of env and file", SECRET_HELP);
            None
        }
    }
}

fn from_env(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Secret> {
    let name = at.filled(report, SECRET_HELP)?;
    let source = SecretSource::Env(name.into());
    match (report.env)(name) {
        Some(value) => clean(at, &value, source, report),
        None => {
            report.complain(
                at,
                &format!("{source} is not set"),
                &format!("set it before the start, for example: export {name}=..."),
            );
            None
        }
    }
}

fn from_file(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Secret> {
    let written = at.filled(report, SECRET_HELP)?;
    let path = report.path(written);
    let shown: Arc<str> = path.display().to_string().into();
    let source = SecretSource::File(Arc::clone(&shown));
    let value = match fs::read_to_string(&path) {
        Ok(value) => value,
        Err(error) => {
            let help = "allowed: a readable text file that holds the secret alone";
            report.complain(at, &format!("{source} cannot be read: {error}"), help);
            return None;
        }
    };
    if others_may_read(&path) {
        report.warn(
            at,
            &format!("{source} can be read by other users"),
            &format!("better: chmod 600 {shown}"),
        );
    }
    clean(at, &value, source, report)
}

#[cfg(unix)]
fn others_may_read(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn others_may_read(_: &std::path::Path) -> bool {
    false
}

/// Without the line end that files and shells leave behind; a secret that is empty or that no header can carry is
/// refused.
fn clean(
    at: &Entry<'_>,
    value: &str,
    source: SecretSource,
    report: &mut Report<'_>,
) -> Option<Secret> {
    let value = value.trim_matches(['\r', '\n', ' ', '\t']);
    if value.is_empty() {
        report.complain(
            at,
            &format!("the secret from {source} is empty"),
            SECRET_HELP,
        );
        return None;
    }
    if value.chars().any(char::is_control) {
        report.complain(
            at,
            &format!("the secret from {source} holds a line break or another control character"),
            "allowed: one line",
        );
        return None;
    }
    Some(Secret::from_source(value, source))
}
