//! `weir backfill`: a part of the past is read again.
//!
//! What is asked for is stored as a gap of the unit that it concerns, so that it survives a crash and goes the way of all
//! gaps: side walks fill it from spare quota. A stream without windows can't be asked for a part; it is read again from its
//! beginning, and the answer says so.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_rules::coverage::{Extent, GapSource};
use weir_rules::gaps::has_windows;
use weir_rules::model::{Reason, Timestamp};
use weir_rules::unit::Settings;
use weir_rules::walk::Tally;

use super::gaps::settings_of;
use super::sync::{LeftOut, Needs, choose, deliver, drive_aside, read_again};
use super::text::{count, moment};
use super::{Caller, Failure, Selection};
use crate::control::Reply;
use crate::host::Host;
use crate::poll::Outcome;
use crate::store::{UnitId, UnitRow};

/// How long it waits for a vendor before it leaves the rest to later, in ms.
const PATIENCE: u64 = 60_000;

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Backfill {
    units: Vec<UnitBackfill>,
    left_out: Vec<LeftOut>,
    /// Records that wait for a sink.
    waiting_records: u64,
    /// The running host reads it in its spare time.
    queued: bool,
}

/// What became of one unit.
#[derive(Debug, Serialize, Deserialize)]
struct UnitBackfill {
    unit: String,
    since: Timestamp,
    until: Timestamp,
    /// The stream has no windows: all of it is read again.
    whole: bool,
    #[serde(flatten)]
    tally: Tally,
    /// All of it has been read.
    done: bool,
    /// Parts that can't be read any more, with the reasons.
    lost: Vec<String>,
    /// Why it is not done.
    message: Option<String>,
}

pub(super) async fn answer(
    host: &Arc<Host>,
    unit: &str,
    (since, until): (Timestamp, Option<Timestamp>),
    wait: bool,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let now = host.clock.wall();
    let until = until.unwrap_or(now).min(now);
    if since >= until {
        return Err(Failure::Unknown(format!(
            "nothing lies between {} and {}: --from must come before --to, and both not after now",
            moment(since),
            moment(until)
        )));
    }
    let (chosen, left_out) = choose(host, &Selection::parse(Some(unit)))?;
    let queued = caller.running && !wait;
    let mut units = Vec::new();
    for row in chosen {
        let Some(settings) = settings_of(host, &row) else {
            continue;
        };
        let mut unit = UnitBackfill {
            unit: row.key.to_string(),
            since,
            until,
            whole: !has_windows(&settings.stream),
            tally: Tally::default(),
            done: false,
            lost: Vec::new(),
            message: None,
        };
        if unit.whole {
            if queued {
                // The report is of no use to a caller who does not wait.
                let _ = host.scheduler.ask(row.id, Reason::Resync);
            } else {
                whole(host, row, &mut unit, caller).await;
            }
        } else {
            part(host, row, settings, &mut unit, queued, caller).await?;
        }
        units.push(unit);
    }
    let waiting_records = if queued {
        0
    } else {
        deliver(host, caller).await?
    };
    let answer = Backfill {
        units,
        left_out,
        waiting_records,
        queued,
    };
    Ok(Reply::with_exit(answer.exit(), answer))
}

async fn whole(host: &Arc<Host>, row: UnitRow, unit: &mut UnitBackfill, caller: &Caller) {
    let synced = read_again(host, row, PATIENCE, caller.progress.clone()).await;
    unit.done = synced.outcome.is_good();
    unit.tally = synced.tally;
    unit.message = synced.message;
}

async fn part(
    host: &Arc<Host>,
    row: UnitRow,
    settings: Settings,
    unit: &mut UnitBackfill,
    queued: bool,
    caller: &Caller,
) -> Result<(), Failure> {
    let extent = Extent {
        since: unit.since,
        until: unit.until,
    };
    let now = host.clock.wall();
    host.change_unit(
        row.id,
        Box::new(move |state| state.ask_for(extent, &settings, now)),
    )
    .await?;
    if !queued {
        let needs = Needs::Asked(extent);
        let driven = drive_aside(host, row.id, needs, PATIENCE, &caller.progress).await;
        unit.tally = driven.tally;
        unit.message = driven
            .last
            .filter(|last| last.outcome != Outcome::Ok)
            .and_then(|last| last.message);
    }
    let (open, lost) = left(host, row.id, extent)?;
    unit.done = !open && !queued;
    unit.lost = lost;
    if !queued && open && unit.message.is_none() {
        unit.message = Some(
            "the unit's own polls come first: `weir sync` it, or leave the rest to `weir run`"
                .to_owned(),
        );
    }
    Ok(())
}

/// Whether some of the part is still to be read, and what of it can't be.
fn left(host: &Host, id: UnitId, extent: Extent) -> Result<(bool, Vec<String>), Failure> {
    let Some(row) = host.store.unit(id)? else {
        return Ok((false, Vec::new()));
    };
    let asked = row
        .state
        .gaps
        .iter()
        .filter(|gap| gap.source == GapSource::Asked && gap.extent.common(extent).is_some());
    let mut open = false;
    let mut lost = Vec::new();
    for gap in asked {
        match &gap.lost {
            Some(why) => lost.push(format!(
                "{} to {}: {why}",
                moment(gap.extent.since),
                moment(gap.extent.until)
            )),
            None => open = true,
        }
    }
    Ok((open, lost))
}

impl Backfill {
    /// 1 when something was not read or not delivered, else 3 when something can't be read any more, else 0.
    fn exit(&self) -> u8 {
        let not_read = |unit: &UnitBackfill| !unit.done && !self.queued;
        if !self.left_out.is_empty() || self.waiting_records > 0 || self.units.iter().any(not_read)
        {
            1
        } else if self.units.iter().any(|unit| !unit.lost.is_empty()) {
            3
        } else {
            0
        }
    }
}

pub(super) fn render(answer: &Backfill) -> String {
    let mut text = String::new();
    for out in &answer.left_out {
        text.push_str(&format!("{}: not polled: {}\n", out.connection, out.why));
    }
    for unit in &answer.units {
        let what = if unit.whole {
            "everything (its stream has no windows)".to_owned()
        } else {
            format!("{} to {}", moment(unit.since), moment(unit.until))
        };
        let tally = &unit.tally;
        let state = match (answer.queued, unit.done) {
            (true, _) => "queued; `weir gaps` shows how far it is".to_owned(),
            (false, true) => format!(
                "read again: {} new, {} changed, {}",
                tally.new,
                tally.changed,
                count(tally.calls, "call")
            ),
            (false, false) => format!(
                "not all of it is read ({} new so far): {}",
                tally.new,
                unit.message.as_deref().unwrap_or("the next run goes on")
            ),
        };
        text.push_str(&format!("{}: {what}: {state}\n", unit.unit));
        for lost in &unit.lost {
            text.push_str(&format!("  can't be read: {lost}\n"));
        }
    }
    if answer.waiting_records > 0 {
        text.push_str(&format!(
            "{} not delivered yet; kept for the next `weir run` or `weir sync`.\n",
            count(answer.waiting_records, "record")
        ));
    }
    text
}
