//! What waits for a person of the unit that is being polled: what was known when the poll began, and what it adds.
//!
//! Promises: a record that was set aside before and has not changed costs no write. What was set aside is settled when its
//! record has been taken, and when a whole walk that must have met it did not. The rest of a unit's entries is settled when
//! a walk has ended: its vendor answers again.

use std::collections::HashSet;

use weir_rules::model::{Class, CursorKind, Fault, Scope, Timestamp};
use weir_rules::walk::{Ending, Walk};

use super::aside::Aside;
use super::shown::masked_text;
use crate::http::redact::Redactor;
use crate::store::{
    PreparedRecord, REVIEWS, ReviewChange, ReviewEntry, ReviewId, ReviewKind, ShownAnswer,
    ShownRecord, Store, StoreError, UnitId, UnitKey,
};

/// Records that may be set aside of one unit; with more it is parked.
const RECORDS: usize = 200;

/// The entries of one unit.
pub(super) struct Reviews {
    unit: UnitId,
    key: UnitKey,
    entries: Vec<ReviewEntry>,
    /// Those that this poll has met.
    met: HashSet<ReviewId>,
}

impl Reviews {
    /// What is stored of the unit.
    pub(super) fn load(store: &dyn Store, unit: UnitId, key: &UnitKey) -> Result<Self, StoreError> {
        Ok(Reviews {
            unit,
            key: key.clone(),
            entries: store.reviews(Some(unit), usize::MAX)?,
            met: HashSet::new(),
        })
    }

    /// Nothing, for a call that stores nothing.
    pub(super) fn none(unit: UnitId, key: &UnitKey) -> Self {
        Reviews {
            unit,
            key: key.clone(),
            entries: Vec::new(),
            met: HashSet::new(),
        }
    }

    fn find(&self, id: ReviewId) -> Option<&ReviewEntry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    fn put(&mut self, entry: ReviewEntry) -> ReviewChange {
        let id = entry.id;
        self.met.insert(id);
        self.entries.retain(|known| known.id != id);
        self.entries.push(entry.clone());
        (id, Some(Box::new(entry)))
    }

    fn settle(&mut self, settled: impl Fn(&ReviewEntry, bool) -> bool) -> Vec<ReviewChange> {
        let met = &self.met;
        let gone: Vec<ReviewId> = self
            .entries
            .iter()
            .filter(|entry| settled(entry, met.contains(&entry.id)))
            .map(|entry| entry.id)
            .collect();
        self.entries.retain(|entry| !gone.contains(&entry.id));
        gone.into_iter().map(|id| (id, None)).collect()
    }

    /// A fault that a person should see, with its answer.
    pub(super) fn fault(
        &mut self,
        kind: ReviewKind,
        fault: &Fault,
        answer: Option<ShownAnswer>,
        now: Timestamp,
    ) -> ReviewChange {
        let id = ReviewId {
            unit: self.unit,
            kind,
            number: 0,
        };
        let (first, times) = self
            .find(id)
            .map_or((now, 0), |known| (known.first, known.times));
        self.put(ReviewEntry {
            id,
            key: self.key.clone(),
            first,
            last: now,
            times: times.saturating_add(1),
            class: Some(fault.class),
            code: fault.code.clone(),
            message: fault.message.clone(),
            answer,
            record: None,
            dropped: false,
        })
    }

    /// The unit is parked: what led there says no more than that.
    pub(super) fn parked(&mut self) -> Vec<ReviewChange> {
        self.settle(|entry, _| {
            matches!(
                entry.id.kind,
                ReviewKind::Unknown | ReviewKind::Refused | ReviewKind::SignIn
            )
        })
    }

