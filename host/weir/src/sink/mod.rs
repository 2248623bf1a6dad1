//! The sink seam and the delivery loop's parts.
//!
//! Promises: at least once, in outbox order per record id, each line with its key `unit/id/revision`; an entry
//! counts as delivered only when the sink has it durably. A sink that is down never stops the polling: the
//! outbox grows up to its configured bound.

use crate::clock::BoxFuture;
use crate::store::OutboxEntry;

/// Where records go.
pub trait Sink: Send + 'static {
    /// The sink's name in `weir.toml`.
    fn name(&self) -> &str;
    /// Takes a batch in order. When it returns, what it reports as taken is durable.
    fn deliver<'a>(&'a mut self, batch: &'a [OutboxEntry]) -> BoxFuture<'a, Result<Delivered, SinkError>>;
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivered {
    /// How many entries from the front were taken or refused for good.
    pub done: usize,
    /// Of them, the refused ones: index in the batch and the sink's word.
    pub refused: Vec<(usize, String)>,
}

/// The sink could take nothing now; it is tried again with backoff.
#[derive(Debug, thiserror::Error)]
#[error("sink {sink}: {detail}")]
pub struct SinkError {
    /// The sink's name.
    pub sink: String,
    /// What failed and where.
    pub detail: String,
}
