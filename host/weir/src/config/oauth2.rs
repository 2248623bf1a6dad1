//! `auth.oauth2`: credentials that expire and are renewed by the host.

use std::collections::BTreeMap;

use url::Url;

use super::reader::{Entry, Report, Section};
use super::reference::{plain_or_secret, secret};
use super::secret::Secret;
use crate::http::guard::is_loopback;

/// `auth = { oauth2 = { ... } }`.
///
/// ```toml
/// auth = { oauth2 = { client_id = "weir-42", client_secret = { env = "SHOP_SECRET" } } }
/// auth = { oauth2 = { client_id = "weir-42", refresh_token = { file = "secrets/shop" } } }
/// auth = { oauth2 = { grant = "client-credentials", client_id = "weir-42", client_secret = { env = "SHOP_SECRET" } } }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OAuth2 {
    /// `grant`: default `"refresh-token"`.
    pub grant: Grant,
    /// `client_id`: the app's id at the vendor; plain or by reference. Required.
    pub client_id: Secret,
    /// `client_secret`: by reference. Needed by `client-credentials`; other apps may be public and have none.
    pub client_secret: Option<Secret>,
    /// `refresh_token`: the one to begin with, by reference. Without it, `weir login` gets the first one.
    pub refresh_token: Option<Secret>,
    /// `account`: connections that name the same account share one sign-in. Default: the connection's name.
    pub account: Option<String>,
    /// `token_url`: where tokens come from. Default: as the connector says.
    pub token_url: Option<String>,
    /// `authorize_url`: the page on which a person signs in. Default: as the connector says.
    pub authorize_url: Option<String>,
    /// `device_url`: where `weir login --device` gets its code.
    pub device_url: Option<String>,
    /// `redirect`: the loopback URL that the app has registered, when the vendor insists on it. Default: a free port of
    /// 127.0.0.1.
    pub redirect: Option<Url>,
    /// `scopes`: what to ask for. Default: as the connector says.
    pub scopes: Option<Vec<String>>,
    /// `client_auth`: how the client proves itself. Default: as the connector says, else `"header"`.
    pub client_auth: Option<ClientAuth>,
    /// `params`: more that the vendor wants to be sent, with the sign-in and with every token call.
    pub params: BTreeMap<String, String>,
}

/// How a token is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// For a person's account: a refresh token, given or from a sign-in.
    RefreshToken,
    /// For the app itself.
    ClientCredentials,
}

/// Where the client's id and secret go in a token call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// `Authorization: Basic`.
    Header,
    /// Parameters of the body.
    Body,
}

const HELP: &str =
    "example: oauth2 = { client_id = \"weir-42\", client_secret = { env = \"SHOP_SECRET\" } }";

/// Parameters that the host sets itself.
const OWN: [&str; 13] = [
    "client_id",
    "client_secret",
    "code",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
    "device_code",
    "grant_type",
    "redirect_uri",
    "refresh_token",
    "response_type",
    "scope",
    "state",
];

