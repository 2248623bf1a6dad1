//! One commit is all or nothing, commits of a unit keep their order, and commits that wait share a transaction.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod store_support;

use std::sync::{Arc, Mutex, mpsc};

use store_support::*;
use weir::store::{
    BudgetKey, Conclusion, Cut, Fuse, MemoryDisk, Op, PollRow, PollsKept, RedbStore, Seen, Store,
    StoreError, StoreOptions, UnitId, Validator, ValidatorKey,
};
use weir_rules::budget::Budget;

fn with_fuse(disk: &MemoryDisk) -> (Arc<RedbStore>, Arc<Fuse>) {
    let fuse = Arc::new(Fuse::new());
    let options = StoreOptions {
        fuse: Some(fuse.clone()),
        ..StoreOptions::default()
    };
    (RedbStore::in_memory(disk.clone(), options).unwrap(), fuse)
}

fn seven_left() -> Budget {
    serde_json::from_value(serde_json::json!({"remaining": 7})).unwrap()
}

fn sinks(store: &dyn Store, names: &[&str]) {
    wait(store.set_sinks(names.iter().map(|name| (*name).to_owned()).collect())).unwrap();
}

#[test]
fn what_becomes_of_a_record() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["out"]);
        let unit = unit(&*store, "orders");
        let sight = |record| wait(store.commit(page(unit, 1, "", vec![record]))).unwrap();
        let seen = |new, changed, unchanged, deleted| Seen {
            new,
            changed,
            unchanged,
            deleted,
            ..Seen::default()
        };
        assert_eq!(sight(record("1", "A")), seen(1, 0, 0, 0), "not known");
        assert_eq!(sight(record("1", "A")), seen(0, 0, 1, 0), "the same");
        assert_eq!(sight(record("1", "B")), seen(0, 1, 0, 0), "changed");
        assert_eq!(sight(record("1", "A")), seen(0, 1, 0, 0), "changed back");
        assert_eq!(sight(deleted("1")), seen(0, 0, 0, 1), "deleted");
        assert_eq!(sight(deleted("1")), seen(0, 0, 1, 0), "still deleted");
        assert_eq!(
            sight(record("1", "A")),
            seen(1, 0, 0, 0),
            "back, with an old content"
        );
        assert_eq!(sight(deleted("2")), seen(0, 0, 0, 1), "never seen before");
        let expected = [
            ("1", 1, Op::Insert),
            ("1", 2, Op::Update),
            ("1", 3, Op::Update),
            ("1", 4, Op::Delete),
            ("1", 5, Op::Insert),
            ("2", 1, Op::Delete),
        ];
        assert_eq!(
            told(&outbox(&*store, "out")),
            expected.map(|(id, revision, op)| (id.to_owned(), revision, op))
        );
        let rows = store.records(unit, None, 10).unwrap();
        assert_eq!(
            rows.iter()
                .map(|row| (row.id.as_str(), row.revision, row.deleted))
                .collect::<Vec<_>>(),
            [("1", 5, false), ("2", 1, true)]
        );
        assert_eq!(store.record_count(unit).unwrap(), 2);
    });
}

#[test]
fn case_123_the_last_of_several_versions_wins() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["out"]);
        let unit = unit(&*store, "orders");
        let first = store.commit(page(unit, 1, 1, vec![record("7", "1"), record("7", "2")]));
        let second = store.commit(page(unit, 1, 2, vec![record("7", "3")]));
        let third = store.commit(page(unit, 1, 3, vec![record("7", "4")]));
        assert_eq!(wait(first).unwrap().changed, 1);
        assert_eq!(wait(second).unwrap().changed, 1);
        assert_eq!(wait(third).unwrap().changed, 1);
        let entries = outbox(&*store, "out");
        let contents: Vec<&str> = entries.iter().map(|entry| entry.data.as_str()).collect();
        assert_eq!(
            contents,
            ["1", "2", "3", "4"].map(|content| format!(r#"{{"id":"7","content":"{content}"}}"#))
        );
        assert_eq!(
            entries
                .iter()
                .map(|entry| entry.revision)
                .collect::<Vec<_>>(),
            [1, 2, 3, 4]
        );
        assert!(entries.is_sorted_by_key(|entry| entry.sequence));
    });
}

