//! One line as a sink writes it.

use serde::Deserialize;
use serde_json::value::RawValue;

/// One delivered record.
#[derive(Debug, Deserialize)]
pub struct Delivered {
    /// The connection's name.
    pub connection: String,
    /// The stream's name.
    pub stream: String,
    /// The partition, where the stream has any.
    #[serde(default)]
    pub partition: Option<String>,
    /// The vendor's id of the record.
    pub id: String,
    /// Counts the record's deliveries.
    pub revision: u64,
    /// What happened to it.
    pub op: Op,
    /// `connection/stream[/partition]/id/revision`, or whatever names the line for good.
    pub key: String,
    /// The record, byte for byte as the vendor sent it.
    pub data: Box<RawValue>,
}

/// What happened to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Not seen before.
    Insert,
    /// Seen before with other content.
    Update,
    /// Gone.
    Delete,
}

/// The version that a record's content says it is.
pub(super) fn version_of(data: &RawValue) -> Option<u32> {
    #[derive(Deserialize)]
    struct Content {
        rev: u32,
    }
    serde_json::from_str::<Content>(data.get())
        .ok()
        .map(|content| content.rev)
}
