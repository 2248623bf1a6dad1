//! Walking over JSON text without building anything.

use super::Error;
use super::block::{self, Carry, Shape};

/// A key of an object.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    /// The text between the quotes, escapes and all.
    pub(super) text: &'a str,
    /// Is there an escape in it?
    pub(super) escaped: bool,
}

/// A place in a text.
pub(super) struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// At the text's first value; a byte order mark is passed over.
    pub(super) fn new(text: &'a str) -> Self {
        let at = if text.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        let mut scan = Scan {
            text,
            bytes: text.as_bytes(),
            at,
        };
        scan.space();
        scan
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn wanted(&self, wanted: &'static str) -> Error {
        Error::Syntax {
            at: self.at,
            wanted,
        }
    }

    /// Passes over white space.
    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Passes over one byte if it is this one.
    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    /// Nothing but white space is left.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.space();
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(self.wanted("the end of the text"))
        }
    }

    /// A key and its colon; the value comes next.
    #[inline]
    fn key(&mut self) -> Result<Key<'a>, Error> {
        if !self.take(b'"') {
            return Err(self.wanted("a key"));
        }
        let start = self.at;
        let escaped = self.string_rest()?;
        let text = self.text.get(start..self.at - 1).unwrap_or_default();
        self.space();
        if !self.take(b':') {
            return Err(self.wanted("a colon"));
        }
        self.space();
        Ok(Key { text, escaped })
    }

    /// Passes over an object; `each` passes over the value of a key.
    #[inline]
    pub(super) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, Key<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.at += 1;
        self.space();
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let key = self.key()?;
            each(self, key)?;
            if !self.more(b'}')? {
                return Ok(());
            }
        }
    }

    /// Passes over an array; `each` passes over an element.
    #[inline]
    pub(super) fn array(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.at += 1;
        self.space();
        if self.take(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if !self.more(b']')? {
                return Ok(());
            }
        }
    }

    /// After an element of an object or array: true if another follows.
    #[inline]
    fn more(&mut self, close: u8) -> Result<bool, Error> {
        self.space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.space();
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.wanted("a comma or the closing bracket")),
        }
    }

    /// Passes over one value.
    #[inline]
    pub(super) fn skip(&mut self) -> Result<(), Error> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.string_rest().map(drop)
            }
            Some(b'{' | b'[') => {
                self.at += 1;
                self.container_rest()
            }
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => {
                while let Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') = self.peek() {
                    self.at += 1;
                }
                Ok(())
            }
            _ => Err(self.wanted("a value")),
        }
    }

    fn word(&mut self, word: &'static str) -> Result<(), Error> {
        if self
            .bytes
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word.as_bytes()))
        {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.wanted(word))
        }
    }

    /// From inside a string to after its closing quote; whether an escape was passed.
    #[inline]
    fn string_rest(&mut self) -> Result<bool, Error> {
        let mut escaped = false;
        while let Some(block) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            let ends = block::string_ends(block);
            if ends == 0 {
                self.at += block::SHORT;
                continue;
            }
            self.at += ends.trailing_zeros() as usize + 1;
            if self.bytes.get(self.at - 1) == Some(&b'"') {
                return Ok(escaped);
            }
            self.at += 1; // what the backslash escapes
            escaped = true;
        }
        self.string_tail(escaped)
    }

    /// The same, for the last bytes of a text.
    fn string_tail(&mut self, mut escaped: bool) -> Result<bool, Error> {
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    self.at += 2;
                    escaped = true;
                }
                Some(_) => self.at += 1,
                None => {
                    self.at = self.bytes.len();
                    return Err(self.wanted("the end of a string"));
                }
            }
        }
    }

    /// From inside an object or array to after its closing bracket, whatever it holds: only strings and brackets are
    /// looked at.
    fn container_rest(&mut self) -> Result<(), Error> {
        let mut depth = 1_usize;
        let mut carry = Carry::default();
        while let Some(rest) = self.bytes.get(self.at..).filter(|rest| !rest.is_empty()) {
            let padded;
            let block = match rest.first_chunk() {
                Some(block) => block,
                None => {
                    padded = padded_block(rest);
                    &padded
                }
            };
            let shape = Shape::of(block);
            let outside = !carry.strings(&shape);
            let opening = shape.opening & outside;
            let mut closing = shape.closing & outside;
            // Deep enough that this block cannot end the container, whatever the order of its brackets?
            let closes = closing.count_ones() as usize;
            if closes < depth {
                depth = depth + opening.count_ones() as usize - closes;
                self.at += rest.len().min(block::LONG);
                continue;
            }
            let mut before = 0_usize;
            while closing != 0 {
                let bit = closing.trailing_zeros();
                let opened = (opening & ((1 << bit) - 1)).count_ones() as usize;
                before += 1;
                if depth + opened == before {
                    self.at += bit as usize + 1;
                    return Ok(());
                }
                closing &= closing - 1;
            }
            depth = depth + opening.count_ones() as usize - closes;
            self.at += rest.len().min(block::LONG);
        }
        Err(self.wanted("a closing bracket"))
    }
}

/// The last bytes of a text, filled up with spaces.
fn padded_block(rest: &[u8]) -> [u8; block::LONG] {
    let mut block = [b' '; block::LONG];
    block
        .iter_mut()
        .zip(rest)
        .for_each(|(into, byte)| *into = *byte);
    block
}

/// Does a text that should be JSON begin like a web page?
pub(super) fn looks_like_html(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('<')
}
