//! From a run that broke a promise to the shortest history that still breaks it.
//!
//! Delta debugging over the plan: happenings, connections, collections, faults, what is special about a vendor, records
//! and time are taken away, in ever smaller pieces, as long as the same promise is broken. Bounded in tries, so that a
//! violation is told soon.

use std::sync::{Arc, Mutex, PoisonError};

use weir_tests::spec::{CollectionSpec, LatencySpec, Validators, VendorSpec};

use super::check::Checker;
use super::plan::Plan;
use super::{Finished, Machine, RunError, Violation, What, run};

/// A promise that was broken, and the shortest way there.
#[derive(Clone)]
pub struct Found {
    /// The seed that showed it.
    pub seed: u64,
    /// The plan that is left.
    pub plan: Plan,
    /// What happens with it.
    pub violation: Violation,
    /// The events that led there, a line each.
    pub trail: Vec<String>,
    /// Runs that were made to find it.
    pub tries: u32,
}

/// Runs a plan under the checker's eyes.
///
/// # Errors
/// As [`run`].
pub fn check(plan: &Plan, machine: &Machine) -> Result<Finished, RunError> {
    let calm = plan.start.saturating_add(plan.calm);
    let watch = Arc::new(Mutex::new(Checker::new(&plan.config, calm)));
    run(&plan.setup(machine), &plan.happenings, plan.seed, watch)
}

/// The same, and what happened.
fn check_with_trail(plan: &Plan, machine: &Machine) -> (Result<Finished, RunError>, Vec<String>) {
    let calm = plan.start.saturating_add(plan.calm);
    let checker = Checker::new(&plan.config, calm).with_trail(plan.start);
    let watch = Arc::new(Mutex::new(checker));
    let result = run(
        &plan.setup(machine),
        &plan.happenings,
        plan.seed,
        watch.clone(),
    );
    let trail = watch.lock().unwrap_or_else(PoisonError::into_inner).trail();
    (result, trail)
}

/// Shortens a plan that breaks a promise, with so many tries at most.
pub fn shrink(plan: &Plan, violation: Violation, machine: &Machine, tries: u32) -> Found {
    let mut shrinker = Shrinker {
        machine,
        most: tries,
        promise: violation.promise.clone(),
        best: plan.clone(),
        violation,
        tries: 0,
    };
    shrinker.all();
    let (_, trail) = check_with_trail(&shrinker.best, machine);
    Found {
        seed: plan.seed,
        plan: shrinker.best,
        violation: shrinker.violation,
        trail,
        tries: shrinker.tries,
    }
}

struct Shrinker<'a> {
    machine: &'a Machine,
    promise: String,
    best: Plan,
    violation: Violation,
    tries: u32,
    most: u32,
}

