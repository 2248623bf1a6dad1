//! What a walk that has ended owes: everything that the vendor showed when it began and that it claims to have read, or
//! that the configuration promises, is stored or said to be missing.
//!
//! | walk | owes |
//! | --- | --- |
//! | main, whole, to the present | its window, and whatever became visible within the overlap |
//! | main, whole, a slice of a catch-up | its window up to where the next slice begins |
//! | main, in part | its window up to where the next one begins |
//! | second look, whole or in part | its window |
//! | backfill, whole | its window |
//! | any | what is newly covered, and what has been taken off a gap |

use weir_rules::model::{Reason, Timestamp};
use weir_tests::world::Version;

use super::super::Moment;
use super::trail::relative;
use super::truth::Truth;
use super::unit::Unit;
use super::{Wrong, promise};
use crate::store::PollRow;

/// What clocks, roundings and the way of a call may cost at the borders of a window, in ms.
pub(super) const SLACK: i64 = 4_000;

/// A walk whose poll has ended.
pub(super) struct Walked<'a> {
    pub(super) row: &'a PollRow,
    /// When its first call was made, by the true time.
    pub(super) began: Timestamp,
    /// When the first slice of the catch-up began that it is the last of; else when it began itself. What lies before its
    /// window and became visible since then is owed by the next walk.
    pub(super) caught_up_from: Timestamp,
    /// By the true time.
    pub(super) now: Timestamp,
    pub(super) ending: Ending,
}

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Whole,
    /// Cut short, in a circle, or less than the vendor counts.
    Part,
    /// It goes on, or nothing of it counts.
    None,
}

impl Ending {
    pub(super) fn of(row: &PollRow) -> Ending {
        match row.outcome.as_str() {
            "ok" | "not-modified" => Ending::Whole,
            "truncated" | "incomplete" => Ending::Part,
            _ => Ending::None,
        }
    }
}

impl Walked<'_> {
    pub(super) fn is_aside(&self) -> bool {
        is_aside(self.row)
    }
}

/// A side walk.
pub(super) fn is_aside(row: &PollRow) -> bool {
    matches!(row.reason, Reason::Backfill | Reason::Settle)
}

impl Unit {
    /// Nothing is missing that the walk owes.
    pub(super) fn nothing_is_missing(
        &self,
        truth: &Truth,
        walked: &Walked<'_>,
    ) -> Result<(), Wrong> {
        // Page numbers count on: what moved up onto a page that was read comes with the next poll.
        let moved_up =
            truth.moves_up() && truth.shrunk.is_some_and(|shrunk| shrunk >= walked.began);
        if walked.ending == Ending::None || moved_up {
            return Ok(());
        }
        for (record, index) in &self.holding.unmet {
            let Some(version) = truth.version(*index) else {
                continue;
            };
            let before_it = walked
                .row
                .window
                .since
                .is_some_and(|since| version.stamp < since);
            let began = if before_it {
                walked.caught_up_from
            } else {
                walked.began
            };
            let never_seen = version.deleted && !self.holding.knows(*record);
            if version.visible_from > began
                || never_seen
                || self.aside.has(version)
                || self.is_in_gap(version.stamp)
            {
                continue;
            }
            if let Some((promise, why)) = self.is_owed(truth, walked, version) {
                return self.wrong(
                    promise,
                    format!(
                        "record {} at revision {}, stamped {} before it became visible, has been visible for {} and \
                         was not delivered by {why}",
                        truth.renderer.id(*record),
                        version.revision,
                        relative(version.visible_from + truth.skew() - version.stamp),
                        relative(walked.now - version.visible_from),
                    ),
                );
            }
        }
        Ok(())
    }

