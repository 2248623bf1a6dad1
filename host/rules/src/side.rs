//! Side walks: what a unit reads besides its main walk.
//!
//! The main walk (schedule, sync-now, resync) keeps a unit up to date. Beside it a unit may have one side walk at a time:
//! the **settle** pass, a second look at what was too young when it was first read, or a **backfill** of a gap. A side walk
//! has its own frozen window, its own stored step and its own faults. Its records go the way of all records: dedup, outbox,
//! a poll row, the budgets.
//!
//! Promises:
//! - A side walk never touches the main walk: neither cursor, watermark, interval and validators, nor the lag log. (One
//!   exception: what a settle pass finds new was visible too late for the overlap, so its lags are logged.)
//! - The main walk goes first. No side walk begins while a main walk is under way, catches up, or is parked; one under way
//!   gives way between two pages when the unit falls due, keeps its step and goes on from there. One whose step the vendor
//!   has forgotten by then, twice, is walked in one go: else it would be begun anew for ever.
//! - Every side walk makes the list of gaps shorter, its windows narrower, or waits longer: none goes on for ever. What the
//!   vendor can't give any more is given up with the reason.
//! - A unit without gaps and without a settle time stores nothing here.
//!
//! Which gap first: one that a person asked for, then the newest; where the vendor forgets, the oldest. A gap is read from
//! its old end where the listing ascends, else from its new end, in windows no wider than the vendor answers. A window whose
//! answer hits the vendor's result cap is cut in two, down to the resolution of the vendor's stamps; windows that go well
//! grow again.

use serde::{Deserialize, Serialize};

use crate::coverage::{self, Coverage, Extent, Gap, GapSource};
use crate::fault::FaultHistory;
use crate::gaps::{By, Closed, Outlook, has_windows, outlook};
use crate::model::{Class, Duration, Order, Reason, Timestamp, Window};
use crate::planted::{Plant, is_planted};
use crate::unit::{End, Settings, UnitState};
use crate::walk::{Ending, Start, Tally, Walk};
use crate::window::{self, ceil_to, floor_to, kept_since};

/// Walks of one window in a row that went in a circle or short of the vendor's total, after which it is given up.
const PATIENCE: u32 = 3;
/// Times that a side walk's step may be lost before it is walked in one go.
const LOST_STEPS: u32 = 2;
/// The pause after the first such walk, in ms; it doubles.
const AGAIN: Duration = 600_000;
/// The first part of a gap without a beginning that is asked for when the whole is too much, in ms.
const FIRST_SLICE: Duration = 86_400_000;
/// Closed gaps that are remembered, and for how long, in ms.
const CLOSED_KEPT: usize = 5;
const CLOSED_FOR: i64 = 7 * 86_400_000;

/// What is remembered of a unit's side walks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Side {
    /// Up to where settle passes have read, in the vendor's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<Timestamp>,
    /// The side walk that is under way, or was when it last gave way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walk: Option<Box<Walk>>,
    /// From here on main walks that began after this side walk have missed a part again: what has become visible between
    /// the two may have been passed by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_again: Option<Timestamp>,
    /// Its faults in a row.
    #[serde(skip_serializing_if = "is_default")]
    pub faults: FaultHistory,
    /// No side walk before this, by this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<SideWait>,
    /// Gaps that were closed lately.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Closed>,
    /// What the last settle pass that found something had found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
}

/// A wait of a unit's side walks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideWait {
    /// Until when, by this machine's clock.
    pub until: Timestamp,
    /// When it began, by the same clock: one that has not begun yet was noted before the clock was set back.
    #[serde(default)]
    pub from: Timestamp,
    /// Why.
    pub why: String,
}

/// What a settle pass found that every poll before it had missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// When, by this machine's clock.
    pub at: Timestamp,
    /// Records that were not known.
    pub new: u64,
    /// Changes that were not known.
    pub changed: u64,
}

