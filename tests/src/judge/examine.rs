//! Looks at every delivered line of a collection: is it what the vendor showed, and in its place?

use std::collections::{HashMap, HashSet};

use super::Entry;
use super::line::{Op, version_of};
use super::verdict::{Duplicate, Tally, Wrong};
use crate::ledger::History;
use crate::world::Version;

/// What was delivered of one collection.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Versions: the record and its revision.
    pub(super) versions: HashSet<(u64, u32)>,
    /// The first version of each record, in the vendor's order.
    pub(super) earliest: HashMap<u64, u32>,
    /// The version of each record that was delivered last.
    pub(super) latest: HashMap<u64, u32>,
    /// Records whose last delivery was a deletion.
    pub(super) gone: HashSet<u64>,
}

/// The line of a record that counts as the one before.
#[derive(Clone, Copy)]
struct Last {
    line: u64,
    revision: u64,
    content: u32,
}

/// Fills the tally with all that is wrong with the lines of a collection.
pub(super) fn examine(
    history: &History,
    unit: &str,
    delivered: &HashMap<String, Vec<Entry>>,
    tally: &mut Tally,
) -> Seen {
    let versions: HashMap<(u64, u32), &Version> = history
        .versions
        .iter()
        .map(|version| ((version.record, version.revision), version))
        .collect();
    let mut seen = Seen::default();
    for (id, entries) in delivered {
        let mut last: Option<Last> = None;
        for entry in entries {
            tally.lines += 1;
            tally.updates += u64::from(entry.op == Op::Update);
            let version = match identify(history, &versions, id, entry) {
                Ok(version) => version,
                Err(reason) => {
                    tally.wrong.push(Wrong::new(entry.line, unit, id, reason));
                    continue;
                }
            };
            if entry.is_duplicate {
                // Whoever goes by keys ignores it, so it delivers nothing.
                continue;
            }
            if let Some(reason) = wrong_op(history, version, entry, last) {
                tally.wrong.push(Wrong::new(entry.line, unit, id, reason));
            }
            match last {
                Some(last) if last.content == version.revision => {
                    let reason = format!("the content of line {}", last.line);
                    tally
                        .duplicated
                        .push(Duplicate::new(entry.line, id, &entry.key, reason));
                }
                Some(last)
                    if entry.revision <= last.revision || version.revision < last.content =>
                {
                    let reason = format!(
                        "revision {} with content {} after revision {} with content {}",
                        entry.revision, version.revision, last.revision, last.content
                    );
                    tally
                        .out_of_order
                        .push(Wrong::new(entry.line, unit, id, reason));
                }
                _ => {}
            }
            last = Some(Last {
                line: entry.line,
                revision: entry.revision,
                content: version.revision,
            });
            seen.add(version);
        }
    }
    // The order of a hash map means nothing; the order of lines does.
    tally.duplicated.sort_by_key(|duplicate| duplicate.line);
    tally.wrong.sort_by_key(|wrong| wrong.line);
    tally.out_of_order.sort_by_key(|wrong| wrong.line);
    seen
}

impl Seen {
    fn add(&mut self, version: &Version) {
        let (record, revision) = (version.record, version.revision);
        self.versions.insert((record, revision));
        let earliest = self.earliest.entry(record).or_insert(revision);
        *earliest = revision.min(*earliest);
        self.latest.insert(record, revision);
        if version.deleted {
            self.gone.insert(record);
        } else {
            self.gone.remove(&record);
        }
    }
}

/// The version that a line carries, byte for byte.
fn identify<'a>(
    history: &History,
    versions: &HashMap<(u64, u32), &'a Version>,
    id: &str,
    entry: &Entry,
) -> Result<&'a Version, String> {
    let record = history.renderer.number(id);
    let version = record
        .zip(version_of(&entry.data))
        .and_then(|key| versions.get(&key))
        .ok_or("the vendor never had such a version")?;
    if history.renderer.render(version).matches(entry.data.get()) {
        Ok(version)
    } else {
        Err(format!("not the bytes of version {}", version.revision))
    }
}

/// Why the line's op is not what happened to the record, if it isn't.
fn wrong_op(
    history: &History,
    version: &Version,
    entry: &Entry,
    last: Option<Last>,
) -> Option<String> {
    if (entry.op == Op::Delete) != version.deleted {
        let deleted = version.deleted;
        return Some(format!(
            "{:?} of a record whose deleted is {deleted}",
            entry.op
        ));
    }
    match (entry.op, last) {
        (Op::Update, None) => Some("an update of a record that was never inserted".into()),
        // An id that was deleted, seen or not, may be inserted anew.
        (Op::Insert, Some(last)) if !was_deleted_since(history, version.record, last.content) => {
            Some("an insert of a record that is there".into())
        }
        _ => None,
    }
}

fn was_deleted_since(history: &History, record: u64, content: u32) -> bool {
    history
        .versions
        .iter()
        .any(|version| version.record == record && version.revision >= content && version.deleted)
}
