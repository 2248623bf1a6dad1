//! Memory and time of one call.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wasmtime::{ResourceLimiter, Store, UpdateDeadline};

use crate::engine::ticks;
use crate::limits::{CORE_INSTANCES, MEMORIES, TABLE_ELEMENTS, TABLES, WALL_PER_CPU};

/// The call wanted more memory than it may have.
#[derive(Debug, thiserror::Error)]
#[error("it asked for {wanted} bytes of memory and may have {allowed}")]
pub(crate) struct MemoryRefused {
    pub(crate) wanted: usize,
    pub(crate) allowed: usize,
}

/// The call took longer than it may.
#[derive(Debug, thiserror::Error)]
#[error("it was stopped after {} ms", used.as_millis())]
pub(crate) struct TimeUp {
    pub(crate) used: Duration,
}

/// Counts the memory of one store over all its instances; wasmtime's own limit is for each memory alone.
pub(crate) struct Meter {
    allowed: usize,
    used: usize,
    peak: usize,
}

impl Meter {
    pub(crate) fn new(allowed: usize) -> Self {
        Meter {
            allowed,
            used: 0,
            peak: 0,
        }
    }

    /// The most bytes of memory that the call held at once.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = self.used.saturating_sub(current).saturating_add(desired);
        if wanted > self.allowed {
            // An error and not `false`: the guest would answer a refusal with a trap that says nothing.
            return Err(MemoryRefused {
                wanted,
                allowed: self.allowed,
            }
            .into());
        }
        self.used = wanted;
        self.peak = self.peak.max(wanted);
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        TABLES as usize
    }

    fn memories(&self) -> usize {
        MEMORIES as usize
    }
}

/// Ends the call when it has used `time` of the processor, or many times that by the wall clock.
///
/// The epoch only says when to look: on a machine that is short of processors a call that has hardly run is
/// given more ticks instead of being blamed.
pub(crate) fn limit_time<T: 'static>(store: &mut Store<T>, time: Duration) {
    let began = Instant::now();
    let before = processor_time();
    store.set_epoch_deadline(ticks(time));
    store.epoch_deadline_callback(move |_| {
        let used = processor_time().saturating_sub(before);
        if used >= time {
            return Err(TimeUp { used }.into());
        }
        let waited = began.elapsed();
        if waited >= time.saturating_mul(WALL_PER_CPU) {
            return Err(TimeUp { used: waited }.into());
        }
        Ok(UpdateDeadline::Continue(ticks(time.saturating_sub(used))))
    });
}

/// Ends the call when it has taken many times `time` by the wall clock: for a simulation, where asking for the
/// processor's time would take longer than many a call.
pub(crate) fn limit_wall_time<T: 'static>(store: &mut Store<T>, time: Duration) {
    let began = Instant::now();
    let most = time.saturating_mul(WALL_PER_CPU);
    store.set_epoch_deadline(ticks(time));
    store.epoch_deadline_callback(move |_| {
        let used = began.elapsed();
        if used >= most {
            return Err(TimeUp { used }.into());
        }
        Ok(UpdateDeadline::Continue(ticks(time)))
    });
}

/// Time that this thread has run.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}
