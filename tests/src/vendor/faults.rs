//! Which fault, if any, befalls a call.

use crate::dice::{Dice, mix, seed_for};
use crate::spec::{FaultKind, FaultPlan, ScriptedFault, When};

/// The plan of faults, and where the script stands.
#[derive(Debug)]
pub(super) struct Faults {
    plan: FaultPlan,
    injected: Vec<ScriptedFault>,
    seed: u64,
    start: i64,
}

/// A call as the plan of faults sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nth<'a> {
    pub(super) now: i64,
    pub(super) collection: &'a str,
    /// Its number among all calls, from 1.
    pub(super) of_all: u64,
    /// Its number among the calls of its collection, from 1.
    pub(super) of_collection: u64,
}

impl Faults {
    pub(super) fn new(plan: &FaultPlan, seed: u64, start: i64) -> Self {
        Faults {
            plan: plan.clone(),
            injected: Vec::new(),
            seed: seed_for(seed, "faults"),
            start,
        }
    }

    pub(super) fn inject(&mut self, fault: ScriptedFault) {
        self.injected.insert(0, fault);
    }

    /// What the vendor as a whole is going through.
    pub(super) fn outage(&self, now: i64) -> Option<&FaultKind> {
        let since = now - self.start;
        self.plan
            .outages
            .iter()
            .find(|outage| (outage.from_ms..outage.until_ms).contains(&since))
            .map(|outage| &outage.fault)
    }

    /// What the script says about this call.
    pub(super) fn scripted(&self, call: Nth<'_>) -> Option<&FaultKind> {
        let since = call.now - self.start;
        self.injected
            .iter()
            .chain(&self.plan.script)
            .find(|fault| {
                let concerned = fault
                    .collection
                    .as_ref()
                    .is_none_or(|collection| collection == call.collection);
                let number = if fault.collection.is_some() {
                    call.of_collection
                } else {
                    call.of_all
                };
                concerned
                    && match fault.when {
                        When::Calls { from, to } => (from..=to).contains(&number),
                        When::Between { from_ms, until_ms } => (from_ms..until_ms).contains(&since),
                    }
            })
            .map(|fault| &fault.fault)
    }

    /// What chance says about this call: the same for the same number of call.
    pub(super) fn random(&self, call: Nth<'_>) -> Option<&FaultKind> {
        let since = call.now - self.start;
        let mut dice = Dice::new(self.seed ^ mix(call.of_all));
        self.plan
            .random
            .iter()
            // Every fault draws, so that one that does not concern this call changes nothing for the others.
            .filter(|fault| dice.chance(fault.probability))
            .find(|fault| {
                fault
                    .collection
                    .as_ref()
                    .is_none_or(|collection| collection == call.collection)
                    && fault.from_ms.is_none_or(|from| since >= from)
                    && fault.until_ms.is_none_or(|until| since < until)
            })
            .map(|fault| &fault.fault)
    }

    /// Tokens given before this moment are unknown now.
    pub(super) fn lost_before(&self, now: i64) -> i64 {
        self.plan
            .lose_tokens_at_ms
            .iter()
            .map(|at| at + self.start)
            .filter(|at| *at <= now)
            .max()
            .unwrap_or(i64::MIN)
    }
}
