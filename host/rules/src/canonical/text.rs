//! What a JSON string says, however it is escaped.
//!
//! An escape that names half of a surrogate pair says U+FFFD: many vendors cut text in the middle of an emoji,
//! and one such field must not stop a stream.

use std::borrow::Cow;

/// The characters of a string, from what stands between its quotes. The escapes must be valid.
pub(crate) fn characters(inner: &str) -> Characters<'_> {
    Characters { rest: inner }
}

/// Iterator of [`characters`].
pub(crate) struct Characters<'a> {
    rest: &'a str,
}

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let first = chars.next()?;
        if first != '\\' {
            self.rest = chars.as_str();
            return Some(first);
        }
        let named = chars.next()?;
        self.rest = chars.as_str();
        Some(match named {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (character, length) = unicode(self.rest);
                self.rest = self.rest.get(length..).unwrap_or_default();
                character
            }
            itself => itself,
        })
    }
}

/// The character that the digits after `\u` name, and how many bytes they and the other half of their pair
/// take.
fn unicode(digits: &str) -> (char, usize) {
    let Some(unit) = hex(digits) else {
        return (char::REPLACEMENT_CHARACTER, digits.len().min(4));
    };
    if let Some(low) = high_half(unit).then(|| low_half_after(digits)).flatten() {
        let code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        return (
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
            10,
        );
    }
    (
        char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
        4,
    )
}

fn hex(digits: &str) -> Option<u32> {
    let digits = digits.get(..4)?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

fn high_half(unit: u32) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn low_half(unit: u32) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

/// The low half that follows the four digits of a high one.
fn low_half_after(digits: &str) -> Option<u32> {
    let unit = hex(digits.get(4..)?.strip_prefix("\\u")?)?;
    low_half(unit).then_some(unit)
}

/// Whether a string, from between its quotes, says exactly `plain`.
pub(crate) fn equals(inner: &str, plain: &str) -> bool {
    if inner.as_bytes().contains(&b'\\') {
        characters(inner).eq(plain.chars())
    } else {
        inner == plain
    }
}

/// Appends a string that holds escapes, with quotes, in its one canonical spelling: only the quote, the
/// backslash and control characters are escaped, the latter as `\u00xx` in lower case.
pub(crate) fn write_canonical(inner: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for character in characters(inner) {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            control if control < ' ' => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let code = control as usize;
                out.extend_from_slice(b"\\u00");
                out.push(b'0' + u8::from(code >= 16));
                out.push(DIGITS.get(code & 15).copied().unwrap_or(b'0'));
            }
            plain => {
                let mut buffer = [0; 4];
                out.extend_from_slice(plain.encode_utf8(&mut buffer).as_bytes());
            }
        }
    }
    out.push(b'"');
}

/// The text with every escape of half a surrogate pair written as `\ufffd`, so that a strict parser can read
/// it. Everything else stays byte for byte, and so does the length. Borrowed when there is nothing to repair.
pub fn repair_surrogates(text: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        let after = text.get(escape + 1..).unwrap_or_default();
        let Some(digits) = after.strip_prefix('u') else {
            // Passes the escaped character too: in `\\ud83d` it is a backslash, and nothing is named.
            at = escape + 1 + after.chars().next().map_or(0, char::len_utf8);
            continue;
        };
        match hex(digits) {
            Some(unit) if high_half(unit) && low_half_after(digits).is_some() => at = escape + 12,
            Some(unit) if high_half(unit) || low_half(unit) => {
                repaired.push_str(text.get(kept..escape).unwrap_or_default());
                repaired.push_str("\\ufffd");
                at = escape + 6;
                kept = at;
            }
            Some(_) => at = escape + 6,
            None => at = escape + 2,
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    repaired.push_str(text.get(kept..).unwrap_or_default());
    Cow::Owned(repaired)
}
