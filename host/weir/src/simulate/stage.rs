//! What outlives a boot: time, vendors, what is stored, what the sinks have, and who watches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_rules::model::Timestamp;
use weir_tests::vendor::Vendor;

use super::{Moment, SimClock, Verdict, Violation, Watch, Watcher};
use crate::store::{Fuse, MemoryFile};

/// Calls and commits that may happen without any time passing. A host that does more has lost its way.
const AT_ONCE: u64 = 100_000;

/// The stage on which hosts come and go.
pub(super) struct Stage {
    pub(super) clock: SimClock,
    pub(super) vendors: Vec<Arc<Vendor>>,
    pub(super) file: MemoryFile,
    pub(super) fuse: Arc<Fuse>,
    pub(super) counts: Counts,
    watch: Watcher,
    violation: Mutex<Option<Violation>>,
    /// Until when sinks take nothing, by the world's time; the empty name stands for all.
    down: Mutex<BTreeMap<String, Timestamp>>,
    /// Events at a moment.
    at_once: Mutex<(Timestamp, u64)>,
}

/// Sums over the run.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) polls: AtomicU64,
    pub(super) calls: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) delivered: AtomicU64,
}

impl Counts {
    pub(super) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }
}

impl Stage {
    pub(super) fn new(clock: SimClock, vendors: Vec<Arc<Vendor>>, watch: Watcher) -> Stage {
        Stage {
            clock,
            vendors,
            file: MemoryFile::default(),
            fuse: Arc::new(Fuse::new()),
            counts: Counts::default(),
            watch,
            violation: Mutex::default(),
            down: Mutex::default(),
            at_once: Mutex::new((Timestamp::MIN, 0)),
        }
    }

    /// Tells whoever watches; after the first violation nobody.
    pub(super) fn tell(&self, event: impl FnOnce(&mut dyn Watch, Moment) -> Verdict) {
        if lock(&self.violation).is_some() {
            return;
        }
        let now = self.clock.now();
        if let Err(violation) = event(&mut *lock(&self.watch), now) {
            self.violated(violation);
        }
    }

    /// Whoever watches has nothing left to wait for.
    pub(super) fn is_at_rest(&self) -> bool {
        let now = self.clock.now();
        lock(&self.watch).is_at_rest(now)
    }

    pub(super) fn violated(&self, violation: Violation) {
        lock(&self.violation).get_or_insert(violation);
    }

    pub(super) fn violation(&self) -> Option<Violation> {
        lock(&self.violation).clone()
    }

    /// Counts a call or commit; false: there have been so many without any time passing that the run is over.
    pub(super) fn admit(&self) -> bool {
        let now = self.clock.now();
        let mut at_once = lock(&self.at_once);
        if at_once.0 != now.world {
            *at_once = (now.world, 0);
        }
        at_once.1 += 1;
        if at_once.1 <= AT_ONCE {
            return true;
        }
        drop(at_once);
        self.violated(Violation {
            promise: "no hot loop".to_owned(),
            at: now,
            what: format!("more than {AT_ONCE} calls and commits while no time passed"),
        });
        false
    }

    /// From now on a sink, or all of them, takes nothing for so long.
    pub(super) fn take_down(&self, sink: Option<&str>, ms: u64) {
        let until = self.clock.now().world.saturating_add_unsigned(ms);
        lock(&self.down).insert(sink.unwrap_or_default().to_owned(), until);
    }

    pub(super) fn is_down(&self, sink: &str) -> bool {
        let now = self.clock.now().world;
        let down = lock(&self.down);
        ["", sink]
            .iter()
            .any(|name| down.get(*name).is_some_and(|until| now < *until))
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
