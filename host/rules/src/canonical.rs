//! One record, one hash: whether a record changed is decided by its content, not by its spelling.
//!
//! A [`Digester`] walks the JSON text of a record once and hashes its canonical form with SHA-256. In that form
//! - the keys of an object are sorted bytewise by what they say, without their escapes;
//! - a key that is given twice counts once, with its last value;
//! - a number stays exactly as it is written: `1`, `1.0` and `1e0` are three values, and no digit is lost in a
//!   double;
//! - a string is what it says, not how it is escaped; half of a surrogate pair says U+FFFD;
//! - the elements of an array keep their order;
//! - white space and a byte order mark are gone;
//! - what the stream calls volatile is left out.
//!
//! Volatile pointers are RFC 6901 pointers in which `*` also stands for every element of an array:
//! `/votes`, `/comments/*/score`. Required pointers are plain; a field that is there with the value `null` is
//! there.
//!
//! A text that is not JSON is refused with the offset of the first byte that is wrong. No input makes it panic
//! or nest deeper than [`MAX_DEPTH`].

use std::cmp::Ordering;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

pub use crate::json_pointer::PointerError;
use pointers::Place;
use scan::Scanner;

mod pointers;
pub(crate) mod scan;
pub(crate) mod text;

pub use scan::MAX_DEPTH;
pub use text::repair_surrogates;

/// A record's text that cannot be hashed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// Not JSON.
    #[error("not JSON at byte {offset}: expected {wanted}")]
    Syntax {
        /// Of the first byte that is wrong, from 0.
        offset: usize,
        /// What should stand there.
        wanted: &'static str,
    },
    /// Arrays and objects within each other beyond all sense.
    #[error("nested deeper than {MAX_DEPTH} levels at byte {offset}")]
    TooDeep {
        /// Of the bracket that is one too many.
        offset: usize,
    },
}

/// What a record's text came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// SHA-256 of the canonical form.
    pub hash: [u8; 32],
    /// The required pointers under which nothing is. Empty, and then without any allocation, as a rule.
    pub missing: Vec<String>,
}

/// Hashes the records of one stream. Made once per stream; clones share the pointers and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Digester {
    places: Arc<Place>,
    required: Arc<[String]>,
    scratch: Scratch,
}

/// Buffers that are kept from record to record.
#[derive(Clone, Debug, Default)]
struct Scratch {
    /// The canonical form so far.
    out: Vec<u8>,
    /// The members of the objects that are open, outermost first.
    members: Vec<Member>,
    /// An object while its members change places.
    sorted: Vec<u8>,
    /// Which required pointers have been met.
    met: Vec<bool>,
}

/// Where one member of an object lies in the canonical form.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// The key's first bytes, big-endian and filled up with zeros: most pairs of keys differ there.
    prefix: u64,
    start: usize,
    key_end: usize,
    end: usize,
    /// The key's canonical spelling still holds escapes.
    escaped: bool,
}

impl Digester {
    /// A digester that leaves out the `volatile` pointers and looks for the `required` ones.
    ///
    /// # Errors
    /// [`PointerError`] for a pointer that is not one, or that would leave out the whole record.
    pub fn new(volatile: &[String], required: &[String]) -> Result<Self, PointerError> {
        let mut distinct: Vec<String> = Vec::with_capacity(required.len());
        for pointer in required {
            if !distinct.contains(pointer) {
                distinct.push(pointer.clone());
            }
        }
        Ok(Self {
            places: Arc::new(Place::tree(volatile, &distinct)?),
            required: distinct.into(),
            scratch: Scratch::default(),
        })
    }

    /// Hashes one record.
    ///
    /// # Errors
    /// [`CanonicalError`] when the text is not one JSON value, or too deep.
    pub fn digest(&mut self, text: &str) -> Result<Digest, CanonicalError> {
        let canonical = self.canonical(text)?;
        let hash = Sha256::digest(canonical).into();
        let missing = self
            .required
            .iter()
            .zip(&self.scratch.met)
            .filter(|(_, met)| !**met)
            .map(|(pointer, _)| pointer.clone())
            .collect();
        Ok(Digest { hash, missing })
    }

