//! What the vendor remembers: every call with its outcome, and every version of every record with the span in
//! which the API showed it.

use serde::Serialize;

use crate::world::{Renderer, Version};

/// What became of a call, from the vendor's side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A page.
    Page,
    /// 304.
    NotModified,
    /// A quota refused it.
    OverQuota,
    /// The vendor gave in under load.
    Overloaded,
    /// No or wrong credentials.
    Unauthorized,
    /// The call makes no sense: 400, 404, 405, or 410 for an old token.
    Refused(u16),
    /// A fault of the plan was played.
    Fault(String),
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// When it came.
    pub at: i64,
    /// The collection, where there is such a path.
    pub collection: Option<String>,
    /// Path and query.
    pub target: String,
    /// Status; 0: none was sent.
    pub status: u16,
    /// What became of it.
    pub outcome: Outcome,
    /// Records on the page.
    pub records: usize,
    /// Bytes of the body.
    pub bytes: usize,
    /// It came before a wait that the vendor had told its caller was over.
    pub early: bool,
    /// Another call of the same caller for the same collection was still being answered.
    pub overlapping: bool,
}

/// A wait that an answer told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Until when its caller is not to come again.
    pub until: i64,
    /// With no call at all; otherwise with none for the same collection.
    pub all: bool,
}

/// Sums over calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Calls.
    pub calls: u64,
    /// Answers of 304.
    pub not_modified: u64,
    /// Calls that used quota.
    pub quota_used: u64,
    /// Calls that a quota refused.
    pub over_quota: u64,
    /// Calls on which a fault was played, and those that were too much.
    pub faults: u64,
    /// Calls before a wait was over.
    pub early: u64,
    /// Calls beside another one.
    pub overlapping: u64,
    /// Records on all pages.
    pub records: u64,
    /// Bytes of all bodies.
    pub bytes: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, call: &Call) {
        self.calls += 1;
        match call.outcome {
            Outcome::NotModified => self.not_modified += 1,
            Outcome::OverQuota => self.over_quota += 1,
            Outcome::Fault(_) | Outcome::Overloaded => self.faults += 1,
            Outcome::Page | Outcome::Unauthorized | Outcome::Refused(_) => {}
        }
        self.early += u64::from(call.early);
        self.overlapping += u64::from(call.overlapping);
        self.records += call.records as u64;
        self.bytes += call.bytes as u64;
    }

    /// The sum of both.
    pub fn plus(self, other: Counts) -> Counts {
        Counts {
            calls: self.calls + other.calls,
            not_modified: self.not_modified + other.not_modified,
            quota_used: self.quota_used + other.quota_used,
            over_quota: self.over_quota + other.over_quota,
            faults: self.faults + other.faults,
            early: self.early + other.early,
            overlapping: self.overlapping + other.overlapping,
            records: self.records + other.records,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Every version of every record of one collection.
#[derive(Clone, Debug)]
pub struct History {
    /// The vendor's name.
    pub vendor: String,
    /// The collection's name.
    pub collection: String,
    /// Turns a version into its text and its id.
    pub renderer: Renderer,
    /// In the order in which they were written.
    pub versions: Vec<Version>,
    /// A poller finds changes by their stamp, so that one that becomes visible too long after its stamp is out of
    /// its sight.
    pub found_by_stamp: bool,
    /// The stamps' granularity in ms.
    pub granularity_ms: i64,
    /// Deleted records are listed as such.
    pub tombstones: bool,
    /// When the collection was first called: what was visible then needs no overlap to be found.
    pub first_call: Option<i64>,
}

impl History {
    /// The version of each record that the API shows at a moment, deletions included, in the order of records.
    pub fn shown_at(&self, now: i64) -> Vec<&Version> {
        let mut shown = std::collections::BTreeMap::new();
        for version in &self.versions {
            if version.visible_from <= now {
                shown.insert(version.record, version);
            }
        }
        shown.into_values().collect()
    }
}

/// All that the vendors remember, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// That moment.
    pub taken_at: i64,
    /// Every collection of every vendor.
    pub histories: Vec<History>,
    /// Sums, by vendor.
    pub counts: Vec<(String, Counts)>,
}

impl Ledger {
    /// With what other vendors remember.
    pub fn and(mut self, other: Ledger) -> Ledger {
        self.taken_at = self.taken_at.max(other.taken_at);
        self.histories.extend(other.histories);
        self.counts.extend(other.counts);
        self
    }

    /// Sums over all vendors.
    pub fn total(&self) -> Counts {
        self.counts
            .iter()
            .fold(Counts::default(), |sum, (_, counts)| sum.plus(*counts))
    }

    /// The numbers, for another process: see the server's `GET /_sim/ledger`.
    pub fn summary(&self) -> Summary {
        Summary {
            taken_at: self.taken_at,
            total: self.total(),
            vendors: self
                .counts
                .iter()
                .map(|(vendor, counts)| VendorSummary {
                    vendor: vendor.clone(),
                    counts: *counts,
                    collections: self
                        .histories
                        .iter()
                        .filter(|history| history.vendor == *vendor)
                        .map(|history| CollectionSummary {
                            collection: history.collection.clone(),
                            visible_records: history.shown_at(self.taken_at).len(),
                            visible_versions: history
                                .versions
                                .iter()
                                .filter(|version| version.visible_from <= self.taken_at)
                                .count(),
                            pending_versions: history
                                .versions
                                .iter()
                                .filter(|version| version.visible_from > self.taken_at)
                                .count(),
                        })
                        .collect(),
                })
                .collect(),
        }
    }
}

/// The numbers of a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The moment of the ledger.
    pub taken_at: i64,
    /// Over all vendors.
    pub total: Counts,
    /// By vendor.
    pub vendors: Vec<VendorSummary>,
}

/// The numbers of one vendor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VendorSummary {
    /// Its name.
    pub vendor: String,
    /// Its calls.
    pub counts: Counts,
    /// Its collections.
    pub collections: Vec<CollectionSummary>,
}

/// The numbers of one collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CollectionSummary {
    /// Its name.
    pub collection: String,
    /// Records that have been visible, deleted ones included.
    pub visible_records: usize,
    /// Versions that have been visible.
    pub visible_versions: usize,
    /// Versions that have been written and are not visible yet.
    pub pending_versions: usize,
}
