//! What was counted since the start, from the polls' rows as they are committed, and from nowhere else: what was not
//! stored did not happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_rules::model::Class;
use weir_rules::walk::Tally;

use super::Latencies;
use crate::store::PollRow;

/// The counts of a host.
#[derive(Default)]
pub struct Meters {
    counts: Mutex<Counts>,
}

/// The counts as they are.
#[derive(Clone, Default)]
pub struct Counts {
    /// By connection and stream.
    pub streams: BTreeMap<(String, String), StreamCounts>,
    /// Calls by connection.
    pub latencies: BTreeMap<String, Latencies>,
    /// Faults that are tried again, by connector and class.
    pub retries: BTreeMap<(String, Class), u64>,
    /// Faults that are not, by connector and class.
    pub given_up: BTreeMap<(String, Class), u64>,
    /// How often each connection has come to need a sign-in.
    pub sign_ins: BTreeMap<String, u64>,
    /// The connections that need one.
    waiting: BTreeSet<String>,
    /// Polls that could not be stored.
    pub not_stored: u64,
}

/// The counts of one stream.
#[derive(Clone, Default)]
pub struct StreamCounts {
    /// Polls by outcome.
    pub polls: BTreeMap<String, u64>,
    /// What they saw.
    pub tally: Tally,
    /// Polls that found a full page.
    pub full_pages: u64,
    /// New and changed records that only a second look found.
    pub late: u64,
}

impl Meters {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A poll of that connector has been stored.
    pub fn polled(&self, connector: &str, row: &PollRow, latencies: &Latencies) {
        let mut counts = self.lock();
        let connection = &row.key.connection;
        let stream = (connection.clone(), row.key.stream.clone());
        let stream = counts.streams.entry(stream).or_default();
        *stream.polls.entry(row.outcome.clone()).or_default() += 1;
        stream.tally = stream.tally.plus(&row.tally);
        stream.full_pages += u64::from(row.tally.full_page);
        stream.late += row.late();
        counts
            .latencies
            .entry(connection.clone())
            .or_default()
            .merge(latencies);
        if let Some(class) = row.class {
            let key = (connector.to_owned(), class);
            if row.is_retried() {
                *counts.retries.entry(key).or_default() += 1;
            } else if row.outcome == "parked" {
                *counts.given_up.entry(key).or_default() += 1;
            }
        }
        if row.outcome == "needs-sign-in" {
            // Several units of a connection may learn of it at the same time.
            if counts.waiting.insert(connection.clone()) {
                *counts.sign_ins.entry(connection.clone()).or_default() += 1;
            }
        } else {
            counts.waiting.remove(connection);
        }
    }

    /// A poll could not be stored.
    pub fn not_stored(&self) {
        self.lock().not_stored += 1;
    }

    /// The counts as they are now.
    pub fn read(&self) -> Counts {
        self.lock().clone()
    }
}
