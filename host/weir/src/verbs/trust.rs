//! `weir trust` and `weir connectors verify`: which connector files a person has trusted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_runtime::Digest;

use super::text::table;
use super::{Caller, Failure};
use crate::config;
use crate::control::Reply;
use crate::host::Host;
use crate::trust::{Entry, Lock, TrustError};

/// The answer of `weir trust`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Trusted {
    connector: String,
    version: String,
    sha256: String,
    /// What it may do that the file before might not.
    more: Vec<String>,
    /// Its connections, and why one is not polled where it is not.
    connections: BTreeMap<String, Option<String>>,
}

/// Trusts the present file of a connector.
pub(super) async fn answer(
    host: &Arc<Host>,
    name: &str,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let Some(connector) = host.catalogue.get(name) else {
        let names = host.catalogue.names();
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        return Err(Failure::Unknown(format!(
            "no connector `{name}` in {}: {}",
            host.catalogue.dir().display(),
            config::suggest_name(name, &known)
        )));
    };
    let mut made = Vec::new();
    let users = host.config.connections.iter();
    let users: Vec<_> = users
        .filter(|(_, settings)| settings.connector == name)
        .collect();
    for (connection, settings) in &users {
        // One that cannot be made ready says why below, and is judged when it can.
        if let Ok((ready, _)) = host
            .put_together(connection, settings, &host.config.source)
            .await
        {
            made.push(ready);
        }
    }
    let (version, sha256) = (
        connector.descriptor().version.clone(),
        connector.digest().to_string(),
    );
    let more = host
        .trust
        .accept(name, &sha256, &version, &made)
        .map_err(refused)?;
    let mut connections = BTreeMap::new();
    for (connection, _) in users {
        host.prepare_connection(connection, caller.running).await?;
        let state = host
            .connections
            .all()
            .into_iter()
            .find(|(known, _)| known == connection);
        connections.insert(connection.clone(), state.and_then(|(_, state)| state.err()));
    }
    let exit = if connections.values().any(Option::is_some) {
        3
    } else {
        0
    };
    Ok(Reply::with_exit(
        exit,
        Trusted {
            connector: name.to_owned(),
            version,
            sha256,
            more,
            connections,
        },
    ))
}

fn refused(error: TrustError) -> Failure {
    Failure::Refused(error.to_string())
}

pub(super) fn render(answer: &Trusted) -> String {
    let mut text = format!(
        "{} {} is trusted (sha256 {})\n",
        answer.connector, answer.version, answer.sha256
    );
    for more in &answer.more {
        // Writing to a string can't fail.
        let _ = writeln!(text, "  new: {more}");
    }
    for (connection, why) in &answer.connections {
        let state = why
            .as_deref()
            .map_or("polled".to_owned(), |why| format!("not polled: {why}"));
        let _ = writeln!(text, "  connection {connection}: {state}");
    }
    text
}

/// The answer of `weir connectors verify`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Verified {
    lock: String,
    files: Vec<VerifiedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
struct VerifiedFile {
    connector: String,
    state: State,
    version: Option<String>,
    trusted_sha256: Option<String>,
    sha256: Option<String>,
    origins: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// The very file.
    Trusted,
    /// Another file: what it wants is looked at when a connection uses it.
    Changed,
    /// Trusted, and not there.
    Missing,
    /// There, and no connection has used it yet.
    New,
}

/// Compares the files of a directory with the lock file. Runs none of them.
///
/// # Errors
/// When one of the two can't be read.
pub fn verify(dir: &Path, lock: &Path) -> Result<Reply, Failure> {
    let trusted = Lock::read(lock).map_err(refused)?;
    let present = digests(dir, &trusted).map_err(|error| {
        Failure::Refused(format!("connectors directory {}: {error}", dir.display()))
    })?;
    let mut names: Vec<&String> = trusted.connector.keys().chain(present.keys()).collect();
    names.sort();
    names.dedup();
    let files: Vec<VerifiedFile> = names
        .into_iter()
        .map(|name| VerifiedFile::of(name, trusted.connector.get(name), present.get(name)))
        .collect();
    let differs = |file: &VerifiedFile| matches!(file.state, State::Changed | State::Missing);
    let exit = if files.iter().any(differs) { 1 } else { 0 };
    Ok(Reply::with_exit(
        exit,
        Verified {
            lock: lock.display().to_string(),
            files,
        },
    ))
}

impl VerifiedFile {
    fn of(name: &str, trusted: Option<&Entry>, sha256: Option<&String>) -> VerifiedFile {
        let state = match (trusted, sha256) {
            (Some(trusted), Some(sha256)) if trusted.sha256 == *sha256 => State::Trusted,
            (Some(_), Some(_)) => State::Changed,
            (Some(_), None) => State::Missing,
            (None, _) => State::New,
        };
        VerifiedFile {
            connector: name.to_owned(),
            state,
            version: trusted.map(|trusted| trusted.version.clone()),
            trusted_sha256: trusted.map(|trusted| trusted.sha256.clone()),
            sha256: sha256.cloned(),
            origins: trusted.map_or_else(Vec::new, |trusted| {
                trusted.origins.keys().cloned().collect()
            }),
        }
    }
}

/// The digests of the `.wasm` files of a directory, by the connector's name: that of the trusted file, or the file's own.
fn digests(dir: &Path, trusted: &Lock) -> std::io::Result<BTreeMap<String, String>> {
    let mut digests = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "wasm") {
            continue;
        }
        let Some(stem) = path.file_stem() else {
            continue;
        };
        let digest = Digest::of(&fs::read(&path)?).to_string();
        let known = trusted
            .connector
            .iter()
            .find(|(_, entry)| entry.sha256 == digest);
        let name = known.map_or_else(
            || stem.to_string_lossy().into_owned(),
            |(name, _)| name.clone(),
        );
        digests.insert(name, digest);
    }
    Ok(digests)
}

pub(super) fn render_verified(answer: &Verified) -> String {
    if answer.files.is_empty() {
        return format!("no connector is there, and {} names none\n", answer.lock);
    }
    let short = |sha256: &Option<String>| {
        let sha256 = sha256.as_deref().unwrap_or("-");
        sha256.get(..12).unwrap_or(sha256).to_owned()
    };
    let rows: Vec<Vec<String>> = answer
        .files
        .iter()
        .map(|file| {
            let state = match file.state {
                State::Trusted => "trusted",
                State::Changed => "changed",
                State::Missing => "missing",
                State::New => "not used yet",
            };
            vec![
                file.connector.clone(),
                state.to_owned(),
                file.version.clone().unwrap_or_else(|| "-".to_owned()),
                short(&file.trusted_sha256),
                short(&file.sha256),
                file.origins.join(", "),
            ]
        })
        .collect();
    table(
        &[
            "CONNECTOR",
            "STATE",
            "VERSION",
            "TRUSTED",
            "FILE",
            "MAY CALL",
        ],
        &rows,
    )
}
