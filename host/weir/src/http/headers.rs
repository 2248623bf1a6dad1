//! Which headers a connector may set: pure.
//!
//! The host owns what frames a request (length, host, connection), what proves who we are (authorization, cookies),
//! what encodes the answer and what makes it conditional. Those are left out, and named, so that an author finds out;
//! a name or a value that could split a header is refused.

/// A header that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The name is not a token (RFC 9110 section 5.1).
    #[error("the connector set a header with the name {0:?}, which is not one")]
    Name(String),
    /// The value holds a line break or another control character.
    #[error("the connector set header {0} to a value with a control character")]
    Value(String),
}

/// What may be sent, and the names of what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Names that a connector may not set.
    pub left_out: Vec<String>,
}

/// The host's own headers; `proxy-*` besides.
const HOSTS_OWN: [&str; 17] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "cookie2",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Checks the headers that a connector asked for.
pub fn admit(asked: &[(String, String)]) -> Result<Admitted, HeaderError> {
    let mut admitted = Admitted::default();
    for (name, value) in asked {
        if !is_token(name) {
            return Err(HeaderError::Name(name.chars().take(40).collect()));
        }
        let name = name.to_ascii_lowercase();
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return Err(HeaderError::Value(name));
        }
        if HOSTS_OWN.contains(&name.as_str()) || name.starts_with("proxy-") {
            admitted.left_out.push(name);
        } else {
            admitted
                .headers
                .push((name, value.trim_matches([' ', '\t']).to_owned()));
        }
    }
    Ok(admitted)
}

/// A token of RFC 9110 section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ask(name: &str, value: &str) -> Result<Admitted, HeaderError> {
        admit(&[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn ordinary_headers_pass_in_lower_case() {
        let admitted = ask("Accept", " application/json ").unwrap();
        assert_eq!(
            admitted.headers,
            [("accept".to_owned(), "application/json".to_owned())]
        );
    }

    #[test]
    fn the_hosts_own_headers_are_left_out_and_named() {
        for name in [
            "Host",
            "CONTENT-LENGTH",
            "Authorization",
            "Cookie",
            "Transfer-Encoding",
            "Proxy-Authorization",
            "If-None-Match",
        ] {
            let admitted = ask(name, "x").unwrap();
            assert!(admitted.headers.is_empty());
            assert_eq!(admitted.left_out, [name.to_ascii_lowercase()]);
        }
    }

    #[test]
    fn a_header_that_would_split_is_refused() {
        for (name, value) in [
            ("x-a", "1\r\nx-b: 2"),
            ("x-a", "1\n"),
            ("x-a", "1\0"),
            ("x-a\r\n", "1"),
            ("x a", "1"),
            ("x:a", "1"),
            ("", "1"),
            ("é", "1"),
        ] {
            assert!(ask(name, value).is_err(), "{name:?} {value:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_passes_can_split(name in ".{0,8}", value in ".{0,16}") {
            if let Ok(admitted) = ask(&name, &value) {
                for (name, value) in admitted.headers {
                    prop_assert!(is_token(&name));
                    prop_assert!(!value.contains(['\r', '\n', '\0']));
                }
            }
        }
    }
}
