//! Copies of the store, as others see them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weir_rules::model::Timestamp;

/// A copy of the store's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreCopy {
    /// Where it is.
    pub path: PathBuf,
    /// Copies are numbered in the order in which they were begun.
    pub number: u64,
    /// When it was begun, by this machine's clock.
    pub at: Timestamp,
    /// Its length.
    pub bytes: u64,
}

/// How a copy is to be made.
pub struct CopyOrder<'a> {
    /// The time, by this machine's clock.
    pub at: Timestamp,
    /// How many copies are kept, this one included; at least one.
    pub keep: usize,
    /// Asked now and then: is it no longer wanted?
    pub give_up: &'a dyn Fn() -> bool,
}
