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

use serde::{Deserialize, Serialize};

use crate::clock_skew::VendorClock;
use crate::coverage::{self, Coverage, Extent, Feed, Gap, GapSource};
use crate::doubles::Doubles;
use crate::fault::FaultHistory;
use crate::gaps::{By, Gaps};
use crate::interval::{self, Chosen, Floors, Interval, IntervalState, Strategy, Yield};
use crate::miad::MiadState;
use crate::model::{Class, CursorKind, Duration, Order, Reason, Stream, Timestamp, Window};
use crate::overlap::{self, Lags, Overlap};
use crate::quiet::Asked;
use crate::rhythm::Rhythm;
use crate::side::Side;
use crate::still::{Standing, Still};
use crate::walk::{Ending, Start, Tally, Walk};
use crate::window::{self, Ask};

/// Walks in a row that disagreed with the vendor's total or went in a circle, after which the unit moves on.
const PATIENCE: u32 = 3;
/// Silent answers in a row after which an opaque position is left out once; and again after twice as many, and so on.
const SILENT: u32 = 6;
/// Windows up to this are narrow enough to be believed when they are empty, in ms, whatever the unit's interval is.
const NARROW: Duration = 600_000;
/// No narrower window is tried to get a record to show that is known to be there, in ms.
const NARROWEST: Duration = 60_000;
/// Narrow windows that are asked for at most where the newest known record shows in none.
const HIDDEN_WINDOWS: Duration = 48;
/// How long wide windows are left alone after narrow ones have brought nothing, in ms: at first, and at most.
const FIRST_REST: Duration = 3_600_000;
const LONGEST_REST: Duration = 86_400_000;
/// A unit is behind when nothing has been read whole for at least this long, in ms.
const BEHIND: Duration = 1_800_000;

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
    /// How the last poll ended.
    pub last: Option<Last>,
}

/// A vendor that answers nothing to a wide window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrow {
    /// The widest window that is asked for, in ms.
    pub width: Duration,
    /// How it stands with it.
    pub stage: Stage,
    /// How long the wide windows were last left alone after narrow ones had brought nothing, in ms.
    pub pause: Duration,
}

/// How far it is known at which width the vendor answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It is being found out at which width the newest known record shows.
    Probing,
    /// It shows at this width: what these windows bring, and that they are empty, can be believed.
    Shown,
    /// It shows at no width: it may be gone. What these windows bring is taken; that they are empty proves nothing.
    Hidden,
    /// They brought nothing: asked in wide windows again, and in narrow ones not before that time, by this machine's clock.
    Resting {
        /// Until when.
        until: Timestamp,
    },
    /// The narrow windows brought what the wide one had not shown: none is wider, for good.
    Proven,
}

