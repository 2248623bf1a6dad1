//! Which connector files are trusted, and with what: the lock file `connectors.lock` in the data directory.
//!
//! Promises:
//! - The first file of a connector that a connection uses is taken down: its SHA-256, its version, and the places that
//!   it may call with which kinds of credential.
//! - A new file of that connector that wants no more than that takes its place by itself. One that wants to call another
//!   place, or to be sent a credential in another way, gets no call and no credential until a person has said
//!   `weir trust NAME`; its connections say so, and rest.
//! - What the same file wants may follow from the configuration, which is the user's own word: that is taken down without a
//!   question.
//! - A lock file that does not read is an error that names it, never a reason to begin anew.
//!
//! Every connection is judged by the file that it used last, so that one connection's new file is not the other's permit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use weir_runtime::contract::AuthScheme;

use crate::connection::Connection;

/// What stands at the head of the file.
const HEAD: &str = "# The connector files that are trusted, and what they may do. Written by weir; `weir trust NAME` \
                    accepts a file that wants more.\n\n";

/// Where a connector may call, and by which kinds of credential it may be known there.
pub type Reach = BTreeMap<String, BTreeSet<String>>;

/// The lock file. One without a place takes everything for trusted: for simulations, and hosts under test.
#[derive(Default)]
pub struct Trust {
    file: OnceLock<PathBuf>,
    known: Mutex<Known>,
}

/// The file's content, read once.
#[derive(Default)]
struct Known {
    lock: Option<Lock>,
    /// It says more than the file.
    unwritten: bool,
}

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// By the connector's name.
    #[serde(default)]
    pub connector: BTreeMap<String, Entry>,
}

/// A connector that is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// SHA-256 of its file, in hex.
    pub sha256: String,
    /// Its own version.
    pub version: String,
    /// Where it may call, and with what.
    pub origins: Reach,
    /// The file that each connection used last, by the connection's name.
    #[serde(default)]
    pub connections: BTreeMap<String, String>,
}

/// Why a connection may not use its connector. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file is another one and wants more.
    #[error(
        "connector {name} {version} is not the file that was trusted, and wants more than that one: {}. It gets no \
         credential and makes no call. If that is right, run `weir trust {name}`; if not, put the former file back",
        .wants.join("; ")
    )]
    Widened {
        /// The connector.
        name: String,
        /// The new file's version.
        version: String,
        /// What it wants besides.
        wants: Vec<String>,
    },
    /// The lock file can't be used.
    #[error("{}: {detail}: mend it, or put it back from a copy; without it every connector would be trusted anew", .file.display())]
    File {
        /// The lock file.
        file: PathBuf,
        /// What is wrong.
        detail: String,
    },
}

/// How a connector's file stands to what is trusted.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// Nothing is to be written.
    Known,
    /// It is taken down.
    Noted(Entry),
    /// It wants more.
    Wants(Vec<String>),
}

/// What a file is, as far as trust goes.
#[derive(Clone, Copy)]
struct File<'a> {
    connection: &'a str,
    sha256: &'a str,
    version: &'a str,
    reach: &'a Reach,
}

impl Trust {
    /// The lock file of a host with this data directory.
    pub fn file_in(data: &Path) -> PathBuf {
        data.join("connectors.lock")
    }

    /// From now on trust is kept in that file.
    pub fn keep_in(&self, file: PathBuf) {
        // Set once, when the host is opened.
        let _ = self.file.set(file);
    }

    /// May this connection be used? Changes nothing.
    ///
    /// # Errors
    /// [`TrustError`].
    pub fn look(&self, connection: &Connection) -> Result<(), TrustError> {
        self.judge(connection, false)
    }

    /// May this connection be used? What is new and harmless is taken down, and stays when [`Trust::write`] has been called.
    ///
    /// # Errors
    /// [`TrustError`].
    pub fn admit(&self, connection: &Connection) -> Result<(), TrustError> {
        self.judge(connection, true)
    }

    fn judge(&self, connection: &Connection, note: bool) -> Result<(), TrustError> {
        let Some(file) = self.file.get() else {
            return Ok(());
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { lock, unwritten } = &mut *known;
        let lock = Lock::once(lock, file)?;
        let (name, digest) = (connection.connector.name(), connection.connector.digest());
        let descriptor = &connection.descriptor;
        let standing = standing(
            lock.connector.get(name),
            File {
                connection: &connection.name,
                sha256: &digest.to_string(),
                version: &descriptor.version,
                reach: &reach(connection),
            },
        );
        match standing {
            Standing::Known => Ok(()),
            Standing::Noted(_) if !note => Ok(()),
            Standing::Noted(entry) => {
                tracing::info!(
                    connector = name,
                    connection = connection.name,
                    version = entry.version,
                    sha256 = entry.sha256,
                    "the connector's file is trusted from now on"
                );
                lock.connector.insert(name.to_owned(), entry);
                *unwritten = true;
                Ok(())
            }
            Standing::Wants(wants) => Err(TrustError::Widened {
                name: name.to_owned(),
                version: descriptor.version.clone(),
                wants,
            }),
        }
    }

    /// Writes what was taken down: once for all connections of a start.
    pub fn write(&self) {
        let Some(file) = self.file.get() else {
            return;
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { lock, unwritten } = &mut *known;
        let Some(lock) = lock.as_ref().filter(|_| *unwritten) else {
            return;
        };
        match lock.write(file) {
            Ok(()) => *unwritten = false,
            // No less safe today; tomorrow's start takes it down anew.
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "what is trusted could not be written");
            }
        }
    }

