//! What a status means where the connector says nothing.
//!
//! The status alone never decides: connectors map what their vendor really means, from code and body. This map is
//! for the rest. Unmapped codes of the vendor are `unknown`, never `permanent`: a guess would lose records silently.

use crate::model::{Class, Scope};

/// What else an answer says, besides its status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// It speaks of a limit: a spent bucket in its headers, or words in its body ([`says_limit`]).
    pub limit: bool,
    /// It has a `Retry-After` (or a sibling) that can be read.
    pub retry_after: bool,
}

/// The class of an answer that is no good.
///
/// RFC 9110 section 15 and RFC 6585 where they speak; otherwise what the numbers are used for. A 2xx comes here when
/// its body could not be used.
pub fn default_class(status: u16, signals: Signals) -> Class {
    // 401 is about who asks, whatever else it says; a 404 that speaks of limits speaks of its own.
    let limited =
        signals.limit && matches!(status, 400 | 402 | 403 | 406 | 409 | 413 | 423 | 500..=599);
    match status {
        _ if limited => Class::RateLimited,
        202 => Class::Pending,
        200..=299 => Class::Incomplete,
        // A penalty: permission that comes back after a while is no permission fault.
        403 if signals.retry_after => Class::RateLimited,
        413 if signals.retry_after => Class::Temporary,
        401 => Class::AuthExpired,
        // Login time-out and invalid token, as some servers number them.
        440 | 498 => Class::AuthExpired,
        // A proxy's or a captive portal's word, not the vendor's: never a reason to sign in again.
        407 | 511 => Class::Temporary,
        400 | 402..=406 | 411..=418 | 422 | 426 | 428 | 431 | 450 | 451 | 494..=497 => {
            if status == 418 {
                Class::Unknown
            } else {
                Class::Permanent
            }
        }
        408 | 409 | 421 | 423..=425 | 444 | 449 | 460 | 477 | 499 => Class::Temporary,
        410 => Class::PositionLost,
        // 420 and 430 are older or private spellings of 429; 509 is a spent bandwidth.
        420 | 429 | 430 | 509 => Class::RateLimited,
        // 520 to 530 are the vendor's front talking about the vendor; 529 is "overloaded".
        500..=599 => Class::Temporary,
        _ => Class::Unknown,
    }
}

/// Whom a fault concerns where the connector says nothing.
pub fn default_scope(status: u16, class: Class) -> Scope {
    match class {
        Class::RateLimited => Scope::Credential,
        Class::AuthExpired | Class::AuthRevoked => Scope::Connection,
        // Nobody has paid.
        Class::Permanent if status == 402 => Scope::Connection,
        _ => Scope::Unit,
    }
}

/// Words by which vendors say "too much" in a body, in lower case.
const LIMIT_WORDS: [&str; 10] = [
    "rate limit",
    "rate-limit",
    "ratelimit",
    "rate_limit",
    "too many requests",
    "too many calls",
    "throttl",
    "quota exceeded",
    "quotaexceeded",
    "request limit",
];

/// How much of a body is read for such words, in bytes: they stand in its first lines.
const LIMIT_WORDS_WITHIN: usize = 4_096;

/// Whether the body of an error speaks of a limit. Only for answers that are errors: records may hold any words.
pub fn says_limit(body: &[u8]) -> bool {
    let head = body.get(..LIMIT_WORDS_WITHIN).unwrap_or(body);
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    LIMIT_WORDS.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Signals = Signals {
        limit: false,
        retry_after: false,
    };
    const LIMIT: Signals = Signals {
        limit: true,
        retry_after: false,
    };
    const AFTER: Signals = Signals {
        limit: false,
        retry_after: true,
    };

    #[test]
    fn statuses_and_what_they_are() {
        use Class::*;
        let table: [(Class, &[u16]); 8] = [
            (Pending, &[202]),
            (Incomplete, &[200, 201, 204, 206]),
            (
                Permanent,
                &[
                    400, 402, 403, 404, 405, 406, 411, 413, 414, 415, 422, 426, 428, 431, 451,
                ],
            ),
            (AuthExpired, &[401, 440, 498]),
            (
                Temporary,
                &[
                    407, 408, 409, 421, 423, 424, 425, 477, 500, 501, 502, 503, 504, 507, 511, 520,
                    521, 522, 523, 524, 525, 526, 527, 529, 530, 599,
                ],
            ),
            (PositionLost, &[410]),
            (RateLimited, &[420, 429, 430, 509]),
            (
                Unknown,
                &[0, 100, 301, 302, 304, 399, 418, 419, 452, 470, 600, 999],
            ),
        ];
        for (class, statuses) in table {
            for status in statuses {
                assert_eq!(default_class(*status, PLAIN), class, "{status}");
            }
        }
    }

    #[test]
    fn a_limit_may_come_as_any_refusal_but_not_as_401() {
        for status in [400, 403, 429, 500, 503] {
            assert_eq!(default_class(status, LIMIT), Class::RateLimited, "{status}");
        }
        assert_eq!(default_class(401, LIMIT), Class::AuthExpired);
        assert_eq!(default_class(404, LIMIT), Class::Permanent);
        assert_eq!(default_class(200, LIMIT), Class::Incomplete);
        assert_eq!(default_class(403, AFTER), Class::RateLimited);
        assert_eq!(default_class(413, AFTER), Class::Temporary);
    }

    #[test]
    fn case_017_a_limit_that_only_the_body_names() {
        let body = br#"{"message":"You have exceeded a secondary rate limit. Please wait."}"#;
        assert!(says_limit(body));
        assert!(says_limit(br#"{"error":"ThrottlingException"}"#));
        assert!(!says_limit(br#"{"message":"Resource not accessible"}"#));
        assert!(!says_limit(&[0xff; 10_000]));
    }

    #[test]
    fn case_131_no_outage_is_an_auth_fault() {
        for status in [200, 500, 502, 503, 504, 511, 520, 530] {
            let class = default_class(status, PLAIN);
            assert!(
                matches!(class, Class::Temporary | Class::Incomplete),
                "{status}"
            );
        }
    }

    #[test]
    fn a_limit_concerns_the_credential_and_a_missing_record_only_its_unit() {
        assert_eq!(default_scope(429, Class::RateLimited), Scope::Credential);
        assert_eq!(default_scope(401, Class::AuthExpired), Scope::Connection);
        assert_eq!(default_scope(402, Class::Permanent), Scope::Connection);
        assert_eq!(default_scope(404, Class::Permanent), Scope::Unit);
        assert_eq!(default_scope(503, Class::Temporary), Scope::Unit);
    }
}