    /// The canonical form itself, without what is volatile. Valid UTF-8, and valid JSON.
    ///
    /// # Errors
    /// As [`Digester::digest`].
    pub fn canonical(&mut self, text: &str) -> Result<&[u8], CanonicalError> {
        let scratch = &mut self.scratch;
        scratch.out.clear();
        scratch.out.reserve(text.len());
        scratch.members.clear();
        scratch.met.clear();
        scratch.met.resize(self.required.len(), false);

        let mut scanner = Scanner::new(text);
        scanner.skip_mark();
        scanner.skip_blank();
        let mut writer = Writer { scanner, scratch };
        writer.place(Some(&self.places), 0)?;
        writer.scanner.end()?;
        Ok(&self.scratch.out)
    }
}

/// The canonical form of a text as a string.
///
/// # Errors
/// As [`Digester::digest`].
pub fn canonical_string(text: &str) -> Result<String, CanonicalError> {
    let mut digester = Digester::default();
    let canonical = digester.canonical(text)?;
    Ok(String::from_utf8_lossy(canonical).into_owned())
}

/// Copies a text into its canonical form.
struct Writer<'a, 's> {
    scanner: Scanner<'a>,
    scratch: &'s mut Scratch,
}

impl<'a> Writer<'a, '_> {
    /// Writes the value that stands next, at a place of which the pointers may say something.
    #[inline]
    fn place(&mut self, place: Option<&Place>, depth: u32) -> Result<(), CanonicalError> {
        if let Some(place) = place {
            // Of a repeated key the last value counts, so an earlier one must not have met anything.
            for &number in &place.required_below {
                self.meet(number, false);
            }
            if let Some(number) = place.required {
                self.meet(number, true);
            }
        }
        match self.scanner.peek() {
            Some(b'"') => {
                self.string()?;
            }
            Some(b'{') => self.object(place, depth)?,
            Some(b'[') => self.array(place, depth)?,
            _ => {
                let scalar = self.scanner.scalar()?;
                self.scratch.out.extend_from_slice(scalar.as_bytes());
            }
        }
        Ok(())
    }

    fn meet(&mut self, number: usize, met: bool) {
        if let Some(slot) = self.scratch.met.get_mut(number) {
            *slot = met;
        }
    }

    /// Writes a string, and gives it back as it was.
    #[inline]
    fn string(&mut self) -> Result<scan::Quoted<'a>, CanonicalError> {
        let string = self.scanner.string()?;
        if string.escaped {
            text::write_canonical(string.inner, &mut self.scratch.out);
        } else {
            self.scratch.out.extend_from_slice(string.whole.as_bytes());
        }
        Ok(string)
    }

    fn array(&mut self, place: Option<&Place>, depth: u32) -> Result<(), CanonicalError> {
        let depth = self.scanner.deeper(depth)?;
        self.scanner.advance();
        self.scratch.out.push(b'[');
        let start = self.scratch.out.len();
        let mut index = 0;
        while self.scanner.next_element()? {
            let before = self.scratch.out.len();
            if before > start {
                self.scratch.out.push(b',');
            }
            let element = place.and_then(|place| place.element(index));
            self.place(element, depth)?;
            if element.is_some_and(|element| element.volatile) {
                self.scratch.out.truncate(before);
            }
            index += 1;
        }
        self.scratch.out.push(b']');
        Ok(())
    }

    fn object(&mut self, place: Option<&Place>, depth: u32) -> Result<(), CanonicalError> {
        let depth = self.scanner.deeper(depth)?;
        self.scanner.advance();
        self.scratch.out.push(b'{');
        let body = self.scratch.out.len();
        let first = self.scratch.members.len();
        let mut ordered = true;
        while self.scanner.next_member()? {
            let before = self.scratch.out.len();
            if before > body {
                self.scratch.out.push(b',');
            }
            let start = self.scratch.out.len();
            let key = self.string()?;
            let escaped = key.escaped;
            let member = place.and_then(|place| place.member(key.inner));
            let key_end = self.scratch.out.len();
            self.scanner.colon()?;
            self.scratch.out.push(b':');
            self.place(member, depth)?;
            if member.is_some_and(|member| member.volatile) {
                self.scratch.out.truncate(before);
                continue;
            }
            let scratch = &mut *self.scratch;
            let out = &scratch.out;
            let this = Member {
                prefix: prefix(span(out, start + 1, out.len()), key_end - start - 2),
                start,
                key_end,
                end: out.len(),
                escaped: escaped && span(out, start, key_end).contains(&b'\\'),
            };
            if ordered && let Some(last) = scratch.members.get(first..).and_then(<[_]>::last) {
                ordered = by_key(out, last, &this) == Ordering::Less;
            }
            scratch.members.push(this);
        }
        if !ordered {
            self.sort(first, body);
        }
        self.scratch.members.truncate(first);
        self.scratch.out.push(b'}');
        Ok(())
    }

    /// Puts the members of the innermost object, from number `first` and offset `body` on, in order, and
    /// drops all but the last of those with one key.
    fn sort(&mut self, first: usize, body: usize) {
        let Scratch {
            out,
            members,
            sorted,
            ..
        } = &mut *self.scratch;
        let members = members.get_mut(first..).unwrap_or_default();
        members.sort_unstable_by(|a, b| by_key(out, a, b).then(a.start.cmp(&b.start)));
        sorted.clear();
        let mut rest = members.iter().peekable();
        while let Some(member) = rest.next() {
            let repeated = rest
                .peek()
                .is_some_and(|next| by_key(out, member, next) == Ordering::Equal);
            if repeated {
                continue;
            }
            if !sorted.is_empty() {
                sorted.push(b',');
            }
            sorted.extend_from_slice(span(out, member.start, member.end));
        }
        out.truncate(body);
        out.extend_from_slice(sorted);
    }
}

