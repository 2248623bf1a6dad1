//! One run: hosts are started and end, time goes on when nothing can run, and what is to happen happens.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tokio::runtime::Builder;
use weir_rules::model::Timestamp;
use weir_tests::vendor::Vendor;

use super::sink::SimSink;
use super::stage::{Counts, Stage};
use super::transport::SimTransport;
use super::{Ending, Finished, Happening, RunError, Setup, SimClock, Watcher, What};
use crate::deliveries::Deliveries;
use crate::host::{DRAIN, Host, Parts};
use crate::oauth::KeySource;
use crate::random::Random;
use crate::sink::Sink;
use crate::stop::Stop;
use crate::store::{Committed, MemoryOptions, MemoryStore, Store as _};

/// Runs the setup from its start to its end. All chance follows from the seed, the vendors' included; theirs also from
/// the seeds of their specs. It may run on any thread that has a stack of 2 MiB and is not within an asynchronous
/// runtime.
///
/// # Errors
/// [`RunError::Violation`] is the first that `watch` saw; everything else means that the setup can't be run.
pub fn run(
    setup: &Setup,
    happenings: &[Happening],
    seed: u64,
    watch: Watcher,
) -> Result<Finished, RunError> {
    let vendors = vendors(setup, seed)?;
    lock(&watch).begun(&vendors);
    let stage = Arc::new(Stage::new(SimClock::new(setup.start), vendors, watch));
    let mut plan: Vec<Happening> = happenings.to_vec();
    plan.sort_by_key(|happening| happening.at);
    let mut run = Run {
        setup,
        stage,
        end: setup.start.saturating_add_unsigned(setup.length),
        plan: plan.into(),
        seed,
        boots: 0,
    };
    loop {
        match run.live()? {
            Over::Finished(finished) => return Ok(*finished),
            Over::Down { pause } => {
                if let Some(finished) = run.stay_down(pause)? {
                    return Ok(finished);
                }
            }
        }
    }
}

/// The vendors, open for business, no two of them with one base.
fn vendors(setup: &Setup, seed: u64) -> Result<Vec<Arc<Vendor>>, RunError> {
    let mut vendors: Vec<Arc<Vendor>> = Vec::with_capacity(setup.vendors.len());
    for spec in &setup.vendors {
        if let Some(other) = vendors.iter().find(|other| other.spec().base == spec.base) {
            return Err(RunError::Setup(format!(
                "vendors {} and {} have the same base {:?}: give each its own, such as base = \"/{}\", and put it into \
                 the connection's URL",
                other.spec().name,
                spec.name,
                spec.base,
                spec.name
            )));
        }
        let mut spec = spec.clone();
        spec.seed = mix(spec.seed, seed);
        vendors.push(Arc::new(Vendor::new(spec, setup.start)?));
    }
    Ok(vendors)
}

