//! What is remembered of a unit between polls, and what becomes of it when a poll ends.
//!
//! Promises:
//! - The watermark, the cursor and the covered interval move only when a walk has ended and is complete, or when
//!   the vendor itself refused the rest; then the part that was not read is a gap.
//! - A walk that went in a circle, or brought fewer records than the vendor counted, moves nothing: the next
//!   poll reads its window again. A vendor whose totals never agree would hold the unit for ever, so the third
//!   such walk in a row moves on and leaves its window as a gap.
//! - A fault moves nothing either. It keeps the walk, so that the next poll goes on from the same step.

use serde::{Deserialize, Serialize};

use crate::clock_skew::VendorClock;
use crate::coverage::{self, Coverage, Extent, Gap, GapSource};
use crate::doubles::Doubles;
use crate::fault::FaultHistory;
use crate::interval::{self, Chosen, Floors, Interval, IntervalState, Strategy, Yield};
use crate::miad::MiadState;
use crate::model::{Class, CursorKind, Duration, Order, Reason, Stream, Timestamp};
use crate::overlap::{self, Lags, Overlap};
use crate::planted::{Plant, is_planted};
use crate::quiet::Asked;
use crate::rhythm::Rhythm;
use crate::walk::{Ending, Start, Tally, Walk};
use crate::window::{self, Ask};

/// Walks in a row that disagreed with the vendor's total or went in a circle, after which the unit moves on.
const PATIENCE: u32 = 3;

/// The stored state of one unit. The store keeps it as one row and does not look into it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnitState {
    /// What the connector gave back as the unit's cursor, byte for byte.
    pub cursor: Option<String>,
    /// The newest `updated_at` that a complete walk has committed.
    pub watermark: Option<Timestamp>,
    /// Where the next slice of a catch-up begins.
    pub resume: Option<Timestamp>,
    /// How many walks were begun.
    pub walks: u64,
    /// Some walk has been complete.
    pub synced: bool,
    /// The walk that is under way, or was when the last poll ended.
    pub walk: Option<Walk>,
    /// Walks in a row that ended in a circle or short of the vendor's total.
    pub doubtful: u32,
    /// The interval's state.
    pub interval: IntervalState,
    /// When records come, for the strategy that asks.
    #[serde(skip_serializing_if = "Rhythm::is_empty")]
    pub rhythm: Rhythm,
    /// Records per page, where the vendor could not bear the stream's own page size.
    pub page_size: Option<u32>,
    /// Latencies, for vendors that publish no limits.
    pub miad: MiadState,
    /// The first request of the last walk, where it was answered well, at such a vendor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// Faults in a row.
    pub faults: FaultHistory,
    /// How late records become visible.
    pub lags: Lags,
    /// The vendor's clock against ours.
    pub clock: VendorClock,
    /// What has been read, in the vendor's time.
    pub coverage: Coverage,
    /// What has not been read and may never be.
    pub gaps: Vec<Gap>,
    /// Records that the last walk showed in several versions.
    #[serde(skip_serializing_if = "Doubles::is_empty")]
    pub doubles: Doubles,
    /// When records beyond what `dedup.retain` asks for were last forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swept: Option<Timestamp>,
    /// Not polled until a person has looked at it.
    pub parked: Option<Parked>,
    /// Waits for a vendor.
    pub waiting: Option<Waiting>,
    /// How the last poll ended.
    pub last: Option<Last>,
}

/// A unit that needs a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parked {
    /// Since when.
    pub since: Timestamp,
    /// The class of the fault that parked it.
    pub class: Class,
    /// The vendor's code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// A person has looked at it and given the unit up: it stays as it is, and asks for nobody any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
}

/// A wait that somebody asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// Until when, by this machine's clock.
    pub until: Timestamp,
    /// Who asked, and why.
    pub why: String,
}

/// How a poll ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Last {
    /// When.
    pub ended: Timestamp,
    /// The poll row's outcome.
    pub outcome: String,
    /// What happened, where something did.
    pub message: Option<String>,
    /// What is promised of the unit's interval and not kept, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unkept: Option<String>,
}