impl Narrow {
    /// No window is wider than this, in ms.
    pub fn cap(&self) -> Option<Duration> {
        match self.stage {
            Stage::Resting { .. } => None,
            _ => Some(self.width),
        }
    }
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
        let planned = window::plan(
            stream,
            &Ask {
                watermark: self.watermark.filter(|_| !afresh),
                resume: self.resume.filter(|_| !afresh),
                overlap: self.overlap(settings),
                vendor_now: self.clock.now(now),
                start: settings.start,
                narrow: self.narrow.and_then(|narrow| narrow.cap()),
            },
        );
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
        // Cut short on the way up: what is left begins at the newest stamp seen, and is read next.
        let goes_on = end.ending == Ending::Truncated
            && walk.is_cut()
            && !walk.lost_step
            && order == Order::Ascending
            && walk.newest.seen > walk.window.since;
        let left = match walk.newest.seen.filter(|_| goes_on) {
            Some(newest) => Window {
                until: newest,
                ..walk.window
            },
            None => walk.window,
        };
        // Of a list of which only a part shows the rest is missing once, not more with every poll.
        let listed = |gap: &Gap| gap.source == GapSource::Truncated;
        let known = stream.cursor == CursorKind::Snapshot && self.gaps.iter().any(listed);
        // What can't be given is not found missing anew by each poll whose window holds it.
        let mut done = walked;
        self.gaps.lost().for_each(|lost| done.add(lost));
        let left_over = coverage::left_over(left, &done);
        for extent in left_over.into_iter().filter(|_| !known) {
            self.gaps
                .note(Gap::new(extent, GapSource::Truncated, end.now));
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
                self.is_proof(walk, end.tally),
                vendor_now,
            );
        }
        if self.resume.is_none() {
            if settings.start.is_some() || stream.window_cap.is_none() {
                self.gaps.start_is_known();
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

    /// The first two records in the wrong order end the trust in the order of the listing. Returns what to say of it.
    pub(crate) fn watch_order(&mut self, walk: &Walk, settings: &Settings) -> Option<String> {
        let inversion = walk.watch.inversion?;
        if settings.stream.order != Order::Ascending || self.disordered {
            return None;
        }
        self.disordered = true;
        Some(format!(
            "the vendor does not list the oldest change first, as its connector says (a record is {} older than the one before \
             it): from now on nothing relies on the order",
            length(inversion.before.abs_diff(inversion.after))
        ))
    }

    /// An empty answer to a wide window that ought to hold the newest record that is known. It is not believed: the window
    /// is asked for again in narrow parts. True: nothing of this walk counts.
    fn is_unproven(&mut self, settings: &Settings, walk: &Walk, end: &End<'_>) -> bool {
        let (Some(since), Some(watermark)) = (walk.window.since, self.watermark) else {
            return false;
        };
        let ought_to_show = since <= watermark && watermark < walk.window.until;
        let empty =
            end.ending == Ending::Complete && end.tally.records == 0 && end.tally.not_modified == 0;
        if settings.stream.cursor != CursorKind::Timestamp
            || walk.reason == Reason::Resync
            || !(empty && ought_to_show)
        {
            return false;
        }
        let width = walk.window.until.abs_diff(since);
        let usual = self
            .overlap(settings)
            .saturating_add(settings.interval.ceiling())
            .saturating_mul(2)
            .max(NARROW);
        let wide = !walk.capped && settings.stream.window_cap.is_none() && width > usual;
        let pause = self.narrow.map_or(0, |narrow| narrow.pause);
        let probing = |width| Narrow {
            width,
            stage: Stage::Probing,
            pause,
        };
        let narrow = match self.narrow {
            None if wide => probing(usual),
            Some(Narrow {
                stage: Stage::Resting { until },
                ..
            }) if wide && until <= end.now => probing(usual),
            Some(narrow) if narrow.stage == Stage::Probing => {
                let half = narrow.width / 2;
                if half >= NARROWEST {
                    probing(half)
                } else {
                    let all = self.clock.now(end.now).abs_diff(since);
                    Narrow {
                        width: usual.max(all / HIDDEN_WINDOWS),
                        stage: Stage::Hidden,
                        pause,
                    }
                }
            }
            _ => return false,
        };
        self.narrow = Some(narrow);
        self.resume = Some(since);
        true
    }

    /// The window's emptiness would be proof enough to go on from its end: it is no wider than the vendor bears.
    fn is_proof(&self, walk: &Walk, tally: &Tally) -> bool {
        let came = tally.records > 0;
        match self.narrow.map(|narrow| narrow.stage) {
            None | Some(Stage::Resting { .. }) => walk.capped,
            // The last of the narrow windows of a catch-up is as good a proof as those before it.
            Some(Stage::Shown | Stage::Proven) => true,
            Some(Stage::Probing | Stage::Hidden) => came && walk.capped,
        }
    }

    /// What the windows of a catch-up have shown of the width that the vendor bears. Returns what to say of it.
    fn learn_width(&mut self, tally: &Tally, now: Timestamp) -> Option<String> {
        let narrow = self.narrow.as_mut()?;
        let came = tally.records > 0 || tally.not_modified > 0;
        match narrow.stage {
            Stage::Proven => return None,
            Stage::Resting { .. } => {
                if came {
                    self.narrow = None;
                }
                return None;
            }
            Stage::Probing | Stage::Hidden if came => narrow.stage = Stage::Shown,
            Stage::Probing | Stage::Hidden | Stage::Shown => {}
        }
        if tally.productive() && narrow.stage == Stage::Shown {
            narrow.stage = Stage::Proven;
            return Some(format!(
                "the vendor answers nothing to windows that are too wide for it: none is wider than {} from now on",
                length(narrow.width)
            ));
        }
        if self.resume.is_none() {
            self.narrow = (narrow.stage == Stage::Hidden).then(|| {
                let pause = narrow
                    .pause
                    .saturating_mul(2)
                    .clamp(FIRST_REST, LONGEST_REST);
                Narrow {
                    stage: Stage::Resting {
                        until: now.saturating_add_unsigned(pause),
                    },
                    pause,
                    ..*narrow
                }
            });
        }
        None
    }

    /// A feed whose answers have nothing in common any more has lost what lay between. Returns what to say of it.
    fn watch_feed(&mut self, walk: &Walk, end: &End<'_>) -> Option<String> {
        let stream = &end.settings.stream;
        let ends = walk.ends.as_ref()?;
        if stream.cursor != CursorKind::Snapshot || end.ending == Ending::Stalled {
            return None;
        }
        let tally = end.tally;
        let before = self.feed.replace(Shown {
            records: tally.records,
            newest: ends.newest(stream.order),
            stamp: walk.newest.seen,
        })?;
        let known = tally.records.saturating_sub(tally.new);
        // An answer that is as long as the last one is as long as the feed.
        let full = walk.last_full || walk.truncated || before.records == tally.records;
        if known > 0 || !full || tally.not_modified > 0 || tally.records < 2 {
            return None;
        }
        let by_stamp = Feed {
            records: tally.records,
            known,
            newest_before: before.stamp,
            oldest: walk.oldest,
        };
        let extent = match (before.stamp, walk.oldest) {
            (Some(_), Some(_)) => coverage::fell_off(&by_stamp)?,
            // Without stamps: some time between the two polls.
            _ => {
                let last = self.clock.now(self.last.as_ref()?.ended);
                Extent {
                    since: last.min(walk.window.until.saturating_sub(1)),
                    until: walk.window.until,
                }
            }
        };
        if extent.since >= extent.until {
            return None;
        }
        let detail = format!(
            "after id {} and before id {}",
            before.newest,
            ends.oldest(stream.order)
        );
        let remark = format!("records fell off the feed between two polls: {detail}");
        self.gaps.note(Gap {
            detail: Some(detail),
            ..Gap::new(extent, GapSource::NoOverlap, end.now)
        });
        Some(remark)
    }

    /// Whether the vendor still knows the position that it is asked from. Returns what to say of it.
    fn watch_cursor(&mut self, walk: &Walk, tally: &Tally) -> Option<String> {
        let silent = tally.records == 0 && walk.next_cursor.is_none();
        if silent || (walk.unanchored && !tally.productive()) {
            self.silent = self.silent.saturating_add(1);
            return None;
        }
        let answers = std::mem::take(&mut self.silent);
        walk.unanchored.then(|| {
            format!(
                "the vendor had lost the position without a word ({answers} empty answers): asked without it, and matched \
                 with what is known"
            )
        })
    }

    /// The part that a unit has not read for long because every try has failed, while that lasts: it is a hole, although
    /// nothing says that it will stay one. `now` is this machine's time.
    pub fn behind(&self, settings: &Settings, now: Timestamp) -> Option<Gap> {
        let patience = settings.interval.ceiling().saturating_mul(2).max(BEHIND);
        self.unread(now).filter(|gap| gap.extent.width() > patience)
    }

    /// The same, however short it is.
    pub fn unread(&self, now: Timestamp) -> Option<Gap> {
        let held_up = self.parked.is_some()
            || self.waiting.is_some()
            || self.doubtful > 0
            || !self.faults.counts.is_empty();
        let reached = self.coverage.extents().last()?.until;
        let vendor_now = self.clock.now(now);
        let extent = Extent {
            since: reached,
            until: vendor_now,
        };
        (held_up && reached < vendor_now).then(|| {
            let since = self.last_whole(now, vendor_now, reached);
            Gap {
                detail: self
                    .waiting
                    .as_ref()
                    .map(|waiting| waiting.why.clone())
                    .or_else(|| self.last.as_ref()?.message.clone()),
                ..Gap::new(extent, GapSource::GivenUp, since)
            }
        })
    }

    /// When that was read, by this machine's clock.
    fn last_whole(&self, now: Timestamp, vendor_now: Timestamp, reached: Timestamp) -> Timestamp {
        now.saturating_sub(vendor_now.saturating_sub(reached))
    }

    /// Whether it is polled and brings nothing new, for longer than ever. `now` is this machine's time.
    pub fn standing(&self, now: Timestamp) -> Option<Standing> {
        self.still.standing(self.clock.now(now))
    }

    /// Logs how late the records of a walk became visible.
    pub(crate) fn note_lags(&mut self, end: &End<'_>, away: Duration) {
        let lags = overlap::measured(end.lags, self.clock.skew(), away, &end.settings.overlap);
        self.lags.observe(&lags, away, end.now);
    }

    /// How much longer than its interval the unit was not asked before a poll that began at `started`, in ms: the host was
    /// down, or the vendor made it wait. That is no lag of the vendor's.
    fn away(&self, started: Timestamp) -> Duration {
        let since = self.last.as_ref().map_or(started, |last| last.ended);
        let rest = started.saturating_sub(since).max(0).unsigned_abs();
        rest.saturating_sub(self.interval.current)
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
            self.note_lags(end, self.away(walk.started));
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
