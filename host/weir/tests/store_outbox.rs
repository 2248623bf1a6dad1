//! The outbox: chunks, sinks at different places, and bytes that do not read.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod store_support;

use std::path::Path;

use redb::TableDefinition;
use store_support::*;
use weir::store::{
    DeadLetter, Handled, Intent, LetterId, LetterState, OutboxSize, RedbStore, Requeued, Store,
    StoreOptions, UnitId,
};

fn sinks(store: &dyn Store, names: &[&str]) {
    wait(store.set_sinks(names.iter().map(|name| (*name).to_owned()).collect())).unwrap();
}

fn put(store: &dyn Store, unit: UnitId, ids: std::ops::Range<u64>) {
    let records = ids.map(|id| record(&id.to_string(), "A")).collect();
    wait(store.commit(page(unit, 1, "", records))).unwrap();
}

fn sequences(store: &dyn Store, sink: &str) -> Vec<u64> {
    outbox(store, sink)
        .iter()
        .map(|entry| entry.sequence)
        .collect()
}

fn size(store: &dyn Store) -> (u64, u64) {
    let size = store.outbox_size().unwrap();
    (size.entries, size.bytes)
}

#[test]
fn each_sink_has_its_own_place_and_the_slowest_keeps_the_entries() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["a", "b"]);
        let orders = unit(&*store, "orders");
        put(&*store, orders, 10..14);
        put(&*store, orders, 14..17);
        let one = record("10", "A").data.as_str().len() as u64;
        wait(store.delivered("a", Handled::up_to(5))).unwrap();
        assert_eq!(sequences(&*store, "a"), [6, 7]);
        assert_eq!(sequences(&*store, "b"), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(size(&*store), (7, 7 * one));
        wait(store.delivered("b", Handled::up_to(3))).unwrap();
        assert_eq!(
            size(&*store),
            (4, 4 * one),
            "of a page that is half delivered, half waits"
        );
        wait(store.delivered("b", Handled::up_to(2))).unwrap();
        assert_eq!(
            sequences(&*store, "b"),
            [4, 5, 6, 7],
            "an old acknowledgement takes nothing back"
        );
        wait(store.delivered("b", Handled::up_to(4))).unwrap();
        assert_eq!(size(&*store), (3, 3 * one));
        wait(store.delivered("a", Handled::up_to(7))).unwrap();
        wait(store.delivered("b", Handled::up_to(99))).unwrap();
        assert_eq!(store.outbox_size().unwrap(), OutboxSize::default());
        put(&*store, orders, 20..21);
        assert_eq!(sequences(&*store, "b"), [8], "nobody is beyond the end");
    });
}

#[test]
fn reading_goes_on_while_an_acknowledgement_is_on_its_way() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["a"]);
        let orders = unit(&*store, "orders");
        put(&*store, orders, 0..3);
        put(&*store, orders, 3..5);
        let batch = store.outbox("a", None, 1).unwrap();
        assert_eq!(batch.up_to, Some(3));
        let batch = store.outbox("a", batch.up_to, 1).unwrap();
        assert_eq!(
            batch
                .entries
                .iter()
                .map(|entry| entry.sequence)
                .collect::<Vec<_>>(),
            [4, 5]
        );
        assert_eq!(store.outbox("a", batch.up_to, 1).unwrap().up_to, None);
        assert_eq!(store.outbox("nobody", None, 1).unwrap().up_to, None);
    });
}

#[test]
fn a_new_sink_begins_with_what_is_there_and_a_removed_one_keeps_nothing() {
    each_engine(|engine| {
        let store = engine.open();
        let orders = unit(&*store, "orders");
        put(&*store, orders, 0..3);
        assert_eq!(
            store.outbox_size().unwrap().entries,
            3,
            "without a sink everything waits"
        );
        sinks(&*store, &["a"]);
        wait(store.delivered("a", Handled::up_to(3))).unwrap();
        put(&*store, orders, 3..5);
        sinks(&*store, &["a", "b"]);
        assert_eq!(sequences(&*store, "b"), [4, 5]);
        wait(store.delivered("a", Handled::up_to(5))).unwrap();
        assert_eq!(store.outbox_size().unwrap().entries, 2);
        sinks(&*store, &["a"]);
        assert_eq!(store.outbox_size().unwrap().entries, 0);
        let before = store.commits();
        sinks(&*store, &["a"]);
        assert_eq!(store.commits(), before, "nothing new costs no transaction");
    });
}

#[test]
fn a_large_page_is_read_in_parts() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["a"]);
        let orders = unit(&*store, "orders");
        let records = (0..1000)
            .map(|id| record(&id.to_string(), &"x".repeat(400)))
            .collect();
        wait(store.commit(page(orders, 1, "", records))).unwrap();
        let batch = store.outbox("a", None, 1).unwrap();
        assert!(
            batch.entries.len() < 400,
            "{} entries at once",
            batch.entries.len()
        );
        let entries = outbox(&*store, "a");
        assert_eq!(entries.len(), 1000);
        assert!(
            entries
                .iter()
                .enumerate()
                .all(|(at, entry)| entry.id == at.to_string())
        );
        let huge = "y".repeat(3 << 20);
        wait(store.commit(page(
            orders,
            1,
            "",
            vec![record("huge", &huge), record("small", "A")],
        )))
        .unwrap();
        let entries = outbox(&*store, "a");
        assert_eq!(entries.len(), 1002);
        assert!(entries[1000].data.as_str().len() > 3 << 20);
    });
}

