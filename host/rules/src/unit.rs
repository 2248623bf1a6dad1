//! What is remembered of a unit between polls, and what becomes of it when a poll ends.
//!
//! Promises:
//! - The watermark, the cursor and the covered interval move only when a walk has ended and is complete, or when
//!   the vendor itself refused the rest; then the part that was not read is a gap.
//! - A walk that went in a circle, or brought fewer records than the vendor counted, moves nothing: the next
//!   poll reads its window again. A vendor whose totals never agree would hold the unit for ever, so the third
//!   such walk in a row moves on and leaves its window as a gap.
//! - A fault moves nothing either. It keeps the walk, so that the next poll goes on from the same step.
//! - An empty answer to a wide window is no proof: the newest record that is known lies in it and ought to show. The window
//!   is asked for again in narrow parts; what was learnt from that is kept.
//! - A position that the vendor may have lost without a word (answer after answer is empty, and none names a position) is
//!   left out now and then, and what comes is matched with what is known.
//!
//! | file | job |
//! | --- | --- |
//! | `watch` | what a walk tells of the vendor: its order, its feed, the position it was asked from |
//! | `width` | how wide a window the vendor bears |
//! | `onward` | where a walk that was cut short on the way up goes on |
//! | `behind` | what is not read while every try fails, units that stand still, and how late records are |

mod behind;
mod onward;
mod watch;
mod width;

use serde::{Deserialize, Serialize};

use crate::clock_skew::VendorClock;
use crate::coverage::{self, Coverage, Extent, Gap, GapSource};
use crate::doubles::Doubles;
use crate::fault::FaultHistory;
use crate::gaps::{By, Gaps};
use crate::interval::{self, Chosen, Floors, Interval, IntervalState, Strategy, Yield};
use crate::miad::MiadState;
use crate::model::{Class, CursorKind, Duration, Reason, Stream, Timestamp, Window};
use crate::overlap::{self, Lags, Overlap};
use crate::quiet::Asked;
use crate::rhythm::Rhythm;
use crate::side::Side;
use crate::still::Still;
use crate::walk::{Ending, Start, Tally, Walk};
use crate::window::{self, Ask, Planned};

pub use width::{Narrow, Stage};

/// Walks in a row that disagreed with the vendor's total or went in a circle, after which the unit moves on.
const PATIENCE: u32 = 3;
/// Silent answers in a row after which an opaque position is left out once; and again after twice as many, and so on.
const SILENT: u32 = 6;

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
    /// When the first slice of that catch-up was begun, by the vendor's clock. What has become visible since may lie in a
    /// slice that was read before, so the watermark stays behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catching_up: Option<Timestamp>,
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
    pub gaps: Gaps,
    /// What is read besides the main walk.
    #[serde(skip_serializing_if = "Side::is_empty")]
    pub side: Side,
    /// The vendor answers nothing to windows that are too wide for it, or is suspected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrow: Option<Narrow>,
    /// The listing is not in the order that the connector says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disordered: bool,
    /// Answers in a row without a record and without a position, of a vendor that was asked from one.
    #[serde(skip_serializing_if = "is_zero")]
    pub silent: u32,
    /// When its polls last brought something.
    #[serde(skip_serializing_if = "Still::is_empty")]
    pub still: Still,
    /// What a feed of the newest records showed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed: Option<Shown>,
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
    /// When a main walk last ended and moved the position, by this machine's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Timestamp>,
    /// How the last poll ended.
    pub last: Option<Last>,
}

