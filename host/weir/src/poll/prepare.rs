//! From an answer to records that are ready for dedup: the connector's reading of it, the schema gate and the
//! content hash. CPU work alone, so it runs on the wasm workers. Which records cannot be taken, and when their page is
//! refused for them, is decided in [`super::aside`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use weir_rules::canonical::Digester;
use weir_rules::model::{Fault, Timestamp};
use weir_rules::walk::PageFacts;
use weir_rules::window::{FUTURE_ALLOWANCE, Newest, OrderWatch};
use weir_runtime::contract::{Body, Data, Page, Record, Response, Task};
use weir_runtime::{CallError, Connector};

use super::aside::{self, Aside};
use super::shown::Excerpt;
use crate::store::{PreparedRecord, RecordData};

/// One page, read, checked and hashed.
pub(super) struct Prepared {
    /// What the connector made of the answer, without its records.
    pub(super) page: Page,
    /// The records, in the order of the answer.
    pub(super) records: Vec<PreparedRecord>,
    /// Those that cannot be taken.
    pub(super) aside: Vec<Aside>,
    /// What stands for those where ids are counted: no record's id begins with a zero byte.
    stand_ins: Vec<String>,
    /// Changes when any record does.
    pub(super) content: u64,
    /// The newest stamp.
    pub(super) newest: Newest,
    /// The id of the first record whose stamp lies in the future.
    pub(super) from_the_future: Option<String>,
    /// The oldest stamp.
    pub(super) oldest: Option<Timestamp>,
    /// The first stamp, and whether those after it are in order.
    order: Option<(Timestamp, OrderWatch)>,
}

/// An answer that brings no page.
pub(super) struct Refused {
    /// What is wrong.
    pub(super) why: Wrong,
    /// The answer, for whoever looks into it.
    pub(super) excerpt: Excerpt,
}

/// What is wrong with an answer.
pub(super) enum Wrong {
    /// The connector says so, or its records do.
    Fault(Fault),
    /// The connector gave no usable reading.
    Connector(CallError),
}

/// What an answer is read by.
pub(super) struct Reading<'r> {
    pub(super) connector: &'r Connector,
    pub(super) task: &'r Task,
    pub(super) step: Option<&'r str>,
    /// Where a record's id stands, for messages.
    pub(super) key: &'r [String],
    pub(super) vendor_now: Timestamp,
    /// Pages have been refused for their records, again and again.
    pub(super) stubborn: bool,
}

impl Prepared {
    /// How many records have come, those included that cannot be taken.
    pub(super) fn arrived(&self) -> u64 {
        (self.records.len() + self.stand_ins.len()) as u64
    }

    /// What the walk needs to know; of a stream that may be a `feed` also where the page begins and ends.
    pub(super) fn facts(&self, feed: bool) -> PageFacts<'_> {
        PageFacts {
            ids: self
                .records
                .iter()
                .map(|record| record.id.as_str())
                .chain(self.stand_ins.iter().map(String::as_str))
                .collect(),
            content: self.content,
            newest: self.newest,
            oldest: self.oldest,
            order: self.order,
            feed,
            next: self.page.next.clone(),
            cursor: self.page.cursor.clone(),
            total: self.page.total,
            truncated: self.page.truncated,
            poll_after: self.page.poll_after,
        }
    }

    /// What goes into the store. Of several versions of one record the newest counts, and of equally new ones the last:
    /// all of them would come again as changes with every poll that shows the page.
    pub(super) fn into_records(mut self) -> Vec<PreparedRecord> {
        if !may_repeat(&self.records) {
            return self.records;
        }
        let mut newest: HashMap<&str, usize> = HashMap::with_capacity(self.records.len());
        for (place, record) in self.records.iter().enumerate() {
            let best = newest.entry(&record.id).or_insert(place);
            let known = self.records.get(*best).and_then(|best| best.updated_at);
            if record.updated_at >= known {
                *best = place;
            }
        }
        if newest.len() < self.records.len() {
            let kept: HashSet<usize> = newest.into_values().collect();
            let mut place = 0..;
            self.records
                .retain(|_| place.next().is_some_and(|place| kept.contains(&place)));
        }
        self.records
    }
}

