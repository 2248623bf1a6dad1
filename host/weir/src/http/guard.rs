//! Which URLs may be called: pure.
//!
//! A connector names a declared origin and a path below it, or passes on a link that the vendor gave. Promises: what
//! comes out of [`Origin::resolve`] has the origin's scheme, host and port, and a path lies below the origin's base
//! path, whatever strings go in. Values from the configuration fill an origin's template without changing its
//! structure.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;
use url::{Host, Url};

use super::address::AddressPolicy;

/// What a connector asks for, as it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Below the origin's base URL.
    Path(String),
    /// A whole or relative URL that the vendor gave.
    Link(String),
}

/// Why a URL may not be called. No text holds a query string or user information.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// The origin cannot be made from its template and the configuration.
    #[error("origin {template}: {detail}")]
    Origin {
        /// As the connector declares it.
        template: String,
        /// What is wrong and what to do.
        detail: String,
    },
    /// The path leaves the origin's base.
    #[error("path {path:?} is refused: {detail}")]
    Path {
        /// Without its query.
        path: String,
        /// Which rule.
        detail: &'static str,
    },
    /// The link leads elsewhere.
    #[error("link {link} is refused: {detail}; allowed: links at {origin}")]
    Link {
        /// Without its query.
        link: String,
        /// Which rule.
        detail: &'static str,
        /// The origin.
        origin: String,
    },
}

/// A place that a connection may talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    base: Url,
    addresses: AddressPolicy,
    allow_http: bool,
}

/// A URL that may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The URL, without credentials.
    pub url: Url,
    /// What was changed on the way, for the log.
    pub note: Option<String>,
}

/// All but the unreserved characters of RFC 3986 section 2.3.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

