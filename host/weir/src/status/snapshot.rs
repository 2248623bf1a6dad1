//! How a host is at a moment: what `weir status` shows and the metrics are made of.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Scope, Timestamp};

use super::{
    Census, Named, Need, Oddities, Rank, Recent, Remark, ReviewStatus, SinkStatus, StreamTotals,
    Totals, alerts, review, sinks,
};
use crate::host::Host;
use crate::store::{OutboxSize, StoreError, UnitRow};

/// Budgets of one connection that are shown; a vendor may name as many buckets as it likes.
const BUDGETS: usize = 16;

/// How a host is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The moment that it speaks of, by this machine's clock.
    pub now: Timestamp,
    /// The process id of the host that runs here; none when no host does.
    pub running: Option<u32>,
    /// The data directory.
    pub data: String,
    /// What needs a person.
    pub needs: Vec<Need>,
    /// For how long the unit that waits longest for its turn has been due, in ms. The first number to watch: it grows
    /// when the host does not keep up, and when no host runs.
    pub oldest_due: u64,
    /// Every connection.
    pub connections: Vec<ConnectionStatus>,
    /// The units, counted.
    pub totals: Totals,
    /// The same for each stream.
    pub streams: Vec<StreamStatus>,
    /// Units that are named for what they need.
    pub named: NamedUnits,
    /// What waits for the sinks.
    pub outbox: OutboxSize,
    /// Its bound in bytes.
    #[serde(default)]
    pub outbox_bound: u64,
    /// The outbox has reached its bound, so polling is slowed down or rests.
    pub outbox_full: bool,
    /// What that means for polling just now, in words.
    #[serde(default)]
    pub held_back: Option<String>,
    /// Every sink.
    pub sinks: Vec<SinkStatus>,
    /// Records that a sink refused for good.
    pub dead_letters: u64,
    /// Records that could not be taken and wait for a person.
    pub set_aside: u64,
    /// What waits for review, dead letters aside.
    #[serde(default)]
    pub review: Vec<ReviewStatus>,
    /// Connectors' files that do not load.
    pub failing_files: Vec<FailingFile>,
    /// What the store fails with.
    pub store_fails: Option<String>,
    /// Copies of the store; none where none are kept.
    #[serde(default)]
    pub copies: Option<CopiesStatus>,
    /// The last day.
    pub recent: Recent,
    /// Faults that were tried again within the last hour.
    pub retries: Vec<Retries>,
    /// The vendors' limits, as last heard of.
    pub budgets: Vec<BudgetStatus>,
    /// What of vendors' answers was not understood since the host's start.
    pub remarks: Vec<Remark>,
}

/// The copies of the store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CopiesStatus {
    /// When the newest was begun.
    pub newest: Option<Timestamp>,
    /// How many there are.
    pub count: u64,
    /// What they take, in bytes.
    pub bytes: u64,
    /// Why the last try failed, if it did.
    pub failed: Option<String>,
    /// How often one is to be made, in ms.
    pub every: u64,
}

/// One connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConnectionStatus {
    /// Its name.
    pub name: String,
    /// Its connector's.
    pub connector: String,
    /// The host has just started and has not come to it yet.
    pub starting: bool,
    /// Why it is not polled, where its configuration, connector or credential is wrong.
    pub not_ready: Option<String>,
    /// Why its secret files can't be read any more; what was read before is used on.
    #[serde(default)]
    pub secret_file: Option<String>,
    /// `pause = true`.
    pub paused: bool,
    /// It waits for a person to sign in.
    pub needs_sign_in: Option<SignInNeeded>,
    /// How many units it has.
    pub units: u64,
}

/// Since when and why a connection needs a sign-in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignInNeeded {
    /// Since when.
    pub since: Timestamp,
    /// What the vendor said.
    pub why: String,
    /// What to type.
    #[serde(default)]
    pub way_out: String,
    /// That is all; else the credential is to be renewed first.
    #[serde(default)]
    pub login: bool,
}

/// One stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StreamStatus {
    /// Its connection.
    pub connection: String,
    /// Its name.
    pub stream: String,
    /// Its units, counted.
    #[serde(flatten)]
    pub totals: StreamTotals,
}

