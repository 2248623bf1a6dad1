//! The store's file: opening, damage, other processes, and kills.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod store_support;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use redb::TableDefinition;
use store_support::*;
use weir::store::{RedbStore, Store, StoreError, StoreOptions};

fn open(path: &Path) -> Result<std::sync::Arc<RedbStore>, StoreError> {
    RedbStore::open(path, StoreOptions::default())
}

/// A store with some records in it, closed.
fn filled(path: &Path) {
    let store = open(path).unwrap();
    wait(store.set_sinks(vec!["a".into()])).unwrap();
    let orders = unit(&*store, "orders");
    for number in 0..20 {
        let records = (0..50)
            .map(|id| record(&format!("{number}-{id}"), "A"))
            .collect();
        wait(store.commit(page(orders, 1, number, records))).unwrap();
    }
}

#[test]
fn what_was_committed_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/down/weir.redb");
    filled(&path);
    let store = open(&path).unwrap();
    let orders = unit(&*store, "orders");
    assert_eq!(store.record_count(orders).unwrap(), 1000);
    assert_eq!(outbox(&*store, "a").len(), 1000);
    assert_eq!(cursor(&*store, orders).as_deref(), Some("19"));
}

#[test]
fn what_waits_in_the_queue_is_written_before_the_store_closes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    let store = open(&path).unwrap();
    let orders = unit(&*store, "orders");
    let waiting: Vec<_> = (0..50)
        .map(|id| store.commit(page(orders, 1, id, vec![record(&id.to_string(), "A")])))
        .collect();
    drop(store);
    for durable in waiting {
        wait(durable).unwrap();
    }
    assert_eq!(open(&path).unwrap().record_count(orders).unwrap(), 50);
}

