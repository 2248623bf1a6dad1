//! Outbox chunks: the entries of one page, or of a part of it, packed into one value.
//!
//! One insert per page instead of one per record is what makes the outbox cheap. A chunk is a header, a table of
//! fixed-width entries, and one text with every entry's id and data, so that reading a chunk makes one copy of
//! its text and no more.
//!
//! An entry that does not read is reported beside the good ones; a chunk whose frame does not read is reported
//! whole. Neither hides what lies behind it.

use std::sync::Arc;

use weir_rules::model::Timestamp;

use crate::store::{Op, OutboxEntry, PreparedRecord, RecordData, UnitId, UnitKey};

/// A chunk is closed when it has reached this size, so that a batch of a sink stays small whatever the page's
/// size. A little below a power of two, to which the engine rounds a value's room up.
pub(super) const CHUNK_BYTES: usize = 120 * 1024;

const VERSION: u8 = 1;
const HEADER_LEN: usize = 1 + 8 + 8 + 4 + 8;
const ENTRY_LEN: usize = 4 + 4 + 8 + 1 + 8;
const NO_STAMP: i64 = i64::MIN;

/// A record that is news, and what the store made of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct News<'a> {
    pub(super) record: &'a PreparedRecord,
    pub(super) op: Op,
    pub(super) revision: u64,
}

impl News<'_> {
    fn room(&self) -> usize {
        ENTRY_LEN + self.record.id.len() + self.record.data.as_str().len()
    }
}

/// A chunk's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) unit: UnitId,
    pub(super) seen_at: Timestamp,
    pub(super) count: u32,
    /// Bytes of the entries' data.
    pub(super) data_bytes: u64,
}

/// How many of the first entries go into one chunk, and the chunk's length.
pub(super) fn measure(news: &[News<'_>]) -> (usize, usize) {
    let mut length = HEADER_LEN;
    let mut count = 0;
    for one in news {
        let longer = length + one.room();
        if count > 0 && longer > CHUNK_BYTES {
            break;
        }
        length = longer;
        count += 1;
    }
    (count, length)
}

/// Packs entries into a place of exactly the length that [`measure`] gave for them.
pub(super) fn pack(
    news: &[News<'_>],
    unit: UnitId,
    seen_at: Timestamp,
    place: &mut [u8],
) -> Header {
    let header = Header {
        unit,
        seen_at,
        count: u32::try_from(news.len()).unwrap_or(u32::MAX),
        data_bytes: news
            .iter()
            .map(|one| one.record.data.as_str().len() as u64)
            .sum(),
    };
    let mut writer = Writer { place };
    writer.put(&[VERSION]);
    writer.put(&unit.0.to_be_bytes());
    writer.put(&seen_at.to_be_bytes());
    writer.put(&header.count.to_be_bytes());
    writer.put(&header.data_bytes.to_be_bytes());
    for one in news {
        writer.put(&length_of(&one.record.id));
        writer.put(&length_of(one.record.data.as_str()));
        writer.put(&one.revision.to_be_bytes());
        writer.put(&[op_code(one.op)]);
        writer.put(&one.record.updated_at.unwrap_or(NO_STAMP).to_be_bytes());
    }
    for one in news {
        writer.put(one.record.id.as_bytes());
        writer.put(one.record.data.as_str().as_bytes());
    }
    header
}

struct Writer<'a> {
    place: &'a mut [u8],
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let place = std::mem::take(&mut self.place);
        if let Some((here, rest)) = place.split_at_mut_checked(bytes.len()) {
            here.copy_from_slice(bytes);
            self.place = rest;
        }
    }
}

fn length_of(text: &str) -> [u8; 4] {
    u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes()
}

fn op_code(op: Op) -> u8 {
    match op {
        Op::Insert => 0,
        Op::Update => 1,
        Op::Delete => 2,
    }
}

fn op_of(code: u8) -> Option<Op> {
    match code {
        0 => Some(Op::Insert),
        1 => Some(Op::Update),
        2 => Some(Op::Delete),
        _ => None,
    }
}

