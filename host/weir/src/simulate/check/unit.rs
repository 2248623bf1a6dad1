//! One unit under watch: its calls, what it stores, how its polls end.

use std::hash::{DefaultHasher, Hash, Hasher};

use weir_rules::model::{Class, Reason, Timestamp, Window};
use weir_rules::walk::Walk;

use super::super::{Called, Committed, Moment};
use super::aside::Aside;
use super::expect::Expected;
use super::held::{Holding, Sorted};
use super::pace::Pace;
use super::pages::{Answered, Call};
use super::position::Known;
use super::trail::relative;
use super::truth::Truth;
use super::whole::{Ending, SLACK, Walked, is_aside};
use super::{Wrong, promise};
use crate::store::PollRow;

/// One unit.
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) expected: Expected,
    /// Which collection it reads, by vendor and place.
    pub(super) target: Option<(usize, usize)>,
    pub(super) holding: Holding,
    /// What waits for a person.
    pub(super) aside: Aside,
    pub(super) pace: Pace,
    /// Calls since the last poll ended.
    calls: Vec<Call>,
    /// When the first of them was made.
    asked: Option<Timestamp>,
    /// Until when the last call is being answered.
    busy: Timestamp,
    /// The main walk that is stored, and goes on after a restart.
    main: Option<Begun>,
    /// The side walk that is stored.
    side: Option<Begun>,
    /// When the first walk began that read everything.
    pub(super) first: Option<Timestamp>,
    /// When the last main walk to the present began that has ended, whole or in part.
    last: Option<Timestamp>,
    /// When the catch-up in slices began that is under way.
    catching_up: Option<Timestamp>,
    /// That walk was whole, so that it left nothing to fill.
    pub(super) is_whole: bool,
    /// What is stored of its position, and what was before the last commit.
    pub(super) state: Option<Box<Known>>,
    pub(super) before: Option<Box<Known>>,
    /// What the commits of this poll held.
    sorted: Sorted,
    /// How far the vendor's clock is ahead, in ms.
    skew: i64,
    /// A commit may have failed, so that a poll left no row.
    unlogged: bool,
}

/// A stored walk: what it asks for, and when its first call was made.
#[derive(Clone, Copy)]
struct Begun {
    window: Window,
    at: Timestamp,
}