    /// A person trusts the present file of a connector for these connections of it; what it may do that the former one
    /// might not.
    ///
    /// # Errors
    /// When the lock file can't be read or written.
    pub fn accept(
        &self,
        name: &str,
        sha256: &str,
        version: &str,
        connections: &[Connection],
    ) -> Result<Vec<String>, TrustError> {
        let Some(file) = self.file.get() else {
            return Ok(Vec::new());
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { lock, unwritten } = &mut *known;
        let lock = Lock::once(lock, file)?;
        let mut origins = Reach::new();
        for connection in connections {
            widen(&mut origins, &reach(connection));
        }
        let before = lock.connector.get(name);
        let more = before.map_or_else(
            || beyond(&Reach::new(), &origins),
            |before| beyond(&before.origins, &origins),
        );
        let entry = Entry {
            sha256: sha256.to_owned(),
            version: version.to_owned(),
            origins,
            connections: connections
                .iter()
                .map(|connection| (connection.name.clone(), sha256.to_owned()))
                .collect(),
        };
        lock.connector.insert(name.to_owned(), entry);
        *unwritten = true;
        lock.write(file).map_err(|error| TrustError::File {
            file: file.clone(),
            detail: error.to_string(),
        })?;
        *unwritten = false;
        Ok(more)
    }
}

impl Lock {
    /// What the file says; nothing when there is none.
    ///
    /// # Errors
    /// [`TrustError::File`].
    pub fn read(file: &Path) -> Result<Lock, TrustError> {
        let failed = |detail: String| TrustError::File {
            file: file.to_owned(),
            detail,
        };
        match fs::read_to_string(file) {
            Ok(text) => toml::from_str(&text).map_err(|error| failed(error.message().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Lock::default()),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// What the file says, read when it is first asked for.
    fn once<'a>(known: &'a mut Option<Lock>, file: &Path) -> Result<&'a mut Lock, TrustError> {
        match known {
            Some(lock) => Ok(lock),
            None => Ok(known.insert(Lock::read(file)?)),
        }
    }

    /// Whole or not at all.
    fn write(&self, file: &Path) -> io::Result<()> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        let part = file.with_extension("lock.part");
        let mut out = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)?;
        out.write_all(HEAD.as_bytes())?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        drop(out);
        fs::rename(&part, file)
    }
}

/// How a file stands to what is trusted of its connector.
fn standing(trusted: Option<&Entry>, file: File<'_>) -> Standing {
    let Some(trusted) = trusted else {
        return Standing::Noted(Entry {
            sha256: file.sha256.to_owned(),
            version: file.version.to_owned(),
            origins: file.reach.clone(),
            connections: BTreeMap::from([(file.connection.to_owned(), file.sha256.to_owned())]),
        });
    };
    let used = trusted
        .connections
        .get(file.connection)
        .unwrap_or(&trusted.sha256);
    let more = beyond(&trusted.origins, file.reach);
    if used != file.sha256 && !more.is_empty() {
        return Standing::Wants(more);
    }
    let mut entry = trusted.clone();
    file.sha256.clone_into(&mut entry.sha256);
    file.version.clone_into(&mut entry.version);
    widen(&mut entry.origins, file.reach);
    entry
        .connections
        .insert(file.connection.to_owned(), file.sha256.to_owned());
    if entry == *trusted {
        Standing::Known
    } else {
        Standing::Noted(entry)
    }
}

/// What `wanted` holds beyond `allowed`, for a person.
fn beyond(allowed: &Reach, wanted: &Reach) -> Vec<String> {
    let mut more = Vec::new();
    for (origin, auth) in wanted {
        match allowed.get(origin) {
            None => more.push(format!("calls {origin}")),
            Some(known) => more.extend(
                auth.difference(known)
                    .map(|way| format!("credentials for {origin} as {way}")),
            ),
        }
    }
    more
}

fn widen(reach: &mut Reach, more: &Reach) {
    for (origin, auth) in more {
        reach
            .entry(origin.clone())
            .or_default()
            .extend(auth.iter().cloned());
    }
}