impl Origin {
    /// Fills a declared origin's template from the connection's config: `https://{shop}.example.com/admin` takes a
    /// plain word, `{base_url}` alone (or followed by a path) takes a whole URL.
    ///
    /// Only https, unless the host is loopback or `allow_http` is set.
    pub fn new(
        template: &str,
        config: &Value,
        allow_private: bool,
        allow_http: bool,
    ) -> Result<Self, GuardError> {
        let wrong = |detail: String| GuardError::Origin {
            template: template.to_owned(),
            detail,
        };
        let filled = fill(template, config).map_err(wrong)?;
        let mut base =
            Url::parse(&filled).map_err(|error| wrong(format!("it is not a URL: {error}")))?;
        if !matches!(base.scheme(), "https" | "http") {
            return Err(wrong("only https is spoken".to_owned()));
        }
        if has_userinfo(&base) {
            return Err(wrong(
                "it holds a user or password; write them as auth = { basic = ... }".to_owned(),
            ));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong(
                "it holds a query or a fragment; the base is a host and a path".to_owned(),
            ));
        }
        let loopback = is_loopback(&base);
        if base.scheme() == "http" && !loopback && !allow_http {
            return Err(wrong(format!(
                "{} is not encrypted; use https, or set allow_http = true for this connection",
                shown(&base)
            )));
        }
        let path = base.path().trim_end_matches('/').to_owned();
        base.set_path(&path);
        Ok(Origin {
            base,
            addresses: AddressPolicy {
                loopback,
                private: allow_private,
            },
            allow_http,
        })
    }

    /// The base URL.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Which addresses its host may have.
    pub fn addresses(&self) -> AddressPolicy {
        self.addresses
    }

    /// The user allows calls without TLS.
    pub fn allows_http(&self) -> bool {
        self.allow_http
    }

    /// Same scheme, host and port: the only place for this origin's credentials.
    pub fn covers(&self, url: &Url) -> bool {
        url.scheme() == self.base.scheme()
            && url.host() == self.base.host()
            && url.port_or_known_default() == self.base.port_or_known_default()
    }

    /// The URL of a call. A relative link is read from the URL that gave it (`from`), else from the base.
    pub fn resolve(
        &self,
        target: &Target,
        query: &[(String, String)],
        from: Option<&Url>,
    ) -> Result<Resolved, GuardError> {
        let mut resolved = match target {
            Target::Path(path) => Resolved {
                url: self.below(path)?,
                note: None,
            },
            Target::Link(link) => self.link(link, from)?,
        };
        append_query(&mut resolved.url, query);
        Ok(resolved)
    }

    fn below(&self, path: &str) -> Result<Url, GuardError> {
        let refuse = |detail| {
            Err(GuardError::Path {
                path: path.split(['?', '#']).next().unwrap_or_default().to_owned(),
                detail,
            })
        };
        if path.contains(['?', '#']) {
            return refuse("it holds a query or a fragment; the query is given apart, as pairs");
        }
        if path.contains('\\') || path.chars().any(char::is_control) {
            return refuse("it holds a backslash or a control character");
        }
        if path.starts_with("//") {
            return refuse("it names a host");
        }
        if has_scheme(path) {
            return refuse("it is a whole URL; one that the vendor gave goes as a link");
        }
        if path.split('/').any(climbs) {
            return refuse("it holds . or .. as a segment");
        }
        let mut url = self.base.clone();
        let base = self.base.path().trim_end_matches('/');
        match path.strip_prefix('/').unwrap_or(path) {
            "" => {}
            rest => url.set_path(&format!("{base}/{rest}")),
        }
        let inside = url
            .path()
            .strip_prefix(base)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if inside && self.covers(&url) {
            Ok(url)
        } else {
            refuse("it leaves the origin")
        }
    }

    fn link(&self, link: &str, from: Option<&Url>) -> Result<Resolved, GuardError> {
        let refuse = |link: String, detail| GuardError::Link {
            link,
            detail,
            origin: shown(&self.base),
        };
        let mut url = Url::options()
            .base_url(Some(from.unwrap_or(&self.base)))
            .parse(link)
            .map_err(|_| refuse(format!("{:?}", excerpt(link)), "it is not a URL"))?;
        url.set_fragment(None);
        let note = self
            .admit(&mut url)
            .map_err(|detail| refuse(shown(&url), detail))?;
        Ok(Resolved { url, note })
    }

    /// Lets a URL pass that lies at the origin. Behind a proxy vendors write plain http links to themselves: those get
    /// the origin's own scheme and port, so that nothing goes out unencrypted and no page is lost.
    fn admit(&self, url: &mut Url) -> Result<Option<String>, &'static str> {
        if has_userinfo(url) {
            return Err("it holds user information");
        }
        if self.covers(url) {
            return Ok(None);
        }
        if url.host() != self.base.host() {
            return Err("it leads to another host");
        }
        let downgraded = url.scheme() == "http"
            && self.base.scheme() == "https"
            && (url.port().is_none() || url.port() == self.base.port());
        if !downgraded {
            return Err("it leads to another scheme or port");
        }
        let before = shown(url);
        let changed =
            url.set_scheme(self.base.scheme()).is_ok() && url.set_port(self.base.port()).is_ok();
        if changed && self.covers(url) {
            Ok(Some(format!(
                "the vendor's link {before} was called as {}, as the origin is written",
                shown(url)
            )))
        } else {
            Err("it leads to another scheme or port")
        }
    }

    /// Where a redirect leads: the origin itself, or (without credentials) any host over https.
    pub(super) fn redirect(&self, location: &str, from: &Url) -> Result<Resolved, GuardError> {
        let mut url = from.join(location).map_err(|_| GuardError::Link {
            link: format!("{:?}", excerpt(location)),
            detail: "it is not a URL",
            origin: shown(&self.base),
        })?;
        url.set_fragment(None);
        if let Ok(note) = self.admit(&mut url) {
            return Ok(Resolved { url, note });
        }
        let detail = match url.scheme() {
            _ if has_userinfo(&url) => "the redirect holds user information",
            "https" => return Ok(Resolved { url, note: None }),
            "http" if self.allow_http || (self.addresses.loopback && is_loopback(&url)) => {
                return Ok(Resolved { url, note: None });
            }
            "http" => "the redirect is not encrypted",
            _ => "the redirect is not to https",
        };
        Err(GuardError::Link {
            link: shown(&url),
            detail,
            origin: shown(&self.base),
        })
    }
}

/// Scheme, host, port and path: what may be shown of a URL.
pub fn shown(url: &Url) -> String {
    if url.cannot_be_a_base() {
        return format!("{}:...", url.scheme());
    }
    let mut bare = url.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    // Neither can fail for a URL with a host, and one without has no user information.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.into()
}