#[test]
fn one_host_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    let store = open(&path).unwrap();
    match open(&path).map(|_| ()) {
        Err(error @ StoreError::InUse { .. }) => {
            assert!(
                error
                    .to_string()
                    .contains("weir.redb is in use by another weir"),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    drop(store);
    open(&path).unwrap();
}

#[test]
fn a_file_that_another_program_has_open_is_in_use() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    filled(&path);
    let _other = redb::Database::open(&path).unwrap();
    assert!(matches!(
        open(&path).map(|_| ()),
        Err(StoreError::InUse { .. })
    ));
}

#[test]
fn a_newer_file_is_refused() {
    const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    filled(&path);
    let db = redb::Database::open(&path).unwrap();
    let tx = db.begin_write().unwrap();
    tx.open_table(META)
        .unwrap()
        .insert("schema", 4_711u64.to_be_bytes().as_slice())
        .unwrap();
    tx.commit().unwrap();
    drop(db);
    let before = std::fs::read(&path).unwrap();
    match open(&path).map(|_| ()) {
        Err(StoreError::TooNew { found: 4_711, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(
        std::fs::read(&path).unwrap() == before,
        "the newer file was written to"
    );
}

#[test]
fn a_database_of_another_program_is_refused() {
    const TABLE: TableDefinition<'_, &str, u64> = TableDefinition::new("theirs");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    let db = redb::Database::create(&path).unwrap();
    let tx = db.begin_write().unwrap();
    tx.open_table(TABLE).unwrap().insert("a", 1).unwrap();
    tx.commit().unwrap();
    drop(db);
    refused_and_left_alone(&path);
}

fn refused_and_left_alone(path: &Path) {
    let before = std::fs::read(path).unwrap();
    match open(path).map(|_| ()) {
        Err(error @ StoreError::Damaged { .. }) => {
            let text = error.to_string();
            assert!(
                text.contains("weir.redb") && text.contains("move it away"),
                "{text}"
            );
        }
        other => panic!("{other:?} for {} bytes", before.len()),
    }
    assert!(
        std::fs::read(path).unwrap() == before,
        "the damaged file was written to"
    );
}

#[test]
fn case_143_a_damaged_file_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    filled(&path);
    let whole = std::fs::read(&path).unwrap();
    let noise = |seed: u64| {
        let mut state = seed;
        let mut next = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        whole.iter().map(|_| next()).collect::<Vec<u8>>()
    };
    let mut only_magic = noise(3);
    only_magic[..9].copy_from_slice(&whole[..9]);
    let mut half_noise = whole.clone();
    let half = whole.len() / 2;
    half_noise[512..half].copy_from_slice(&noise(4)[512..half]);
    for bytes in [
        &[][..],
        &whole[..1],
        &whole[..9],
        &whole[..100],
        &whole[..4096],
        &whole[..half],
        &whole[..whole.len() - 4096],
        &noise(1),
        &only_magic,
        &half_noise,
        b"not a database at all, but a note that somebody has saved under this name\n",
    ] {
        std::fs::write(&path, bytes).unwrap();
        refused_and_left_alone(&path);
    }
    std::fs::write(&path, &whole).unwrap();
    open(&path).unwrap();
}

/// Whatever bytes are damaged: never a panic, and never an answer that nobody gave.
#[test]
fn damage_anywhere_is_an_error_or_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    filled(&path);
    let whole = std::fs::read(&path).unwrap();
    let step = whole.len() / 61;
    for at in (0..whole.len()).step_by(step) {
        let mut bytes = whole.clone();
        for byte in bytes.iter_mut().skip(at).take(64) {
            *byte ^= 0x5a;
        }
        std::fs::write(&path, &bytes).unwrap();
        let Ok(store) = open(&path) else {
            continue;
        };
        let mut units = Vec::new();
        let _ = store.for_each_unit(&mut |row| units.push(row.id));
        for unit in units {
            let _ = store.records(unit, None, 2000);
            let _ = store.polls(Some(unit), 9);
            let _ = wait(store.commit(page(
                unit,
                1,
                "x",
                vec![record("new", "A"), record("3-3", "A")],
            )));
        }
        let _ = store.outbox("a", None, usize::MAX);
        let _ = store.outbox_size();
    }
}

const DIRECTORY: &str = "WEIR_TEST_STORE";

/// Not a test: what the killed processes do. Opens the store, and says each commit that is durable.
#[test]
#[ignore = "run by the tests that kill it"]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let store = open(&Path::new(&directory).join("weir.redb")).unwrap();
    let orders = unit(&*store, "orders");
    let first = store.record_count(orders).unwrap();
    for number in first.. {
        wait(store.commit(page(
            orders,
            1,
            number,
            vec![record(&format!("{number:08}"), "A")],
        )))
        .unwrap();
        println!("durable {number}");
    }
}

fn start_child(directory: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn what_was_said_to_be_durable_survives_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    let mut said = None;
    for round in 1..=8 {
        let mut child = start_child(directory.path());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in &mut lines {
            if let Some(number) = line.unwrap().strip_prefix("durable ") {
                said = Some(number.parse::<u64>().unwrap());
                seen += 1;
            }
            if seen == round * 5 {
                break;
            }
        }
        child.kill().unwrap();
        for line in lines.map_while(Result::ok) {
            if let Some(number) = line
                .strip_prefix("durable ")
                .and_then(|number| number.parse().ok())
            {
                said = Some(number);
            }
        }
        child.wait().unwrap();
        let store = open(&path).unwrap();
        let orders = unit(&*store, "orders");
        let records = store.record_count(orders).unwrap();
        let said = said.unwrap() + 1;
        assert!(
            records == said || records == said + 1,
            "{said} said, {records} there"
        );
        assert_eq!(cursor(&*store, orders), Some((records - 1).to_string()));
        assert_eq!(outbox_sequences(&*store), records);
    }
}

/// How many entries the outbox has ever had.
fn outbox_sequences(store: &dyn Store) -> u64 {
    *store.outbox_end().borrow() - 1
}

#[test]
fn case_145_a_first_start_that_is_killed_leaves_nothing_in_the_way() {
    for round in 0..30 {
        let directory = tempfile::tempdir().unwrap();
        let mut child = start_child(directory.path());
        // From the first file in the directory on, a little later in each round.
        while std::fs::read_dir(directory.path())
            .unwrap()
            .next()
            .is_none()
        {
            std::thread::yield_now();
        }
        let seen = Instant::now();
        while seen.elapsed() < Duration::from_micros(round * 200) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let store = open(&directory.path().join("weir.redb")).unwrap();
        let orders = unit(&*store, "orders");
        wait(store.commit(page(orders, 1, "x", vec![record("new", "A")]))).unwrap();
        assert!(!directory.path().join("weir.redb.new").exists());
    }
}

#[test]
fn a_file_of_the_first_schema_is_brought_to_the_newest_and_keeps_what_it_holds() {
    const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
    const CREDENTIALS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("credentials");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    filled(&path);
    let db = redb::Database::open(&path).unwrap();
    let tx = db.begin_write().unwrap();
    tx.delete_table(CREDENTIALS).unwrap();
    tx.open_table(META)
        .unwrap()
        .insert("schema", 1u64.to_be_bytes().as_slice())
        .unwrap();
    tx.commit().unwrap();
    drop(db);
    let store = open(&path).unwrap();
    assert_eq!(store.credential("shop").unwrap(), None);
    wait(store.set_credential("shop", Some(b"sealed".to_vec()))).unwrap();
    drop(store);
    let store = open(&path).unwrap();
    assert_eq!(store.credential("shop").unwrap().unwrap(), b"sealed");
    wait(store.set_credential("shop", None)).unwrap();
    assert_eq!(store.credential("shop").unwrap(), None);
}

/// A store file of every schema so far, made once and never again. Those of the schemas 1 to 4, which no release wrote,
/// are made of one of schema 5, without what the later migrations add.
const STORES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stores");

/// Not a test: writes down what a store of the present schema looks like. Run it once when the schema has grown.
#[test]
#[ignore = "run by hand after a new migration"]
fn write_down_the_present_schema() {
    use std::io::Write as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    filled(&path);
    let bytes = std::fs::read(&path).unwrap();
    let schema = weir::store::check(&path).unwrap().supported;
    let file = std::fs::File::create_new(format!("{STORES}/schema-{schema}.redb.gz")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    gz.write_all(&bytes).unwrap();
    gz.finish().unwrap();
}

#[test]
fn a_store_of_every_schema_opens_is_migrated_and_was_copied_before() {
    use std::io::Read as _;
    let directory = tempfile::tempdir().unwrap();
    let supported = weir::store::check(&directory.path().join("none"))
        .unwrap()
        .supported;
    for schema in 1..=supported {
        let file = std::fs::File::open(format!("{STORES}/schema-{schema}.redb.gz")).unwrap_or_else(
            |error| panic!("no store of schema {schema} was written down: {error}"),
        );
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(file)
            .read_to_end(&mut bytes)
            .unwrap();
        let home = directory.path().join(schema.to_string());
        std::fs::create_dir(&home).unwrap();
        let path = home.join("weir.redb");
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(weir::store::check(&path).unwrap().schema, Some(schema));
        let options = StoreOptions {
            copies: Some(home.join("copies")),
            ..StoreOptions::default()
        };
        let store = RedbStore::open(&path, options).unwrap();
        let orders = unit(&*store, "orders");
        assert_eq!(
            store.record_count(orders).unwrap(),
            1_000,
            "schema {schema}"
        );
        assert_eq!(outbox(&*store, "a").len(), 1_000);
        assert_eq!(cursor(&*store, orders).as_deref(), Some("19"));
        wait(store.set_credential("shop", Some(b"sealed".to_vec()))).unwrap();
        wait(store.commit(page(
            orders,
            1,
            20,
            vec![record("new", "A"), record("3-3", "A")],
        )))
        .unwrap();
        assert_eq!(store.record_count(orders).unwrap(), 1_001);
        // What it was before lies beside it.
        let copies = store.copies().unwrap().unwrap();
        let before: Vec<u64> = copies
            .iter()
            .filter_map(|copy| weir::store::check(&copy.path).unwrap().schema)
            .collect();
        let expected = if schema < supported {
            vec![schema]
        } else {
            Vec::new()
        };
        assert_eq!(before, expected);
        drop(store);
        assert_eq!(weir::store::check(&path).unwrap().schema, Some(supported));
    }
}

#[test]
fn a_copy_is_what_the_store_was_when_it_was_begun_and_commits_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weir.redb");
    let options = StoreOptions {
        copies: Some(directory.path().join("copies")),
        ..StoreOptions::default()
    };
    let store = RedbStore::open(&path, options).unwrap();
    wait(store.set_sinks(vec!["a".into()])).unwrap();
    let orders = unit(&*store, "orders");
    let fill = |number: usize| {
        let text = "x".repeat(20_000);
        let records = (0..50)
            .map(|id| record(&format!("{number}-{id}"), &text))
            .collect();
        wait(store.commit(page(orders, 1, number, records))).unwrap();
    };
    for number in 0..12 {
        fill(number);
    }
    // Between its batches, others commit.
    let more = std::cell::Cell::new(12);
    let order = weir::store::CopyOrder {
        at: 1_900_000_000_000,
        keep: 2,
        give_up: &|| {
            fill(more.replace(more.get() + 1));
            false
        },
    };
    let copy = store.make_copy(&order).unwrap().unwrap();
    let during = more.get() - 12;
    assert!(during >= 1, "the copy was made in one go");
    let found = weir::store::check(&copy.path).unwrap();
    assert_eq!(found.counts.unwrap().records, 600, "{found:?}");
    assert_eq!(
        store.record_count(orders).unwrap(),
        600 + during as u64 * 50
    );
    // One that is not wanted any more leaves nothing behind.
    let order = weir::store::CopyOrder {
        at: 1_900_000_000_000,
        keep: 2,
        give_up: &|| true,
    };
    assert!(matches!(store.make_copy(&order), Err(StoreError::Closed)));
    assert_eq!(store.copies().unwrap().unwrap().len(), 1);
    assert!(!directory.path().join("copies/weir.new").exists());
}
