//! The `Link` header (RFC 8288).

use crate::{Response, url};

/// One link of a header.
///
/// ```
/// let links = weir_sdk::link::parse(r#"</orders?page=2>; rel="next"; anchor="/orders""#);
/// assert_eq!((links[0].target.as_str(), links[0].anchor.as_deref()), ("/orders?page=2", Some("/orders")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it leads, as written: may be relative.
    pub target: String,
    /// What it means (`next`), in lower case; one link may mean several things.
    pub rels: Vec<String>,
    /// The page it speaks of, when that is not the answer itself.
    pub anchor: Option<String>,
}

/// The next page of an answer, as a whole URL; none when the vendor names none.
///
/// A link that speaks of another page (`anchor`) is not this page's next.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let answer = Response::new(200, "[]")
///     .with_url("https://api.example.test/orders")
///     .with_header("Link", r#"</orders?page=2>; rel="next""#);
/// assert_eq!(link::next(&answer).as_deref(), Some("https://api.example.test/orders?page=2"));
/// ```
pub fn next(response: &Response) -> Option<String> {
    related(response, "next")
}

/// Where the answer's link of this relation leads, as a whole URL.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let answer = Response::new(200, "[]")
///     .with_url("https://api.example.test/orders")
///     .with_header("Link", r#"</orders?page=9>; rel="last""#);
/// assert!(link::related(&answer, "last").is_some());
/// assert_eq!(link::related(&answer, "next"), None);
/// ```
pub fn related(response: &Response, rel: &str) -> Option<String> {
    response
        .header_lines("link")
        .flat_map(parse)
        .filter(|link| match &link.anchor {
            None => true,
            Some(anchor) => {
                url::resolve(&response.url, anchor).is_some_and(|page| page == response.url)
            }
        })
        .find(|link| {
            link.rels
                .iter()
                .any(|found| found.eq_ignore_ascii_case(rel))
        })
        .and_then(|link| url::resolve(&response.url, &link.target))
}

/// The links of one header line. What is malformed ends the reading; the links before it count.
///
/// ```
/// let links = weir_sdk::link::parse(r#"<a>; rel="next", <b>; rel="last""#);
/// assert_eq!(links[1].rels, ["last"]);
/// ```
pub fn parse(line: &str) -> Vec<Link> {
    let mut rest = line;
    let mut links = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some((target, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        else {
            return links;
        };
        let mut link = Link {
            target: target.trim().to_owned(),
            rels: Vec::new(),
            anchor: None,
        };
        rest = params(after, &mut link);
        links.push(link);
    }
}

/// Reads a link's parameters; returns what follows them.
fn params<'a>(text: &'a str, link: &mut Link) -> &'a str {
    let mut rest = text.trim_start();
    let mut related = false;
    while let Some(after) = rest.strip_prefix(';') {
        let after = after.trim_start();
        let end = after.find(['=', ';', ',']).unwrap_or(after.len());
        let (name, tail) = after.split_at_checked(end).unwrap_or((after, ""));
        let value;
        (value, rest) = match tail.strip_prefix('=') {
            Some(tail) => param_value(tail.trim_start()),
            None => (String::new(), tail),
        };
        match name.trim().to_ascii_lowercase().as_str() {
            // Only the first one counts.
            "rel" if !related => {
                related = true;
                link.rels = value
                    .split_ascii_whitespace()
                    .map(str::to_ascii_lowercase)
                    .collect();
            }
            "anchor" if link.anchor.is_none() => link.anchor = Some(value),
            _ => {}
        }
        rest = rest.trim_start();
    }
    rest
}

/// A parameter's value, quoted or not; and what follows it.
fn param_value(text: &str) -> (String, &str) {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([';', ',']).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        return (value.trim().to_owned(), rest);
    };
    let mut value = String::new();
    while let Some(at) = rest.find(['"', '\\']) {
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        value.push_str(plain);
        let mut chars = tail.chars();
        if chars.next() == Some('"') {
            return (value, chars.as_str());
        }
        value.extend(chars.next());
        rest = chars.as_str();
    }
    value.push_str(rest);
    (value, "")
}
