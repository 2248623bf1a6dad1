//! What is remembered of one record, and what a new sight of it means.

use weir_rules::model::Timestamp;
use weir_rules::planted::{Plant, is_planted};

use crate::store::{Op, RecordRow, Seen, hex};

/// Bytes of a row: hash, first seen, last changed, revision, epoch with the deleted mark in its lowest bit.
pub(super) const LEN: usize = 32 + 8 + 8 + 4 + 4;

/// A row of the records table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remembered {
    pub(super) hash: [u8; 32],
    pub(super) first_seen: Timestamp,
    pub(super) last_changed: Timestamp,
    pub(super) revision: u32,
    /// Rows of an earlier epoch than the unit's are forgotten: they only keep the revision going, so that a
    /// record that is delivered anew has a key of its own.
    pub(super) epoch: u32,
    pub(super) deleted: bool,
}

/// What becomes of a record that has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing has changed; nothing is written.
    Same,
    /// A delivery with this operation; the row is the new one.
    News(Op, Remembered),
}

impl Remembered {
    pub(super) fn to_bytes(self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let (hash, rest) = bytes.split_at_mut(32);
        let (first_seen, rest) = rest.split_at_mut(8);
        let (last_changed, rest) = rest.split_at_mut(8);
        let (revision, epoch) = rest.split_at_mut(4);
        hash.copy_from_slice(&self.hash);
        first_seen.copy_from_slice(&self.first_seen.to_be_bytes());
        last_changed.copy_from_slice(&self.last_changed.to_be_bytes());
        revision.copy_from_slice(&self.revision.to_be_bytes());
        epoch.copy_from_slice(&((self.epoch << 1) | u32::from(self.deleted)).to_be_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; LEN]) -> Self {
        fn part<const N: usize>(bytes: &[u8; LEN], at: usize) -> [u8; N] {
            bytes
                .get(at..)
                .and_then(|rest| rest.first_chunk())
                .copied()
                .unwrap_or([0; N])
        }
        let epoch = u32::from_be_bytes(part(bytes, 52));
        Remembered {
            hash: part(bytes, 0),
            first_seen: Timestamp::from_be_bytes(part(bytes, 32)),
            last_changed: Timestamp::from_be_bytes(part(bytes, 40)),
            revision: u32::from_be_bytes(part(bytes, 48)),
            epoch: epoch >> 1,
            deleted: epoch & 1 == 1,
        }
    }

    /// The row of a record that is not known. `floor` is the highest revision that its unit has forgotten.
    pub(super) fn first(
        hash: [u8; 32],
        deleted: bool,
        now: Timestamp,
        epoch: u32,
        floor: u32,
    ) -> Self {
        Remembered {
            hash,
            first_seen: now,
            last_changed: now,
            revision: floor.saturating_add(1),
            epoch,
            deleted,
        }
    }

    /// The operation that a first sight is delivered as. A record that is only ever seen as deleted is
    /// delivered too: whoever reads the sink may know it from an earlier store, and a delete of something
    /// unknown does no harm, while one that is missing does.
    pub(super) fn first_op(deleted: bool) -> Op {
        if deleted { Op::Delete } else { Op::Insert }
    }

    pub(super) fn seen_again(
        self,
        hash: [u8; 32],
        deleted: bool,
        now: Timestamp,
        epoch: u32,
    ) -> Sight {
        let forgotten = self.epoch != epoch;
        let op = match (forgotten, self.deleted, deleted) {
            (false, true, true) => return Sight::Same,
            (false, false, false) if self.hash == hash => return Sight::Same,
            (false, false, false) if is_planted(Plant::DedupById) => return Sight::Same,
            (_, _, true) => Op::Delete,
            (false, false, false) => Op::Update,
            (false, true, false) | (true, _, false) => Op::Insert,
        };
        Sight::News(
            op,
            Remembered {
                hash,
                first_seen: if forgotten { now } else { self.first_seen },
                last_changed: now,
                revision: self.revision.saturating_add(1),
                epoch,
                deleted,
            },
        )
    }

    pub(super) fn row(&self, id: String) -> RecordRow {
        RecordRow {
            id,
            hash: hex(&self.hash),
            revision: u64::from(self.revision),
            first_seen: self.first_seen,
            last_changed: self.last_changed,
            deleted: self.deleted,
        }
    }
}

impl Seen {
    /// Counts a delivery; `lag` is how long after its stamp it was seen, in ms.
    pub(super) fn count(&mut self, op: Op, lag: Option<i64>) {
        match op {
            Op::Insert => self.new += 1,
            Op::Update => self.changed += 1,
            Op::Delete => {
                self.deleted += 1;
                return;
            }
        }
        self.lags.extend(lag);
    }
}

/// Writes the key of a record: the unit's number and the id's bytes.
pub(super) fn key_into(key: &mut Vec<u8>, unit: u64, id: &str) {
    key.clear();
    key.extend_from_slice(&unit.to_be_bytes());
    key.extend_from_slice(id.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_row_reads_as_it_was_written(
            hash in any::<[u8; 32]>(), first_seen in any::<i64>(), last_changed in any::<i64>(),
            revision in any::<u32>(), epoch in 0_u32..=u32::MAX >> 1, deleted in any::<bool>(),
        ) {
            let row = Remembered { hash, first_seen, last_changed, revision, epoch, deleted };
            prop_assert_eq!(Remembered::from_bytes(&row.to_bytes()), row);
        }

        /// Whatever is seen: the revision grows by one with each delivery, and only an insert follows a delete.
        #[test]
        fn deliveries_of_a_record_make_sense(sights in proptest::collection::vec((0_u8..3, any::<bool>()), 1..30)) {
            let mut row = Remembered::first([0; 32], false, 0, 0, 0);
            for (now, (content, deleted)) in (1..).zip(sights) {
                match row.seen_again([content; 32], deleted, now, 0) {
                    Sight::Same => prop_assert_eq!(row.deleted, deleted),
                    Sight::News(op, next) => {
                        prop_assert_eq!(next.revision, row.revision + 1);
                        prop_assert_eq!(op, match (row.deleted, deleted) {
                            (_, true) => Op::Delete,
                            (true, false) => Op::Insert,
                            (false, false) => Op::Update,
                        });
                        prop_assert_eq!((next.first_seen, next.last_changed), (row.first_seen, now));
                        row = next;
                    }
                }
            }
        }
    }
}
