//! Instances that answer more than one call: for a simulation, which makes millions of calls and holds nobody's secrets.
//!
//! Promises:
//! - What a kept instance answers is what a fresh one answers: the first calls, and a sample of the later ones, are made in
//!   both, and a difference is the connector's error. A connector is a pure function; this also finds one that is none.
//! - An instance that has failed, has grown large or is old is dropped. The limits of results and of log lines are those of
//!   each call, and so is that of time, which goes by the wall clock alone.
//!
//! A host that polls keeps none: there nothing may pass from one call to the next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use wasmtime::Store;

use crate::contract::{Plugin, PluginIndices};
use crate::guest::Guest;

/// So many calls one instance answers.
const LIFE: u32 = 10_000;

/// An instance that holds more bytes than this is not kept: a connector that keeps what it allocates would slow down from
/// call to call.
const GROWN: usize = 8 << 20;

/// So many of a connector's first calls are made twice, and then one in so many.
const FIRST: u64 = 16;
const SAMPLE: u64 = 256;

/// A connector's idle instances.
pub(crate) struct Kept {
    indices: PluginIndices,
    idle: Mutex<Vec<Instance>>,
    calls: AtomicU64,
}

/// One that can be called again.
pub(crate) struct Instance {
    pub(crate) store: Store<Guest>,
    pub(crate) plugin: Plugin,
    calls: u32,
}

impl Kept {
    pub(crate) fn new(indices: PluginIndices) -> Self {
        Kept {
            indices,
            idle: Mutex::new(Vec::new()),
            calls: AtomicU64::new(0),
        }
    }

    /// An idle one.
    pub(crate) fn take(&self) -> Option<Instance> {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    /// One that has not been called yet.
    pub(crate) fn fresh(
        &self,
        mut store: Store<Guest>,
        pre: &wasmtime::component::InstancePre<Guest>,
    ) -> Result<Instance, (Store<Guest>, wasmtime::Error)> {
        let made = pre
            .instantiate(&mut store)
            .and_then(|instance| self.indices.load(&mut store, &instance));
        match made {
            Ok(plugin) => Ok(Instance {
                store,
                plugin,
                calls: 0,
            }),
            Err(error) => Err((store, error)),
        }
    }

    /// Takes one back that has answered.
    pub(crate) fn put_back(&self, mut instance: Instance) {
        instance.calls += 1;
        if instance.calls < LIFE && instance.store.data().meter.peak() <= GROWN {
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(instance);
        }
    }

    /// Is this call one of those that are made twice?
    pub(crate) fn is_to_compare(&self) -> bool {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        calls < FIRST || calls.is_multiple_of(SAMPLE)
    }
}
