//! What happened lately, from the log of polls: it tells of a run that is over as well as of one that goes on.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Timestamp};

use crate::store::{PollRow, Store, StoreError, UnitId};

/// How far back it reaches, in ms.
const REACH: u64 = 86_400_000;
/// Rows that are read at most; a busy host's day is cut shorter.
const ROWS: usize = 20_000;
/// What counts as just now, in ms.
const HOUR: i64 = 3_600_000;

/// The polls of the last day, summed up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recent {
    /// From when on.
    pub since: Timestamp,
    /// Polls by outcome.
    pub polls: BTreeMap<String, u64>,
    /// HTTP requests.
    pub calls: u64,
    /// Of them: answered with 304.
    pub not_modified: u64,
    /// Records that were new.
    pub new: u64,
    /// Records that had changed.
    pub changed: u64,
    /// Records that were deleted.
    pub deleted: u64,
    /// New and changed records that every poll had missed, and a second look found.
    #[serde(default)]
    pub late: u64,
    /// What went wrong or was held back, the latest first.
    pub trouble: Vec<Trouble>,
}

/// What one connection had trouble with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trouble {
    /// The connection.
    pub connection: String,
    /// The class of the fault; none where a limit or the sinks held polls back, or the vendor's answers were not whole.
    pub class: Option<Class>,
    /// How the polls ended: `failed`, `waiting`, `parked`, `needs-sign-in`, `incomplete`, `truncated`.
    pub outcome: String,
    /// How often.
    pub times: u64,
    /// Of them: tried again by themselves within the last hour.
    pub retries_in_hour: u64,
    /// When it came first.
    pub first: Timestamp,
    /// When it came last.
    pub last: Timestamp,
    /// What was said last.
    pub message: String,
    /// Units that have not been polled well since.
    #[serde(default)]
    pub open: u64,
    /// Since when all of its units have been polled well again; none while there are such units.
    #[serde(default)]
    pub over: Option<Timestamp>,
}

/// What is told together: connection, class and outcome.
type Kind = (String, Option<Class>, String);

/// What the log is read into: newest first.
#[derive(Default)]
struct Reading {
    trouble: BTreeMap<Kind, (Trouble, HashSet<UnitId>)>,
    /// By unit: the first poll that went well after what is read next.
    well: HashMap<UnitId, Timestamp>,
}

impl Recent {
    /// Reads the log back from `now`.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn read(store: &dyn Store, now: Timestamp) -> Result<Recent, StoreError> {
        let mut recent = Recent {
            since: now.saturating_sub_unsigned(REACH),
            ..Recent::default()
        };
        let mut reading = Reading::default();
        let (mut rows, mut oldest) = (0, now);
        store.each_poll(None, &mut |row| {
            if row.ended < recent.since || rows == ROWS {
                return false;
            }
            rows += 1;
            oldest = row.ended;
            recent.add(&row, now, &mut reading);
            true
        })?;
        if rows == ROWS {
            recent.since = oldest;
        }
        let trouble = reading.trouble.into_values();
        recent.trouble = trouble.map(|(trouble, _)| trouble).collect();
        recent
            .trouble
            .sort_by_key(|trouble| std::cmp::Reverse(trouble.last));
        Ok(recent)
    }

    fn add(&mut self, row: &PollRow, now: Timestamp, reading: &mut Reading) {
        *self.polls.entry(row.outcome.clone()).or_default() += row.polls;
        self.calls += row.tally.calls;
        self.not_modified += row.tally.not_modified;
        self.new += row.tally.new;
        self.changed += row.tally.changed;
        self.deleted += row.tally.deleted;
        self.late += row.late();
        if row.is_good() {
            reading.well.insert(row.unit, row.started);
            return;
        }
        if row.outcome == "stopped" {
            return;
        }
        let key = (row.key.connection.clone(), row.class, row.outcome.clone());
        // Rows come newest first, so the first one has the last word.
        let (entry, units) = reading.trouble.entry(key).or_insert_with(|| {
            let trouble = Trouble {
                connection: row.key.connection.clone(),
                class: row.class,
                outcome: row.outcome.clone(),
                times: 0,
                retries_in_hour: 0,
                first: row.ended,
                last: row.ended,
                message: row.message.clone().unwrap_or_default(),
                open: 0,
                over: None,
            };
            (trouble, HashSet::new())
        });
        if units.insert(row.unit) {
            match reading.well.get(&row.unit) {
                Some(well) if entry.open == 0 => entry.over = entry.over.max(Some(*well)),
                Some(_) => {}
                None => {
                    entry.open += 1;
                    entry.over = None;
                }
            }
        }
        entry.times += row.polls;
        entry.first = entry.first.min(row.ended);
        entry.last = entry.last.max(row.ended);
        if row.is_retried() && now.saturating_sub(row.ended) <= HOUR {
            entry.retries_in_hour += row.polls;
        }
    }

    /// Faults that were tried again within the last hour, by connector and class. `connector` names a connection's.
    pub fn retries(
        &self,
        connector: impl Fn(&str) -> Option<String>,
    ) -> BTreeMap<(String, Class), u64> {
        let mut retries = BTreeMap::new();
        for trouble in &self.trouble {
            let connector = connector(&trouble.connection);
            if let (Some(connector), Some(class)) = (connector, trouble.class) {
                *retries.entry((connector, class)).or_default() += trouble.retries_in_hour;
            }
        }
        retries
    }
}

#[cfg(test)]
mod tests {
    use weir_rules::model::{Reason, Window};
    use weir_rules::walk::Tally;

    use super::*;
    use crate::store::UnitKey;

    fn row(unit: u64, at: Timestamp, outcome: &str) -> PollRow {
        PollRow {
            unit: UnitId(unit),
            key: UnitKey {
                connection: "shop".into(),
                stream: unit.to_string(),
                partition: None,
            },
            reason: Reason::Schedule,
            window: Window {
                since: None,
                until: at,
            },
            intended: None,
            started: at,
            ended: at,
            outcome: outcome.into(),
            class: (outcome == "failed").then_some(Class::Temporary),
            code: None,
            message: Some(format!("at {at}")),
            tally: Tally::default(),
            interval: 0,
            why: String::new(),
            polls: 1,
        }
    }

    /// Of rows in the order in which they were written.
    fn trouble(rows: &[PollRow]) -> Vec<Trouble> {
        let (mut recent, mut reading) = (Recent::default(), Reading::default());
        for row in rows.iter().rev() {
            recent.add(row, 1_000, &mut reading);
        }
        reading.trouble.into_values().map(|(one, _)| one).collect()
    }

    #[test]
    fn trouble_is_over_when_all_its_units_have_been_polled_well() {
        let mut rows = vec![row(1, 1, "failed"), row(2, 2, "failed"), row(1, 3, "ok")];
        let told = &trouble(&rows)[0];
        assert_eq!((told.open, told.over), (1, None), "the second one fails");
        rows.extend([row(2, 4, "stopped"), row(2, 5, "ok"), row(1, 6, "ok")]);
        let told = &trouble(&rows)[0];
        assert_eq!((told.times, told.first, told.last), (2, 1, 2));
        assert_eq!((told.open, told.over), (0, Some(5)));
        assert_eq!(told.message, "at 2");
        rows.push(row(1, 7, "failed"));
        let told = &trouble(&rows)[0];
        assert_eq!((told.open, told.over), (1, None), "it has come back");
    }
}
