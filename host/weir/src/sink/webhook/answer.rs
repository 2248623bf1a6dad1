//! What a receiver's answer means: pure.
//!
//! | answer | meaning |
//! | --- | --- |
//! | 2xx | taken |
//! | 408, 425, 429, 5xx, an answer with an informational status | not now: when `Retry-After` says, else with backoff |
//! | 403, 409, 423 with a `Retry-After` | the same |
//! | 401 | the credential is wrong: a person is needed |
//! | 3xx, 403, 404, 405, 407, 410 | refused, and perhaps because the address or the credential is wrong |
//! | any other 4xx | refused |

use weir_rules::http_date::Anchor;
use weir_rules::model::Duration;
use weir_rules::retry_after::{self, RetryAfter};

use crate::http::HttpResponse;

/// What the receiver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It has them.
    Taken,
    /// Not now; it may have said for how many ms not.
    NotNow(Option<Duration>),
    /// Not this. `door`: or nothing at all, at this address and with this credential.
    Refused { door: bool },
    /// Not with this credential.
    Person,
}

/// Reads an answer that arrived at that moment.
pub(super) fn read(response: &HttpResponse, received: i64) -> Meaning {
    let anchor = Anchor::of(&response.headers, received);
    let told = match retry_after::read(&response.headers, &anchor) {
        Some(RetryAfter::Wait(ms)) => Some(ms),
        // A moment that is over, or a word that says nothing: ordinary backoff, never a hot loop.
        _ => None,
    };
    match response.status {
        200..=299 => Meaning::Taken,
        408 | 425 | 429 | 500..=599 => Meaning::NotNow(told),
        403 | 409 | 423 if told.is_some() => Meaning::NotNow(told),
        401 => Meaning::Person,
        300..=399 | 403 | 404 | 405 | 407 | 410 => Meaning::Refused { door: true },
        400..=499 => Meaning::Refused { door: false },
        _ => Meaning::NotNow(told),
    }
}

/// How much of a body is worth showing.
const EXCERPT: usize = 200;

/// The answer for a person: the status and the beginning of the body, on one line. Secrets are still in it.
pub(super) fn word(response: &HttpResponse) -> String {
    let status = response.status;
    if (300..400).contains(&status) {
        return format!(
            "HTTP {status}, a redirect, which is not followed: write the final address into `url`"
        );
    }
    let body = String::from_utf8_lossy(&response.body);
    let words: Vec<&str> = body
        .split(|c: char| c.is_whitespace() || c.is_control())
        .collect();
    let line = words
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let short: String = line.chars().take(EXCERPT).collect();
    let cut = if short.len() < line.len() { "..." } else { "" };
    match short.is_empty() {
        true => format!("HTTP {status}"),
        false => format!("HTTP {status}: {short}{cut}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2031-03-04T10:00:00Z
    const NOW: i64 = 1_930_384_800_000;

    fn answer(status: u16, headers: &[(&str, &str)]) -> HttpResponse {
        HttpResponse {
            status,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            body: bytes::Bytes::from_static(b"{\n  \"error\": \"no \x07 such field\"\n}"),
            elapsed: std::time::Duration::ZERO,
        }
    }

    #[test]
    fn each_status_means_what_the_table_says() {
        let of = |status| read(&answer(status, &[]), NOW);
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(of(status), Meaning::Taken, "{status}");
        }
        for status in [100, 408, 425, 429, 500, 501, 502, 503, 504, 529, 599, 999] {
            assert_eq!(of(status), Meaning::NotNow(None), "{status}");
        }
        assert_eq!(of(401), Meaning::Person);
        for status in [301, 302, 303, 307, 308, 403, 404, 405, 407, 410] {
            assert_eq!(of(status), Meaning::Refused { door: true }, "{status}");
        }
        for status in [400, 402, 406, 409, 411, 412, 413, 415, 422, 451, 499] {
            assert_eq!(of(status), Meaning::Refused { door: false }, "{status}");
        }
    }

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        for (value, ms) in [
            ("90", Some(90_000)),
            ("1.5", Some(2_000)),
            ("Tue, 04 Mar 2031 10:01:30 GMT", Some(90_000)),
            ("Tuesday, 04-Mar-31 10:01:30 GMT", Some(90_000)),
            ("Tue Mar  4 10:01:30 2031", Some(90_000)),
            ("0", None),
            ("-5", None),
            ("soon", None),
            ("Tue, 04 Mar 2031 09:59:00 GMT", None),
        ] {
            for status in [429, 503, 403] {
                let headers = [
                    ("date", "Tue, 04 Mar 2031 10:00:00 GMT"),
                    ("retry-after", value),
                ];
                // By its own clock, whatever ours says.
                let meaning = read(&answer(status, &headers), NOW - 40_000);
                let expected = match (status, ms) {
                    (403, None) => Meaning::Refused { door: true },
                    _ => Meaning::NotNow(ms),
                };
                assert_eq!(meaning, expected, "{status} {value}");
            }
        }
        let meaning = read(&answer(400, &[("retry-after", "90")]), NOW);
        assert_eq!(meaning, Meaning::Refused { door: false });
    }

    #[test]
    fn the_word_is_one_short_line() {
        let mut response = answer(400, &[]);
        assert_eq!(
            word(&response),
            "HTTP 400: { \"error\": \"no such field\" }"
        );
        response.body = "é".repeat(500).into();
        assert_eq!(word(&response), format!("HTTP 400: {}...", "é".repeat(200)));
        response.body = bytes::Bytes::new();
        assert_eq!(word(&response), "HTTP 400");
        response.status = 307;
        assert!(word(&response).contains("write the final address"));
    }
}
