//! What waits for a person, how many records may be remembered, and what forgetting some leaves behind.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod store_support;

use store_support::*;
use weir::store::{
    Conclusion, Cut, Dedup, REVIEWS, ReviewChange, ReviewEntry, ReviewId, ReviewKind, Store,
    StoreError, Swept, UnitId,
};

fn id(unit: UnitId, kind: ReviewKind, number: u32) -> ReviewId {
    ReviewId { unit, kind, number }
}

fn entry(id: ReviewId, last: i64) -> ReviewEntry {
    ReviewEntry {
        id,
        key: key("orders"),
        first: 1,
        last,
        times: 1,
        class: None,
        code: "418".into(),
        message: "a teapot".into(),
        answer: None,
        record: None,
        dropped: false,
    }
}

fn change(id: ReviewId, last: i64) -> ReviewChange {
    (id, Some(Box::new(entry(id, last))))
}

#[test]
fn entries_land_with_their_page_or_not_at_all() {
    each_engine(|engine| {
        let (store, fuse) = engine.with_fuse();
        let unit = unit(&*store, "orders");
        let record = id(unit, ReviewKind::Record, 7);
        wait(store.set_note("write/1/1", Some(b"key".to_vec()))).unwrap();
        let with_entry = |ticket| {
            let mut commit = page(unit, ticket, "c", vec![]);
            commit.conclude = Box::new(move |_| Conclusion {
                review: vec![change(record, 5)],
                forget_notes: vec!["write/1/1".into()],
                ..Conclusion::default()
            });
            commit
        };
        fuse.set(0, Cut::Refuse);
        assert!(wait(store.commit(with_entry(1))).is_err());
        assert_eq!(store.reviews(None, 9).unwrap(), []);
        assert!(store.note("write/1/1").unwrap().is_some());
        wait(store.commit(with_entry(2))).unwrap();
        assert_eq!(store.reviews(None, 9).unwrap(), [entry(record, 5)]);
        assert_eq!(store.note("write/1/1").unwrap(), None);
        assert_eq!(store.review(record).unwrap(), Some(entry(record, 5)));
        assert_eq!(store.reviews(Some(UnitId(99)), 9).unwrap(), []);

        let parked = id(unit, ReviewKind::Parked, 0);
        let mut given_up = entry(record, 6);
        given_up.dropped = true;
        wait(store.set_reviews(vec![change(parked, 6), (record, Some(Box::new(given_up)))]))
            .unwrap();
        let count = store.review_count().unwrap();
        assert_eq!((count.faults, count.records, count.all), (1, 0, 2));
        wait(store.set_reviews(vec![(parked, None), (record, None)])).unwrap();
        assert_eq!(store.review_count().unwrap().all, 0);
    });
}

#[test]
fn the_newest_answers_are_kept_and_no_record_is_pushed_out() {
    each_engine(|engine| {
        let store = engine.open();
        let record = id(UnitId(1), ReviewKind::Record, 1);
        let unknown = |n: u64| id(UnitId(n), ReviewKind::Unknown, 0);
        let mut all = vec![change(record, 0)];
        all.extend((1..=REVIEWS).map(|n| change(unknown(n), n as i64)));
        wait(store.set_reviews(all)).unwrap();
        assert_eq!(store.review_count().unwrap().all, REVIEWS);
        assert!(store.review(record).unwrap().is_some());
        assert_eq!(
            store.review(unknown(1)).unwrap(),
            None,
            "the oldest is gone"
        );
        assert!(store.review(unknown(2)).unwrap().is_some());
        assert!(store.review(unknown(REVIEWS)).unwrap().is_some());
    });
}

