//! The calls of one poll, and what they oblige to: what a page showed is stored, and the poll's row counts what went over
//! the wire.

use weir_tests::ledger::Outcome;
use weir_tests::world::Version;

use super::held::Sorted;
use super::truth::Truth;
use super::unit::Unit;
use super::{Wrong, promise};
use crate::store::PollRow;

/// A call of a poll.
pub(super) struct Call {
    pub(super) target: u64,
    /// What the page showed.
    pub(super) shown: Vec<Version>,
    pub(super) kind: Answered,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    /// A page that a host can take.
    Whole,
    /// One whose records lack their stamps: taken or refused as a whole, and if it is taken, what can't be is set aside.
    Damaged,
    NotModified,
    /// Nothing of it can be taken.
    Other,
}

impl Answered {
    pub(super) fn of(outcome: &Outcome) -> Answered {
        match outcome {
            Outcome::Page => Answered::Whole,
            Outcome::NotModified => Answered::NotModified,
            Outcome::Fault(name) => match name.as_str() {
                "slow" | "headers" | "missing-record" => Answered::Whole,
                "missing-fields" => Answered::Damaged,
                _ => Answered::Other,
            },
            _ => Answered::Other,
        }
    }
}

impl Unit {
    /// The row counts what went over the wire.
    pub(super) fn log_is_true(
        &self,
        row: &PollRow,
        calls: &[Call],
        sorted: Sorted,
    ) -> Result<(), Wrong> {
        let tally = &row.tally;
        if tally.calls != calls.len() as u64 {
            let what = format!(
                "its row counts {} calls, and {} were made",
                tally.calls,
                calls.len()
            );
            return self.wrong(promise::LOG, what);
        }
        let counted = Sorted {
            new: tally.new,
            changed: tally.changed,
            unchanged: tally.unchanged,
            deleted: tally.deleted,
        };
        if counted != sorted {
            let what = format!("its row counts {counted:?}, and {sorted:?} were stored");
            return self.wrong(promise::LOG, what);
        }
        let not_modified = calls
            .iter()
            .filter(|call| call.kind == Answered::NotModified);
        let not_modified = not_modified.count() as u64;
        if tally.not_modified > not_modified {
            let what = format!(
                "its row counts {} answers of 304, and {not_modified} came",
                tally.not_modified
            );
            return self.wrong(promise::LOG, what);
        }
        Ok(())
    }

    /// What the pages of the poll showed is there, and so is what its 304s vouch for.
    pub(super) fn seen_is_stored(
        &self,
        truth: &Truth,
        calls: &[Call],
        good: bool,
    ) -> Result<(), Wrong> {
        let last = calls.len().saturating_sub(1);
        for (place, call) in calls.iter().enumerate() {
            let later = calls.get(place + 1..).unwrap_or_default();
            let repeated = later.iter().any(|other| other.target == call.target);
            // The answer that ended the poll badly, or was asked for again, was not taken.
            let taken = call.kind != Answered::Other && !repeated && (good || place != last);
            if !taken {
                continue;
            }
            for version in &call.shown {
                let superseded = later.iter().any(|later| {
                    later.kind != Answered::NotModified
                        && later.shown.iter().any(|other| {
                            other.record == version.record && other.revision > version.revision
                        })
                });
                let never_seen = version.deleted && !self.holding.knows(version.record);
                if superseded
                    || never_seen
                    || self.aside.has(version)
                    || self.aside.holds(version)
                    || self.holding.has(truth, version)
                {
                    continue;
                }
                let (promise, how) = match call.kind {
                    Answered::NotModified => (promise::VALIDATORS, "a 304 vouched for"),
                    Answered::Damaged => (promise::SEEN, "a page without stamps showed"),
                    _ => (promise::SEEN, "a page showed"),
                };
                return self.wrong(
                    promise,
                    format!(
                        "{how} record {} at revision {}, and it is not stored",
                        truth.renderer.id(version.record),
                        version.revision
                    ),
                );
            }
        }
        Ok(())
    }
}