/// Units that are named, a few for each reason.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NamedUnits {
    /// Ran out of retries or were refused for good, each with its last error.
    pub given_up: Vec<Named>,
    /// Were parked with a code that nobody has mapped.
    pub unknown: Vec<Named>,
    /// Wait for more than a day.
    pub long_waits: Vec<Named>,
    /// Are held at the longest interval by a slow vendor.
    pub pinned: Vec<Named>,
    /// Are polled and bring nothing new, for longer than ever.
    #[serde(default)]
    pub still: Vec<Named>,
    /// A second look has found what every poll before it had missed.
    #[serde(default)]
    pub late: Vec<Named>,
    /// Are listed in another order than their connector says.
    #[serde(default)]
    pub disordered: Vec<Named>,
}

/// A connector's file that does not load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailingFile {
    /// The file.
    pub file: String,
    /// Why.
    pub error: String,
}

/// Faults of one connector that were tried again within the last hour.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Retries {
    /// The connector.
    pub connector: String,
    /// The class.
    pub class: Class,
    /// How many.
    pub times: u64,
}

/// One limit of a vendor, as a connection is held to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BudgetStatus {
    /// The connection.
    pub connection: String,
    /// Who shares it.
    pub scope: Scope,
    /// The vendor's name for it; empty for the only one.
    pub bucket: String,
    /// What the vendor allows per window.
    pub limit: Option<u64>,
    /// What is left now.
    pub remaining: Option<f64>,
    /// The share used, in percent, where the vendor says that.
    pub used_percent: Option<f64>,
    /// When the window starts anew.
    pub resets_at: Option<Timestamp>,
    /// No call before this: the vendor refused one.
    pub held_until: Option<Timestamp>,
}

impl Snapshot {
    /// Looks at a host. `running`: it is one that runs (`weir run`), not one that was opened to look. `each` gets every
    /// configured unit with its rank, what is odd about it, and whether it is being polled; it must not call the store.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn of(
        host: &Host,
        running: bool,
        each: &mut dyn FnMut(UnitRow, Rank, Oddities, bool),
    ) -> Result<Snapshot, StoreError> {
        let now = host.clock.wall();
        let census = census(host, running, now, each)?;
        let recent = Recent::read(&*host.store, now)?;
        let connector = |name: &str| {
            let settings = host.config.connections.get(name)?;
            Some(settings.connector.clone())
        };
        let retries = recent.retries(connector).into_iter();
        let held_back = host.scheduler.pressure().why();
        let (sinks, dead_letters) = sinks::collect(host)?;
        let mut view = Snapshot {
            now,
            running: running.then(std::process::id),
            data: host.config.host.data.display().to_string(),
            needs: Vec::new(),
            oldest_due: oldest_due(host, now, running)?,
            connections: connections(host, &census.connections),
            totals: census.totals,
            streams: census
                .streams
                .into_iter()
                .map(|((connection, stream), totals)| StreamStatus {
                    connection,
                    stream,
                    totals,
                })
                .collect(),
            named: NamedUnits {
                given_up: census.given_up,
                unknown: census.unknown,
                long_waits: census.long_waits,
                pinned: census.pinned,
                still: census.still,
                late: census.late,
                disordered: census.disordered,
            },
            outbox: host.store.outbox_size()?,
            outbox_bound: host.config.host.outbox,
            outbox_full: held_back.is_some(),
            held_back: held_back.map(str::to_owned),
            sinks,
            dead_letters,
            set_aside: host.store.review_count()?.records,
            review: review::of(host)?,
            failing_files: failing_files(host),
            store_fails: host
                .scheduler
                .store_trouble(host.clock.monotonic())
                .map(|(error, _)| error),
            copies: copies(host),
            recent,
            retries: retries
                .filter(|(_, times)| *times > 0)
                .map(|((connector, class), times)| Retries {
                    connector,
                    class,
                    times,
                })
                .collect(),
            budgets: budgets(host, now),
            remarks: host.remarks.all(),
        };
        view.needs = alerts::needs(&host.config.alert, &view);
        Ok(view)
    }
}

