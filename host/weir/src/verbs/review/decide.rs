//! What a person decides: once more, or given up.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_rules::model::{CursorKind, Reason, Timestamp};

use super::{Entry, Failure, find, letters, settled};
use crate::control::{Reply, Said};
use crate::host::Host;
use crate::poll::{Outcome, Report};
use crate::store::{
    Conclusion, LetterId, ReviewChange, ReviewEntry, ReviewId, ReviewKind, UnitRow,
};
use crate::verbs::{Caller, Selection};

/// The answer of `retry`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::verbs) struct Retried {
    pub(super) units: Vec<UnitRetried>,
    /// Connections that are not called before their user has signed in.
    pub(super) need_sign_in: BTreeSet<String>,
    /// What became of a dead letter.
    pub(super) letter: Option<String>,
}

/// What became of one unit.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UnitRetried {
    pub(super) unit: String,
    pub(super) outcome: Outcome,
    pub(super) message: Option<String>,
    /// Records that were new or changed.
    pub(super) news: u64,
    /// When it is due next.
    pub(super) due: Option<Timestamp>,
    /// What of it still waits for review.
    pub(super) left: u64,
}

/// The answer of `drop`.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::verbs) struct Dropped {
    pub(super) entry: Entry,
}

/// `weir review retry ID|CONNECTION[/STREAM[/PARTITION]]`.
pub(in crate::verbs) async fn retried(
    host: &Arc<Host>,
    what: &str,
    caller: &Caller,
) -> Result<Reply, Failure> {
    if let Ok(letter) = what.parse::<LetterId>() {
        let told = letters::retry(host, &letter).await?;
        return Ok(Reply::done(Retried {
            letter: Some(format!("{letter}: {told}")),
            ..Retried::default()
        }));
    }
    let (units, reason) = match what.parse::<ReviewId>() {
        Ok(id) => {
            let entry = find(host, what)?;
            let Some(unit) = host.store.unit(id.unit)? else {
                return Err(Failure::Unknown(format!("{} is no more", entry.key)));
            };
            let reason = reason_for(host, &entry, &unit);
            (vec![unit], reason)
        }
        Err(_) => {
            let selection = Selection::parse(Some(what));
            let mut units = selection.units(host)?;
            let waits: BTreeSet<_> = host
                .store
                .reviews(None, usize::MAX)?
                .into_iter()
                .map(|entry| entry.id.unit)
                .collect();
            units.retain(|unit| unit.state.parked.is_some() || waits.contains(&unit.id));
            (units, Reason::SyncNow)
        }
    };
    let mut answer = Retried::default();
    let mut asked = Vec::new();
    for unit in units {
        if host.sign_in.needed(&unit.key.connection).is_some() {
            answer.need_sign_in.insert(unit.key.connection.clone());
            continue;
        }
        bring_back(host, &unit).await?;
        let name = unit.key.to_string();
        // A caller who left does not need to hear it.
        let _ = caller.progress.send(Said::Passing(name)).await;
        let (_, report) = host.scheduler.ask(unit.id, reason);
        asked.push((unit, report));
    }
    for (unit, report) in asked {
        let report = tokio::select! {
            report = report => report.unwrap_or_else(|_| not_polled(host, &unit)),
            () = host.stop.stopping() => not_polled(host, &unit),
        };
        let left = host.store.reviews(Some(unit.id), usize::MAX)?;
        answer.units.push(UnitRetried {
            unit: unit.key.to_string(),
            outcome: report.outcome,
            message: report.message,
            news: report.tally.new + report.tally.changed + report.tally.deleted,
            due: report.due,
            left: left.iter().filter(|entry| !entry.dropped).count() as u64,
        });
    }
    let waits = answer
        .units
        .iter()
        .any(|unit| unit.left > 0 || !unit.outcome.is_good());
    let exit = if waits || !answer.need_sign_in.is_empty() {
        3
    } else {
        0
    };
    Ok(Reply::with_exit(exit, answer))
}