/// A side walk that has ended.
#[derive(Clone, Debug)]
pub struct SideEnded {
    /// The unit's new state.
    pub state: UnitState,
    /// What is worth saying of it.
    pub remark: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Side {
    /// Nothing is to be remembered.
    pub fn is_empty(&self) -> bool {
        *self == Side::default()
    }

    /// These gaps are closed.
    pub(crate) fn note_closed(&mut self, gaps: Vec<Gap>, now: Timestamp) {
        if gaps.is_empty() {
            return;
        }
        self.closed
            .retain(|closed| now.saturating_sub(closed.closed) < CLOSED_FOR);
        self.closed.extend(gaps.into_iter().map(|gap| Closed {
            extent: gap.extent,
            source: gap.source,
            found: gap.found,
            closed: now,
        }));
        let surplus = self.closed.len().saturating_sub(CLOSED_KEPT);
        self.closed.drain(..surplus);
    }
}

impl UnitState {
    /// The order of the stream's listing, as far as it can be relied upon.
    pub fn order(&self, settings: &Settings) -> Order {
        if self.disordered {
            Order::Unordered
        } else {
            settings.stream.order
        }
    }

    /// How late a record of the unit may become visible, in ms: what the configuration or the connector says, else what
    /// was measured. None: no second look.
    pub fn settle_time(&self, settings: &Settings) -> Option<Duration> {
        let measured = || {
            let overlap = self.overlap(settings);
            self.lags.settle(overlap, &settings.overlap)
        };
        let settle = settings.stream.settle.or_else(measured);
        settle.filter(|settle| *settle > 0 && has_windows(&settings.stream))
    }

    /// When the next side walk may begin, by this machine's clock; none while there is none to make.
    pub fn side_due(&self, settings: &Settings, now: Timestamp) -> Option<Timestamp> {
        let busy = self.walk.is_some() || self.resume.is_some() || self.parked.is_some();
        if busy || !self.synced || !has_windows(&settings.stream) {
            return None;
        }
        let vendor_now = self.clock.now(now);
        let has_gap = || {
            let fillable = |gap: &Gap| {
                outlook(gap, &settings.stream, settings.start, vendor_now) == Outlook::Fillable
            };
            self.gaps.iter().any(fillable)
        };
        let wanted = if self.side.walk.is_some() || has_gap() {
            now
        } else {
            let due = window::settle_due(self.settle_time(settings)?, self.side.settled?);
            now.saturating_add(due.saturating_sub(vendor_now).max(0))
        };
        // A clock that is set back makes no wait longer. What a vendor asked for is kept by the budgets, too.
        let waiting = self.side.waiting.as_ref();
        let held = waiting.filter(|waiting| waiting.from <= now);
        Some(wanted.max(held.map_or(wanted, |waiting| waiting.until)))
    }

    /// The side walk to make now: the stored one where it can go on, else a new one. None: there is none to make.
    pub fn side_walk(&mut self, settings: &Settings, now: Timestamp) -> Option<Walk> {
        if self.side_due(settings, now)? > now {
            return None;
        }
        let page_size = self.page_size_of(settings);
        if let Some(walk) = self.side.walk.take() {
            let wanted = walk.reason == Reason::Settle
                || self.gaps.open_within(Extent::from(walk.window)) > 0;
            if wanted && let Some(walk) = walk.resume(page_size) {
                return Some(walk);
            }
        }
        let vendor_now = self.clock.now(now);
        self.gaps.expire(&settings.stream, vendor_now);
        let (reason, window) = self
            .next_settle(settings, vendor_now)
            .map(|window| (Reason::Settle, window))
            .or_else(|| {
                let window = self.next_backfill(settings, vendor_now)?;
                Some((Reason::Backfill, window))
            })?;
        self.side.missed_again = None;
        Some(Walk::start(Start {
            number: self.walks,
            reason,
            window,
            capped: false,
            then: None,
            cursor: None,
            page_size,
            now,
        }))
    }

