//! A large collection that never changes and costs next to nothing to serve: all records are rendered once, and a
//! page is a slice of them.

use std::collections::HashSet;
use std::io::BufRead;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use serde::Deserialize;

use crate::answer::SimRequest;
use crate::judge::JudgeError;
use crate::spec::CollectionSpec;
use crate::time::TimeFormat;
use crate::world::{Renderer, Version};

/// The stamp of the first record: 2024-01-01T00:00:00Z. In the past, for a poller trusts no stamp that is ahead of the
/// vendor's clock.
const FIRST_STAMP: i64 = 1_704_067_200_000;
/// So many records share a stamp.
const TIE: u64 = 3;
/// From one stamp to the next: an overlap of some minutes reads a handful of records again.
const STEP_MS: i64 = 60_000;

/// How the next page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkPaging {
    /// `updated_since` and `after_id`, taken from the last record.
    Keyset,
    /// `cursor`, taken from `next_cursor` of the answer; null at the end.
    Token,
}

/// The collection. The path takes `limit` (up to 10,000), `updated_since` (inclusive) and what its paging needs;
/// answers are `{"data":[...],"has_more":..,"next_cursor":..}`.
#[derive(Debug)]
pub struct Bulk {
    path: String,
    paging: BulkPaging,
    /// All records, each followed by a comma.
    text: Bytes,
    /// Where each record begins, and where the last one ends.
    begins: Vec<usize>,
    seen: Mutex<Seen>,
}

/// The calls that a collection has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How many.
    pub calls: u64,
    /// When the first of them came.
    pub first: Option<SystemTime>,
}

/// What a delivered file has and lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkVerdict {
    /// Records that were not delivered.
    pub lost: u64,
    /// Lines beyond the first of a record.
    pub duplicated: u64,
}

impl Bulk {
    /// Renders `records` records of about 400 bytes.
    pub fn new(path: &str, records: u64, paging: BulkPaging) -> Self {
        let renderer = Renderer::new(7, &CollectionSpec::default());
        let mut text = Vec::with_capacity(usize::try_from(records).unwrap_or(0) * 420);
        let mut begins = Vec::with_capacity(usize::try_from(records).unwrap_or(0) + 1);
        for record in 0..records {
            begins.push(text.len());
            let rendered = renderer.render(&Version {
                record,
                revision: 1,
                deleted: false,
                written: stamp(record),
                stamp: stamp(record),
                visible_from: stamp(record),
                visible_until: None,
            });
            text.extend_from_slice(rendered.head.as_bytes());
            text.push(b'7');
            text.extend_from_slice(rendered.tail.as_bytes());
            text.push(b',');
        }
        begins.push(text.len());
        Bulk {
            path: path.into(),
            paging,
            text: text.into(),
            begins,
            seen: Mutex::default(),
        }
    }

    /// Where it is listed.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How many records it has.
    pub fn records(&self) -> u64 {
        self.begins.len() as u64 - 1
    }

    /// How the next page is asked for.
    pub fn paging(&self) -> BulkPaging {
        self.paging
    }

    /// The bytes of all records.
    pub fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    /// The calls since this was asked before.
    pub fn take_seen(&self) -> Seen {
        std::mem::take(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count_call(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.calls += 1;
        seen.first.get_or_insert_with(SystemTime::now);
    }

    /// The pieces of one page's body. Parameters that make no sense count as absent.
    pub fn page(&self, query: &str) -> [Bytes; 3] {
        self.count_call();
        let request = SimRequest {
            raw_query: query.into(),
            ..SimRequest::default()
        };
        let params = request.query();
        let param = |name: &str| {
            params
                .iter()
                .find(|(have, _)| have == name)
                .map(|(_, value)| value.as_str())
        };
        let number = |name: &str| param(name).and_then(|text| text.parse::<u64>().ok());
        let since = param("updated_since").and_then(|text| TimeFormat::Rfc3339Ms.read(text));
        let after = match self.paging {
            // Ids begin at 1, so that the id is the number of records up to it.
            BulkPaging::Keyset => number("after_id"),
            BulkPaging::Token => number("cursor"),
        };
        let all = self.records();
        let from = after
            .unwrap_or_else(|| since.map_or(0, first_from))
            .min(all);
        let limit = number("limit").unwrap_or(100).clamp(1, 10_000);
        let to = from.saturating_add(limit).min(all);
        let has_more = to < all;
        let cursor = if has_more {
            format!("\"{to}\"")
        } else {
            "null".into()
        };
        [
            Bytes::from_static(b"{\"data\":["),
            self.slice(from, to),
            Bytes::from(format!(
                "],\"has_more\":{has_more},\"next_cursor\":{cursor}}}"
            )),
        ]
    }

    /// Records `from..to`, without the last comma.
    fn slice(&self, from: u64, to: u64) -> Bytes {
        let begin = |record: u64| {
            usize::try_from(record)
                .ok()
                .and_then(|index| self.begins.get(index))
        };
        match (begin(from), begin(to)) {
            (Some(from), Some(to)) if from < to => self.text.slice(*from..*to - 1),
            _ => Bytes::new(),
        }
    }

    /// Compares a delivered file with the collection.
    ///
    /// # Errors
    /// Lines that cannot be read or have no id.
    pub fn judge(&self, mut lines: impl BufRead) -> Result<BulkVerdict, JudgeError> {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(borrow)]
            id: std::borrow::Cow<'a, str>,
        }
        let mut verdict = BulkVerdict::default();
        let mut seen = HashSet::new();
        let mut text = String::new();
        let mut number = 0;
        loop {
            text.clear();
            if lines.read_line(&mut text)? == 0 {
                break;
            }
            number += 1;
            let line: Line<'_> = serde_json::from_str(&text).map_err(|error| JudgeError::Line {
                line: number,
                problem: error.to_string(),
            })?;
            let id = line
                .id
                .parse::<u64>()
                .ok()
                .filter(|id| (1..=self.records()).contains(id));
            match id {
                Some(id) if seen.insert(id) => {}
                _ => verdict.duplicated += 1,
            }
        }
        verdict.lost = self.records() - seen.len() as u64;
        Ok(verdict)
    }
}

