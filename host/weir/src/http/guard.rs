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

fn has_userinfo(url: &Url) -> bool {
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
fn fill(template: &str, config: &Value) -> Result<String, String> {
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn origin(base: &str) -> Origin {
        Origin::new("{base_url}", &json!({ "base_url": base }), false, false).unwrap()
    }

    fn path(origin: &Origin, path: &str) -> Result<String, GuardError> {
        origin
            .resolve(&Target::Path(path.to_owned()), &[], None)
            .map(|resolved| resolved.url.into())
    }

    fn link(origin: &Origin, link: &str) -> Result<String, GuardError> {
        origin
            .resolve(&Target::Link(link.to_owned()), &[], None)
            .map(|resolved| resolved.url.into())
    }

    #[test]
    fn a_template_takes_plain_words_only() {
        let shop = |name: &str| {
            Origin::new(
                "https://{shop}.example.com/admin",
                &json!({ "shop": name }),
                false,
                false,
            )
            .map(|origin| origin.base().to_string())
        };
        assert_eq!(
            shop("acme-eu").unwrap(),
            "https://acme-eu.example.com/admin"
        );
        for bad in [
            "",
            "evil.test/",
            "evil.test#",
            "evil.test?",
            "a@b",
            "a:1",
            "a\\b",
            "..",
            ".",
            "a..b",
            "a b",
            "a\nb",
            "%2f",
            "ünicode",
            "{x}",
        ] {
            assert!(shop(bad).is_err(), "{bad:?}");
        }
        let missing = Origin::new("https://{shop}.example.com", &json!({}), false, false);
        assert_eq!(
            missing.unwrap_err().to_string(),
            "origin https://{shop}.example.com: config.shop is missing"
        );
    }

    #[test]
    fn a_whole_host_may_have_a_port() {
        let host = |name: &str| {
            Origin::new("https://{host}/api", &json!({ "host": name }), false, false)
                .map(|origin| origin.base().to_string())
        };
        assert_eq!(
            host("erp.acme.test:8443").unwrap(),
            "https://erp.acme.test:8443/api"
        );
        assert!(host("erp.acme.test:x").is_err());
        assert!(host("u@erp.acme.test").is_err());
    }

    #[test]
    fn only_https_loopback_or_the_users_word() {
        let make = |url: &str, http| Origin::new("{u}", &json!({ "u": url }), false, http);
        assert!(make("https://api.example.test/v1", false).is_ok());
        for loopback in [
            "http://127.0.0.1:8080",
            "http://localhost:1",
            "http://[::1]:2/",
            "http://0x7f.1",
            "http://2130706433",
        ] {
            let origin = make(loopback, false).unwrap();
            assert!(origin.addresses().loopback, "{loopback}");
        }
        assert!(make("http://api.example.test", false).is_err());
        assert!(make("http://api.example.test", true).is_ok());
        for bad in [
            "ftp://api.example.test",
            "https://u:p@api.example.test",
            "https://api.example.test/?k=v",
            "api.example.test",
            "https://",
        ] {
            assert!(make(bad, true).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_stay_below_the_base() {
        let api = origin("https://api.example.test/v1/");
        assert_eq!(
            path(&api, "orders").unwrap(),
            "https://api.example.test/v1/orders"
        );
        assert_eq!(
            path(&api, "/orders/7").unwrap(),
            "https://api.example.test/v1/orders/7"
        );
        assert_eq!(path(&api, "").unwrap(), "https://api.example.test/v1");
        assert_eq!(
            path(&api, "projects/a%2Fb").unwrap(),
            "https://api.example.test/v1/projects/a%2Fb"
        );
        assert_eq!(
            path(&api, "docs:batch").unwrap(),
            "https://api.example.test/v1/docs:batch"
        );
        for bad in [
            "../admin",
            "/../admin",
            "a/../../b",
            "a/%2e%2e/b",
            "a/.%2E/b",
            "..%2fadmin",
            "..%5cadmin",
            "//evil.test/x",
            "https://evil.test/x",
            "a?b=c",
            "a#b",
            "\\\\evil.test",
            "a\nb",
            "a/./b",
        ] {
            assert!(path(&api, bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_query_is_encoded_pair_by_pair() {
        let api = origin("https://api.example.test");
        let query = [
            ("q".to_owned(), "a b&c=d+é#".to_owned()),
            ("page[size]".to_owned(), "5".to_owned()),
        ];
        let url = api
            .resolve(&Target::Path("x".into()), &query, None)
            .unwrap()
            .url;
        assert_eq!(
            url.query(),
            Some("q=a%20b%26c%3Dd%2B%C3%A9%23&page%5Bsize%5D=5")
        );
        let next = Target::Link("https://api.example.test/x?cursor=a%2fb".into());
        let url = api
            .resolve(&next, &[("n".to_owned(), "1".to_owned())], None)
            .unwrap()
            .url;
        assert_eq!(url.query(), Some("cursor=a%2fb&n=1"));
    }

    #[test]
    fn links_must_lie_at_the_origin() {
        let api = origin("https://api.example.test/v1");
        assert_eq!(
            link(&api, "https://API.example.test:443/items?p=2").unwrap(),
            "https://api.example.test/items?p=2"
        );
        for bad in [
            "https://evil.test/",
            "https://api.example.test@evil.test/",
            "https://u@api.example.test/",
            "//evil.test/",
            "https://api.example.test:8443/",
            "http://api.example.test:81/",
            "https://api.example.test./",
            "ftp://api.example.test/",
            "javascript:alert(1)",
            "https:\\\\evil.test",
            "data:,x",
            "https://api.example.test.evil.test/",
        ] {
            assert!(link(&api, bad).is_err(), "{bad:?}");
        }
        let text = link(&api, "https://evil.test/a?api_key=S3CR3T")
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("https://evil.test/a") && !text.contains("S3CR3T"),
            "{text}"
        );
    }

    #[test]
    fn a_relative_link_is_read_from_the_page_that_gave_it() {
        let api = origin("https://api.example.test/v1");
        let from = Url::parse("https://api.example.test/v1/items?page=1").unwrap();
        let next = api
            .resolve(&Target::Link("?page=2".into()), &[], Some(&from))
            .unwrap();
        assert_eq!(
            next.url.as_str(),
            "https://api.example.test/v1/items?page=2"
        );
    }

    #[test]
    fn case_095_a_plain_link_of_an_encrypted_origin_is_called_encrypted() {
        let api = origin("https://api.example.test:8443");
        let next = api
            .resolve(
                &Target::Link("http://api.example.test/items?page=2".into()),
                &[],
                None,
            )
            .unwrap();
        assert_eq!(
            next.url.as_str(),
            "https://api.example.test:8443/items?page=2"
        );
        assert!(
            next.note
                .is_some_and(|note| note.contains("http://api.example.test/items"))
        );
    }

    #[test]
    fn query_parameters_are_replaced_by_name_and_others_kept_as_written() {
        let mut url =
            Url::parse("https://a.test/?x=%7e&api%5Fkey=old&y=a+b&api_key=older").unwrap();
        set_query_parameter(&mut url, "api_key", "n&w");
        assert_eq!(url.query(), Some("x=%7e&y=a+b&api_key=n%26w"));
        remove_query_parameter(&mut url, "api_key");
        assert_eq!(url.query(), Some("x=%7e&y=a+b"));
    }

    proptest! {
        #[test]
        fn no_path_leaves_the_base(text in "[a-z./\\\\%2eEfF5cC:@?#\\[\\]~ \\t\\n\u{0}é-]{0,24}|.{0,24}") {
            let api = origin("https://api.example.test:8443/v1/data");
            if let Ok(resolved) = api.resolve(&Target::Path(text), &[], None) {
                prop_assert!(api.covers(&resolved.url));
                prop_assert!(!has_userinfo(&resolved.url));
                let path = resolved.url.path();
                prop_assert!(path == "/v1/data" || path.starts_with("/v1/data/"), "{path}");
                prop_assert!(!path.split('/').any(climbs));
                prop_assert!(resolved.url.query().is_none());
                // What goes over the wire is read the same by the next parser.
                prop_assert_eq!(&Url::parse(resolved.url.as_str()).unwrap(), &resolved.url);
            }
        }

        #[test]
        fn no_link_leaves_the_origin(
            text in "(https?:)?[/\\\\]{0,3}(api\\.example\\.test|evil\\.test)?[@:.#?/\\\\a-z0-9\\[\\]%]{0,16}|.{0,32}",
        ) {
            let api = origin("https://api.example.test:8443/v1");
            if let Ok(resolved) = api.resolve(&Target::Link(text), &[], None) {
                prop_assert!(api.covers(&resolved.url));
                prop_assert!(!has_userinfo(&resolved.url));
                prop_assert!(api.covers(&Url::parse(resolved.url.as_str()).unwrap()));
            }
        }

        #[test]
        fn no_config_value_changes_the_hosts_structure(text in "[a-z.:/@#?%\\\\ \\t{}-]{0,16}|.{0,16}") {
            if let Ok(origin) = Origin::new("https://{shop}.example.com/admin", &json!({ "shop": text }), false, false) {
                prop_assert!(origin.base().host_str().is_some_and(|host| host.ends_with(".example.com")));
                prop_assert_eq!(origin.base().path(), "/admin");
                prop_assert_eq!(origin.base().port(), None);
            }
        }

        #[test]
        fn a_query_never_leaks_into_another_part(name in ".{0,12}", value in ".{0,12}") {
            let api = origin("https://api.example.test");
            let pairs = [(name, value)];
            let resolved = api.resolve(&Target::Path("x".into()), &pairs, None).unwrap();
            let read: Vec<(String, String)> = resolved.url.query_pairs().into_owned().collect();
            prop_assert_eq!(read, pairs.to_vec());
            prop_assert_eq!(resolved.url.path(), "/x");
        }
    }
}
