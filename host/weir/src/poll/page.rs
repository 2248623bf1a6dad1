//! One step of a walk: the call, and what its answer changes.

use weir_rules::doubles::Held;
use weir_rules::model::{Class, CursorKind, Order};

use super::aside::Aside;
use super::call::{Answered, Call, CallFailed, Read};
use super::handover::{Baggage, lock};
use super::reviews::NoRoom;
use super::run::{Ended, FaultSeen, Poll};
use crate::store::{PreparedRecord, ReviewKind, StoreError, hex};

impl Poll<'_> {
    /// Takes the walk's current step.
    pub(super) async fn next_page(
        &mut self,
        baggage: &mut Baggage,
    ) -> Result<Option<Ended>, StoreError> {
        let step = match self.walk.step() {
            Some(step) => step.map(str::to_owned),
            None => return Ok(None),
        };
        let request = match self.request(step.as_deref()).await {
            Ok(request) => request,
            Err(fault) => return Ok(Some(Ended::fault(fault))),
        };
        if let Some(ended) = self.room_for(&request).await {
            return Ok(Some(ended));
        }
        let Call { read, seen } = match self.call(step.as_deref(), request).await {
            Ok(call) => call,
            Err(CallFailed::Store(error)) => return Err(error),
            Err(CallFailed::Fault(fault)) => {
                return Ok(Some(Ended::fault(fault)));
            }
            Err(CallFailed::Repeat { until, why }) => {
                return Ok(Some(Ended::Waiting { until, why }));
            }
        };
        self.answered(&seen, baggage);
        match read {
            Read::Page {
                mut prepared,
                validator,
            } => {
                let full = prepared.arrived() >= u64::from(self.walk.page_size);
                let set_aside = prepared.aside.len() as u64;
                if let Some(id) = &prepared.from_the_future {
                    tracing::warn!(
                        unit = %self.row.key, record = id,
                        "a record is stamped in the future: it is delivered, and moves no watermark"
                    );
                }
                if let Some(ended) = self.set_aside(std::mem::take(&mut prepared.aside), baggage)? {
                    return Ok(Some(ended));
                }
                let feed = self.stream.settings.stream.cursor == CursorKind::Snapshot;
                self.walk.page(prepared.facts(feed), &mut self.guard);
                if set_aside > 0 {
                    self.listed.missed();
                }
                let mut so_far = lock(&self.so_far);
                so_far.tally.records += prepared.records.len() as u64;
                so_far.tally.set_aside += set_aside;
                so_far.tally.full_page |= full;
                drop(so_far);
                let settings = &self.stream.settings;
                let order = if self.walk.watch.inversion.is_some() {
                    Order::Unordered
                } else {
                    self.state.order(settings)
                };
                if self
                    .walk
                    .beyond(order, prepared.oldest, prepared.newest.seen)
                {
                    self.walk.enough();
                }
                // The vendor answers again; only a position that is lost again and again is not forgotten.
                let faults = if self.side {
                    &mut self.state.side.faults
                } else {
                    &mut self.state.faults
                };
                faults
                    .counts
                    .retain(|class, _| *class == Class::PositionLost);
                faults.refreshed = false;
                let records = prepared.into_records();
                self.listed.page(&records);
                baggage.review.extend(self.reviews.taken(&records));
                baggage.records = self.hold_early(records);
                baggage.validators.extend(validator);
                baggage.forget.extend(self.write.take());
                Ok(None)
            }
            Read::NotModified { key, mut validator } => {
                lock(&self.so_far).tally.not_modified += 1;
                self.listed.missed();
                validator.walk = self.walk.number;
                self.walk.poll_after = self.walk.poll_after.max(validator.poll_after);
                self.walk.not_modified(
                    validator.next.clone(),
                    validator.cursor.clone(),
                    &mut self.guard,
                );
                baggage.validators.push((key, Some(validator)));
                Ok(None)
            }
            Read::Fault(seen) if self.is_past_the_end(&seen.fault, seen.status, step.is_some()) => {
                baggage.forget.extend(self.write.take());
                self.walk.past_the_end(&mut self.guard);
                Ok(None)
            }
            Read::Fault(seen) if self.skips(&seen.fault, step.is_some()) => {
                let FaultSeen {
                    fault,
                    answer,
                    status,
                    ..
                } = *seen;
                tracing::warn!(
                    unit = %self.row.key, code = fault.code, message = fault.message,
                    "a step of the walk is refused for good: the walk goes on without it"
                );
                let now = self.host.clock.wall();
                let change = self.reviews.fault(ReviewKind::Skipped, &fault, answer, now);
                baggage.review.push(change);
                baggage.forget.extend(self.write.take());
                self.listed.missed();
                let at_cap = matches!(status, Some(400 | 416 | 422)) && self.walk.last_full;
                self.walk.skip(at_cap, &mut self.guard);
                Ok(None)
            }
            Read::Fault(seen) => Ok(Some(Ended::Fault(seen))),
        }
    }

    /// Sets records aside for a person.
    fn set_aside(
        &mut self,
        aside: Vec<Aside>,
        baggage: &mut Baggage,
    ) -> Result<Option<Ended>, StoreError> {
        let now = self.host.clock.wall();
        for aside in aside {
            let redactor = &self.connection.redactor;
            match self.reviews.aside(&*self.host.store, aside, now, redactor) {
                Ok(change) => baggage.review.extend(change),
                Err(NoRoom::Full(fault)) => return Ok(Some(Ended::fault(fault))),
                Err(NoRoom::Store(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Versions of records that another one followed within the last walk wait until this one has ended.
    fn hold_early(&mut self, mut records: Vec<PreparedRecord>) -> Vec<PreparedRecord> {
        if self.state.doubles.is_empty() {
            return records;
        }
        let (doubles, walk) = (&self.state.doubles, &mut self.walk);
        records.retain(|record| {
            if !doubles.knows(&record.id) {
                return true;
            }
            let hash = hex(&record.hash);
            if !doubles.is_early(&record.id, &hash) {
                walk.doubles.seen(&record.id);
                return true;
            }
            let held = Held {
                id: record.id.clone(),
                hash,
                updated_at: record.updated_at,
                deleted: record.deleted,
                data: record.data.as_str().to_owned(),
            };
            walk.doubles.hold(held).is_err()
        });
        records
    }

    fn answered(&mut self, seen: &Answered, baggage: &mut Baggage) {
        let mut so_far = lock(&self.so_far);
        so_far.tally.calls += u64::from(seen.calls);
        so_far.tally.bytes += seen.bytes as u64;
        so_far.tally.latency = so_far.tally.latency.max(seen.latency);
        drop(so_far);
        self.latencies.merge(&seen.latencies);
        baggage.bytes = seen.bytes;
        baggage.budgets.extend(seen.budgets.iter().cloned());
    }
}