#[test]
fn case_125_equal_contents_are_different_records() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["out"]);
        let (one, other) = (unit(&*store, "orders"), unit(&*store, "returns"));
        let ping = |id| record(id, "ping");
        let seen =
            wait(store.commit(page(one, 1, "", vec![ping("1"), ping("2"), ping("3")]))).unwrap();
        assert_eq!(seen.new, 3);
        assert_eq!(
            wait(store.commit(page(other, 1, "", vec![ping("1")])))
                .unwrap()
                .new,
            1
        );
    });
}

#[test]
fn a_page_lands_whole() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["out"]);
        let unit = unit(&*store, "orders");
        let validator_key = |byte| ValidatorKey {
            unit,
            request: [byte; 32],
        };
        let validator = |walk| Validator {
            etag: Some(format!("W/\"{walk}\"")),
            last_modified: None,
            next: vec!["page 2".into()],
            cursor: None,
            walk,
            poll_after: None,
        };
        let budget = BudgetKey {
            who: "connection:acme".into(),
            bucket: "core".into(),
        };
        let mut commit = page(unit, 1, "c1", vec![record("1", "A")]);
        commit.validators = vec![
            (validator_key(1), Some(validator(1))),
            (validator_key(2), Some(validator(1))),
        ];
        commit.budgets = vec![(budget.clone(), seven_left())];
        commit.conclude = Box::new(|seen| Conclusion {
            state: state(format!("{} new", seen.new)),
            due: Some(Some(500)),
            poll: Some(poll_row(100)),
            ..Conclusion::default()
        });
        let mut end = store.outbox_end();
        end.mark_unchanged();
        wait(store.commit(commit)).unwrap();
        assert!(end.has_changed().unwrap(), "the sinks are woken");
        assert_eq!(cursor(&*store, unit).as_deref(), Some("1 new"));
        assert_eq!(store.due(499, 9).unwrap(), []);
        assert_eq!(store.due(500, 9).unwrap(), [(500, unit)]);
        assert_eq!(store.unit(unit).unwrap().unwrap().due, Some(500));
        assert_eq!(store.polls(None, 9).unwrap()[0].unit, unit);
        assert_eq!(
            store.validator(&validator_key(1)).unwrap(),
            Some(validator(1))
        );
        assert_eq!(store.budgets().unwrap(), [(budget, seven_left())]);

        // The next walk touches one of the two pages: the other's validator goes when the walk ends.
        let mut commit = page(unit, 2, "c2", Vec::new());
        commit.validators = vec![(validator_key(1), Some(validator(2)))];
        commit.conclude = Box::new(|_| Conclusion {
            due: Some(None),
            keep_validators_of: Some(2),
            ..Conclusion::default()
        });
        wait(store.commit(commit)).unwrap();
        assert_eq!(
            store.validator(&validator_key(1)).unwrap(),
            Some(validator(2))
        );
        assert_eq!(store.validator(&validator_key(2)).unwrap(), None);
        assert_eq!(store.due(i64::MAX, 9).unwrap(), []);
    });
}

#[test]
fn a_refused_commit_changes_nothing_and_nothing_lands_above_it() {
    each_engine(|engine| {
        let (store, fuse) = engine.with_fuse();
        sinks(&*store, &["out"]);
        let (one, other) = (unit(&*store, "orders"), unit(&*store, "returns"));
        wait(store.commit(page(one, 7, "good", vec![record("1", "A")]))).unwrap();
        fuse.set(0, Cut::Refuse);
        let mut commit = page(one, 7, "bad", vec![record("1", "B"), record("2", "A")]);
        commit.conclude = Box::new(|_| Conclusion {
            state: state("bad"),
            due: Some(Some(1)),
            poll: Some(poll_row(1)),
            ..Conclusion::default()
        });
        assert!(matches!(
            wait(store.commit(commit)),
            Err(StoreError::Full { .. })
        ));
        assert_eq!(cursor(&*store, one).as_deref(), Some("good"));
        assert_eq!(store.record_count(one).unwrap(), 1);
        assert_eq!(outbox(&*store, "out").len(), 1);
        assert_eq!(store.due(i64::MAX, 9).unwrap(), []);
        assert_eq!(store.polls(None, 9).unwrap(), []);

        let above = wait(store.commit(page(one, 7, "above", vec![record("3", "A")])));
        assert!(matches!(above, Err(StoreError::AfterFailure)));
        wait(store.commit(page(other, 7, "elsewhere", Vec::new()))).unwrap();
        wait(store.commit(page(
            one,
            8,
            "again",
            vec![record("1", "B"), record("2", "A")],
        )))
        .unwrap();
        let stale = wait(store.commit(page(one, 7, "stale", Vec::new())));
        assert!(matches!(stale, Err(StoreError::StaleLease)));
        assert_eq!(cursor(&*store, one).as_deref(), Some("again"));
        let sequences: Vec<u64> = outbox(&*store, "out")
            .iter()
            .map(|entry| entry.sequence)
            .collect();
        assert_eq!(sequences, [1, 2, 3], "a failed commit uses up no sequence");
    });
}

