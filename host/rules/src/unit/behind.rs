//! What does not move: the part that is not read while every try fails, and units that bring nothing new. And how late
//! records become visible, the unit's own absence taken off.

use super::{End, Settings, UnitState};
use crate::coverage::{Extent, Gap, GapSource};
use crate::model::{Duration, Timestamp};
use crate::overlap;
use crate::still::Standing;
use crate::walk::Walk;

/// A unit is behind when nothing has been read whole for at least this long, in ms.
const BEHIND: Duration = 1_800_000;

impl UnitState {
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

    /// How much longer than its interval the unit was not read before this walk has ended, in ms: the host was down, the
    /// vendor made it wait, or every poll failed. That is no lag of the vendor's.
    pub(super) fn away(&self, walk: &Walk, now: Timestamp) -> Duration {
        let ended = self.last.as_ref().map(|last| last.ended);
        let read = self.read.or(ended).unwrap_or(walk.started);
        // A walk that was interrupted reads its later pages long after it was begun.
        let reached = if walk.taken_up { now } else { walk.started };
        let rest = reached.saturating_sub(read).max(0).unsigned_abs();
        rest.saturating_sub(self.interval.current)
    }
}