fn letter(sink: &str, sequence: u64, state: LetterState) -> DeadLetter {
    let line = format!(
        r#"{{"connection":"acme","stream":"orders","partition":null,"id":"{sequence}","revision":1,"op":"insert","updated_at":null,"seen_at":"2026-01-01T00:00:00.000Z","key":"acme/orders/{sequence}/1","data":{{}}}}"#
    );
    DeadLetter {
        sink: sink.into(),
        sequence,
        key: format!("acme/orders/{sequence}/1"),
        error: "400 no such field".into(),
        line,
        at: 7,
        state,
        tries: 6,
        next: 70,
        intent: Some("k".into()),
        superseded: None,
    }
}

fn letters(store: &dyn Store, sink: Option<&str>) -> Vec<String> {
    let mut ids = Vec::new();
    let each = &mut |letter: DeadLetter| {
        ids.push(letter.id().to_string());
        std::ops::ControlFlow::Continue(())
    };
    store.for_each_letter(sink, each).unwrap();
    ids
}

fn id(text: &str) -> LetterId {
    text.parse().unwrap()
}

#[test]
fn letters_are_kept_and_the_sink_moves_on() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["a", "ab"]);
        let orders = unit(&*store, "orders");
        put(&*store, orders, 0..3);
        let (dead, held) = (
            letter("a", 2, LetterState::Dead),
            letter("a", 3, LetterState::Held),
        );
        let handled = Handled {
            letters: vec![dead.clone(), held.clone()],
            ..Handled::up_to(3)
        };
        wait(store.delivered("a", handled)).unwrap();
        wait(store.delivered("ab", Handled::up_to(3))).unwrap();
        assert_eq!(sequences(&*store, "a"), [0; 0], "a letter holds up nothing");
        assert_eq!(store.outbox_size().unwrap(), OutboxSize::default());
        assert_eq!(store.dead_letters(9).unwrap(), [dead]);
        assert_eq!(store.dead_letters(0).unwrap(), []);
        assert_eq!(store.letter(&id("a:3")).unwrap(), Some(held));
        assert_eq!(letters(&*store, Some("a")), ["a:2", "a:3"]);
        assert_eq!(letters(&*store, Some("ab")), [""; 0]);
        assert_eq!(letters(&*store, None), ["a:2", "a:3"]);

        // The sink has taken the one after all, and a later revision of the other's record.
        let handled = Handled {
            taken: vec![3],
            superseded: vec![(2, 5), (99, 5)],
            ..Handled::up_to(3)
        };
        wait(store.delivered("a", handled)).unwrap();
        assert_eq!(letters(&*store, None), ["a:2"]);
        let superseded = store.letter(&id("a:2")).unwrap().unwrap().superseded;
        assert_eq!(superseded, Some(5));
    });
}

#[test]
fn a_person_lets_a_letter_go_out_again_or_drops_it() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["a"]);
        let orders = unit(&*store, "orders");
        put(&*store, orders, 0..9);
        let unreadable = DeadLetter {
            line: "AAEC".into(),
            ..letter("a", 3, LetterState::Dead)
        };
        let superseded = DeadLetter {
            superseded: Some(4),
            ..letter("a", 4, LetterState::Dead)
        };
        let handled = Handled {
            letters: vec![
                letter("a", 1, LetterState::Dead),
                letter("a", 2, LetterState::Held),
                unreadable.clone(),
                superseded,
                letter("a", 5, LetterState::Dead),
            ],
            ..Handled::up_to(9)
        };
        wait(store.delivered("a", handled)).unwrap();
        let mut changed = store.letters_changed();
        assert!(!changed.has_changed().unwrap(), "a sink is not a person");
        let requeue = |name: &str| wait(store.requeue(id(name))).unwrap();
        assert_eq!(requeue("a:2"), Requeued::IsTried);
        assert_eq!(requeue("a:3"), Requeued::Unreadable);
        assert_eq!(requeue("a:4"), Requeued::Superseded(4));
        assert_eq!(requeue("a:9"), Requeued::Unknown);
        assert_eq!(requeue("b:1"), Requeued::Unknown);
        assert!(!changed.has_changed().unwrap(), "nothing was decided");
        assert_eq!(requeue("a:1"), Requeued::GoesOut);
        assert!(changed.has_changed().unwrap());
        changed.mark_unchanged();
        let goes_out = store.letter(&id("a:1")).unwrap().unwrap();
        let expected = DeadLetter {
            state: LetterState::Held,
            tries: 0,
            next: 0,
            intent: None,
            ..letter("a", 1, LetterState::Dead)
        };
        assert_eq!(goes_out, expected);

        let drop = |name: &str| wait(store.drop_letter(id(name))).unwrap();
        assert_eq!(drop("a:3"), Some(unreadable));
        assert!(changed.has_changed().unwrap());
        assert_eq!(drop("a:3"), None);
        assert_eq!(drop("a:2"), None, "one that is tried is not dead");
        assert_eq!(letters(&*store, None), ["a:1", "a:2", "a:4", "a:5"]);
        sinks(&*store, &["b"]);
        assert_eq!(wait(store.requeue(id("a:5"))).unwrap(), Requeued::NoSink);
    });
}