#[test]
fn a_crash_at_any_boundary_leaves_a_prefix() {
    for cut in [Cut::DieBefore, Cut::DieAfter] {
        for spared in 0..6 {
            each_engine(|engine| {
                let (store, fuse) = engine.with_fuse();
                sinks(&*store, &["out"]);
                let orders = unit(&*store, "orders");
                fuse.set(spared, cut);
                let mut durable = 0;
                for number in 1..=6 {
                    match wait(store.commit(page(
                        orders,
                        1,
                        number,
                        vec![record(&number.to_string(), "A")],
                    ))) {
                        Ok(_) => durable = number,
                        Err(StoreError::Closed) => break,
                        Err(other) => panic!("{other}"),
                    }
                }
                assert_eq!(durable, spared);
                drop(store);
                let store = engine.open();
                let expected = spared + u64::from(cut == Cut::DieAfter);
                assert_eq!(store.record_count(orders).unwrap(), expected);
                assert_eq!(outbox(&*store, "out").len() as u64, expected);
                let cursor = cursor(&*store, orders).map_or(0, |cursor| cursor.parse().unwrap());
                assert_eq!(cursor, expected);
                // It goes on where it ended.
                wait(store.commit(page(orders, 1, "on", vec![record("new", "A")]))).unwrap();
                let entries = outbox(&*store, "out");
                assert_eq!(entries.last().unwrap().sequence, expected + 1);
            });
        }
    }
}