/// Two numbers into one that differs in every bit when either differs in any (SplitMix64).
fn mix(one: u64, other: u64) -> u64 {
    let mut z = one
        .rotate_left(32)
        .wrapping_add(other.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Run<'a> {
    setup: &'a Setup,
    stage: Arc<Stage>,
    /// By the world's time.
    end: Timestamp,
    plan: VecDeque<Happening>,
    seed: u64,
    boots: u32,
}

/// How a boot ended.
enum Over {
    Finished(Box<Finished>),
    Down { pause: u64 },
}

/// One process: whether it still lives, and whether it has anything to do.
#[derive(Default)]
pub(super) struct Life {
    over: AtomicBool,
    stopped: AtomicBool,
    /// Nothing can run.
    idle: AtomicBool,
    root: Mutex<Option<Waker>>,
    /// Why the setup can't be run.
    trouble: Mutex<Option<String>>,
}

impl Life {
    /// The process is dead: it does nothing more, whatever its tasks may believe.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    fn cannot(&self, why: String) {
        *lock(&self.trouble) = Some(why);
    }

    /// The runtime has run out of tasks.
    fn ran_out(&self) {
        self.idle.store(true, Ordering::Relaxed);
        if let Some(root) = lock(&self.root).take() {
            root.wake();
        }
    }

    /// Ends when nothing can run until time has passed.
    async fn idle(&self) {
        self.idle.store(false, Ordering::Relaxed);
        poll_fn(|context| {
            if self.idle.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            *lock(&self.root) = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// A process with what drives it.
struct Boot {
    host: Arc<Host>,
    store: Arc<MemoryStore>,
    life: Arc<Life>,
    /// For how long it is down when it has ended.
    pause: u64,
}

impl Run<'_> {
    /// Starts a process and lets it live.
    fn live(&mut self) -> Result<Over, RunError> {
        let life = Arc::new(Life::default());
        let parking = life.clone();
        let runtime = Builder::new_current_thread()
            .on_thread_park(move || parking.ran_out())
            .build()
            .map_err(|error| RunError::Setup(format!("no runtime: {error}")))?;
        self.boots += 1;
        let boot = self.boot(life)?;
        let over = runtime.block_on(self.drive(boot));
        // Whatever the process still had in hand is dropped with its runtime.
        drop(runtime);
        over
    }

    fn boot(&self, life: Arc<Life>) -> Result<Boot, RunError> {
        let stage = self.stage.clone();
        let dying = life.clone();
        let store = MemoryStore::open(
            &stage.file,
            MemoryOptions {
                polls: self.setup.config.host.poll_log,
                fuse: Some(stage.fuse.clone()),
                on_commit: Some({
                    let stage = stage.clone();
                    Arc::new(move |committed| tell_of(&stage, committed))
                }),
                on_death: Some(Arc::new(move || dying.end())),
            },
        )?;
        let seed = mix(self.seed, u64::from(self.boots));
        let host = Host::with(
            self.setup.config.clone(),
            Stop::default(),
            Parts {
                clock: Arc::new(stage.clock.clone()),
                random: Random::seeded(seed),
                store: store.clone(),
                transport: Arc::new(SimTransport {
                    stage: stage.clone(),
                    life: life.clone(),
                }),
                runtime: self.setup.machine.runtime.clone(),
                catalogue: self.setup.machine.catalogue.clone(),
                // Nobody looks for secrets in a simulated store, and nothing is kept of it.
                key: KeySource::Given([0; 32]),
            },
        )?;
        stage.tell(|watch, now| watch.started(now, self.boots));
        Ok(Boot {
            host,
            store,
            life,
            pause: 0,
        })
    }

    async fn drive(&mut self, mut boot: Boot) -> Result<Over, RunError> {
        tokio::spawn(serve(
            boot.host.clone(),
            self.sinks(&boot.life),
            boot.life.clone(),
        ));
        loop {
            boot.life.idle().await;
            if let Some(violation) = self.stage.violation() {
                return Err(violation.into());
            }
            if let Some(why) = lock(&boot.life.trouble).take() {
                return Err(RunError::Setup(why));
            }
            if boot.life.is_over() {
                let how = if boot.life.stopped.load(Ordering::Relaxed) {
                    Ending::Stopped
                } else {
                    Ending::Died
                };
                self.stage.tell(|watch, now| watch.ended(now, how));
                return Ok(Over::Down { pause: boot.pause });
            }
            if self.plan.is_empty() && self.stage.is_at_rest() {
                return self
                    .finish()
                    .map(|finished| Over::Finished(finished.into()));
            }
            let planned = self.planned();
            let wake = self.stage.clock.next_wake();
            let next = [planned, wake].into_iter().flatten().min();
            match next {
                Some(next) if next < self.end => {
                    self.stage.clock.pass_until(next);
                    if planned == Some(next) {
                        self.happen(Some(&mut boot));
                    }
                }
                _ => {
                    self.stage.clock.pass_until(self.end);
                    return self
                        .finish()
                        .map(|finished| Over::Finished(finished.into()));
                }
            }
        }
    }

    /// When the next happening is due.
    fn planned(&self) -> Option<Timestamp> {
        let next = self.plan.front()?;
        Some(self.setup.start.saturating_add_unsigned(next.at))
    }

    /// The next happening takes place.
    fn happen(&mut self, boot: Option<&mut Boot>) {
        let Some(happening) = self.plan.pop_front() else {
            return;
        };
        self.stage
            .tell(|watch, now| watch.happened(now, &happening.what));
        match happening.what {
            What::Jump { ms } => self.stage.clock.jump(ms),
            What::SinkDown { sink, ms } => self.stage.take_down(sink.as_deref(), ms),
            What::Sleep { ms } => {
                // Not beyond the end: whoever wakes must find something to judge.
                let left = self.end.saturating_sub(self.stage.clock.now().world);
                self.stage.clock.suspend(ms.min(left.max(0).unsigned_abs()));
            }
            What::Still => {
                let now = self.stage.clock.now().world;
                self.stage
                    .vendors
                    .iter()
                    .for_each(|vendor| vendor.freeze(now));
            }
            What::Fuse { spared, cut, pause } => {
                if let Some(boot) = boot {
                    self.stage.fuse.set(spared, cut.into());
                    boot.pause = pause;
                }
            }
            What::Kill { pause } => {
                if let Some(boot) = boot {
                    boot.pause = pause;
                    boot.store.kill();
                }
            }
            What::Stop { pause } => {
                if let Some(boot) = boot {
                    boot.pause = pause;
                    boot.host.stop.stop();
                }
            }
            What::Ask { unit, reason } => {
                if let Some(boot) = boot
                    && let Some(id) = self.stage.file.named(&unit)
                {
                    // Nobody waits for the report.
                    drop(boot.host.scheduler.ask(id, reason));
                }
            }
        }
    }

    /// Time goes by without a host.
    fn stay_down(&mut self, pause: u64) -> Result<Option<Finished>, RunError> {
        // A fuse belongs to the process that it was set for.
        self.stage.fuse.clear();
        let until = self.stage.clock.now().world.saturating_add_unsigned(pause);
        while let Some(planned) = self.planned().filter(|at| *at < until.min(self.end)) {
            self.stage.clock.pass_until(planned);
            self.happen(None);
        }
        self.stage.clock.pass_until(until.min(self.end));
        if until < self.end {
            return Ok(None);
        }
        self.finish().map(Some)
    }

    fn finish(&self) -> Result<Finished, RunError> {
        let stage = &self.stage;
        let store = MemoryStore::open(&stage.file, MemoryOptions::default())?;
        let mut units = Vec::new();
        store.for_each_unit(&mut |unit| units.push(unit))?;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let finished = Finished {
            at: stage.clock.now(),
            boots: self.boots,
            polls: count(&stage.counts.polls),
            calls: count(&stage.counts.calls),
            commits: count(&stage.counts.commits),
            delivered: count(&stage.counts.delivered),
            units,
            waiting: store.outbox_size()?.entries,
            vendors: stage.vendors.clone(),
        };
        stage.tell(|watch, _| watch.finished(&finished));
        match stage.violation() {
            Some(violation) => Err(violation.into()),
            None => Ok(finished),
        }
    }

    /// The configuration's sinks by name, each with a far end of its own.
    fn sinks(&self, life: &Arc<Life>) -> Vec<Box<dyn Sink>> {
        let names = self.setup.config.sinks.keys();
        names
            .map(|name| {
                Box::new(SimSink {
                    name: name.clone(),
                    stage: self.stage.clone(),
                    life: life.clone(),
                }) as Box<dyn Sink>
            })
            .collect()
    }
}

/// What `weir run` does with its host.
async fn serve(host: Arc<Host>, sinks: Vec<Box<dyn Sink>>, life: Arc<Life>) {
    let deliveries = Deliveries::start_with(&host, sinks).await;
    if host.prepare(true).await.is_ok() {
        for (name, state) in host.connections.all() {
            if let Err(why) = state {
                life.cannot(format!("connection {name}: {why}"));
                return;
            }
        }
        host.run().await;
    }
    if let Ok(deliveries) = deliveries {
        deliveries.finish(&host, DRAIN).await;
    }
    if !life.is_over() {
        life.stopped.store(true, Ordering::Relaxed);
        life.end();
    }
}

fn tell_of(stage: &Stage, committed: &Committed<'_>) {
    stage.admit();
    Counts::add(&stage.counts.commits, 1);
    stage.tell(|watch, now| watch.committed(now, committed));
    if let Some(row) = committed.poll {
        Counts::add(&stage.counts.polls, 1);
        stage.tell(|watch, now| watch.poll_ended(now, row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_make_a_difference_and_the_same_ones_none() {
        assert_eq!(mix(1, 2), mix(1, 2));
        assert_ne!(mix(1, 2), mix(2, 1));
        assert_ne!(mix(0, 0), mix(0, 1));
    }
}
