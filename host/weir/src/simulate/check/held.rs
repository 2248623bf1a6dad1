//! What a host has stored of a unit's records, and what the sinks have of it: dedup done once more, by other means.
//!
//! The host tells two contents apart by a hash of their significant fields. The checker knows from the vendor's own
//! books which version a record is, so it needs no hash.

use std::collections::{BTreeMap, HashMap};

use weir_tests::world::Version;

use super::truth::Truth;
use crate::store::{Op, OutboxEntry, PreparedRecord};

/// The records of one unit.
#[derive(Default)]
pub(super) struct Holding {
    records: HashMap<u64, Held>,
    /// Versions that the vendor shows and the host does not have, by record.
    pub(super) unmet: BTreeMap<u64, usize>,
    /// How many of the versions that became visible have been looked at.
    seen: usize,
    /// The newest stamp that was stored.
    pub(super) newest: Option<i64>,
}

/// One record.
#[derive(Clone, Debug)]
struct Held {
    /// The version that was stored last.
    last: Content,
    /// The version behind each delivery, from the first.
    news: Vec<(Content, Op)>,
    /// How far each sink has come.
    taken: BTreeMap<String, u64>,
}

/// What tells one version from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    revision: u32,
    deleted: bool,
    /// Versions with the same content have the same.
    name: u64,
}

impl Content {
    fn of(truth: &Truth, version: &Version) -> Content {
        Content {
            revision: version.revision,
            deleted: version.deleted,
            name: truth.renderer.content(version),
        }
    }

    /// Nobody need be woken.
    fn is_same(self, other: Content) -> bool {
        (self.deleted && other.deleted)
            || (self.deleted == other.deleted && self.name == other.name)
    }
}

/// What a page's records were, counted as the host counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sorted {
    pub(super) new: u64,
    pub(super) changed: u64,
    pub(super) unchanged: u64,
    pub(super) deleted: u64,
}

impl Holding {
    /// What has become visible since the last time is missing until it is stored.
    pub(super) fn look(&mut self, truth: &Truth) {
        for index in truth.shown_from(self.seen) {
            self.seen += 1;
            let Some(version) = truth.version(*index) else {
                continue;
            };
            let gone = version.deleted && !truth.tombstones();
            if gone || self.has(truth, version) {
                self.unmet.remove(&version.record);
            } else {
                self.unmet.insert(version.record, *index);
            }
        }
    }

    /// The host has this content of the record, whatever its revision says.
    pub(super) fn has(&self, truth: &Truth, version: &Version) -> bool {
        let held = self.records.get(&version.record);
        held.is_some_and(|held| held.last.is_same(Content::of(truth, version)))
    }

    /// The record has been stored at least once.
    pub(super) fn knows(&self, record: u64) -> bool {
        self.records.contains_key(&record)
    }

