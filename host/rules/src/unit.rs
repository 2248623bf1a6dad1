//! What is remembered of a unit between polls.

use serde::{Deserialize, Serialize};

use crate::model::Timestamp;

/// The stored state of one unit. Unknown to the store, which keeps it as one row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnitState {
    /// What the connector gave back as the unit's cursor, byte for byte.
    pub cursor: Option<String>,
    /// The newest `updated_at` that a complete walk has committed.
    pub watermark: Option<Timestamp>,
}
