//! `weir sync`: everything asked for is polled now, and has been delivered when the answer comes.
//!
//! A unit is asked for again as long as it says that there is more, and after each wait that the caller's patience
//! allows. Polls go through the host's one queue, so a unit that is being polled is not polled a second time
//! beside.

mod delivered;
mod drive;
mod show;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use weir_rules::model::{Class, Timestamp};
use weir_rules::walk::Tally;

use super::select::Others;
use super::{Caller, Failure, Selection, no_connection};
use crate::control::{Reply, Said};
use crate::host::Host;
use crate::poll::Outcome;
use crate::store::{UnitId, UnitRow};

use drive::drive;
pub(super) use drive::{Needs, drive_aside};
pub(super) use show::render;

/// How often a caller hears how far it is.
const TICK: Duration = Duration::from_secs(1);
/// With more units than this, those that went well are counted and not named one by one.
const NAMED: usize = 200;
/// Dead letters are counted up to here.
const COUNTED: usize = 1_000;

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Synced {
    units: Vec<UnitSync>,
    /// Connections that were asked for and are not polled, with the reason.
    left_out: Vec<LeftOut>,
    /// All units together.
    total: Tally,
    /// The sinks have taken everything that was read.
    delivered: bool,
    /// Records that wait for a sink; theirs are kept and delivered by the next `weir run` or `weir sync`.
    waiting_records: u64,
    /// Records that a sink has refused for good, by now or before: they wait for a person.
    #[serde(default)]
    dead_letters: u64,
    /// Sinks that take nothing, and why.
    failing_sinks: BTreeMap<String, String>,
    /// The host was told to stop before it was done.
    stopped: bool,
    elapsed_ms: u64,
}

/// What became of one unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UnitSync {
    unit: String,
    pub(super) outcome: Outcome,
    class: Option<Class>,
    pub(super) message: Option<String>,
    /// What its polls saw, all together.
    #[serde(flatten)]
    pub(super) tally: Tally,
    polls: u64,
    /// When it is due next.
    due: Option<Timestamp>,
    /// Parts of the stream that may hold records which never arrived.
    gaps: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LeftOut {
    pub(super) connection: String,
    pub(super) why: String,
    /// It was left out on purpose, and nothing was asked of it by name.
    intended: bool,
}

pub(super) async fn answer(
    host: &Arc<Host>,
    unit: Option<&str>,
    full: bool,
    patience: u64,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let began = host.clock.monotonic();
    let selection = Selection::parse(unit);
    let (chosen, left_out) = choose(host, &selection)?;
    let mut drives = JoinSet::new();
    let mut open: BTreeMap<UnitId, ()> = BTreeMap::new();
    let named = chosen.len() <= NAMED;
    let mut known = BTreeSet::new();
    let mut begin = |drives: &mut JoinSet<_>, open: &mut BTreeMap<UnitId, ()>, rows| {
        for row in rows {
            let UnitRow { id, .. } = row;
            if !known.insert(id) {
                continue;
            }
            open.insert(id, ());
            let (host, progress) = (host.clone(), caller.progress.clone());
            drives.spawn(async move { (id, drive(&host, row, full, patience, progress).await) });
        }
        known.len()
    };
    let mut all = begin(&mut drives, &mut open, chosen);
    let mut units = Vec::with_capacity(all);
    let mut total = Tally::default();
    loop {
        tokio::select! {
            ended = drives.join_next() => match ended {
                Some(Ok((id, unit))) => {
                    open.remove(&id);
                    total = total.plus(&unit.tally);
                    if named || !unit.outcome.is_good() {
                        say(caller, Said::Line(show::line(&unit))).await;
                    }
                    units.push(unit);
                }
                Some(Err(error)) => {
                    tracing::error!(%error, "a sync broke down; this is a fault of weir");
                }
                // What was read may have brought units of streams that hang below.
                None if host.stop.stopped() => break,
                None => {
                    let (chosen, _) = choose(host, &selection)?;
                    let more = begin(&mut drives, &mut open, chosen);
                    if std::mem::replace(&mut all, more) == more {
                        break;
                    }
                }
            },
            () = host.clock.sleep(TICK) => {
                let so_far = total.plus(&under_way(host, &open)?);
                let text = format!(
                    "{} of {all} units done, {} records, {} calls",
                    units.len(), so_far.records, so_far.calls
                );
                say(caller, Said::Passing(text)).await;
            }
        }
    }
    units.sort_by(|a, b| a.unit.cmp(&b.unit));
    let waiting_records = delivered::wait(host, caller).await?;
    let elapsed = host.clock.monotonic().saturating_sub(began);
    let synced = Synced {
        units,
        left_out,
        total,
        delivered: waiting_records == 0,
        waiting_records,
        dead_letters: host.store.dead_letters(COUNTED)?.len() as u64,
        failing_sinks: failing_sinks(host),
        stopped: host.stop.stopped(),
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
    };
    Ok(Reply::with_exit(synced.exit(), synced))
}

/// Waits until the sinks have taken everything; returns how many records they have not.
pub(super) async fn deliver(host: &Arc<Host>, caller: &Caller) -> Result<u64, Failure> {
    delivered::wait(host, caller).await
}

/// Reads all of a unit again.
pub(super) async fn read_again(
    host: &Host,
    unit: UnitRow,
    patience: u64,
    progress: tokio::sync::mpsc::Sender<Said>,
) -> UnitSync {
    drive(host, unit, true, patience, progress).await
}

