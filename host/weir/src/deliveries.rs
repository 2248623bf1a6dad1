//! The sinks of a host, each with its delivery loop.
//!
//! Every sink of the configuration takes the whole outbox at its own pace. When whoever read our stdout has gone for
//! good the host is told to stop: polling on would only fill the outbox.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::Rng as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use weir_rules::backoff::{self, Backoff};

use crate::config::{Config, Every, Rotate, SinkConfig, Webhook};
use crate::host::Host;
use crate::sink::{
    Delivery, DeliverySettings, DeliveryStatus, Ended, FileSettings, FileSink, Mode, Period,
    Rotation, Sink, StdoutSink, TemplateError, WebhookError, WebhookSettings, WebhookSink, webhook,
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
    /// Its address or credential.
    #[error("sink {sink}: {source}")]
    Webhook {
        /// The sink's name.
        sink: String,
        /// What is wrong.
        source: WebhookError,
    },
    /// There is no stdout to write to.
    #[error(
        "sink {sink} writes to stdout, which is closed: records would be lost. Leave it open, or configure a sink of type \
         \"file\""
    )]
    NoStdout {
        /// The sink's name.
        sink: String,
    },
    /// The store does not take its name.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How the sinks are doing, for whoever asks.
#[derive(Default)]
pub struct Board {
    sinks: Mutex<BTreeMap<String, Line>>,
}

/// The line to a delivery loop.
struct Line {
    status: watch::Receiver<DeliveryStatus>,
    resumer: watch::Sender<u64>,
}

impl Board {
    /// How each sink is doing; empty where no delivery loop runs.
    pub fn all(&self) -> BTreeMap<String, DeliveryStatus> {
        let sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        sinks
            .iter()
            .map(|(name, line)| (name.clone(), line.status.borrow().clone()))
            .collect()
    }

    /// A person says that the sink is in order again: it is tried at once. False when no loop of that name runs.
    pub fn resume(&self, name: &str) -> bool {
        let sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(line) = sinks.get(name) else {
            return false;
        };
        line.resumer.send_modify(|times| *times += 1);
        true
    }