/// One answer of a feed of the newest records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shown {
    /// How many records it showed.
    pub records: u64,
    /// The id of the newest.
    pub newest: String,
    /// The newest stamp.
    pub stamp: Option<Timestamp>,
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
    /// What is worth saying of the poll.
    pub remark: Option<String>,
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
    /// (its clock, its lag, its latency, its order, how wide a window it bears), and so do the holes in the data, until they have been read.
    pub fn reset(self) -> UnitState {
        UnitState {
            // Validators and intents carry the number: it is never given twice.
            walks: self.walks,
            lags: self.lags,
            clock: self.clock,
            miad: self.miad,
            disordered: self.disordered,
            narrow: self.narrow,
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

    /// Records per page that the unit asks for.
    pub(crate) fn page_size_of(&self, settings: &Settings) -> u32 {
        let size = settings.stream.page_size;
        self.page_size.map_or(size, |own| own.min(size))
    }

    /// The walk of the next poll: the stored one where it can go on, else a new one. A resync forgets the
    /// position, never the records.
    pub fn walk(&mut self, settings: &Settings, reason: Reason, now: Timestamp) -> Walk {
        let stream = &settings.stream;
        let page_size = self.page_size_of(settings);
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
        let planned = self.planned(settings, afresh, now);
        if let Some(since) = planned.window.since.filter(|_| planned.past_unreached) {
            let past = Extent {
                since: Timestamp::MIN,
                until: since,
            };
            self.gaps.note(Gap::new(past, GapSource::NoStart, now));
        }
        let unanchored = self.cursor.is_some() && self.leaves_cursor_out(stream);
        let mut walk = Walk::start(Start {
            number: self.walks,
            reason,
            window: planned.window,
            capped: planned.capped,
            then: planned.resume,
            cursor: self.cursor.clone().filter(|_| !afresh && !unanchored),
            page_size,
            now,
        });
        walk.unanchored = unanchored && !afresh;
        walk
    }

    /// What a walk that begins now asks for; `afresh`: without the position.
    fn planned(&self, settings: &Settings, afresh: bool, now: Timestamp) -> Planned {
        window::plan(
            &settings.stream,
            &Ask {
                watermark: self.watermark.filter(|_| !afresh),
                resume: self.resume.filter(|_| !afresh),
                overlap: self.overlap(settings),
                vendor_now: self.clock.now(now),
                start: settings.start,
                narrow: self.narrow.and_then(|narrow| narrow.cap()),
            },
        )
    }

    /// The window of a main walk that begins now.
    pub(crate) fn next_window(&self, settings: &Settings, now: Timestamp) -> Window {
        self.planned(settings, false, now).window
    }

    /// Time to ask without the position: after the sixth silent answer, the twelfth, the twenty-fourth...
    fn leaves_cursor_out(&self, stream: &Stream) -> bool {
        stream.cursor == CursorKind::Opaque
            && self.silent.is_multiple_of(SILENT)
            && (self.silent / SILENT).is_power_of_two()
    }

    /// The position moves to the end of the walk; what was not read on the way is a gap, or comes next.
    fn move_on(&mut self, settings: &Settings, walk: &Walk, end: &End<'_>, vendor_now: Timestamp) {
        let stream = &settings.stream;
        let order = self.order(settings);
        let walked = match end.ending {
            Ending::Complete => {
                let mut whole = Coverage::default();
                whole.add(Extent::from(walk.window));
                whole
            }
            Ending::Truncated => walk.read_whole(order),
            Ending::Stalled | Ending::Short { .. } => Coverage::default(),
        };
        // What the vendor's own cursor brings lies after it: that says nothing of what was missed before.
        let from_a_position = stream.cursor == CursorKind::Opaque && walk.cursor.is_some();
        for part in walked.extents() {
            self.coverage.add(*part);
            if from_a_position {
                continue;
            }
            let closed = self.gaps.close(*part, By::Main);
            self.side.note_closed(closed, end.now);
        }
        // Cut short on the way up: what is left is read next; what is missing before it is a gap.
        let goes_on = self.goes_on_at(settings, walk, end.ending);
        let left = Window {
            until: goes_on.map_or(walk.window.until, |from| from.min(walk.window.until)),
            ..walk.window
        };
        // Of a list of which only a part shows the rest is missing once, not more with every poll.
        let listed = |gap: &Gap| gap.source == GapSource::Truncated;
        let known = stream.cursor == CursorKind::Snapshot && self.gaps.iter().any(listed);
        // What can't be given is not found missing anew by each poll whose window holds it.
        let mut done = walked;
        self.gaps.lost().for_each(|lost| done.add(lost));
        let left_over = coverage::left_over(left, &done);
        for extent in left_over.into_iter().filter(|_| !known) {
            self.missed(extent, walk);
            self.gaps
                .note(Gap::new(extent, GapSource::Truncated, end.now));
        }
        self.cursor = walk.next_cursor.clone().or(self.cursor.take());
        self.resume = goes_on
            .filter(|from| *from < walk.window.until)
            .or(walk.then);
        self.synced |= self.resume.is_none();
        self.doubtful = 0;
        let began = self.catching_up.take();
        let earliest = self.clock.earliest(end.now);
        let seen_until = began.map_or(earliest, |began| began.min(earliest));
        if self.resume.is_some() {
            self.catching_up = began.or(Some(self.clock.now(walk.started)));
        }
        if stream.cursor == CursorKind::Timestamp {
            self.watermark = window::advance_watermark(
                self.watermark,
                &walk.newest,
                &walk.window,
                self.is_proof(walk, end.tally),
                seen_until,
            );
        }
        if self.resume.is_none() {
            let any_width = stream.window_cap.is_none()
                && self.narrow.is_none_or(|narrow| narrow.cap().is_none());
            if settings.start.is_some() || any_width {
                self.gaps.start_is_known(settings.start);
            }
            self.note_holes(settings, vendor_now, end.now);
            self.begin_settling(settings, walk.window.until);
        }
    }

    /// The first walk to the present leaves its youngest part to the first settle pass.
    fn begin_settling(&mut self, settings: &Settings, until: Timestamp) {
        if self.side.settled.is_none()
            && let Some(settle) = self.settle_time(settings)
        {
            self.side.settled = Some(window::settle_from(settle, until, settings.start));
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
        let unproven = self.is_unproven(end.settings, walk, end);
        let moves_on = !unproven && (!doubtful || self.doubtful >= PATIENCE);
        let first_sync = !self.synced;
        let behind = self.behind(end.settings, end.now);

        let inverted = self.watch_order(walk, end.settings);
        let fell_off = self.watch_feed(walk, end);
        let anchor = (stream.cursor == CursorKind::Opaque && !doubtful)
            .then(|| self.watch_cursor(walk, end.tally))
            .flatten();
        let mut width = unproven.then(|| {
            "nothing came, not even the newest record that is known: asked again in narrower windows"
                .to_owned()
        });
        if moves_on {
            self.move_on(end.settings, walk, end, vendor_now);
            width = width.or(self.learn_width(end.tally, end.now));
            if self.resume.is_none() {
                self.side.note_closed(behind.into_iter().collect(), end.now);
            }
        }
        let counts = overlap::counts(walk.reason, first_sync, walk.capped);
        if counts {
            self.note_lags(end, self.away(walk, end.now));
        }
        if moves_on {
            self.read = Some(end.now);
        }
        if counts && moves_on {
            self.still.observe(end.tally.productive(), vendor_now);
        }

        let found = match ending {
            _ if fell_off.is_some() => Yield::FullNoNext,
            // Of a window that is too much for the vendor and brings nothing new, more polls bring no more.
            Ending::Truncated if end.tally.productive() => Yield::FullNoNext,
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
            let skew = self.clock.offset();
            let ages: Vec<i64> = end
                .lags
                .iter()
                .map(|lag| lag.saturating_add(skew))
                .collect();
            self.rhythm
                .observe(counts && end.tally.productive(), &ages, vendor_now);
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
            more: (moves_on || unproven) && self.resume.is_some(),
            remark: [fell_off, anchor, inverted, width]
                .into_iter()
                .flatten()
                .next(),
            state: self,
            chosen,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// `300 ms`, `40 s`, `3 min`, `5 h`.
fn length(ms: Duration) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

#[cfg(test)]
mod tests;
