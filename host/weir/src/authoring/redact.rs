//! What of an exchange is not written down.
//!
//! A recorded answer is meant to be committed. So before anything of it is kept: the connection's secrets are masked in
//! every form, headers that carry credentials or sessions lose their value, fields that secrets go by lose theirs, and so
//! do the ones that the user named. Kinds stay: a text becomes a text, a number a number.

use std::fmt::Write as _;

use serde_json::Value;

use super::layout;
use super::walk::file::{RequestShown, ResponseGiven};
use crate::http::redact::Redactor;

/// What stands in place of a text.
pub const MASK: &str = "[redacted]";

/// Headers that are not kept at all: what they hold is of this one answer, and of no use to a connector.
const DROPPED: [&str; 12] = [
    "alt-svc",
    "cf-ray",
    "content-security-policy",
    "nel",
    "permissions-policy",
    "report-to",
    "reporting-endpoints",
    "set-cookie",
    "set-cookie2",
    "strict-transport-security",
    "traceparent",
    "x-amz-cf-id",
];

/// Parts of the names of headers whose values are not kept.
const SECRET_HEADERS: [&str; 9] = [
    "auth",
    "cookie",
    "credential",
    "csrf",
    "secret",
    "session",
    "signature",
    "token",
    "api-key",
];

/// Names under which secrets stand in bodies and configs, without hyphens and underscores. Tokens of pages are none.
const SECRET_FIELDS: [&str; 18] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authorization",
    "authtoken",
    "bearertoken",
    "clientsecret",
    "csrftoken",
    "idtoken",
    "password",
    "passwd",
    "privatekey",
    "refreshtoken",
    "secret",
    "secretkey",
    "sessionid",
    "sessiontoken",
];

/// Takes out what must not be kept.
pub struct Scrubber {
    secrets: Redactor,
    /// Those of the connector's config.
    of_config: Redactor,
    /// JSON pointers into bodies, token by token; `*` is any.
    pointers: Vec<Vec<String>>,
}

/// A pointer that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--scrub {0:?} is no JSON pointer: write /user/email, or /users/*/email for every element")]
pub struct NoPointer(pub String);

impl Scrubber {
    /// For a connection with these secrets and this config.
    ///
    /// # Errors
    /// [`NoPointer`].
    pub fn new(secrets: &Redactor, config: &str, pointers: &[String]) -> Result<Self, NoPointer> {
        let mut in_config = Vec::new();
        if let Ok(config) = serde_json::from_str(config) {
            collect(&config, &mut in_config);
        }
        let of_config = Redactor::new(in_config.iter().map(String::as_str));
        let pointers = pointers
            .iter()
            .map(|pointer| {
                weir_rules::json_pointer::tokens(pointer).map_err(|_| NoPointer(pointer.clone()))
            })
            .collect::<Result<_, _>>()?;
        Ok(Scrubber {
            secrets: secrets.clone(),
            of_config,
            pointers,
        })
    }

    /// Any text.
    pub fn text(&self, text: &str) -> String {
        self.of_config.mask(&self.secrets.mask(text)).into_owned()
    }

    /// A config: secrets by name, and wherever else their values stand.
    pub fn config(&self, json: &str) -> String {
        self.text(&fields(json, &|_| false))
    }

    /// A body that is JSON; none when it is no JSON.
    pub fn json(&self, json: &str) -> Option<String> {
        serde_json::from_str::<serde::de::IgnoredAny>(json).ok()?;
        let named = |path: &[String]| self.pointers.iter().any(|pointer| leads(pointer, path));
        Some(self.text(&fields(json, &named)))
    }

    /// Headers, without those that are of no use.
    pub fn headers(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .filter(|(name, _)| !DROPPED.contains(&name.as_str()))
            .map(|(name, value)| {
                let secret = SECRET_HEADERS.iter().any(|part| name.contains(part));
                let value = if secret {
                    MASK.to_owned()
                } else {
                    self.text(value)
                };
                (name, value)
            })
            .collect()
    }

    /// An answer.
    pub fn response(&self, given: ResponseGiven) -> ResponseGiven {
        let mut kept = ResponseGiven {
            headers: self.headers(&given.headers),
            url: given.url.map(|url| self.text(&url)),
            ..given
        };
        kept.json = kept.json.and_then(|json| raw(self.json(json.get())?));
        kept.text = kept.text.map(|text| self.text(&text));
        kept
    }

    /// A request.
    pub fn request(&self, shown: RequestShown) -> RequestShown {
        let mut kept = RequestShown {
            url: self.text(&shown.url),
            query: shown
                .query
                .iter()
                .map(|(name, value)| (name.clone(), self.text(value)))
                .collect(),
            headers: self.headers(&shown.headers),
            ..shown
        };
        kept.json = kept.json.and_then(|json| raw(self.json(json.get())?));
        kept.text = kept.text.map(|text| self.text(&text));
        kept
    }
}

