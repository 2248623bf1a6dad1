//! A whole host in one process: the real scheduler, poll path, store and connectors, with a clock that the test turns
//! and a transport that is a simulated vendor or a script.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "each test file uses its own part, and what fails there fails a test"
)]

pub mod clock;
pub mod script;
pub mod shop;
pub mod vendor;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir::catalogue::Catalogue;
use weir::config::{self, Config};
use weir::host::{Host, Parts};
use weir::http::Transport;
use weir::oauth::KeySource;
use weir::poll::Report;
use weir::random::Random;
use weir::simulate::Machine;
use weir::sink::line::Lines;
use weir::stop::Stop;
use weir::store::{MemoryDisk, PollRow, RedbStore, StoreOptions, UnitRow};
use weir_rules::model::Reason;
use weir_runtime::{Limits, Runtime, RuntimeConfig};
use weir_tests::judge::Delivered;

use clock::TestClock;

/// 2031-03-04T10:00:00Z
pub const NOW: i64 = 1_930_384_800_000;

/// A host under test. Its store's disk outlives it, so that it can be started again.
pub struct Rig {
    connectors: PathBuf,
    pub clock: Arc<TestClock>,
    pub host: Arc<Host>,
    disk: MemoryDisk,
    transport: Arc<dyn Transport>,
    config: String,
    running: tokio::task::JoinHandle<()>,
}

/// Where the built connectors are.
pub fn connectors() -> PathBuf {
    let dir = std::env::var_os("WEIR_CONNECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../dist/connectors"),
        PathBuf::from,
    );
    assert!(
        dir.join("rest.wasm").is_file(),
        "no connectors in {}: run `cargo xtask build --connectors-only` first",
        dir.display()
    );
    dir
}

impl Rig {
    /// A host with this configuration (without its `[host]` part), at [`NOW`].
    pub async fn new(config: &str, transport: Arc<dyn Transport>) -> Rig {
        Rig::of(&connectors(), config, transport).await
    }

    /// The same with the connectors of this directory.
    pub async fn of(connectors: &Path, config: &str, transport: Arc<dyn Transport>) -> Rig {
        let clock = Arc::new(TestClock::new(NOW));
        Rig::start(connectors, config, transport, MemoryDisk::new(), clock).await
    }

    /// The same, on a clock that somebody else reads too.
    pub async fn on_clock(
        config: &str,
        transport: Arc<dyn Transport>,
        clock: Arc<TestClock>,
    ) -> Rig {
        Rig::start(&connectors(), config, transport, MemoryDisk::new(), clock).await
    }

    async fn start(
        connectors: &Path,
        config: &str,
        transport: Arc<dyn Transport>,
        disk: MemoryDisk,
        clock: Arc<TestClock>,
    ) -> Rig {
        let runtime = Runtime::new(RuntimeConfig {
            cache_dir: Some(cache()),
            workers: 2,
            limits: limits(connectors),
            ..RuntimeConfig::default()
        })
        .expect("the runtime starts");
        let catalogue = Catalogue::open(connectors, runtime.clone());
        let host = Host::with(
            parse_in(connectors, config),
            Stop::default(),
            Parts {
                clock: clock.clone(),
                random: Random::seeded(7),
                store: RedbStore::in_memory(disk.clone(), StoreOptions::default())
                    .expect("the store opens"),
                transport: transport.clone(),
                runtime,
                catalogue: Arc::new(catalogue.expect("the connectors' directory is readable")),
                key: KeySource::Given([7; 32]),
            },
        )
        .expect("the host opens");
        host.store
            .set_sinks(vec!["main".into()])
            .await
            .expect("the writer lives")
            .expect("the sink is known");
        host.prepare(true).await.expect("the connections are ready");
        for (name, state) in host.connections.all() {
            if let Err(why) = state {
                panic!("connection {name}: {why}");
            }
        }
        let running = {
            let host = host.clone();
            tokio::spawn(async move { host.run().await })
        };
        Rig {
            connectors: connectors.to_owned(),
            clock,
            host,
            disk,
            transport,
            config: config.to_owned(),
            running,
        }
    }

    /// Kills the host where it stands and starts another one on what its disk held at that instant.
    pub async fn crash(self) -> Rig {
        let disk = self.disk.snapshot();
        let (config, transport) = (self.config.clone(), self.transport.clone());
        let (clock, connectors) = (self.clock.clone(), self.connectors.clone());
        // What the dead host's last polls still do, nobody sees.
        drop(self);
        Rig::start(&connectors, &config, transport, disk, clock).await
    }

