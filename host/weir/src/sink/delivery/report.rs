//! What the loop tells the store. A few reports may be on their way at once, so that the sink does not wait for the
//! store's fsync.

use std::collections::BTreeMap;

use super::{Delivery, Stumble};
use crate::sink::UNACKNOWLEDGED_BATCHES;
use crate::store::{DeadLetter, Durable, Handled, Sequence, StoreError};

/// What has become of a letter.
#[derive(Clone)]
pub(super) enum Change {
    /// It is new, or other than before.
    Put(Box<DeadLetter>),
    /// The sink has taken it.
    Taken,
    /// The sink has taken this later revision of its record.
    Superseded(u64),
}

/// An acknowledgement on its way into the store.
pub(super) struct Report {
    durable: Durable<()>,
    changes: BTreeMap<Sequence, Change>,
    settled: bool,
}

impl Delivery {
    pub(super) fn put_letter(&mut self, letter: DeadLetter) {
        self.changes
            .insert(letter.sequence, Change::Put(Box::new(letter)));
    }

    pub(super) fn supersede(&mut self, sequence: Sequence, revision: u64) {
        match self.changes.get_mut(&sequence) {
            Some(Change::Put(letter)) => letter.superseded = letter.superseded.max(Some(revision)),
            _ => {
                self.changes.insert(sequence, Change::Superseded(revision));
            }
        }
    }

    /// Tells the store what has been handled, if that is news.
    pub(super) async fn report(&mut self) -> Result<(), Stumble> {
        if self.handled > self.reported || !self.changes.is_empty() || self.settled {
            let changes = std::mem::take(&mut self.changes);
            let settled = std::mem::take(&mut self.settled);
            let mut handled = Handled::up_to(self.handled);
            handled.settled = settled;
            for (sequence, change) in &changes {
                match change {
                    Change::Put(letter) => handled.letters.push(DeadLetter::clone(letter)),
                    Change::Taken => handled.taken.push(*sequence),
                    Change::Superseded(revision) => handled.superseded.push((*sequence, *revision)),
                }
            }
            self.reports.push_back(Report {
                durable: self.store.delivered(self.sink.name(), handled),
                changes,
                settled,
            });
            self.reported = self.handled;
        }
        while self.reports.len() >= UNACKNOWLEDGED_BATCHES {
            self.settle_report().await?;
        }
        Ok(())
    }

    /// Waits until everything that was handled is stored as such.
    pub(super) async fn finish(&mut self) -> Result<(), Stumble> {
        self.report().await?;
        while !self.reports.is_empty() {
            self.settle_report().await?;
        }
        Ok(())
    }

    async fn settle_report(&mut self) -> Result<(), Stumble> {
        let Some(report) = self.reports.front_mut() else {
            return Ok(());
        };
        let result = (&mut report.durable)
            .await
            .unwrap_or(Err(StoreError::Closed));
        let Some(report) = self.reports.pop_front() else {
            return Ok(());
        };
        if let Err(error) = result {
            // Reported again with the next one, unless something newer is known by now.
            self.reported = 0;
            self.settled |= report.settled && self.parcel.is_none();
            for (sequence, older) in report.changes {
                match (self.changes.get(&sequence), older) {
                    (None, older) => {
                        self.changes.insert(sequence, older);
                    }
                    (Some(Change::Superseded(revision)), Change::Put(mut letter)) => {
                        letter.superseded = letter.superseded.max(Some(*revision));
                        self.changes.insert(sequence, Change::Put(letter));
                    }
                    (Some(_), _) => {}
                }
            }
            return Err(error.into());
        }
        Ok(())
    }
}