impl OAuth2 {
    pub(super) fn read(at: &Entry<'_>, allow_http: bool, report: &mut Report<'_>) -> Option<Self> {
        let mut section = at.section(report, HELP)?;
        let grant = section.get(report, "grant").map(|at| {
            let words = [
                ("refresh-token", Grant::RefreshToken),
                ("client-credentials", Grant::ClientCredentials),
            ];
            at.word(report, &words)
        });
        let client_id = section.get(report, "client_id");
        if client_id.is_none() {
            report.complain(at, "needs a client_id", HELP);
        }
        let client_id = client_id.map(|at| plain_or_secret(&at, report));
        let client_secret = section.get(report, "client_secret");
        let client_secret = client_secret.map(|at| secret(&at, report));
        let refresh_token = section.get(report, "refresh_token");
        let account_at = section.get(report, "account");
        let url = |key, section: &mut Section<'_>, report: &mut Report<'_>| {
            let at = section.get(report, key)?;
            Some(endpoint(&at, allow_http, report))
        };
        let token_url = url("token_url", &mut section, report);
        let authorize_url = url("authorize_url", &mut section, report);
        let device_url = url("device_url", &mut section, report);
        let redirect = section
            .get(report, "redirect")
            .map(|at| redirect(&at, report));
        let scopes = section.get(report, "scopes").map(|at| scopes(&at, report));
        let client_auth = section.get(report, "client_auth").map(|at| {
            let words = [("header", ClientAuth::Header), ("body", ClientAuth::Body)];
            at.word(report, &words)
        });
        let params = section
            .get(report, "params")
            .map_or_else(|| Some(BTreeMap::new()), |at| params(&at, report));

        let grant = grant.unwrap_or(Some(Grant::RefreshToken))?;
        if grant == Grant::ClientCredentials {
            if client_secret.is_none() {
                let help = "example: client_secret = { env = \"SHOP_SECRET\" }";
                report.complain(at, "needs a client_secret for client-credentials", help);
            }
            for key in [
                "refresh_token",
                "account",
                "authorize_url",
                "device_url",
                "redirect",
            ] {
                if section.table.contains_key(key)
                    && let Some(at) = section.get(report, key)
                {
                    let help =
                        "leave it out, or leave out grant: nobody signs in for client-credentials";
                    report.complain(&at, "belongs to the grant refresh-token", help);
                }
            }
        }
        if let (Some(_), Some(at)) = (&refresh_token, &account_at) {
            let help =
                "leave out one of the two: connections with the same refresh token share it anyway";
            report.complain(at, "stands beside a refresh_token", help);
        }
        let refresh_token = refresh_token.map(|at| secret(&at, report));
        let account = account_at.map(|at| {
            let help = "allowed: a name; example: account = \"acme\"";
            at.filled(report, help).map(str::to_owned)
        });
        section.finish(report);
        // A key that is there and could not be read has been complained of.
        Some(OAuth2 {
            grant,
            client_id: client_id??,
            client_secret: settled(client_secret)?,
            refresh_token: settled(refresh_token)?,
            account: settled(account)?,
            token_url: settled(token_url)?,
            authorize_url: settled(authorize_url)?,
            device_url: settled(device_url)?,
            redirect: settled(redirect)?,
            scopes: settled(scopes)?,
            client_auth: settled(client_auth)?,
            params: params?,
        })
    }

    /// All that is secret in it. A client's id that is written plainly is not.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let hidden = *self.client_id.source() != super::SecretSource::Inline;
        let id = Some(&self.client_id).filter(|_| hidden);
        id.into_iter()
            .chain(&self.client_secret)
            .chain(&self.refresh_token)
    }
}

/// A key that is not there is none; one that is there must have been read.
#[expect(
    clippy::option_option,
    reason = "absent, unreadable and read are three things"
)]
fn settled<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        None => Some(None),
        Some(None) => None,
        Some(value) => Some(value),
    }
}

/// A URL that secrets are sent to.
fn endpoint(at: &Entry<'_>, allow_http: bool, report: &mut Report<'_>) -> Option<String> {
    let help = "allowed: a whole https URL; example: \"https://id.example.com/oauth/token\"";
    let text = at.filled(report, help)?;
    let problem = match Url::parse(text) {
        Err(error) => format!("is not a URL: {error}"),
        Ok(url) if !matches!(url.scheme(), "https" | "http") || url.host().is_none() => {
            "is not a web address".to_owned()
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            "holds a user or password".to_owned()
        }
        Ok(url) if url.fragment().is_some() => "holds a fragment".to_owned(),
        Ok(url) if url.scheme() == "http" && !is_loopback(&url) && !allow_http => {
            report.complain(
                at,
                "is not encrypted",
                "use https, or set allow_http = true for this connection",
            );
            return None;
        }
        Ok(_) => return Some(text.to_owned()),
    };
    report.complain(at, &problem, help);
    None
}

fn redirect(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Url> {
    let help =
        "allowed: http, this machine, and a port; example: \"http://127.0.0.1:8912/callback\"";
    let text = at.filled(report, help)?;
    match Url::parse(text) {
        Ok(url)
            if url.scheme() == "http"
                && is_loopback(&url)
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty() =>
        {
            Some(url)
        }
        _ => {
            report.complain(at, "is not a loopback URL", help);
            None
        }
    }
}

fn scopes(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Vec<String>> {
    let help = "allowed: a list of words; example: scopes = [\"orders.read\"]";
    let words = at.texts(report, help)?;
    let plain = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_graphic());
    if !words.iter().all(plain) {
        report.complain(at, "holds what is not one word", help);
        return None;
    }
    Some(words.into_iter().map(str::to_owned).collect())
}

fn params(at: &Entry<'_>, report: &mut Report<'_>) -> Option<BTreeMap<String, String>> {
    let help =
        "allowed: a table of strings; example: params = { audience = \"https://api.example.com\" }";
    let section = at.section(report, help)?;
    let mut params = BTreeMap::new();
    for (name, at) in section.entries(report) {
        if OWN.contains(&name) {
            report.complain(
                &at,
                "is set by weir itself",
                "leave it out; scopes have a key of their own",
            );
        }
        params.insert(name.to_owned(), at.text(report, help)?.to_owned());
    }
    Some(params)
}