fn raw(json: String) -> Option<Box<serde_json::value::RawValue>> {
    serde_json::value::RawValue::from_string(json).ok()
}

/// Masks the scalars that stand in or below a place that is named, or under a name that secrets go by.
fn fields(json: &str, named: &dyn Fn(&[String]) -> bool) -> String {
    let hidden = |path: &[String]| {
        (0..=path.len()).any(|depth| {
            path.get(..depth).is_some_and(|above| {
                named(above) || above.last().is_some_and(|name| is_secret_field(name))
            })
        })
    };
    let masked = layout::replace(json, &mut |path, value| {
        if value.starts_with(['{', '[']) || !hidden(path) {
            return None;
        }
        match value.as_bytes().first() {
            Some(b'"') => Some(format!("\"{MASK}\"")),
            Some(b'0'..=b'9' | b'-') => Some("0".to_owned()),
            _ => None,
        }
    });
    masked.unwrap_or_else(|_| json.to_owned())
}

fn is_secret_field(name: &str) -> bool {
    let mut plain = String::new();
    for c in name.chars().filter(|c| c.is_ascii_alphanumeric()) {
        // Writing to a string cannot fail.
        let _ = write!(plain, "{}", c.to_ascii_lowercase());
    }
    SECRET_FIELDS.contains(&plain.as_str())
}

fn leads(pointer: &[String], path: &[String]) -> bool {
    pointer.len() == path.len()
        && pointer
            .iter()
            .zip(path)
            .all(|(token, name)| token == "*" || token == name)
}

/// The texts of a config that stand under names that secrets go by.
fn collect(config: &Value, found: &mut Vec<String>) {
    match config {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if is_secret_field(name) => found.push(text.clone()),
                    _ => collect(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubber(pointers: &[&str]) -> Scrubber {
        let pointers: Vec<String> = pointers.iter().map(ToString::to_string).collect();
        let secrets = Redactor::new(["S3CR3T-9f2"]);
        let config = r#"{"shop":"acme","client_secret":"c0nfig-s3cret"}"#;
        Scrubber::new(&secrets, config, &pointers).unwrap()
    }

    #[test]
    fn secrets_go_wherever_they_stand_and_kinds_stay() {
        let scrubber = scrubber(&["/users/*/email", "/owner", "/pin"]);
        let body = r#"{"next":"https://api.example.test/?access_token=S3CR3T-9f2&page=2","next_page_token":"p2",
            "refresh_token":"r","users":[{"id":123456789012345678901,"email":"a@example.test"}],
            "owner":{"name":"N","age":7},"pin":42,"echo":"c0nfig-s3cret","api-key":null}"#;
        let kept = scrubber.json(body).unwrap();
        for gone in [
            "S3CR3T",
            "\"r\"",
            "a@example",
            "\"N\"",
            ":7",
            "42",
            "c0nfig",
        ] {
            assert!(!kept.contains(gone), "{gone}: {kept}");
        }
        for stays in [
            "page=2",
            r#""next_page_token":"p2""#,
            "123456789012345678901",
            r#""age":0"#,
            r#""pin":0"#,
            r#""api-key":null"#,
        ] {
            assert!(kept.contains(stays), "{stays}: {kept}");
        }
        assert_eq!(scrubber.json("<html>"), None);
        assert_eq!(
            scrubber.config(r#"{"shop":"acme","client_secret":"c0nfig-s3cret"}"#),
            r#"{"shop":"acme","client_secret":"[redacted]"}"#
        );
    }

    #[test]
    fn headers_lose_credentials_and_keep_limits() {
        let headers = [
            ("Set-Cookie", "sid=1"),
            ("X-Session-Id", "abc"),
            ("X-RateLimit-Remaining", "7"),
            ("Link", "<https://a.test/?k=S3CR3T-9f2>; rel=next"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let kept = scrubber(&[]).headers(&headers);
        let text = format!("{kept:?}");
        assert!(
            !text.contains("sid=1") && !text.contains("abc") && !text.contains("S3CR3T"),
            "{text}"
        );
        assert!(text.contains(r#"("x-ratelimit-remaining", "7")"#), "{text}");
        assert_eq!(kept.len(), 3);
    }

    #[test]
    fn a_pointer_that_is_none_is_refused() {
        let secrets = Redactor::new([""; 0]);
        let error = Scrubber::new(&secrets, "{}", &["email".to_owned()])
            .err()
            .unwrap();
        assert!(error.to_string().contains("/user/email"), "{error}");
    }
}
