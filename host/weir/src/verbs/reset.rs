//! `weir reset`: a unit begins anew.
//!
//! Promises:
//! - Afterwards the unit is as before its first poll: its position is forgotten, and the next poll walks from its start.
//!   What was learnt of the vendor stays, and so do the holes in the data until they have been read.
//! - Without more, what is remembered of its records stays: the walk delivers what is new or has changed, and nothing
//!   else. With `--records` that is forgotten too: every record is delivered anew as an insert, under its next revision.
//!   No key is ever delivered twice with other content.
//! - A poll that is under way ends after its current page, before anything is changed.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text::count;
use super::{Caller, Failure, Selection};
use crate::control::{Reply, Said};
use crate::host::Host;
use crate::poll::Report;
use crate::schedule::{self, Held};
use crate::store::{Conclusion, Durable, StoreError, UnitRow};

/// How often it is looked whether a poll has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The answer: what will be done, or has been.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reset {
    units: Vec<UnitReset>,
    /// What is remembered of the records is forgotten too.
    records: bool,
    /// It has been done.
    done: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct UnitReset {
    unit: String,
    /// Records that are remembered of it.
    known: u64,
}

/// `plan`: only says what would be done.
pub(super) async fn answer(
    host: &Arc<Host>,
    unit: &str,
    records: bool,
    plan: bool,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let mut answer = Reset {
        units: Vec::new(),
        records,
        done: !plan,
    };
    for unit in Selection::parse(Some(unit)).units(host)? {
        answer.units.push(UnitReset {
            unit: unit.key.to_string(),
            known: host.store.record_count(unit.id)?,
        });
        if !plan {
            reset(host, &unit, records, caller).await?;
        }
    }
    Ok(Reply::done(answer))
}

async fn reset(
    host: &Arc<Host>,
    unit: &UnitRow,
    records: bool,
    caller: &Caller,
) -> Result<(), Failure> {
    let mut told = false;
    let held = loop {
        let held = host.scheduler.queue().hold(unit.id, host.clock.monotonic());
        if held != Held::Polled {
            break held;
        }
        host.scheduler.recall(unit.id, true);
        if !std::mem::replace(&mut told, true) {
            let text = format!("{}: waits for its poll to end", unit.key);
            // A caller who left does not need to hear it.
            let _ = caller.progress.send(Said::Line(text)).await;
        }
        tokio::time::sleep(LOOK).await;
    };
    let done = forget(host, unit, records).await;
    host.scheduler.recall(unit.id, false);
    if let Held::Here { ticket, due } = held {
        let now = schedule::on_monotonic(host, host.clock.wall());
        let due = match done {
            Ok(()) if caller.running && is_called(host, unit) => Some(now),
            Ok(()) => None,
            Err(_) => due,
        };
        let report = Report {
            unit: Some(unit.key.clone()),
            message: Some("it was reset".to_owned()),
            ..Report::default()
        };
        host.scheduler
            .queue()
            .finished(unit.id, ticket, (due, None), &report);
        host.scheduler.wake();
    }
    Ok(done?)
}

/// Its connection is called at all.
fn is_called(host: &Host, unit: &UnitRow) -> bool {
    let name = &unit.key.connection;
    let paused = host
        .config
        .connections
        .get(name)
        .is_none_or(|settings| settings.pause);
    !paused && host.sign_in.needed(name).is_none()
}

async fn forget(host: &Host, unit: &UnitRow, records: bool) -> Result<(), StoreError> {
    let now = host.clock.wall();
    // Whatever was wrong with it is judged anew.
    let review = host.store.reviews(Some(unit.id), usize::MAX)?;
    let review = review
        .into_iter()
        .filter(|entry| entry.record.is_none())
        .map(|entry| (entry.id, None))
        .collect();
    if records {
        settled(host.store.forget_records(unit.id)).await?;
    }
    settled(host.store.update_unit(
        unit.id,
        Box::new(move |state| Conclusion {
            state: state.reset(),
            due: Some(Some(now)),
            // No walk has this number: an answer of 304 would hide what is to be read again.
            keep_validators_of: Some(u64::MAX),
            review,
            ..Conclusion::default()
        }),
    ))
    .await
}

async fn settled<T>(durable: Durable<T>) -> Result<T, StoreError> {
    durable.await.unwrap_or(Err(StoreError::Closed))
}

pub(super) fn render(answer: &Reset) -> String {
    let mut text = String::new();
    for unit in &answer.units {
        text.push_str(&format!(
            "{}: {}\n",
            unit.unit,
            count(unit.known, "known record")
        ));
    }
    let (position, records) = match (answer.done, answer.records) {
        (false, false) => (
            "will be forgotten, and everything is read again from the start",
            "What is known of the records stays: only what is new or has changed is delivered.",
        ),
        (false, true) => (
            "will be forgotten, and everything is read again from the start",
            "What is known of the records will be forgotten too: each is delivered anew, as an insert under its next \
             revision.",
        ),
        (true, false) => (
            "is forgotten: the next poll reads from the start",
            "What is known of the records stays: only what is new or has changed is delivered.",
        ),
        (true, true) => (
            "is forgotten: the next poll reads from the start",
            "What was known of the records is forgotten too: each is delivered anew, as an insert under its next revision.",
        ),
    };
    let whose = if answer.units.len() == 1 {
        "Its position"
    } else {
        "Their position"
    };
    text.push_str(&format!("{whose} {position}.\n{records}\n"));
    text
}
