//! JSON pointers (RFC 6901): their grammar, and the value that one points at in a text.
//!
//! A pointer is empty (the whole document) or a row of `/token`s in which `~1` stands for `/` and `~0` for
//! `~`. In an object a token is a key, compared by value; in an array it is an index without leading zeros.

use crate::canonical::scan::Scanner;
use crate::canonical::text;

/// A pointer that is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// Neither empty nor starting with a slash.
    #[error("the JSON pointer `{0}` must start with `/`, as in `/user/name`")]
    NoSlash(String),
    /// A tilde that is followed by neither 0 nor 1.
    #[error("in the JSON pointer `{0}`, write `~0` for a tilde and `~1` for a slash")]
    Tilde(String),
    /// The whole record declared volatile.
    #[error(
        "an empty JSON pointer would leave the whole record out; name the fields that are volatile"
    )]
    WholeRecord,
}

/// The unescaped tokens of a pointer.
///
/// # Errors
/// [`PointerError`] names the pointer and what it lacks.
pub fn tokens(pointer: &str) -> Result<Vec<String>, PointerError> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(path) = pointer.strip_prefix('/') else {
        return Err(PointerError::NoSlash(pointer.to_owned()));
    };
    path.split('/')
        .map(|token| unescape(token).ok_or_else(|| PointerError::Tilde(pointer.to_owned())))
        .collect()
}

/// `~1` to `/` and `~0` to `~`; none for a tilde that starts neither.
fn unescape(token: &str) -> Option<String> {
    let mut plain = String::with_capacity(token.len());
    let mut rest = token;
    while let Some((before, after)) = rest.split_once('~') {
        plain.push_str(before);
        if let Some(next) = after.strip_prefix('0') {
            plain.push('~');
            rest = next;
        } else {
            plain.push('/');
            rest = after.strip_prefix('1')?;
        }
    }
    plain.push_str(rest);
    Some(plain)
}

/// The array index that a token stands for: decimal, no sign, no leading zero.
pub(crate) fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with('0');
    let digits = !token.is_empty() && token.bytes().all(|b| b.is_ascii_digit());
    if plain && digits {
        token.parse().ok()
    } else {
        None
    }
}

/// The text of the value at `pointer`, exactly as it is written in `text`: strings with their quotes.
///
/// None when the pointer or the text is broken, or nothing is there. Of a repeated key the last one counts.
pub fn pointer_value<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
    let mut value = whole(text)?;
    for token in tokens(pointer).ok()? {
        value = child(value, &token)?;
    }
    Some(value)
}

/// The document without white space around it; none if anything follows it.
fn whole(text: &str) -> Option<&str> {
    let mut scanner = Scanner::new(text);
    scanner.skip_mark();
    scanner.skip_blank();
    let start = scanner.at();
    scanner.skip_value(0).ok()?;
    let end = scanner.at();
    scanner.end().ok()?;
    text.get(start..end)
}

/// The value under one key or index of a container.
fn child<'a>(container: &'a str, token: &str) -> Option<&'a str> {
    let mut scanner = Scanner::new(container);
    let mut found = None;
    match scanner.peek()? {
        b'{' => {
            scanner.advance();
            while scanner.next_member().ok()? {
                let key = scanner.string().ok()?;
                scanner.colon().ok()?;
                let start = scanner.at();
                scanner.skip_value(0).ok()?;
                if text::equals(key.inner, token) {
                    found = container.get(start..scanner.at());
                }
            }
        }
        b'[' => {
            let wanted = index(token)?;
            scanner.advance();
            let mut position = 0;
            while scanner.next_element().ok()? {
                let start = scanner.at();
                scanner.skip_value(0).ok()?;
                if position == wanted {
                    return container.get(start..scanner.at());
                }
                position += 1;
            }
        }
        _ => {}
    }
    found
}
