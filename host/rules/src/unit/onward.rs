//! Where a walk that the vendor cut short on the way up goes on.

use super::{Settings, UnitState};
use crate::model::{CursorKind, Order, Timestamp};
use crate::walk::{Ending, Walk};
use crate::window;

impl UnitState {
    /// Where the next window begins after a walk on the way up that the vendor cut short: at the newest stamp that it saw,
    /// which others may share. A walk that saw one moment alone has shown that this moment holds more than the vendor gives
    /// for one query: the next window begins behind it, or the same would be read for ever.
    pub(super) fn goes_on_at(
        &self,
        settings: &Settings,
        walk: &Walk,
        ending: Ending,
    ) -> Option<Timestamp> {
        let stream = &settings.stream;
        let on_the_way_up = ending == Ending::Truncated
            && walk.is_cut()
            && !walk.lost_step
            && self.order(settings) == Order::Ascending
            // A list that is read whole each time can't go on from a time.
            && stream.cursor != CursorKind::Snapshot;
        let newest = walk.newest.seen.filter(|_| on_the_way_up)?;
        let Some(since) = walk.window.since else {
            return Some(newest);
        };
        let grain = window::grain(stream);
        let behind = window::floor_to(since, grain).saturating_add(grain);
        if newest >= behind {
            return Some(newest);
        }
        // A vendor that does not heed the bound shows what is older, too: of that moment it says nothing. (One grain before
        // it may be shown by a vendor whose bound is exclusive.)
        let heeded = stream.cursor == CursorKind::Timestamp
            && walk
                .oldest
                .is_some_and(|oldest| oldest >= since.saturating_sub(grain));
        heeded.then_some(behind)
    }
}
