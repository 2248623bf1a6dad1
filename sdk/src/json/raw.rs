//! One JSON value as it stands in the vendor's text.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Error, at};
use crate::Timestamp;
use crate::time;

/// A slice of an answer that holds one JSON value, byte for byte.
///
/// ```
/// # use weir_sdk::prelude::*;
/// let raw = json::at(r#"{"a":1.10}"#, "/a")?.unwrap();
/// assert_eq!(raw.json(), "1.10");
/// # Ok::<(), json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(pub(crate) &'a str);

impl<'a> Raw<'a> {
    /// The JSON text.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":12345678901234567890123}"#, "/a")?.unwrap();
    /// assert_eq!(raw.json(), "12345678901234567890123");
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn json(self) -> &'a str {
        self.0
    }

    /// The name of its type, for messages.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":[]}"#, "/a")?.unwrap();
    /// assert_eq!(raw.kind(), "an array");
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn kind(self) -> &'static str {
        match self.0.bytes().next() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') if self.0 == "\"\"" => "an empty string",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            Some(_) => "a number",
            None => "nothing",
        }
    }

    /// Is it `null`?
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":null}"#, "/a")?.unwrap();
    /// assert!(raw.is_null());
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// A string's text. A surrogate without its partner becomes U+FFFD: one cut emoji must not stop a stream.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":"caf\u00e9"}"#, "/a")?.unwrap();
    /// assert_eq!(raw.string().as_deref(), Some("café"));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn string(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            unescape(inner).map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// A string's text, or a number's digits exactly as they were sent (beyond 2^53 too). Not empty.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":12345678901234567890123}"#, "/a")?.unwrap();
    /// assert_eq!(raw.id().as_deref(), Some("12345678901234567890123"));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn id(self) -> Option<String> {
        let text = match self.string() {
            Some(text) => text.into_owned(),
            None if self.kind() == "a number" => self.0.to_owned(),
            None => return None,
        };
        if text.is_empty() { None } else { Some(text) }
    }

    /// A whole number, also one in a string.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":"-7"}"#, "/a")?.unwrap();
    /// assert_eq!(raw.i64(), Some(-7));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn i64(self) -> Option<i64> {
        self.plain().parse().ok()
    }

    /// A whole number that is not negative, also one in a string.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":7}"#, "/a")?.unwrap();
    /// assert_eq!(raw.u64(), Some(7));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn u64(self) -> Option<u64> {
        self.plain().parse().ok()
    }

    /// `true` or `false`.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":true}"#, "/a")?.unwrap();
    /// assert_eq!(raw.bool(), Some(true));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// A moment in this format, from a string or a number; none when it cannot be read (`0000-00-00` arrives in real life,
    /// and one such row must not fail its page).
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":1930384800}"#, "/a")?.unwrap();
    /// assert_eq!(raw.time(time::Format::EpochSeconds), Some(1_930_384_800_000));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn time(self, format: time::Format) -> Option<Timestamp> {
        match self.string() {
            Some(text) => format.parse(&text),
            None => format.parse(self.0),
        }
    }

    /// What lies below it at a pointer.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":{"b":7}}"#, "/a")?.unwrap();
    /// assert_eq!(raw.at("/b")?.and_then(Raw::u64), Some(7));
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn at(self, pointer: &str) -> Result<Option<Raw<'a>>, Error> {
        at(self.0, pointer)
    }

    /// Parsed by serde.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// let raw = json::at(r#"{"a":[1,2]}"#, "/a")?.unwrap();
    /// assert_eq!(raw.parse::<Vec<u8>>()?, [1, 2]);
    /// # Ok::<(), json::Error>(())
    /// ```
    pub fn parse<T: Deserialize<'a>>(self) -> Result<T, Error> {
        super::parse(self.0)
    }

    fn plain(self) -> &'a str {
        self.0
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
            .unwrap_or(self.0)
    }
}

/// The text of a JSON string's inside; none when an escape is broken.
pub(super) fn unescape(inner: &str) -> Option<String> {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((plain, escape)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut chars = escape.chars();
        let kind = chars.next()?;
        rest = chars.as_str();
        match kind {
            '"' | '\\' | '/' => out.push(kind),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let (unit, after) = hex4(rest)?;
                rest = after;
                out.push(match unit {
                    0xd800..=0xdbff => match low_half(rest) {
                        Some((low, after)) => {
                            rest = after;
                            let scalar = 0x10000
                                + ((u32::from(unit) - 0xd800) << 10)
                                + (u32::from(low) - 0xdc00);
                            char::from_u32(scalar)?
                        }
                        None => char::REPLACEMENT_CHARACTER,
                    },
                    0xdc00..=0xdfff => char::REPLACEMENT_CHARACTER,
                    _ => char::from_u32(u32::from(unit))?,
                });
            }
            _ => return None,
        }
    }
    out.push_str(rest);
    Some(out)
}

fn low_half(text: &str) -> Option<(u16, &str)> {
    let (unit, rest) = hex4(text.strip_prefix("\\u")?)?;
    (0xdc00..=0xdfff).contains(&unit).then_some((unit, rest))
}

fn hex4(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some((u16::from_str_radix(digits, 16).ok()?, rest))
}
