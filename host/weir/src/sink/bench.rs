//! What the tests of the delivery loop and of sinks share: a store in memory, and a clock that leaps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use weir_rules::model::Timestamp;

use crate::clock::{BoxFuture, Clock};
use crate::sink::{Delivery, DeliverySettings, Mode, Sink};
use crate::store::{
    Commit, Conclusion, DeadLetter, Dedup, Durable, Fuse, LetterId, MemoryDisk, Op, OutboxEntry,
    PreparedRecord, RecordData, RedbStore, Seen, Store, StoreOptions, Ticket, UnitId, UnitKey,
};

/// 2023-11-14T22:13:20Z: when the tests begin.
pub(super) const NOW: i64 = 1_700_000_000_000;

/// A clock on which a sleep takes no time: it moves the clock on by its length.
#[derive(Default)]
pub(super) struct LeapingClock {
    now: AtomicU64,
}

impl Clock for LeapingClock {
    fn wall(&self) -> Timestamp {
        NOW + self.now.load(Ordering::SeqCst) as i64
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

/// So many entries of one unit, with this content each.
pub(super) fn entries(count: u64, data: &str) -> Vec<OutboxEntry> {
    let unit = Arc::new(UnitKey {
        connection: "acme".into(),
        stream: "orders".into(),
        partition: None,
    });
    (1..=count)
        .map(|sequence| OutboxEntry {
            sequence,
            unit: unit.clone(),
            id: sequence.to_string(),
            revision: 1,
            op: Op::Insert,
            updated_at: None,
            seen_at: 0,
            data: RecordData::Text(data.into()),
        })
        .collect()
}

/// A store with one unit and the sink `out`.
pub(super) struct Bench {
    pub(super) store: Arc<RedbStore>,
    pub(super) fuse: Arc<Fuse>,
    pub(super) clock: Arc<LeapingClock>,
    pub(super) unit: UnitId,
    pub(super) mode: watch::Sender<Mode>,
    disk: MemoryDisk,
    /// How many kills it has seen: chance differs after each.
    kills: u64,
}

impl Bench {
    pub(super) async fn new() -> Self {
        Self::on(MemoryDisk::new(), Arc::default()).await
    }

    async fn on(disk: MemoryDisk, clock: Arc<LeapingClock>) -> Self {
        let fuse = Arc::new(Fuse::new());
        let options = StoreOptions {
            fuse: Some(fuse.clone()),
            ..StoreOptions::default()
        };
        let store = RedbStore::in_memory(disk.clone(), options).unwrap();
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
            clock,
            unit,
            mode: watch::Sender::new(Mode::Drain),
            disk,
            kills: 0,
        }
    }

    /// What a start after a kill at this instant finds.
    pub(super) async fn after_a_kill(&self) -> Bench {
        self.after_a_kill_on(self.clock.clone()).await
    }

    /// The same by another clock.
    pub(super) async fn after_a_kill_on(&self, clock: Arc<LeapingClock>) -> Bench {
        let mut bench = Bench::on(self.disk.snapshot(), clock).await;
        bench.kills = self.kills + 1;
        bench
    }

    pub(super) async fn put(&self, records: &[(&str, u8)]) {
        commit(&self.store, self.unit, records)
            .await
            .unwrap()
            .unwrap();
    }

    pub(super) fn deliver_to(&self, sink: Box<dyn Sink>, settings: DeliverySettings) -> Delivery {
        let settings = DeliverySettings {
            seed: 7 + self.kills,
            ..settings
        };
        Delivery::new(self.store.clone(), self.clock.clone(), sink, settings)
    }

    pub(super) fn waiting(&self) -> u64 {
        self.store.outbox_size().unwrap().entries
    }

    pub(super) fn dead(&self) -> Vec<DeadLetter> {
        self.store.dead_letters(usize::MAX).unwrap()
    }

    pub(super) fn letter(&self, sequence: u64) -> Option<DeadLetter> {
        let id = LetterId {
            sink: "out".into(),
            sequence,
        };
        self.store.letter(&id).unwrap()
    }
}

/// Records by id and content.
pub(super) fn commit(store: &RedbStore, unit: UnitId, records: &[(&str, u8)]) -> Durable<Seen> {
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
        unlisted: Vec::new(),
        validators: Vec::new(),
        budgets: Vec::new(),
        dedup: Dedup::default(),
        conclude: Box::new(|_| Conclusion::default()),
    })
}
