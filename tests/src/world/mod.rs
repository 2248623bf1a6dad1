//! The world behind one collection: who wrote what, and what the API can see of it.
//!
//! It advances lazily, up to the moment of the call that asks. What it holds at a moment follows from the seed and
//! the spec alone, however often and with whatever steps it was advanced on the way.

mod generate;
mod record;
mod shelf;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) use record::Texts;
pub use record::{Rendered, Renderer};

use crate::spec::{CollectionSpec, Op, Write};
use generate::Generator;
pub(crate) use shelf::{Place, Shelf};

/// One version of one record: between two writes, its content stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Version {
    /// The record's number; the renderer turns it into an id.
    pub record: u64,
    /// Counts the versions of the record from 1, and is told in its `rev`.
    pub revision: u32,
    /// The record is gone.
    pub deleted: bool,
    /// When it was written, truly.
    pub written: i64,
    /// What its `updated_at` says.
    pub stamp: i64,
    /// From here the API shows it, unless a later version has become visible already.
    pub visible_from: i64,
    /// From here the API shows a later version; none: not yet.
    pub visible_until: Option<i64>,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    revisions: u32,
    alive: bool,
    /// The version that was written last, and when it is visible: later ones are never visible earlier.
    visible_from: i64,
    /// The version that the API shows now.
    shown: Option<usize>,
}

/// The state of one collection.
#[derive(Debug)]
pub(crate) struct World {
    start: i64,
    granularity: i64,
    tombstones: bool,
    now: i64,
    frozen: Option<i64>,
    generator: Generator,
    records: Vec<Record>,
    versions: Vec<Version>,
    /// Written, not yet visible: (visible from, index of the version).
    pending: BinaryHeap<Reverse<(i64, usize)>>,
    shelf: Shelf,
    last_change: i64,
}

impl World {
    pub(crate) fn new(spec: &CollectionSpec, seed: u64, start: i64) -> Self {
        let mut world = World {
            start,
            granularity: spec.granularity_ms.max(1),
            tombstones: spec.deletion == crate::spec::Deletion::Tombstone,
            now: start,
            frozen: None,
            generator: Generator::new(spec, seed, start),
            records: Vec::new(),
            versions: Vec::new(),
            pending: BinaryHeap::new(),
            shelf: Shelf::new(spec),
            last_change: start,
        };
        for (record, at) in world.generator.initial() {
            world.write(record, false, at, at, at);
        }
        world.show(start);
        world
    }

    /// Lets everything happen that happens up to `now`. Time never runs backwards.
    pub(crate) fn advance(&mut self, now: i64) {
        self.now = self.now.max(now);
        let until = self.frozen.map_or(self.now, |frozen| frozen.min(self.now));
        while let Some(planned) = self.generator.next(until) {
            self.write(
                planned.record,
                planned.deleted,
                planned.written,
                planned.stamp,
                planned.visible_from,
            );
        }
        self.show(self.now);
    }

    /// Nothing is written after this moment; what was written before still becomes visible.
    pub(crate) fn freeze(&mut self, now: i64) {
        self.advance(now);
        self.frozen.get_or_insert(self.now);
    }

    /// A write from outside, now.
    pub(crate) fn put(&mut self, now: i64, write: &Write) {
        self.advance(now);
        let at = self.now;
        let stamp = write.stamp_ms.map_or(at, |stamp| self.start + stamp);
        self.generator.note(write.record, write.op == Op::Delete);
        self.write(
            write.record,
            write.op == Op::Delete,
            at,
            stamp,
            at + write.lag_ms.max(0),
        );
        self.show(self.now);
    }

    fn write(&mut self, record: u64, deleted: bool, written: i64, stamp: i64, visible_from: i64) {
        let Ok(slot) = usize::try_from(record) else {
            return;
        };
        if self.records.len() <= slot {
            self.records.resize(slot + 1, Record::default());
        }
        let Some(state) = self.records.get_mut(slot) else {
            return;
        };
        if deleted && !state.alive {
            return;
        }
        state.alive = !deleted;
        state.revisions += 1;
        state.visible_from = state.visible_from.max(visible_from);
        let version = Version {
            record,
            revision: state.revisions,
            deleted,
            written,
            stamp: stamp.div_euclid(self.granularity) * self.granularity,
            visible_from: state.visible_from,
            visible_until: None,
        };
        self.pending
            .push(Reverse((version.visible_from, self.versions.len())));
        self.versions.push(version);
    }

