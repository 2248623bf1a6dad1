//! A host: the store, the connectors, the connections, and what runs between them.
//!
//! `weir run` runs one; a verb that finds no running host opens one for itself, answers its own request with it,
//! and closes it. The store's lock sees to it that there is one at a time.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use weir_rules::model::Timestamp;
use weir_rules::stagger;
use weir_rules::unit::UnitState;
use weir_runtime::{Limits, Runtime, RuntimeConfig, RuntimeError};

use crate::catalogue::{Catalogue, CatalogueError};
use crate::children::Children;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config};
use crate::connection::{Connection, ConnectionError};
use crate::copies::Copies;
use crate::deliveries::Board;
use crate::http::Transport;
use crate::http::client::HttpClient;
use crate::oauth::{KeySource, Keyring};
use crate::poll::{Ledger, Report};
use crate::random::Random;
use crate::schedule::{self, Held, Scheduler};
use crate::secret_files::SecretFiles;
use crate::sign_in::SignIn;
use crate::status::{LastLook, Meters, Remarks};
use crate::stop::Stop;
use crate::store::{
    Conclusion, RedbStore, Store, StoreError, StoreOptions, UnitId, UnitKey, UnitRow,
};
use crate::trust::{Trust, TrustError};

/// Everything that a poll, a verb or a loop needs.
pub struct Host {
    /// The configuration that it was started with.
    pub config: Config,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<Random>,
    /// What survives a crash.
    pub store: Arc<dyn Store>,
    /// The way to vendors.
    pub transport: Arc<dyn Transport>,
    /// Runs connectors.
    pub runtime: Arc<Runtime>,
    /// The connectors' directory.
    pub catalogue: Arc<Catalogue>,
    /// The connections that are ready to poll, and why others are not.
    pub connections: Connections,
    /// Budgets, in memory.
    pub ledger: Ledger,
    /// Credentials that expire.
    pub keyring: Arc<Keyring>,
    /// Secrets that are read again when their files change.
    pub secret_files: SecretFiles,
    /// Connections that wait for a person.
    pub sign_in: SignIn,
    /// The due queue.
    pub scheduler: Scheduler,
    /// Which connector files are trusted.
    pub trust: Trust,
    /// Units that are polled for a record of another unit.
    pub children: Children,
    /// How the sinks are doing.
    pub sinks: Board,
    /// How the copies of the store are doing.
    pub copies: Copies,
    /// What was counted since the start.
    pub meters: Meters,
    /// What of vendors' answers was not understood.
    pub remarks: Remarks,
    /// The last look at all of it.
    pub last_look: LastLook,
    /// Told when the host is to stop.
    pub stop: Stop,
    prepared: watch::Sender<bool>,
    /// Units are polled when they fall due, not only when somebody asks.
    scheduled: AtomicBool,
}

