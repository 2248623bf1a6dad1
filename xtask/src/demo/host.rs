//! The host under test: a `weir run` of its own process, asked by way of the command line like anybody would.

use std::fs::{File, OpenOptions};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use weir_tests::demo::{DEMO_TOKEN, DEMO_TOKEN_VARIABLE};

/// How long a question to the host may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a sync waits for vendors.
const SYNC_WAIT: &str = "3s";
/// Among so many of a unit's polls is the one that matters.
const LATEST_POLLS: &str = "20";

/// Where a host's binary and files are.
pub(crate) struct Place {
    pub(crate) weir: PathBuf,
    /// The folder of `weir.toml`.
    pub(crate) dir: PathBuf,
}

impl Place {
    fn command(&self, verb: &[&str]) -> Command {
        let mut command = Command::new(&self.weir);
        command
            .args(verb)
            .arg("--config")
            .arg(self.dir.join("weir.toml"))
            .env(DEMO_TOKEN_VARIABLE, DEMO_TOKEN)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Opens the store without a host: `weir status`. Fails when it can't be opened, or takes too long.
    pub(crate) async fn opens(&self) -> anyhow::Result<()> {
        let mut command = self.command(&["status", "--json"]);
        let asked = timeout(PATIENCE, command.output()).await;
        let answer = asked.context("weir status does not end")??;
        // 3: something needs a person.
        if !matches!(answer.status.code(), Some(0 | 3)) {
            bail!(
                "weir status ended with {}: {}",
                answer.status,
                String::from_utf8_lossy(&answer.stderr)
            );
        }
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.dir.join("weir.log")
    }

    /// The end of the host's log.
    pub(crate) fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(15).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// A running host. Dropping it kills it.
pub(crate) struct Host<'a> {
    place: &'a Place,
    child: Child,
    id: u32,
}

impl<'a> Host<'a> {
    /// Starts it; it may take a while until it polls.
    pub(crate) fn start(place: &'a Place) -> anyhow::Result<Self> {
        Host::start_with(place, &["run"])
    }

    /// Starts it with another verb: `["sync", "--full"]`.
    pub(crate) fn start_with(place: &'a Place, verb: &[&str]) -> anyhow::Result<Self> {
        let log: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(place.log())?;
        let child = place
            .command(verb)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("{} does not start", place.weir.display()))?;
        let id = child.id().context("the host ended as it began")?;
        Ok(Host { place, child, id })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Fails when it has ended although nobody asked it to.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!(
                "weir ended by itself ({status}); the end of its log:\n{}",
                self.place.last_words()
            );
        }
        Ok(())
    }

    /// SIGKILL: no goodbye.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("weir can't be killed")
    }

    /// SIGTERM; fails when it does not end, or not well.
    pub(crate) async fn stop(mut self, patience: Duration) -> anyhow::Result<()> {
        let pid = i32::try_from(self.id).ok().and_then(Pid::from_raw);
        kill_process(pid.context("not a process id")?, Signal::TERM)?;
        let status: ExitStatus = match timeout(patience, self.child.wait()).await {
            Ok(status) => status?,
            Err(_) => bail!("weir was sent SIGTERM and still runs after {patience:?}"),
        };
        if !status.success() {
            bail!(
                "weir was sent SIGTERM and ended with {status}; the end of its log:\n{}",
                self.place.last_words()
            );
        }
        Ok(())
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// `weir status`; none while it can't answer.
    pub(crate) async fn status(&self) -> Option<Status> {
        self.ask(&["status", "--json"]).await
    }

    /// `weir sync`, answered by this host: every unit is polled now. None while it can't answer.
    pub(crate) async fn sync(&self) -> Option<Synced> {
        self.ask(&["sync", "--json", "--wait", SYNC_WAIT]).await
    }

    /// Does `weir polls` tell of a walk over a unit that went well and whose window ends after `moment`, ms since the Unix
    /// epoch?
    pub(crate) async fn has_read(&self, unit: &str, moment: i64) -> bool {
        let limit = LATEST_POLLS;
        let answer = self.ask(&["polls", unit, "--json", "--limit", limit]).await;
        answer.is_some_and(|Polls { polls }| polls.iter().any(|poll| poll.has_read(moment)))
    }

    async fn ask<T: DeserializeOwned>(&self, verb: &[&str]) -> Option<T> {
        // Where no host listens, the command would open the store itself, and stand in the way of a host that starts.
        UnixStream::connect(self.place.dir.join("data").join("weir.sock")).ok()?;
        let mut command = self.place.command(verb);
        let asked = timeout(PATIENCE, command.stderr(Stdio::null()).output());
        let answer = asked.await.ok()?.ok()?;
        serde_json::from_slice(&answer.stdout).ok()
    }
}

/// What the demo shows of `weir status --json`.
#[derive(Debug, Deserialize)]
pub(crate) struct Status {
    pub(crate) now: i64,
    pub(crate) units: Vec<Unit>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Unit {
    pub(crate) unit: String,
    pub(crate) polling: bool,
    pub(crate) outcome: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) due: Option<i64>,
    pub(crate) waiting_until: Option<i64>,
    pub(crate) parked: Option<Parked>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Parked {
    pub(crate) message: String,
}

/// What the demo reads of `weir sync --json`.
#[derive(Debug, Deserialize)]
pub(crate) struct Synced {
    pub(crate) delivered: bool,
}

/// What the demo reads of `weir polls --json`.
#[derive(Debug, Deserialize)]
struct Polls {
    polls: Vec<Poll>,
}

#[derive(Debug, Deserialize)]
struct Poll {
    reason: String,
    outcome: String,
    window: Window,
}

#[derive(Debug, Deserialize)]
struct Window {
    until: i64,
}

impl Poll {
    fn has_read(&self, moment: i64) -> bool {
        let good = matches!(self.outcome.as_str(), "ok" | "not-modified");
        let main = !matches!(self.reason.as_str(), "settle" | "backfill");
        good && main && self.window.until > moment
    }
}