/// How one unit is polled: the stream as its connector describes it, and what the configuration says of it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The stream.
    pub stream: Stream,
    /// Bounds and strategy of the interval.
    pub interval: Interval,
    /// Bounds of the overlap.
    pub overlap: Overlap,
    /// Always this overlap, in ms.
    pub fixed_overlap: Option<Duration>,
    /// The oldest change that is wanted.
    pub start: Option<Timestamp>,
    /// The vendor publishes no limits: latency rules.
    pub unpublished_limits: bool,
}

/// A completed poll, as its row and its schedule need it.
#[derive(Clone, Debug)]
pub struct Completed {
    /// The unit's new state.
    pub state: UnitState,
    /// The interval that follows, and why.
    pub chosen: Chosen,
    /// There is more to catch up with: poll again at once.
    pub more: bool,
}

/// What the end of a walk is judged by.
#[derive(Clone, Debug)]
pub struct End<'a> {
    /// How it ended.
    pub ending: Ending,
    /// How the unit is polled.
    pub settings: &'a Settings,
    /// What the whole walk has seen.
    pub tally: &'a Tally,
    /// `seen - updated_at` of its new and changed records, in ms.
    pub lags: &'a [i64],
    /// Our time.
    pub now: Timestamp,
    /// What no interval may go below.
    pub floors: Floors,
}

impl UnitState {
    /// As it was before its first poll: the next walk begins at the unit's start. What was learnt of the vendor stays
    /// (its clock, its lag, its latency), and so do the holes in the data, until they have been read.
    pub fn reset(self) -> UnitState {
        UnitState {
            // Validators and intents carry the number: it is never given twice.
            walks: self.walks,
            lags: self.lags,
            clock: self.clock,
            miad: self.miad,
            gaps: self.gaps,
            doubles: self.doubles,
            swept: self.swept,
            ..UnitState::default()
        }
    }

    /// A person wants it to be polled again.
    pub fn retry(mut self) -> UnitState {
        self.parked = None;
        self.faults = FaultHistory::default();
        self.asked = None;
        self
    }

    /// It is not polled, and a person should look at it.
    pub fn needs_review(&self) -> bool {
        self.parked.as_ref().is_some_and(|parked| !parked.given_up)
    }

    /// The overlap of the next window, in ms.
    pub fn overlap(&self, settings: &Settings) -> Duration {
        settings
            .fixed_overlap
            .unwrap_or_else(|| self.lags.overlap(&settings.overlap))
    }

    /// The walk of the next poll: the stored one where it can go on, else a new one. A resync forgets the
    /// position, never the records.
    pub fn walk(&mut self, settings: &Settings, reason: Reason, now: Timestamp) -> Walk {
        let stream = &settings.stream;
        let page_size = self
            .page_size
            .map_or(stream.page_size, |size| size.min(stream.page_size));
        if let Some(walk) = self.walk.take() {
            let same_kind = (walk.reason == Reason::Resync) == (reason == Reason::Resync)
                // A scheduled poll goes on with a resync that was interrupted.
                || walk.reason == Reason::Resync;
            if same_kind && let Some(walk) = walk.resume(page_size) {
                return walk;
            }
        }
        self.walks = self.walks.saturating_add(1);
        let afresh = reason == Reason::Resync;
        let planned = window::plan(
            stream,
            &Ask {
                watermark: self.watermark.filter(|_| !afresh),
                resume: self.resume.filter(|_| !afresh),
                overlap: self.overlap(settings),
                vendor_now: self.clock.now(now),
                start: settings.start,
            },
        );
        if let Some(since) = planned.window.since.filter(|_| planned.past_unreached) {
            self.note_gap(Gap {
                extent: Extent {
                    since: Timestamp::MIN,
                    until: since,
                },
                source: GapSource::NoStart,
            });
        }
        Walk::start(Start {
            number: self.walks,
            reason,
            window: planned.window,
            capped: planned.capped,
            then: planned.resume,
            cursor: self.cursor.clone().filter(|_| !afresh),
            page_size,
            now,
        })
    }