    /// The same with another configuration.
    pub async fn restart_with(mut self, config: &str) -> Rig {
        self.config = config.to_owned();
        self.crash().await
    }

    /// Every unit.
    pub fn units(&self) -> Vec<UnitRow> {
        let mut units = Vec::new();
        let each = &mut |unit| units.push(unit);
        self.host
            .store
            .for_each_unit(each)
            .expect("units can be read");
        units
    }

    /// The unit of that name.
    pub fn unit(&self, name: &str) -> UnitRow {
        let found = self
            .units()
            .into_iter()
            .find(|unit| unit.key.to_string() == name);
        found.unwrap_or_else(|| panic!("no unit {name}"))
    }

    /// Polls a unit now, as the schedule would, and waits for its end.
    pub async fn poll(&self, name: &str) -> Report {
        self.ask(name, Reason::Schedule).await
    }

    /// Polls a unit for a given reason.
    pub async fn ask(&self, name: &str, reason: Reason) -> Report {
        let (_, report) = self.host.scheduler.ask(self.unit(name).id, reason);
        report.await.expect("the poll ends")
    }

    /// Lets the schedule run until the clock shows so many ms more. Whatever falls due on the way is polled at its time.
    pub async fn run_for(&self, ms: u64) {
        let end = self.clock.wall_now() + i64::try_from(ms).expect("a short time");
        loop {
            self.settle().await;
            let Some(next) = self.clock.next_wake() else {
                break;
            };
            if next > end {
                break;
            }
            self.clock.set(next);
        }
        self.clock.set(end);
        self.settle().await;
    }

    /// Waits until nothing is being polled and nothing is due.
    pub async fn settle(&self) {
        // What a wake has set going gets its turn, whether or not a poll is among it.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        loop {
            let idle = {
                let scheduler = &self.host.scheduler;
                let now = weir::clock::Clock::monotonic(&*self.clock);
                let running = scheduler.queue().running();
                running == 0 && scheduler.next_start(now).is_none_or(|due| due > now)
            };
            if idle && self.clock.someone_sleeps() {
                return;
            }
            if !idle
                && self
                    .clock
                    .every_poll_sleeps(self.host.scheduler.queue().running())
            {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_micros(200)).await;
        }
    }

    /// All that waits in the outbox, as the lines that a sink would write.
    pub fn lines(&self) -> Vec<Delivered> {
        let batch = self
            .host
            .store
            .outbox("main", None, usize::MAX)
            .expect("the outbox reads");
        assert!(batch.unreadable.is_empty());
        let (mut lines, mut text) = (Lines::default(), Vec::new());
        for entry in &batch.entries {
            lines.write(entry, &mut text);
        }
        let text = String::from_utf8(text).expect("lines are UTF-8");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a line is JSON"))
            .collect()
    }

    /// `id@revision` of every delivered line, in order.
    pub fn delivered(&self) -> Vec<String> {
        self.lines()
            .iter()
            .map(|line| format!("{}@{}", line.id, line.revision))
            .collect()
    }

    /// The log of polls, oldest first.
    pub fn polls(&self) -> Vec<PollRow> {
        let mut polls = self
            .host
            .store
            .polls(None, 10_000)
            .expect("polls can be read");
        polls.reverse();
        polls
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// A configuration without its `[host]` part.
pub fn parse(config: &str) -> Config {
    parse_in(&connectors(), config)
}

fn parse_in(connectors: &Path, config: &str) -> Config {
    let text = format!(
        "[host]\ndata = \"unused\"\nconnectors = {:?}\n{config}",
        connectors
    );
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("weir.toml");
    std::fs::write(&path, text).expect("the configuration is written");
    config::load(&path).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Our own connectors do no harm, and a machine with much to do may leave one waiting for long in the middle of a call.
/// What a test has put somewhere else is held to the usual limits.
fn limits(dir: &Path) -> Limits {
    let usual = Limits::default();
    if dir == connectors() {
        Limits {
            call: usual.call * 10,
            describe: usual.describe * 10,
            ..usual
        }
    } else {
        usual
    }
}

/// What simulations share.
pub fn machine() -> Machine {
    Machine::open(&connectors(), Some(cache()), 2).expect("the connectors load")
}

/// Compiled connectors, shared by all tests of a run.
pub fn cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compiled")
}
