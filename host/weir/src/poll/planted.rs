//! Orders of storing that lose records in a crash, for the simulation to find. Only with the feature `planted`.

use weir_rules::planted::{Plant, is_planted};

use super::handover::Baggage;
use super::run::Poll;
use crate::store::Conclusion;

impl Poll<'_> {
    /// Breaks the rule that is planted, if it is one of these, when a page has been read and is not stored yet.
    pub(super) fn break_rules(&mut self, baggage: &mut Baggage) {
        if is_planted(Plant::EarlyWatermark) {
            self.state.watermark = self.state.watermark.max(self.walk.newest.seen);
        }
        if is_planted(Plant::CursorFirst) {
            let mut state = self.state.clone();
            state.walk = Some(self.walk.clone());
            let conclusion = Conclusion {
                state,
                ..Conclusion::default()
            };
            drop(self.commit(Baggage::default(), Box::new(move |_| conclusion)));
        }
        // (A commit of its own for nothing would store a wait early, too, and show that instead.)
        if is_planted(Plant::EarlyValidator) && !baggage.validators.is_empty() {
            let early = Baggage {
                validators: std::mem::take(&mut baggage.validators),
                ..Baggage::default()
            };
            let conclusion = Conclusion {
                state: self.row.state.clone(),
                ..Conclusion::default()
            };
            drop(self.commit(early, Box::new(move |_| conclusion)));
        }
    }
}