    /// The position moves to the end of the walk; what was not read on the way is a gap, or comes next.
    fn move_on(&mut self, stream: &Stream, walk: &Walk, ending: Ending, vendor_now: Timestamp) {
        let walked = match ending {
            Ending::Complete => Some(Extent::from(walk.window)),
            Ending::Truncated => {
                coverage::walked_part(stream.order, walk.window, walk.oldest, walk.newest.seen)
            }
            Ending::Stalled | Ending::Short { .. } => None,
        };
        if let Some(walked) = walked {
            self.coverage.add(walked);
        }
        // Cut short on the way up: what is left begins at the newest stamp seen, and is read next.
        let goes_on = ending == Ending::Truncated
            && stream.order == Order::Ascending
            && walk.newest.seen > walk.window.since;
        if !goes_on {
            for extent in coverage::left_over(walk.window, walked) {
                self.note_gap(Gap {
                    extent,
                    source: GapSource::Truncated,
                });
            }
        }
        self.cursor = walk.next_cursor.clone().or(self.cursor.take());
        self.resume = if goes_on { walk.newest.seen } else { walk.then };
        self.synced |= self.resume.is_none();
        self.doubtful = 0;
        if stream.cursor == CursorKind::Timestamp {
            self.watermark = window::advance_watermark(
                self.watermark,
                &walk.newest,
                &walk.window,
                walk.capped,
                vendor_now,
            );
        }
    }

    /// How much longer than its interval the unit was not asked before a poll that began at `started`, in ms: the host was
    /// down, or the vendor made it wait. That is no lag of the vendor's.
    fn away(&self, started: Timestamp) -> Duration {
        let since = self.last.as_ref().map_or(started, |last| last.ended);
        let rest = started.saturating_sub(since).max(0).unsigned_abs();
        rest.saturating_sub(self.interval.current)
    }

    /// Lists a gap once, however often it is found.
    fn note_gap(&mut self, gap: Gap) {
        if is_planted(Plant::LostGap) {
            return;
        }
        let touches = |other: &Gap| {
            other.source == gap.source
                && other.extent.since <= gap.extent.until
                && gap.extent.since <= other.extent.until
        };
        match self.gaps.iter_mut().find(|other| touches(other)) {
            Some(other) => {
                other.extent.since = other.extent.since.min(gap.extent.since);
                other.extent.until = other.extent.until.max(gap.extent.until);
            }
            None => self.gaps.push(gap),
        }
    }

    /// The walk has ended.
    pub fn complete(mut self, walk: &Walk, end: &End<'_>) -> Completed {
        let stream = &end.settings.stream;
        let ending = end.ending;
        let vendor_now = self.clock.now(end.now);
        let doubtful = matches!(ending, Ending::Stalled | Ending::Short { .. });
        self.doubtful = if doubtful {
            self.doubtful.saturating_add(1)
        } else {
            0
        };
        let moves_on = !doubtful || self.doubtful >= PATIENCE;
        let first_sync = !self.synced;

        if moves_on {
            self.move_on(stream, walk, ending, vendor_now);
        }
        if overlap::counts(walk.reason, first_sync, walk.capped) {
            self.lags
                .observe(end.lags, self.away(walk.started), end.now);
        }

        let found = match ending {
            Ending::Truncated => Yield::FullNoNext,
            // As often as may be, while all that there is may not fit into the one page that can be asked for.
            _ if walk.brimful && end.tally.productive() => Yield::FullNoNext,
            _ if end.tally.productive() => Yield::Productive,
            _ => Yield::Empty,
        };
        let floors = Floors {
            vendor: end.floors.vendor.max(walk.poll_after),
            ..end.floors
        };
        let config = &end.settings.interval;
        let expected = (config.strategy == Strategy::Rhythm).then(|| {
            let counts = overlap::counts(walk.reason, first_sync, walk.capped);
            self.rhythm
                .observe(counts && end.tally.productive(), end.lags, vendor_now);
            self.rhythm
                .expected(vendor_now, config.floor(), config.ceiling())
        });
        let chosen = interval::next(config, self.interval, found, floors, expected);
        self.interval = chosen.state;
        self.faults = FaultHistory::default();
        self.doubles = walk.doubles.clone().conclude();
        self.walk = None;
        self.waiting = None;
        self.parked = None;
        Completed {
            more: moves_on && self.resume.is_some(),
            state: self,
            chosen,
        }
    }
}

#[cfg(test)]
mod tests;
