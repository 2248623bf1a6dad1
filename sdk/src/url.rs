//! URLs: parts of them, and where a reference leads.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What RFC 3986 calls unreserved stays as it is.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// One segment of a path, or one value of a query, percent-encoded: a slash in it stays part of it. `.` and `..` would mean
/// another path and are encoded too.
///
/// ```
/// use weir_sdk::url;
///
/// assert_eq!(url::segment("valves/9 mm"), "valves%2F9%20mm");
/// ```
pub fn segment(text: &str) -> String {
    match text {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => utf8_percent_encode(text, RESERVED).to_string(),
    }
}

/// The first value of a query parameter of a URL, decoded.
///
/// ```
/// use weir_sdk::url;
///
/// assert_eq!(url::param("https://a.test/?page=2&q=a%20b", "q").as_deref(), Some("a b"));
/// ```
pub fn param<'a>(url: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let (bare, _) = url.split_once('#').unwrap_or((url, ""));
    let (_, query) = bare.split_once('?')?;
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(key) == name).then(|| decode(value))
    })
}

fn decode(text: &str) -> Cow<'_, str> {
    if text.contains('+') {
        let spaced = text.replace('+', " ");
        return Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned());
    }
    percent_decode_str(text).decode_utf8_lossy()
}

/// Where a reference leads from a page with this URL (RFC 3986, section 5.2). None when the base is no URL.
///
/// ```
/// use weir_sdk::url;
///
/// assert_eq!(url::resolve("https://a.test/v1/orders?page=1", "?page=2").as_deref(), Some("https://a.test/v1/orders?page=2"));
/// ```
pub fn resolve(base: &str, reference: &str) -> Option<String> {
    let (scheme, rest) = base.split_once("://")?;
    if !is_scheme(scheme) {
        return None;
    }
    if reference
        .split_once(':')
        .is_some_and(|(head, _)| is_scheme(head))
    {
        return Some(reference.to_owned());
    }
    if reference.starts_with("//") {
        return Some(format!("{scheme}:{reference}"));
    }
    let (rest, _) = rest.split_once('#').unwrap_or((rest, ""));
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at_checked(authority_end)?;
    let (path, query) = match tail.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (tail, None),
    };
    let (wanted, after) = match reference.find(['?', '#']) {
        Some(at) => reference.split_at_checked(at)?,
        None => (reference, ""),
    };
    let path = if wanted.is_empty() {
        path.to_owned()
    } else if wanted.starts_with('/') {
        without_dots(wanted)
    } else {
        let folder = path
            .rfind('/')
            .and_then(|at| path.get(..=at))
            .unwrap_or("/");
        without_dots(&format!("{folder}{wanted}"))
    };
    let query = match query {
        Some(query) if wanted.is_empty() && !after.starts_with('?') => format!("?{query}"),
        _ => String::new(),
    };
    Some(format!("{scheme}://{authority}{path}{query}{after}"))
}

fn is_scheme(text: &str) -> bool {
    text.bytes()
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut folder = false;
    for part in path.split('/').skip(1) {
        folder = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => {
                kept.pop();
            }
            _ => kept.push(part),
        }
    }
    if folder {
        kept.push("");
    }
    format!("/{}", kept.join("/"))
}