/// A commit in whose transaction the writer waits until it is let go.
fn blocking_page(unit: UnitId) -> (weir::store::Commit, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (begun, has_begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let may_go = Mutex::new(may_go);
    let mut commit = page(unit, 1, "blocked", Vec::new());
    commit.conclude = Box::new(move |_| {
        begun.send(()).unwrap();
        may_go.lock().unwrap().recv().unwrap();
        Conclusion::default()
    });
    (commit, has_begun, go)
}

#[test]
fn commits_that_wait_share_a_transaction_and_keep_their_order() {
    let store = memory();
    sinks(&*store, &["out"]);
    let units: Vec<UnitId> = (0..4)
        .map(|number| unit(&*store, &format!("s{number}")))
        .collect();
    let (commit, has_begun, go) = blocking_page(units[0]);
    let before = store.transactions();
    let first = store.commit(commit);
    has_begun.recv().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let waiting: Vec<_> = (0..40)
        .map(|number| {
            let mut commit = page(
                units[number % 4],
                1,
                number,
                vec![record(&number.to_string(), "A")],
            );
            let order = order.clone();
            commit.conclude = Box::new(move |_| {
                order.lock().unwrap().push(number);
                Conclusion {
                    state: state(number),
                    ..Conclusion::default()
                }
            });
            store.commit(commit)
        })
        .collect();
    go.send(()).unwrap();
    wait(first).unwrap();
    for durable in waiting {
        assert_eq!(wait(durable).unwrap().new, 1);
    }
    assert_eq!(store.transactions() - before, 2);
    assert_eq!(*order.lock().unwrap(), (0..40).collect::<Vec<_>>());
    let ids: Vec<String> = outbox(&*store, "out")
        .into_iter()
        .map(|entry| entry.id)
        .collect();
    assert_eq!(
        ids,
        (0..40).map(|number| number.to_string()).collect::<Vec<_>>()
    );
}

#[test]
fn one_failed_transaction_fails_all_that_share_it() {
    let (store, fuse) = with_fuse(&MemoryDisk::new());
    let (one, other) = (unit(&*store, "orders"), unit(&*store, "returns"));
    let (commit, has_begun, go) = blocking_page(one);
    let first = store.commit(commit);
    has_begun.recv().unwrap();
    fuse.set(1, Cut::Refuse);
    let waiting = [one, other, one].map(|unit| store.commit(page(unit, 1, "x", Vec::new())));
    go.send(()).unwrap();
    wait(first).unwrap();
    for durable in waiting {
        assert!(matches!(wait(durable), Err(StoreError::Full { .. })));
    }
}

#[test]
fn a_panic_in_a_conclusion_fails_its_transaction_and_the_store_lives_on() {
    each_engine(|engine| {
        let store = engine.open();
        let orders = unit(&*store, "orders");
        let mut commit = page(orders, 1, "x", vec![record("1", "A")]);
        commit.conclude = Box::new(|_| panic!("a rule has a fault"));
        assert!(wait(store.commit(commit)).is_err());
        assert_eq!(store.record_count(orders).unwrap(), 0);
        assert_eq!(
            wait(store.commit(page(orders, 2, "y", vec![record("1", "A")])))
                .unwrap()
                .new,
            1
        );
    });
}

#[test]
fn a_full_disk_is_an_answer_and_passes() {
    let disk = MemoryDisk::new();
    let store = RedbStore::in_memory(disk.clone(), StoreOptions::default()).unwrap();
    sinks(&*store, &["out"]);
    let orders = unit(&*store, "orders");
    wait(store.commit(page(orders, 1, "before", vec![record("0", "A")]))).unwrap();
    disk.set_capacity(Some(disk.len()));
    let large = "x".repeat(4 << 20);
    let commit = page(orders, 1, "large", vec![record("1", &large)]);
    assert!(matches!(
        wait(store.commit(commit)),
        Err(StoreError::Full { .. })
    ));
    assert_eq!(
        cursor(&*store, orders).as_deref(),
        Some("before"),
        "what was there can be read"
    );
    let again = page(orders, 2, "still", vec![record("1", &large)]);
    assert!(matches!(
        wait(store.commit(again)),
        Err(StoreError::Full { .. })
    ));
    disk.set_capacity(None);
    wait(store.commit(page(orders, 3, "after", vec![record("1", &large)]))).unwrap();
    assert_eq!(cursor(&*store, orders).as_deref(), Some("after"));
    assert_eq!(outbox(&*store, "out").len(), 2);
}

#[test]
fn a_unit_that_is_not_there_is_said_to_be() {
    each_engine(|engine| {
        let store = engine.open();
        let nowhere = UnitId(99);
        let answer = wait(store.commit(page(nowhere, 1, "", vec![record("1", "A")])));
        assert!(matches!(answer, Err(StoreError::UnknownUnit { unit }) if unit == nowhere));
        assert!(matches!(
            wait(store.forget_records(nowhere)),
            Err(StoreError::UnknownUnit { .. })
        ));
        let change = store.update_unit(
            nowhere,
            Box::new(|state| Conclusion {
                state,
                ..Conclusion::default()
            }),
        );
        assert!(matches!(wait(change), Err(StoreError::UnknownUnit { .. })));
        assert_eq!(store.unit(nowhere).unwrap(), None);
    });
}

#[test]
fn units_are_made_once() {
    each_engine(|engine| {
        let store = engine.open();
        let orders = unit(&*store, "orders");
        let mut partition = key("orders");
        partition.partition = Some(String::new());
        assert_ne!(wait(store.ensure_unit(&partition)).unwrap().id, orders);
        let before = store.commits();
        assert_eq!(unit(&*store, "orders"), orders);
        assert_eq!(store.commits(), before, "a known unit costs no transaction");
        wait(store.update_unit(
            orders,
            Box::new(|state| Conclusion {
                state,
                due: Some(Some(5)),
                ..Conclusion::default()
            }),
        ))
        .unwrap();
        drop(store);
        let store = engine.open();
        let mut rows = Vec::new();
        store
            .for_each_unit(&mut |row| rows.push((row.key, row.due)))
            .unwrap();
        assert_eq!(rows, [(key("orders"), Some(5)), (partition, None)]);
    });
}

#[test]
fn forgotten_records_are_delivered_anew_under_new_keys() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["out"]);
        let (orders, returns) = (unit(&*store, "orders"), unit(&*store, "returns"));
        for unit in [orders, returns] {
            wait(store.commit(page(unit, 1, "", vec![record("1", "A"), deleted("2")]))).unwrap();
        }
        assert_eq!(wait(store.forget_records(orders)).unwrap(), 2);
        assert_eq!(store.record_count(orders).unwrap(), 0);
        assert_eq!(store.records(orders, None, 9).unwrap(), []);
        let seen =
            wait(store.commit(page(orders, 1, "", vec![record("1", "A"), deleted("2")]))).unwrap();
        assert_eq!((seen.new, seen.deleted, seen.unchanged), (1, 1, 0));
        let entries = told(&outbox(&*store, "out"));
        assert_eq!(
            entries[4..],
            [("1".into(), 2, Op::Insert), ("2".into(), 2, Op::Delete)]
        );
        assert_eq!(store.record_count(orders).unwrap(), 2);
        assert_eq!(store.record_count(returns).unwrap(), 2);
    });
}