fn stamp(record: u64) -> i64 {
    let steps = i64::try_from(record / TIE).unwrap_or(i64::MAX);
    FIRST_STAMP.saturating_add(steps.saturating_mul(STEP_MS))
}

/// The first record with a stamp from here.
fn first_from(since: i64) -> u64 {
    let passed = u64::try_from(since - FIRST_STAMP).unwrap_or(0);
    passed.div_ceil(STEP_MS.unsigned_abs()).saturating_mul(TIE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bulk: &Bulk, query: &str) -> serde_json::Value {
        serde_json::from_slice(&bulk.page(query).concat()).unwrap()
    }

    #[test]
    fn both_ways_of_paging_reach_every_record_once() {
        for paging in [BulkPaging::Keyset, BulkPaging::Token] {
            let bulk = Bulk::new("/bulk", 250, paging);
            let mut query = "limit=100".to_owned();
            let mut ids = Vec::new();
            loop {
                let page = text(&bulk, &query);
                let records = page["data"].as_array().unwrap();
                ids.extend(records.iter().map(|record| record["id"].as_u64().unwrap()));
                if page["has_more"] == false {
                    assert_eq!(page["next_cursor"], serde_json::Value::Null);
                    break;
                }
                let last = records.last().unwrap();
                query = match paging {
                    BulkPaging::Keyset => format!(
                        "limit=100&updated_since={}&after_id={}",
                        last["updated_at"].as_str().unwrap(),
                        last["id"]
                    ),
                    BulkPaging::Token => {
                        format!("limit=100&cursor={}", page["next_cursor"].as_str().unwrap())
                    }
                };
            }
            assert_eq!(ids, (1..=250).collect::<Vec<_>>());
        }
    }

    #[test]
    fn calls_are_counted_until_somebody_asks() {
        let bulk = Bulk::new("/bulk", 10, BulkPaging::Keyset);
        assert_eq!(bulk.take_seen(), Seen::default());
        let before = SystemTime::now();
        bulk.page("");
        bulk.page("");
        let seen = bulk.take_seen();
        assert_eq!(seen.calls, 2);
        assert!(seen.first >= Some(before));
        assert_eq!(bulk.take_seen(), Seen::default());
    }

    #[test]
    fn a_filter_starts_at_its_stamp() {
        let bulk = Bulk::new("/bulk", 10, BulkPaging::Keyset);
        let page = text(&bulk, "updated_since=2024-01-01T00:01:00.001Z");
        assert_eq!(page["data"][0]["id"], 7);
        assert_eq!(page["data"].as_array().unwrap().len(), 4);
        assert_eq!(
            text(&bulk, "updated_since=2032-01-01T00:00:00Z")["data"]
                .as_array()
                .unwrap()
                .len(),
            0
        );
    }

    #[test]
    fn a_file_is_compared_record_by_record() {
        let bulk = Bulk::new("/bulk", 3, BulkPaging::Keyset);
        let verdict = bulk
            .judge("{\"id\":\"1\"}\n{\"id\":\"3\"}\n{\"id\":\"3\"}\n".as_bytes())
            .unwrap();
        assert_eq!(
            verdict,
            BulkVerdict {
                lost: 1,
                duplicated: 1
            }
        );
    }
}
