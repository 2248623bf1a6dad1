//! The judge: compares what was delivered with what the vendor showed.
//!
//! A record is **lost** when the version of it that the API showed at the end of the judged time was visible long
//! enough, within the poller's reach, and was never delivered. Versions that were overwritten before do not count
//! unless [`JudgeOptions::dwell_ms`] says so: a poller sees what is there when it asks. A deletion counts where the
//! record had been delivered before; of one that nobody has seen, nobody need hear, and of one that came back and went
//! again unseen no second time.
//!
//! A line is a **duplicate** when its key was there before, or when its content is that of the line before it of the
//! same record, whatever its key.

mod examine;
mod line;
mod verdict;
pub mod waits;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::BufRead;

use serde_json::value::RawValue;

pub use line::{Delivered, Op};
pub use verdict::{Duplicate, Loss, Tally, Verdict, Wrong};

use crate::ledger::{History, Ledger};
use crate::world::Version;
use examine::{Seen, examine};

/// What the poller promised.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeOptions {
    /// Versions that become visible no later than this after their stamp are within the poller's reach.
    pub overlap_ms: i64,
    /// Until when the poller was at work; none: until the ledger was taken.
    pub end: Option<i64>,
    /// What became visible in the last so many ms before the end need not have been seen.
    pub grace_ms: i64,
    /// Versions that were visible for at least this long must have been delivered although they were overwritten
    /// later.
    pub dwell_ms: Option<i64>,
    /// Delivery is at least once: a line that repeats an earlier one with the same key and content is no duplicate.
    pub repeats_allowed: bool,
    /// Which units carry which collection, where names differ: `connection/stream` or
    /// `connection/stream/partition` -> `vendor/collection`. Without an entry, connection is vendor and stream is
    /// collection.
    pub units: BTreeMap<String, String>,
}

impl Default for JudgeOptions {
    fn default() -> Self {
        JudgeOptions {
            overlap_ms: 120_000,
            end: None,
            grace_ms: 0,
            dwell_ms: None,
            repeats_allowed: false,
            units: BTreeMap::new(),
        }
    }
}

