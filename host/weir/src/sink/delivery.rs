//! The loop from the outbox to one sink.
//!
//! Promises:
//! - Entries are offered in outbox order, and offered again until the sink has taken them.
//! - A sink that fails as a whole is tried again with full-jitter backoff, or when it has said; nothing is lost and
//!   nothing skipped. One that needs a person is left alone until a person says so, or the host starts again.
//! - An entry that the sink refuses is tried again by itself on a growing schedule, whatever else is delivered
//!   meanwhile, and becomes a dead letter after the last try. Later entries of the same record wait behind it.
//!   Tries are counted over restarts.
//! - A batch with something that is refused is offered in parts until that is found.
//! - Where the sink wants it, each delivery has a key that is stored with the batch's extent before the first try:
//!   whatever is tried again, also after a crash, is the same batch under the same key.
//! - A dead letter that a person has requeued goes out before later revisions of its record, and never after one.
//! - What does not read in the outbox becomes a dead letter, and what lies behind it is delivered.
//! - Memory is bounded: one batch, a bounded number of refused entries, and the names of the letters' records.

mod held;
mod index;
mod letters;
mod parcel;
mod report;
mod settings;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::watch;
use weir_rules::wait;

use self::held::HeldEntries;
use self::index::LetterIndex;
use self::report::{Change, Report};
use crate::clock::Clock;
use crate::sink::line::Lines;
use crate::sink::{Delivered, Remedy, Sink, SinkError};
use crate::store::{DeadLetter, Intent, LetterState, OutboxEntry, Sequence, Store, StoreError};

pub use self::settings::{DeliverySettings, DeliveryStatus, Ended, Failing, Mode, Outage};

/// Refused entries that are held in memory at most; with more the loop reads no further until some are settled.
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
    /// A person says that the sink is in order again.
    resumed: watch::Sender<u64>,
    /// A person has decided about letters.
    decided: watch::Receiver<u64>,
    /// Read, and not handled yet.
    waiting: VecDeque<OutboxEntry>,
    /// The end of what was read.
    read_to: Option<Sequence>,
    /// All up to here is delivered or among the letters.
    handled: Sequence,
    /// All up to here has been reported to the store.
    reported: Sequence,
    held: HeldEntries,
    /// There are more held letters in the store than in memory.
    more_held: bool,
    letters: LetterIndex,
    /// What has become of letters since the last report.
    changes: BTreeMap<Sequence, Change>,
    reports: VecDeque<Report>,
    /// The delivery that is being tried: as many entries from the front.
    parcel: Option<Intent>,
    /// The stored intent has been answered for good.
    settled: bool,
    /// So many entries from the front hold one that the sink refuses.
    suspects: usize,
    /// Entries in a row that were refused as if the sink's address or credential were wrong.
    doors: Vec<Sequence>,
    /// Whole-sink failures in a row.
    failures: u32,
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

