//! Saying what went wrong, by what will fix it; and what a status means when the connector knows nothing better.

use crate::{Class, Fault, Response, Scope, json};

impl Fault {
    /// A fault of this unit alone.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::new(Class::Temporary, "the shop is being moved");
    /// assert_eq!(fault.scope, Scope::Unit);
    /// ```
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Fault {
            class,
            scope: Scope::Unit,
            code: String::new(),
            message: message.into(),
            wait: None,
            page_size: None,
            limits: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// It passes by itself.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::temporary("the replica lags");
    /// assert_eq!((fault.class, fault.scope), (Class::Temporary, Scope::Unit));
    /// ```
    pub fn temporary(message: impl Into<String>) -> Self {
        Fault::new(Class::Temporary, message)
    }

    /// The connector has no stream of this name: what `build_request` says of a name that it does not know.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// fn path(stream: &str) -> Result<&'static str, Fault> {
    ///     match stream {
    ///         "orders" => Ok("/orders"),
    ///         other => Err(Fault::no_stream(other)),
    ///     }
    /// }
    /// assert_eq!(path("odrers").unwrap_err().class, Class::Permanent);
    /// ```
    pub fn no_stream(stream: &str) -> Self {
        Fault::permanent(format!("there is no stream {stream:?}")).code("stream")
    }

    /// The vendor wants a pause from everyone who uses this credential.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::rate_limited("too many calls");
    /// assert_eq!((fault.class, fault.scope), (Class::RateLimited, Scope::Credential));
    /// ```
    pub fn rate_limited(message: impl Into<String>) -> Self {
        Fault::new(Class::RateLimited, message).scope(Scope::Credential)
    }

    /// A fresh token may fix it.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::auth_expired("the token has run out");
    /// assert_eq!((fault.class, fault.scope), (Class::AuthExpired, Scope::Connection));
    /// ```
    pub fn auth_expired(message: impl Into<String>) -> Self {
        Fault::new(Class::AuthExpired, message).scope(Scope::Connection)
    }

    /// Only a person can fix it, by signing in again.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::auth_revoked("the app was removed");
    /// assert_eq!((fault.class, fault.scope), (Class::AuthRevoked, Scope::Connection));
    /// ```
    pub fn auth_revoked(message: impl Into<String>) -> Self {
        Fault::new(Class::AuthRevoked, message).scope(Scope::Connection)
    }

    /// This request will never work.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::permanent("there is no such shop");
    /// assert_eq!((fault.class, fault.scope), (Class::Permanent, Scope::Unit));
    /// ```
    pub fn permanent(message: impl Into<String>) -> Self {
        Fault::new(Class::Permanent, message)
    }

    /// The vendor no longer knows the cursor or the page token.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::position_lost("the cursor is too old");
    /// assert_eq!((fault.class, fault.scope), (Class::PositionLost, Scope::Unit));
    /// ```
    pub fn position_lost(message: impl Into<String>) -> Self {
        Fault::new(Class::PositionLost, message)
    }

    /// The vendor is still preparing the answer.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::pending("the report is being made");
    /// assert_eq!((fault.class, fault.scope), (Class::Pending, Scope::Unit));
    /// ```
    pub fn pending(message: impl Into<String>) -> Self {
        Fault::new(Class::Pending, message)
    }

    /// A success whose body is cut, contradicts itself or has the wrong shape.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::incomplete("3 of 5 items");
    /// assert_eq!((fault.class, fault.scope), (Class::Incomplete, Scope::Unit));
    /// ```
    pub fn incomplete(message: impl Into<String>) -> Self {
        Fault::new(Class::Incomplete, message)
    }

    /// Nobody has mapped this.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::unknown("code 4711");
    /// assert_eq!((fault.class, fault.scope), (Class::Unknown, Scope::Unit));
    /// ```
    pub fn unknown(message: impl Into<String>) -> Self {
        Fault::new(Class::Unknown, message)
    }

    /// The vendor's own code.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert_eq!(Fault::permanent("no access").code(403).code, "403");
    /// ```
    pub fn code(mut self, code: impl ToString) -> Self {
        self.code = code.to_string();
        self
    }

    /// Whom it concerns.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let fault = Fault::temporary("maintenance").scope(Scope::Connection);
    /// assert_eq!(fault.scope, Scope::Connection);
    /// ```
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// The vendor's own word on when to come back, in ms. `Retry-After` is read by the host: only what the body or a
    /// header of the vendor's own says belongs here.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert_eq!(Fault::rate_limited("slow down").wait(12_000).wait, Some(12_000));
    /// ```
    pub fn wait(mut self, ms: u64) -> Self {
        self.wait = Some(ms);
        self
    }

    /// Ask again with pages of this size.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// assert_eq!(Fault::temporary("too much data").page_size(25).page_size, Some(25));
    /// ```
    pub fn page_size(mut self, size: u32) -> Self {
        self.page_size = Some(size);
        self
    }
}

/// What a status means by default. A connector maps what it knows better and leaves the rest to this.
///
/// ```
/// # use weir_sdk::{fault, prelude::*};
/// let fault = fault::from_status(&Response::new(503, "down for maintenance"));
/// assert_eq!((fault.class, fault.code.as_str()), (Class::Temporary, "503"));
/// ```
pub fn from_status(response: &Response) -> Fault {
    let status = response.status;
    let fault = |class| Fault::new(class, message(response)).code(status);
    match status {
        202 => fault(Class::Pending),
        401 => fault(Class::AuthExpired).scope(Scope::Connection),
        403 if limit_signal(response) => fault(Class::RateLimited).scope(Scope::Credential),
        420 | 429 | 430 => fault(Class::RateLimited).scope(Scope::Credential),
        410 => fault(Class::PositionLost),
        // Request timeout, conflict, locked, too early, and the codes of the big proxies.
        408 | 409 | 423 | 425 | 477 | 509 => fault(Class::Temporary),
        // A captive portal answers 511: the network speaks, not the vendor.
        501 | 505 | 506 | 508 | 510 => fault(Class::Permanent),
        500..=599 => fault(Class::Temporary),
        // RFC 9110, section 15.5.14: too large for now, if it says until when.
        413 if response.header("retry-after").is_some() => fault(Class::Temporary),
        400 | 402..=407 | 411..=418 | 421 | 422 | 424 | 426 | 428 | 431 | 451 => {
            fault(Class::Permanent)
        }
        // Nobody asked whether it had changed: a cache in between answers for somebody else.
        304 => fault(Class::Temporary),
        // A redirect that the host did not follow: it says why in its own words.
        300..=399 => fault(Class::Permanent),
        _ => fault(Class::Unknown),
    }
}

/// Does this answer (a 403, usually) say that a limit was hit, and not that permission is missing?
///
/// ```
/// # use weir_sdk::{fault, prelude::*};
/// let limited = Response::new(403, r#"{"message":"API rate limit exceeded"}"#);
/// assert!(fault::limit_signal(&limited));
/// assert!(!fault::limit_signal(&Response::new(403, "no permission")));
/// ```
pub fn limit_signal(response: &Response) -> bool {
    let spent = [
        "x-ratelimit-remaining",
        "x-rate-limit-remaining",
        "ratelimit-remaining",
    ]
    .iter()
    .filter_map(|name| response.header(name))
    .any(|remaining| remaining.parse::<f64>().is_ok_and(|left| left <= 0.0));
    spent
        || response
            .header("retry-after")
            .is_some_and(|wait| !wait.is_empty())
        || {
            let text = response.lossy_text();
            let start: String = text
                .chars()
                .take(2000)
                .collect::<String>()
                .to_ascii_lowercase();
            [
                "rate limit",
                "ratelimit",
                "rate_limit",
                "too many requests",
                "quota exceeded",
                "abuse detection",
                "throttl",
            ]
            .iter()
            .any(|sign| start.contains(sign))
        }
}

/// The vendor's own words if it has any, else the start of the body.
///
/// ```
/// # use weir_sdk::{fault, prelude::*};
/// let refused = Response::new(400, r#"{"error":{"message":"bad filter"}}"#);
/// assert_eq!(fault::message(&refused), "HTTP 400: bad filter");
/// ```
pub fn message(response: &Response) -> String {
    let text = response.lossy_text();
    let said = [
        "/message",
        "/error/message",
        "/detail",
        "/title",
        "/error_description",
        "/error",
        "/errors/0/message",
    ]
    .iter()
    .filter_map(|pointer| json::at(&text, pointer).ok().flatten())
    .find_map(|value| value.string().map(|said| excerpt(&said)))
    .filter(|said| !said.is_empty());
    let said = said.unwrap_or_else(|| excerpt(&text));
    if said.is_empty() {
        format!("HTTP {}", response.status)
    } else {
        format!("HTTP {}: {said}", response.status)
    }
}

/// The first words of a foreign text, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARS: usize = 160;
    let mut out = String::new();
    let head: String = text.chars().take(CHARS * 2).collect();
    for word in head.split(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}') {
        if word.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    match out.char_indices().nth(CHARS) {
        Some((cut, _)) => {
            out.truncate(cut);
            out.push('…');
            out
        }
        None => out,
    }
}
