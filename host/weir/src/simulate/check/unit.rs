//! One unit under watch: its calls, what it stores, how its polls end.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use weir_rules::coverage::Coverage;
use weir_rules::model::{Reason, Timestamp};
use weir_rules::unit::UnitState;
use weir_tests::ledger::Outcome;
use weir_tests::world::Version;

use super::super::{Called, Committed, Moment};
use super::expect::Expected;
use super::held::{Holding, Sorted};
use super::trail::relative;
use super::truth::Truth;
use super::{PATIENCE, Wrong, promise};
use crate::store::PollRow;

/// What clocks, roundings and the way of a call may cost at the borders of a window, in ms.
const SLACK: i64 = 4_000;
/// The span over which polls and calls are counted, in ms.
const MINUTE: u64 = 60_000;

/// One unit.
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) expected: Expected,
    /// Which collection it reads, by vendor and place.
    pub(super) target: Option<(usize, usize)>,
    pub(super) holding: Holding,
    /// Calls since the last poll ended.
    calls: Vec<Call>,
    /// Until when the last call is being answered.
    busy: Timestamp,
    /// When the walk that is under way began.
    walk: Option<Timestamp>,
    /// A walk is stored: it goes on after a restart.
    walk_is_stored: bool,
    /// When the first walk began that read everything.
    first: Option<Timestamp>,
    /// When the last one began.
    last: Option<Timestamp>,
    state: Option<Box<Known>>,
    /// When it is due, by the monotonic clock.
    due: Option<u64>,
    due_by_wall: Option<Timestamp>,
    /// Polls of the last minute, by the monotonic clock.
    polls: VecDeque<u64>,
    /// Calls of the last minute, and what they asked for.
    asked: VecDeque<(u64, u64)>,
    /// Polls that nobody would wonder about: asked for, or made because the host was started.
    allowed: u64,
    /// What the commits of this poll held.
    sorted: Sorted,
    /// How far the vendor's clock is ahead, in ms.
    skew: i64,
    /// Records that a vendor in trouble sent without their stamps, and that the host may have set aside for a person.
    damaged: HashSet<u64>,
    /// A commit may have failed, so that a poll left no row.
    unlogged: bool,
}

/// What was last known of the unit's stored state.
struct Known {
    watermark: Option<Timestamp>,
    cursor: Option<String>,
    resume: Option<Timestamp>,
    coverage: Coverage,
    gaps: Vec<(Timestamp, Timestamp)>,
    parked: bool,
    waiting: Option<Timestamp>,
}

/// A call of a poll.
struct Call {
    target: u64,
    /// What the page showed.
    shown: Vec<Version>,
    kind: Answered,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answered {
    /// A page that a host can take.
    Whole,
    NotModified,
    /// Nothing of it can be taken.
    Other,
}

impl Unit {
    pub(super) fn new(name: String, expected: Expected) -> Unit {
        Unit {
            name,
            expected,
            target: None,
            holding: Holding::default(),
            calls: Vec::new(),
            busy: Timestamp::MIN,
            walk: None,
            walk_is_stored: false,
            first: None,
            last: None,
            state: None,
            due: None,
            due_by_wall: None,
            polls: VecDeque::new(),
            asked: VecDeque::new(),
            allowed: 0,
            sorted: Sorted::default(),
            skew: 0,
            damaged: HashSet::new(),
            unlogged: false,
        }
    }

    /// From now on a poll may leave no row, because the store refuses it.
    pub(super) fn may_go_unlogged(&mut self) {
        self.unlogged = true;
    }

    pub(super) fn is(&self, row: &PollRow) -> bool {
        let name = &self.name;
        name.starts_with(&row.key.connection) && *name == row.key.to_string()
    }

    fn wrong(&self, promise: &'static str, what: impl std::fmt::Display) -> Result<(), Wrong> {
        Err((promise, format!("{}: {what}", self.name)))
    }

