//! A sink's path with names to fill in.
//!
//! Names come from vendors and may be anything. What is not a plain character is percent-encoded, so that a name
//! is one part of a path, different names are different parts, and none of them leads elsewhere.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use weir_rules::model::Timestamp;

use crate::store::OutboxEntry;

/// What is wrong with a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A field that no entry has.
    #[error(
        "path {path:?} names {{{field}}}, which is not known: use {{connection}}, {{stream}}, {{partition}} or {{date}}"
    )]
    UnknownField {
        /// The path.
        path: String,
        /// The field.
        field: String,
    },
    /// A brace without its other half.
    #[error("path {path:?} has a brace without its other half")]
    LoneBrace {
        /// The path.
        path: String,
    },
    /// Not UTF-8.
    #[error("path {path:?} is not UTF-8")]
    NotText {
        /// The path, as far as it reads.
        path: String,
    },
    /// Nothing that a file can be called.
    #[error("path {path:?} names no file: end it in something like {{stream}}.ndjson")]
    NoFile {
        /// The path.
        path: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Connection,
    Stream,
    Partition,
    Date,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field),
}

/// A path that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

/// File systems allow 255 bytes for a name; the rest is for what stands beside the field, and for rotation.
const FIELD_BYTES: usize = 160;

impl Template {
    pub(super) fn new(path: &Path) -> Result<Self, TemplateError> {
        let shown = path.to_string_lossy().into_owned();
        let Some(text) = path.to_str() else {
            return Err(TemplateError::NotText { path: shown });
        };
        if text.is_empty() || text.ends_with('/') || text.ends_with("..") {
            return Err(TemplateError::NoFile { path: shown });
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            let Some((name, after)) = from.strip_prefix('{').and_then(|from| from.split_once('}'))
            else {
                return Err(TemplateError::LoneBrace { path: shown });
            };
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Field(match name {
                "connection" => Field::Connection,
                "stream" => Field::Stream,
                "partition" => Field::Partition,
                "date" => Field::Date,
                other => {
                    return Err(TemplateError::UnknownField {
                        path: shown,
                        field: other.to_owned(),
                    });
                }
            }));
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Template { parts })
    }

    /// The entry's file. Its date is the day (UTC) on which the record was seen: told by the entry and not by the
    /// clock, so that an entry that is delivered again goes to the same file.
    pub(super) fn path(&self, entry: &OutboxEntry) -> PathBuf {
        let mut path = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => path.push_str(text),
                Part::Field(Field::Connection) => push_name(&entry.unit.connection, &mut path),
                Part::Field(Field::Stream) => push_name(&entry.unit.stream, &mut path),
                Part::Field(Field::Partition) => match &entry.unit.partition {
                    Some(partition) => push_name(partition, &mut path),
                    None => path.push('_'),
                },
                Part::Field(Field::Date) => path.push_str(&date(entry.seen_at)),
            }
        }
        path.into()
    }

    /// Surely the same file, without making the paths.
    pub(super) fn same_file(&self, one: &OutboxEntry, other: &OutboxEntry) -> bool {
        std::sync::Arc::ptr_eq(&one.unit, &other.unit)
            && (one.seen_at == other.seen_at || !self.parts.contains(&Part::Field(Field::Date)))
    }
}

/// A name as a part of a path: ASCII letters, digits, `-`, `_` and inner dots stay, and so do letters of other scripts.
fn push_name(name: &str, path: &mut String) {
    let start = path.len();
    for (at, character) in name.char_indices() {
        let plain = character.is_alphanumeric()
            || character == '-'
            || (at > 0 && matches!(character, '.' | '_'));
        if plain {
            path.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                push_byte(byte, path);
            }
        }
        if path.len() - start > FIELD_BYTES {
            // Cut, and told apart by a hash of the whole.
            path.truncate(path.floor_char_boundary(start + FIELD_BYTES));
            let _ = write!(path, "%{:016x}", fnv1a(name.as_bytes()));
            return;
        }
    }
    if name.is_empty() {
        path.push_str("%00");
    }
}

fn push_byte(byte: u8, path: &mut String) {
    // Writing into a string cannot fail.
    let _ = write!(path, "%{byte:02X}");
}

/// FNV-1a, 64 bits: told names apart since 1991, and the same in every build.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// `2025-01-31`
pub(super) fn date(time: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(time).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.to_string()
        .chars()
        .take_while(|character| *character != 'T')
        .collect()
}