    /// A record is set aside. None: it is known, and nothing is new about it.
    ///
    /// # Errors
    /// When there is no room for it: nothing that was set aside may be pushed out by it.
    pub(super) fn aside(
        &mut self,
        store: &dyn Store,
        aside: Aside,
        now: Timestamp,
        redactor: &Redactor,
    ) -> Result<Option<ReviewChange>, NoRoom> {
        let mut id = ReviewId {
            unit: self.unit,
            kind: ReviewKind::Record,
            number: aside.number(),
        };
        let name = aside.id.as_deref().map(|id| redactor.mask(id).into_owned());
        // Numbers are short: two records may have one.
        let is_other = |entry: &ReviewEntry| {
            entry.record.as_ref().is_some_and(|known| {
                known.id != name || (name.is_none() && known.content != aside.content)
            })
        };
        while self.find(id).is_some_and(is_other) {
            id.number = id.number.wrapping_add(1);
        }
        let known = self.find(id);
        let same = known
            .and_then(|entry| entry.record.as_ref())
            .is_some_and(|record| record.content == aside.content);
        if same {
            self.met.insert(id);
            return Ok(None);
        }
        let (first, times) = known.map_or((now, 0), |known| (known.first, known.times));
        if known.is_none() {
            let records = |entry: &&ReviewEntry| entry.id.kind == ReviewKind::Record;
            let all = store.review_count().map_err(NoRoom::Store)?;
            if self.entries.iter().filter(records).count() >= RECORDS || all.records >= REVIEWS {
                return Err(NoRoom::Full(self.full(&aside)));
            }
        }
        let message = redactor.mask(&aside.why).into_owned();
        tracing::warn!(
            unit = %self.key, record = name, why = message, review = %id,
            "a record cannot be taken: it is set aside, and the rest goes on"
        );
        Ok(Some(self.put(ReviewEntry {
            id,
            key: self.key.clone(),
            first,
            last: now,
            times: times.saturating_add(1),
            class: None,
            code: "record".to_owned(),
            message,
            answer: None,
            record: Some(ShownRecord {
                id: name,
                updated_at: aside.updated_at,
                text: masked_text(&aside.text, redactor),
                bytes: aside.bytes as u64,
                content: aside.content,
            }),
            dropped: false,
        })))
    }

    fn full(&self, aside: &Aside) -> Fault {
        Fault {
            class: Class::Permanent,
            scope: Scope::Unit,
            code: "set-aside".to_owned(),
            message: format!(
                "one more record cannot be taken ({}), and as many as may be set aside wait for review: look at \
                 them with `weir review`",
                aside.why
            ),
            wait: None,
            page_size: None,
            limits: Vec::new(),
        }
    }

    /// These records have been taken: what was set aside of them has been mended.
    pub(super) fn taken(&mut self, records: &[PreparedRecord]) -> Vec<ReviewChange> {
        let set_aside = |entry: &ReviewEntry| entry.id.kind == ReviewKind::Record;
        if !self.entries.iter().any(set_aside) {
            return Vec::new();
        }
        let taken: HashSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
        self.settle(|entry, met| {
            !met && entry
                .record
                .as_ref()
                .and_then(|record| record.id.as_deref())
                .is_some_and(|id| taken.contains(id))
        })
    }

    /// The walk has ended, however it was.
    pub(super) fn walked(
        &mut self,
        walk: &Walk,
        ending: Ending,
        cursor: CursorKind,
        unread: bool,
    ) -> Vec<ReviewChange> {
        if self.entries.is_empty() {
            return Vec::new();
        }
        // It met everything that there is in its window.
        let whole =
            ending == Ending::Complete && !unread && !walk.taken_up && walk.cursor.is_none();
        let window = walk.window;
        let everything = cursor == CursorKind::Snapshot || (window.since.is_none() && !walk.capped);
        self.settle(|entry, met| match entry.id.kind {
            ReviewKind::Record => {
                let stamp = entry.record.as_ref().and_then(|record| record.updated_at);
                let within = stamp.is_some_and(|stamp| {
                    window.since.is_none_or(|since| since <= stamp) && stamp < window.until
                });
                !met && whole && (everything || within)
            }
            ReviewKind::Skipped => !met && ending == Ending::Complete,
            _ => true,
        })
    }
}

/// Why a record could not be set aside.
pub(super) enum NoRoom {
    /// Too many wait.
    Full(Fault),
    /// The store failed.
    Store(StoreError),
}
