//! Which connections wait for a person to sign in again.
//!
//! Promises: nothing is called for such a connection; it is remembered over a restart; a changed credential in the
//! configuration counts as signing in, and so do `weir login` and `weir resume`.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use weir_rules::model::Timestamp;

use crate::connection::Connection;
use crate::host::Host;
use crate::store::{Durable, Store, StoreError};

/// What is remembered of a connection that needs a sign-in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Needed {
    /// Since when.
    pub since: Timestamp,
    /// What the vendor said.
    pub why: String,
    /// The credential that it refused.
    pub fingerprint: String,
    /// `weir login` is the way out; else a renewed credential and `weir resume`.
    #[serde(default)]
    pub login: bool,
}

impl Needed {
    /// What a person types when the vendor takes the connection's credential again, or to make it so.
    pub fn way_out(&self, connection: &str) -> String {
        match self.login {
            true => format!("weir login {connection}"),
            false => format!("weir resume {connection}"),
        }
    }
}

/// All connections that need a sign-in.
#[derive(Default)]
pub struct SignIn {
    needed: RwLock<BTreeMap<String, Needed>>,
}

impl SignIn {
    /// What the vendor said, when the connection needs a sign-in.
    pub fn needed(&self, connection: &str) -> Option<String> {
        self.all().get(connection).map(|needed| needed.why.clone())
    }

    /// Every connection that needs one.
    pub fn all(&self) -> BTreeMap<String, Needed> {
        self.needed
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The vendor refused the connection's credential for good.
    pub fn need(&self, host: &Host, connection: &Connection, why: String) {
        let needed = Needed {
            since: host.clock.wall(),
            why,
            fingerprint: connection.fingerprint.clone(),
            login: connection.takes_sign_in(),
        };
        tracing::error!(
            connection = connection.name,
            why = needed.why,
            "the connection needs a sign-in: {}`{}`",
            if needed.login {
                ""
            } else {
                "renew its credential, then "
            },
            needed.way_out(&connection.name)
        );
        let value = serde_json::to_vec(&needed).unwrap_or_default();
        self.write().insert(connection.name.clone(), needed);
        // If this note is lost, the next call finds the same refusal.
        drop(host.store.set_note(&note(&connection.name), Some(value)));
    }

    /// Reads what was remembered of a connection when it is made ready. A changed credential clears it.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn recall(&self, store: &dyn Store, connection: &Connection) -> Result<(), StoreError> {
        let stored = store.note(&note(&connection.name))?;
        let needed = stored.and_then(|bytes| serde_json::from_slice::<Needed>(&bytes).ok());
        match needed {
            Some(needed) if needed.fingerprint == connection.fingerprint => {
                self.write().insert(connection.name.clone(), needed);
            }
            Some(_) => drop(self.clear(store, &connection.name)),
            None => {
                self.write().remove(&connection.name);
            }
        }
        Ok(())
    }

    /// A person has signed in, or says so. Forgotten for good when the returned write is durable.
    pub fn clear(&self, store: &dyn Store, connection: &str) -> Durable<()> {
        self.write().remove(connection);
        store.set_note(&note(connection), None)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Needed>> {
        self.needed.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(connection: &str) -> String {
    format!("sign-in/{connection}")
}
