//! `weir records`: what is remembered of the records of a unit.

use serde::{Deserialize, Serialize};

use super::text::{moment, table};
use super::{Failure, Selection};
use crate::control::Reply;
use crate::host::Host;
use crate::store::RecordRow;

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Records {
    units: Vec<UnitRecords>,
}

#[derive(Debug, Serialize, Deserialize)]
struct UnitRecords {
    unit: String,
    /// How many are known.
    count: u64,
    /// The ones asked for; empty when only a count was.
    records: Vec<RecordRow>,
    /// There are more after the last one.
    more: bool,
}

pub(super) fn answer(
    host: &Host,
    unit: Option<&str>,
    limit: usize,
    after: Option<&str>,
) -> Result<Reply, Failure> {
    let mut units = Vec::new();
    for row in Selection::parse(unit).units(host)? {
        let mut records = Vec::new();
        if unit.is_some() {
            records = host.store.records(row.id, after, limit.saturating_add(1))?;
        }
        let more = records.len() > limit;
        records.truncate(limit);
        units.push(UnitRecords {
            unit: row.key.to_string(),
            count: host.store.record_count(row.id)?,
            records,
            more,
        });
    }
    Ok(Reply::done(Records { units }))
}

pub(super) fn render(answer: &Records) -> String {
    let mut text = String::new();
    if answer.units.is_empty() {
        return "No unit is known yet: run `weir sync` or `weir run` first.\n".to_owned();
    }
    for unit in &answer.units {
        text.push_str(&format!("{}: {} records\n", unit.unit, unit.count));
        if unit.records.is_empty() {
            continue;
        }
        let rows: Vec<Vec<String>> = unit
            .records
            .iter()
            .map(|record| {
                vec![
                    record.id.clone(),
                    record.revision.to_string(),
                    moment(record.first_seen),
                    moment(record.last_changed),
                    if record.deleted {
                        "deleted".to_owned()
                    } else {
                        String::new()
                    },
                ]
            })
            .collect();
        text.push_str(&table(
            &["id", "revision", "first seen", "last changed", ""],
            &rows,
        ));
        if unit.more
            && let Some(last) = unit.records.last()
        {
            text.push_str(&format!("more: --after {}\n", last.id));
        }
    }
    text
}
