//! A connector's new file that wants more than the one before gets nothing until a person says so.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::fs;

use run_support::vendor::{Vendor, json, orders};
use run_support::*;

/// The connector with another text of the same length in its data.
fn patched(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(built_connectors().join("rest.wasm")).unwrap();
    let places: Vec<usize> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from.as_bytes())
        .map(|(place, _)| place)
        .collect();
    assert!(!places.is_empty(), "{from} is in the connector");
    for place in places {
        bytes[place..place + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

fn started() -> (Vendor, Place) {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.json(&["connectors", "verify"]).1, 0);
    (vendor, place)
}

#[test]
fn a_file_that_wants_another_credential_is_not_called_until_it_is_trusted() {
    let (vendor, place) = started();
    let calls = vendor.count("/acme");
    fs::write(
        place.connectors().join("rest.wasm"),
        patched("X-API-Key", "X-Any-Key"),
    )
    .unwrap();

    let (report, exit) = place.sync(&[]);
    assert_ne!(exit, 0, "{report}");
    let why = report["left_out"][0]["why"].as_str().unwrap();
    assert!(why.contains("as header X-Any-Key"), "{why}");
    assert!(why.contains("weir trust rest"), "{why}");
    assert_eq!(vendor.count("/acme"), calls, "no call, no credential");
    let (checked, exit) = place.json(&["check", "--offline"]);
    assert_eq!(exit, 1, "{checked}");
    assert!(checked.to_string().contains("weir trust rest"), "{checked}");
    let (verified, exit) = place.json(&["connectors", "verify"]);
    assert_eq!(
        (exit, &verified["files"][0]["state"]),
        (1, &"changed".into())
    );

    let (trusted, exit) = place.json(&["trust", "rest"]);
    assert_eq!(exit, 0, "{trusted}");
    let more = trusted["more"][0].as_str().unwrap();
    assert!(more.ends_with("as header X-Any-Key"), "{trusted}");
    assert_eq!(place.json(&["connectors", "verify"]).1, 0);
    assert_eq!(place.sync(&[]).1, 0);
    assert!(vendor.count("/acme") > calls);
    assert_eq!(place.keys("acme"), first_revisions(2));
}

#[test]
fn a_file_that_wants_to_call_elsewhere_rests_in_a_running_host_too() {
    let (vendor, place) = started();
    let mut running = place.start(&["run"]);
    let calls = vendor.count("/acme");
    until("it polls", || (vendor.count("/acme") > calls).then_some(()));
    fs::write(
        place.connectors().join("rest.wasm"),
        patched("{base_url}", "https://ab"),
    )
    .unwrap();
    running.until_said("calls https://ab");
    let (status, exit) = place.json(&["status"]);
    assert_eq!(exit, 3, "{status}");
    assert!(status.to_string().contains("weir trust rest"), "{status}");

    // The former file comes back: nothing has to be said.
    let former = fs::read(built_connectors().join("rest.wasm")).unwrap();
    fs::write(place.connectors().join("rest.wasm"), former).unwrap();
    let calls = vendor.count("/acme");
    until("it polls again", || {
        (vendor.count("/acme") > calls).then_some(())
    });
    assert_eq!(place.json(&["connectors", "verify"]).1, 0);
}

#[test]
fn a_lock_file_that_does_not_read_trusts_nothing_anew() {
    let (vendor, place) = started();
    let lock = place.path("data/connectors.lock");
    fs::write(&lock, "[connector").unwrap();
    let calls = vendor.count("/acme");
    let (report, exit) = place.sync(&[]);
    assert_ne!(exit, 0, "{report}");
    assert!(report.to_string().contains("connectors.lock"), "{report}");
    assert_eq!(vendor.count("/acme"), calls);
    assert_eq!(
        fs::read_to_string(&lock).unwrap(),
        "[connector",
        "left as it is"
    );
}
