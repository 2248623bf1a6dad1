//! The far end of a sink: it takes entries unless it is down, and tells who watches.

use std::sync::Arc;

use super::run::Life;
use super::stage::{Counts, Stage};
use crate::clock::BoxFuture;
use crate::sink::{Delivered, Sink, SinkError};
use crate::store::OutboxEntry;

/// A sink of one boot.
pub(super) struct SimSink {
    pub(super) name: String,
    pub(super) stage: Arc<Stage>,
    pub(super) life: Arc<Life>,
}

impl Sink for SimSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn deliver<'a>(
        &'a mut self,
        batch: &'a [OutboxEntry],
        _key: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Delivered, SinkError>> {
        Box::pin(async move {
            if self.life.is_over() {
                std::future::pending::<()>().await;
            }
            if self.stage.is_down(&self.name) {
                return Err(SinkError::new(&self.name, "it is down"));
            }
            Counts::add(&self.stage.counts.delivered, batch.len() as u64);
            self.stage
                .tell(|watch, now| watch.delivered(now, &self.name, batch));
            Ok(Delivered {
                done: batch.len(),
                refused: Vec::new(),
            })
        })
    }
}