    /// Nothing of this unit is under way.
    pub(super) fn is_quiet(&self, at: Moment, why: &str) -> Result<(), Wrong> {
        if at.world < self.busy {
            return self.wrong(
                promise::ONE_AT_A_TIME,
                format!(
                    "a call began while another one was being answered ({} to go): {why}",
                    relative(self.busy - at.world)
                ),
            );
        }
        Ok(())
    }

    pub(super) fn called(&mut self, call: &Called<'_>) -> Result<(), Wrong> {
        self.is_quiet(call.at, "of the same unit")?;
        self.busy = call.answered;
        self.walk.get_or_insert(call.at.world);
        let mut hasher = DefaultHasher::new();
        call.served.call.target.hash(&mut hasher);
        let target = hasher.finish();
        let kind = match &call.served.call.outcome {
            Outcome::Page => Answered::Whole,
            Outcome::NotModified => Answered::NotModified,
            Outcome::Fault(name)
                if matches!(name.as_str(), "slow" | "headers" | "missing-record") =>
            {
                Answered::Whole
            }
            _ => Answered::Other,
        };
        if matches!(&call.served.call.outcome, Outcome::Fault(name) if name == "missing-fields") {
            let page = call.served.page.iter().flat_map(|page| &page.versions);
            self.damaged.extend(page.map(|version| version.record));
        }
        let shown = call
            .served
            .page
            .as_ref()
            .map(|page| page.versions.clone())
            .unwrap_or_default();
        self.calls.push(Call {
            target,
            shown,
            kind,
        });
        let now = call.at.monotonic;
        self.asked.push_back((now, target));
        while self.asked.front().is_some_and(|(at, _)| at + MINUTE < now) {
            self.asked.pop_front();
        }
        let bound = self.bound();
        if self.asked.len() as u64 > bound {
            let same = self.asked.iter().filter(|(_, other)| *other == target);
            let same = same.count();
            if same as u64 > bound {
                let what = format!(
                    "{} was asked {same} times in a minute",
                    call.served.call.target
                );
                return self.wrong(promise::NO_LOOP, what);
            }
        }
        Ok(())
    }

    /// How often a minute it may be polled: at its shortest interval, with room for retries, slices and people.
    fn bound(&self) -> u64 {
        let shortest = self.expected.shortest.unwrap_or(30_000).max(500);
        40 + 3 * MINUTE / shortest + 4 * self.allowed
    }

    pub(super) fn asked(&mut self) {
        self.allowed += 1;
    }

    pub(super) fn died(&mut self) {
        self.calls.clear();
        self.busy = Timestamp::MIN;
        self.sorted = Sorted::default();
        self.unlogged = false;
        if !self.walk_is_stored {
            self.walk = None;
        }
    }

    pub(super) fn restarted(&mut self, at: Moment) {
        self.allowed += 1;
        self.due = self.due_by_wall.map(|due| {
            let wait = due.saturating_sub(at.wall).max(0).unsigned_abs();
            at.monotonic + wait
        });
    }