/// A part of the canonical form.
#[inline]
fn span(out: &[u8], start: usize, end: usize) -> &[u8] {
    out.get(start..end).unwrap_or_default()
}

/// The first eight bytes of a key of `length` bytes, with which `text` begins, as a number that sorts as they
/// do. No key holds a zero byte: control characters are escaped.
#[inline]
fn prefix(text: &[u8], length: usize) -> u64 {
    let Some(first) = text.first_chunk::<8>() else {
        let mut filled = [0; 8];
        for (to, from) in filled.iter_mut().zip(text.iter().take(length)) {
            *to = *from;
        }
        return u64::from_be_bytes(filled);
    };
    let bits_behind = 64_u32.saturating_sub(8 * length.min(8) as u32);
    let mask = u64::MAX.checked_shl(bits_behind).unwrap_or(0);
    u64::from_be_bytes(*first) & mask
}

/// Compares two members of one object by what their keys say.
#[inline]
fn by_key(out: &[u8], a: &Member, b: &Member) -> Ordering {
    if !(a.escaped || b.escaped) && a.prefix != b.prefix {
        return a.prefix.cmp(&b.prefix);
    }
    by_whole_key(out, a, b)
}

fn by_whole_key(out: &[u8], a: &Member, b: &Member) -> Ordering {
    // Between the quotes.
    let key_a = span(out, a.start + 1, a.key_end - 1);
    let key_b = span(out, b.start + 1, b.key_end - 1);
    if a.escaped || b.escaped {
        return by_escaped_key(key_a, key_b);
    }
    key_a.cmp(key_b)
}

/// UTF-8 sorts bytewise as its characters do.
#[cold]
fn by_escaped_key(a: &[u8], b: &[u8]) -> Ordering {
    let a = std::str::from_utf8(a).unwrap_or_default();
    let b = std::str::from_utf8(b).unwrap_or_default();
    text::characters(a).cmp(text::characters(b))
}

#[cfg(test)]
mod tests;