    /// The side walk does not make room for what is due: whenever it did, the vendor had forgotten its step.
    pub fn holds_on(&self) -> bool {
        self.side.faults.count(Class::PositionLost) >= LOST_STEPS
    }

    fn next_settle(&mut self, settings: &Settings, vendor_now: Timestamp) -> Option<Window> {
        let settle = self.settle_time(settings)?;
        let stream = &settings.stream;
        // What is gone, or lies before what is wanted, needs no second look.
        let first = kept_since(stream, vendor_now).max(settings.start);
        let settled = self.side.settled?;
        let settled = first.map_or(settled, |first| settled.max(first));
        let narrow = self.narrow.and_then(|narrow| narrow.cap());
        let planned = window::plan_settle(stream, settle, settled, narrow, vendor_now)?;
        Some(planned.window)
    }

    fn next_backfill(&self, settings: &Settings, vendor_now: Timestamp) -> Option<Window> {
        let stream = &settings.stream;
        let forgets = stream.retention.is_some();
        let fillable = self
            .gaps
            .iter()
            .filter(|gap| outlook(gap, stream, settings.start, vendor_now) == Outlook::Fillable);
        let gap = fillable.max_by_key(|gap| {
            let until = if forgets {
                gap.extent.until.saturating_neg()
            } else {
                gap.extent.until
            };
            (gap.source == GapSource::Asked, until)
        })?;
        let grain = window::grain(stream);
        // What a person asks for may lie before what is wanted in general.
        let start = settings.start.filter(|_| gap.source != GapSource::Asked);
        let first = kept_since(stream, vendor_now).max(start);
        let since = first.map_or(gap.extent.since, |first| gap.extent.since.max(first));
        let until = ceil_to(gap.extent.until.min(vendor_now), grain);
        let since = (since > Timestamp::MIN).then(|| floor_to(since, grain).min(until));
        let cap = window::cap(stream, grain);
        let cap = window::narrower(cap, self.narrow.and_then(|narrow| narrow.cap()), grain);
        let cap = window::narrower(cap, gap.slice, grain);
        let upwards = forgets || self.order(settings) == Order::Ascending;
        Some(match (since, cap) {
            (Some(since), Some(cap)) if until.saturating_sub(since) > cap && upwards => Window {
                since: Some(since),
                until: since.saturating_add(cap),
            },
            (Some(since), Some(cap)) => Window {
                since: Some(since.max(until.saturating_sub(cap))),
                until,
            },
            // Before the epoch there is nothing that would be worth a window of its own.
            (None, Some(cap)) => Window {
                since: Some(until.saturating_sub(cap)).filter(|since| *since > 0),
                until,
            },
            (since, None) => Window { since, until },
        })
    }

    /// The side walk has ended.
    pub fn side_complete(mut self, walk: &Walk, end: &End<'_>) -> SideEnded {
        self.side.walk = None;
        self.side.faults = FaultHistory::default();
        self.side.waiting = None;
        let inverted = self.watch_order(walk, end.settings);
        let remark = match walk.reason {
            Reason::Settle => self.settled(walk, end),
            _ => self.backfilled(walk, end),
        };
        SideEnded {
            remark: remark.or(inverted),
            state: self,
        }
    }

    fn settled(&mut self, walk: &Walk, end: &End<'_>) -> Option<String> {
        // A second look that was cut short, or can't be trusted, is not taken again: what it has left is a gap like any other.
        self.side.settled = self.side.settled.max(Some(walk.window.until));
        let left = match end.ending {
            Ending::Complete => Vec::new(),
            Ending::Truncated => {
                let walked = walk.read_whole(self.order(end.settings));
                coverage::left_over(walk.window, &walked)
            }
            Ending::Stalled | Ending::Short { .. } => vec![Extent::from(walk.window)],
        };
        for extent in left {
            self.gaps
                .note(Gap::new(extent, GapSource::Truncated, end.now));
        }
        let Tally { new, changed, .. } = *end.tally;
        if new + changed == 0 {
            return None;
        }
        self.note_lags(end, 0);
        self.side.found = Some(Found {
            at: end.now,
            new,
            changed,
        });
        Some(format!(
            "a second look found {new} new and {changed} changed that became visible late"
        ))
    }