impl Shrinker<'_> {
    fn all(&mut self) {
        // Twice: what goes in the second round was often held by something that went in the first.
        for _ in 0..2 {
            if self.tries >= self.most {
                return;
            }
            self.shorten();
            self.happenings();
            self.connections();
            self.collections();
            self.faults();
            self.vendors();
            self.records();
        }
    }

    /// Keeps the change if the same promise is still broken.
    fn attempt(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        if self.tries >= self.most {
            return false;
        }
        let mut plan = self.best.clone();
        change(&mut plan);
        self.tries += 1;
        match check(&plan, self.machine) {
            Err(RunError::Violation(violation)) if violation.promise == self.promise => {
                self.best = plan;
                self.violation = violation;
                true
            }
            _ => false,
        }
    }

    /// Removes as many of `count` things as can go, many at a time first.
    fn remove(&mut self, mut count: usize, remove: impl Fn(&mut Plan, usize, usize)) {
        let mut size = count;
        while size > 0 && count > 0 {
            let mut from = 0;
            while from < count {
                let to = (from + size).min(count);
                if self.attempt(|plan| remove(plan, from, to)) {
                    count -= to - from;
                } else {
                    from = to;
                }
            }
            size /= 2;
        }
    }

    fn happenings(&mut self) {
        let may_go = |what: &What| !matches!(what, What::Still);
        let count = self
            .best
            .happenings
            .iter()
            .filter(|happening| may_go(&happening.what))
            .count();
        self.remove(count, |plan, from, to| {
            let mut place = 0..;
            plan.happenings.retain(|happening| {
                !may_go(&happening.what)
                    || place
                        .next()
                        .is_some_and(|place| !(from..to).contains(&place))
            });
        });
    }

    fn connections(&mut self) {
        let names: Vec<String> = self.best.config.connections.keys().cloned().collect();
        for name in names {
            if self.best.config.connections.len() > 1 {
                self.attempt(|plan| {
                    plan.config.connections.remove(&name);
                    plan.vendors.retain(|vendor| vendor.name != name);
                });
            }
        }
    }

    /// The vendor keeps a collection that nobody reads: taking it away would change what the others show.
    fn collections(&mut self) {
        let streams: Vec<(String, String)> = self
            .best
            .config
            .connections
            .iter()
            .flat_map(|(name, connection)| {
                let streams = connection.streams.iter().flatten();
                streams.map(move |(stream, _)| (name.clone(), stream.clone()))
            })
            .collect();
        for (name, stream) in streams {
            self.attempt(|plan| {
                let streams = plan
                    .config
                    .connections
                    .get_mut(&name)
                    .and_then(|connection| connection.streams.as_mut());
                if let Some(streams) = streams {
                    streams.remove(&stream);
                }
            });
        }
    }

    fn faults(&mut self) {
        for vendor in 0..self.best.vendors.len() {
            let Some(spec) = self.best.vendors.get(vendor) else {
                continue;
            };
            let faults = &spec.faults;
            let counts = [
                faults.random.len(),
                faults.outages.len(),
                faults.script.len(),
                faults.lose_tokens_at_ms.len(),
                spec.quota_cuts.len(),
                spec.limits.len(),
            ];
            for (kind, count) in counts.into_iter().enumerate() {
                self.remove(count, |plan, from, to| {
                    if let Some(spec) = plan.vendors.get_mut(vendor) {
                        cut_faults(spec, kind, from..to);
                    }
                });
            }
        }
    }

    /// What is special about a vendor goes, one thing after the other.
    fn vendors(&mut self) {
        let plain: [fn(&mut VendorSpec); 4] = [
            |spec| spec.gzip = false,
            |spec| spec.latency = LatencySpec::default(),
            |spec| {
                let skew = std::mem::take(&mut spec.date_skew_ms);
                for collection in &mut spec.collections {
                    for writer in &mut collection.writes.writer_skew_ms {
                        *writer -= skew;
                    }
                }
            },
            |spec| spec.free_not_modified = true,
        ];
        for vendor in 0..self.best.vendors.len() {
            for change in plain {
                self.change(vendor, change);
            }
            let simple: [fn(&mut CollectionSpec); 13] = [
                |collection| collection.short_pages = 0.0,
                |collection| collection.empty_pages = 0.0,
                |collection| collection.validators = Validators::default(),
                |collection| collection.volatile_every_ms = 0,
                |collection| collection.flips = false,
                |collection| collection.writes.edits = 0.0,
                |collection| collection.writes.deletes = 0.0,
                |collection| collection.writes.reissues = 0.0,
                |collection| collection.writes.ties = 0.0,
                |collection| collection.writes.lag.slow = 0.0,
                |collection| collection.writes.lag.max_ms = 0,
                |collection| collection.writes.writer_skew_ms.truncate(1),
                |collection| collection.first_id = 1,
            ];
            for change in simple {
                self.change(vendor, |spec| spec.collections.iter_mut().for_each(change));
            }
        }
    }

    fn records(&mut self) {
        for vendor in 0..self.best.vendors.len() {
            for _ in 0..4 {
                self.change(vendor, |spec| {
                    for collection in &mut spec.collections {
                        collection.writes.initial /= 2;
                    }
                });
            }
            for _ in 0..4 {
                self.change(vendor, |spec| {
                    for collection in &mut spec.collections {
                        collection.writes.per_second /= 2.0;
                        for phase in &mut collection.writes.phases {
                            phase.per_second /= 2.0;
                        }
                    }
                });
            }
        }
    }

    fn change(&mut self, vendor: usize, change: impl FnOnce(&mut VendorSpec)) {
        let Some(mut spec) = self.best.vendors.get(vendor).cloned() else {
            return;
        };
        change(&mut spec);
        if self.best.vendors.get(vendor) != Some(&spec) {
            self.attempt(|plan| {
                if let Some(place) = plan.vendors.get_mut(vendor) {
                    *place = spec;
                }
            });
        }
    }

    /// All is well earlier, down to just after the violation.
    fn shorten(&mut self) {
        let seen = self.violation.at.world - self.best.start + 1;
        if seen < self.best.calm {
            self.attempt(|plan| become_calm(plan, seen));
        }
        for _ in 0..6 {
            let half = self.best.calm / 2;
            if half < 1_000 || !self.attempt(|plan| become_calm(plan, half)) {
                break;
            }
        }
    }
}

fn become_calm(plan: &mut Plan, calm: i64) {
    let rest = plan.length - plan.calm;
    plan.calm = calm;
    plan.length = calm + rest;
    for happening in &mut plan.happenings {
        if happening.what == What::Still {
            happening.at = calm.unsigned_abs();
        }
    }
    plan.quiet_down();
}

fn cut_faults(spec: &mut VendorSpec, kind: usize, range: std::ops::Range<usize>) {
    fn cut<T>(list: &mut Vec<T>, range: std::ops::Range<usize>) {
        let end = range.end.min(list.len());
        if range.start < end {
            list.drain(range.start..end);
        }
    }
    match kind {
        0 => cut(&mut spec.faults.random, range),
        1 => cut(&mut spec.faults.outages, range),
        2 => cut(&mut spec.faults.script, range),
        3 => cut(&mut spec.faults.lose_tokens_at_ms, range),
        4 => cut(&mut spec.quota_cuts, range),
        _ => cut(&mut spec.limits, range),
    }
}
