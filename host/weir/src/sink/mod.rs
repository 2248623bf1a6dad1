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
//! | [`webhook`] | batches POSTed to somebody else's server |
//! | [`format`](mod@format) | an entry, or a batch, in the format of a sink |
//! | [`delivery`] | the loop from the outbox to one sink |

#[cfg(test)]
mod bench;
pub mod delivery;
pub mod file;
pub mod format;
pub mod line;
pub mod stdout;
pub mod webhook;

use weir_rules::model::Duration;

use crate::clock::BoxFuture;
use crate::store::OutboxEntry;

pub use delivery::{Delivery, DeliverySettings, DeliveryStatus, Ended, Failing, Mode, Outage};
pub use file::{FileSettings, FileSink, Period, Rotation, TemplateError};
pub use stdout::StdoutSink;
pub use webhook::{WebhookError, WebhookSettings, WebhookSink};

/// Where records go.
pub trait Sink: Send + 'static {
    /// The sink's name in `weir.toml`.
    fn name(&self) -> &str;
    /// It may refuse single entries. Then no batch has two versions of one record, so that a later version never
    /// overtakes a refused one.
    fn may_refuse(&self) -> bool {
        false
    }
    /// Its deliveries are identified by keys of their own, which are stored before the first try. The text tells how
    /// and to where it delivers: under another one, the same entries are another delivery. None: it needs no keys.
    fn form(&self) -> Option<&str> {
        None
    }
    /// How many entries from the front make one delivery: at least one. For sinks with a [`Sink::form`].
    fn fit(&mut self, batch: &[OutboxEntry]) -> usize {
        batch.len()
    }
    /// Takes a batch in order, or some of it from the front. When it returns, what it reports as taken is durable.
    /// After an error the same entries are offered again, and so are entries whose acknowledgement was not stored
    /// before a crash: at most [`UNACKNOWLEDGED_BATCHES`] batches. `key` is the delivery's, for sinks with a
    /// [`Sink::form`]; they take the batch whole or not at all.
    fn deliver<'a>(
        &'a mut self,
        batch: &'a [OutboxEntry],
        key: Option<&'a str>,
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
    pub refused: Vec<(usize, Refusal)>,
}

/// A sink's word on an entry that it does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// For a person; without secrets.
    pub word: String,
    /// It may as well be about the sink: the address or the credential is wrong. Then it counts against the entry only
    /// when the sink takes others.
    pub door: bool,
}

impl From<&str> for Refusal {
    fn from(word: &str) -> Self {
        Refusal {
            word: word.to_owned(),
            door: false,
        }
    }
}

/// The sink could take nothing now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sink {sink}: {detail}")]
pub struct SinkError {
    /// The sink's name.
    pub sink: String,
    /// What failed and where.
    pub detail: String,
    /// What will help.
    pub remedy: Remedy,
}

/// What is to be done about a sink that takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Try again with backoff.
    Backoff,
    /// The sink has said for how many ms it wants to be left alone.
    Wait(Duration),
    /// Something in the batch is refused: offer it in parts.
    Parts,
    /// Nothing will, until a person has looked at the sink.
    Person,
    /// Whoever took the records has gone for good.
    Gone,
}

impl SinkError {
    /// A failure that may pass.
    pub fn new(sink: &str, detail: impl Into<String>) -> Self {
        SinkError {
            sink: sink.to_owned(),
            detail: detail.into(),
            remedy: Remedy::Backoff,
        }
    }

    /// The same, with another way out.
    pub fn with(self, remedy: Remedy) -> Self {
        SinkError { remedy, ..self }
    }
}
