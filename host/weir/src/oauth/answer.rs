//! What a token endpoint's answer means. RFC 6749 where vendors keep to it; else what they are known to do instead:
//! errors in answers of 200, form-encoded answers, numbers as strings, error codes of their own.

use std::collections::HashMap;

use serde_json::Value;
use url::form_urlencoded;
use weir_rules::model::{Class, Duration};

use crate::http::HttpResponse;

/// What the vendor gave.
pub(super) struct Tokens {
    pub(super) access: String,
    /// Another refresh token than the one that was sent, where it gave one.
    pub(super) refresh: Option<String>,
    /// How long the access token is good for, in ms.
    pub(super) lifetime: Option<Duration>,
    /// What it may be used for, where the vendor says so.
    pub(super) scope: Option<String>,
}

/// Why it gave none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) meaning: Meaning,
    /// The vendor's code, or the status.
    pub(super) code: String,
    /// The vendor's words, shortened; may quote what was sent.
    pub(super) words: String,
}

/// What a refusal calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A person must sign in again.
    GrantIsDead,
    /// The client itself is not taken: its id, its secret, its rights.
    ClientIsRefused,
    /// A sign-in that the person has not finished yet.
    Pending,
    /// Later.
    Busy(Class),
    /// Nobody knows.
    Unknown,
}

/// The longest lifetime that is believed: ten years.
const LONGEST: f64 = 10.0 * 365.0 * 86_400.0;
/// What is shown of a vendor's words, in characters.
const SHOWN: usize = 300;

const DEAD: [&str; 12] = [
    "access_denied",
    "bad_refresh_token",
    "consent_required",
    "expired_token",
    "interaction_required",
    "invalid_grant",
    "invalid_refresh_token",
    "invalid_token",
    "login_required",
    "token_expired",
    "token_revoked",
    "user_revoked",
];
const CLIENT: [&str; 10] = [
    "bad_client_secret",
    "incorrect_client_credentials",
    "invalid_client",
    "invalid_client_id",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_token_type",
];
const BUSY: [&str; 6] = [
    "internal_error",
    "internal_server_error",
    "server_error",
    "service_unavailable",
    "temporarily_unavailable",
    "timeout",
];
const LIMITED: [&str; 5] = [
    "rate_limit_exceeded",
    "rate_limited",
    "ratelimited",
    "slow_down",
    "too_many_requests",
];

/// Reads an answer.
pub(super) fn read(response: &HttpResponse) -> Result<Tokens, Refusal> {
    let fields = Fields::of(response);
    let good = (200..300).contains(&response.status);
    match fields.error() {
        None if good => tokens(&fields).ok_or_else(|| Refusal {
            // It may have been a good one before it was cut or changed on its way.
            meaning: Meaning::Busy(Class::Incomplete),
            code: format!("status {}", response.status),
            words: "the answer holds no access token that can be used".to_owned(),
        }),
        error => Err(refusal(response.status, error, &fields)),
    }
}

fn tokens(fields: &Fields) -> Option<Tokens> {
    let kind = fields.text("token_type").unwrap_or_default();
    if ["dpop", "mac"].contains(&kind.to_ascii_lowercase().as_str()) {
        return None;
    }
    let sendable =
        |token: &String| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    Some(Tokens {
        access: fields.text("access_token").filter(sendable)?,
        refresh: fields
            .text("refresh_token")
            .filter(|token| !token.is_empty()),
        lifetime: fields
            .number("expires_in")
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| (seconds.min(LONGEST) * 1_000.0) as Duration),
        scope: fields.text("scope").filter(|scope| !scope.is_empty()),
    })
}

fn refusal(status: u16, error: Option<String>, fields: &Fields) -> Refusal {
    let code = error.unwrap_or_default().to_ascii_lowercase();
    let known = |codes: &[&str]| codes.contains(&code.as_str());
    let meaning = match status {
        429 | 420 | 430 => Meaning::Busy(Class::RateLimited),
        408 | 425 | 500..=599 => Meaning::Busy(Class::Temporary),
        // A redirect or a proxy's word: not the vendor's.
        300..=399 | 407 => Meaning::Busy(Class::Temporary),
        _ if code == "authorization_pending" => Meaning::Pending,
        _ if known(&DEAD) => Meaning::GrantIsDead,
        _ if known(&CLIENT) => Meaning::ClientIsRefused,
        _ if known(&BUSY) => Meaning::Busy(Class::Temporary),
        _ if known(&LIMITED) => Meaning::Busy(Class::RateLimited),
        401 => Meaning::ClientIsRefused,
        _ => Meaning::Unknown,
    };
    let words = fields
        .text("error_description")
        .or_else(|| fields.text("message"));
    let words = match status {
        300..=399 => Some("a redirect is not followed with secrets in hand".to_owned()),
        _ => words,
    };
    Refusal {
        meaning,
        code: match code.is_empty() {
            true => format!("status {status}"),
            false => shortened(&code),
        },
        words: shortened(&words.unwrap_or_default()),
    }
}

/// What may be shown on one line.
fn shortened(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).take(SHOWN).collect()
}

