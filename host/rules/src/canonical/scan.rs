//! Finds the parts of a JSON text (RFC 8259) without building anything from them.
//!
//! Strict about grammar, with two graces: a byte order mark may precede the text, and an escape may name half
//! of a surrogate pair. Never recurses deeper than [`MAX_DEPTH`].

use super::CanonicalError;

/// How deeply arrays and objects may nest. What real records need stays under 20; a hostile one must not
/// reach the end of the stack.
pub const MAX_DEPTH: u32 = 128;

/// Every byte 0x01.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The top bit of every byte.
const TOPS: u64 = 0x8080_8080_8080_8080;

/// A string as it stands in the text.
#[derive(Clone, Copy)]
pub(crate) struct Quoted<'a> {
    /// With its quotes.
    pub(crate) whole: &'a str,
    /// Without them, escapes untouched.
    pub(crate) inner: &'a str,
    /// It holds at least one backslash.
    pub(crate) escaped: bool,
}

/// A position in a text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Just after an opening bracket: what comes next needs no comma.
    opened: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            opened: false,
        }
    }

    /// The offset of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes an opening bracket.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.at += 1;
        self.opened = true;
    }

    /// A byte order mark is not part of the text (RFC 8259, section 8.1).
    pub(crate) fn skip_mark(&mut self) {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
    }

    #[inline]
    pub(crate) fn skip_blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Nothing but white space may be left.
    pub(crate) fn end(&mut self) -> Result<(), CanonicalError> {
        self.skip_blank();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the text")),
        }
    }

    pub(crate) fn unexpected(&self, wanted: &'static str) -> CanonicalError {
        CanonicalError::Syntax {
            offset: self.at,
            wanted,
        }
    }

    /// The depth below a container that stands at `depth`.
    #[inline]
    pub(crate) fn deeper(&self, depth: u32) -> Result<u32, CanonicalError> {
        if depth < MAX_DEPTH {
            Ok(depth + 1)
        } else {
            Err(CanonicalError::TooDeep { offset: self.at })
        }
    }

    /// Goes to the next key of an object; false past its closing brace.
    #[inline]
    pub(crate) fn next_member(&mut self) -> Result<bool, CanonicalError> {
        self.next(b'}', "a comma or `}`")
    }

    /// Goes to the next element of an array; false past its closing bracket.
    #[inline]
    pub(crate) fn next_element(&mut self) -> Result<bool, CanonicalError> {
        self.next(b']', "a comma or `]`")
    }

    #[inline]
    fn next(&mut self, close: u8, wanted: &'static str) -> Result<bool, CanonicalError> {
        self.skip_blank();
        let opened = std::mem::replace(&mut self.opened, false);
        match self.peek() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            Some(_) if opened => Ok(true),
            Some(b',') => {
                self.at += 1;
                self.skip_blank();
                Ok(true)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// Passes the colon after a key, and goes to the value.
    #[inline]
    pub(crate) fn colon(&mut self) -> Result<(), CanonicalError> {
        self.skip_blank();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("a colon"));
        }
        self.at += 1;
        self.skip_blank();
        Ok(())
    }

    /// Reads a string.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Quoted<'a>, CanonicalError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a string"));
        }
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        let mut at = start + 1;
        loop {
            at = plain_until(bytes, at);
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at = at;
                    at = self.escape()?;
                }
                Some(_) => {
                    self.at = at;
                    return Err(self.unexpected("an escape instead of a control character"));
                }
                None => {
                    self.at = bytes.len();
                    return Err(self.unexpected("a closing quote"));
                }
            }
        }
        self.at = at + 1;
        // Both ends lie beside an ASCII quote, so the spans are whole characters.
        Ok(Quoted {
            whole: self.text.get(start..=at).unwrap_or_default(),
            inner: self.text.get(start + 1..at).unwrap_or_default(),
            escaped,
        })
    }

    /// Checks the escape at the current offset, and returns the offset after it.
    fn escape(&self) -> Result<usize, CanonicalError> {
        let bytes = self.text.as_bytes();
        let length = match bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => {
                let digits = bytes.get(self.at + 2..self.at + 6);
                match digits {
                    Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => 6,
                    _ => return Err(self.unexpected("four hexadecimal digits after `\\u`")),
                }
            }
            _ => return Err(self.unexpected("a known escape")),
        };
        Ok(self.at + length)
    }

    /// Reads a number, a word (`true`, `false`, `null`), or fails.
    #[inline]
    pub(crate) fn scalar(&mut self) -> Result<&'a str, CanonicalError> {
        let start = self.at;
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            _ => return Err(self.unexpected("a value")),
        }
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    #[inline]
    fn word(&mut self, word: &'static str) -> Result<(), CanonicalError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(self.unexpected(word));
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<(), CanonicalError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            // A leading zero stands alone.
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    #[inline]
    fn digits(&mut self) -> Result<(), CanonicalError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.unexpected("a digit"));
        }
        Ok(())
    }

    /// Passes one value of any kind, which stands at `depth`.
    pub(crate) fn skip_value(&mut self, depth: u32) -> Result<(), CanonicalError> {
        match self.peek() {
            Some(b'{') => {
                let depth = self.deeper(depth)?;
                self.advance();
                while self.next_member()? {
                    self.string()?;
                    self.colon()?;
                    self.skip_value(depth)?;
                }
            }
            Some(b'[') => {
                let depth = self.deeper(depth)?;
                self.advance();
                while self.next_element()? {
                    self.skip_value(depth)?;
                }
            }
            Some(b'"') => {
                self.string()?;
            }
            _ => {
                self.scalar()?;
            }
        }
        Ok(())
    }
}

/// The first offset from `at` on that holds a quote, a backslash or a control character, or the length.
///
/// Eight bytes at a time: a byte's top bit is set in `x - 0x01.. & !x` where it was zero.
#[inline]
fn plain_until(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let special = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let special = special & TOPS;
        if special != 0 {
            // Borrows only run upwards, so the lowest mark is a true one.
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            return at;
        }
        at += 1;
    }
    bytes.len()
}
