//! What the host keeps for one call: its budget of memory and time, and its voice in the log.
//!
//! One store, one instance, one call: whatever happens, the store is dropped afterwards, so no call can see what
//! another one left behind.

mod inert;
mod log;
mod meter;

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Linker;
use wasmtime::{Engine, Store};

pub(crate) use inert::{link_inert_wasi, offered};
pub(crate) use log::{Gate, link_log};
pub(crate) use meter::{MemoryRefused, TimeUp};

use crate::error::Function;
use crate::limits::Limits;

/// The host's side of one call.
pub(crate) struct Guest {
    pub(crate) meter: meter::Meter,
    pub(crate) log: log::Log,
    pub(crate) inert: inert::Inert,
}

/// A store for one call of `function`, which ends it when it has used `time`.
pub(crate) fn store(
    engine: &Engine,
    limits: &Limits,
    time: Duration,
    connector: &Arc<str>,
    function: Function,
    gate: &Arc<Gate>,
) -> Store<Guest> {
    let guest = Guest {
        meter: meter::Meter::new(limits.memory),
        log: log::Log::new(connector, function, gate),
        inert: inert::Inert::default(),
    };
    let mut store = Store::new(engine, guest);
    store.limiter(|guest| &mut guest.meter);
    store.set_hostcall_fuel(limits.returned);
    meter::limit_time(&mut store, time);
    store
}

/// Makes the store of a kept instance ready for one more call.
pub(crate) fn again(store: &mut Store<Guest>, time: Duration, function: Function) {
    store.data_mut().log.again(function);
    meter::limit_wall_time(store, time);
}

/// A linker that offers the log and nothing else.
pub(crate) fn linker(engine: &Engine, version: &str) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    link_log(&mut linker, version)?;
    Ok(linker)
}