#[test]
fn a_page_that_is_too_much_to_remember_is_refused_whole() {
    each_engine(|engine| {
        let store = engine.open();
        wait(store.set_sinks(vec!["out".into()])).unwrap();
        let unit = unit(&*store, "orders");
        let bounded = |ticket, records| {
            let mut commit = page(unit, ticket, "c", records);
            commit.dedup.most = Some(3);
            commit
        };
        let of =
            |ids: &[&str], content| ids.iter().map(|id| record(id, content)).collect::<Vec<_>>();
        wait(store.commit(bounded(1, of(&["1", "2"], "A")))).unwrap();
        // What is known may come and change as often as it likes.
        wait(store.commit(bounded(1, of(&["1", "2", "3"], "B")))).unwrap();
        wait(store.commit(bounded(1, of(&["1", "2", "3"], "C")))).unwrap();
        let over = store.commit(bounded(1, of(&["3", "4"], "D")));
        let behind = store.commit(bounded(1, of(&["1"], "D")));
        match wait(over) {
            Err(StoreError::TooManyRecords { known, more, most }) => {
                assert_eq!((known, more, most), (3, 1, 3));
            }
            other => panic!("{other:?}"),
        }
        assert!(
            matches!(wait(behind), Err(StoreError::AfterFailure)),
            "no page lands above the hole"
        );
        assert_eq!(store.record_count(unit).unwrap(), 3);
        let revisions: Vec<u64> = store
            .records(unit, None, 9)
            .unwrap()
            .iter()
            .map(|row| row.revision)
            .collect();
        assert_eq!(revisions, [3, 3, 2], "nothing of it was stored");
        wait(store.commit(bounded(2, of(&["1"], "D")))).unwrap();
    });
}

#[test]
fn what_was_forgotten_comes_back_under_a_key_of_its_own() {
    each_engine(|engine| {
        let store = engine.open();
        wait(store.set_sinks(vec!["out".into()])).unwrap();
        let unit = unit(&*store, "orders");
        let at = |store: &dyn Store, seen_at, ticket, id: &str, content: &str| {
            let mut commit = page(unit, ticket, "c", vec![record(id, content)]);
            commit.seen_at = seen_at;
            wait(store.commit(commit)).unwrap();
        };
        for (seen_at, content) in [(10, "A"), (20, "B"), (30, "C")] {
            at(&*store, seen_at, 1, "old", content);
        }
        at(&*store, 100, 1, "young", "A");
        // In slices: each says where it ended.
        let first = wait(store.forget_older(unit, 50, None, 1)).unwrap();
        assert_eq!(
            first,
            Swept {
                forgotten: 1,
                next: Some("old".into())
            }
        );
        let second = wait(store.forget_older(unit, 50, first.next, 10)).unwrap();
        assert_eq!(second, Swept::default());
        assert_eq!(store.record_count(unit).unwrap(), 1);
        // The floor survives a restart.
        drop(store);
        let store = engine.open();
        at(&*store, 110, 2, "old", "A");
        at(&*store, 120, 2, "new", "A");
        at(&*store, 130, 2, "young", "B");
        let batch = store.outbox("out", None, usize::MAX).unwrap();
        let keys: Vec<String> = batch
            .entries
            .iter()
            .map(|entry| format!("{}@{}", entry.id, entry.revision))
            .collect();
        assert_eq!(
            keys,
            [
                "old@1", "old@2", "old@3", "young@1", "old@4", "new@4", "young@2"
            ]
        );
    });
}

#[test]
fn a_record_that_changes_twice_within_one_walk_is_told() {
    each_engine(|engine| {
        let store = engine.open();
        let unit = unit(&*store, "orders");
        let see = |seen_at, walk_began, content: &str| {
            let mut commit = page(unit, 1, "c", vec![record("7", content)]);
            commit.seen_at = seen_at;
            commit.dedup = Dedup {
                walk_began,
                ..Dedup::default()
            };
            wait(store.commit(commit)).unwrap().doubles
        };
        assert_eq!(see(10, 5, "A"), []);
        let [(id, _)] = &see(11, 5, "B")[..] else {
            panic!("both came in the walk that began at 5");
        };
        assert_eq!(id, "7");
        assert_eq!(see(25, 20, "A"), [], "the walk before saw the other one");
        assert_eq!(see(26, 20, "A"), [], "no change");
    });
}
