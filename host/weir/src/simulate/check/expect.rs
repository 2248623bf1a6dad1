//! What the configuration promises of each unit. Only this much of it is known to the checker.

use std::collections::HashMap;

use weir_rules::model::{Duration, Timestamp};

use crate::config::{Config, Overlap};
use crate::store::UnitKey;

/// The overlap that is kept whatever is measured, in ms.
const LEAST_OVERLAP: Duration = 30_000;

/// Of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected {
    /// How far before the newest record every poll reads again, in ms.
    pub(super) overlap: Duration,
    /// No two polls are further apart, where the configuration says so, in ms.
    pub(super) longest: Option<Duration>,
    /// Nor nearer, in ms.
    pub(super) shortest: Option<Duration>,
    /// How late a record may become visible, where the configuration says so: a second look finds it, in ms.
    pub(super) settle: Option<Duration>,
    /// Nothing older is wanted.
    pub(super) start: Option<Timestamp>,
    /// The connection may have so many calls in flight.
    pub(super) concurrency: Option<u64>,
    /// The vendor's latency may make intervals longer.
    pub(super) under_pressure: bool,
}

/// Of all streams.
#[derive(Default)]
pub(super) struct Expectations {
    config: Option<Config>,
    connections: HashMap<String, (Option<u64>, bool)>,
}

impl Expectations {
    pub(super) fn of(config: &Config) -> Expectations {
        let connections = config.connections.iter().map(|(name, connection)| {
            let own: serde_json::Value =
                serde_json::from_str(&connection.config).unwrap_or_default();
            let concurrency = own.pointer("/pacing/concurrency");
            let pressure = own.pointer("/pacing/unpublished_limits");
            let facts = (
                concurrency.and_then(serde_json::Value::as_u64),
                pressure.and_then(serde_json::Value::as_bool) == Some(true),
            );
            (name.clone(), facts)
        });
        Expectations {
            connections: connections.collect(),
            config: Some(config.clone()),
        }
    }

    pub(super) fn unit(&self, key: &UnitKey) -> Expected {
        let stream = self
            .config
            .as_ref()
            .and_then(|config| config.connections.get(&key.connection))
            .and_then(|connection| connection.stream(&key.stream));
        let (concurrency, under_pressure) = self
            .connections
            .get(&key.connection)
            .copied()
            .unwrap_or_default();
        let Some(stream) = stream else {
            return Expected::default();
        };
        let longest = [stream.interval.max, stream.freshness];
        Expected {
            overlap: match stream.overlap {
                Overlap::Fixed(ms) => ms,
                Overlap::Floor(floor) => floor.unwrap_or(LEAST_OVERLAP),
            },
            longest: longest.into_iter().flatten().min(),
            shortest: stream.interval.min,
            settle: stream.settle,
            start: stream.start,
            concurrency,
            under_pressure,
        }
    }
}
