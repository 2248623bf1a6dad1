//! Which part of a stream a poll asks for, and how far the watermark may follow.
//!
//! `updated_at > watermark` loses records to clock skew between the vendor's writers, to stamps that become
//! visible late, and to ties across a page border. So a window begins an overlap *before* the watermark, and is
//! read again on purpose: a record has to be missed by two polls in a row to be lost.
//!
//! Promises: slices of a catch-up are half-open and touch each other; no window is wider than the vendor answers
//! truthfully; the watermark never goes back, never passes the vendor's clock, and one stamp from the future
//! can't drag it along.

use serde::{Deserialize, Serialize};

use crate::model::{CursorKind, Duration, Stream, Timestamp, Window};
use crate::planted::{Plant, is_planted};

/// How far ahead of the vendor's clock a stamp may lie before it is reported, in ms: a vendor's writers
/// disagree by seconds.
pub const FUTURE_ALLOWANCE: Duration = 60_000;

/// What a window is planned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The newest stamp of which everything older has been walked.
    pub watermark: Option<Timestamp>,
    /// Where the last slice of an unfinished catch-up ended: [`Planned::resume`], or the newest stamp of a walk that
    /// the vendor cut short on the way up.
    pub resume: Option<Timestamp>,
    /// How far before the watermark to begin, in ms.
    pub overlap: Duration,
    /// Now, by the vendor's clock.
    pub vendor_now: Timestamp,
    /// The date from which the user wants the stream; none: all that there is.
    pub start: Option<Timestamp>,
    /// The vendor was found to answer nothing to windows that are wider than this, in ms.
    pub narrow: Option<Duration>,
}

/// A window, and what is left behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What to ask for. Empty (`since == until`) when the user's start date has not come yet.
    pub window: Window,
    /// The window stops short of now: a slice of a catch-up. Poll again at once when it has been walked.
    pub capped: bool,
    /// Slices that follow this one.
    pub slices_left: u64,
    /// To be stored when the window has been walked: where the next slice begins; none after the last.
    pub resume: Option<Timestamp>,
    /// The vendor answers only narrow windows and nobody said where the stream begins, so what is older than
    /// this window is not asked for. The user should name a start date.
    pub past_unreached: bool,
}

/// Plans the realtime window of a poll.
///
/// A vendor with a window cap may answer an empty 200 to anything wider, so after an outage the way back to now
/// is cut into slices. Each slice begins exactly where the last one ended; only the first begins an overlap
/// before the watermark.
pub fn plan(stream: &Stream, ask: &Ask) -> Planned {
    let grain = grain(stream);
    let now = ask.vendor_now;
    let until = ceil_to(now, grain);
    if stream.cursor == CursorKind::Snapshot {
        return whole(None, until);
    }
    let cap = match stream.cursor {
        CursorKind::Timestamp => narrower(cap(stream, grain), ask.narrow, grain),
        CursorKind::Opaque | CursorKind::Snapshot => None,
    };

    let earliest = [ask.start, kept_since(stream, now)]
        .into_iter()
        .flatten()
        .max();
    let overlap = if is_planted(Plant::NoOverlap) {
        0
    } else {
        ask.overlap
    };
    let resumed = ask.resume.filter(|resume| *resume < until);
    // A watermark ahead of the vendor's clock must not make windows empty until the clock has caught up.
    let overlapped = ask
        .watermark
        .map(|mark| mark.min(now).saturating_sub(signed(overlap)));
    let since = match resumed.or(overlapped) {
        Some(since) => Some(earliest.map_or(since, |earliest| since.max(earliest))),
        None => earliest,
    };
    let since = since.map(|since| floor_to(since, grain).min(until));

    match (since, cap) {
        (Some(since), Some(cap)) => slice(since, until, cap),
        (None, Some(cap)) => Planned {
            past_unreached: true,
            ..slice(until.saturating_sub(cap), until, cap)
        },
        (since, None) => whole(since, until),
    }
}

/// A settle pass that is due.
///
/// Vendors are eventually consistent by seconds to days, so one overlap is not enough. The settle pass re-reads,
/// once, the part that was younger than the settle time when it was first read and is older now.
///
/// `settled_until` is where the last pass ended; before the first pass, [`settle_from`] of the first sync. None
/// while a pass would be narrower than the settle time. When the window has been walked, its `until` is the
/// new `settled_until`.
pub fn plan_settle(
    stream: &Stream,
    settle: Duration,
    settled_until: Timestamp,
    narrow: Option<Duration>,
    vendor_now: Timestamp,
) -> Option<Planned> {
    let grain = grain(stream);
    if vendor_now < settle_due(settle, settled_until) || settle == 0 {
        return None;
    }
    let until = floor_to(vendor_now.saturating_sub(signed(settle)), grain);
    let mut since = floor_to(settled_until, grain);
    if is_planted(Plant::LooseSettle) {
        since = floor_to(since + (until - since) / 2, grain);
    }
    if since >= until {
        return None;
    }
    Some(match narrower(cap(stream, grain), narrow, grain) {
        Some(cap) => slice(since, until, cap),
        None => whole(Some(since), until),
    })
}

/// When the next settle pass is due by the vendor's clock: once per settle time.
pub fn settle_due(settle: Duration, settled_until: Timestamp) -> Timestamp {
    settled_until.saturating_add(signed(settle.saturating_mul(2)))
}

