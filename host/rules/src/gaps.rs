//! The list of a unit's gaps: noted once, closed as they are walked, given up when the vendor has no more to give.
//!
//! Promises: a gap stays listed until it has been walked to its end, and only the part that was walked is taken off; what
//! can't be filled any more stays listed with the reason and is not asked for again; the list is bounded, and what is
//! beyond the bound is listed together with its neighbour, never dropped.
//!
//! | a gap in | is closed by |
//! | --- | --- |
//! | a stream with windows | a side walk over it ([`crate::side`]), or a main walk that happens to cover it |
//! | a stream that is read whole each time | the next poll that reads it whole |
//! | a stream with the vendor's own cursor | a walk from the beginning: `weir backfill`, `weir sync --full` |
//! | a feed of the newest records | nothing: what fell off it can't be asked for |

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::coverage::{Extent, Gap, GapSource};
use crate::model::{CursorKind, Stream, Timestamp};
use crate::planted::{Plant, is_planted};
use crate::window::kept_since;

/// Gaps of one unit that are listed one by one.
const MOST: usize = 100;

/// The gaps of one unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gaps(Vec<Gap>);

/// A gap that has been closed, for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closed {
    /// Where it was.
    pub extent: Extent,
    /// How it was known.
    pub source: GapSource,
    /// When it was found, by this machine's clock.
    pub found: Timestamp,
    /// When it was closed.
    pub closed: Timestamp,
}

/// What is to become of a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// A side walk fills it from spare quota.
    Fillable,
    /// It lies before the configured start: nobody wants it.
    Unwanted,
    /// Where the stream begins has to be said first.
    NeedsStart,
    /// The stream has no windows: only a walk from the beginning can fill it.
    NeedsResync,
    /// The next poll that reads the stream whole closes it.
    NextPoll,
    /// It can't be filled, and why.
    Lost(String),
}

/// Whose walk has covered a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The unit's main walk.
    Main,
    /// A side walk over the gap.
    Backfill,
}

impl Deref for Gaps {
    type Target = [Gap];

    fn deref(&self) -> &[Gap] {
        &self.0
    }
}

impl Gaps {
    /// Those that stand for a hole in the data that nobody has accepted.
    pub fn pending(&self) -> impl Iterator<Item = &Gap> {
        self.0
            .iter()
            .filter(|gap| gap.source != GapSource::Asked && !gap.accepted)
    }

    /// Lists a gap once, however often it is found.
    pub fn note(&mut self, gap: Gap) {
        if is_planted(Plant::LostGap) {
            return;
        }
        let same_kind = |other: &Gap| {
            other.source == gap.source
                && other.lost == gap.lost
                && other.detail == gap.detail
                && other.accepted == gap.accepted
        };
        let touches = |other: &Gap| {
            other.extent.since <= gap.extent.until && gap.extent.since <= other.extent.until
        };
        // Found again, as a part of what is known: the older entry keeps what was learnt of it.
        let known = self.0.iter_mut().find(|other| {
            (touches(other) && same_kind(other))
                || (other.source == gap.source
                    && other.extent.since <= gap.extent.since
                    && gap.extent.until <= other.extent.until)
        });
        match known {
            Some(other) => {
                other.extent.since = other.extent.since.min(gap.extent.since);
                other.extent.until = other.extent.until.max(gap.extent.until);
            }
            None => self.0.push(gap),
        }
        self.bound();
    }

    /// A part has been walked to its end: it is taken off. Returns the gaps that this has closed whole.
    pub fn close(&mut self, walked: Extent, by: By) -> Vec<Gap> {
        let mut closed = Vec::new();
        let gaps = std::mem::take(&mut self.0);
        for gap in gaps {
            let closable = match gap.source {
                // The feed does not show again what fell off it.
                GapSource::NoOverlap => false,
                // What was asked for is to be read again, also where it has been read before.
                GapSource::Asked => by == By::Backfill,
                _ => true,
            };
            if !closable || gap.extent.common(walked).is_none() {
                self.0.push(gap);
                continue;
            }
            let parts = gap.extent.without(walked);
            if parts.is_empty() {
                closed.push(gap);
                continue;
            }
            self.0.extend(parts.into_iter().map(|extent| Gap {
                extent,
                tries: 0,
                ..gap.clone()
            }));
        }
        closed
    }

