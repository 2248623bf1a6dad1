//! The one thing that a connector may ask of the host: to be heard in the log.
//!
//! Its lines go to `tracing` under the target `connector`. They are foreign text: one line each, escaped and
//! cut. A flood is dropped and counted; it costs the connector its own lines and nobody else's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, WasmStr};

use super::Guest;
use crate::contract::Level;
use crate::error::Function;
use crate::limits::{MESSAGE, SECONDS_BURST, SECONDS_PER_CALL};
use crate::text::tame;

/// How many lines a connector may still write, over all its calls.
#[derive(Debug)]
pub(crate) struct Gate {
    per_second: u32,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    lines: f64,
    at: Instant,
}

impl Gate {
    pub(crate) fn new(per_second: u32) -> Self {
        Gate {
            per_second,
            bucket: Mutex::new(Bucket {
                lines: f64::from(per_second.saturating_mul(SECONDS_BURST)),
                at: Instant::now(),
            }),
        }
    }

    /// Lines of one call.
    fn per_call(&self) -> u32 {
        self.per_second.saturating_mul(SECONDS_PER_CALL)
    }

    fn take(&self, now: Instant) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let grown =
            now.saturating_duration_since(bucket.at).as_secs_f64() * f64::from(self.per_second);
        bucket.lines =
            (bucket.lines + grown).min(f64::from(self.per_second.saturating_mul(SECONDS_BURST)));
        bucket.at = now;
        let granted = bucket.lines >= 1.0;
        if granted {
            bucket.lines -= 1.0;
        }
        granted
    }
}

/// The lines of one call.
pub(crate) struct Log {
    connector: Arc<str>,
    function: Function,
    gate: Arc<Gate>,
    left: u32,
    dropped: u64,
    last: Option<String>,
}

impl Log {
    pub(crate) fn new(connector: &Arc<str>, function: Function, gate: &Arc<Gate>) -> Self {
        Log {
            connector: connector.clone(),
            function,
            gate: gate.clone(),
            left: gate.per_call(),
            dropped: 0,
            last: None,
        }
    }

    /// The lines of the next call.
    pub(crate) fn again(&mut self, function: Function) {
        self.tell_dropped();
        self.function = function;
        self.left = self.gate.per_call();
        self.dropped = 0;
        self.last = None;
    }

    /// May one more line be written? Counts it either way.
    fn admit(&mut self) -> bool {
        let admitted = self.left > 0 && self.gate.take(Instant::now());
        if admitted {
            self.left -= 1;
        } else {
            self.dropped += 1;
        }
        admitted
    }

    fn write(&mut self, level: Level, text: &str) {
        let (connector, function) = (&*self.connector, self.function.name());
        let line = tame(text, MESSAGE);
        match level {
            Level::Debug => tracing::debug!(target: "connector", connector, function, "{line}"),
            Level::Info => tracing::info!(target: "connector", connector, function, "{line}"),
            Level::Warn => {
                tracing::warn!(target: "connector", connector, function, "{line}");
                self.last = Some(line);
            }
        }
    }

    /// A line that a program printed: how toolchains with a standard error tell of a panic.
    pub(crate) fn printed(&mut self, text: &str) {
        if self.admit() {
            self.write(Level::Warn, text);
        }
    }

    /// The last warning, for the report of a crash.
    pub(crate) fn last_words(&mut self) -> Option<String> {
        self.last.take()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.tell_dropped();
    }
}

impl Log {
    fn tell_dropped(&self) {
        if self.dropped > 0 {
            tracing::warn!(
                target: "connector",
                connector = &*self.connector,
                function = self.function.name(),
                dropped = self.dropped,
                "log lines dropped: the connector wrote too many"
            );
        }
    }
}

/// Offers `weir:connector/log` of a version of the contract.
pub(crate) fn link_log(linker: &mut Linker<Guest>, version: &str) -> wasmtime::Result<()> {
    linker
        .instance(&format!("weir:connector/log@{version}"))?
        .func_wrap(
            "write",
            |mut store: StoreContextMut<'_, Guest>, (level, message): (Level, WasmStr)| {
                // A line that is dropped anyway is not even copied out of the guest.
                if store.data_mut().log.admit() {
                    let text = message.to_str(&store)?.into_owned();
                    store.data_mut().log.write(level, &text);
                }
                Ok(())
            },
        )
}
