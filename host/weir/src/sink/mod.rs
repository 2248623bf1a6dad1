//! The sink seam and the delivery loop's parts.
//!
//! Promises: at least once, in outbox order per record id, each line with its key `unit/id/revision`; an entry
//! counts as delivered only when the sink has it durably. A sink that is down never stops the polling: the
//! outbox grows up to its configured bound.
//!
//! | part | job |
//! | --- | --- |
//! | [`line`] | an entry as one line of JSON |
//! | [`file`] | NDJSON files: rotation, fsync, repair after a crash |
//! | [`stdout`] | lines on standard output |
//! | [`delivery`] | the loop from the outbox to one sink |

pub mod delivery;
pub mod file;
pub mod line;
pub mod stdout;

use crate::clock::BoxFuture;
use crate::store::OutboxEntry;

pub use delivery::{Delivery, DeliverySettings, DeliveryStatus, Ended, Failing, Mode};
pub use file::{FileSettings, FileSink, Period, Rotation, TemplateError};
pub use stdout::StdoutSink;

/// Where records go.
pub trait Sink: Send + 'static {
    /// The sink's name in `weir.toml`.
    fn name(&self) -> &str;
    /// It may refuse single entries. Then no batch has two versions of one record, so that a later version never
    /// overtakes a refused one.
    fn may_refuse(&self) -> bool {
        false
    }
    /// Takes a batch in order, or some of it from the front. When it returns, what it reports as taken is durable.
    /// After an error the same entries are offered again, and so are entries whose acknowledgement was not stored
    /// before a crash: at most [`UNACKNOWLEDGED_BATCHES`] batches.
    fn deliver<'a>(
        &'a mut self,
        batch: &'a [OutboxEntry],
    ) -> BoxFuture<'a, Result<Delivered, SinkError>>;
}

/// Batches that a sink may have taken while their acknowledgement is still being stored.
pub const UNACKNOWLEDGED_BATCHES: usize = 2;

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivered {
    /// How many entries from the front were taken or refused.
    pub done: usize,
    /// Of them, the refused ones: index in the batch and the sink's word.
    pub refused: Vec<(usize, String)>,
}

/// The sink could take nothing now; it is tried again with backoff.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sink {sink}: {detail}")]
pub struct SinkError {
    /// The sink's name.
    pub sink: String,
    /// What failed and where.
    pub detail: String,
    /// Whoever took the records has gone for good: no use in trying again.
    pub closed: bool,
}

impl SinkError {
    /// A failure that may pass.
    pub fn new(sink: &str, detail: impl Into<String>) -> Self {
        SinkError {
            sink: sink.to_owned(),
            detail: detail.into(),
            closed: false,
        }
    }
}
