//! What a walk tells of the vendor besides its records: the order of its listing, what has fallen off its feed, and whether
//! it still knows the position that it was asked from.

use super::{End, Settings, Shown, UnitState, length};
use crate::coverage::{self, Extent, Feed, Gap, GapSource};
use crate::model::{CursorKind, Order};
use crate::walk::{Ending, Tally, Walk};

impl UnitState {
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

    /// A feed whose answers have nothing in common any more has lost what lay between. Returns what to say of it.
    pub(super) fn watch_feed(&mut self, walk: &Walk, end: &End<'_>) -> Option<String> {
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
    pub(super) fn watch_cursor(&mut self, walk: &Walk, tally: &Tally) -> Option<String> {
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
}