#[test]
fn polls_are_kept_by_number_and_read_newest_first() {
    each_engine(|engine| {
        let store = engine.open_with(
            PollsKept {
                per_unit: 3,
                ..PollsKept::default()
            },
            None,
        );
        let units = [unit(&*store, "orders"), unit(&*store, "returns")];
        for started in 0..10 {
            let mut commit = page(units[started as usize % 2], 1, "", Vec::new());
            commit.conclude = Box::new(move |_| Conclusion {
                poll: Some(PollRow {
                    outcome: "failed".into(),
                    ..poll_row(started)
                }),
                ..Conclusion::default()
            });
            wait(store.commit(commit)).unwrap();
        }
        let started = |polls: Vec<weir::store::PollRow>| {
            polls.iter().map(|poll| poll.started).collect::<Vec<_>>()
        };
        assert_eq!(started(store.polls(None, 100).unwrap()), [9, 8, 7, 6, 5, 4]);
        assert_eq!(started(store.polls(None, 2).unwrap()), [9, 8]);
        assert_eq!(
            started(store.polls(Some(units[0]), 100).unwrap()),
            [8, 6, 4]
        );
        assert_eq!(started(store.polls(Some(units[1]), 1).unwrap()), [9]);
    });
}

#[test]
fn due_units_come_in_the_order_of_their_times() {
    each_engine(|engine| {
        let store = engine.open();
        let times = [30, -20, 10, i64::MAX, i64::MIN];
        for (number, time) in times.into_iter().enumerate() {
            let unit = unit(&*store, &format!("s{number}"));
            let conclusion = move |state| Conclusion {
                state,
                due: Some(Some(time)),
                ..Conclusion::default()
            };
            wait(store.update_unit(unit, Box::new(conclusion))).unwrap();
        }
        let due = |until, limit| {
            store
                .due(until, limit)
                .unwrap()
                .into_iter()
                .map(|(time, _)| time)
                .collect::<Vec<_>>()
        };
        assert_eq!(due(i64::MAX, 9), [i64::MIN, -20, 10, 30, i64::MAX]);
        assert_eq!(due(10, 9), [i64::MIN, -20, 10]);
        assert_eq!(due(i64::MAX, 2), [i64::MIN, -20]);
    });
}

#[test]
fn records_are_read_page_by_page() {
    each_engine(|engine| {
        let store = engine.open();
        let (orders, returns) = (unit(&*store, "orders"), unit(&*store, "returns"));
        let ids = ["a", "b", "ü", "z"];
        wait(store.commit(page(
            orders,
            1,
            "",
            ids.iter().map(|id| record(id, "A")).collect(),
        )))
        .unwrap();
        wait(store.commit(page(returns, 1, "", vec![record("0", "A")]))).unwrap();
        let read = |after, limit| {
            let rows = store.records(orders, after, limit).unwrap();
            rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
        };
        assert_eq!(read(None, 2), ["a", "b"]);
        assert_eq!(read(Some("b"), 2), ["z", "ü"], "in the order of bytes");
        assert_eq!(read(Some("ü"), 2), [""; 0]);
    });
}

#[test]
fn notes_are_kept() {
    each_engine(|engine| {
        let store = engine.open();
        assert_eq!(store.note("digest").unwrap(), None);
        wait(store.set_note("digest", Some(b"abc".to_vec()))).unwrap();
        assert_eq!(
            store.note("digest").unwrap().as_deref(),
            Some(b"abc".as_slice())
        );
        wait(store.set_note("digest", None)).unwrap();
        assert_eq!(store.note("digest").unwrap(), None);
    });
}