impl Header {
    /// Reads a header; none when the chunk is not one of ours.
    pub(super) fn read(chunk: &[u8]) -> Option<Self> {
        let ([VERSION], rest) = chunk.split_first_chunk::<1>()? else {
            return None;
        };
        let (unit, rest) = rest.split_first_chunk()?;
        let (seen_at, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (data_bytes, _) = rest.split_first_chunk()?;
        Some(Header {
            unit: UnitId(u64::from_be_bytes(*unit)),
            seen_at: Timestamp::from_be_bytes(*seen_at),
            count: u32::from_be_bytes(*count),
            data_bytes: u64::from_be_bytes(*data_bytes),
        })
    }
}

/// An entry that does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) sequence: u64,
    pub(super) detail: String,
    pub(super) raw: Vec<u8>,
}

/// A row of the chunk's table.
#[derive(Clone, Copy)]
struct Place {
    id_len: usize,
    data_len: usize,
    revision: u64,
    op: u8,
    updated_at: i64,
}

impl Place {
    fn read(row: &[u8]) -> Option<Self> {
        let (id_len, row) = row.split_first_chunk()?;
        let (data_len, row) = row.split_first_chunk()?;
        let (revision, row) = row.split_first_chunk()?;
        let ([op], row) = row.split_first_chunk::<1>()?;
        let (updated_at, _) = row.split_first_chunk()?;
        Some(Place {
            id_len: u32::from_be_bytes(*id_len) as usize,
            data_len: u32::from_be_bytes(*data_len) as usize,
            revision: u64::from_be_bytes(*revision),
            op: *op,
            updated_at: i64::from_be_bytes(*updated_at),
        })
    }
}

/// A chunk that is being read.
pub(super) struct Chunk<'a> {
    pub(super) header: Header,
    first: u64,
    table: &'a [u8],
    text: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Opens the chunk that begins with the sequence `first`; an error says why its frame does not read.
    pub(super) fn open(first: u64, chunk: &'a [u8]) -> Result<Self, &'static str> {
        let header = Header::read(chunk).ok_or("the chunk's header does not read")?;
        let rest = chunk.get(HEADER_LEN..).unwrap_or_default();
        let (table, text) = (header.count as usize)
            .checked_mul(ENTRY_LEN)
            .and_then(|length| rest.split_at_checked(length))
            .ok_or("the chunk is shorter than its header says")?;
        let needed = places(table).try_fold(0usize, |sum, place| {
            sum.checked_add(place.id_len)?.checked_add(place.data_len)
        });
        if needed != Some(text.len()) {
            return Err("the chunk's text is not as long as its table says");
        }
        Ok(Chunk {
            header,
            first,
            table,
            text,
        })
    }

    /// The entries from sequence `from` on, good ones and bad ones, each in order.
    pub(super) fn entries(
        &self,
        from: u64,
        unit: &Arc<UnitKey>,
        good: &mut Vec<OutboxEntry>,
        bad: &mut Vec<Bad>,
    ) {
        // One copy of the whole text serves all entries; only a damaged one is cut up.
        let whole: Option<Arc<str>> = std::str::from_utf8(self.text).ok().map(Arc::from);
        let mut start = 0;
        for (sequence, place) in (self.first..).zip(places(self.table)) {
            let middle = start + place.id_len;
            let end = middle + place.data_len;
            let at = std::mem::replace(&mut start, end);
            if sequence < from {
                continue;
            }
            let data = match &whole {
                Some(page) if page.is_char_boundary(middle) && page.is_char_boundary(end) => {
                    Some(RecordData::Slice {
                        page: page.clone(),
                        start: middle,
                        end,
                    })
                }
                Some(_) => None,
                None => self
                    .text
                    .get(middle..end)
                    .and_then(|bytes| std::str::from_utf8(bytes).ok())
                    .map(|text| RecordData::Text(Arc::from(text))),
            };
            let id = self
                .text
                .get(at..middle)
                .and_then(|bytes| std::str::from_utf8(bytes).ok());
            match (id, op_of(place.op), data) {
                (Some(id), Some(op), Some(data)) => good.push(OutboxEntry {
                    sequence,
                    unit: unit.clone(),
                    id: id.to_owned(),
                    revision: place.revision,
                    op,
                    updated_at: (place.updated_at != NO_STAMP).then_some(place.updated_at),
                    seen_at: self.header.seen_at,
                    data,
                }),
                (_, op, _) => bad.push(Bad {
                    sequence,
                    detail: match op {
                        Some(_) => "the entry is not UTF-8".into(),
                        None => format!("the entry has the unknown operation {}", place.op),
                    },
                    raw: self.text.get(at..end).unwrap_or_default().to_vec(),
                }),
            }
        }
    }

    /// Bytes of the data of the entries before sequence `from`.
    pub(super) fn data_bytes_before(&self, from: u64) -> u64 {
        (self.first..from)
            .zip(places(self.table))
            .map(|(_, place)| place.data_len as u64)
            .sum()
    }
}

