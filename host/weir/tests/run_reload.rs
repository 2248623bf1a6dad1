//! Connectors come, change and go while the host runs.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use run_support::vendor::{Asked, Door, Vendor, json, orders};
use run_support::*;
use serde_json::Value;

fn rest() -> Vec<u8> {
    fs::read(built_connectors().join("rest.wasm")).unwrap()
}

/// The same connector in other bytes: a custom section changes nothing of what it does.
fn rest_with_a_mark(mark: u8) -> Vec<u8> {
    let mut bytes = rest();
    bytes.extend([0, 7, 4, b'm', b'a', b'r', b'k', mark, mark]);
    bytes
}

/// As a slow copy does it.
fn write_in_pieces(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(path)
        .unwrap();
    for piece in bytes.chunks(bytes.len().div_ceil(10)) {
        file.write_all(piece).unwrap();
        file.flush().unwrap();
        std::thread::sleep(Duration::from_millis(120));
    }
}

fn digest(place: &Place) -> Option<String> {
    let (answer, _) = place.json(&["connectors"]);
    let connectors = answer["connectors"].as_array().unwrap();
    Some(connectors.first()?["digest"].as_str().unwrap().to_owned())
}

fn failing(answer: &Value) -> Vec<String> {
    let failing = answer["failing"].as_array().unwrap();
    failing
        .iter()
        .map(|file| file["file"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn case_165_a_connector_is_written_replaced_deleted_and_put_back() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = Place::empty();
    fs::create_dir(place.connectors()).unwrap();
    place.configure(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let file = place.connectors().join("rest.wasm");
    let mut running = place.start(&["run"]);
    running.until_said("the connection is not polled");
    let (status, exit) = place.json(&["status"]);
    assert_eq!(exit, 3, "{status}");

    // It comes, slowly: once it is whole it is loaded, and polls begin.
    write_in_pieces(&file, &rest());
    place.until_delivered("acme", 2);
    let first = digest(&place).unwrap();
    let loaded = |running: &Running| running.log().matches("connector loaded").count();
    assert_eq!(loaded(&running), 1, "{}", running.log());

    // It is written over, slowly: the old one serves meanwhile, and nobody reads what is half-written.
    let complaints = |running: &Running| running.log().matches("does not load").count();
    let complained = complaints(&running);
    let before = vendor.count("/acme");
    write_in_pieces(&file, &rest_with_a_mark(1));
    assert!(
        vendor.count("/acme") > before,
        "polls go on while the file is written"
    );
    let second = until("the new one is loaded", || {
        digest(&place).filter(|now| *now != first)
    });
    assert_eq!(loaded(&running), 2, "{}", running.log());
    assert_eq!(complaints(&running), complained, "{}", running.log());

    // It is replaced by a rename.
    let aside = place.path("rest.new");
    fs::write(&aside, rest_with_a_mark(2)).unwrap();
    fs::rename(&aside, &file).unwrap();
    until("the third one is loaded", || {
        digest(&place).filter(|now| *now != first && *now != second)
    });
    assert_eq!(loaded(&running), 3, "{}", running.log());

    // It is deleted: its connection rests, with a word, and keeps its state.
    fs::remove_file(&file).unwrap();
    running.until_said("connector removed");
    let not_ready = until("the connection rests", || {
        let (status, _) = place.json(&["status"]);
        status["connections"][0]["not_ready"]
            .as_str()
            .map(str::to_owned)
    });
    assert!(not_ready.contains("no connector `rest`"), "{not_ready}");
    let (report, exit) = place.sync(&["acme"]);
    assert_eq!(exit, 1, "{report}");
    let calls = vendor.count("/acme");
    let (records, _) = place.json(&["records", "acme/orders"]);
    assert_eq!(records["units"][0]["count"], 2, "{records}");

    // Junk comes: it is named, and hurts nobody.
    fs::write(place.connectors().join("empty.wasm"), "").unwrap();
    fs::write(
        place.connectors().join("notes.wasm"),
        "to do: write a connector\n",
    )
    .unwrap();
    fs::write(place.connectors().join("README"), "not looked at").unwrap();
    let named = until("the junk is named", || {
        let (answer, exit) = place.json(&["connectors"]);
        let failing = failing(&answer);
        (failing.len() == 2).then_some((failing, exit))
    });
    assert!(
        named.0[0].ends_with("empty.wasm") && named.0[1].ends_with("notes.wasm"),
        "{named:?}"
    );
    assert_eq!(named.1, 1);
    let text = place.ask(&["connectors"]);
    assert!(
        text.out.contains("empty.wasm") && text.out.contains("notes.wasm"),
        "{text:?}"
    );
    let (status, exit) = place.json(&["status"]);
    assert_eq!(
        (status["failing_files"].as_array().unwrap().len(), exit),
        (2, 3),
        "{status}"
    );
    assert_eq!(
        vendor.count("/acme"),
        calls,
        "a connection without a connector is not polled"
    );

    // It is put back: polling goes on from where it was.
    vendor.script(|_| json(orders(3)));
    fs::write(&file, rest()).unwrap();
    place.until_delivered("acme", 3);
    assert_eq!(running.stop().code(), 0);
    assert_eq!(
        place.keys("acme"),
        first_revisions(3),
        "nothing is delivered anew"
    );
}

#[test]
fn a_file_that_does_not_load_leaves_the_old_version_running() {
    let vendor = Vendor::new(|_| json(orders(1)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let file = place.connectors().join("rest.wasm");
    let mut running = place.start(&["run"]);
    place.until_delivered("acme", 1);
    let mut half = rest();
    half.truncate(half.len() / 2);
    fs::write(&file, half).unwrap();
    running.until_said("connector file does not load");
    vendor.script(|_| json(orders(2)));
    place.until_delivered("acme", 2);
    let (answer, exit) = place.json(&["connectors"]);
    assert_eq!((failing(&answer).len(), exit), (1, 1), "{answer}");
    assert_eq!(
        answer["connectors"].as_array().unwrap().len(),
        1,
        "{answer}"
    );
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(2));
}

#[test]
fn a_directory_that_goes_away_and_comes_back_is_noticed() {
    let vendor = Vendor::new(|_| json(orders(1)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let mut running = place.start(&["run"]);
    place.until_delivered("acme", 1);
    fs::rename(place.connectors(), place.path("elsewhere")).unwrap();
    running.until_said("connectors directory");
    vendor.script(|_| json(orders(2)));
    // What was loaded goes on, or rests; when the directory is back, it polls.
    fs::rename(place.path("elsewhere"), place.connectors()).unwrap();
    place.until_delivered("acme", 2);
    // And the new directory is watched.
    fs::write(place.connectors().join("empty.wasm"), "").unwrap();
    until("the junk is named", || {
        (place.json(&["connectors"]).1 == 1).then_some(())
    });
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(2));
}

#[test]
fn case_165_a_poll_in_flight_ends_on_the_version_that_it_began_with() {
    let held_back = |count| {
        let door = Door::default();
        let held = door.clone();
        let script = move |_: &Asked| held.behind(json(orders(count)));
        (door, script)
    };
    let (door, script) = held_back(2);
    let vendor = Vendor::new(script);
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let file = place.connectors().join("rest.wasm");
    let mut running = place.start(&["run"]);
    let until_in_flight = |calls| {
        until("a call is in flight", || {
            (vendor.count("/acme") == calls).then_some(())
        });
    };

    // It is deleted meanwhile.
    until_in_flight(1);
    fs::remove_file(&file).unwrap();
    running.until_said("connector removed");
    door.open();
    place.until_delivered("acme", 2);
    until("the poll has ended", || {
        let (status, _) = place.json(&["status"]);
        (status["totals"]["polling"] == 0).then_some(())
    });
    assert_eq!(vendor.count("/acme"), 1);

    // It is replaced meanwhile.
    let (door, script) = held_back(3);
    vendor.script(script);
    fs::write(&file, rest()).unwrap();
    until_in_flight(2);
    fs::write(&file, rest_with_a_mark(1)).unwrap();
    until("it is replaced", || {
        (running.log().matches("connector loaded").count() == 2).then_some(())
    });
    door.open();
    place.until_delivered("acme", 3);
    until("the next poll is made", || {
        (vendor.count("/acme") > 2).then_some(())
    });
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(3));
    for poll in place.polls("acme") {
        assert_eq!(poll["outcome"], "ok", "{poll}");
    }
}
