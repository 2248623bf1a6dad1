//! One delivery as one line of JSON.
//!
//! `connection, stream, partition, id, revision, op, updated_at, seen_at, key, data`, in this order. `data` is the
//! record as the vendor sent it, with two exceptions that keep a line a line and JSON: line breaks between its
//! tokens become spaces, and an escape of half a surrogate pair becomes `\ufffd`.
//!
//! `key` is `connection/stream/id/revision`, or `connection/stream/partition/id/revision`, each part
//! percent-encoded: the same delivery always has the same key, and no two deliveries share one.

use std::ops::Range;
use std::sync::Arc;

use jiff::fmt::temporal::DateTimePrinter;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use weir_rules::canonical::repair_surrogates;
use weir_rules::model::Timestamp;

use crate::store::{Op, OutboxEntry, UnitKey};

/// How every line begins.
pub(super) const BEGINNING: &[u8] = br#"{"connection":"#;

/// RFC 3986 section 2.3: the unreserved characters stay.
const KEY_PART: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

const TIMES: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// Writes lines. Entries of one page share their unit and the time at which they were seen, so both are written
/// once and kept.
#[derive(Default)]
pub struct Lines {
    unit: Option<Arc<UnitKey>>,
    /// `{"connection":...,"stream":...,"partition":...,"id":`
    head: Vec<u8>,
    /// `connection/stream/`
    key: Vec<u8>,
    seen_at: Option<Timestamp>,
    seen_at_text: Vec<u8>,
}

