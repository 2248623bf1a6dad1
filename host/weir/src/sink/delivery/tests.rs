use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot::error::TryRecvError;

use weir_rules::model::Timestamp;

use super::*;
use crate::clock::BoxFuture;
use crate::store::{
    Commit, Conclusion, Cut, Fuse, MemoryDisk, PreparedRecord, RecordData, RedbStore, StoreOptions,
    Ticket, UnitId, UnitKey,
};

/// A clock on which a sleep takes no time: it moves the clock on by its length.
#[derive(Default)]
struct LeapingClock {
    now: AtomicU64,
}

impl Clock for LeapingClock {
    fn wall(&self) -> Timestamp {
        1_700_000_000_000 + self.now.load(Ordering::SeqCst) as i64
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.now.load(Ordering::SeqCst))
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        self.now
            .fetch_add(wait.as_millis() as u64, Ordering::SeqCst);
        Box::pin(tokio::task::yield_now())
    }
}

type Answer = Box<dyn FnMut(&[OutboxEntry]) -> Result<Delivered, SinkError> + Send>;

/// A sink that answers as it is told.
struct Scripted {
    answer: Answer,
}

impl Sink for Scripted {
    fn name(&self) -> &str {
        "out"
    }

    fn may_refuse(&self) -> bool {
        true
    }

    fn deliver<'a>(
        &'a mut self,
        batch: &'a [OutboxEntry],
    ) -> BoxFuture<'a, Result<Delivered, SinkError>> {
        let answer = (self.answer)(batch);
        Box::pin(async move { answer })
    }
}

struct Bench {
    store: Arc<RedbStore>,
    fuse: Arc<Fuse>,
    clock: Arc<LeapingClock>,
    unit: UnitId,
    mode: watch::Sender<Mode>,
}

impl Bench {
    async fn new() -> Self {
        let fuse = Arc::new(Fuse::new());
        let options = StoreOptions {
            fuse: Some(fuse.clone()),
            ..StoreOptions::default()
        };
        let store = RedbStore::in_memory(MemoryDisk::new(), options).unwrap();
        store.set_sinks(vec!["out".into()]).await.unwrap().unwrap();
        let key = UnitKey {
            connection: "acme".into(),
            stream: "orders".into(),
            partition: None,
        };
        let unit = store.ensure_unit(&key).await.unwrap().unwrap().id;
        Bench {
            store,
            fuse,
            clock: Arc::default(),
            unit,
            mode: watch::Sender::new(Mode::Drain),
        }
    }

    async fn put(&self, records: &[(&str, u8)]) {
        commit(&self.store, self.unit, records)
            .await
            .unwrap()
            .unwrap();
    }

    fn delivery(
        &self,
        answer: impl FnMut(&[OutboxEntry]) -> Result<Delivered, SinkError> + Send + 'static,
    ) -> Delivery {
        let sink = Box::new(Scripted {
            answer: Box::new(answer),
        });
        let settings = DeliverySettings {
            seed: 7,
            ..DeliverySettings::default()
        };
        Delivery::new(self.store.clone(), self.clock.clone(), sink, settings)
    }

    fn waiting(&self) -> u64 {
        self.store.outbox_size().unwrap().entries
    }
}

/// Records by id and content.
fn commit(store: &RedbStore, unit: UnitId, records: &[(&str, u8)]) -> Durable<crate::store::Seen> {
    store.commit(Commit {
        unit,
        ticket: Ticket(1),
        seen_at: 0,
        records: records
            .iter()
            .map(|(id, content)| PreparedRecord {
                id: (*id).to_owned(),
                hash: [*content; 32],
                updated_at: None,
                deleted: false,
                data: RecordData::Text(format!("{{\"content\":{content}}}").into()),
            })
            .collect(),
        validators: Vec::new(),
        budgets: Vec::new(),
        conclude: Box::new(|_| Conclusion::default()),
    })
}

type Taken = Arc<Mutex<Vec<(String, u64)>>>;

fn taken(taken: &Taken) -> Vec<(String, u64)> {
    taken.lock().unwrap().clone()
}

fn all(batch: &[OutboxEntry]) -> Delivered {
    Delivered {
        done: batch.len(),
        refused: Vec::new(),
    }
}

fn named(entry: &OutboxEntry) -> (String, u64) {
    (entry.id.clone(), entry.revision)
}

