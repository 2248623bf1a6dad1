//! The loop from the outbox to one sink.
//!
//! Promises:
//! - Entries are offered in outbox order, and offered again until the sink has taken them.
//! - A sink that fails as a whole is tried again with full-jitter backoff; nothing is lost and nothing skipped.
//! - An entry that the sink refuses is tried again by itself on a growing schedule, whatever else is delivered
//!   meanwhile, and becomes a dead letter after the last try. Later entries of the same record wait behind it.
//! - What does not read in the outbox becomes a dead letter, and what lies behind it is delivered.
//! - Memory is bounded: one batch and a bounded number of refused entries.

mod held;
mod settings;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::watch;

use self::held::{Held, HeldEntries};
use crate::clock::Clock;
use crate::sink::line::Lines;
use crate::sink::{Delivered, Sink, SinkError, UNACKNOWLEDGED_BATCHES};
use crate::store::{DeadLetter, Durable, OutboxBatch, OutboxEntry, Sequence, Store, StoreError};

pub use self::settings::{DeliverySettings, DeliveryStatus, Ended, Failing, Mode};

/// Refused entries that are held at most; with more the loop reads no further until some are settled.
const HELD: usize = 256;

/// The loop of one sink.
pub struct Delivery {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    sink: Box<dyn Sink>,
    settings: DeliverySettings,
    rng: StdRng,
    lines: Lines,
    status: watch::Sender<DeliveryStatus>,
    /// Read, and not handled yet.
    waiting: VecDeque<OutboxEntry>,
    /// The end of what was read.
    read_to: Option<Sequence>,
    /// All up to here is delivered, dead or held.
    handled: Sequence,
    /// All up to here has been reported to the store.
    reported: Sequence,
    held: HeldEntries,
    dead: Vec<DeadLetter>,
    reports: VecDeque<Report>,
    /// Whole-sink failures in a row.
    failures: u32,
}

/// An acknowledgement on its way into the store.
struct Report {
    durable: Durable<()>,
    dead: Vec<DeadLetter>,
}

/// Why a step was not taken.
enum Stumble {
    Sink(SinkError),
    Store(StoreError),
}

impl From<StoreError> for Stumble {
    fn from(error: StoreError) -> Self {
        Stumble::Store(error)
    }
}

