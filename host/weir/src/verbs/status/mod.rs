//! `weir status`: how everything is, in numbers and with what needs a person first.
//!
//! It reads every unit's row once and keeps the numbers, not the rows: there may be 100,000. Of the units
//! themselves it lists those that need a look, the worst first, and fills up with others to [`LISTED`].

mod show;
mod unit;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Timestamp};

use super::{Caller, Failure};
use crate::config::SinkConfig;
use crate::control::Reply;
use crate::host::Host;
use crate::sink::DeliveryStatus;
use crate::store::{OutboxSize, UnitRow};

pub(super) use show::render;
use unit::{Rank, UnitStatus};

/// Units that are listed unless all are asked for.
const LISTED: usize = 20;
/// Dead letters are counted up to here; above it, "or more".
const DEAD_LETTERS: usize = 10_000;

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Status {
    /// The moment that it speaks of, by this machine's clock.
    now: Timestamp,
    /// The process id of the host that runs here; none when no host does.
    running: Option<u32>,
    data: String,
    /// For how long the unit that waits longest for its turn has been due, in ms. The first number to watch: it grows
    /// when the host does not keep up, and when no host runs.
    oldest_due: u64,
    connections: Vec<ConnectionStatus>,
    totals: Totals,
    units: Vec<UnitStatus>,
    outbox: OutboxSize,
    /// The outbox has reached its bound, so nothing new is polled.
    outbox_full: bool,
    sinks: Vec<SinkStatus>,
    dead_letters: u64,
    failing_files: Vec<FailingFile>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ConnectionStatus {
    name: String,
    connector: String,
    /// The host has just started and has not come to it yet.
    starting: bool,
    /// Why it is not polled, where its configuration, connector or credential is wrong.
    not_ready: Option<String>,
    /// `pause = true`.
    paused: bool,
    needs_sign_in: Option<SignInNeeded>,
    units: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct SignInNeeded {
    since: Timestamp,
    why: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct SinkStatus {
    name: String,
    /// `stdout`, `file out/{connection}.ndjson`
    kind: String,
    /// How its delivery goes; none where no delivery loop runs.
    delivery: Option<DeliveryStatus>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FailingFile {
    file: String,
    error: String,
}

/// The units, counted.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Totals {
    units: u64,
    /// Polls in flight.
    polling: u64,
    /// Never polled to the end.
    unsynced: u64,
    /// Wait for a vendor.
    waiting: u64,
    /// Their last poll failed.
    failing: u64,
    /// Not polled until a person has looked.
    parked: u64,
    /// Of them: with a code that nobody has mapped.
    unknown: u64,
    /// As rarely polled as their vendor's slowness can make it.
    pinned: u64,
    /// Parts of streams that may hold records which never arrived.
    gaps: u64,
    /// Where the oldest of them ends, in the vendor's time.
    oldest_gap: Option<Timestamp>,
    /// Faults since each unit last went well, by class.
    faults: BTreeMap<Class, u64>,
    /// Units that the configuration no longer has; what is stored of them stays.
    retired: u64,
}

impl Totals {
    fn count(&mut self, unit: &UnitRow, rank: Rank, polling: bool) {
        let state = &unit.state;
        self.units += 1;
        self.polling += u64::from(polling);
        self.unsynced += u64::from(!state.synced);
        self.waiting += u64::from(state.waiting.is_some());
        self.failing += u64::from(rank == Rank::Failing);
        self.parked += u64::from(state.parked.is_some());
        self.unknown += u64::from(
            state
                .parked
                .as_ref()
                .is_some_and(|parked| parked.class == Class::Unknown),
        );
        self.pinned += u64::from(unit::is_pinned(state));
        self.gaps += state.gaps.len() as u64;
        let oldest = state.gaps.iter().map(|gap| gap.extent.until).min();
        self.oldest_gap = self.oldest_gap.into_iter().chain(oldest).min();
        for (class, count) in &state.faults.counts {
            *self.faults.entry(*class).or_default() += u64::from(*count);
        }
    }
}

pub(super) fn answer(host: &Arc<Host>, all: bool, caller: &Caller) -> Result<Reply, Failure> {
    let now = host.clock.wall();
    let mut states: BTreeMap<_, _> = host.connections.all().into_iter().collect();
    let mut per_connection: BTreeMap<String, u64> = BTreeMap::new();
    let mut totals = Totals::default();
    let limit = if all { usize::MAX } else { LISTED };
    // Sorted by rank, then by number: the last one is the first to be left out.
    let mut listed: BTreeMap<(Rank, u64), UnitStatus> = BTreeMap::new();
    let clock = host.clock.monotonic();
    host.store.for_each_unit(&mut |mut unit| {
        let (polled, polling, due) = {
            let queue = host.scheduler.queue();
            (
                queue.contains(unit.id),
                queue.is_running(unit.id),
                queue.due_of(unit.id),
            )
        };
        // A running host has spread the first polls after its start.
        if caller.running {
            unit.due = due.map(|due| on_wall(due, clock, now));
        }
        // Of a connection that is not ready it is not known which units it still has.
        let ready = host.connections.get(&unit.key.connection).is_some();
        let configured = host.config.connections.contains_key(&unit.key.connection);
        if !configured || (ready && !polled) {
            totals.retired += 1;
            return;
        }
        *per_connection
            .entry(unit.key.connection.clone())
            .or_default() += 1;
        let rank = Rank::of(&unit.state);
        totals.count(&unit, rank, polling);
        let place = (rank, unit.id.0);
        if listed.len() < limit
            || listed
                .last_key_value()
                .is_some_and(|(last, _)| place < *last)
        {
            listed.insert(place, UnitStatus::of(unit, polling));
            if listed.len() > limit {
                listed.pop_last();
            }
        }
    })?;

    let mut needs_sign_in = host.sign_in.all();
    let connections = host
        .config
        .connections
        .iter()
        .map(|(name, settings)| {
            let state = states.remove(name);
            let needed = needs_sign_in.remove(name);
            ConnectionStatus {
                starting: state.is_none(),
                connector: settings.connector.clone(),
                not_ready: state.and_then(Result::err),
                paused: settings.pause,
                needs_sign_in: needed.map(|needed| SignInNeeded {
                    since: needed.since,
                    why: needed.why,
                }),
                units: per_connection.get(name).copied().unwrap_or(0),
                name: name.clone(),
            }
        })
        .collect();
    let failing_files = host
        .catalogue
        .files()
        .into_iter()
        .filter_map(|file| {
            Some(FailingFile {
                file: file.path.display().to_string(),
                error: file.error?,
            })
        })
        .collect();
    let status = Status {
        now,
        running: caller.running.then(std::process::id),
        data: host.config.host.data.display().to_string(),
        oldest_due: oldest_due(host, now, caller.running)?,
        connections,
        totals,
        units: listed.into_values().collect(),
        outbox: host.store.outbox_size()?,
        outbox_full: host.scheduler.outbox_full(),
        sinks: sinks(host),
        dead_letters: host.store.dead_letters(DEAD_LETTERS)?.len() as u64,
        failing_files,
    };
    Ok(Reply::with_exit(status.exit(), status))
}

/// A moment of the monotonic clock, as wall time.
fn on_wall(due: Duration, clock: Duration, now: Timestamp) -> Timestamp {
    let ms = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    now.saturating_add(ms(due)).saturating_sub(ms(clock))
}

fn oldest_due(host: &Host, now: Timestamp, running: bool) -> Result<u64, Failure> {
    if running {
        let oldest = host.scheduler.queue().oldest_due(host.clock.monotonic());
        return Ok(u64::try_from(oldest.as_millis()).unwrap_or(u64::MAX));
    }
    let first = host.store.due(now, 1)?.into_iter().next();
    Ok(first.map_or(0, |(due, _)| now.abs_diff(due)))
}

fn sinks(host: &Host) -> Vec<SinkStatus> {
    let mut deliveries = host.sinks.all();
    host.config
        .sinks
        .iter()
        .map(|(name, sink)| SinkStatus {
            name: name.clone(),
            kind: match sink {
                SinkConfig::Stdout => "stdout".to_owned(),
                SinkConfig::File { path, .. } => format!("file {}", path.display()),
                SinkConfig::Webhook(config) => format!("webhook {}", config.url),
            },
            delivery: deliveries.remove(name),
        })
        .collect()
}

impl Status {
    /// 3 when something needs a person, else 0.
    fn exit(&self) -> u8 {
        let held_back = |connection: &ConnectionStatus| {
            connection.not_ready.is_some() || connection.needs_sign_in.is_some()
        };
        let needs_a_person = self.connections.iter().any(held_back)
            || self.totals.parked > 0
            || self.totals.gaps > 0
            || self.dead_letters > 0
            || !self.failing_files.is_empty();
        if needs_a_person { 3 } else { 0 }
    }
}