/// Why a host can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The wasm engine.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The connectors' directory.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The data directory.
    #[error("data directory {}: {source}: make it a directory that weir may write to, or name another one with `host.data`", .path.display())]
    Data {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The seams that a test or a simulation replaces.
pub struct Parts {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Random,
    /// What survives a crash.
    pub store: Arc<dyn Store>,
    /// The way to vendors.
    pub transport: Arc<dyn Transport>,
    /// Runs connectors.
    pub runtime: Arc<Runtime>,
    /// The connectors.
    pub catalogue: Arc<Catalogue>,
    /// What tokens are sealed with in the store.
    pub key: KeySource,
}

/// The connections of a host.
#[derive(Default)]
pub struct Connections {
    all: ArcSwap<BTreeMap<String, Slot>>,
}

#[derive(Clone)]
struct Slot {
    /// Tells the due queue which units share calls.
    number: u32,
    state: Result<Arc<Connection>, String>,
    /// Its units in the due queue.
    units: Arc<[UnitId]>,
}

impl Connections {
    /// The connection, if it is ready.
    pub fn get(&self, name: &str) -> Option<Arc<Connection>> {
        self.all.load().get(name)?.state.clone().ok()
    }

    /// Every connection: ready, or why it is not.
    pub fn all(&self) -> Vec<(String, Result<Arc<Connection>, String>)> {
        let all = self.all.load();
        all.iter()
            .map(|(name, slot)| (name.clone(), slot.state.clone()))
            .collect()
    }

    /// Adds units to a connection; its number.
    pub(crate) fn grow(&self, name: &str, units: &[UnitRow]) -> u32 {
        let mut number = 0;
        self.all.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            if let Some(slot) = all.get_mut(name) {
                let new = units.iter().map(|unit| unit.id);
                slot.units = slot.units.iter().copied().chain(new).collect();
                number = slot.number;
            }
            all
        });
        number
    }

    /// Puts a connection in place of what it was. Returns its number, and the units that it had before.
    fn set(
        &self,
        name: &str,
        state: Result<Arc<Connection>, String>,
        units: &[UnitRow],
    ) -> (u32, Arc<[UnitId]>) {
        let units: Arc<[UnitId]> = units.iter().map(|unit| unit.id).collect();
        let mut before = (0, Arc::default());
        self.all.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            before = all.get(name).map_or_else(
                || (u32::try_from(all.len()).unwrap_or(u32::MAX), Arc::default()),
                |slot| (slot.number, slot.units.clone()),
            );
            let slot = Slot {
                number: before.0,
                state: state.clone(),
                units: units.clone(),
            };
            all.insert(name.to_owned(), slot);
            all
        });
        before
    }
}

impl Host {
    /// Opens the real thing: the store's file, the compile cache, the network.
    ///
    /// # Errors
    /// [`HostError`]; [`StoreError::InUse`] when another host runs on this data directory.
    pub fn open(config: Config, stop: Stop) -> Result<Arc<Host>, HostError> {
        let data = config.host.data.clone();
        let failed = |source| HostError::Data {
            path: data.clone(),
            source,
        };
        // What is remembered of records is for nobody else. A directory that is there already is left as it is.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&data)
            .map_err(failed)?;
        let store = RedbStore::open(
            &config.host.store_file(),
            StoreOptions {
                cache_bytes: config.host.store_cache,
                polls: config.host.poll_log,
                copies: config.host.copies.map(|_| config.host.copies_dir()),
                ..StoreOptions::default()
            },
        )?;
        let runtime = Runtime::new(RuntimeConfig {
            cache_dir: Some(data.join("compiled")),
            workers: config.host.workers,
            limits: Limits::default(),
            limits_of: config.connectors.clone(),
            ..RuntimeConfig::default()
        })?;
        let catalogue = Catalogue::open(&config.host.connectors, runtime.clone())?;
        for name in config.connectors.keys() {
            if catalogue.get(name).is_none() {
                tracing::warn!(
                    connector = name,
                    "there are limits for a connector that is not there"
                );
            }
        }
        let key = KeySource::File(config.host.key_file());
        let lock = Trust::file_in(&data);
        let host = Host::with(
            config,
            stop,
            Parts {
                clock: Arc::new(SystemClock::new()),
                random: Random::of_the_system(),
                store,
                transport: Arc::new(HttpClient::new()),
                runtime,
                catalogue: Arc::new(catalogue),
                key,
            },
        )?;
        host.trust.keep_in(lock);
        Ok(host)
    }