fn copies(host: &Host) -> Option<CopiesStatus> {
    let settings = host.config.host.copies?;
    let failed = host.copies.failed().map(|failed| failed.error);
    let (copies, failed) = match host.store.copies() {
        Ok(copies) => (copies?, failed),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Some(CopiesStatus {
        newest: copies.first().map(|copy| copy.at),
        count: copies.len() as u64,
        bytes: copies.iter().map(|copy| copy.bytes).sum(),
        failed,
        every: settings.every,
    })
}

fn census(
    host: &Host,
    running: bool,
    now: Timestamp,
    each: &mut dyn FnMut(UnitRow, Rank, Oddities, bool),
) -> Result<Census, StoreError> {
    let mut census = Census::default();
    let clock = host.clock.monotonic();
    // Units of one connection mostly follow each other.
    let mut known: Option<(
        String,
        Option<std::sync::Arc<crate::connection::Connection>>,
    )> = None;
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
        if running {
            unit.due = due.map(|due| on_wall(due, clock, now));
        }
        let name = &unit.key.connection;
        if known.as_ref().is_none_or(|(known, _)| known != name) {
            known = Some((name.clone(), host.connections.get(name)));
        }
        let connection = known
            .as_ref()
            .and_then(|(_, connection)| connection.as_ref());
        let configured = host.config.connections.contains_key(name);
        // Of a connection that is not ready it is not known which units it still has.
        if !configured || (connection.is_some() && !polled) {
            census.totals.retired += 1;
            return;
        }
        let stream = connection.and_then(|connection| connection.streams.get(&unit.key.stream));
        let (rank, oddities) = census.count(&unit, stream.map(|stream| &**stream), polling, now);
        each(unit, rank, oddities, polling);
    })?;
    Ok(census)
}

/// A moment of the monotonic clock, as wall time.
fn on_wall(due: Duration, clock: Duration, now: Timestamp) -> Timestamp {
    let ms = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    now.saturating_add(ms(due)).saturating_sub(ms(clock))
}

fn oldest_due(host: &Host, now: Timestamp, running: bool) -> Result<u64, StoreError> {
    if running {
        let oldest = host.scheduler.queue().oldest_due(host.clock.monotonic());
        return Ok(u64::try_from(oldest.as_millis()).unwrap_or(u64::MAX));
    }
    let first = host.store.due(now, 1)?.into_iter().next();
    Ok(first.map_or(0, |(due, _)| now.abs_diff(due)))
}

fn connections(host: &Host, units: &BTreeMap<String, u64>) -> Vec<ConnectionStatus> {
    let mut states: BTreeMap<_, _> = host.connections.all().into_iter().collect();
    let mut needs_sign_in = host.sign_in.all();
    host.config
        .connections
        .iter()
        .map(|(name, settings)| {
            let state = states.remove(name);
            let needed = needs_sign_in.remove(name);
            ConnectionStatus {
                starting: state.is_none(),
                connector: settings.connector.clone(),
                not_ready: state.and_then(Result::err),
                secret_file: host.secret_files.problem(name),
                paused: settings.pause,
                needs_sign_in: needed.map(|needed| SignInNeeded {
                    since: needed.since,
                    way_out: needed.way_out(name),
                    login: needed.login,
                    why: needed.why,
                }),
                units: units.get(name).copied().unwrap_or(0),
                name: name.clone(),
            }
        })
        .collect()
}

fn failing_files(host: &Host) -> Vec<FailingFile> {
    host.catalogue
        .files()
        .into_iter()
        .filter_map(|file| {
            Some(FailingFile {
                file: file.path.display().to_string(),
                error: file.error?,
            })
        })
        .collect()
}

fn budgets(host: &Host, now: Timestamp) -> Vec<BudgetStatus> {
    let mut found = Vec::new();
    for (name, state) in host.connections.all() {
        let Ok(connection) = state else {
            continue;
        };
        for (scope, bucket, budget) in host.ledger.of(&connection).into_iter().take(BUDGETS) {
            found.push(BudgetStatus {
                connection: name.clone(),
                scope,
                bucket,
                limit: budget.limit,
                remaining: budget.available(now),
                used_percent: budget.used_percent,
                resets_at: budget.resets_at.filter(|reset| *reset > now),
                held_until: budget.not_before.filter(|until| *until > now),
            });
        }
    }
    found
}
