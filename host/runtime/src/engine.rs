//! The one place that configures wasmtime.
//!
//! A process has one engine: pool, epoch and compatibility hash belong to it. Everything that a connector does
//! not need is off, so that neither its bugs nor its cost concern us.

use std::thread;
use std::time::Duration;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
};

use crate::limits::{CORE_INSTANCES, MAX_MEMORY, MEMORIES, TABLE_ELEMENTS, TABLES};

/// How often the epoch moves on, and so how exact a deadline is.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Fewest instances that may live at once: a describe can run beside the workers' calls.
const MIN_SLOTS: u32 = 16;

/// So many times that, where connectors keep instances: each may have one for every worker.
const KEPT_SLOTS: u32 = 8;

/// Memory of a slot that is kept and cleared after a call instead of being given back: about what a call of a
/// Rust connector touches.
const KEEP_RESIDENT: usize = 1 << 20;

/// An engine for `workers` calls at once; `kept`: instances are kept from one call to the next.
///
/// It takes instances from a pool, which reserves about 4 GiB of address space for each; where the system grants
/// no such amount (a container with `ulimit -v`), from plain allocations with explicit bounds checks.
pub(crate) fn engine(workers: usize, kept: bool) -> wasmtime::Result<Engine> {
    let slots = u32::try_from(workers.saturating_mul(4))
        .unwrap_or(u32::MAX)
        .max(MIN_SLOTS)
        .saturating_mul(if kept { KEPT_SLOTS } else { 1 });
    pooled(slots).or_else(|error| {
        tracing::info!(
            error = %error,
            "no pool of instances: the system grants too little address space; calls cost a little more"
        );
        plain()
    })
}

/// The settings that both strategies share.
fn config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        // Calls are synchronous; this makes each about three times as cheap.
        .concurrency_support(false)
        .wasm_memory64(false)
        // What carries values from one part of a component to another needs both memories: components that are put
        // together of several, as the toolchains of JavaScript and Python do.
        .wasm_multi_memory(true)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(false)
        .wasm_wide_arithmetic(false)
        .cranelift_opt_level(OptLevel::Speed)
        // The same bits everywhere: a connector is a pure function.
        .cranelift_nan_canonicalization(true)
        .epoch_interruption(true)
        .memory_init_cow(true)
        // Registering it takes time quadratic in the number of modules, and only native debuggers read it.
        .native_unwind_info(false);
    config
}

fn pooled(slots: u32) -> wasmtime::Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES))
        .total_memories(slots.saturating_mul(MEMORIES))
        .total_tables(slots.saturating_mul(TABLES))
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .table_elements(TABLE_ELEMENTS)
        .max_memory_size(MAX_MEMORY)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto)
        // A slot that has held a connector is handed to the same one again, its memory still mapped.
        .max_unused_warm_slots(slots);
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

fn plain() -> wasmtime::Result<Engine> {
    let mut config = config();
    config
        .allocation_strategy(InstanceAllocationStrategy::OnDemand)
        .memory_reservation(0)
        .memory_reservation_for_growth(1 << 20)
        .memory_guard_size(64 << 10);
    Engine::new(&config)
}

/// Starts the thread that moves the epoch on; it ends when the last user of the engine has gone.
pub(crate) fn start_ticking(engine: &Engine) -> std::io::Result<()> {
    let engine = engine.weak();
    thread::Builder::new()
        .name("weir-epoch".into())
        .stack_size(128 << 10)
        .spawn(move || {
            loop {
                thread::sleep(TICK);
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => break,
                }
            }
        })?;
    Ok(())
}

/// How many ticks make up at least `time`.
pub(crate) fn ticks(time: Duration) -> u64 {
    let ticks = time.as_nanos().div_ceil(TICK.as_nanos());
    u64::try_from(ticks).unwrap_or(u64::MAX).max(1)
}