/// Takes everything but the entries that `refuses` says.
fn picky(
    log: &Taken,
    mut refuses: impl FnMut(&OutboxEntry) -> bool + Send + 'static,
) -> impl FnMut(&[OutboxEntry]) -> Result<Delivered, SinkError> + Send + 'static {
    let log = log.clone();
    move |batch| {
        let mut delivered = all(batch);
        for (at, entry) in batch.iter().enumerate() {
            if refuses(entry) {
                delivered.refused.push((at, "400 no such field".into()));
            } else {
                log.lock().unwrap().push(named(entry));
            }
        }
        Ok(delivered)
    }
}

#[tokio::test]
async fn all_that_is_there_is_delivered_in_order_and_forgotten() {
    let bench = Bench::new().await;
    let log = Taken::default();
    bench.put(&[("1", 1), ("2", 1)]).await;
    bench.put(&[("2", 2), ("3", 1)]).await;
    let delivery = bench.delivery(picky(&log, |_| false));
    let status = delivery.status();
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    let expected = [("1", 1), ("2", 1), ("2", 2), ("3", 1)];
    assert_eq!(
        taken(&log),
        expected.map(|(id, revision)| (id.to_owned(), revision))
    );
    assert_eq!(status.borrow().delivered, 4);
    assert_eq!(bench.waiting(), 0);
}

#[tokio::test]
async fn a_commit_wakes_the_loop_and_a_stop_ends_it() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    let log = Taken::default();
    let delivery = bench.delivery(picky(&log, |_| false));
    let mut status = delivery.status();
    let running = tokio::spawn(delivery.run(bench.mode.subscribe()));
    for number in 1..=5_u8 {
        bench.put(&[("1", number)]).await;
        status
            .wait_for(|status| status.delivered == u64::from(number))
            .await
            .unwrap();
    }
    bench.mode.send_replace(Mode::Stop);
    assert_eq!(running.await.unwrap(), Ended::Stopped);
    assert_eq!(
        bench.waiting(),
        0,
        "the last acknowledgement was waited for"
    );
}

#[tokio::test]
async fn a_loop_without_a_master_stops() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    let running = tokio::spawn(
        bench
            .delivery(|batch| Ok(all(batch)))
            .run(bench.mode.subscribe()),
    );
    drop(bench.mode);
    assert_eq!(running.await.unwrap(), Ended::Stopped);
}

#[tokio::test]
async fn a_sink_that_fails_is_tried_again_and_nothing_is_skipped() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    bench.put(&[("1", 1), ("2", 1), ("3", 1)]).await;
    let log = Taken::default();
    let mut good = picky(&log, |_| false);
    let mut failures = 0;
    // Fails six times, takes one entry, fails again, then takes the rest.
    let delivery = bench.delivery(move |batch| {
        failures += 1;
        match failures {
            1..=6 | 8 => Err(SinkError::new("out", "connection refused")),
            7 => good(&batch[..1]),
            _ => good(batch),
        }
    });
    let mut status = delivery.status();
    let mut failing = status.clone();
    let running = tokio::spawn(delivery.run(bench.mode.subscribe()));
    let seen = failing
        .wait_for(|status| status.failing.is_some())
        .await
        .unwrap()
        .clone();
    assert_eq!(seen.failing.unwrap().error, "sink out: connection refused");
    status
        .wait_for(|status| status.delivered == 3)
        .await
        .unwrap();
    bench.mode.send_replace(Mode::Stop);
    assert_eq!(running.await.unwrap(), Ended::Stopped);
    assert_eq!(status.borrow().failing, None);
    assert_eq!(taken(&log).len(), 3);
    assert_eq!(bench.waiting(), 0);
    assert!(
        bench.clock.monotonic() > Duration::ZERO,
        "it waited between the tries"
    );
}

#[tokio::test]
async fn draining_gives_up_on_a_sink_that_keeps_failing() {
    let bench = Bench::new().await;
    bench.put(&[("1", 1)]).await;
    let error = SinkError::new("out", "disk full");
    let answer = error.clone();
    let mut tries = 0;
    let counted = Arc::new(AtomicU64::new(0));
    let count = counted.clone();
    let delivery = bench.delivery(move |_| {
        tries += 1;
        count.store(tries, Ordering::SeqCst);
        Err(answer.clone())
    });
    assert_eq!(
        delivery.run(bench.mode.subscribe()).await,
        Ended::GaveUp(error)
    );
    assert_eq!(counted.load(Ordering::SeqCst), 4);
    assert_eq!(bench.waiting(), 1);
}

#[tokio::test]
async fn a_closed_sink_ends_the_loop_at_once() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    bench.put(&[("1", 1)]).await;
    let error = SinkError {
        closed: true,
        ..SinkError::new("out", "broken pipe")
    };
    let answer = error.clone();
    let delivery = bench.delivery(move |_| Err(answer.clone()));
    assert_eq!(
        delivery.run(bench.mode.subscribe()).await,
        Ended::Closed(error)
    );
    assert_eq!(bench.waiting(), 1);
}