/// The members of an answer, JSON or form-encoded.
pub(super) struct Fields(HashMap<String, Value>);

impl Fields {
    pub(super) fn of(response: &HttpResponse) -> Fields {
        let text = response.text().unwrap_or_default();
        let json = serde_json::from_str::<HashMap<String, Value>>(text);
        let form = || {
            let pairs = form_urlencoded::parse(text.trim().as_bytes());
            pairs
                .map(|(name, value)| (name.into_owned(), Value::from(value.into_owned())))
                .collect()
        };
        let kind = response.header("content-type").unwrap_or_default();
        Fields(match json {
            Ok(fields) => fields,
            Err(_) if kind.contains("json") || kind.contains("html") => HashMap::new(),
            Err(_) => form(),
        })
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    /// A number, also one that was written as a string.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        let value = self.0.get(name)?;
        let number = value
            .as_f64()
            .or_else(|| value.as_str()?.trim().parse().ok());
        number.filter(|number| number.is_finite())
    }

    /// The code of an error: a word, or a member of an object.
    fn error(&self) -> Option<String> {
        let error = self.0.get("error")?;
        let inner = || {
            ["code", "status", "type"]
                .iter()
                .find_map(|name| error.get(name)?.as_str())
        };
        match error {
            Value::Null | Value::Bool(false) => None,
            _ => Some(error.as_str().or_else(inner).unwrap_or_default().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn answer(status: u16, kind: &str, body: &str) -> HttpResponse {
        HttpResponse {
            status,
            headers: vec![("content-type".to_owned(), kind.to_owned())],
            body: body.to_owned().into(),
            elapsed: Duration::ZERO,
        }
    }

    fn json(status: u16, body: &str) -> Result<Tokens, Refusal> {
        read(&answer(status, "application/json", body))
    }

    #[test]
    fn tokens_are_read_as_vendors_write_them() {
        let read_as = |kind, body: &str| {
            let tokens = read(&answer(200, kind, body)).ok().unwrap();
            (tokens.access, tokens.refresh, tokens.lifetime)
        };
        let both = ("at_1".to_owned(), Some("rt_2".to_owned()), Some(3_600_000));
        for body in [
            r#"{"access_token":"at_1","token_type":"Bearer","expires_in":3600,"refresh_token":"rt_2"}"#,
            r#"{"access_token":"at_1","expires_in":"3600","refresh_token":"rt_2","error":null}"#,
            r#"{"access_token":"at_1","expires_in":3600.0,"refresh_token":"rt_2","ok":true}"#,
        ] {
            assert_eq!(read_as("application/json", body), both, "{body}");
        }
        let form = "access_token=at_1&expires_in=3600&refresh_token=rt%5F2&token_type=bearer";
        assert_eq!(read_as("application/x-www-form-urlencoded", form), both);
        for odd in ["0", "-1", "\"soon\"", "null", "1e999"] {
            let body = format!(r#"{{"access_token":"at_1","expires_in":{odd}}}"#);
            let read = json(200, &body).ok();
            assert!(read.is_none_or(|tokens| tokens.lifetime.is_none()), "{odd}");
        }
    }

    #[test]
    fn a_refusal_says_what_will_fix_it() {
        let meaning = |status, body: &str| json(status, body).err().unwrap().meaning;
        use Meaning::*;
        for (status, body, expected) in [
            (400, r#"{"error":"invalid_grant"}"#, GrantIsDead),
            (200, r#"{"error":"bad_refresh_token"}"#, GrantIsDead),
            (200, r#"{"ok":false,"error":"token_revoked"}"#, GrantIsDead),
            (400, r#"{"error":"invalid_client"}"#, ClientIsRefused),
            (401, "", ClientIsRefused),
            (400, r#"{"error":"authorization_pending"}"#, Pending),
            (400, r#"{"error":"slow_down"}"#, Busy(Class::RateLimited)),
            (
                429,
                r#"{"error":"invalid_grant"}"#,
                Busy(Class::RateLimited),
            ),
            (503, r#"{"error":"invalid_grant"}"#, Busy(Class::Temporary)),
            (
                400,
                r#"{"error":"temporarily_unavailable"}"#,
                Busy(Class::Temporary),
            ),
            (302, "", Busy(Class::Temporary)),
            (200, r#"{"access_token":""}"#, Busy(Class::Incomplete)),
            (200, r#"{"access_token":"at_1","#, Busy(Class::Incomplete)),
            (200, r#"{"access_token":"a\nb"}"#, Busy(Class::Incomplete)),
            (
                200,
                r#"{"access_token":"at_1","token_type":"DPoP"}"#,
                Busy(Class::Incomplete),
            ),
            (403, r#"{"error":{"code":"blocked"}}"#, Unknown),
            (404, "<html>", Unknown),
        ] {
            assert_eq!(meaning(status, body), expected, "{status} {body}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(status in 100..600_u16, body in ".{0,200}", form in any::<bool>()) {
            let kind = if form { "text/plain" } else { "application/json" };
            let read = read(&answer(status, kind, &body));
            if let Ok(tokens) = read {
                prop_assert!((200..300).contains(&status) && !tokens.access.is_empty());
            }
        }
    }
}
