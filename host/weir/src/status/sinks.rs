//! The sinks' part of a snapshot: what they refuse, and which of them takes nothing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::config::SinkConfig;
use crate::host::Host;
use crate::sink::{DeliveryStatus, Failing};
use crate::store::{LetterState, StoreError};

/// One sink.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SinkStatus {
    /// Its name.
    pub name: String,
    /// `stdout`, `file out/{connection}.ndjson`, `webhook https://ingest.example.test`
    pub kind: String,
    /// How its delivery goes; none where no delivery loop runs.
    pub delivery: Option<DeliveryStatus>,
    /// Records that it has refused and that wait for a person.
    #[serde(default)]
    pub dead: u64,
    /// Records that it has refused and that are tried again, with what waits behind them.
    #[serde(default)]
    pub held: u64,
}

impl SinkStatus {
    /// Set while it takes nothing.
    pub fn failing(&self) -> Option<&Failing> {
        self.delivery.as_ref()?.failing.as_ref()
    }

    /// It is left alone until somebody has looked at it.
    pub fn needs_person(&self) -> bool {
        self.failing().is_some_and(|failing| failing.next.is_none())
    }

    /// It has as many dead letters as it may have.
    pub fn letters_full(&self) -> bool {
        self.delivery
            .as_ref()
            .is_some_and(|delivery| delivery.letters_full)
    }
}

/// The sinks, and how many records wait for a person, of former sinks too.
pub(super) fn collect(host: &Host) -> Result<(Vec<SinkStatus>, u64), StoreError> {
    let mut letters: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut dead_letters = 0;
    host.store.for_each_letter(None, &mut |letter| {
        let (dead, held) = letters.entry(letter.sink).or_default();
        match letter.state {
            LetterState::Dead => {
                *dead += 1;
                dead_letters += 1;
            }
            LetterState::Held => *held += 1,
        }
        ControlFlow::Continue(())
    })?;
    let mut deliveries = host.sinks.all();
    let sinks = host
        .config
        .sinks
        .iter()
        .map(|(name, sink)| {
            let (dead, held) = letters.remove(name).unwrap_or_default();
            SinkStatus {
                name: name.clone(),
                kind: match sink {
                    SinkConfig::Stdout => "stdout".to_owned(),
                    SinkConfig::File { path, .. } => format!("file {}", path.display()),
                    SinkConfig::Webhook(config) => format!("webhook {}", config.url),
                },
                delivery: deliveries.remove(name),
                dead,
                held,
            }
        })
        .collect();
    Ok((sinks, dead_letters))
}