/// Could two of the records have one id? Nearly every page says no, so this must cost next to nothing: ids are told
/// apart by a hash that may take two for one, never one for two.
fn may_repeat(records: &[PreparedRecord]) -> bool {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let mut hashes: Vec<u64> = records
        .iter()
        .map(|record| {
            record
                .id
                .as_bytes()
                .iter()
                .fold(0xcbf2_9ce4_8422_2325, fold)
        })
        .collect();
    hashes.sort_unstable();
    hashes.windows(2).any(|pair| pair.first() == pair.last())
}

/// Lets the connector read the answer, and makes its records ready.
pub(super) fn prepare(
    reading: &Reading<'_>,
    response: Response,
    digester: &mut Digester,
) -> Result<Prepared, Box<Refused>> {
    let refused = |why, response: &Response| {
        Box::new(Refused {
            why,
            excerpt: Excerpt::of(response),
        })
    };
    let mut page = match reading
        .connector
        .read_response(reading.task, reading.step, &response)
    {
        Ok(Ok(page)) => page,
        Ok(Err(fault)) => return Err(refused(Wrong::Fault(fault.into()), &response)),
        Err(error) => return Err(refused(Wrong::Connector(error), &response)),
    };
    let records = std::mem::take(&mut page.records);
    let count = records.len();
    let mut prepared = Prepared {
        page,
        records: Vec::with_capacity(count),
        aside: Vec::new(),
        stand_ins: Vec::new(),
        content: 0,
        newest: Newest::default(),
        from_the_future: None,
        oldest: None,
        order: None,
    };
    let (head, text) = split(response);
    for record in records {
        prepared.take(record, &text, reading, digester);
    }
    match aside::judge(&prepared.aside, count, reading.stubborn) {
        Ok(()) => Ok(prepared),
        Err(fault) => Err(refused(Wrong::Fault(fault), &joined(head, &text))),
    }
}

/// The answer's text by itself, to be shared by its records.
fn split(mut response: Response) -> (Response, Arc<str>) {
    let text = match &mut response.body {
        Body::Text(text) => std::mem::take(text).into(),
        Body::Bytes(_) => "".into(),
    };
    (response, text)
}

fn joined(mut response: Response, text: &str) -> Response {
    if let Body::Text(body) = &mut response.body {
        *body = text.to_owned();
    }
    response
}

impl Prepared {
    fn take(
        &mut self,
        record: Record,
        text: &Arc<str>,
        reading: &Reading<'_>,
        digester: &mut Digester,
    ) {
        let data = match record.data {
            Data::Text(text) => RecordData::Text(text.into()),
            Data::Slice(span) => {
                let start = span.start as usize;
                RecordData::Slice {
                    page: text.clone(),
                    start,
                    end: start.saturating_add(span.len as usize),
                }
            }
        };
        let digest = match aside::untakable(&record.id, data.as_str(), reading.key) {
            Some(why) => Err(why),
            None => match digester.digest(data.as_str()) {
                Ok(digest) => match digest.missing.first() {
                    Some(pointer) if !record.deleted => Err(format!(
                        "there is no {pointer}, which the stream's schema requires"
                    )),
                    _ => Ok(digest),
                },
                Err(error) => Err(error.to_string()),
            },
        };
        let digest = match digest {
            Ok(digest) => digest,
            Err(why) => {
                let aside = Aside::new(&record.id, record.updated_at, why, data.as_str());
                self.content = self.content.rotate_left(5).wrapping_add(aside.content);
                self.stand_ins.push(aside.stand_in());
                self.aside.push(aside);
                return;
            }
        };
        let [a, b, c, d, e, f, g, h, ..] = digest.hash;
        self.content = self
            .content
            .rotate_left(5)
            .wrapping_add(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
        if let Some(stamp) = record.updated_at {
            if self
                .newest
                .observe(stamp, reading.vendor_now, FUTURE_ALLOWANCE)
            {
                self.from_the_future = Some(record.id.clone());
            }
            self.oldest = Some(self.oldest.map_or(stamp, |oldest| oldest.min(stamp)));
            let (_, watch) = self.order.get_or_insert((stamp, OrderWatch::default()));
            watch.observe(stamp);
        }
        self.records.push(PreparedRecord {
            id: record.id,
            hash: digest.hash,
            updated_at: record.updated_at,
            deleted: record.deleted,
            data,
        });
    }
}