    /// By which promise the walk owes this version, and what the walk is.
    fn is_owed(
        &self,
        truth: &Truth,
        walked: &Walked<'_>,
        version: &Version,
    ) -> Option<(&'static str, &'static str)> {
        let whole = walked.ending == Ending::Whole;
        if !truth.is_found_by_stamp() {
            // Such a stream is walked from a position or as a whole: there is nothing that a window would leave out.
            return if whole {
                Some((promise::NOTHING_LOST, "a poll that read everything"))
            } else if walked.row.outcome == "truncated" {
                Some((promise::GAPS, "a truncated poll, and no gap tells of it"))
            } else {
                None
            };
        }
        let known = self.state.as_deref()?;
        let window = walked.row.window;
        let stamp = version.stamp;
        // Vendors that are asked for whole grains may leave the last one out.
        let asked_until = window.until.min(walked.began + truth.skew() - SLACK);
        if stamp + truth.granularity() > asked_until {
            return None;
        }
        let within = window.since.is_none_or(|since| since <= stamp);
        if within
            && self
                .before
                .as_deref()
                .is_some_and(|before| known.claims(before, stamp))
        {
            return Some((
                promise::GAPS,
                "a walk that claims to have read where it lies",
            ));
        }
        match (walked.row.reason, whole) {
            (Reason::Settle, true) => {
                within.then_some((promise::NOTHING_LOST, "a second look at its window"))
            }
            (Reason::Settle, false) => {
                let why = "a second look that was cut short, and no gap tells of it";
                within.then_some((promise::GAPS, why))
            }
            (Reason::Backfill, true) => {
                within.then_some((promise::NOTHING_LOST, "a backfill of its window"))
            }
            (Reason::Backfill, false) => None,
            (_, true) => match known.resume {
                None => (within || self.is_in_reach(truth, version))
                    .then_some((promise::NOTHING_LOST, "a poll that read everything")),
                // A window that is asked for again in narrower parts ends where it began.
                Some(next) => (within && stamp < next)
                    .then_some((promise::NOTHING_LOST, "a slice that was read whole")),
            },
            (_, false) => {
                let overlap = i64::try_from(self.expected.overlap).unwrap_or(i64::MAX);
                (within && stamp < known.next_begins(overlap))
                    .then_some((promise::GAPS, "a truncated poll, and no gap tells of it"))
            }
        }
    }

    /// Of all that the vendor shows nothing is missing but what is listed as missing, and what became visible later than the
    /// configuration promises to look.
    pub(super) fn everything_is_there(&self, truth: &Truth, at: Moment) -> Result<(), Wrong> {
        for (record, index) in &self.holding.unmet {
            let Some(version) = truth.version(*index) else {
                continue;
            };
            let never_seen = version.deleted && !self.holding.knows(*record);
            // What the list of gaps holds is filled from spare quota: where there is a limit that may take for ever.
            let spare = truth.vendor.spec().limits.is_empty();
            let listed = self.state.as_deref().is_some_and(|known| {
                known.is_lost(version.stamp) || (!spare && known.is_in_gap(version.stamp))
            });
            if never_seen
                || listed
                || self.aside.has(version)
                || (truth.is_found_by_stamp() && !self.is_in_reach(truth, version))
            {
                continue;
            }
            let what = format!(
                "record {} at revision {} has been visible for {}, and it has never been delivered",
                truth.renderer.id(*record),
                version.revision,
                relative(at.world - version.visible_from),
            );
            return self.wrong(promise::NOTHING_LOST, what);
        }
        Ok(())
    }

    /// It became visible while polls still looked for its stamp.
    fn is_in_reach(&self, truth: &Truth, version: &Version) -> bool {
        let overlap = i64::try_from(self.expected.overlap).unwrap_or(i64::MAX);
        self.first
            .is_some_and(|first| version.visible_from <= first)
            || version.stamp + overlap >= version.visible_from + truth.skew() + SLACK
    }

    /// Once all has been well for a while, nothing is left to fill, and second looks have been taken at everything.
    pub(super) fn nothing_is_left(&self, truth: &Truth, at: Moment) -> Result<(), Wrong> {
        // Side walks live on what the main walks leave of a quota.
        let spare = truth.vendor.spec().limits.is_empty();
        let Some(known) = self
            .state
            .as_deref()
            .filter(|_| spare && truth.is_found_by_stamp())
        else {
            return Ok(());
        };
        let wanted = |until: Timestamp| self.expected.start.is_none_or(|start| until > start);
        let open = known.fillable.iter().find(|(_, until)| wanted(*until));
        if let Some((since, until)) = open.filter(|_| self.is_whole) {
            let what = format!(
                "nobody fills the gap from {} to {}",
                relative(since.saturating_sub(at.world)),
                relative(until.saturating_sub(at.world))
            );
            return self.wrong(promise::ON_TIME, what);
        }
        let newest = truth.newest.filter(|_| self.expected.settle.is_some());
        if let Some(newest) = newest
            && known.settled.is_none_or(|settled| settled <= newest)
        {
            let what = format!(
                "nobody has taken a second look at what was stamped {} ago",
                relative(at.world + truth.skew() - newest)
            );
            return self.wrong(promise::ON_TIME, what);
        }
        Ok(())
    }

    fn is_in_gap(&self, stamp: Timestamp) -> bool {
        self.state
            .as_ref()
            .is_some_and(|known| known.is_in_gap(stamp))
    }
}