#[test]
fn the_log_of_polls_is_bounded_by_time_and_number_and_folds_what_went_well() {
    each_engine(|engine| {
        let store = engine.open_with(
            PollsKept {
                per_unit: 40,
                in_all: 60,
                keep: 600_000,
            },
            None,
        );
        let quiet = unit(&*store, "quiet");
        let busy = unit(&*store, "busy");
        let poll = |unit, started| {
            let mut commit = page(unit, 1, "", Vec::new());
            commit.conclude = Box::new(move |_| Conclusion {
                poll: Some(poll_row(started)),
                ..Conclusion::default()
            });
            wait(store.commit(commit)).unwrap();
        };
        for started in 0..10 {
            poll(quiet, started);
        }
        for started in 0..100 {
            poll(busy, started);
        }
        let rows = store.polls(Some(busy), 1_000).unwrap();
        assert!(rows.len() <= 40, "{}", rows.len());
        let polls: u64 = rows.iter().map(|row| row.polls).sum();
        assert_eq!(polls, 100, "folded, not thrown away");
        assert_eq!(store.polls(Some(quiet), 1_000).unwrap().len(), 10);
        // Eleven minutes later: what is older goes, of every unit.
        for started in 660_200..660_240 {
            poll(busy, started);
        }
        assert_eq!(store.polls(Some(quiet), 1_000).unwrap(), []);
        let rows = store.polls(None, 1_000).unwrap();
        assert!(rows.iter().all(|row| row.ended > 60_000), "{rows:?}");
        // The count of a unit whose rows went is right: it takes as many as before.
        for started in 700_000..700_040 {
            poll(quiet, started);
        }
        assert!(store.polls(Some(quiet), 1_000).unwrap().len() <= 40);
        assert!(store.polls(None, 1_000).unwrap().len() <= 60 + 32);
        let mut seen = 0;
        store
            .each_poll(None, &mut |_| {
                seen += 1;
                seen < 3
            })
            .unwrap();
        assert_eq!(seen, 3);
    });
}

#[test]
fn the_text_of_records_is_kept_where_that_is_asked_for() {
    each_engine(|engine| {
        let store = engine.open();
        sinks(&*store, &["out"]);
        let (rooms, others) = (unit(&*store, "rooms"), unit(&*store, "others"));
        let ids = |store: &dyn Store, unit| {
            let mut ids = Vec::new();
            store
                .for_each_kept(unit, &mut |id| ids.push(id.to_owned()))
                .unwrap();
            ids
        };
        let sight = |unit, keep, records| {
            let mut commit = page(unit, 1, "", records);
            commit.dedup.keep = keep;
            let seen = wait(store.commit(commit)).unwrap();
            (seen.born, seen.gone)
        };
        let none = Vec::<String>::new;
        assert_eq!(
            sight(rooms, false, vec![record("a", "A")]),
            (none(), none())
        );
        assert_eq!(store.kept_record(rooms, "a").unwrap(), None);
        assert_eq!(
            sight(rooms, true, vec![record("a", "A"), record("b", "B")]),
            (vec!["a".to_owned(), "b".to_owned()], none()),
            "also what is known already"
        );
        let text = |id| store.kept_record(rooms, id).unwrap();
        let first = text("a").unwrap();
        assert_eq!(sight(rooms, true, vec![record("a", "C")]), (none(), none()));
        assert_ne!(text("a").unwrap(), first, "as it was last");
        assert_eq!(
            sight(rooms, true, vec![deleted("a"), deleted("z")]),
            (none(), vec!["a".to_owned()])
        );
        assert_eq!(text("a"), None);
        assert_eq!(
            sight(others, true, vec![record("a", "D")]),
            (vec!["a".to_owned()], none())
        );
        assert_eq!(ids(&*store, rooms), ["b"]);
        assert_eq!(ids(&*store, others), ["a"]);

        // What a whole listing no longer shows is kept no longer, though nothing was deleted; it comes back as it was.
        let mut last = page(rooms, 1, "", vec![record("c", "E")]);
        last.dedup.keep = true;
        last.unlisted = vec!["b".to_owned(), "never".to_owned()];
        let seen = wait(store.commit(last)).unwrap();
        assert_eq!((seen.gone, seen.deleted), (vec!["b".to_owned()], 0));
        assert_eq!(
            (text("b"), ids(&*store, rooms)),
            (None, vec!["c".to_owned()])
        );
        let mut again = page(rooms, 1, "", vec![record("b", "B")]);
        again.dedup.keep = true;
        let seen = wait(store.commit(again)).unwrap();
        assert_eq!((seen.born, seen.unchanged), (vec!["b".to_owned()], 1));
    });
}