/// A host that is this machine by its very name.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

/// The start of a text that could not be read as a URL, without what may be a query.
fn excerpt(link: &str) -> String {
    let end = link.find(['?', '#', '@']).unwrap_or(link.len());
    link.chars().take(80.min(end)).collect()
}

pub(crate) fn has_userinfo(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// `scheme://...`
fn has_scheme(path: &str) -> bool {
    path.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// A segment that a server might read as going up, also when its dots or slashes are percent-encoded.
fn climbs(segment: &str) -> bool {
    let decoded = percent_decode_str(segment).decode_utf8_lossy();
    decoded
        .split(['/', '\\'])
        .any(|part| matches!(part, "." | ".."))
}

/// Adds pairs to what the URL already asks for, which stays byte for byte.
fn append_query(url: &mut Url, pairs: &[(String, String)]) {
    if pairs.is_empty() {
        return;
    }
    let mut query = url.query().unwrap_or_default().to_owned();
    for (name, value) in pairs {
        if !query.is_empty() {
            query.push('&');
        }
        query.extend(utf8_percent_encode(name, QUERY));
        query.push('=');
        query.extend(utf8_percent_encode(value, QUERY));
    }
    url.set_query(Some(&query));
}

/// Sets a query parameter, replacing any of the same name; the others stay byte for byte.
pub(super) fn set_query_parameter(url: &mut Url, name: &str, value: &str) {
    remove_query_parameter(url, name);
    append_query(url, &[(name.to_owned(), value.to_owned())]);
}

/// Removes every query parameter of that name.
pub(super) fn remove_query_parameter(url: &mut Url, name: &str) {
    let Some(query) = url.query() else { return };
    let is_other = |pair: &&str| {
        let written = pair.split('=').next().unwrap_or_default().replace('+', " ");
        percent_decode_str(&written).decode_utf8_lossy() != name
    };
    let kept: Vec<&str> = query.split('&').filter(is_other).collect();
    let kept = kept.join("&");
    url.set_query(if kept.is_empty() { None } else { Some(&kept) });
}

/// Puts the config's values into a template. A value fills a part of a host or a path and may not end it; only where
/// the template begins with a field may that field be a whole URL.
pub(crate) fn fill(template: &str, config: &Value) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, from)) = rest.split_once('{') {
        let (name, after) = from
            .split_once('}')
            .ok_or("it has a brace without its other half")?;
        filled.push_str(before);
        let value = match config.get(name) {
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::String(_)) => return Err(format!("config.{name} is empty")),
            Some(_) => return Err(format!("config.{name} is neither a string nor a number")),
            None => return Err(format!("config.{name} is missing")),
        };
        let whole = filled.is_empty();
        if whole {
            if !(after.is_empty() || after.starts_with('/')) {
                return Err(format!("{{{name}}} may be followed by a path only"));
            }
            if !(value.starts_with("https://") || value.starts_with("http://")) {
                return Err(format!(
                    "config.{name} = {:?} is not a URL; example: \"https://api.example.com\"",
                    excerpt(&value)
                ));
            }
            if !after.is_empty() && value.contains(['?', '#']) {
                return Err(format!(
                    "config.{name} holds a query or a fragment; the base is a host and a path"
                ));
            }
            filled.push_str(if after.is_empty() {
                &value
            } else {
                value.trim_end_matches('/')
            });
        } else {
            let authority = filled.ends_with("://") && (after.is_empty() || after.starts_with('/'));
            let plain = if authority {
                host_with_port(&value)
            } else {
                plain_word(&value)
            };
            if !plain {
                return Err(format!(
                    "config.{name} = {value:?} is refused; allowed: letters, digits, - and _, with single dots between"
                ));
            }
            filled.push_str(&value);
        }
        rest = after;
    }
    if rest.contains('}') {
        return Err("it has a brace without its other half".to_owned());
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Letters, digits, `-`, `_`, `~`, and dots inside.
fn plain_word(value: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '~'))
    };
    value.split('.').all(part)
}

fn host_with_port(value: &str) -> bool {
    match value.split_once(':') {
        Some((host, port)) => plain_word(host) && port.parse::<u16>().is_ok(),
        None => plain_word(value),
    }
}

#[cfg(test)]
mod tests;
