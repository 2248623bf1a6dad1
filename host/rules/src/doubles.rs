//! Records of which one walk shows several versions.
//!
//! A vendor whose pages come from replicas of different age shows a record old on one page and new on the next, and does
//! so in every walk. Taken as they come, both would be changes in every walk, for ever.
//!
//! Promises:
//! - Of the versions that one walk shows, the last one counts. The first walk that shows several delivers each of them;
//!   from then on the earlier ones are known, and a walk that shows the same ones in the same order delivers nothing.
//! - Nothing is lost by it: an earlier version that no later one follows in its walk is held until the walk ends, and is
//!   then delivered as the change that it is (A, B, A is two changes).
//! - What is held is stored with the walk, so a crash does not lose it; both are bounded, and what goes beyond the bound
//!   is delivered as it comes.
//! - What a walk did not show in several versions is forgotten at its end.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::Timestamp;

/// Records of one unit of which earlier versions are remembered.
const RECORDS: usize = 64;
/// Earlier versions of one record that are remembered.
const VERSIONS: usize = 4;
/// Bytes of records that one walk holds: they are stored again with every page.
const HELD_BYTES: usize = 64 << 10;

/// Per record the hashes, in hex, of the versions that were followed by another one within one walk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Doubles {
    early: BTreeMap<String, BTreeSet<String>>,
}

/// A record that waits for the end of its walk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The vendor's id.
    pub id: String,
    /// Content hash in hex.
    pub hash: String,
    /// The vendor's own stamp.
    pub updated_at: Option<Timestamp>,
    /// The vendor says that it is gone.
    pub deleted: bool,
    /// The record as the vendor sent it.
    pub data: String,
}

/// What one walk has met of such records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sightings {
    /// Early versions that nothing has followed yet.
    held: BTreeMap<String, Held>,
    /// Early versions that another one has followed, as known before.
    confirmed: Doubles,
    /// The same, found in this walk.
    found: Doubles,
}

impl Doubles {
    /// None is known.
    pub fn is_empty(&self) -> bool {
        self.early.is_empty()
    }

    /// Was this version followed by another one within the last walk?
    pub fn is_early(&self, id: &str, hash: &str) -> bool {
        self.early
            .get(id)
            .is_some_and(|versions| versions.contains(hash))
    }

    /// Is anything known of this record?
    pub fn knows(&self, id: &str) -> bool {
        self.early.contains_key(id)
    }

    /// Remembers an early version, as long as there is room.
    pub fn note(&mut self, id: &str, hash: String) {
        if !self.early.contains_key(id) && self.early.len() >= RECORDS {
            return;
        }
        let versions = self.early.entry(id.to_owned()).or_default();
        if versions.len() < VERSIONS {
            versions.insert(hash);
        }
    }
}

impl Sightings {
    /// Nothing was met.
    pub fn is_empty(&self) -> bool {
        *self == Sightings::default()
    }

    /// An early version was met: it waits, if there is room for it.
    pub fn hold(&mut self, record: Held) -> Result<(), Held> {
        let bytes: usize = self.held.values().map(|held| held.data.len()).sum();
        if self.held.len() >= RECORDS || bytes.saturating_add(record.data.len()) > HELD_BYTES {
            return Err(record);
        }
        let repeated = self.held.get(&record.id);
        if repeated.is_none_or(|held| held.hash != record.hash) {
            self.seen(&record.id);
        }
        self.held.insert(record.id.clone(), record);
        Ok(())
    }

    /// A version of the record was met: what was held of it is out of date.
    pub fn seen(&mut self, id: &str) {
        if let Some(held) = self.held.remove(id) {
            self.confirmed.note(id, held.hash);
        }
    }

    /// This version was delivered in this very walk, and another one has followed.
    pub fn found(&mut self, id: &str, hash: String) {
        self.found.note(id, hash);
    }

    /// What waits for the end of the walk.
    pub fn held(&self) -> impl Iterator<Item = &Held> {
        self.held.values()
    }

