//! Records that other streams are polled for, and that the vendor no longer lists.
//!
//! Many vendors say nothing of what they have deleted: a channel is archived, and the list goes on without it. Only a walk
//! that met everything there is can tell that a record has gone. What hangs below it rests then, and goes on where it was
//! as soon as the record is listed again; nothing is delivered of it, since nobody said that it was deleted.

use std::collections::HashSet;

use weir_rules::model::CursorKind;
use weir_rules::walk::{Ending, Walk};

use crate::connection::Stream;
use crate::store::{PreparedRecord, Store, StoreError, UnitId};

/// The ids that a walk has met from its first page on; none where nobody asks for them, or where it was not seen whole.
#[derive(Default)]
pub(super) struct Listed(Option<HashSet<String>>);

impl Listed {
    /// For a walk that begins now.
    pub(super) fn of(stream: &Stream, walk: &Walk, side: bool) -> Listed {
        let wanted = stream.has_children && !side && !walk.taken_up && walk.cursor.is_none();
        Listed(wanted.then(HashSet::new))
    }

    pub(super) fn page(&mut self, records: &[PreparedRecord]) {
        if let Some(ids) = &mut self.0 {
            ids.extend(records.iter().map(|record| record.id.clone()));
        }
    }

    /// A page was not read, or not all of it.
    pub(super) fn missed(&mut self) {
        self.0 = None;
    }

    /// Of the records whose text is kept, those that are no longer listed.
    pub(super) fn missing(
        self,
        store: &dyn Store,
        unit: UnitId,
        stream: &Stream,
        walk: &Walk,
        ending: Ending,
    ) -> Result<Vec<String>, StoreError> {
        let mut missing = Vec::new();
        let Some(ids) = self.0.filter(|_| is_whole(stream, walk, ending)) else {
            return Ok(missing);
        };
        store.for_each_kept(unit, &mut |id| {
            if !ids.contains(id) {
                missing.push(id.to_owned());
            }
        })?;
        Ok(missing)
    }
}

/// It met everything that there is, and not just everything of a time.
fn is_whole(stream: &Stream, walk: &Walk, ending: Ending) -> bool {
    let about = &stream.settings.stream;
    let everything =
        about.cursor == CursorKind::Snapshot || (walk.window.since.is_none() && !walk.capped);
    // A list that ends at its cap, or at a page that was full, may go on.
    let to_its_end = about.result_cap.is_none() && !walk.brimful && !walk.unanchored;
    ending == Ending::Complete && everything && to_its_end
}