fn places(table: &[u8]) -> impl Iterator<Item = Place> {
    table.chunks_exact(ENTRY_LEN).filter_map(Place::read)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit() -> Arc<UnitKey> {
        Arc::new(UnitKey {
            connection: "acme".into(),
            stream: "orders".into(),
            partition: None,
        })
    }

    fn read(first: u64, from: u64, chunk: &[u8]) -> Option<(Vec<OutboxEntry>, Vec<Bad>)> {
        let chunk = Chunk::open(first, chunk).ok()?;
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        chunk.entries(from, &unit(), &mut good, &mut bad);
        Some((good, bad))
    }

    fn records() -> impl Strategy<Value = Vec<(PreparedRecord, Op, u64)>> {
        let op = prop_oneof![Just(Op::Insert), Just(Op::Update), Just(Op::Delete)];
        let stamp = proptest::option::of(-1_000_000_i64..i64::MAX);
        let record = (".*", ".*", stamp).prop_map(|(id, data, updated_at)| PreparedRecord {
            id,
            hash: [0; 32],
            updated_at,
            deleted: false,
            data: RecordData::Text(data.into()),
        });
        proptest::collection::vec((record, op, any::<u64>()), 1..20)
    }

    fn packed(records: &[(PreparedRecord, Op, u64)]) -> Vec<u8> {
        let news: Vec<News<'_>> = records
            .iter()
            .map(|(record, op, revision)| News {
                record,
                op: *op,
                revision: *revision,
            })
            .collect();
        let (count, length) = measure(&news);
        assert_eq!(count, news.len());
        let mut place = vec![0; length];
        pack(&news, UnitId(3), 77, &mut place);
        place
    }

    proptest! {
        #[test]
        fn what_is_packed_is_read(records in records(), skip in 0_u64..5) {
            let chunk = packed(&records);
            let header = Header::read(&chunk).unwrap();
            prop_assert_eq!((header.unit, header.seen_at), (UnitId(3), 77));
            let (good, bad) = read(100, 100 + skip, &chunk).unwrap();
            prop_assert_eq!(bad, []);
            prop_assert_eq!(good.len(), records.len().saturating_sub(skip as usize));
            for (entry, (at, (record, op, revision))) in good.iter().zip(records.iter().enumerate().skip(skip as usize)) {
                prop_assert_eq!(entry.sequence, 100 + at as u64);
                prop_assert_eq!((&entry.id, entry.op, entry.revision), (&record.id, *op, *revision));
                prop_assert_eq!((entry.updated_at, entry.seen_at), (record.updated_at, 77));
                prop_assert_eq!(entry.data.as_str(), record.data.as_str());
            }
        }

        #[test]
        fn damage_is_told_and_never_a_panic(records in records(), at in any::<usize>(), byte in any::<u8>()) {
            let mut chunk = packed(&records);
            let at = at % chunk.len();
            chunk[at] = byte;
            if let Some((good, bad)) = read(1, 1, &chunk) {
                prop_assert_eq!(good.len() + bad.len(), records.len());
            }
        }

        #[test]
        fn foreign_bytes_are_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(1, 1, &bytes);
        }
    }

    #[test]
    fn a_chunk_is_closed_at_its_size() {
        let record = PreparedRecord {
            id: "1".into(),
            hash: [0; 32],
            updated_at: None,
            deleted: false,
            data: RecordData::Text("x".repeat(CHUNK_BYTES / 3).into()),
        };
        let one = News {
            record: &record,
            op: Op::Insert,
            revision: 1,
        };
        assert_eq!(measure(&[one; 5]).0, 2);
        let huge = PreparedRecord {
            data: RecordData::Text("x".repeat(CHUNK_BYTES * 2).into()),
            ..record.clone()
        };
        let huge = News {
            record: &huge,
            ..one
        };
        assert_eq!(measure(&[huge, one]).0, 1, "one record is never divided");
    }
}
