//! What the judge found.

use std::collections::BTreeMap;

use serde::Serialize;

/// The judgement of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// Delivered lines.
    pub lines: u64,
    /// Lines that repeated an earlier one, where that is allowed.
    pub repeats: u64,
    /// By `vendor/collection`.
    pub units: BTreeMap<String, Tally>,
}

/// The judgement of one collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Delivered lines.
    pub lines: u64,
    /// Versions that had to be seen: usually one a record.
    pub visible: u64,
    /// How many of them were delivered.
    pub delivered: u64,
    /// The others.
    pub lost: Vec<Loss>,
    /// Lines too many.
    pub duplicated: Vec<Duplicate>,
    /// Lines that are updates.
    pub updates: u64,
    /// Lines out of their record's order.
    pub out_of_order: Vec<Wrong>,
    /// Lines that do not say what the vendor showed.
    pub wrong: Vec<Wrong>,
    /// Versions that became visible later than the overlap reaches and were not seen: no promise covers them.
    pub out_of_reach: u64,
    /// Records whose version at the end was too fresh to judge.
    pub too_fresh: u64,
}

/// A version that had to be delivered and was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The record.
    pub id: String,
    /// The version.
    pub revision: u32,
    /// It is a deletion.
    pub deleted: bool,
    /// Its stamp.
    pub stamp: i64,
    /// When it became visible.
    pub visible_from: i64,
    /// The version of the record that was delivered last; none: it was never delivered at all.
    pub delivered_revision: Option<u32>,
}

/// A line that repeats another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Duplicate {
    /// Which line, from 1 over all that the judge took.
    pub line: u64,
    /// The record.
    pub id: String,
    /// The line's key.
    pub key: String,
    /// Of what it is a duplicate.
    pub reason: String,
}

impl Duplicate {
    pub(super) fn new(line: u64, id: &str, key: &str, reason: String) -> Self {
        Duplicate {
            line,
            id: id.into(),
            key: key.into(),
            reason,
        }
    }
}

/// A line that should not be what or where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// Which line, from 1 over all that the judge took.
    pub line: u64,
    /// The unit.
    pub unit: String,
    /// The record.
    pub id: String,
    /// What is wrong.
    pub reason: String,
}

impl Wrong {
    pub(super) fn new(line: u64, unit: &str, id: &str, reason: String) -> Self {
        Wrong {
            line,
            unit: unit.into(),
            id: id.into(),
            reason,
        }
    }
}

impl Verdict {
    /// Versions that had to be seen.
    pub fn visible(&self) -> u64 {
        self.units.values().map(|tally| tally.visible).sum()
    }

    /// How many of them were delivered.
    pub fn delivered(&self) -> u64 {
        self.units.values().map(|tally| tally.delivered).sum()
    }

    /// How many of them were not.
    pub fn lost(&self) -> u64 {
        self.units
            .values()
            .map(|tally| tally.lost.len() as u64)
            .sum()
    }

    /// Lines too many.
    pub fn duplicated(&self) -> u64 {
        self.units
            .values()
            .map(|tally| tally.duplicated.len() as u64)
            .sum()
    }

    /// Lines that are updates.
    pub fn updates(&self) -> u64 {
        self.units.values().map(|tally| tally.updates).sum()
    }

    /// Lines that are wrong or out of order.
    pub fn wrong(&self) -> u64 {
        self.units
            .values()
            .map(|tally| (tally.wrong.len() + tally.out_of_order.len()) as u64)
            .sum()
    }

    /// Nothing was lost, duplicated, wrong or out of order.
    pub fn is_clean(&self) -> bool {
        self.lost() == 0 && self.duplicated() == 0 && self.wrong() == 0
    }
}
