//! What of vendors' answers was not understood: said once for each connection, and shown for as long as the host runs.
//!
//! A header that is malformed or contradicts its siblings comes with every answer. It never fails a poll; but somebody
//! should know that a limit is not seen.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use weir_rules::model::Timestamp;

/// Remarks of one connection; a vendor with more has been described well enough.
const MOST: usize = 16;

/// The remarks of all connections.
#[derive(Default)]
pub struct Remarks {
    /// By connection, then by what was wrong with which header.
    all: Mutex<BTreeMap<String, BTreeMap<String, Remark>>>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The connection.
    pub connection: String,
    /// What was not understood, as it came first.
    pub text: String,
    /// How often since.
    pub times: u64,
    /// When it came first.
    pub since: Timestamp,
}

impl Remarks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<String, Remark>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was not understood. Logged the first time.
    pub fn add(&self, connection: &str, text: &str, now: Timestamp) {
        let mut all = self.lock();
        let remarks = all.entry(connection.to_owned()).or_default();
        let kind = kind(text);
        if let Some(known) = remarks.get_mut(&kind) {
            known.times = known.times.saturating_add(1);
            return;
        }
        if remarks.len() >= MOST {
            return;
        }
        tracing::warn!(
            connection,
            what = text,
            "a part of an answer is not understood and not used; said once"
        );
        remarks.insert(
            kind,
            Remark {
                connection: connection.to_owned(),
                text: text.to_owned(),
                times: 1,
                since: now,
            },
        );
    }

    /// All of them.
    pub fn all(&self) -> Vec<Remark> {
        self.lock()
            .values()
            .flat_map(|remarks| remarks.values().cloned())
            .collect()
    }
}

/// The header and the reason, without the value, which may be another one each time: `name: value` is ignored: why.
fn kind(text: &str) -> String {
    let (header, _) = text.split_once(':').unwrap_or((text, ""));
    let (_, why) = text.rsplit_once("is ignored").unwrap_or(("", text));
    format!("{header} {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_whatever_the_value() {
        let remarks = Remarks::default();
        for value in ["soon", "later"] {
            let text = format!("`x-ratelimit-reset: {value}` is ignored: no known form of a time");
            remarks.add("shop", &text, 5);
        }
        remarks.add(
            "shop",
            "`x-ratelimit-reset: -1` is ignored: a time below zero",
            6,
        );
        let all = remarks.all();
        assert_eq!(all.len(), 2);
        let soon = all.iter().find(|remark| remark.text.contains("soon"));
        assert_eq!(
            soon.map(|remark| (remark.times, remark.since)),
            Some((2, 5))
        );
    }

    #[test]
    fn a_vendor_can_not_fill_the_memory() {
        let remarks = Remarks::default();
        for n in 0..1_000 {
            remarks.add("shop", &format!("`x-{n}: 1` is ignored: no number"), 0);
        }
        assert_eq!(remarks.all().len(), MOST);
    }
}