    fn backfilled(&mut self, walk: &Walk, end: &End<'_>) -> Option<String> {
        let window = Extent::from(walk.window);
        match end.ending {
            Ending::Complete => {
                self.fill(window, end.settings, end.now);
                self.gaps.widen(window);
                None
            }
            Ending::Truncated => {
                if is_planted(Plant::EarlyClose) {
                    self.fill(window, end.settings, end.now);
                    return None;
                }
                let before = self.gaps.open_within(window);
                let walked = walk.read_whole(self.order(end.settings));
                for part in walked.extents() {
                    self.fill(*part, end.settings, end.now);
                }
                let left = self.gaps.open_within(window);
                if left == 0 {
                    self.gaps.widen(window);
                }
                if left < before {
                    return Some("the vendor gave a part: the rest is read next".to_owned());
                }
                if self.kept(window, end.settings, end.now).is_some() {
                    return Some(
                        "newer polls have missed it again: it is read once more".to_owned(),
                    );
                }
                // Nothing of the window, nor of what is older, shows behind what is newer: narrower windows don't help.
                if shows_the_newest_alone(walk, end.settings.stream.granularity) {
                    let why =
                        "the vendor shows its newest records alone, whatever part is asked for";
                    let older = self.gaps.around(window);
                    self.gaps.give_up(
                        Extent {
                            since: older.map_or(window.since, |gap| gap.since),
                            ..window
                        },
                        why,
                    );
                    return Some(why.to_owned());
                }
                match half(window, end.settings.stream.granularity) {
                    Some(width) => {
                        self.gaps.set_slice(window, Some(width));
                        Some("more than the vendor gives at once: cut in two".to_owned())
                    }
                    None => {
                        let why = match end.settings.stream.result_cap {
                            Some(cap) => format!(
                                "more records share one moment than the {cap} that the vendor gives for one query"
                            ),
                            None => {
                                "more records share one moment than the vendor gives for one query"
                                    .to_owned()
                            }
                        };
                        self.gaps.give_up(window, &why);
                        Some(why)
                    }
                }
            }
            Ending::Stalled => self.doubt(
                window,
                "the vendor repeats its pages instead of giving the rest".to_owned(),
                end.now,
            ),
            Ending::Short { total, distinct } => self.doubt(
                window,
                format!("the vendor counts {total} records and showed {distinct}"),
                end.now,
            ),
        }
    }

    /// A part has been walked to its end. What a newer main walk has missed again meanwhile, and the next one does not look at
    /// any more, stays listed: this walk may have passed by before a late record came into view there, and no other would
    /// look again.
    fn fill(&mut self, part: Extent, settings: &Settings, now: Timestamp) {
        self.coverage.add(part);
        let kept = self.kept(part, settings, now);
        let parts = match kept {
            Some(kept) => part.without(kept),
            None => vec![part],
        };
        for part in parts {
            let closed = self.gaps.close(part, By::Backfill);
            self.side.note_closed(closed, now);
        }
    }

    /// What stays listed of a part that a side walk has read.
    fn kept(&self, part: Extent, settings: &Settings, now: Timestamp) -> Option<Extent> {
        let kept = Extent {
            since: self.side.missed_again?.max(part.since),
            until: self.next_window(settings, now).since?.min(part.until),
        };
        (kept.since < kept.until).then_some(kept)
    }

    /// A main walk has missed a part.
    pub(crate) fn missed(&mut self, part: Extent, walk: &Walk) {
        let side = self.side.walk.as_ref();
        if side.is_some_and(|side| walk.started >= side.started) {
            let from = self.side.missed_again;
            self.side.missed_again = Some(from.map_or(part.since, |from| from.min(part.since)));
        }
    }