impl Delivery {
    /// A loop that has not begun. The store must know the sink by its name.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        sink: Box<dyn Sink>,
        settings: DeliverySettings,
    ) -> Self {
        Delivery {
            rng: StdRng::seed_from_u64(settings.seed),
            store,
            clock,
            sink,
            settings,
            lines: Lines::default(),
            status: watch::Sender::default(),
            waiting: VecDeque::new(),
            read_to: None,
            handled: 0,
            reported: 0,
            held: HeldEntries::default(),
            dead: Vec::new(),
            reports: VecDeque::new(),
            failures: 0,
        }
    }

    /// How it is doing, from now on.
    pub fn status(&self) -> watch::Receiver<DeliveryStatus> {
        self.status.subscribe()
    }

    /// Delivers until told otherwise. Dropping the sender of `mode` is the same as [`Mode::Stop`].
    pub async fn run(mut self, mut mode: watch::Receiver<Mode>) -> Ended {
        let mut end = self.store.outbox_end();
        loop {
            let now = mode_of(&mut mode);
            if now == Mode::Stop {
                return match self.finish().await {
                    Err(Stumble::Store(StoreError::Closed)) => Ended::StoreClosed,
                    _ => Ended::Stopped,
                };
            }
            end.mark_unchanged();
            match self.step().await {
                Ok(true) => {}
                Ok(false) if now == Mode::Drain && self.held.is_empty() => {
                    match self.finish().await {
                        Ok(()) => return Ended::Drained,
                        Err(stumble) => {
                            if let Some(ended) = self.stumbled(stumble, now, &mut mode).await {
                                return ended;
                            }
                        }
                    }
                }
                Ok(false) => {
                    let next = self.held.next_try();
                    tokio::select! {
                        _ = end.changed() => {}
                        _ = mode.changed() => {}
                        () = self.until(next) => {}
                    }
                }
                Err(stumble) => {
                    if let Some(ended) = self.stumbled(stumble, now, &mut mode).await {
                        return ended;
                    }
                }
            }
        }
    }

    /// Does one thing; false when there is nothing to do now.
    async fn step(&mut self) -> Result<bool, Stumble> {
        if let Some(sequence) = self.held.due(self.clock.monotonic()) {
            self.try_again(sequence).await?;
            self.report().await?;
            return Ok(true);
        }
        if self.waiting.is_empty() && self.held.len() < HELD && !self.read()? {
            return Ok(false);
        }
        if self.held.len() >= HELD {
            return Ok(false);
        }
        self.deliver().await?;
        self.report().await?;
        Ok(true)
    }

    /// Reads the next batch; false when there is none.
    fn read(&mut self) -> Result<bool, Stumble> {
        let batch: OutboxBatch =
            self.store
                .outbox(self.sink.name(), self.read_to, self.settings.batch_bytes)?;
        let Some(up_to) = batch.up_to else {
            return Ok(false);
        };
        for unreadable in batch.unreadable {
            tracing::error!(
                sink = self.sink.name(),
                sequence = unreadable.sequence,
                detail = unreadable.detail,
                "an outbox entry does not read; it is set aside as a dead letter"
            );
            self.dead.push(DeadLetter {
                sink: self.sink.name().to_owned(),
                sequence: unreadable.sequence,
                key: format!("outbox/{}", unreadable.sequence),
                error: unreadable.detail,
                line: base64::engine::general_purpose::STANDARD.encode(&unreadable.raw),
                at: self.clock.wall(),
            });
            self.status.send_modify(|status| status.dead += 1);
        }
        self.read_to = Some(up_to);
        self.waiting.extend(batch.entries);
        if self.waiting.is_empty() {
            self.handled = up_to;
        }
        Ok(true)
    }

    /// Offers what waits, up to the first entry whose record is held.
    async fn deliver(&mut self) -> Result<(), Stumble> {
        let free = self.free();
        let batch = self.waiting.make_contiguous();
        if free == 0 {
            if let Some(entry) = self.waiting.pop_front() {
                self.handled = self.handled.max(entry.sequence);
                self.hold(entry, 0);
            }
        } else {
            let delivered = self
                .sink
                .deliver(batch.get(..free).unwrap_or_default())
                .await
                .map_err(Stumble::Sink)?;
            if delivered.done == 0 {
                return Err(Stumble::Sink(SinkError::new(
                    self.sink.name(),
                    "it took nothing and did not say why",
                )));
            }
            self.recovered();
            self.settle(delivered);
        }
        if let (true, Some(up_to)) = (self.waiting.is_empty(), self.read_to) {
            self.handled = up_to;
        }
        Ok(())
    }

    /// What the sink has taken or refused leaves the queue.
    fn settle(&mut self, delivered: Delivered) {
        let mut refused = delivered.refused.into_iter().peekable();
        let mut taken = 0;
        for at in 0..delivered.done {
            let Some(entry) = self.waiting.pop_front() else {
                break;
            };
            self.handled = entry.sequence;
            match refused.next_if(|(index, _)| *index == at) {
                Some((_, word)) => self.refused(entry, 1, &word),
                None => taken += 1,
            }
        }
        self.status.send_modify(|status| status.delivered += taken);
    }

    /// How many entries from the front may be offered at once.
    fn free(&self) -> usize {
        if !self.sink.may_refuse() {
            return self.waiting.len();
        }
        let mut offered = HashSet::new();
        self.waiting
            .iter()
            .take_while(|entry| {
                !self.held.blocks(entry) && offered.insert((&*entry.unit, entry.id.as_str()))
            })
            .count()
    }

    /// Offers one held entry by itself.
    async fn try_again(&mut self, sequence: Sequence) -> Result<(), Stumble> {
        let Some(entry) = self.held.get(sequence) else {
            return Ok(());
        };
        let delivered = self
            .sink
            .deliver(std::slice::from_ref(entry))
            .await
            .map_err(Stumble::Sink)?;
        self.recovered();
        if let Some(held) = self.held.take(sequence) {
            match delivered.refused.into_iter().next() {
                Some((_, word)) => self.refused(held.entry, held.tries + 1, &word),
                None => self.status.send_modify(|status| status.delivered += 1),
            }
        }
        self.show_held();
        Ok(())
    }

    /// The sink has refused an entry for the `tries`-th time.
    fn refused(&mut self, entry: OutboxEntry, tries: u32, word: &str) {
        let key = self.lines.key(&entry);
        if tries < self.settings.refused_tries {
            tracing::warn!(
                sink = self.sink.name(),
                key,
                tries,
                word,
                "the sink refuses an entry; it is tried again"
            );
            self.hold(entry, tries);
            return;
        }
        tracing::error!(
            sink = self.sink.name(),
            key,
            tries,
            word,
            "the sink refuses an entry for good; it is a dead letter"
        );
        let mut line = Vec::new();
        self.lines.write(&entry, &mut line);
        self.dead.push(DeadLetter {
            sink: self.sink.name().to_owned(),
            sequence: entry.sequence,
            key,
            error: word.to_owned(),
            line: String::from_utf8_lossy(&line).trim_end().to_owned(),
            at: self.clock.wall(),
        });
        self.status.send_modify(|status| status.dead += 1);
    }

    fn hold(&mut self, entry: OutboxEntry, tries: u32) {
        let wait = match tries {
            0 => 0,
            tries => self.settings.refused.ceiling(tries),
        };
        let next = self.clock.monotonic() + Duration::from_millis(wait);
        self.held.hold(Held { entry, tries, next });
        self.show_held();
    }

    fn show_held(&self) {
        let held = self.held.len() as u64;
        self.status.send_modify(|status| status.held = held);
    }

    /// Holds nothing of the loop while it waits, so the loop may move between threads.
    fn until(&self, moment: Option<Duration>) -> impl Future<Output = ()> + Send + use<> {
        let sleep = moment.map(|moment| {
            self.clock
                .sleep(moment.saturating_sub(self.clock.monotonic()))
        });
        async move {
            match sleep {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Tells the store what has been handled. A few such reports may be on their way at once, so that the sink does
    /// not wait for the store's fsync.
    async fn report(&mut self) -> Result<(), Stumble> {
        let up_to = match self.held.oldest() {
            Some(oldest) => oldest.saturating_sub(1).min(self.handled),
            None => self.handled,
        };
        if up_to > self.reported || !self.dead.is_empty() {
            let dead = std::mem::take(&mut self.dead);
            let durable = self.store.delivered(self.sink.name(), up_to, dead.clone());
            self.reports.push_back(Report { durable, dead });
            self.reported = up_to;
        }
        while self.reports.len() >= UNACKNOWLEDGED_BATCHES {
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
            // Reported again with the next one.
            self.reported = 0;
            self.dead.extend(report.dead);
            return Err(error.into());
        }
        Ok(())
    }

    /// Waits until everything that was handled is stored as such.
    async fn finish(&mut self) -> Result<(), Stumble> {
        self.report().await?;
        while !self.reports.is_empty() {
            self.settle_report().await?;
        }
        Ok(())
    }

    fn recovered(&mut self) {
        if self.failures > 0 {
            tracing::info!(
                sink = self.sink.name(),
                failures = self.failures,
                "the sink takes records again"
            );
            self.failures = 0;
            self.status.send_modify(|status| status.failing = None);
        }
    }

    /// Waits after a failure; tells when there is no point in going on.
    async fn stumbled(
        &mut self,
        stumble: Stumble,
        now: Mode,
        mode: &mut watch::Receiver<Mode>,
    ) -> Option<Ended> {
        let error = match stumble {
            Stumble::Store(StoreError::Closed) => return Some(Ended::StoreClosed),
            Stumble::Sink(error) if error.closed => {
                let _ = self.finish().await;
                return Some(Ended::Closed(error));
            }
            Stumble::Sink(error) => error,
            Stumble::Store(error) => SinkError::new(self.sink.name(), error.to_string()),
        };
        self.failures += 1;
        if now == Mode::Drain && self.failures >= self.settings.drain_tries {
            let _ = self.finish().await;
            return Some(Ended::GaveUp(error));
        }
        let wait = self.settings.backoff.draw(self.failures, &mut self.rng);
        tracing::warn!(%error, tries = self.failures, wait_ms = wait, "nothing is delivered; polling goes on");
        let wall = self.clock.wall();
        let tries = self.failures;
        self.status.send_modify(|status| {
            status.failing = Some(Failing {
                since: status
                    .failing
                    .as_ref()
                    .map_or(wall, |failing| failing.since),
                tries,
                error: error.to_string(),
                next: wall.saturating_add_unsigned(wait),
            });
        });
        tokio::select! {
            () = self.clock.sleep(Duration::from_millis(wait)) => {}
            _ = mode.changed() => {}
        }
        None
    }
}

fn mode_of(mode: &mut watch::Receiver<Mode>) -> Mode {
    match mode.has_changed() {
        Ok(_) => *mode.borrow_and_update(),
        Err(_) => Mode::Stop,
    }
}

#[cfg(test)]
mod tests;