    /// This part of what is listed can't be filled.
    pub fn give_up(&mut self, part: Extent, why: &str) {
        let gaps = std::mem::take(&mut self.0);
        let mut lost = Vec::new();
        for gap in gaps {
            match gap.extent.common(part) {
                Some(common) if gap.lost.is_none() => {
                    let rest = gap.extent.without(part);
                    self.0.extend(rest.into_iter().map(|extent| Gap {
                        extent,
                        ..gap.clone()
                    }));
                    lost.push(Gap {
                        extent: common,
                        lost: Some(why.to_owned()),
                        ..gap
                    });
                }
                _ => self.0.push(gap),
            }
        }
        for gap in lost {
            self.note(gap);
        }
    }

    /// What the vendor keeps no longer can't be filled.
    pub fn expire(&mut self, stream: &Stream, vendor_now: Timestamp) {
        let Some(kept) = kept_since(stream, vendor_now).filter(|_| has_windows(stream)) else {
            return;
        };
        let gone = Extent {
            since: Timestamp::MIN,
            until: kept,
        };
        let days = stream.retention.unwrap_or_default() / 86_400_000;
        if self
            .0
            .iter()
            .any(|gap| gap.lost.is_none() && gap.extent.since < kept)
        {
            let length = match days {
                0 => "less than a day".to_owned(),
                1 => "1 day".to_owned(),
                days => format!("{days} days"),
            };
            self.give_up(gone, &format!("the vendor keeps records for {length}"));
        }
    }

    /// A walk of this part brought nothing that can be trusted. Returns how often in a row that was so.
    pub fn tried(&mut self, part: Extent) -> u32 {
        let mut most = 0;
        for gap in self.0.iter_mut().filter(|gap| gap.lost.is_none()) {
            if gap.extent.common(part).is_some() {
                gap.tries = gap.tries.saturating_add(1);
                most = most.max(gap.tries);
            }
        }
        most
    }

    /// How wide a part may be asked for at once where the gap meets this part.
    pub fn set_slice(&mut self, part: Extent, slice: Option<u64>) {
        for gap in self.0.iter_mut().filter(|gap| gap.lost.is_none()) {
            if gap.extent.since <= part.until && part.since <= gap.extent.until {
                gap.slice = slice;
            }
        }
    }

    /// A narrow part went well: the next may be twice as wide.
    pub fn widen(&mut self, part: Extent) {
        for gap in &mut self.0 {
            if gap.extent.since <= part.until && part.since <= gap.extent.until {
                gap.slice = gap.slice.map(|slice| slice.saturating_mul(2));
            }
        }
    }

    /// The gap in which this part lies.
    pub fn around(&self, part: Extent) -> Option<Extent> {
        let open = self.0.iter().filter(|gap| gap.lost.is_none());
        open.map(|gap| gap.extent)
            .find(|extent| extent.common(part).is_some())
    }

    /// How much of this part is still to be filled, in ms.
    pub fn open_within(&self, part: Extent) -> u64 {
        self.0
            .iter()
            .filter(|gap| gap.lost.is_none() && gap.source != GapSource::NoOverlap)
            .filter_map(|gap| gap.extent.common(part))
            .fold(0_u64, |sum, extent| {
                sum.saturating_add(extent.until.abs_diff(extent.since))
            })
    }

    /// A person takes note of what can't be filled. Returns how many gaps that were.
    pub fn accept(&mut self, lost: impl Fn(&Gap) -> bool) -> usize {
        let mut accepted = 0;
        for gap in &mut self.0 {
            if !gap.accepted && lost(gap) {
                gap.accepted = true;
                accepted += 1;
            }
        }
        accepted
    }