#[test]
fn an_intent_is_there_until_it_is_settled() {
    each_engine(|engine| {
        let intent = Intent {
            key: "k1".into(),
            entries: vec![1, 2],
            form: "ndjson".into(),
            not_before: Some(9),
        };
        {
            let store = engine.open();
            sinks(&*store, &["a", "b"]);
            let orders = unit(&*store, "orders");
            put(&*store, orders, 0..3);
            wait(store.set_intent("a", &intent)).unwrap();
        }
        let store = engine.open();
        assert_eq!(store.intent("a").unwrap(), Some(intent.clone()));
        assert_eq!(store.intent("b").unwrap(), None);
        wait(store.delivered("a", Handled::up_to(1))).unwrap();
        assert_eq!(store.intent("a").unwrap(), Some(intent));
        let handled = Handled {
            settled: true,
            ..Handled::up_to(2)
        };
        wait(store.delivered("a", handled)).unwrap();
        assert_eq!(store.intent("a").unwrap(), None);
    });
}

/// Changes the bytes of chunks behind the store's back.
fn damage(path: &Path, change: impl Fn(&mut Vec<u8>)) {
    const OUTBOX: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("outbox");
    let db = redb::Database::open(path).unwrap();
    let tx = db.begin_write().unwrap();
    {
        let mut table = tx.open_table(OUTBOX).unwrap();
        let (first, mut chunk) = {
            use redb::ReadableTable as _;
            let (first, chunk) = table.first().unwrap().unwrap();
            (first.value(), chunk.value().to_vec())
        };
        change(&mut chunk);
        table.insert(first, chunk.as_slice()).unwrap();
    }
    tx.commit().unwrap();
}

fn with_three_pages(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("weir.redb");
    let store = RedbStore::open(&path, StoreOptions::default()).unwrap();
    sinks(&*store, &["a"]);
    let orders = unit(&*store, "orders");
    for first in [0, 3, 6] {
        put(&*store, orders, first..first + 3);
    }
    path
}

#[test]
fn case_147_a_page_that_does_not_read_does_not_hide_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let whole = with_three_pages(directory.path());
    let path = directory.path().join("damaged.redb");
    for change in [
        (|chunk: &mut Vec<u8>| chunk.clear()) as fn(&mut Vec<u8>),
        |chunk| chunk[0] = 9,
        |chunk| chunk.truncate(50),
        |chunk| chunk.push(0),
        // More entries than the chunk has room for.
        |chunk| chunk[17] = 255,
    ] {
        std::fs::copy(&whole, &path).unwrap();
        damage(&path, change);
        let store = RedbStore::open(&path, StoreOptions::default()).unwrap();
        let batch = store.outbox("a", None, 1 << 20).unwrap();
        assert_eq!(batch.unreadable.len(), 1, "{:?}", batch.unreadable);
        assert_eq!(batch.unreadable[0].sequence, 1);
        let first_good = batch.entries.first().unwrap().sequence;
        assert_eq!((first_good, batch.up_to), (4, Some(9)));
        wait(store.delivered("a", Handled::up_to(9))).unwrap();
        assert_eq!(store.outbox_size().unwrap(), OutboxSize::default());
    }
}

#[test]
fn case_147_an_entry_that_does_not_read_does_not_hide_its_neighbours() {
    let directory = tempfile::tempdir().unwrap();
    let path = with_three_pages(directory.path());
    // The last byte of the last entry's data, and the first entry's operation.
    damage(&path, |chunk| *chunk.last_mut().unwrap() = 0xff);
    damage(&path, |chunk| chunk[29 + 16] = 7);
    let store = RedbStore::open(&path, StoreOptions::default()).unwrap();
    let batch = store.outbox("a", None, 1 << 20).unwrap();
    let bad: Vec<_> = batch
        .unreadable
        .iter()
        .map(|bad| (bad.sequence, bad.detail.as_str()))
        .collect();
    assert_eq!(
        bad,
        [
            (1, "the entry has the unknown operation 7"),
            (3, "the entry is not UTF-8")
        ]
    );
    let good: Vec<u64> = batch.entries.iter().map(|entry| entry.sequence).collect();
    assert_eq!(good, [2, 4, 5, 6, 7, 8, 9]);
    assert_eq!(
        batch.entries[0].data.as_str(),
        record("1", "A").data.as_str()
    );
}