    /// A host out of the given parts.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn with(config: Config, stop: Stop, parts: Parts) -> Result<Arc<Host>, HostError> {
        let ledger = Ledger::new(parts.store.budgets()?);
        let random = Arc::new(parts.random);
        let keyring = Keyring::new(
            parts.clock.clone(),
            random.clone(),
            parts.store.clone(),
            parts.transport.clone(),
            parts.key,
            &config.host,
        );
        let scheduler = Scheduler::new(parts.clock.wall(), config.host.timeout.total);
        scheduler
            .queue()
            .limit_aside(config.host.concurrency / ASIDE);
        Ok(Arc::new(Host {
            scheduler,
            config,
            clock: parts.clock,
            random,
            store: parts.store,
            transport: parts.transport,
            runtime: parts.runtime,
            catalogue: parts.catalogue,
            connections: Connections::default(),
            ledger,
            keyring: Arc::new(keyring),
            secret_files: SecretFiles::default(),
            sign_in: SignIn::default(),
            trust: Trust::default(),
            children: Children::default(),
            sinks: Board::default(),
            copies: Copies::default(),
            meters: Meters::default(),
            remarks: Remarks::default(),
            last_look: LastLook::default(),
            stop,
            prepared: watch::Sender::new(false),
            scheduled: AtomicBool::new(false),
        }))
    }

    /// Makes every connection of the configuration ready and its units known. `scheduled`: they are placed in the due
    /// queue by their due times; otherwise only to be asked for.
    ///
    /// A connection that can't be made ready is reported and left out; its units keep what is stored of them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn prepare(self: &Arc<Self>, scheduled: bool) -> Result<(), StoreError> {
        self.scheduled.store(scheduled, Ordering::Relaxed);
        if !scheduled {
            self.scheduler.only_on_demand();
        }
        let names: Vec<String> = self.config.connections.keys().cloned().collect();
        for name in names {
            self.prepare_one(&name, scheduled).await?;
        }
        self.trust.write();
        self.prepared.send_replace(true);
        Ok(())
    }

    /// Ends when [`Host::prepare`] has: before, a verb would find units missing.
    pub async fn prepared(&self) {
        let mut prepared = self.prepared.subscribe();
        tokio::select! {
            // The sender lives in self, so waiting can't fail.
            _ = prepared.wait_for(|prepared| *prepared) => {}
            () = self.stop.stopping() => {}
        }
    }

    /// Units are polled when they fall due, not only when somebody asks.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.scheduled.load(Ordering::Relaxed)
    }

    /// Has [`Host::prepare`] ended?
    pub fn is_prepared(&self) -> bool {
        *self.prepared.borrow()
    }

    /// As [`Host::prepare`], for one connection.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn prepare_connection(&self, name: &str, scheduled: bool) -> Result<(), StoreError> {
        self.prepare_one(name, scheduled).await?;
        self.trust.write();
        Ok(())
    }

    async fn prepare_one(&self, name: &str, scheduled: bool) -> Result<(), StoreError> {
        let Some(settings) = self.config.connections.get(name) else {
            return Ok(());
        };
        let renewed = self.secret_files.auth(name).map(|auth| config::Connection {
            auth,
            ..settings.clone()
        });
        let settings = renewed.as_ref().unwrap_or(settings);
        let ready = self.make_ready(name, settings, &self.config.source).await;
        let admitted = ready.and_then(|(connection, keys)| {
            let trusted = self.trust.admit(&connection);
            trusted.map_err(|error| untrusted(name, &error))?;
            Ok((connection, keys))
        });
        let (state, keys) = match admitted {
            Ok((connection, keys)) => (Ok(Arc::new(connection)), keys),
            Err(error) => {
                tracing::error!(
                    connection = name,
                    error = error.detail,
                    "the connection is not polled"
                );
                (Err(error.detail), Vec::new())
            }
        };
        if let Ok(connection) = &state {
            self.sign_in.recall(&*self.store, connection)?;
        }
        let mut units = self.ensure_units(keys).await?;
        if let Ok(connection) = &state {
            self.descend(connection, &mut units).await?;
        }
        let (number, before) = self.connections.set(name, state.clone(), &units);
        self.remove_all_but(&units, &before);
        self.place(name, number, &units, state.ok().as_deref(), scheduled);
        Ok(())
    }

    /// Takes units out of the due queue that are no more.
    fn remove_all_but(&self, units: &[UnitRow], before: &[UnitId]) {
        let here: HashSet<UnitId> = units.iter().map(|unit| unit.id).collect();
        let mut queue = self.scheduler.queue();
        for id in before.iter().filter(|id| !here.contains(id)) {
            queue.remove(*id);
        }
    }

    /// Puts a connection together, if its connector is trusted, and names its units. Changes nothing.
    pub(crate) async fn make_ready(
        &self,
        name: &str,
        settings: &config::Connection,
        source: &config::Source,
    ) -> Result<(Connection, Vec<UnitKey>), ConnectionError> {
        let made = self.put_together(name, settings, source).await?;
        let trusted = self.trust.look(&made.0);
        trusted.map_err(|error| untrusted(name, &error))?;
        Ok(made)
    }

    /// Puts a connection together, whether or not its connector is trusted.
    pub(crate) async fn put_together(
        &self,
        name: &str,
        settings: &config::Connection,
        source: &config::Source,
    ) -> Result<(Connection, Vec<UnitKey>), ConnectionError> {
        let wrong = |detail: String| ConnectionError {
            connection: name.to_owned(),
            detail,
        };
        let connector = self.catalogue.get(&settings.connector).ok_or_else(|| {
            let names = self.catalogue.names();
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            wrong(format!(
                "no connector `{}` in {}: {}",
                settings.connector,
                self.catalogue.dir().display(),
                config::suggest_name(&settings.connector, &known)
            ))
        })?;
        let owned_name = name.to_owned();
        let settings = settings.clone();
        let source = source.clone();
        let keyring = self.keyring.clone();
        self.runtime
            .workers()
            .run(move || {
                let connection =
                    Connection::ready(&owned_name, &settings, connector, &source, &keyring)?;
                let keys = unit_keys(&connection)?;
                Ok((connection, keys))
            })
            .await
            .map_err(|error| wrong(error.to_string()))?
    }

    pub(crate) async fn ensure_units(
        &self,
        keys: Vec<UnitKey>,
    ) -> Result<Vec<UnitRow>, StoreError> {
        // All are handed over before the first is waited for: new ones share an fsync.
        let waiting: Vec<_> = keys.iter().map(|key| self.store.ensure_unit(key)).collect();
        let mut units = Vec::with_capacity(waiting.len());
        for unit in waiting {
            units.push(unit.await.unwrap_or(Err(StoreError::Closed))?);
        }
        Ok(units)
    }

    /// Gives the connection's units their places in the due queue.
    pub(crate) fn place(
        &self,
        name: &str,
        number: u32,
        units: &[UnitRow],
        connection: Option<&Connection>,
        scheduled: bool,
    ) {
        let paused = self
            .config
            .connections
            .get(name)
            .is_some_and(|settings| settings.pause);
        let needs_sign_in = self.sign_in.needed(name).is_some();
        let now = self.clock.wall();
        let mut queue = self.scheduler.queue();
        if let Some(connection) = connection {
            queue.limit(number, connection.concurrency());
        }
        for unit in units {
            let rests = paused || needs_sign_in || unit.state.parked.is_some() || !scheduled;
            let due = (!rests).then(|| self.first_due(unit, connection, now, units.len()));
            let due = due.map(|due| schedule::on_monotonic(self, due));
            queue.place(unit.id, number, due);
            let stream = connection.and_then(|connection| connection.streams.get(&unit.key.stream));
            let side = stream
                .filter(|_| !rests)
                .and_then(|stream| unit.state.side_due(&stream.settings, now));
            queue.place_aside(unit.id, side.map(|side| schedule::on_monotonic(self, side)));
        }
        drop(queue);
        self.scheduler.wake();
    }

    /// When a unit is due at the host's start: at its stored time, or (new, or long overdue) somewhere in the next
    /// while, so that a thousand units don't start at once.
    fn first_due(
        &self,
        unit: &UnitRow,
        connection: Option<&Connection>,
        now: Timestamp,
        siblings: usize,
    ) -> Timestamp {
        let stream = connection.and_then(|connection| connection.streams.get(&unit.key.stream));
        let due = match not_longer_than_it_was(unit, now) {
            Some(due) if due > now => due,
            _ => {
                let interval = stream.map_or(0, |stream| stream.settings.interval.min);
                let spread = START_SPREAD.saturating_mul(siblings as u64);
                stagger::first_start(&unit.key.to_string(), now, interval.min(spread))
            }
        };
        stream.map_or(due, |stream| stream.quiet.after(due))
    }

    /// Changes a unit's stored state outside a poll, while no poll of it is under way: a poll that is waits for nobody, and
    /// would store what it had begun with.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn change_unit(
        &self,
        unit: UnitId,
        change: Box<dyn FnOnce(&mut UnitState) + Send>,
    ) -> Result<(), StoreError> {
        let held = self.scheduler.hold(unit, &*self.clock).await;
        let changed = self.store.update_unit(
            unit,
            Box::new(move |mut state| {
                change(&mut state);
                Conclusion {
                    state,
                    ..Conclusion::default()
                }
            }),
        );
        let changed = changed.await.unwrap_or(Err(StoreError::Closed));
        if let Held::Here { ticket, due } = held {
            let side = self.side_due(unit).unwrap_or_default();
            let report = Report {
                message: Some("its stored state was changed".to_owned()),
                ..Report::default()
            };
            self.scheduler.let_go(unit, ticket, (due, side), &report);
        }
        changed
    }

    /// When a unit's next side walk may begin, by the monotonic clock.
    fn side_due(&self, unit: UnitId) -> Result<Option<Duration>, StoreError> {
        let Some(row) = self.store.unit(unit)? else {
            return Ok(None);
        };
        let connection = self.connections.get(&row.key.connection);
        let stream = connection.and_then(|connection| {
            connection
                .streams
                .get(&row.key.stream)
                .map(|stream| stream.settings.clone())
        });
        let due = stream.and_then(|settings| row.state.side_due(&settings, self.clock.wall()));
        Ok(due.map(|due| schedule::on_monotonic(self, due)))
    }

    /// Polls what is due until the host is told to stop.
    pub async fn run(self: &Arc<Self>) {
        schedule::run(self.clone()).await;
    }
}