    /// A walk that can't be trusted. It is made again a few times.
    fn doubt(&mut self, window: Extent, why: String, now: Timestamp) -> Option<String> {
        let tries = self.gaps.tried(window);
        if tries >= PATIENCE {
            self.gaps.give_up(window, &why);
        } else {
            let pause = AGAIN.saturating_mul(1 << tries.min(PATIENCE));
            self.side.waiting = Some(SideWait {
                until: now.saturating_add_unsigned(pause),
                from: now,
                why: why.clone(),
            });
        }
        Some(why)
    }

    /// The vendor refuses the side walk for good.
    pub fn side_refused(&mut self, walk: &Walk, why: &str) {
        self.side.walk = None;
        self.side.faults = FaultHistory::default();
        self.side.waiting = None;
        match walk.reason {
            Reason::Settle => {
                self.side.settled = self.side.settled.max(Some(walk.window.until));
            }
            _ => self.gaps.give_up(
                Extent::from(walk.window),
                &format!("the vendor refuses it: {why}"),
            ),
        }
    }

    /// No side walk before that time, by this machine's clock.
    pub fn side_rests(&mut self, now: Timestamp, until: Timestamp, why: &str) {
        let waiting = self.side.waiting.as_ref();
        if waiting.is_none_or(|waiting| waiting.until < until) {
            self.side.waiting = Some(SideWait {
                until,
                from: now,
                why: why.to_owned(),
            });
        }
    }

    /// A person wants a part to be read again. Tells what of it can't be asked for.
    pub fn ask_for(&mut self, extent: Extent, settings: &Settings, now: Timestamp) {
        self.gaps.retry(extent);
        self.gaps.note(Gap::new(extent, GapSource::Asked, now));
        let vendor_now = self.clock.now(now);
        self.gaps.expire(&settings.stream, vendor_now);
        self.side.waiting = None;
    }

    /// Lists what lies between windows that don't touch, and what a start that was moved back has opened.
    pub(crate) fn note_holes(
        &mut self,
        settings: &Settings,
        vendor_now: Timestamp,
        now: Timestamp,
    ) {
        let stream = &settings.stream;
        let Some(first) = self.coverage.extents().first().copied() else {
            return;
        };
        if !has_windows(stream) {
            return;
        }
        let bounded = stream.retention.is_some() || stream.window_cap.is_some();
        let from = match settings.start {
            Some(start) => start,
            // Where the vendor forgets or answers narrow windows alone, the past has no end that could be asked for.
            None if bounded => first.since,
            None => Timestamp::MIN,
        };
        let mut known: Coverage = self.coverage.clone();
        self.gaps.extents().for_each(|extent| known.add(extent));
        let grain = window::grain(stream).unsigned_abs();
        for hole in known.holes(from, grain) {
            self.gaps.note(Gap::new(hole, GapSource::Untouched, now));
        }
        self.gaps.expire(stream, vendor_now);
    }
}

/// A walk that was cut short has seen nothing older than its window's end; or only what lies at its very end, of a vendor
/// that lists what is newer with it, whatever part it is asked for.
fn shows_the_newest_alone(walk: &Walk, granularity: Duration) -> bool {
    let until = walk.window.until;
    let heeds_until = walk.newest.seen.is_none_or(|newest| newest < until);
    walk.oldest.is_some_and(|oldest| {
        oldest >= until || (!heeds_until && oldest.saturating_add_unsigned(granularity) >= until)
    })
}

/// Half the width of a window that was too much for the vendor; none when it can't be cut.
fn half(window: Extent, granularity: Duration) -> Option<Duration> {
    if window.since == Timestamp::MIN {
        let first = i64::try_from(FIRST_SLICE).ok()?;
        return (window.until > first).then_some(FIRST_SLICE);
    }
    let (older, newer) = coverage::split(window, granularity)?;
    Some(older.width().max(newer.width()))
}

#[cfg(test)]
mod tests;
