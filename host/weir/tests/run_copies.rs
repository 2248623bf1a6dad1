//! Copies of the store: made while the host runs, and what coming back to one means.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use run_support::vendor::{Vendor, json};
use run_support::*;
use weir_tests::judge::Delivered;

const COPIES: &str = "[host]\ncopies = { every = \"1h\", keep = 2 }\n";

/// The vendor's records: id and version.
fn versions(of: &[(usize, usize)]) -> String {
    let records: Vec<String> = of
        .iter()
        .map(|(id, version)| format!(r#"{{"id":{id},"version":{version}}}"#))
        .collect();
    format!(r#"{{"orders":[{}]}}"#, records.join(","))
}

fn answers(vendor: &Vendor, of: &[(usize, usize)]) {
    let body = versions(of);
    vendor.script(move |_| json(body.clone()));
}

fn copies(place: &Place) -> Vec<PathBuf> {
    let dir = fs::read_dir(place.path("data/copies"));
    let mut found: Vec<PathBuf> = dir
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "redb"))
        .collect();
    found.sort();
    found
}

/// No key has ever named two contents, and the last revision of each record is what its vendor shows.
fn judge(lines: &[Delivered], shown: &[(usize, usize)]) {
    let mut contents: BTreeMap<&str, &str> = BTreeMap::new();
    let mut last: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for line in lines {
        let content = line.data.get();
        let known = contents.entry(&line.key).or_insert(content);
        assert_eq!(*known, content, "{} names two contents", line.key);
        let newest = last.entry(&line.id).or_insert((line.revision, content));
        if line.revision >= newest.0 {
            *newest = (line.revision, content);
        }
    }
    for (id, version) in shown {
        let (_, content) = last[id.to_string().as_str()];
        assert_eq!(content, format!(r#"{{"id":{id},"version":{version}}}"#));
    }
    assert_eq!(last.len(), shown.len());
}

/// A store with a copy, and a life after it: records that came, changed, and changed back.
fn lived(vendor: &Vendor) -> Place {
    let place = Place::new(&format!(
        "{COPIES}{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    answers(vendor, &[(1, 1), (2, 1), (3, 1), (4, 1)]);
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(copies(&place).len(), 1);
    for shown in [
        vec![(1, 2), (2, 2), (3, 1), (4, 1), (5, 1), (6, 1)],
        vec![(1, 3), (2, 1), (3, 1), (4, 1), (5, 2), (6, 1)],
    ] {
        answers(vendor, &shown);
        assert_eq!(place.sync(&[]).1, 0);
    }
    assert_eq!(copies(&place).len(), 1, "one an hour");
    place
}

#[test]
fn a_damaged_store_is_explained_and_brought_back_under_the_same_keys() {
    let vendor = Vendor::new(|_| json("{}"));
    for seed in 0..6 {
        let place = lived(&vendor);
        let before = place.keys("acme");
        let file = place.data().join("weir.redb");
        let mut bytes = fs::read(&file).unwrap();
        let mut random = StdRng::seed_from_u64(seed);
        match seed {
            0 => bytes.clear(),
            1 => bytes.truncate(bytes.len() / 3),
            2 => random.fill_bytes(&mut bytes),
            _ => {
                for _ in 0..400 {
                    let at = random.random_range(0..bytes.len() - 64);
                    random.fill_bytes(&mut bytes[at..at + 64]);
                }
            }
        }
        fs::write(&file, &bytes).unwrap();

        let (checked, exit) = place.json(&["store", "check"]);
        assert_eq!(
            (checked["state"].as_str(), exit),
            (Some("damaged"), 1),
            "{checked}"
        );
        let told = place.ask(&["store", "check"]);
        assert!(told.out.contains("is damaged: "), "{told:?}");
        assert!(told.out.contains("`weir store restore`"), "{told:?}");
        assert!(fs::read(&file).unwrap() == bytes, "a check changes nothing");

        let unasked = place.ask(&["store", "restore"]);
        assert_eq!(unasked.code(), 2, "{unasked:?}");
        assert!(unasked.err.contains("under the same keys"), "{unasked:?}");
        assert!(fs::read(&file).unwrap() == bytes, "nobody has agreed");
        let (restored, exit) = place.json(&["store", "restore", "--yes"]);
        assert_eq!(exit, 0, "{restored}");
        let kept = place.path(restored["kept"].as_str().unwrap());
        assert!(fs::read(kept).unwrap() == bytes, "what was there is kept");
        assert_eq!(place.json(&["store", "check"]).0["state"], "sound");

        // Nothing has changed since: what comes again has the key that it had.
        let shown = [(1, 3), (2, 1), (3, 1), (4, 1), (5, 2), (6, 1)];
        assert_eq!(place.sync(&[]).1, 0);
        for key in place.keys("acme") {
            assert!(before.contains(&key), "seed {seed}: {key} is new");
        }
        judge(&place.delivered("acme"), &shown);
        // What changes later has a key that nobody has.
        let shown = [(1, 4), (2, 1), (3, 2), (4, 1), (5, 1), (6, 2), (7, 1)];
        answers(&vendor, &shown);
        assert_eq!(place.sync(&[]).1, 0);
        judge(&place.delivered("acme"), &shown);
    }
}

#[test]
fn what_changed_while_the_store_was_gone_gets_a_key_of_its_own() {
    let vendor = Vendor::new(|_| json("{}"));
    let place = lived(&vendor);
    fs::remove_file(place.data().join("weir.redb")).unwrap();
    assert_eq!(place.json(&["store", "check"]).0["state"], "missing");
    assert_eq!(place.json(&["store", "restore", "--yes"]).1, 0);
    // 1 had three versions and 2 had two when the store was lost; 2 and 5 are what the copy, and nobody, knew.
    let shown = [(1, 9), (2, 2), (3, 1), (4, 9), (5, 9), (6, 1), (7, 1)];
    answers(&vendor, &shown);
    assert_eq!(place.sync(&[]).1, 0);
    judge(&place.delivered("acme"), &shown);
    // And back again to what the store that was lost had given last.
    let shown = [(1, 3), (2, 1), (3, 1), (4, 1), (5, 2), (6, 1), (7, 1)];
    answers(&vendor, &shown);
    assert_eq!(place.sync(&[]).1, 0);
    judge(&place.delivered("acme"), &shown);
}

#[test]
fn a_damaged_copy_is_passed_over_and_a_named_one_is_taken() {
    let vendor = Vendor::new(|_| json("{}"));
    let place = lived(&vendor);
    let whole = copies(&place).remove(0);
    let newer = place.path("data/copies/weir.000099.20310304T100000Z.redb");
    fs::write(&newer, "noise").unwrap();
    let (restored, exit) = place.json(&["store", "restore", "--yes"]);
    assert_eq!(exit, 0, "{restored}");
    assert!(
        restored["plan"]["copy"]["path"]
            .as_str()
            .unwrap()
            .ends_with(whole.file_name().unwrap().to_str().unwrap())
    );
    assert_eq!(restored["plan"]["passed_over"].as_array().unwrap().len(), 1);
    let named = place.ask(&[
        "store",
        "restore",
        "--yes",
        "--from",
        newer.to_str().unwrap(),
    ]);
    assert_eq!(named.code(), 1, "{named:?}");
    assert!(named.err.contains("no copy in "), "{named:?}");
    let elsewhere = place.path("mine.redb");
    fs::copy(&whole, &elsewhere).unwrap();
    // The file that the first restore has kept has this second's name.
    for path in place.everything() {
        if path.extension().is_some_and(|end| end == "kept") {
            fs::remove_file(path).unwrap();
        }
    }
    let named = place.ask(&["store", "restore", "--yes", "--from", "mine.redb"]);
    assert_eq!(named.code(), 0, "{named:?}");
    assert_eq!(place.sync(&[]).1, 0);
    judge(
        &place.delivered("acme"),
        &[(1, 3), (2, 1), (3, 1), (4, 1), (5, 2), (6, 1)],
    );
}

#[test]
fn a_running_host_copies_rotates_and_tells() {
    let vendor = Vendor::new(|_| json("{}"));
    answers(&vendor, &[(1, 1), (2, 1)]);
    let place = Place::new(&format!(
        "[host]\ncopies = {{ every = \"1s\", keep = 2 }}\n{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let running = place.start(&["run"]);
    place.until_delivered("acme", 2);
    until("the third copy is there and the first is gone", || {
        let copies = copies(&place);
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let numbers: Vec<String> = copies.iter().map(name).collect();
        (numbers.len() <= 3 && numbers.first()? >= &"weir.000002".to_owned()).then_some(())
    });
    let (status, _) = place.json(&["status"]);
    assert!(status["copies"]["newest"].as_i64().unwrap() > 0, "{status}");
    assert!(place.ask(&["status"]).out.contains("The store was copied "));
    let busy = place.ask(&["store", "check"]);
    assert_eq!(busy.code(), 1);
    assert!(busy.err.contains("in use by another weir"), "{busy:?}");
    assert_eq!(running.stop().code(), 0);
    let left = fs::read_dir(place.path("data/copies")).unwrap();
    let left: Vec<String> = left
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let journals = left
        .iter()
        .filter(|name| name.starts_with("given."))
        .count();
    assert!(journals <= 3, "{left:?}");
}

#[test]
fn a_copy_that_finds_no_room_is_told_and_polling_goes_on() {
    let vendor = Vendor::new(|_| json("{}"));
    answers(&vendor, &[(1, 1), (2, 1)]);
    let place = Place::new(&format!(
        "[host]\ncopies = {{ every = \"1s\", keep = 2 }}\n{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    fs::create_dir(place.data()).unwrap();
    // Nothing can be made there.
    fs::create_dir(place.path("data/copies")).unwrap();
    fs::create_dir(place.path("data/copies/weir.new")).unwrap();
    let running = place.start(&["run"]);
    place.until_delivered("acme", 2);
    let status = until("it is told", || {
        let (status, _) = place.json(&["status"]);
        status["copies"]["failed"].is_string().then_some(status)
    });
    let needs = status["needs"].as_array().unwrap();
    assert!(
        needs.iter().any(|need| need["signal"] == "copies"),
        "{status}"
    );
    answers(&vendor, &[(1, 1), (2, 1), (3, 1)]);
    place.until_delivered("acme", 3);
    fs::remove_dir(place.path("data/copies/weir.new")).unwrap();
    until("it is tried again", || {
        (!copies(&place).is_empty()).then_some(())
    });
    until("it is well again", || {
        let (status, _) = place.json(&["status"]);
        status["copies"]["failed"].is_null().then_some(())
    });
    assert_eq!(running.stop().code(), 0);
}
