//! What a vendor really shows: every version of every record, with the moment from which the API shows it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use weir_rules::model::Timestamp;
use weir_tests::spec::{CollectionSpec, Deletion, Paging};
use weir_tests::vendor::Vendor;
use weir_tests::world::{Renderer, Version};

/// One collection of one vendor.
pub(super) struct Truth {
    pub(super) vendor: Arc<Vendor>,
    pub(super) number: usize,
    pub(super) renderer: Renderer,
    /// In the order of their writing.
    versions: Vec<Version>,
    places: HashMap<(u64, u32), usize>,
    /// Written, not yet visible.
    pending: BinaryHeap<Reverse<(Timestamp, usize)>>,
    /// In the order in which they became visible.
    shown: Vec<usize>,
    /// When a record last went away without a word.
    pub(super) shrunk: Option<Timestamp>,
    /// When something last became visible.
    pub(super) changed: Option<Timestamp>,
    /// The newest stamp that was ever written.
    pub(super) newest: Option<Timestamp>,
}

impl Truth {
    pub(super) fn new(vendor: Arc<Vendor>, number: usize) -> Option<Truth> {
        Some(Truth {
            renderer: vendor.renderer(number)?,
            vendor,
            number,
            versions: Vec::new(),
            places: HashMap::new(),
            pending: BinaryHeap::new(),
            shown: Vec::new(),
            shrunk: None,
            changed: None,
            newest: None,
        })
    }

    pub(super) fn spec(&self) -> Option<&CollectionSpec> {
        self.vendor.spec().collections.get(self.number)
    }

    /// Takes in what has happened up to now.
    pub(super) fn advance(&mut self, now: Timestamp) {
        let written = self
            .vendor
            .versions_from(now, self.number, self.versions.len());
        for version in written {
            let index = self.versions.len();
            self.newest = self.newest.max(Some(version.stamp));
            self.pending.push(Reverse((version.visible_from, index)));
            self.places
                .insert((version.record, version.revision), index);
            self.versions.push(version);
        }
        while let Some(Reverse((at, index))) = self.pending.peek().copied() {
            if at > now {
                break;
            }
            self.pending.pop();
            if self.version(index).is_some_and(|version| version.deleted) && !self.tombstones() {
                self.shrunk = Some(at);
            }
            self.changed = Some(at);
            self.shown.push(index);
        }
    }

    /// Everything that was written is visible.
    pub(super) fn is_all_shown(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn version(&self, index: usize) -> Option<&Version> {
        self.versions.get(index)
    }

    /// The version of a record with this revision.
    pub(super) fn find(&self, record: u64, revision: u32) -> Option<&Version> {
        self.places
            .get(&(record, revision))
            .and_then(|index| self.versions.get(*index))
    }

    /// What became visible after the first `seen` versions that did.
    pub(super) fn shown_from(&self, seen: usize) -> &[usize] {
        self.shown.get(seen..).unwrap_or_default()
    }

    pub(super) fn tombstones(&self) -> bool {
        self.spec()
            .is_some_and(|spec| spec.deletion == Deletion::Tombstone)
    }

    /// A poller finds changes by their stamp.
    pub(super) fn is_found_by_stamp(&self) -> bool {
        self.spec().is_some_and(|spec| {
            !spec.filter.since.param.is_empty() && !matches!(spec.paging, Paging::Feed { .. })
        })
    }

    /// Where a record goes away, others move up: onto a page that was read already.
    pub(super) fn moves_up(&self) -> bool {
        self.spec()
            .is_some_and(|spec| matches!(spec.paging, Paging::Page { .. } | Paging::Offset { .. }))
    }

    pub(super) fn granularity(&self) -> i64 {
        self.spec().map_or(1, |spec| spec.granularity_ms)
    }

    /// How far the vendor's clock runs ahead of the true time, in ms.
    pub(super) fn skew(&self) -> i64 {
        self.vendor.spec().date_skew_ms
    }
}
