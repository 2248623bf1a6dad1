//! What the store's tests share.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::sync::Arc;

use weir::store::{
    Commit, Conclusion, Dedup, Durable, Fuse, MemoryDisk, MemoryFile, MemoryOptions, MemoryStore,
    Op, OutboxEntry, PollRow, PollsKept, PreparedRecord, RecordData, RedbStore, Store, StoreError,
    StoreOptions, Ticket, UnitId, UnitKey,
};
use weir_rules::model::{Reason, Window};
use weir_rules::unit::UnitState;
use weir_rules::walk::Tally;

pub fn key(stream: &str) -> UnitKey {
    UnitKey {
        connection: "acme".into(),
        stream: stream.into(),
        partition: None,
    }
}

pub fn memory() -> Arc<RedbStore> {
    RedbStore::in_memory(MemoryDisk::new(), StoreOptions::default()).unwrap()
}

/// Where a store of one of the engines keeps what it has: it can be opened again and again.
pub enum Engine {
    Redb(MemoryDisk),
    Memory(MemoryFile),
}

impl Engine {
    pub fn open(&self) -> Arc<dyn Store> {
        self.open_with(PollsKept::default(), None)
    }

    pub fn with_fuse(&self) -> (Arc<dyn Store>, Arc<Fuse>) {
        let fuse = Arc::new(Fuse::new());
        let store = self.open_with(PollsKept::default(), Some(fuse.clone()));
        (store, fuse)
    }

    pub fn open_with(&self, polls: PollsKept, fuse: Option<Arc<Fuse>>) -> Arc<dyn Store> {
        match self {
            Engine::Redb(disk) => {
                let options = StoreOptions {
                    polls,
                    fuse,
                    ..StoreOptions::default()
                };
                RedbStore::in_memory(disk.clone(), options).unwrap()
            }
            Engine::Memory(file) => {
                let options = MemoryOptions {
                    polls,
                    fuse,
                    ..MemoryOptions::default()
                };
                MemoryStore::open(file, options).unwrap()
            }
        }
    }
}

/// Every engine keeps the same promises.
pub fn each_engine(test: impl Fn(&Engine)) {
    test(&Engine::Redb(MemoryDisk::new()));
    test(&Engine::Memory(MemoryFile::default()));
}

pub fn wait<T>(durable: Durable<T>) -> Result<T, StoreError> {
    durable.blocking_recv().unwrap_or(Err(StoreError::Closed))
}

pub fn unit(store: &dyn Store, stream: &str) -> UnitId {
    wait(store.ensure_unit(&key(stream))).unwrap().id
}

/// A record whose content is `content`, and its hash too.
pub fn record(id: &str, content: &str) -> PreparedRecord {
    let mut hash = [0; 32];
    for (place, byte) in hash.iter_mut().zip(content.bytes()) {
        *place = byte;
    }
    PreparedRecord {
        id: id.into(),
        hash,
        updated_at: None,
        deleted: false,
        data: RecordData::Text(format!(r#"{{"id":"{id}","content":"{content}"}}"#).into()),
    }
}

pub fn deleted(id: &str) -> PreparedRecord {
    PreparedRecord {
        deleted: true,
        ..record(id, "gone")
    }
}

pub fn state(cursor: impl ToString) -> UnitState {
    UnitState {
        cursor: Some(cursor.to_string()),
        ..UnitState::default()
    }
}

/// A page that sets the unit's cursor and nothing else.
pub fn page(
    unit: UnitId,
    ticket: u64,
    cursor: impl ToString,
    records: Vec<PreparedRecord>,
) -> Commit {
    let state = state(cursor);
    Commit {
        unit,
        ticket: Ticket(ticket),
        seen_at: 1_700_000_000_000,
        records,
        unlisted: Vec::new(),
        validators: Vec::new(),
        budgets: Vec::new(),
        dedup: Dedup::default(),
        conclude: Box::new(move |_| Conclusion {
            state,
            ..Conclusion::default()
        }),
    }
}

pub fn poll_row(started: i64) -> PollRow {
    PollRow {
        unit: UnitId(0),
        key: key("orders"),
        reason: Reason::Schedule,
        window: Window {
            since: None,
            until: started,
        },
        intended: Some(started),
        started,
        ended: started + 10,
        outcome: "ok".into(),
        class: None,
        code: None,
        message: None,
        tally: Tally {
            calls: 1,
            latency: 1,
            ..Tally::default()
        },
        interval: 60_000,
        why: "as configured".into(),
        polls: 1,
    }
}

pub fn cursor(store: &dyn Store, unit: UnitId) -> Option<String> {
    store.unit(unit).unwrap().unwrap().state.cursor
}

/// All that waits for a sink.
pub fn outbox(store: &dyn Store, sink: &str) -> Vec<OutboxEntry> {
    let mut entries = Vec::new();
    let mut after = None;
    loop {
        let batch = store.outbox(sink, after, 64 << 10).unwrap();
        assert_eq!(batch.unreadable, []);
        if batch.up_to.is_none() {
            return entries;
        }
        after = batch.up_to;
        entries.extend(batch.entries);
    }
}

pub fn told(entries: &[OutboxEntry]) -> Vec<(String, u64, Op)> {
    entries
        .iter()
        .map(|entry| (entry.id.clone(), entry.revision, entry.op))
        .collect()
}
