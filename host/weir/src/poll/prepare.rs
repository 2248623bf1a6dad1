//! From an answer to records that are ready for dedup: the connector's reading of it, the schema gate and the
//! content hash. CPU work alone, so it runs on the wasm workers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use weir_rules::canonical::Digester;
use weir_rules::model::{Class, Fault, Scope, Timestamp};
use weir_rules::walk::PageFacts;
use weir_rules::window::{FUTURE_ALLOWANCE, Newest};
use weir_runtime::contract::{Body, Data, Page, Response, Task};
use weir_runtime::{CallError, Connector};

use crate::store::{PreparedRecord, RecordData};

/// One page, read, checked and hashed.
pub(super) struct Prepared {
    /// What the connector made of the answer, without its records.
    pub(super) page: Page,
    /// The records, in the order of the answer.
    pub(super) records: Vec<PreparedRecord>,
    /// Changes when any record does.
    pub(super) content: u64,
    /// The newest stamp.
    pub(super) newest: Newest,
    /// The id of the first record whose stamp lies in the future.
    pub(super) from_the_future: Option<String>,
    /// The oldest stamp.
    pub(super) oldest: Option<Timestamp>,
}

impl Prepared {
    /// What the walk needs to know.
    pub(super) fn facts(&self) -> PageFacts<'_> {
        PageFacts {
            ids: self
                .records
                .iter()
                .map(|record| record.id.as_str())
                .collect(),
            content: self.content,
            newest: self.newest,
            oldest: self.oldest,
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
///
/// A page of which one record breaks the stream's schema is refused whole: what else is wrong with it can't be
/// known.
pub(super) fn prepare(
    connector: &Connector,
    task: &Task,
    step: Option<&str>,
    response: Response,
    digester: &mut Digester,
    vendor_now: Timestamp,
) -> Result<Result<Prepared, Fault>, CallError> {
    let mut page = match connector.read_response(task, step, &response)? {
        Ok(page) => page,
        Err(fault) => return Ok(Err(fault.into())),
    };
    let text: Arc<str> = match response.body {
        Body::Text(text) => text.into(),
        Body::Bytes(_) => "".into(),
    };
    let records = std::mem::take(&mut page.records);
    let mut prepared = Prepared {
        page,
        records: Vec::with_capacity(records.len()),
        content: 0,
        newest: Newest::default(),
        from_the_future: None,
        oldest: None,
    };
    for record in records {
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
        let digest = match digester.digest(data.as_str()) {
            Ok(digest) => digest,
            Err(error) => {
                return Ok(Err(broken(format!("record {}: {error}", record.id))));
            }
        };
        if let Some(pointer) = digest.missing.first()
            && !record.deleted
        {
            return Ok(Err(broken(format!(
                "record {} has no {pointer}, which the stream's schema requires",
                record.id
            ))));
        }
        let [a, b, c, d, e, f, g, h, ..] = digest.hash;
        prepared.content = prepared
            .content
            .rotate_left(5)
            .wrapping_add(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
        if let Some(stamp) = record.updated_at {
            if prepared.newest.observe(stamp, vendor_now, FUTURE_ALLOWANCE) {
                prepared.from_the_future = Some(record.id.clone());
            }
            prepared.oldest = Some(prepared.oldest.map_or(stamp, |oldest| oldest.min(stamp)));
        }
        prepared.records.push(PreparedRecord {
            id: record.id,
            hash: digest.hash,
            updated_at: record.updated_at,
            deleted: record.deleted,
            data,
        });
    }
    Ok(Ok(prepared))
}

fn broken(message: String) -> Fault {
    Fault {
        class: Class::Incomplete,
        scope: Scope::Unit,
        code: "schema".to_owned(),
        message,
        wait: None,
        page_size: None,
        limits: Vec::new(),
    }
}
