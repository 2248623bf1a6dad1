//! What a person sees of a call that failed: request line, status, the headers that matter and the beginning of the body,
//! without secrets.
//!
//! The connection's secrets are masked in all of it, also one that the end of the excerpt cuts in two. Of the query,
//! values are left out that stand under a name which secrets go by.

use url::Url;
use weir_runtime::contract::{Body, Response};

use super::aside::start;
use crate::http::redact::Redactor;
use crate::store::ShownAnswer;

/// Bytes of a body that are shown.
const BODY: usize = 1 << 10;
/// Bytes that are looked at: more than are shown, since a mask is shorter than what it hides.
const LOOKED_AT: usize = 4 << 10;
/// Headers that are shown, and bytes of each.
const HEADERS: usize = 24;
const HEADER: usize = 256;
/// Bytes of a request line.
const LINE: usize = 2 << 10;

/// Besides those whose names begin or end in a telling way.
const TELLING: [&str; 14] = [
    "allow",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "deprecation",
    "location",
    "retry-after",
    "server",
    "status",
    "sunset",
    "via",
    "warning",
    "www-authenticate",
];

/// Names under which secrets travel in queries.
const SECRET_NAMES: [&str; 12] = [
    "access_token",
    "api_key",
    "apikey",
    "auth",
    "auth_token",
    "client_secret",
    "key",
    "password",
    "secret",
    "sig",
    "signature",
    "token",
];

/// An answer as it came, cut and not masked yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Excerpt {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    bytes: usize,
}

impl Excerpt {
    /// The part of an answer that may be shown.
    pub(super) fn of(response: &Response) -> Excerpt {
        let (body, bytes) = match &response.body {
            Body::Text(text) => (start(text, LOOKED_AT).to_owned(), text.len()),
            Body::Bytes(bytes) => {
                let head = bytes.get(..LOOKED_AT).unwrap_or(bytes);
                (String::from_utf8_lossy(head).into_owned(), bytes.len())
            }
        };
        let headers = response
            .headers
            .iter()
            .filter(|header| tells(&header.name))
            .take(HEADERS)
            .map(|header| {
                (
                    header.name.to_ascii_lowercase(),
                    start(&header.value, LOOKED_AT).to_owned(),
                )
            })
            .collect();
        Excerpt {
            status: response.status,
            headers,
            body,
            bytes,
        }
    }

    /// What is kept of it.
    pub(super) fn shown(self, request: String, redactor: &Redactor) -> ShownAnswer {
        let tame = |text: &str, bytes: usize| {
            let text = redactor.mask_beginning(text);
            plain(start(&text, bytes))
        };
        ShownAnswer {
            request,
            status: Some(self.status),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (plain(start(name, HEADER)), tame(value, HEADER)))
                .collect(),
            body: tame(&self.body, BODY),
            bytes: self.bytes as u64,
        }
    }
}

/// `GET https://api.example.test/v1/orders?since=...`, without secrets.
pub(super) fn request_line(method: &str, url: &Url, redactor: &Redactor) -> String {
    let mut url = url.clone();
    // Neither can fail for a URL with a host, and one without has no user information.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    if url.query().is_some_and(|query| !query.is_empty()) {
        let pairs: Vec<(String, String)> = url
            .query_pairs()
            .map(|(name, value)| {
                let value = if is_secret(&name) {
                    "[secret]".into()
                } else {
                    value
                };
                (name.into_owned(), value.into_owned())
            })
            .collect();
        if pairs.iter().any(|(_, value)| value == "[secret]") {
            url.query_pairs_mut().clear().extend_pairs(pairs);
        }
    }
    let line = format!("{method} {url}");
    plain(start(&redactor.mask_beginning(&line), LINE)).replace("%5Bsecret%5D", "[secret]")
}

/// A record's text as it is kept.
pub(super) fn masked_text(text: &str, redactor: &Redactor) -> String {
    plain(&redactor.mask_beginning(text))
}

fn tells(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.contains(&name.as_str())
        || name.contains("ratelimit")
        || name.contains("rate-limit")
        || name.contains("retry-after")
        || name.contains("error")
        || name.ends_with("request-id")
        || name.ends_with("requestid")
        || name.ends_with("correlation-id")
        || name.ends_with("trace-id")
        || name == "cf-ray"
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_NAMES.contains(&name.as_str())
        || name.ends_with("_secret")
        || name.ends_with("_key")
        || name.ends_with("access_token")
}

/// Without what would move a terminal's cursor.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use weir_runtime::contract::Header;

    use super::*;

    fn response(body: &str) -> Response {
        let header = |name: &str, value: &str| Header {
            name: name.into(),
            value: value.into(),
        };
        Response {
            status: 418,
            headers: vec![
                header("content-type", "text/plain"),
                header("set-thing", "x"),
                header("X-RateLimit-Remaining", "0"),
                header("location", "https://a.example.test/?k=S3CRET-9f2"),
            ],
            body: Body::Text(body.into()),
            url: String::new(),
            elapsed: 1,
        }
    }

    #[test]
    fn an_answer_is_shown_without_secrets_and_short() {
        let redactor = Redactor::new(["S3CRET-9f2"]);
        let body = format!("token S3CRET-9f2 {}", "x".repeat(5_000));
        let shown = Excerpt::of(&response(&body)).shown("GET /".into(), &redactor);
        assert_eq!(shown.status, Some(418));
        let names: Vec<&str> = shown.headers.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["content-type", "x-ratelimit-remaining", "location"]);
        assert_eq!((shown.body.len(), shown.bytes), (BODY, body.len() as u64));
        let text = format!("{shown:?}");
        assert!(!text.contains("S3CRET"), "{text}");
        assert!(text.contains("[secret]"), "{text}");
    }

    #[test]
    fn a_secret_that_the_cut_goes_through_does_not_show() {
        let secret = "S".repeat(LOOKED_AT);
        let redactor = Redactor::new([secret.as_str()]);
        for before in [0, 1, BODY - 2, BODY] {
            let body = format!("{}{secret}", "x".repeat(before));
            let shown = Excerpt::of(&response(&body)).shown(String::new(), &redactor);
            assert!(!shown.body.contains("SS"), "{before}: {}", shown.body);
        }
    }

    #[test]
    fn a_request_line_has_its_query_and_no_secret() {
        let redactor = Redactor::new(["abcdef"]);
        let line = |url: &str| request_line("GET", &url.parse().unwrap(), &redactor);
        assert_eq!(
            line("https://me:pw@a.example.test/v1/orders?since=2031&page=2#x"),
            "GET https://a.example.test/v1/orders?since=2031&page=2"
        );
        assert_eq!(
            line("https://a.example.test/?api_key=zzz&since=2031"),
            "GET https://a.example.test/?api_key=[secret]&since=2031"
        );
        assert_eq!(
            line("https://a.example.test/abcdef/x"),
            "GET https://a.example.test/[secret]/x"
        );
    }

    #[test]
    fn nothing_moves_the_cursor() {
        let shown =
            Excerpt::of(&response("a\u{1b}[2Jb\r\nc")).shown(String::new(), &Redactor::default());
        assert_eq!(shown.body, "a\u{fffd}[2Jb\u{fffd}\nc");
    }
}