impl Lines {
    /// Appends the entry's line, with its line feed; tells where in `out` its key is.
    pub fn write(&mut self, entry: &OutboxEntry, out: &mut Vec<u8>) -> Range<usize> {
        self.prepare(entry);
        out.extend_from_slice(&self.head);
        json_string(&entry.id, out);
        out.extend_from_slice(br#","revision":"#);
        number(entry.revision, out);
        out.extend_from_slice(match entry.op {
            Op::Insert => br#","op":"insert","updated_at":"#,
            Op::Update => br#","op":"update","updated_at":"#,
            Op::Delete => br#","op":"delete","updated_at":"#,
        });
        match entry.updated_at {
            Some(stamp) => time(stamp, out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(br#","seen_at":"#);
        out.extend_from_slice(&self.seen_at_text);
        out.extend_from_slice(br#","key":""#);
        let start = out.len();
        self.key_into(entry, out);
        let key = start..out.len();
        out.extend_from_slice(br#"","data":"#);
        data(entry.data.as_str(), out);
        out.extend_from_slice(b"}\n");
        key
    }

    /// The delivery's key.
    pub fn key(&mut self, entry: &OutboxEntry) -> String {
        self.prepare(entry);
        let mut key = Vec::new();
        self.key_into(entry, &mut key);
        String::from_utf8_lossy(&key).into_owned()
    }

    fn key_into(&self, entry: &OutboxEntry, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key);
        encoded(&entry.id, out);
        out.push(b'/');
        number(entry.revision, out);
    }

    fn prepare(&mut self, entry: &OutboxEntry) {
        let same = self
            .unit
            .as_ref()
            .is_some_and(|unit| Arc::ptr_eq(unit, &entry.unit));
        if !same {
            self.new_unit(&entry.unit);
        }
        if self.seen_at != Some(entry.seen_at) {
            self.seen_at = Some(entry.seen_at);
            self.seen_at_text.clear();
            time(entry.seen_at, &mut self.seen_at_text);
        }
    }

    fn new_unit(&mut self, unit: &Arc<UnitKey>) {
        let (head, key) = (&mut self.head, &mut self.key);
        head.clear();
        key.clear();
        head.extend_from_slice(BEGINNING);
        json_string(&unit.connection, head);
        head.extend_from_slice(br#","stream":"#);
        json_string(&unit.stream, head);
        head.extend_from_slice(br#","partition":"#);
        match &unit.partition {
            Some(partition) => json_string(partition, head),
            None => head.extend_from_slice(b"null"),
        }
        head.extend_from_slice(br#","id":"#);
        let parts = [
            Some(&unit.connection),
            Some(&unit.stream),
            unit.partition.as_ref(),
        ];
        for part in parts.into_iter().flatten() {
            encoded(part, key);
            key.push(b'/');
        }
        self.unit = Some(unit.clone());
    }
}

fn json_string(text: &str, out: &mut Vec<u8>) {
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

fn number(number: u64, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, &number);
}

fn encoded(part: &str, out: &mut Vec<u8>) {
    for piece in utf8_percent_encode(part, KEY_PART) {
        out.extend_from_slice(piece.as_bytes());
    }
}

/// RFC 3339, UTC, milliseconds, in quotes. A time beyond the calendar is written as the calendar's end.
fn time(time: Timestamp, out: &mut Vec<u8>) {
    let time = jiff::Timestamp::from_millisecond(time).unwrap_or(if time < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    });
    out.push(b'"');
    // Writing into memory cannot fail.
    let _ = TIMES.print_timestamp(&time, &mut *out);
    out.push(b'"');
}

/// In JSON a raw line break can only stand between tokens, where a space means the same.
fn data(text: &str, out: &mut Vec<u8>) {
    let text = repair_surrogates(text);
    let mut rest = text.as_bytes();
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        let (line, after) = rest.split_at(at);
        out.extend_from_slice(line);
        out.push(b' ');
        rest = after.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::RecordData;

    fn entry(partition: Option<&str>, id: &str, data: &str) -> OutboxEntry {
        OutboxEntry {
            sequence: 1,
            unit: Arc::new(UnitKey {
                connection: "acme".into(),
                stream: "orders".into(),
                partition: partition.map(str::to_owned),
            }),
            id: id.into(),
            revision: 3,
            op: Op::Update,
            updated_at: Some(1_700_000_000_001),
            seen_at: 1_700_000_060_000,
            data: RecordData::Text(data.into()),
        }
    }

    fn line(entry: &OutboxEntry) -> String {
        let mut out = Vec::new();
        let key = Lines::default().write(entry, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text[key], Lines::default().key(entry));
        text
    }

    #[test]
    fn a_line_in_full() {
        let entry = entry(Some("eu/1"), "a b", r#"{"id": "a b","n":1.50}"#);
        assert_eq!(
            line(&entry),
            concat!(
                r#"{"connection":"acme","stream":"orders","partition":"eu/1","id":"a b","revision":3,"#,
                r#""op":"update","updated_at":"2023-11-14T22:13:20.001Z","seen_at":"2023-11-14T22:14:20.000Z","#,
                r#""key":"acme/orders/eu%2F1/a%20b/3","data":{"id": "a b","n":1.50}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn what_is_missing_is_null() {
        let mut entry = entry(None, "7", "{}");
        entry.updated_at = None;
        let line: serde_json::Value = serde_json::from_str(&line(&entry)).unwrap();
        assert_eq!(line["partition"], serde_json::Value::Null);
        assert_eq!(line["updated_at"], serde_json::Value::Null);
        assert_eq!(line["key"], "acme/orders/7/3");
    }

    #[test]
    fn line_breaks_of_the_vendor_do_not_break_the_line() {
        let line = line(&entry(
            None,
            "7",
            "{\r\n  \"a\": \"x\\ny\",\n  \"b\": []\r}",
        ));
        assert_eq!(line.matches('\n').count(), 1);
        assert!(!line.contains('\r'));
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["data"]["a"], "x\ny");
    }

    #[test]
    fn half_a_surrogate_pair_is_repaired() {
        let line = line(&entry(None, "7", r#"{"a":"\ud83d","b":"\ud83d\ude00"}"#));
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["data"]["a"], "\u{fffd}");
        assert_eq!(read["data"]["b"], "😀");
    }

    #[test]
    fn a_time_beyond_the_calendar_is_its_end() {
        let mut entry = entry(None, "7", "{}");
        entry.updated_at = Some(i64::MAX);
        assert!(line(&entry).contains(r#""updated_at":"9999-12-30T22:00:00.999Z""#));
    }

    #[test]
    fn the_head_follows_the_unit() {
        let mut lines = Lines::default();
        let (one, mut two) = (entry(None, "1", "{}"), entry(None, "1", "{}"));
        two.unit = Arc::new(UnitKey {
            connection: "globex".into(),
            ..(*one.unit).clone()
        });
        assert_eq!(lines.key(&one), "acme/orders/1/3");
        assert_eq!(lines.key(&two), "globex/orders/1/3");
        assert_eq!(lines.key(&one), "acme/orders/1/3");
    }

    proptest! {
        #[test]
        fn any_names_make_one_line_of_json_that_says_them(
            connection in ".*", stream in ".*", partition in proptest::option::of(".*"), id in ".*"
        ) {
            let mut entry = entry(None, &id, "[1]");
            entry.unit = Arc::new(UnitKey { connection, stream, partition });
            let line = line(&entry);
            prop_assert_eq!(line.matches('\n').count(), 1);
            let read: serde_json::Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(read["connection"].as_str(), Some(entry.unit.connection.as_str()));
            prop_assert_eq!(read["stream"].as_str(), Some(entry.unit.stream.as_str()));
            prop_assert_eq!(read["partition"].as_str(), entry.unit.partition.as_deref());
            prop_assert_eq!(read["id"].as_str(), Some(id.as_str()));
            let parts: Vec<String> = read["key"].as_str().unwrap().split('/').map(|part| {
                percent_encoding::percent_decode_str(part).decode_utf8().unwrap().into_owned()
            }).collect();
            let mut expected = vec![entry.unit.connection.clone(), entry.unit.stream.clone()];
            expected.extend(entry.unit.partition.clone());
            expected.extend([id, "3".to_owned()]);
            prop_assert_eq!(parts, expected);
        }
    }
}
