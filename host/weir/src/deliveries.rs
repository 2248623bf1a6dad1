//! The sinks of a host, each with its delivery loop.
//!
//! Every sink of the configuration takes the whole outbox at its own pace. When whoever read our stdout has gone for
//! good the host is told to stop: polling on would only fill the outbox.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::{self, Config, SinkConfig};
use crate::host::Host;
use crate::sink::{
    Delivery, DeliverySettings, DeliveryStatus, Ended, FileSettings, FileSink, Mode, Period,
    Rotation, Sink, StdoutSink, TemplateError,
};
use crate::store::StoreError;

/// For how long a loop that was told to stop is waited for: a write may hang in the file system.
const LAST_BATCH: Duration = Duration::from_secs(1);

/// The loops of all sinks.
pub struct Deliveries {
    mode: watch::Sender<Mode>,
    loops: Vec<JoinHandle<()>>,
}

/// Why a sink can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum DeliveriesError {
    /// Its settings.
    #[error("sink {sink}: {source}")]
    Settings {
        /// The sink's name.
        sink: String,
        /// What is wrong.
        source: TemplateError,
    },
    /// The store does not take its name.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How the sinks are doing, for whoever asks.
#[derive(Default)]
pub struct Board {
    sinks: Mutex<BTreeMap<String, watch::Receiver<DeliveryStatus>>>,
}

impl Board {
    /// How each sink is doing; empty where no delivery loop runs.
    pub fn all(&self) -> BTreeMap<String, DeliveryStatus> {
        let sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        sinks
            .iter()
            .map(|(name, status)| (name.clone(), status.borrow().clone()))
            .collect()
    }

    fn set(&self, name: &str, status: watch::Receiver<DeliveryStatus>) {
        let mut sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        sinks.insert(name.to_owned(), status);
    }
}

impl Deliveries {
    /// Makes the sinks of the configuration known to the store and starts their loops.
    ///
    /// # Errors
    /// [`DeliveriesError`].
    pub async fn start(host: &Arc<Host>) -> Result<Deliveries, DeliveriesError> {
        let mut sinks = Vec::new();
        for (name, settings) in &host.config.sinks {
            sinks.push(make(name, settings)?);
        }
        let names = host.config.sinks.keys().cloned().collect();
        let known = host.store.set_sinks(names).await;
        known.unwrap_or(Err(StoreError::Closed))?;
        let (mode, modes) = watch::channel(Mode::Run);
        let loops = sinks
            .into_iter()
            .map(|sink| {
                let name = sink.name().to_owned();
                let delivery = Delivery::new(
                    host.store.clone(),
                    host.clock.clone(),
                    sink,
                    DeliverySettings::default(),
                );
                host.sinks.set(&name, delivery.status());
                let (host, modes) = (host.clone(), modes.clone());
                tokio::spawn(async move {
                    let ended = delivery.run(modes).await;
                    after(&host, &name, &ended);
                })
            })
            .collect();
        Ok(Deliveries { mode, loops })
    }

    /// Delivers what is there, for up to `limit`, and ends. What is left stays in the outbox.
    pub async fn finish(self, limit: Duration) {
        self.mode.send_replace(Mode::Drain);
        let mut loops = self.loops;
        if !ended(&mut loops, limit).await {
            self.mode.send_replace(Mode::Stop);
            if !ended(&mut loops, LAST_BATCH).await {
                tracing::warn!(
                    "a sink did not end in time: what it has not acknowledged is delivered again"
                );
            }
        }
    }
}

/// Have they all ended within that time?
async fn ended(loops: &mut Vec<JoinHandle<()>>, limit: Duration) -> bool {
    tokio::time::timeout(limit, async {
        while let Some(last) = loops.last_mut() {
            // A panic is in the log; the outbox keeps what was not acknowledged.
            let _ = last.await;
            loops.pop();
        }
    })
    .await
    .is_ok()
}

fn after(host: &Host, sink: &str, ended: &Ended) {
    match ended {
        Ended::Drained => {}
        Ended::Stopped => {
            let left = host.store.outbox_size().map_or(0, |size| size.entries);
            if left > 0 {
                tracing::warn!(
                    sink,
                    left,
                    "not everything was delivered; it is kept for the next start"
                );
            }
        }
        Ended::GaveUp(error) => {
            tracing::error!(sink, %error, "not everything was delivered; it is kept for the next start");
        }
        Ended::Closed(error) => {
            tracing::error!(sink, %error, "whoever read the records has gone: stopping; what was not taken is kept");
            host.stop.stop();
        }
        Ended::StoreClosed => tracing::error!(sink, "the store has closed: delivery ends"),
    }
}

/// Checks a sink's settings without touching what they name.
///
/// # Errors
/// [`DeliveriesError::Settings`].
pub fn check(name: &str, settings: &SinkConfig) -> Result<(), DeliveriesError> {
    make(name, settings).map(drop)
}

/// Does any sink write to this process's stdout?
pub fn writes_to_stdout(config: &Config) -> bool {
    config
        .sinks
        .values()
        .any(|sink| *sink == SinkConfig::Stdout)
}

fn make(name: &str, settings: &SinkConfig) -> Result<Box<dyn Sink>, DeliveriesError> {
    Ok(match settings {
        SinkConfig::Stdout => Box::new(StdoutSink::new(name)),
        SinkConfig::File { path, rotate } => {
            let settings = FileSettings {
                rotation: Rotation {
                    bytes: rotate.size,
                    period: rotate.every.map(|every| match every {
                        config::Every::Hour => Period::Hour,
                        config::Every::Day => Period::Day,
                    }),
                },
                ..FileSettings::new(path)
            };
            let made = FileSink::new(name, settings);
            Box::new(made.map_err(|source| DeliveriesError::Settings {
                sink: name.to_owned(),
                source,
            })?)
        }
    })
}
