//! Deliveries under keys of their own: stored with their extent before the first try, and sent again as they were.

use super::{Delivery, Stumble};
use crate::sink::{Remedy, SinkError};
use crate::store::{Intent, Sequence, StoreError};
use crate::uuid;

impl Delivery {
    pub(super) fn new_key(&mut self) -> String {
        uuid::v4(&mut self.rng)
    }

    /// Stores what is about to be tried: as many of the first `offered` entries as make one delivery.
    pub(super) async fn new_parcel(&mut self, offered: usize) -> Result<(), Stumble> {
        let key = self.new_key();
        let batch = self.waiting.make_contiguous();
        let batch = batch.get(..offered).unwrap_or_default();
        let fit = self.sink.fit(batch).clamp(1, offered.max(1));
        let intent = Intent {
            key,
            entries: batch.iter().take(fit).map(|entry| entry.sequence).collect(),
            form: self.sink.form().unwrap_or_default().to_owned(),
            not_before: None,
        };
        // Behind the reports of what came before, so that both share an fsync.
        let stored = self.store.set_intent(self.sink.name(), &intent);
        stored.await.unwrap_or(Err(StoreError::Closed))?;
        self.settled = false;
        self.parcel = Some(intent);
        Ok(())
    }

    /// Tries the delivery whose key is stored.
    pub(super) async fn send_parcel(&mut self) -> Result<(), Stumble> {
        let Some(parcel) = self.parcel.take() else {
            return Ok(());
        };
        let offered = parcel.entries.len();
        let batch = self.waiting.make_contiguous();
        let batch = batch.get(..offered).unwrap_or_default();
        let answer = self.sink.deliver(batch, Some(&parcel.key)).await;
        let again = matches!(
            &answer,
            Err(SinkError {
                remedy: Remedy::Backoff | Remedy::Wait(_) | Remedy::Person | Remedy::Gone,
                ..
            })
        );
        let key = parcel.key.clone();
        if again {
            self.parcel = Some(parcel);
        } else {
            self.settled = true;
        }
        self.answered(answer, offered, Some(&key))
    }

    /// The sink's own word on when to come back outlives this process.
    pub(super) async fn keep_wait(&mut self, ms: u64) {
        let Some(form) = self.sink.form() else {
            return;
        };
        let intent = Intent {
            not_before: Some(self.clock.wall().saturating_add_unsigned(ms)),
            ..self.parcel.clone().unwrap_or_else(|| Intent {
                key: String::new(),
                entries: Vec::new(),
                form: form.to_owned(),
                not_before: None,
            })
        };
        let stored = self.store.set_intent(self.sink.name(), &intent).await;
        if let Err(error) = stored.unwrap_or(Err(StoreError::Closed)) {
            tracing::warn!(sink = self.sink.name(), %error, "the sink's wait is not stored: a restart would not know of it");
        }
    }

    /// Takes up the delivery that an earlier run has tried: the same entries under the same key, if they are all still
    /// there and would be written as they were. An error says that the sink wanted to be left alone.
    pub(super) fn recall_parcel(&mut self) -> Result<(), Stumble> {
        let Some(intent) = self.store.intent(self.sink.name())? else {
            return Ok(());
        };
        if Some(intent.form.as_str()) != self.sink.form() {
            return Ok(());
        }
        if let Some(last) = intent.entries.last() {
            while self.read_to.is_none_or(|read_to| read_to < *last) {
                if !self.read()? {
                    break;
                }
            }
            let first: Vec<Sequence> = self
                .waiting
                .iter()
                .take(intent.entries.len())
                .map(|entry| entry.sequence)
                .collect();
            if first == intent.entries {
                self.parcel = Some(intent.clone());
            }
        }
        let now = self.clock.wall();
        match intent.not_before {
            Some(until) if until > now => {
                let wait = until.saturating_sub(now).unsigned_abs();
                let detail = "before the restart it said that it wants to be left alone";
                Err(SinkError::new(self.sink.name(), detail)
                    .with(Remedy::Wait(wait))
                    .into())
            }
            _ => Ok(()),
        }
    }
}