#[tokio::test]
async fn case_149_a_refused_entry_is_tried_on_a_growing_schedule_and_set_aside() {
    let bench = Bench::new().await;
    let ids = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];
    bench.put(&ids.map(|id| (id, 1))).await;
    let log = Taken::default();
    let tries = Arc::new(Mutex::new(Vec::new()));
    let (clock, times, store, unit) = (
        bench.clock.clone(),
        tries.clone(),
        bench.store.clone(),
        bench.unit,
    );
    let mut traffic = 0_u8;
    let delivery = bench.delivery(picky(&log, move |entry| {
        if entry.id != "5" {
            return false;
        }
        times.lock().unwrap().push(clock.monotonic());
        // Good traffic between the tries.
        traffic += 1;
        let mut more = commit(&store, unit, &[(&format!("more {traffic}"), 1)]);
        while matches!(more.try_recv(), Err(TryRecvError::Empty)) {
            std::thread::yield_now();
        }
        true
    }));
    let status = delivery.status();
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);

    let good: Vec<String> = taken(&log)
        .into_iter()
        .map(|(id, _)| id)
        .filter(|id| !id.starts_with("more"))
        .collect();
    assert_eq!(good, ["1", "2", "3", "4", "6", "7", "8", "9", "10"]);
    let tries = tries.lock().unwrap().clone();
    assert_eq!(tries.len(), 6);
    let gaps: Vec<Duration> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.is_sorted_by(|one, next| one < next), "{gaps:?}");
    let letters = bench.store.dead_letters(9).unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (letters[0].key.as_str(), letters[0].error.as_str()),
        ("acme/orders/5/1", "400 no such field")
    );
    let line: serde_json::Value = serde_json::from_str(&letters[0].line).unwrap();
    assert_eq!(line["data"]["content"], 1);
    let status = status.borrow().clone();
    assert_eq!((status.dead, status.held, status.delivered), (1, 0, 9 + 6));
    assert_eq!(bench.waiting(), 0);
}

#[tokio::test]
async fn later_versions_of_a_refused_record_wait_behind_it() {
    let bench = Bench::new().await;
    bench
        .put(&[("1", 1), ("2", 1), ("1", 2), ("3", 1), ("1", 3)])
        .await;
    let log = Taken::default();
    let mut left = 3;
    let delivery = bench.delivery(picky(&log, move |entry| {
        let refuse = named(entry) == ("1".into(), 1) && left > 0;
        left -= i32::from(refuse);
        refuse
    }));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    let of_one: Vec<u64> = taken(&log)
        .into_iter()
        .filter(|(id, _)| id == "1")
        .map(|(_, revision)| revision)
        .collect();
    assert_eq!(of_one, [1, 2, 3]);
    assert_eq!(taken(&log).len(), 5);
    let others: Vec<String> = taken(&log)
        .into_iter()
        .map(|(id, _)| id)
        .filter(|id| id != "1")
        .collect();
    assert_eq!(others, ["2", "3"]);
    assert_eq!(taken(&log)[0].0, "2", "nobody else waits");
    assert_eq!(bench.store.dead_letters(9).unwrap(), []);
    assert_eq!(bench.waiting(), 0);
}

#[tokio::test]
async fn an_acknowledgement_that_is_not_stored_is_given_again() {
    let bench = Bench::new().await;
    bench.put(&[("1", 1)]).await;
    bench.fuse.set(0, Cut::Refuse);
    let log = Taken::default();
    let delivery = bench.delivery(picky(&log, |entry| entry.id == "none"));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    assert_eq!(taken(&log).len(), 1, "the sink is not asked twice for it");
    assert_eq!(bench.waiting(), 0);
}

#[tokio::test]
async fn a_store_that_dies_ends_the_loop() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    bench.put(&[("1", 1), ("2", 1)]).await;
    bench.fuse.set(0, Cut::DieBefore);
    let delivery = bench.delivery(|batch| Ok(all(&batch[..1])));
    assert_eq!(
        delivery.run(bench.mode.subscribe()).await,
        Ended::StoreClosed
    );
}

#[tokio::test]
async fn an_empty_answer_is_a_failure_and_no_busy_loop() {
    let bench = Bench::new().await;
    bench.put(&[("1", 1)]).await;
    let delivery = bench.delivery(|_| Ok(Delivered::default()));
    assert!(matches!(
        delivery.run(bench.mode.subscribe()).await,
        Ended::GaveUp(_)
    ));
    assert_eq!(bench.waiting(), 1);
}
