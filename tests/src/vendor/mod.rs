//! One vendor at work: it answers calls, in process, at the time that the caller names.

mod conditional;
mod errors;
mod exchange;
mod faults;
mod load;
mod play;

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::answer::{SimAnswer, SimRequest};
use crate::ledger::{Call, Counts, History, Ledger};
use crate::spec::{Deletion, Paging, ScriptedFault, SpecError, VendorSpec, Write};
use crate::world::{Renderer, Version};
use exchange::State;

pub use exchange::{Served, Shown};

/// A simulated vendor. With the same spec, the same start and the same calls at the same times it gives the same
/// answers, byte for byte.
#[derive(Debug)]
pub struct Vendor {
    spec: VendorSpec,
    start: i64,
    state: Mutex<State>,
}

impl Vendor {
    /// A vendor that opens at `start` (ms since the epoch).
    ///
    /// # Errors
    /// A spec that describes no possible vendor.
    pub fn new(spec: VendorSpec, start: i64) -> Result<Self, SpecError> {
        spec.check()?;
        let state = Mutex::new(State::new(&spec, start));
        Ok(Vendor { spec, start, state })
    }

    /// What it is like.
    pub fn spec(&self) -> &VendorSpec {
        &self.spec
    }

    /// When it opened.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Answers one call that arrives at `now`. A `now` before that of an earlier call counts as that one's.
    pub fn handle(&self, now: i64, request: &SimRequest) -> SimAnswer {
        self.serve(now, request).answer
    }

    /// As [`Vendor::handle`], with what the vendor itself makes of the call.
    pub fn serve(&self, now: i64, request: &SimRequest) -> Served {
        self.state().handle(&self.spec, now, request)
    }

    /// Turns versions of a collection into their text and ids.
    pub fn renderer(&self, collection: usize) -> Option<Renderer> {
        let state = self.state();
        state
            .desks
            .get(collection)
            .map(|desk| desk.renderer.clone())
    }

    /// The versions of a collection that were written up to `now`, in that order, from the one with this index on.
    pub fn versions_from(&self, now: i64, collection: usize, from: usize) -> Vec<Version> {
        let mut state = self.state();
        state.advance(now);
        let versions = state
            .desks
            .get(collection)
            .map(|desk| desk.world.versions());
        versions
            .and_then(|versions| versions.get(from..))
            .unwrap_or_default()
            .to_vec()
    }

    /// A write from outside, now; its `at_ms` is ignored. Unknown collections are ignored.
    pub fn write(&self, now: i64, collection: &str, write: &Write) {
        let mut state = self.state();
        if let Some(world) = state.world(&self.spec, collection) {
            world.put(now, write);
        }
    }

    /// One more fault for the script, before all others.
    pub fn inject(&self, fault: ScriptedFault) {
        self.state().inject(fault);
    }

    /// Nothing is written from now on; what was written still becomes visible.
    pub fn freeze(&self, now: i64) {
        self.state().freeze(now);
    }

    /// All calls so far, up to the first million.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Sums over the calls so far.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// What it remembers up to `now`.
    pub fn ledger(&self, now: i64) -> Ledger {
        let mut state = self.state();
        state.advance(now);
        let histories = self
            .spec
            .collections
            .iter()
            .zip(&state.desks)
            .map(|(collection, desk)| History {
                vendor: self.spec.name.clone(),
                collection: collection.name.clone(),
                renderer: desk.renderer.clone(),
                versions: desk.world.versions().to_vec(),
                found_by_stamp: !collection.filter.since.param.is_empty()
                    && !matches!(collection.paging, Paging::Feed { .. }),
                granularity_ms: collection.granularity_ms,
                tombstones: collection.deletion == Deletion::Tombstone,
                first_call: desk.first_call,
            })
            .collect();
        Ledger {
            taken_at: now,
            histories,
            counts: vec![(self.spec.name.clone(), state.counts)],
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in another thread leaves no half-done change that would matter more than the panic itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