fn untrusted(connection: &str, error: &TrustError) -> ConnectionError {
    ConnectionError {
        connection: connection.to_owned(),
        detail: error.to_string(),
    }
}

/// When a unit is due. Where the clock was set back since that was stored, the wait is as long as it was then, and not
/// longer.
fn not_longer_than_it_was(unit: &UnitRow, now: Timestamp) -> Option<Timestamp> {
    let due = unit.due?;
    let stored = unit.state.last.as_ref().map_or(now, |last| last.ended);
    let ahead = stored.saturating_sub(now).max(0);
    Some(due.saturating_sub(ahead))
}

/// Over how many ms for each of a connection's units their first polls after a start are spread, within an interval: one
/// unit starts at once, and a thousand do not start together.
const START_SPREAD: u64 = 100;

/// One poll in so many that may be in flight may be a side walk.
const ASIDE: usize = 4;

/// How long a host that stops waits for its sinks.
pub const DRAIN: Duration = Duration::from_secs(10);

/// The units of a connection: one for each partition of each of its streams.
fn unit_keys(connection: &Connection) -> Result<Vec<UnitKey>, ConnectionError> {
    let wrong = |detail: String| ConnectionError {
        connection: connection.name.clone(),
        detail,
    };
    let mut keys = Vec::new();
    for (stream, ready) in &connection.streams {
        if ready.parent.is_some() {
            // Its units follow from what is known of the stream above.
            continue;
        }
        let partitions = connection
            .connector
            .partitions(stream, &connection.config)
            .map_err(|error| wrong(error.to_string()))?
            .map_err(|fault| wrong(format!("partitions of {stream}: {}", fault.message)))?;
        let key = |partition| UnitKey {
            connection: connection.name.clone(),
            stream: stream.clone(),
            partition,
        };
        if partitions.is_empty() {
            keys.push(key(None));
        }
        keys.extend(partitions.into_iter().map(|partition| key(Some(partition))));
    }
    Ok(keys)
}