    /// A poll of it is under way.
    pub(super) fn is_polled(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether it shares its connection with another unit.
    pub(super) fn is_beside(&self, other: &Unit) -> bool {
        let connection = |name: &str| name.split('/').next().map(str::to_owned);
        connection(&self.name) == connection(&other.name)
    }

    /// It is polled when it is due.
    pub(super) fn is_on_time(&self, at: Moment) -> Result<(), Wrong> {
        match self.due {
            Some(due) if at.monotonic > due + PATIENCE && self.calls.is_empty() => {
                let late = i64::try_from(at.monotonic - due).unwrap_or(i64::MAX);
                self.wrong(
                    promise::ON_TIME,
                    format!("it has been due for {} and nobody polls it", relative(late)),
                )
            }
            _ => Ok(()),
        }
    }

    pub(super) fn committed(
        &mut self,
        at: Moment,
        committed: &Committed<'_>,
        truth: Option<&mut Truth>,
    ) -> Result<(), Wrong> {
        if let Some(truth) = truth
            && committed.ticket.is_some()
        {
            self.skew = truth.skew();
            truth.advance(at.world);
            self.holding.look(truth);
            self.stored(committed, truth)?;
        }
        let state = committed.state;
        if committed.ticket.is_some() {
            self.position_stays(at, committed)?;
        }
        self.walk_is_stored = state.walk.is_some();
        if !self.walk_is_stored && committed.poll.is_none() {
            self.walk = None;
        }
        self.state = Some(Box::new(Known {
            watermark: state.watermark,
            cursor: state.cursor.clone(),
            resume: state.resume,
            coverage: state.coverage.clone(),
            gaps: gaps(state),
            parked: state.parked.is_some(),
            waiting: state.waiting.as_ref().map(|waiting| waiting.until),
        }));
        self.due_by_wall = committed.due;
        self.due = committed.due.map(|due| {
            let wait = due.saturating_sub(at.wall).max(0).unsigned_abs();
            at.monotonic + wait
        });
        Ok(())
    }

    /// The records of a page: each is news or not, and the host counts as we do.
    fn stored(&mut self, committed: &Committed<'_>, truth: &Truth) -> Result<(), Wrong> {
        let mut sorted = Sorted::default();
        for record in committed.records {
            if let Err(what) = self.holding.store(truth, record, &mut sorted) {
                return self.wrong(promise::SEEN, what);
            }
        }
        let seen = committed.seen;
        let counted = Sorted {
            new: seen.new,
            changed: seen.changed,
            unchanged: seen.unchanged,
            deleted: seen.deleted,
        };
        if counted != sorted {
            return self.wrong(
                promise::ONCE,
                format!("a page held {sorted:?} beside what was stored, and became {counted:?}"),
            );
        }
        self.sorted.new += sorted.new;
        self.sorted.changed += sorted.changed;
        self.sorted.unchanged += sorted.unchanged;
        self.sorted.deleted += sorted.deleted;
        Ok(())
    }

    /// The position moves at the end of a walk alone, and not beyond what was read.
    fn position_stays(&self, at: Moment, committed: &Committed<'_>) -> Result<(), Wrong> {
        let Some(known) = &self.state else {
            return Ok(());
        };
        let state = committed.state;
        if state.watermark < known.watermark {
            let what = format!("the watermark went back by {:?}", known.watermark);
            return self.wrong(promise::POSITION, what);
        }
        let ended = committed.poll.is_some_and(|row| {
            matches!(
                row.outcome.as_str(),
                "ok" | "not-modified" | "truncated" | "incomplete"
            )
        });
        let moved = if state.watermark != known.watermark {
            Some("watermark")
        } else if state.cursor != known.cursor && state.cursor.is_some() {
            Some("cursor")
        } else if state.coverage != known.coverage {
            Some("coverage")
        } else if state.resume != known.resume {
            Some("next slice")
        } else {
            None
        };
        if let (false, Some(what)) = (ended, moved) {
            let outcome = committed.poll.map_or("a page", |row| &row.outcome);
            let what = format!("the {what} moved with {outcome}, before the walk had ended");
            return self.wrong(promise::POSITION, what);
        }
        if let Some(watermark) = state.watermark
            && state.watermark != known.watermark
            && self.holding.newest.is_none_or(|newest| watermark > newest)
            && watermark > at.world + self.skew + SLACK
        {
            let what = format!(
                "the watermark stands {} ahead of the vendor's time, and nothing so new was stored",
                relative(watermark - at.world - self.skew)
            );
            return self.wrong(promise::POSITION, what);
        }
        Ok(())
    }

    pub(super) fn poll_ended(
        &mut self,
        at: Moment,
        row: &PollRow,
        truth: Option<&mut Truth>,
    ) -> Result<(), Wrong> {
        let mut calls = std::mem::take(&mut self.calls);
        let sorted = std::mem::take(&mut self.sorted);
        if self.unlogged {
            let logged = usize::try_from(row.tally.calls).unwrap_or(usize::MAX);
            calls.drain(..calls.len().saturating_sub(logged));
        } else {
            self.log_is_true(row, &calls, sorted)?;
        }
        // Side walks follow each other at once while there is something to fill; each makes the list of gaps shorter.
        let aside = matches!(row.reason, Reason::Backfill | Reason::Settle);
        if !aside {
            self.is_no_loop(at)?;
        }
        let good = row.is_good();
        if let Some(truth) = truth {
            truth.advance(at.world);
            self.holding.look(truth);
            self.seen_is_stored(truth, &calls, good)?;
            let main = matches!(
                row.reason,
                Reason::Schedule | Reason::SyncNow | Reason::Resync
            );
            let whole = !self.walk_is_stored && main;
            let resumes = self.state.as_ref().and_then(|known| known.resume);
            if whole && good && resumes.is_none() {
                self.nothing_is_missing(truth, row, at)?;
                self.is_asked_again_soon(at)?;
            } else if whole && row.outcome == "truncated" {
                self.the_rest_is_listed(truth, row)?;
            }
        }
        if !self.walk_is_stored {
            self.walk = None;
        }
        Ok(())
    }

    /// The row counts what went over the wire.
    fn log_is_true(&self, row: &PollRow, calls: &[Call], sorted: Sorted) -> Result<(), Wrong> {
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

    fn is_no_loop(&mut self, at: Moment) -> Result<(), Wrong> {
        let now = at.monotonic;
        self.polls.push_back(now);
        while self.polls.front().is_some_and(|at| at + MINUTE < now) {
            self.polls.pop_front();
        }
        // Slices of a catch-up follow each other at once.
        let slices = self
            .state
            .as_ref()
            .is_some_and(|known| known.resume.is_some());
        let bound = self.bound();
        if self.polls.len() as u64 > bound && !slices {
            let what = format!("{} polls within a minute", self.polls.len());
            return self.wrong(promise::NO_LOOP, what);
        }
        Ok(())
    }

    /// What the pages of the poll showed is there, and so is what its 304s vouch for.
    fn seen_is_stored(&self, truth: &Truth, calls: &[Call], good: bool) -> Result<(), Wrong> {
        let last = calls.len().saturating_sub(1);
        for (place, call) in calls.iter().enumerate() {
            let repeated = calls
                .get(place + 1..)
                .is_some_and(|later| later.iter().any(|other| other.target == call.target));
            // The answer that ended the poll badly, or was asked for again, was not taken.
            let taken = call.kind != Answered::Other && !repeated && (good || place != last);
            if !taken {
                continue;
            }
            for version in &call.shown {
                let later = calls.get(place + 1..).unwrap_or_default();
                let superseded = later.iter().any(|later| {
                    // Of a damaged page too a host may take what is sound.
                    later.kind != Answered::NotModified
                        && later.shown.iter().any(|other| {
                            other.record == version.record && other.revision > version.revision
                        })
                });
                let never_seen = version.deleted && !self.holding.knows(version.record);
                if superseded || never_seen || self.holding.has(truth, version) {
                    continue;
                }
                let (promise, how) = match call.kind {
                    Answered::NotModified => (promise::VALIDATORS, "a 304 vouched for"),
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

    /// After a whole walk nothing is missing that was there when it began, within the overlap.
    fn nothing_is_missing(
        &mut self,
        truth: &Truth,
        row: &PollRow,
        at: Moment,
    ) -> Result<(), Wrong> {
        let Some(began) = self.walk else {
            return Ok(());
        };
        let first = *self.first.get_or_insert(began);
        self.last = Some(began);
        // Page numbers count on: what moved up onto a page that was read comes with the next poll.
        if truth.moves_up() && truth.shrunk.is_some_and(|shrunk| shrunk >= began) {
            return Ok(());
        }
        let asked_until = row.window.until.min(began + truth.skew() - SLACK);
        for (record, index) in &self.holding.unmet {
            let Some(version) = truth.version(*index) else {
                continue;
            };
            let never_seen = version.deleted && !self.holding.knows(*record);
            if version.visible_from > began
                || never_seen
                || self.damaged.contains(record)
                || !self.is_in_reach(truth, version, first)
                || (truth.is_found_by_stamp() && version.stamp + truth.granularity() > asked_until)
                || self.is_in_gap(version.stamp)
            {
                continue;
            }
            return self.wrong(
                promise::NOTHING_LOST,
                format!(
                    "record {} at revision {}, stamped {} before it became visible, has been visible for {} and was \
                     not delivered by a poll that read everything",
                    truth.renderer.id(*record),
                    version.revision,
                    relative(version.visible_from + truth.skew() - version.stamp),
                    relative(at.world - version.visible_from),
                ),
            );
        }
        Ok(())
    }

    fn is_in_reach(&self, truth: &Truth, version: &Version, first: Timestamp) -> bool {
        let overlap = i64::try_from(self.expected.overlap).unwrap_or(i64::MAX);
        !truth.is_found_by_stamp()
            || version.visible_from <= first
            || version.stamp + overlap >= version.visible_from + truth.skew() + SLACK
    }

    fn is_in_gap(&self, stamp: Timestamp) -> bool {
        self.state.as_ref().is_some_and(|known| {
            let mut gaps = known.gaps.iter();
            gaps.any(|(since, until)| (*since..*until).contains(&stamp))
        })
    }

    /// What a truncated poll left behind is listed, or lies where the next one begins.
    fn the_rest_is_listed(&self, truth: &Truth, row: &PollRow) -> Result<(), Wrong> {
        let (Some(began), Some(known)) = (self.walk, &self.state) else {
            return Ok(());
        };
        if !truth.is_found_by_stamp() {
            return Ok(());
        }
        let overlap = i64::try_from(self.expected.overlap).unwrap_or(i64::MAX);
        let next = known
            .resume
            .or(known.watermark.map(|mark| mark - overlap))
            .unwrap_or(Timestamp::MIN);
        let asked_until = row.window.until.min(began + truth.skew() - SLACK);
        for (record, index) in &self.holding.unmet {
            let Some(version) = truth.version(*index) else {
                continue;
            };
            let asked = row.window.since.is_none_or(|since| version.stamp >= since)
                && version.stamp + truth.granularity() <= asked_until;
            let never_seen = version.deleted && !self.holding.knows(*record);
            if version.visible_from > began
                || never_seen
                || self.damaged.contains(record)
                || !asked
                || version.stamp >= next
                || self.is_in_gap(version.stamp)
            {
                continue;
            }
            return self.wrong(
                promise::GAPS,
                format!(
                    "record {} at revision {} was not delivered by a truncated poll, and no gap tells of it",
                    truth.renderer.id(*record),
                    version.revision
                ),
            );
        }
        Ok(())
    }

    /// After a poll that went well the next one comes within the longest interval.
    fn is_asked_again_soon(&self, at: Moment) -> Result<(), Wrong> {
        let (Some(longest), Some(due)) = (self.expected.longest, self.due) else {
            return Ok(());
        };
        let wait = due.saturating_sub(at.monotonic);
        if !self.expected.under_pressure && wait > longest + 1_000 {
            let what =
                format!("the next poll is due in {wait} ms, and {longest} ms is the longest");
            return self.wrong(promise::ON_TIME, what);
        }
        Ok(())
    }

    /// It says of itself that it is not polled, or not yet.
    pub(super) fn needs_a_person(&self) -> bool {
        self.state.as_ref().is_some_and(|known| known.parked) || self.due_by_wall.is_none()
    }

    /// Some time after all was well again, a poll has read everything.
    pub(super) fn has_recovered(&self, at: Moment, calm: Timestamp) -> Result<(), Wrong> {
        let waits = self
            .state
            .as_ref()
            .and_then(|known| known.waiting)
            .is_some_and(|until| until > at.wall);
        if waits || self.last.is_some_and(|last| last >= calm) {
            return Ok(());
        }
        self.wrong(
            promise::NOTHING_LOST,
            format!(
                "all has been well for {}, and no poll has read everything since",
                relative(at.world - calm)
            ),
        )
    }
}

fn gaps(state: &UnitState) -> Vec<(Timestamp, Timestamp)> {
    let extents = state.gaps.iter().map(|gap| gap.extent);
    extents.map(|extent| (extent.since, extent.until)).collect()
}