/// Delivered lines that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// Reading failed.
    #[error("cannot read the delivered lines: {0}")]
    Read(#[from] std::io::Error),
    /// A line is not what a sink writes.
    #[error("line {line} is no delivered record: {problem}")]
    Line {
        /// Which one, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
}

/// Judges whole files at once: see [`Judge`] for lines as they come.
///
/// # Errors
/// Lines that cannot be read or are no delivered records.
pub fn judge(
    ledger: &Ledger,
    lines: impl BufRead,
    options: &JudgeOptions,
) -> Result<Verdict, JudgeError> {
    let mut judge = Judge::new(options.clone());
    judge.read(lines)?;
    Ok(judge.verdict(ledger))
}

/// Collects delivered lines, in the order of their delivery, and judges them against a ledger.
#[derive(Debug)]
pub struct Judge {
    options: JudgeOptions,
    lines: u64,
    keys: HashMap<String, u64>,
    /// By `vendor/collection`, then record id.
    units: BTreeMap<String, HashMap<String, Vec<Entry>>>,
    duplicates: BTreeMap<String, Vec<Duplicate>>,
    repeats: u64,
}

/// One delivered line of a record.
#[derive(Debug)]
struct Entry {
    line: u64,
    revision: u64,
    op: Op,
    key: String,
    /// Its key was there before.
    is_duplicate: bool,
    data: Box<RawValue>,
}

impl Judge {
    /// A judge who has seen nothing.
    pub fn new(options: JudgeOptions) -> Self {
        Judge {
            options,
            lines: 0,
            keys: HashMap::new(),
            units: BTreeMap::new(),
            duplicates: BTreeMap::new(),
            repeats: 0,
        }
    }

    /// Takes all lines of one file. The files of one run may be read one by one, in any order of units.
    ///
    /// # Errors
    /// Lines that cannot be read or are no delivered records.
    pub fn read(&mut self, mut lines: impl BufRead) -> Result<(), JudgeError> {
        let mut line = String::new();
        let mut number = 0;
        loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                return Ok(());
            }
            number += 1;
            if line.trim().is_empty() {
                continue;
            }
            let delivered = serde_json::from_str(&line).map_err(|error| JudgeError::Line {
                line: number,
                problem: error.to_string(),
            })?;
            self.take(delivered);
        }
    }

    /// Takes one line.
    pub fn take(&mut self, line: Delivered) {
        self.lines += 1;
        let unit = self.unit(&line);
        let entries = self
            .units
            .entry(unit.clone())
            .or_default()
            .entry(line.id.clone())
            .or_default();
        let first = self.keys.get(&line.key).copied();
        if let Some(first) = first {
            let earlier = entries.iter().find(|entry| entry.line == first);
            let is_repeat = earlier.is_some_and(|earlier| earlier.data.get() == line.data.get());
            if is_repeat && self.options.repeats_allowed {
                self.repeats += 1;
                return;
            }
            let reason = format!("its key was there on line {first}");
            let duplicate = Duplicate::new(self.lines, &line.id, &line.key, reason);
            self.duplicates.entry(unit).or_default().push(duplicate);
        } else {
            self.keys.insert(line.key.clone(), self.lines);
        }
        entries.push(Entry {
            line: self.lines,
            revision: line.revision,
            op: line.op,
            key: line.key,
            is_duplicate: first.is_some(),
            data: line.data,
        });
    }

    fn unit(&self, line: &Delivered) -> String {
        let stream = format!("{}/{}", line.connection, line.stream);
        let partition = line
            .partition
            .as_ref()
            .and_then(|partition| self.options.units.get(&format!("{stream}/{partition}")));
        partition
            .or_else(|| self.options.units.get(&stream))
            .cloned()
            .unwrap_or(stream)
    }

    /// The verdict on what was taken so far.
    pub fn verdict(&self, ledger: &Ledger) -> Verdict {
        let mut verdict = Verdict {
            lines: self.lines,
            repeats: self.repeats,
            ..Verdict::default()
        };
        let nothing = HashMap::new();
        let mut known = HashSet::new();
        for history in &ledger.histories {
            let name = format!("{}/{}", history.vendor, history.collection);
            let delivered = self.units.get(&name).unwrap_or(&nothing);
            let mut tally = Tally {
                duplicated: self.duplicates.get(&name).cloned().unwrap_or_default(),
                ..Tally::default()
            };
            let seen = examine(history, &name, delivered, &mut tally);
            self.weigh(ledger, history, &seen, &mut tally);
            known.insert(name.clone());
            verdict.units.insert(name, tally);
        }
        for (name, delivered) in &self.units {
            if !known.contains(name) {
                let mut tally = Tally {
                    duplicated: self.duplicates.get(name).cloned().unwrap_or_default(),
                    ..Tally::default()
                };
                for (id, entries) in delivered {
                    for entry in entries {
                        let reason = "no vendor has such a collection".to_owned();
                        tally.wrong.push(Wrong::new(entry.line, name, id, reason));
                    }
                }
                verdict.units.insert(name.clone(), tally);
            }
        }
        verdict
    }

    /// Which of the versions that had to be seen were not.
    fn weigh(&self, ledger: &Ledger, history: &History, seen: &Seen, tally: &mut Tally) {
        let end = self.options.end.unwrap_or(ledger.taken_at);
        let horizon = end - self.options.grace_ms;
        for version in history.shown_at(end) {
            if version.visible_from > horizon {
                tally.too_fresh += 1;
            } else {
                self.demand(history, version, seen, tally);
            }
        }
        let Some(dwell) = self.options.dwell_ms else {
            return;
        };
        for version in &history.versions {
            let Some(until) = version.visible_until.filter(|until| *until <= end) else {
                continue;
            };
            let from = version
                .visible_from
                .max(history.first_call.unwrap_or(i64::MAX));
            if until.saturating_sub(from) >= dwell {
                self.demand(history, version, seen, tally);
            }
        }
    }

    fn demand(&self, history: &History, version: &Version, seen: &Seen, tally: &mut Tally) {
        let was_seen = seen.versions.contains(&(version.record, version.revision));
        let is_silent = !history.tombstones
            || seen
                .earliest
                .get(&version.record)
                .is_none_or(|earliest| *earliest > version.revision);
        // It came back and went again while nobody looked: gone is gone.
        let is_gone = seen.gone.contains(&version.record);
        if version.deleted && !was_seen && (is_silent || is_gone) {
            return;
        }
        if !was_seen && !self.is_in_reach(history, version) {
            tally.out_of_reach += 1;
            return;
        }
        tally.visible += 1;
        if was_seen {
            tally.delivered += 1;
        } else {
            tally.lost.push(Loss {
                id: history.renderer.id(version.record),
                revision: version.revision,
                deleted: version.deleted,
                stamp: version.stamp,
                visible_from: version.visible_from,
                delivered_revision: seen.latest.get(&version.record).copied(),
            });
        }
    }

    /// Whether a poller that keeps its promise finds this version.
    fn is_in_reach(&self, history: &History, version: &Version) -> bool {
        let at_first_sight = history
            .first_call
            .is_none_or(|first_call| version.visible_from <= first_call);
        let reach = version.visible_from - self.options.overlap_ms;
        let reach = reach.div_euclid(history.granularity_ms) * history.granularity_ms;
        !history.found_by_stamp || at_first_sight || version.stamp >= reach
    }
}

#[cfg(test)]
mod tests;