/// Where a connection's connector may call.
fn reach(connection: &Connection) -> Reach {
    let mut reach = Reach::new();
    for declared in &connection.descriptor.origins {
        if let Some(place) = connection.origins.get(&declared.id) {
            let origin = place.origin.base().origin().ascii_serialization();
            let auth = declared.auth.iter().map(way);
            reach.entry(origin).or_default().extend(auth);
        }
    }
    reach
}

fn way(scheme: &AuthScheme) -> String {
    match scheme {
        AuthScheme::None => "none".to_owned(),
        AuthScheme::Bearer => "bearer".to_owned(),
        AuthScheme::Basic => "basic".to_owned(),
        AuthScheme::Header(name) => format!("header {name}"),
        AuthScheme::Query(name) => format!("query {name}"),
        // The token endpoint is sent the client's secret.
        AuthScheme::Oauth2(oauth2) => format!("oauth2 {}", oauth2.token_url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(origins: &[(&str, &[&str])]) -> Reach {
        let owned = |(origin, auth): &(&str, &[&str])| {
            let auth = auth.iter().map(|way| (*way).to_owned()).collect();
            ((*origin).to_owned(), auth)
        };
        origins.iter().map(owned).collect()
    }

    fn after(trusted: Option<&Entry>, connection: &str, sha256: &str, reach: &Reach) -> Standing {
        let file = File {
            connection,
            sha256,
            version: "1.0.0",
            reach,
        };
        standing(trusted, file)
    }

    fn noted(standing: Standing) -> Entry {
        match standing {
            Standing::Noted(entry) => entry,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_new_file_may_do_less_by_itself_and_more_only_when_a_person_says_so() {
        let usual = reach(&[("https://api.test", &["bearer", "basic"])]);
        let entry = noted(after(None, "one", "aa", &usual));
        assert_eq!(after(Some(&entry), "one", "aa", &usual), Standing::Known);
        let less = reach(&[("https://api.test", &["bearer"])]);
        let entry = noted(after(Some(&entry), "one", "bb", &less));
        assert_eq!((&*entry.sha256, &entry.origins), ("bb", &usual));
        for (more, what) in [
            (
                reach(&[
                    ("https://api.test", &["bearer"]),
                    ("https://evil.test", &["bearer"]),
                ]),
                "calls https://evil.test",
            ),
            (
                reach(&[("https://api.test", &["bearer", "query key"])]),
                "credentials for https://api.test as query key",
            ),
            (
                reach(&[("http://api.test", &["bearer"])]),
                "calls http://api.test",
            ),
        ] {
            assert_eq!(
                after(Some(&entry), "one", "cc", &more),
                Standing::Wants(vec![what.to_owned()])
            );
        }
    }

    #[test]
    fn what_the_same_file_wants_is_the_configurations_word() {
        let entry = noted(after(
            None,
            "one",
            "aa",
            &reach(&[("https://a.test", &["none"])]),
        ));
        let elsewhere = reach(&[("https://b.test", &["none"])]);
        let entry = noted(after(Some(&entry), "one", "aa", &elsewhere));
        assert_eq!(entry.origins.len(), 2);
        // A further connection of the trusted file is the user's own word too.
        let third = reach(&[("https://c.test", &["none"])]);
        assert_eq!(
            noted(after(Some(&entry), "two", "aa", &third))
                .origins
                .len(),
            3
        );
    }

    #[test]
    fn one_connections_new_file_is_not_the_others_permit() {
        let usual = reach(&[("https://api.test", &["bearer"])]);
        let entry = noted(after(None, "one", "aa", &usual));
        let entry = noted(after(Some(&entry), "two", "aa", &usual));
        // The new file behaves for the first connection, and not for the second.
        let entry = noted(after(Some(&entry), "one", "bb", &usual));
        let more = reach(&[("https://evil.test", &["bearer"])]);
        assert!(matches!(
            after(Some(&entry), "two", "bb", &more),
            Standing::Wants(_)
        ));
    }

    #[test]
    fn the_file_reads_as_it_was_written_and_damage_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let file = Trust::file_in(dir.path());
        assert_eq!(Lock::read(&file).unwrap(), Lock::default());
        let entry = noted(after(
            None,
            "one",
            "aa",
            &reach(&[("https://a.test", &["query a=b"])]),
        ));
        let lock = Lock {
            connector: BTreeMap::from([("rest".to_owned(), entry)]),
        };
        lock.write(&file).unwrap();
        assert_eq!(Lock::read(&file).unwrap(), lock);
        fs::write(&file, "[connector.rest]\nsha256 = 7\n").unwrap();
        let error = Lock::read(&file).unwrap_err().to_string();
        assert!(
            error.contains("connectors.lock") && error.contains("mend it"),
            "{error}"
        );
    }
}