impl From<SinkError> for Stumble {
    fn from(error: SinkError) -> Self {
        Stumble::Sink(error)
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
            decided: store.letters_changed(),
            store,
            clock,
            sink,
            settings,
            lines: Lines::default(),
            status: watch::Sender::default(),
            resumed: watch::Sender::new(0),
            waiting: VecDeque::new(),
            read_to: None,
            handled: 0,
            reported: 0,
            held: HeldEntries::default(),
            more_held: false,
            letters: LetterIndex::default(),
            changes: BTreeMap::new(),
            reports: VecDeque::new(),
            parcel: None,
            settled: false,
            suspects: 0,
            doors: Vec::new(),
            failures: 0,
        }
    }

    /// How it is doing, from now on.
    pub fn status(&self) -> watch::Receiver<DeliveryStatus> {
        self.status.subscribe()
    }

    /// Where a person says that the sink is in order again: any change of the number.
    pub fn resumer(&self) -> watch::Sender<u64> {
        self.resumed.clone()
    }

    /// Delivers until told otherwise. Dropping the sender of `mode` is the same as [`Mode::Stop`].
    pub async fn run(mut self, mut mode: watch::Receiver<Mode>) -> Ended {
        let mut end = self.store.outbox_end();
        let mut decided = self.decided.clone();
        let mut begun = false;
        loop {
            let now = mode_of(&mut mode);
            if now == Mode::Stop {
                return match self.finish().await {
                    Err(Stumble::Store(StoreError::Closed)) => Ended::StoreClosed,
                    _ => Ended::Stopped,
                };
            }
            end.mark_unchanged();
            let stepped = if begun {
                self.step().await
            } else {
                self.begin().await.map(|()| {
                    begun = true;
                    true
                })
            };
            match stepped {
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
                        biased;
                        _ = end.changed() => {}
                        _ = decided.changed() => {}
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

    /// Takes up what an earlier run has left.
    async fn begin(&mut self) -> Result<(), Stumble> {
        self.reload_letters().await?;
        self.recall_parcel()
    }

    /// Does one thing; false when there is nothing to do now.
    async fn step(&mut self) -> Result<bool, Stumble> {
        if self.parcel.is_some() {
            // Whatever was tried is settled first: it may have been taken.
            let sent = self.send_parcel().await;
            self.report().await?;
            return sent.map(|()| true);
        }
        let decided = self.decided.has_changed().unwrap_or(false);
        if decided || (self.more_held && self.held.len() < HELD / 2) {
            self.decided.mark_unchanged();
            self.reload_letters().await?;
        }
        if let Some(sequence) = self.held.due(self.clock.monotonic()) {
            let tried = self.try_again(sequence).await;
            self.report().await?;
            return tried.map(|()| true);
        }
        if self.held.len() >= HELD || (self.waiting.is_empty() && !self.read()?) {
            return Ok(false);
        }
        let delivered = self.deliver().await;
        self.report().await?;
        delivered.map(|()| true)
    }

    /// Reads the next batch; false when there is none.
    fn read(&mut self) -> Result<bool, Stumble> {
        let batch = self
            .store
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
            self.letters.unreadable();
            let letter = DeadLetter {
                sink: self.sink.name().to_owned(),
                sequence: unreadable.sequence,
                key: format!("outbox/{}", unreadable.sequence),
                error: unreadable.detail,
                line: base64::engine::general_purpose::STANDARD.encode(&unreadable.raw),
                at: self.clock.wall(),
                state: LetterState::Dead,
                tries: 1,
                ..DeadLetter::default()
            };
            self.put_letter(letter);
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
        if free == 0 {
            if let Some(entry) = self.waiting.pop_front() {
                self.handled = entry.sequence;
                self.hold_behind(entry);
            }
            self.all_handled();
            return Ok(());
        }
        let offered = free.min(self.most());
        if self.sink.form().is_some() {
            self.new_parcel(offered).await?;
            return self.send_parcel().await;
        }
        let batch = self.waiting.make_contiguous();
        let delivered = self
            .sink
            .deliver(batch.get(..offered).unwrap_or_default(), None)
            .await;
        self.answered(delivered, offered, None)
    }

    /// How many entries from the front may be offered at once.
    fn free(&self) -> usize {
        if !self.sink.may_refuse() && self.letters.is_empty() {
            return self.waiting.len();
        }
        let mut offered = HashSet::new();
        self.waiting
            .iter()
            .take_while(|entry| {
                !self.letters.blocks(entry) && offered.insert((&*entry.unit, entry.id.as_str()))
            })
            .count()
    }

    /// How many are offered at most, while one that is refused is looked for.
    fn most(&self) -> usize {
        match (self.doors.is_empty(), self.suspects) {
            (false, _) => 1,
            (true, 0) => usize::MAX,
            (true, suspects) => (suspects / 2).max(1),
        }
    }

    /// The sink has answered an offer of so many entries from the front, under this key.
    fn answered(
        &mut self,
        answer: Result<Delivered, SinkError>,
        offered: usize,
        key: Option<&str>,
    ) -> Result<(), Stumble> {
        match answer {
            Ok(delivered) if delivered.done == 0 => Err(Stumble::Sink(SinkError::new(
                self.sink.name(),
                "it took nothing and did not say why",
            ))),
            Ok(delivered) => {
                self.recovered();
                let settled = self.settle(delivered, key);
                self.all_handled();
                settled
            }
            Err(error) if error.remedy == Remedy::Parts && offered > 1 => {
                self.recovered();
                tracing::debug!(%error, offered, "a batch is refused: it is offered in parts");
                self.suspects = offered;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What the sink has taken or refused leaves the queue.
    fn settle(&mut self, delivered: Delivered, key: Option<&str>) -> Result<(), Stumble> {
        let mut refused = delivered.refused.into_iter().peekable();
        let mut stop = Ok(());
        for at in 0..delivered.done {
            let Some(entry) = self.waiting.pop_front() else {
                break;
            };
            self.handled = entry.sequence;
            match refused.next_if(|(index, _)| *index == at) {
                Some((_, refusal)) => {
                    self.suspects = 0;
                    let since = self.status.borrow().delivered;
                    let refused = self.refused(entry, 1, &refusal, key.map(str::to_owned), since);
                    stop = stop.and(refused);
                }
                None => {
                    self.suspects = self.suspects.saturating_sub(1);
                    self.taken(&entry);
                }
            }
        }
        stop.map_err(Stumble::Sink)
    }

    fn taken(&mut self, entry: &OutboxEntry) {
        self.doors.clear();
        for outdated in self.letters.outdated(entry) {
            self.supersede(outdated, entry.revision);
        }
        self.status.send_modify(|status| status.delivered += 1);
    }

    /// With nothing waiting, all that was read is handled.
    fn all_handled(&mut self) {
        if let (true, Some(up_to)) = (self.waiting.is_empty(), self.read_to) {
            self.handled = up_to;
        }
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

    fn recovered(&mut self) {
        if self.failures > 0 {
            tracing::info!(
                sink = self.sink.name(),
                failures = self.failures,
                "the sink takes records again"
            );
            self.failures = 0;
            let until = self.clock.wall();
            self.status.send_modify(|status| {
                let over = status.failing.take().map(|failing| Outage {
                    since: failing.since,
                    until,
                    tries: failing.tries,
                    error: failing.error,
                });
                status.outage = over.or(status.outage.take());
            });
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
            Stumble::Sink(error) if error.remedy == Remedy::Gone => {
                let _ = self.finish().await;
                return Some(Ended::Closed(error));
            }
            Stumble::Sink(error) => error,
            Stumble::Store(error) => SinkError::new(self.sink.name(), error.to_string()),
        };
        self.failures = self.failures.saturating_add(1);
        let needs_person = error.remedy == Remedy::Person;
        if now == Mode::Drain && (needs_person || self.failures >= self.settings.drain_tries) {
            self.show_failing(&error, None);
            let _ = self.finish().await;
            return Some(Ended::GaveUp(error));
        }
        if needs_person {
            self.show_failing(&error, None);
            tracing::error!(%error, "nothing is delivered until a person has looked at the sink; polling goes on");
            self.person(mode).await;
            return None;
        }
        let wait = match error.remedy {
            Remedy::Wait(ms) => {
                let ms = wait::late(ms, &mut self.rng);
                self.keep_wait(ms).await;
                ms
            }
            _ => self.settings.backoff.draw(self.failures, &mut self.rng),
        };
        tracing::warn!(%error, tries = self.failures, wait_ms = wait, "nothing is delivered; polling goes on");
        self.show_failing(&error, Some(wait));
        tokio::select! {
            biased;
            () = self.clock.sleep(Duration::from_millis(wait)) => {}
            _ = mode.changed() => {}
        }
        None
    }

    /// Waits for a person to say that the sink is in order, or to decide about one of its letters.
    async fn person(&mut self, mode: &mut watch::Receiver<Mode>) {
        let mut resumed = self.resumed.subscribe();
        let mut decided = self.decided.clone();
        tokio::select! {
            biased;
            _ = mode.changed() => {}
            _ = resumed.changed() => {}
            _ = decided.changed() => {}
        }
        self.doors.clear();
        self.held.hurry();
    }

    fn show_failing(&self, error: &SinkError, wait: Option<u64>) {
        let wall = self.clock.wall();
        let tries = self.failures;
        self.status.send_modify(|status| {
            status.failures += 1;
            status.failing = Some(Failing {
                since: status
                    .failing
                    .as_ref()
                    .map_or(wall, |failing| failing.since),
                tries,
                error: error.to_string(),
                next: wait.map(|wait| wall.saturating_add_unsigned(wait)),
            });
        });
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