    fn set(&self, name: &str, delivery: &Delivery) {
        let mut sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        let line = Line {
            status: delivery.status(),
            resumer: delivery.resumer(),
        };
        sinks.insert(name.to_owned(), line);
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
            if *settings == SinkConfig::Stdout && stdout_is_closed() {
                return Err(DeliveriesError::NoStdout { sink: name.clone() });
            }
            sinks.push(make(host, name, settings)?);
        }
        Deliveries::start_with(host, sinks).await
    }

    /// The same with these sinks in place of the configuration's.
    ///
    /// # Errors
    /// [`DeliveriesError::Store`].
    pub async fn start_with(
        host: &Arc<Host>,
        sinks: Vec<Box<dyn Sink>>,
    ) -> Result<Deliveries, DeliveriesError> {
        let names = sinks.iter().map(|sink| sink.name().to_owned()).collect();
        let known = host.store.set_sinks(names).await;
        known.unwrap_or(Err(StoreError::Closed))?;
        let (mode, modes) = watch::channel(Mode::Run);
        let loops = sinks
            .into_iter()
            .map(|sink| {
                let name = sink.name().to_owned();
                let settings = DeliverySettings {
                    seed: host.random.lock().next_u64(),
                    ..host.config.sinks.get(&name).map(pace).unwrap_or_default()
                };
                let (store, clock) = (host.store.clone(), host.clock.clone());
                let delivery = Delivery::new(store, clock, sink, settings);
                host.sinks.set(&name, &delivery);
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
    pub async fn finish(self, host: &Host, limit: Duration) {
        self.mode.send_replace(Mode::Drain);
        let mut loops = self.loops;
        if !ended(host, &mut loops, limit).await {
            self.mode.send_replace(Mode::Stop);
            if !ended(host, &mut loops, LAST_BATCH).await {
                tracing::warn!(
                    "a sink did not end in time: what it has not acknowledged is delivered again"
                );
            }
        }
    }
}

/// Have they all ended within that time?
async fn ended(host: &Host, loops: &mut Vec<JoinHandle<()>>, limit: Duration) -> bool {
    let all = async {
        while let Some(last) = loops.last_mut() {
            // A panic is in the log; the outbox keeps what was not acknowledged.
            let _ = last.await;
            loops.pop();
        }
    };
    tokio::select! {
        biased;
        () = all => true,
        () = host.clock.sleep(limit) => false,
    }
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
/// [`DeliveriesError::Settings`], [`DeliveriesError::Webhook`].
pub fn check(name: &str, settings: &SinkConfig) -> Result<(), DeliveriesError> {
    match settings {
        SinkConfig::Stdout => Ok(()),
        SinkConfig::File { path, rotate } => file(name, path, *rotate).map(drop),
        SinkConfig::Webhook(config) => {
            webhook::check(config).map_err(|source| DeliveriesError::Webhook {
                sink: name.to_owned(),
                source,
            })
        }
    }
}

/// Does any sink write to this process's stdout?
pub fn writes_to_stdout(config: &Config) -> bool {
    config
        .sinks
        .values()
        .any(|sink| *sink == SinkConfig::Stdout)
}

/// Was this process started without a stdout? In its place stands `/dev/null` then, open for reading too, which
/// nobody who means to throw records away opens it for.
fn stdout_is_closed() -> bool {
    let out = std::io::stdout();
    let (Ok(ours), Ok(null)) = (rustix::fs::fstat(&out), rustix::fs::stat("/dev/null")) else {
        return false;
    };
    let both =
        rustix::fs::fcntl_getfl(&out).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::RDWR));
    both && (ours.st_dev, ours.st_ino) == (null.st_dev, null.st_ino)
}

fn make(host: &Host, name: &str, settings: &SinkConfig) -> Result<Box<dyn Sink>, DeliveriesError> {
    Ok(match settings {
        SinkConfig::Stdout => Box::new(StdoutSink::new(name)),
        SinkConfig::File { path, rotate } => Box::new(file(name, path, *rotate)?),
        SinkConfig::Webhook(config) => {
            let settings = WebhookSettings {
                config: Webhook::clone(config),
                connect: host.config.host.timeout.connect,
                user_agent: host.config.host.user_agent.clone(),
            };
            let (transport, clock) = (host.transport.clone(), host.clock.clone());
            let made = WebhookSink::new(name, transport, clock, settings);
            Box::new(made.map_err(|source| DeliveriesError::Webhook {
                sink: name.to_owned(),
                source,
            })?)
        }
    })
}

fn file(name: &str, path: &Path, rotate: Rotate) -> Result<FileSink, DeliveriesError> {
    let settings = FileSettings {
        rotation: Rotation {
            bytes: rotate.size,
            period: rotate.every.map(|every| match every {
                Every::Hour => Period::Hour,
                Every::Day => Period::Day,
            }),
        },
        ..FileSettings::new(path)
    };
    FileSink::new(name, settings).map_err(|source| DeliveriesError::Settings {
        sink: name.to_owned(),
        source,
    })
}

/// How often and how long a sink is tried.
fn pace(settings: &SinkConfig) -> DeliverySettings {
    let defaults = DeliverySettings::default();
    let SinkConfig::Webhook(config) = settings else {
        return defaults;
    };
    let base = config.backoff.base.unwrap_or(backoff::BASE);
    let cap = config.backoff.cap.unwrap_or(defaults.backoff.cap());
    // The configuration has been checked for what this refuses.
    let backoff = Backoff::new(base, cap).unwrap_or(defaults.backoff);
    DeliverySettings {
        backoff,
        refused: backoff,
        refused_tries: config.tries,
        ..defaults
    }
}