/// The units that are meant and can be polled, and the connections that can't.
pub(super) fn choose(
    host: &Host,
    selection: &Selection,
) -> Result<(Vec<UnitRow>, Vec<LeftOut>), Failure> {
    let by_name = selection.connection();
    if let Some(name) = by_name
        && !host.config.connections.contains_key(name)
    {
        return Err(no_connection(host, name));
    }
    let mut left_out = Vec::new();
    for (name, state) in host.connections.all() {
        if by_name.is_some_and(|wanted| wanted != name) {
            continue;
        }
        let paused = host
            .config
            .connections
            .get(&name)
            .is_some_and(|settings| settings.pause);
        let why = match state {
            Err(why) => why,
            Ok(_) if paused => {
                format!("it is paused: take `pause = true` out of [connection.{name}]")
            }
            Ok(_) => continue,
        };
        left_out.push(LeftOut {
            connection: name,
            why,
            intended: paused && by_name.is_none(),
        });
    }
    let mut chosen = Vec::new();
    let mut others = Others::default();
    host.store.for_each_unit(&mut |unit| {
        let rests = left_out
            .iter()
            .any(|out| out.connection == unit.key.connection);
        if rests || !host.scheduler.queue().contains(unit.id) {
            return;
        }
        if selection.holds(&unit.key) {
            chosen.push(unit);
        } else if by_name == Some(&unit.key.connection) {
            others.add(selection, &unit.key);
        }
    })?;
    if chosen.is_empty() && left_out.is_empty() && by_name.is_some() {
        return Err(others.failure(selection, "every stream of the connection is switched off"));
    }
    Ok((chosen, left_out))
}

/// What the walks in flight have stored so far.
fn under_way(host: &Host, open: &BTreeMap<UnitId, ()>) -> Result<Tally, Failure> {
    let running: Vec<UnitId> = {
        let queue = host.scheduler.queue();
        open.keys()
            .copied()
            .filter(|id| queue.is_running(*id))
            .collect()
    };
    let mut sum = Tally::default();
    for id in running {
        if let Some(walk) = host.store.unit(id)?.and_then(|row| row.state.walk) {
            sum = sum.plus(&walk.tally);
        }
    }
    Ok(sum)
}

fn failing_sinks(host: &Host) -> BTreeMap<String, String> {
    let sinks = host.sinks.all().into_iter();
    sinks
        .filter_map(|(name, status)| Some((name, status.failing?.error)))
        .collect()
}

async fn say(caller: &Caller, said: Said) {
    // A caller who left does not need to hear it.
    let _ = caller.progress.send(said).await;
}

impl Synced {
    /// 1 when something was not read or not delivered, else 3 when something needs a person, else 0.
    fn exit(&self) -> u8 {
        let failed = |unit: &UnitSync| !unit.outcome.is_good() && !unit.needs_a_person();
        if self.stopped
            || !self.delivered
            || self.left_out.iter().any(|out| !out.intended)
            || self.units.iter().any(failed)
        {
            1
        } else if self.dead_letters > 0 || self.units.iter().any(UnitSync::needs_a_person) {
            3
        } else {
            0
        }
    }
}

impl UnitSync {
    fn needs_a_person(&self) -> bool {
        let by_outcome = matches!(
            self.outcome,
            Outcome::Parked | Outcome::NeedsSignIn | Outcome::Truncated
        );
        by_outcome || (self.outcome.is_good() && (self.gaps > 0 || self.tally.set_aside > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(outcome: Outcome, gaps: u64) -> UnitSync {
        UnitSync {
            unit: "oss/issues".to_owned(),
            outcome,
            class: None,
            message: None,
            tally: Tally::default(),
            polls: 1,
            due: None,
            gaps,
        }
    }

    fn synced(units: Vec<UnitSync>) -> Synced {
        Synced {
            units,
            left_out: Vec::new(),
            total: Tally::default(),
            delivered: true,
            waiting_records: 0,
            dead_letters: 0,
            failing_sinks: BTreeMap::new(),
            stopped: false,
            elapsed_ms: 0,
        }
    }

    #[test]
    fn the_exit_code_says_the_worst() {
        let exit = |units| synced(units).exit();
        assert_eq!(exit(vec![]), 0);
        assert_eq!(
            exit(vec![unit(Outcome::Ok, 0), unit(Outcome::NotModified, 0)]),
            0
        );
        assert_eq!(exit(vec![unit(Outcome::Ok, 1)]), 3);
        assert_eq!(exit(vec![unit(Outcome::Parked, 0)]), 3);
        let mut set_aside = unit(Outcome::Ok, 0);
        set_aside.tally.set_aside = 1;
        assert_eq!(exit(vec![set_aside]), 3);
        assert_eq!(
            exit(vec![unit(Outcome::Parked, 0), unit(Outcome::Failed, 0)]),
            1
        );
        for failed in [
            Outcome::Waiting,
            Outcome::Failed,
            Outcome::Incomplete,
            Outcome::Skipped,
        ] {
            assert_eq!(exit(vec![unit(failed, 0)]), 1, "{failed:?}");
        }
        let undelivered = Synced {
            delivered: false,
            ..synced(vec![unit(Outcome::Ok, 0)])
        };
        assert_eq!(undelivered.exit(), 1);
    }

    #[test]
    fn a_connection_left_out_fails_unless_it_was_meant_to_be() {
        let with = |intended| Synced {
            left_out: vec![LeftOut {
                connection: "shop".to_owned(),
                why: "paused".to_owned(),
                intended,
            }],
            ..synced(vec![])
        };
        assert_eq!(with(true).exit(), 0);
        assert_eq!(with(false).exit(), 1);
    }
}
