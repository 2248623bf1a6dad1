//! Secrets in files, read again when the files change: a token is renewed without a restart.
//!
//! Promises:
//! - A poll that begins after a file has changed is signed with what the file holds now. Polls under way end with what
//!   they began with.
//! - A file that can't be read any more, that others may read, or that is empty changes nothing: what was read before is
//!   used on, since it may well still be good, and `weir status` says so until the file is in order. If it is not good any
//!   more, the vendor says that.
//! - A changed secret counts as signing in, as it does at a start.
//!
//! Refuses: `oauth2`, whose tokens the host renews by itself and keeps; its secrets are read at the start. So are those
//! of sinks, and those that come from the environment, a command or systemd.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::config::Auth;
use crate::host::Host;
use crate::store::StoreError;

/// How often the files of connections are looked at that are not polled.
const EVERY: Duration = Duration::from_secs(5);

/// What was read of the connections' secret files.
#[derive(Default)]
pub struct SecretFiles {
    seen: Mutex<BTreeMap<String, Seen>>,
    /// Held by whoever reads: who comes meanwhile waits for what that brings.
    turn: tokio::sync::Mutex<()>,
}

/// One connection's.
#[derive(Clone, Default)]
struct Seen {
    stamps: Vec<Option<Stamp>>,
    /// What the files held when they could last be read.
    auth: Option<Auth>,
    /// Why they can't be read now.
    problem: Option<String>,
}

/// Tells whether a file has changed, its permissions included.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Stamp {
            inode: meta.ino(),
            length: meta.len(),
            written: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

impl SecretFiles {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the files of a connection held when they were last read; none while that is what the configuration was read
    /// with.
    pub fn auth(&self, connection: &str) -> Option<Auth> {
        self.lock().get(connection)?.auth.clone()
    }

    /// Why a connection's files can't be read now.
    pub fn problem(&self, connection: &str) -> Option<String> {
        self.lock().get(connection)?.problem.clone()
    }

    fn knows(&self, connection: &str, stamps: &[Option<Stamp>]) -> bool {
        let seen = self.lock();
        seen.get(connection)
            .is_some_and(|seen| seen.stamps == stamps)
    }
}

impl Host {
    /// Reads a connection's secret files again where they have changed, and makes it ready with what they hold now.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn renew_secrets(&self, name: &str) -> Result<(), StoreError> {
        let Some(settings) = self.config.connections.get(name) else {
            return Ok(());
        };
        let files = settings.auth.files();
        if files.is_empty() || self.secret_files.knows(name, &stamps(&files)) {
            return Ok(());
        }
        let _turn = self.secret_files.turn.lock().await;
        // Taken before the files are read: what changes meanwhile is read the next time.
        let stamps = stamps(&files);
        if self.secret_files.knows(name, &stamps) {
            return Ok(());
        }
        let used = self.secret_files.auth(name);
        let used = used.as_ref().unwrap_or(&settings.auth);
        let (auth, problem) = match used.read_again() {
            Ok(auth) => (Some(auth), None),
            Err(problem) => {
                tracing::error!(
                    connection = name,
                    problem,
                    "the secret that was read before is used on"
                );
                (self.secret_files.auth(name), Some(problem))
            }
        };
        let renewed = problem.is_none() && auth.as_ref() != Some(used);
        let seen = Seen {
            stamps,
            auth,
            problem,
        };
        self.secret_files.lock().insert(name.to_owned(), seen);
        if renewed {
            tracing::info!(connection = name, "a new secret was read from its file");
            self.prepare_connection(name, self.is_scheduled()).await?;
        }
        Ok(())
    }
}

/// Looks at the files of all connections now and then: those that wait for a sign-in are not polled. Ends with the host.
pub async fn watch(host: Arc<Host>) {
    let names: Vec<&String> = host
        .config
        .connections
        .iter()
        .filter(|(_, settings)| !settings.auth.files().is_empty())
        .map(|(name, _)| name)
        .collect();
    while !names.is_empty() && !host.stop.stopped() {
        host.clock.sleep(EVERY).await;
        for name in &names {
            if let Err(error) = host.renew_secrets(name).await {
                tracing::error!(connection = name, %error, "the connection could not be made ready");
            }
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|path| Stamp::of(path)).collect()
}