    /// The walk has ended: what is still held was the last version.
    pub fn release(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.held).into_values().collect()
    }

    /// What is known after the walk.
    pub fn conclude(self) -> Doubles {
        let mut known = self.confirmed;
        for (id, versions) in self.found.early {
            for hash in versions {
                known.note(&id, hash);
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn held(id: &str, hash: &str) -> Held {
        Held {
            id: id.into(),
            hash: hash.into(),
            updated_at: None,
            deleted: false,
            data: format!("{{\"{hash}\":1}}"),
        }
    }

    /// Walks over a list with versions of one record, as the host plays them; returns what each walk delivers.
    fn play(walks: &[&str]) -> Vec<String> {
        let mut known = Doubles::default();
        let mut stored = String::new();
        let mut delivered = Vec::new();
        for walk in walks {
            let mut out = String::new();
            let mut sightings = Sightings::default();
            let mut changed_in_this_walk = false;
            let mut take = |version: &str, sightings: &mut Sightings| {
                if version != stored {
                    if changed_in_this_walk {
                        sightings.found("r", stored.clone());
                    }
                    changed_in_this_walk = true;
                    stored = version.to_owned();
                    out.push_str(version);
                }
            };
            for version in walk.chars().map(String::from) {
                if known.is_early("r", &version) {
                    sightings.hold(held("r", &version)).unwrap();
                } else {
                    sightings.seen("r");
                    take(&version, &mut sightings);
                }
            }
            for last in sightings.release() {
                take(&last.hash, &mut sightings);
            }
            known = sightings.conclude();
            delivered.push(out);
        }
        delivered
    }

    #[test]
    fn two_versions_in_every_walk_are_delivered_once() {
        assert_eq!(play(&["AB", "AB", "AB", "AB"]), ["AB", "", "", ""]);
        assert_eq!(play(&["B", "AB", "AB", "AB"]), ["B", "AB", "", ""]);
        assert_eq!(play(&["ABA", "ABA", "ABA", "ABA"])[2..], ["", ""]);
    }

    #[test]
    fn a_version_that_comes_back_alone_is_a_change() {
        assert_eq!(play(&["AB", "A", "B"]), ["AB", "A", "B"]);
        assert_eq!(play(&["AB", "AB", "A", "A"]), ["AB", "", "A", ""]);
        assert_eq!(play(&["A", "B", "A", "B"]), ["A", "B", "A", "B"]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut sightings = Sightings::default();
        for n in 0..RECORDS {
            sightings.hold(held(&n.to_string(), "x")).unwrap();
        }
        assert!(sightings.hold(held("one more", "x")).is_err());
        assert_eq!(sightings.release().len(), RECORDS);
        let big = Held {
            data: " ".repeat(HELD_BYTES + 1),
            ..held("big", "x")
        };
        assert!(Sightings::default().hold(big).is_err());
        let mut known = Doubles::default();
        for n in 0..1_000 {
            known.note(&n.to_string(), "x".into());
            known.note("0", n.to_string());
        }
        assert_eq!(known.early.len(), RECORDS);
        assert!(
            known
                .early
                .values()
                .all(|versions| versions.len() <= VERSIONS)
        );
    }

    proptest! {
        /// After every walk the last version that it showed is the one that was delivered last.
        #[test]
        fn the_last_version_of_a_walk_wins(walks in prop::collection::vec("[ABC]{1,4}", 1..12)) {
            let walks: Vec<&str> = walks.iter().map(String::as_str).collect();
            let delivered = play(&walks);
            let mut last = None;
            for (walk, out) in walks.iter().zip(&delivered) {
                last = out.chars().last().or(last);
                prop_assert_eq!(walk.chars().last(), last);
            }
        }

        /// The same walk again and again comes to rest.
        #[test]
        fn equal_walks_come_to_rest(walk in "[ABC]{1,4}") {
            let delivered = play(&[walk.as_str(); 8]);
            prop_assert!(delivered[4..].iter().all(String::is_empty), "{:?}", delivered);
        }
    }
}
