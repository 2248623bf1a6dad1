//! The checker: watches a run from outside and says at once when a promise is broken.
//!
//! It goes by what went over the wire, what was stored and what came out, beside the vendors' own books. Of the rules it
//! knows the promises and nothing else: it plans no window, draws no wait, hashes no record.
//!
//! | promise | how it is seen |
//! | --- | --- |
//! | nothing lost | a whole poll leaves nothing unstored that the vendor showed when its walk began, within the overlap |
//! | nothing under two keys, nothing twice, no change left out | each stored record against its last content; each delivery against what was stored |
//! | seen is stored | what a poll's pages showed is what the unit has when it ends |
//! | one at a time | no call of a unit, or of a connection that bears one, before the last one was answered |
//! | waits are kept | no call before a wait that was told has passed, over restarts too |
//! | every hole is listed | what a walk left behind lies in a gap; where coverage grows or a gap shrinks, nothing is missing; a second look leaves nothing in its window |
//! | the position stays behind | watermark, cursor and coverage move when a walk has ended, and not beyond what was read |
//! | a 304 vouches for what is stored | everything on a page that was answered with 304 is there |
//! | the log is true | a poll's row against its calls |
//! | on time, not in a loop | due times against calls; calls and polls of a minute |
//!
//! | file | job |
//! | --- | --- |
//! | `truth` | what a vendor shows |
//! | `held` | what a host has of it |
//! | `aside` | what a host has set aside for a person |
//! | `expect` | what the configuration promises |
//! | `unit` | one unit: its calls, commits, polls |
//! | `pages` | what the pages of a poll oblige to |
//! | `position` | what a stored state claims to have read |
//! | `whole` | what a walk that has ended owes |
//! | `pace` | due times, and loops |
//! | `waits` | the waits that were told |
//! | `trail` | what happened, as text |

mod aside;
mod expect;
mod held;
mod pace;
mod pages;
mod position;
mod trail;
mod truth;
mod unit;
mod waits;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_rules::model::Timestamp;
use weir_tests::vendor::Vendor;

use super::{Burn, Called, Committed, Ending, Finished, Moment, Verdict, Violation, Watch, What};
use crate::config::Config;
use crate::store::{OutboxEntry, PollRow, UnitId, UnitKey};
use expect::Expectations;
use trail::Trail;
use truth::Truth;
use unit::Unit;
use waits::Waits;

pub(crate) use trail::{happening, relative};

/// How late a poll may be when nothing is known to hold it back, in ms: others of its connection may hang first.
const PATIENCE: u64 = 600_000;

/// The promises, by the words that are printed.
pub(super) mod promise {
    pub(in super::super) const NOTHING_LOST: &str = "what the vendor shows is delivered";
    pub(in super::super) const ONCE: &str = "each change once, no record unchanged";
    pub(in super::super) const SEEN: &str = "what was seen is stored";
    pub(in super::super) const HANDED_OVER: &str =
        "what is stored is delivered once, under one key, in order";
    pub(in super::super) const ONE_AT_A_TIME: &str = "no unit is polled twice at once";
    pub(in super::super) const WAITS: &str = "a vendor's wait is kept";
    pub(in super::super) const GAPS: &str = "every hole is listed until it is closed";
    pub(in super::super) const POSITION: &str = "the position never passes what was read";
    pub(in super::super) const VALIDATORS: &str = "validators vouch for what is stored";
    pub(in super::super) const LOG: &str = "the poll log says what happened";
    pub(in super::super) const ON_TIME: &str = "what is due is polled";
    pub(in super::super) const NO_LOOP: &str = "no hot loop";
}