fn not_polled(host: &Host, unit: &UnitRow) -> Report {
    let why = match host.connections.get(&unit.key.connection) {
        Some(_) => "it is not polled any more",
        None => "its connection is not ready: `weir check` says why",
    };
    Report {
        message: Some(why.to_owned()),
        ..Report::default()
    }
}

/// How a record is looked at again: where the next poll does not come by it, everything is read again.
fn reason_for(host: &Host, entry: &ReviewEntry, unit: &UnitRow) -> Reason {
    if !matches!(entry.id.kind, ReviewKind::Record | ReviewKind::Skipped) {
        return Reason::SyncNow;
    }
    let connection = host.connections.get(&unit.key.connection);
    let stream =
        connection.and_then(|connection| connection.streams.get(&unit.key.stream).cloned());
    let Some(stream) = stream else {
        return Reason::SyncNow;
    };
    let settings = &stream.settings;
    let stamp = entry.record.as_ref().and_then(|record| record.updated_at);
    let read_next = match (settings.stream.cursor, unit.state.watermark, stamp) {
        (CursorKind::Snapshot, ..) => true,
        (CursorKind::Timestamp, Some(watermark), Some(stamp)) => {
            stamp >= watermark.saturating_sub_unsigned(unit.state.overlap(settings))
        }
        _ => false,
    };
    if read_next {
        Reason::SyncNow
    } else {
        Reason::Resync
    }
}

/// The unit is polled again: it is not parked, its faults are forgotten, and so are its validators, since what is to be
/// looked at again may not have changed.
async fn bring_back(host: &Host, unit: &UnitRow) -> Result<(), Failure> {
    let now = host.clock.wall();
    let settled_now = host
        .store
        .reviews(Some(unit.id), usize::MAX)?
        .into_iter()
        .filter(|entry| !matches!(entry.id.kind, ReviewKind::Record | ReviewKind::Skipped))
        .map(|entry| (entry.id, None))
        .collect();
    let change = host.store.update_unit(
        unit.id,
        Box::new(move |state| Conclusion {
            state: state.retry(),
            due: Some(Some(now)),
            // No walk has this number.
            keep_validators_of: Some(u64::MAX),
            review: settled_now,
            ..Conclusion::default()
        }),
    );
    settled(change).await
}

/// `weir review drop ID`.
pub(in crate::verbs) async fn dropped(host: &Arc<Host>, id: &str) -> Result<Reply, Failure> {
    if let Ok(letter) = id.parse::<LetterId>() {
        let entry = letters::drop(host, &letter).await?;
        return Ok(Reply::done(Dropped { entry }));
    }
    let mut entry = find(host, id)?;
    let key = entry.id;
    match key.kind {
        ReviewKind::SignIn => {
            return Err(Failure::Refused(format!(
                "{id} cannot be given up: sign in again, or set `pause = true` for connection {}",
                entry.key.connection
            )));
        }
        ReviewKind::Parked => {
            let change = host.store.update_unit(
                key.unit,
                Box::new(move |mut state| {
                    if let Some(parked) = &mut state.parked {
                        parked.given_up = true;
                    }
                    Conclusion {
                        state,
                        review: vec![(key, None)],
                        ..Conclusion::default()
                    }
                }),
            );
            settled(change).await?;
        }
        ReviewKind::Record => {
            entry.dropped = true;
            settled(host.store.set_reviews(vec![forgotten(&entry)])).await?;
        }
        ReviewKind::Unknown | ReviewKind::Refused | ReviewKind::Skipped | ReviewKind::Expiring => {
            settled(host.store.set_reviews(vec![(key, None)])).await?;
        }
    }
    let entry = Entry::of(entry);
    Ok(Reply::done(Dropped { entry }))
}

/// What is kept of a record that was given up, so that it does not wait again: not its text.
fn forgotten(entry: &ReviewEntry) -> ReviewChange {
    let mut kept = entry.clone();
    if let Some(record) = &mut kept.record {
        record.text.clear();
    }
    (kept.id, Some(Box::new(kept)))
}