/// What a first sync that was frozen at `until` has left to settle: its youngest part.
pub fn settle_from(settle: Duration, until: Timestamp, start: Option<Timestamp>) -> Timestamp {
    let from = until.saturating_sub(signed(settle));
    start.map_or(from, |start| from.max(start).min(until))
}

/// The newest stamp that a walk has seen, kept apart from those that can't be true.
///
/// Always a maximum, never the last value: in an unsorted listing the last record is any record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Newest {
    /// The newest stamp not after the vendor's clock and the allowance.
    pub seen: Option<Timestamp>,
    /// The first stamp beyond it, to be named in a warning.
    pub future: Option<Timestamp>,
    /// How many there were beyond it.
    pub future_count: u64,
}

impl Newest {
    /// Takes in one record's stamp. Records without a readable stamp are not shown to it: they are delivered,
    /// and move nothing. True: this is the first stamp from the future in this walk, and worth a warning that
    /// names its record.
    pub fn observe(
        &mut self,
        stamp: Timestamp,
        vendor_now: Timestamp,
        allowance: Duration,
    ) -> bool {
        if stamp > vendor_now.saturating_add(signed(allowance)) {
            self.future_count = self.future_count.saturating_add(1);
            if self.future.is_none() {
                self.future = Some(stamp);
                return true;
            }
            return false;
        }
        self.seen = self.seen.max(Some(stamp));
        false
    }
}

/// Where the watermark stands once a window has been walked to its end and committed.
///
/// Not before: a vendor that lists newest first shows the newest stamp on its first page. An uncapped window
/// that was empty leaves the watermark where it is: the next one is a little wider, which costs nothing. A capped
/// one moves it to its own end, because its emptiness is proven and the catch-up would begin anew for ever.
pub fn advance_watermark(
    old: Option<Timestamp>,
    newest: &Newest,
    window: &Window,
    capped: bool,
    vendor_now: Timestamp,
) -> Option<Timestamp> {
    // What was seen beyond the window was seen by chance: its neighbours may not have been.
    let limit = window.until.min(vendor_now);
    let reached = match newest.seen {
        Some(seen) => Some(seen.min(limit)),
        None if capped => Some(limit),
        None => None,
    };
    old.max(reached)
}

/// Watches whether a listing that is said to be ascending is. Lives as long as a walk, and is stored with it.
///
/// What depends on the order holds only while it does: that a walk which was cut short has read all that is older than
/// its newest record, and that what lies behind a window's end comes behind all of the window. A stream whose order was
/// broken once is taken for unordered, for good ([`crate::unit::UnitState::order`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderWatch {
    /// The last stamp of this walk.
    pub last: Option<Timestamp>,
    /// The first two in the wrong order.
    pub inversion: Option<Inversion>,
}

/// Two neighbours in the wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inversion {
    /// The one that came first.
    pub before: Timestamp,
    /// The older one that came after it.
    pub after: Timestamp,
}

impl OrderWatch {
    /// Takes in the next stamp of the listing.
    pub fn observe(&mut self, stamp: Timestamp) {
        let before = self.last.replace(stamp);
        if let Some(before) = before.filter(|before| stamp < *before) {
            self.inversion.get_or_insert(Inversion {
                before,
                after: stamp,
            });
        }
    }

    /// Takes in a page that was watched by itself, which begins with this stamp.
    pub fn page(&mut self, first: Timestamp, page: &OrderWatch) {
        self.observe(first);
        self.last = page.last.or(self.last);
        self.inversion = self.inversion.or(page.inversion);
    }
}

fn whole(since: Option<Timestamp>, until: Timestamp) -> Planned {
    Planned {
        window: Window { since, until },
        capped: false,
        slices_left: 0,
        resume: None,
        past_unreached: false,
    }
}

/// The first slice of `[since, until)` that is no wider than the cap.
fn slice(since: Timestamp, until: Timestamp, cap: i64) -> Planned {
    let end = since.saturating_add(cap).min(until);
    let rest = until.saturating_sub(end);
    let capped = rest > 0;
    Planned {
        window: Window {
            since: Some(since),
            until: end,
        },
        capped,
        slices_left: u64::try_from(rest / cap + i64::from(rest % cap != 0)).unwrap_or(0),
        resume: capped.then_some(end),
        past_unreached: false,
    }
}

/// What is older than the vendor keeps is not there to be asked for.
pub(crate) fn kept_since(stream: &Stream, now: Timestamp) -> Option<Timestamp> {
    stream
        .retention
        .map(|kept| now.saturating_sub(signed(kept)))
}

pub(crate) fn grain(stream: &Stream) -> i64 {
    signed(stream.granularity).max(1)
}

/// The widest window in whole grains, at least one.
pub(crate) fn cap(stream: &Stream, grain: i64) -> Option<i64> {
    stream
        .window_cap
        .map(|cap| floor_to(signed(cap), grain).max(grain))
}

/// The narrower of two caps, of which the second need not be in whole grains.
pub(crate) fn narrower(cap: Option<i64>, other: Option<Duration>, grain: i64) -> Option<i64> {
    let other = other.map(|other| floor_to(signed(other), grain).max(grain));
    cap.into_iter().chain(other).min()
}

fn signed(ms: Duration) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

pub(crate) fn floor_to(at: Timestamp, grain: i64) -> Timestamp {
    at.saturating_sub(at.rem_euclid(grain))
}

pub(crate) fn ceil_to(at: Timestamp, grain: i64) -> Timestamp {
    match at.rem_euclid(grain) {
        0 => at,
        over => at.saturating_add(grain - over),
    }
}

#[cfg(test)]
mod tests;
