//! The running host's local interface: what the verbs of the command line ask, and how they are answered.
//!
//! Every verb is a [`Request`] that a [`Host`](crate::host::Host) answers. While `weir run` holds the store, the
//! request travels over a Unix socket in the data directory; otherwise the command opens the store itself and
//! answers its own request. Either way the answer is the same value, so what a person sees does not depend on it.
//!
//! On the wire: one JSON object per line. The client sends one request; the host sends any number of
//! `{"said": {...}}` lines and then one `{"reply": {...}}` or `{"failed": {...}}`. While it is at work it sends `"alive"`
//! every [`ALIVE`], so that a client knows a host that is stopped or stuck from one that takes long: after [`SILENCE`]
//! without a word the client gives up. A client that leaves takes its request back: nothing more is begun for it. The
//! socket is readable and writable by its owner alone.
//!
//! Whoever speaks HTTP there is answered too: [`status::serve_client`](crate::status::serve_client) has what.

mod address;
mod client;
mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Timestamp};

pub use client::{Unreachable, ask, is_served};
pub use server::serve;

/// What a verb asks of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// How everything is.
    Status {
        /// Every unit, not only those that need a look and a few others.
        all: bool,
    },
    /// Polls now, and reports when everything asked for has been read and delivered.
    Sync {
        /// `CONNECTION`, `CONNECTION/STREAM` or `CONNECTION/STREAM/PARTITION`; none: everything.
        unit: Option<String>,
        /// Read everything again, not only what is new.
        full: bool,
        /// Longest wait for a vendor, in ms, before the rest is left to later.
        wait: u64,
    },
    /// Tries the configuration, the connectors and the credentials.
    Check {
        /// Call no vendor.
        offline: bool,
        /// The configuration that is meant, which need not be the one that the host was started with.
        file: PathBuf,
    },
    /// The connectors' directory.
    Connectors {
        /// Only this connector, in full.
        name: Option<String>,
    },
    /// What is remembered of the records of a unit.
    Records {
        /// `CONNECTION/STREAM` or `CONNECTION/STREAM/PARTITION`; none: a count for every unit.
        unit: Option<String>,
        /// At most this many.
        limit: usize,
        /// Only ids after this one.
        after: Option<String>,
    },
    /// The log of polls, newest first.
    Polls(PollFilter),
    /// The holes in the data.
    Gaps {
        /// Only those of these units.
        unit: Option<String>,
        /// Take note of those that can't be filled: they no longer call for a person.
        #[serde(default)]
        accept: bool,
    },
    /// Reads a part of the past again, from spare quota.
    Backfill {
        /// `CONNECTION/STREAM` or `CONNECTION/STREAM/PARTITION`.
        unit: String,
        /// The first moment of it, in the vendor's time.
        since: Timestamp,
        /// The first moment after it; none: now.
        until: Option<Timestamp>,
        /// Answer when it has been read and delivered, not when it has been queued.
        wait: bool,
    },
    /// Lets a person sign in for a connection.
    Login {
        /// The connection.
        connection: String,
        /// By a code, in any browser; else in one on this machine.
        device: bool,
        /// How long the person may take, in ms.
        wait: u64,
    },
    /// Polls, keeps what is said, and stores nothing: recorded walks for a connector's tests.
    Record {
        /// The connection.
        connection: String,
        /// Only this stream.
        stream: Option<String>,
        /// Only this slice.
        partition: Option<String>,
        /// JSON pointers to what is not kept of bodies.
        scrub: Vec<String>,
        /// Calls of each walk, at most.
        calls: usize,
        /// From where the unit's next poll would begin, not from the start.
        resume: bool,
    },
    /// Polls a connection again that needed a sign-in, and the units of it that were parked.
    Resume {
        /// The connection.
        connection: String,
    },
    /// Trusts the present file of a connector.
    Trust {
        /// The connector.
        connector: String,
    },
    /// Which connector files are the trusted ones.
    Verify,
    /// What waits for a person's look.
    Review {
        /// Only that of these units.
        unit: Option<String>,
        /// What was given up too.
        all: bool,
    },
    /// One thing that waits, in full.
    ReviewShow {
        /// Its name.
        id: String,
    },
    /// Tries again what waits.
    ReviewRetry {
        /// The name of one thing, or of units.
        what: String,
    },
    /// Gives up one thing that waits.
    ReviewDrop {
        /// Its name.
        id: String,
    },
    /// Lets units begin anew.
    Reset {
        /// The units.
        unit: String,
        /// Forgets what is known of their records too.
        records: bool,
        /// Only says what would be done.
        plan: bool,
    },
}

/// Which polls of the log are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PollFilter {
    /// Only polls of these units.
    pub unit: Option<String>,
    /// At most this many.
    pub limit: usize,
    /// Only those that ended so: the word of an [`Outcome`](crate::poll::Outcome).
    pub outcome: Option<String>,
    /// Only those that ended in such a fault.
    pub class: Option<Class>,
    /// Only those that did not bring everything.
    #[serde(default)]
    pub trouble: bool,
    /// Only those that ended since then.
    pub since: Option<Since>,
}

/// A moment, as people name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// By the clock.
    At(Timestamp),
    /// So many ms ago.
    Ago(u64),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The exit code that the answer calls for: 0 done, 1 failed, 3 done but something needs a person.
    pub exit: u8,
    /// The answer; its shape is the verb's own.
    pub body: serde_json::Value,
}

impl Reply {
    /// A reply that needs nobody.
    pub fn done(body: impl Serialize) -> Reply {
        Reply::with_exit(0, body)
    }

    /// A reply with an exit code of its own.
    pub fn with_exit(exit: u8, body: impl Serialize) -> Reply {
        Reply {
            exit,
            // The bodies are plain structs with string keys, which always have a JSON form.
            body: serde_json::to_value(body).unwrap_or_default(),
        }
    }
}

/// What a host says while it is at work on a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Said {
    /// Something has happened.
    Line(String),
    /// How far it is; the next one takes its place.
    Passing(String),
}

/// A line from the host to the client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Alive,
    Said(Said),
    Reply(Reply),
    Failed(Failed),
}

/// A request that got no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Why, for a person.
    pub text: String,
    /// The exit code that this calls for: 1 failed, 2 wrong use.
    pub exit: u8,
}

/// How often a host that is at work on a request says so.
const ALIVE: Duration = Duration::from_secs(2);
/// How long a client waits for a word.
const SILENCE: Duration = Duration::from_secs(10);

/// Where the socket of a host with this data directory is.
pub fn socket_path(data: &Path) -> PathBuf {
    data.join("weir.sock")
}