    /// A person wants what was given up there to be tried once more.
    pub fn retry(&mut self, part: Extent) {
        for gap in &mut self.0 {
            if gap.source != GapSource::NoOverlap && gap.extent.common(part).is_some() {
                gap.lost = None;
                gap.tries = 0;
                gap.accepted = false;
            }
        }
    }

    /// Nobody has to say any more where the stream begins: what was not asked for is a hole like any other, as far as it is
    /// wanted.
    pub fn start_is_known(&mut self, start: Option<Timestamp>) {
        let (unasked, others) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|gap| gap.source == GapSource::NoStart);
        self.0 = others;
        for mut gap in Vec::into_iter(unasked) {
            gap.source = GapSource::Untouched;
            gap.extent.since = gap.extent.since.max(start.unwrap_or(Timestamp::MIN));
            if gap.extent.since < gap.extent.until {
                self.note(gap);
            }
        }
    }

    /// Where something is missing for good.
    pub fn lost(&self) -> impl Iterator<Item = Extent> + '_ {
        let lost = self.0.iter().filter(|gap| gap.lost.is_some());
        lost.map(|gap| gap.extent)
    }

    /// Where something is known to be missing.
    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.0
            .iter()
            .filter(|gap| gap.source != GapSource::Asked)
            .map(|gap| gap.extent)
    }

    /// Beyond the bound neighbours are listed together.
    fn bound(&mut self) {
        while self.0.len() > MOST {
            self.0.sort_by_key(|gap| gap.extent);
            let nearest = self
                .0
                .windows(2)
                .enumerate()
                .filter_map(|(place, pair)| match pair {
                    [a, b] if a.source == b.source && a.lost.is_some() == b.lost.is_some() => {
                        Some((
                            b.extent.since.saturating_sub(a.extent.until).max(0),
                            place + 1,
                        ))
                    }
                    _ => None,
                })
                .min();
            let Some((_, second)) = nearest else { return };
            let gap = self.0.remove(second);
            if let Some(first) = self.0.get_mut(second - 1) {
                first.extent.until = first.extent.until.max(gap.extent.until);
                first.accepted &= gap.accepted;
                first.found = first.found.min(gap.found);
            }
        }
    }
}

impl From<Vec<Gap>> for Gaps {
    fn from(gaps: Vec<Gap>) -> Self {
        Gaps(gaps)
    }
}

/// A part of the stream's past can be asked for.
pub fn has_windows(stream: &Stream) -> bool {
    stream.cursor == CursorKind::Timestamp && stream.backfill
}

/// What is to become of a gap of this stream, of which `start` is the oldest change that is wanted.
pub fn outlook(
    gap: &Gap,
    stream: &Stream,
    start: Option<Timestamp>,
    vendor_now: Timestamp,
) -> Outlook {
    if let Some(why) = &gap.lost {
        return Outlook::Lost(why.clone());
    }
    if gap.source == GapSource::NoOverlap {
        return Outlook::Lost(
            "the vendor shows only the newest records, and these have gone".to_owned(),
        );
    }
    if !has_windows(stream) {
        return match stream.cursor {
            CursorKind::Snapshot if gap.source == GapSource::Truncated => Outlook::Lost(
                "the vendor shows a part of the list alone; a poll that reads the whole closes it"
                    .to_owned(),
            ),
            CursorKind::Snapshot => Outlook::NextPoll,
            CursorKind::Opaque | CursorKind::Timestamp => Outlook::NeedsResync,
        };
    }
    let asked = gap.source == GapSource::Asked;
    if !asked && start.is_some_and(|start| gap.extent.until <= start) {
        return Outlook::Unwanted;
    }
    let open_end = gap.extent.since == Timestamp::MIN && start.is_none();
    if gap.source == GapSource::NoStart || (open_end && stream.window_cap.is_some()) {
        return Outlook::NeedsStart;
    }
    match kept_since(stream, vendor_now) {
        Some(kept) if gap.extent.until <= kept => {
            Outlook::Lost("the vendor does not keep records for that long".to_owned())
        }
        _ => Outlook::Fillable,
    }
}

#[cfg(test)]
mod tests;