/// What is wrong: the promise, and what was expected and found.
type Wrong = (&'static str, String);

/// Checks a run while it happens.
pub struct Checker {
    expectations: Expectations,
    /// From here on all is well, by the true time.
    calm: Timestamp,
    truths: Vec<Vec<Truth>>,
    units: BTreeMap<UnitId, Unit>,
    waits: Waits,
    trail: Trail,
    sinks: Vec<String>,
    /// A sink may get again what it had: something has failed.
    may_repeat: bool,
    boot: u32,
    /// When someone was last looked for who is late, by the monotonic clock.
    looked: u64,
    /// Connections whose credential a vendor has refused.
    refused: BTreeSet<String>,
    /// Connections that wait for a sign-in.
    signed_out: BTreeSet<String>,
    /// Units that were left alone because they say that they need a person.
    excused: Vec<String>,
}

impl Checker {
    /// For a run with this configuration, of which everything is well from `calm` on (by the true time).
    pub fn new(config: &Config, calm: Timestamp) -> Checker {
        Checker {
            expectations: Expectations::of(config),
            calm,
            truths: Vec::new(),
            units: BTreeMap::new(),
            waits: Waits::default(),
            trail: Trail::default(),
            sinks: config.sinks.keys().cloned().collect(),
            may_repeat: false,
            boot: 0,
            looked: 0,
            refused: BTreeSet::new(),
            signed_out: BTreeSet::new(),
            excused: Vec::new(),
        }
    }

    /// Keeps what happened, for [`Checker::trail`].
    pub fn with_trail(mut self, start: Timestamp) -> Checker {
        self.trail = Trail::on(start);
        self
    }

    /// What happened, a line each, with its time since the start.
    pub fn trail(&mut self) -> Vec<String> {
        self.trail.take()
    }

    /// Units that said at the end that they need a person, and were therefore not held to what they lack.
    pub fn excused(&self) -> &[String] {
        &self.excused
    }

    fn unit(&mut self, id: UnitId, key: &UnitKey) -> &mut Unit {
        let expected = &self.expectations;
        self.units
            .entry(id)
            .or_insert_with(|| Unit::new(key.to_string(), expected.unit(key)))
    }

    /// Somebody is due and nobody polls them.
    fn look_for_late(&mut self, at: Moment) -> Result<(), Wrong> {
        if at.monotonic < self.looked + 60_000 {
            return Ok(());
        }
        self.looked = at.monotonic;
        for unit in self.units.values() {
            let alone = unit.expected.concurrency == Some(1);
            let mut others = self.units.values();
            let waits_its_turn = alone
                && others.any(|other| other.is_polled() && other.connection() == unit.connection());
            if !waits_its_turn && !self.signed_out.contains(unit.connection()) {
                unit.is_on_time(at)?;
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &Called<'_>) -> Result<(), Wrong> {
        self.waits.is_kept(call, self.boot)?;
        self.waits.told(call, self.boot);
        let Some((id, key)) = call.unit else {
            return Ok(());
        };
        if matches!(call.served.call.status, 401 | 403) {
            self.refused.insert(key.connection.clone());
        }
        let collection = call.served.collection;
        let unit = self.unit(id, key);
        let connection = key.connection.as_str();
        let alone = unit.expected.concurrency == Some(1);
        if let Some(collection) = collection {
            unit.target = Some((call.vendor, collection));
        }
        unit.called(call)?;
        if alone {
            let prefix = format!("{connection}/");
            for (other, unit) in &self.units {
                if *other != id && unit.name.starts_with(&prefix) {
                    unit.is_quiet(call.at, "the connection bears one call at a time")?;
                }
            }
        }
        self.look_for_late(call.at)
    }

    fn commit(&mut self, at: Moment, committed: &Committed<'_>) -> Result<(), Wrong> {
        self.waits.sealed(committed.unit, at);
        self.unit(committed.unit, committed.key);
        let Some(unit) = self.units.get_mut(&committed.unit) else {
            return Ok(());
        };
        let truth = truth_of(&mut self.truths, unit);
        unit.committed(at, committed, truth)
    }

    fn take(&mut self, sink: &str, entries: &[OutboxEntry]) -> Result<(), Wrong> {
        let again = self.may_repeat;
        for entry in entries {
            let name = entry.unit.to_string();
            let unit = self.units.values_mut().find(|unit| unit.name == name);
            let Some(unit) = unit else {
                let what = format!("an entry of {name} was delivered, which stored nothing");
                return Err((promise::HANDED_OVER, what));
            };
            if let Some(truth) = truth_of(&mut self.truths, unit) {
                unit.holding
                    .take(truth, sink, entry, again)
                    .map_err(|what| (promise::HANDED_OVER, format!("{name}: {what}")))?;
            }
        }
        Ok(())
    }

    /// Everything has been read, filled and delivered, of whoever does not wait for a person.
    fn all_is_done(&mut self, at: Moment) -> Result<(), Wrong> {
        self.excused.clear();
        for unit in self.units.values() {
            let Some(truth) = truth_of(&mut self.truths, unit) else {
                continue;
            };
            truth.advance(at.world);
            if unit.needs_a_person() || self.signed_out.contains(unit.connection()) {
                self.excused.push(unit.name.clone());
            } else {
                unit.has_recovered(truth, at, self.calm)?;
                unit.nothing_is_left(truth, at)?;
            }
            for sink in &self.sinks {
                if let Some(change) = unit.holding.undelivered(truth, sink) {
                    let what = format!(
                        "{}: change {change} was stored and has not reached sink {sink}",
                        unit.name
                    );
                    return Err((promise::HANDED_OVER, what));
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, finished: &Finished) -> Result<(), Wrong> {
        for row in &finished.units {
            if !self.units.contains_key(&row.id) {
                let what = format!("{} was never polled", row.key);
                return Err((promise::ON_TIME, what));
            }
        }
        self.all_is_done(finished.at)
    }
}

/// What the vendor really shows of the collection that a unit reads; none before its first call.
fn truth_of<'a>(truths: &'a mut [Vec<Truth>], unit: &Unit) -> Option<&'a mut Truth> {
    let (vendor, collection) = unit.target?;
    truths.get_mut(vendor)?.get_mut(collection)
}

fn violation(at: Moment, wrong: Result<(), Wrong>) -> Verdict {
    wrong.map_err(|(promise, what)| Violation {
        promise: promise.to_owned(),
        at,
        what,
    })
}

impl Watch for Checker {
    fn begun(&mut self, vendors: &[Arc<Vendor>]) {
        self.truths = vendors
            .iter()
            .map(|vendor| {
                (0..vendor.spec().collections.len())
                    .filter_map(|number| Truth::new(vendor.clone(), number))
                    .collect()
            })
            .collect();
        if let Some(vendor) = vendors.first() {
            self.trail.begins(vendor.start());
        }
    }

    fn started(&mut self, at: Moment, boot: u32) -> Verdict {
        self.trail.said(at.world, "the host starts");
        self.boot = boot;
        self.may_repeat |= boot > 1;
        self.waits.restarted();
        for unit in self.units.values_mut() {
            unit.pace.restarted(at);
        }
        Ok(())
    }

    fn ended(&mut self, at: Moment, how: Ending) -> Verdict {
        self.trail.said(
            at.world,
            match how {
                Ending::Stopped => "the host has stopped",
                Ending::Died => "the host dies",
            },
        );
        self.waits.died(at);
        for unit in self.units.values_mut() {
            unit.died();
        }
        Ok(())
    }

    fn happened(&mut self, at: Moment, what: &What) -> Verdict {
        self.trail.happened(at.world, what);
        match what {
            What::SinkDown { .. } => self.may_repeat = true,
            // A commit that failed may have lost the word of a delivery.
            What::Fuse { cut, .. } => {
                self.may_repeat = true;
                if *cut == Burn::Refuse {
                    self.units.values_mut().for_each(Unit::may_go_unlogged);
                }
            }
            What::Ask { unit, .. } => {
                if let Some(unit) = self.units.values_mut().find(|known| known.name == *unit) {
                    unit.pace.allow();
                }
            }
            What::Jump { ms } => self.waits.jumped(*ms),
            _ => {}
        }
        Ok(())
    }

    fn called(&mut self, call: &Called<'_>) -> Verdict {
        self.trail.called(call);
        violation(call.at, self.call(call))
    }

    fn committed(&mut self, at: Moment, committed: &Committed<'_>) -> Verdict {
        let verdict = self.commit(at, committed);
        violation(at, verdict)
    }

    fn poll_ended(&mut self, at: Moment, row: &PollRow) -> Verdict {
        self.trail.ended(at.world, row);
        if row.outcome == "needs-sign-in" {
            let connection = &row.key.connection;
            if !self.refused.contains(connection) {
                let what = format!("{connection} asks for a sign-in, and no vendor has refused it");
                return violation(at, Err((promise::ON_TIME, what)));
            }
            self.signed_out.insert(connection.clone());
        }
        let Some(unit) = self.units.values_mut().find(|unit| unit.is(row)) else {
            return Ok(());
        };
        let truth = truth_of(&mut self.truths, unit);
        let verdict = unit.poll_ended(at, row, truth);
        let verdict = verdict.and_then(|()| self.look_for_late(at));
        violation(at, verdict)
    }

    fn delivered(&mut self, at: Moment, sink: &str, entries: &[OutboxEntry]) -> Verdict {
        self.trail.delivered(at.world, sink, entries);
        let verdict = self.take(sink, entries);
        violation(at, verdict)
    }

    fn is_at_rest(&mut self, at: Moment) -> bool {
        let quiet = at.world >= self.calm
            && self
                .units
                .values()
                .all(|unit| !unit.is_polled() && unit.has_begun());
        quiet && self.all_is_done(at).is_ok()
    }

    fn finished(&mut self, finished: &Finished) -> Verdict {
        let verdict = self.end(finished);
        violation(finished.at, verdict)
    }
}
