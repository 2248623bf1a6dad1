//! A store file that is not what it should be: one clear message, and the file stays as it is.
#![allow(clippy::unwrap_used, clippy::panic)]

mod run_support;

use std::fs;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use redb::{Database, TableDefinition};
use run_support::vendor::{Vendor, json, orders};
use run_support::*;

/// A place with a store of two records.
fn filled(vendor: &Vendor) -> Place {
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    assert_eq!(place.sync(&[]).1, 0);
    place
}

/// Every verb that needs the store refuses in one clear line, and touches nothing.
fn is_refused(place: &Place, what: &str, word: &str) {
    let file = place.data().join("weir.redb");
    let before = fs::read(&file).unwrap();
    for verb in ["run", "sync", "status"] {
        let ended = place.ask(&[verb]);
        assert_eq!(ended.code(), 1, "{what}, {verb}: {ended:?}");
        assert!(ended.err.contains("weir.redb"), "{what}, {verb}: {ended:?}");
        assert!(ended.err.contains(word), "{what}, {verb}: {ended:?}");
        assert!(
            fs::read(&file).unwrap() == before,
            "{what}: {verb} has changed the file"
        );
    }
}

#[test]
fn case_143_a_damaged_store_is_refused_and_kept() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = filled(&vendor);
    let file = place.data().join("weir.redb");
    let good = fs::read(&file).unwrap();
    let mut noise = vec![0; good.len()];
    StdRng::seed_from_u64(7).fill_bytes(&mut noise);
    let mut header_only = noise.clone();
    header_only.splice(..64, good.iter().take(64).copied());
    let mut zeroed = good.clone();
    zeroed.iter_mut().skip(4096).for_each(|byte| *byte = 0);
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("one byte", good.iter().take(1).copied().collect()),
        ("half", good.iter().take(good.len() / 2).copied().collect()),
        ("noise", noise),
        ("a header before noise", header_only),
        ("a header before zeros", zeroed),
        ("text", b"not a database\n".repeat(500)),
    ] {
        fs::write(&file, bytes).unwrap();
        is_refused(&place, what, "damaged or not a weir store");
    }
    fs::write(&file, good).unwrap();
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(
        place.keys("acme"),
        first_revisions(2),
        "the good file goes on as if nothing had been"
    );
}

#[test]
fn a_newer_store_is_refused_and_kept() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = filled(&vendor);
    let db = Database::open(place.data().join("weir.redb")).unwrap();
    let tx = db.begin_write().unwrap();
    {
        let meta: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
        let mut meta = tx.open_table(meta).unwrap();
        let newer = 4_711_u64.to_be_bytes();
        meta.insert("schema", newer.as_slice()).unwrap();
    }
    tx.commit().unwrap();
    drop(db);
    is_refused(&place, "newer", "store schema 4711");
}

#[test]
fn a_database_of_another_program_is_refused_and_kept() {
    let place = Place::new("");
    fs::create_dir(place.data()).unwrap();
    let db = Database::create(place.data().join("weir.redb")).unwrap();
    let tx = db.begin_write().unwrap();
    let table: TableDefinition<'_, &str, u64> = TableDefinition::new("guests");
    tx.open_table(table).unwrap().insert("anna", 7).unwrap();
    tx.commit().unwrap();
    drop(db);
    is_refused(&place, "another program's", "database of another program");
}

#[test]
fn a_directory_in_the_stores_place_is_named() {
    let place = Place::new("");
    fs::create_dir_all(place.data().join("weir.redb")).unwrap();
    let ended = place.ask(&["run"]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.err.contains("weir.redb"), "{ended:?}");
}