impl Unit {
    pub(super) fn new(name: String, expected: Expected) -> Unit {
        Unit {
            name,
            expected,
            target: None,
            holding: Holding::default(),
            aside: Aside::default(),
            pace: Pace::default(),
            calls: Vec::new(),
            asked: None,
            busy: Timestamp::MIN,
            main: None,
            side: None,
            first: None,
            last: None,
            catching_up: None,
            is_whole: false,
            state: None,
            before: None,
            sorted: Sorted::default(),
            skew: 0,
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

    pub(super) fn connection(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    pub(super) fn wrong(
        &self,
        promise: &'static str,
        what: impl std::fmt::Display,
    ) -> Result<(), Wrong> {
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

    /// Something of it has been stored.
    pub(super) fn has_begun(&self) -> bool {
        self.state.is_some()
    }

    /// A poll of it is under way.
    pub(super) fn is_polled(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) fn called(&mut self, call: &Called<'_>) -> Result<(), Wrong> {
        self.is_quiet(call.at, "of the same unit")?;
        self.busy = call.answered;
        self.asked.get_or_insert(call.at.world);
        let mut hasher = DefaultHasher::new();
        call.served.call.target.hash(&mut hasher);
        let target = hasher.finish();
        let shown = call.served.page.as_ref();
        self.calls.push(Call {
            target,
            shown: shown.map(|page| page.versions.clone()).unwrap_or_default(),
            kind: Answered::of(&call.served.call.outcome),
        });
        self.asks(call.at, target, &call.served.call.target)
    }

    pub(super) fn died(&mut self) {
        self.calls.clear();
        self.asked = None;
        self.busy = Timestamp::MIN;
        self.sorted = Sorted::default();
        self.unlogged = false;
    }

    pub(super) fn committed(
        &mut self,
        at: Moment,
        committed: &Committed<'_>,
        truth: Option<&mut Truth>,
    ) -> Result<(), Wrong> {
        let of_a_poll = committed.ticket.is_some();
        if let Some(truth) = truth {
            self.skew = truth.skew();
            truth.advance(at.world);
            self.aside.note(truth, committed.review);
            if of_a_poll {
                self.holding.look(truth);
                let lost = |row: &PollRow| row.class == Some(Class::PositionLost);
                let lost = committed.poll.is_some_and(lost);
                self.aside.walks_hold(truth, committed.state, lost);
                self.stored(committed, truth)?;
            }
        }
        let state = Box::new(Known::of(committed.state));
        if of_a_poll {
            self.position_stays(at, committed, &state)?;
        }
        self.before = self.state.replace(state);
        if committed
            .poll
            .is_none_or(|row| Ending::of(row) == Ending::None)
        {
            let asked = self.asked.filter(|_| of_a_poll);
            self.main = stored(committed.state.walk.as_ref(), self.main, asked);
            self.side = stored(committed.state.side.walk.as_deref(), self.side, asked);
        }
        self.pace.is_due(committed.due, at);
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
    fn position_stays(
        &self,
        at: Moment,
        committed: &Committed<'_>,
        state: &Known,
    ) -> Result<(), Wrong> {
        let Some(known) = &self.state else {
            return Ok(());
        };
        if state.watermark < known.watermark {
            let what = format!("the watermark went back by {:?}", known.watermark);
            return self.wrong(promise::POSITION, what);
        }
        let walked = committed.poll.filter(|row| Ending::of(row) != Ending::None);
        let Some(row) = walked else {
            return match state.moved(known) {
                // A second look that the vendor refuses for good has ended, too.
                Some("settled part")
                    if committed.poll.is_some_and(|row| row.outcome == "failed") =>
                {
                    Ok(())
                }
                Some(what) => {
                    let outcome = committed.poll.map_or("a page", |row| &row.outcome);
                    let what =
                        format!("the {what} moved with {outcome}, before the walk had ended");
                    self.wrong(promise::POSITION, what)
                }
                None => Ok(()),
            };
        };
        if let Some((since, until)) = state.claimed_beyond(known, row.window) {
            let what = format!(
                "what lies between {} and {} is said to have been read, and the walk's window does not hold it",
                relative(since.saturating_sub(at.world)),
                relative(until.saturating_sub(at.world)),
            );
            return self.wrong(promise::POSITION, what);
        }
        if is_aside(row) && (state.watermark, state.resume) != (known.watermark, known.resume) {
            return self.wrong(promise::POSITION, "a side walk moved the main position");
        }
        self.second_looks_touch(row, state, known)?;
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

    /// Second looks leave nothing out between them.
    fn second_looks_touch(&self, row: &PollRow, state: &Known, known: &Known) -> Result<(), Wrong> {
        let (Some(from), Some(to)) = (known.settled, state.settled) else {
            return Ok(());
        };
        let read = row.reason == Reason::Settle
            && row.window.since.is_none_or(|since| since <= from)
            && to <= row.window.until;
        if from != to && !read {
            let what = format!(
                "second looks have come {} further, and none has read that",
                relative(to - from)
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
        let asked = self.asked.take();
        let sorted = std::mem::take(&mut self.sorted);
        if self.unlogged {
            let logged = usize::try_from(row.tally.calls).unwrap_or(usize::MAX);
            calls.drain(..calls.len().saturating_sub(logged));
        } else {
            self.log_is_true(row, &calls, sorted)?;
        }
        // Side walks follow each other at once while there is something to fill; each makes the list of gaps shorter.
        if !is_aside(row) {
            self.is_no_loop(at)?;
        }
        let Some(truth) = truth else {
            return Ok(());
        };
        truth.advance(at.world);
        self.holding.look(truth);
        self.seen_is_stored(truth, &calls, row.is_good())?;
        let ending = Ending::of(row);
        if ending == Ending::None {
            return Ok(());
        }
        let place = if is_aside(row) {
            &mut self.side
        } else {
            &mut self.main
        };
        let goes_on = place.take().filter(|walk| walk.window == row.window);
        match goes_on.map(|walk| walk.at).or(asked) {
            Some(began) => {
                let now = at.world;
                let walked = Walked {
                    row,
                    began,
                    caught_up_from: self.catching_up.unwrap_or(began),
                    now,
                    ending,
                };
                self.has_walked(truth, &walked, at)
            }
            None => Ok(()),
        }
    }

    fn has_walked(&mut self, truth: &Truth, walked: &Walked<'_>, at: Moment) -> Result<(), Wrong> {
        let resumes = self.state.as_ref().and_then(|known| known.resume);
        let whole = !walked.is_aside() && walked.ending == Ending::Whole && resumes.is_none();
        if whole {
            self.first.get_or_insert(walked.began);
        }
        // At some vendors no window can ever be given whole: then the rest is read from the list of gaps.
        if !walked.is_aside() && resumes.is_none() {
            self.last = Some(walked.began);
            self.is_whole = whole;
        }
        self.nothing_is_missing(truth, walked)?;
        if !walked.is_aside() {
            self.catching_up = resumes.and(self.catching_up.or(Some(walked.began)));
        }
        if whole {
            self.is_asked_again_soon(at)?;
        }
        Ok(())
    }

    /// It says of itself that it is not polled, or not yet.
    pub(super) fn needs_a_person(&self) -> bool {
        self.state.as_ref().is_some_and(|known| known.parked) || self.pace.is_never_due()
    }

    /// Once all was well again and everything could be seen, a walk has ended, and everything is there.
    pub(super) fn has_recovered(
        &self,
        truth: &Truth,
        at: Moment,
        calm: Timestamp,
    ) -> Result<(), Wrong> {
        let calm = truth.changed.map_or(calm, |changed| changed.max(calm));
        if !truth.is_all_shown() || self.last.is_none_or(|last| last < calm) {
            let well = relative(at.world - calm);
            let what = format!("all has been well for {well}, and no walk has ended since");
            return self.wrong(promise::NOTHING_LOST, what);
        }
        self.everything_is_there(truth, at)
    }
}

/// The walk that is stored now, and when it began.
fn stored(walk: Option<&Walk>, before: Option<Begun>, asked: Option<Timestamp>) -> Option<Begun> {
    let window = walk?.window;
    before
        .filter(|before| before.window == window)
        .or(asked.map(|at| Begun { window, at }))
}