    /// A page's record has been stored; what is wrong with that, if anything is.
    pub(super) fn store(
        &mut self,
        truth: &Truth,
        record: &PreparedRecord,
        sorted: &mut Sorted,
    ) -> Result<(), String> {
        let data = record.data.as_str();
        let version = identify(truth, &record.id, data)?;
        if version.deleted != record.deleted {
            return Err(format!(
                "record {} is deleted: {}, and was stored as deleted: {}",
                record.id, version.deleted, record.deleted
            ));
        }
        let now = Content::of(truth, version);
        self.newest = self.newest.max(Some(version.stamp));
        let satisfied = self
            .unmet
            .get(&version.record)
            .and_then(|index| truth.version(*index))
            .is_some_and(|wanted| {
                wanted.revision <= version.revision || now.is_same(Content::of(truth, wanted))
            });
        if satisfied {
            self.unmet.remove(&version.record);
        }
        let op = match self.records.get_mut(&version.record) {
            Some(held) if held.last.is_same(now) => {
                sorted.unchanged += 1;
                held.last.revision = now.revision;
                return Ok(());
            }
            Some(held) if now.revision < held.last.revision => {
                return Err(format!(
                    "record {} was stored at the vendor's revision {} after {}",
                    record.id, now.revision, held.last.revision
                ));
            }
            Some(_) if now.deleted => Op::Delete,
            Some(held) if held.last.deleted => Op::Insert,
            Some(_) => Op::Update,
            None if now.deleted => Op::Delete,
            None => Op::Insert,
        };
        match op {
            Op::Insert => sorted.new += 1,
            Op::Update => sorted.changed += 1,
            Op::Delete => sorted.deleted += 1,
        }
        // A vendor in trouble leaves out the stamp; of a deletion nothing but the id is needed.
        let sent = truth.renderer.render(version);
        let is_damaged = now.deleted && sent.without_stamp().matches(data);
        if !is_damaged && !sent.matches(data) {
            return Err(format!(
                "record {} was stored with other bytes than the vendor sent: {data}",
                record.id
            ));
        }
        let held = self.records.entry(version.record).or_insert_with(|| Held {
            last: now,
            news: Vec::new(),
            taken: BTreeMap::new(),
        });
        held.last = now;
        held.news.push((now, op));
        Ok(())
    }

    /// A sink has taken an entry. `again`: it may have taken it before.
    pub(super) fn take(
        &mut self,
        truth: &Truth,
        sink: &str,
        entry: &OutboxEntry,
        again: bool,
    ) -> Result<(), String> {
        let (id, revision) = (&entry.id, entry.revision);
        let version = identify(truth, id, entry.data.as_str())?;
        let content = Content::of(truth, version);
        let held = self
            .records
            .get_mut(&version.record)
            .ok_or_else(|| format!("record {id} was delivered and had never been stored"))?;
        let stored = usize::try_from(revision)
            .ok()
            .and_then(|revision| held.news.get(revision.checked_sub(1)?));
        match stored {
            Some((known, op)) if known.revision == content.revision && *op == entry.op => {}
            Some((known, op)) => {
                return Err(format!(
                    "delivery {id}/{revision} is {op:?} of the vendor's revision {}, and {:?} of {} went out",
                    known.revision, entry.op, content.revision
                ));
            }
            None => {
                return Err(format!(
                    "delivery {id}/{revision} went out, and the record has {} changes",
                    held.news.len()
                ));
            }
        }
        let taken = held.taken.entry(sink.to_owned()).or_default();
        if revision <= *taken && !again {
            return Err(format!(
                "delivery {id}/{revision} went to sink {sink} twice, and nothing had failed"
            ));
        }
        if revision > *taken + 1 {
            return Err(format!(
                "delivery {id}/{revision} went to sink {sink} after {id}/{taken}"
            ));
        }
        *taken = revision.max(*taken);
        Ok(())
    }

    /// A change that was stored and that a sink never got: its record and revision.
    pub(super) fn undelivered(&self, truth: &Truth, sink: &str) -> Option<String> {
        let mut missing: Vec<_> = self
            .records
            .iter()
            .filter(|(_, held)| held.taken.get(sink).copied().unwrap_or(0) < held.news.len() as u64)
            .map(|(record, held)| (*record, held.news.len()))
            .collect();
        missing.sort_unstable();
        let (record, revision) = missing.first()?;
        Some(format!("{}/{revision}", truth.renderer.id(*record)))
    }
}

/// The version that a text is, by the revision that it tells of itself.
pub(super) fn identify<'a>(truth: &'a Truth, id: &str, data: &str) -> Result<&'a Version, String> {
    let revision = data
        .split_once("\"rev\":")
        .and_then(|(_, rest)| rest.split_once(','))
        .and_then(|(number, _)| number.trim().parse::<u32>().ok());
    truth
        .renderer
        .number(id)
        .zip(revision)
        .and_then(|(record, revision)| truth.find(record, revision))
        .ok_or_else(|| {
            format!("record {id} was stored as something that the vendor never had: {data}")
        })
}