    fn show(&mut self, now: i64) {
        while let Some(Reverse((at, index))) = self.pending.peek().copied() {
            if at > now {
                break;
            }
            self.pending.pop();
            let Some(version) = self.versions.get(index).copied() else {
                continue;
            };
            let Some(state) = usize::try_from(version.record)
                .ok()
                .and_then(|slot| self.records.get_mut(slot))
            else {
                continue;
            };
            let before = state.shown.replace(index);
            if let Some(before) = before.and_then(|before| self.versions.get_mut(before)) {
                before.visible_until = Some(at);
            }
            if version.deleted && !self.tombstones {
                self.shelf.remove(version.record);
            } else {
                self.shelf.put(version.record, version.stamp, index);
            }
            self.last_change = self.last_change.max(at);
        }
    }

    /// What the API shows.
    pub(crate) fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// A version by its index.
    pub(crate) fn version(&self, index: usize) -> Option<&Version> {
        self.versions.get(index)
    }

    /// All versions, in the order in which they were written.
    pub(crate) fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// When what the API shows last changed.
    pub(crate) fn last_change(&self) -> i64 {
        self.last_change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Deletion, WritesSpec};
    use proptest::prelude::*;

    fn lively() -> CollectionSpec {
        CollectionSpec {
            writes: WritesSpec::lively(50, 2.0),
            ..CollectionSpec::default()
        }
    }

    fn history(spec: &CollectionSpec, seed: u64, steps: &[i64]) -> Vec<Version> {
        let mut world = World::new(spec, seed, 1_000_000_000);
        for step in steps {
            world.advance(*step);
        }
        world.advance(1_000_300_000);
        world.versions().to_vec()
    }

    proptest! {
        #[test]
        fn how_it_is_advanced_makes_no_difference(
            seed in any::<u64>(),
            steps in proptest::collection::vec(1_000_000_000i64..1_000_300_000, 0..20),
        ) {
            prop_assert_eq!(history(&lively(), seed, &[]), history(&lively(), seed, &steps));
        }

        #[test]
        fn the_shelf_holds_the_newest_visible_version_of_each_record(seed in any::<u64>(), now in 0i64..300_000) {
            for deletion in [Deletion::Tombstone, Deletion::Vanish] {
                let spec = CollectionSpec { deletion, ..lively() };
                let mut world = World::new(&spec, seed, 1_000_000_000);
                let now = 1_000_000_000 + now;
                world.advance(now);
                let mut expected = std::collections::BTreeMap::new();
                for (index, version) in world.versions().iter().enumerate() {
                    if version.visible_from <= now {
                        expected.insert(version.record, index);
                    }
                }
                expected.retain(|_, index| {
                    deletion == Deletion::Tombstone || !world.versions()[*index].deleted
                });
                let mut expected: Vec<usize> = expected.into_values().collect();
                let mut shown: Vec<usize> = world.shelf().all().collect();
                expected.sort_unstable();
                shown.sort_unstable();
                prop_assert_eq!(shown, expected);
            }
        }
    }

    #[test]
    fn different_seeds_are_different_worlds() {
        assert_ne!(history(&lively(), 1, &[]), history(&lively(), 2, &[]));
    }

    #[test]
    fn a_lively_world_has_everything_that_loses_records() {
        let versions = history(&lively(), 3, &[]);
        let ties = versions
            .windows(2)
            .filter(|pair| pair[0].stamp == pair[1].stamp)
            .count();
        assert!(ties > 20, "{ties} ties");
        assert!(versions.iter().any(|version| version.deleted));
        assert!(versions.iter().any(|version| version.revision > 2));
        assert!(
            versions
                .iter()
                .any(|version| version.visible_from > version.written + 3000)
        );
        assert!(
            versions
                .iter()
                .any(|version| version.stamp > version.visible_from)
        );
        assert!(
            versions
                .iter()
                .any(|version| version.stamp < version.written)
        );
    }

    #[test]
    fn a_frozen_world_still_shows_what_was_written() {
        let mut world = World::new(&lively(), 4, 1_000_000_000);
        world.freeze(1_000_060_000);
        let written = world.versions().len();
        world.advance(1_000_200_000);
        assert_eq!(world.versions().len(), written);
        assert!(world.pending.is_empty());
        assert!(
            world
                .versions()
                .iter()
                .all(|version| version.written <= 1_000_060_000)
        );
    }

    #[test]
    fn a_write_from_outside_is_seen_after_its_lag() {
        let mut world = World::new(&CollectionSpec::default(), 1, 0);
        world.put(
            500,
            &Write {
                record: 3,
                lag_ms: 2000,
                ..Write::default()
            },
        );
        assert_eq!(world.shelf().all().count(), 0);
        world.advance(2500);
        assert_eq!(world.shelf().all().count(), 1);
        let version = world.versions()[0];
        assert_eq!(
            (version.record, version.stamp, version.visible_from),
            (3, 500, 2500)
        );
    }
}
