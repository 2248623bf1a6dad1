//! What one connector may use, by configuration: shown, and held to.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use run_support::vendor::{Vendor, json, orders_with};
use run_support::*;

#[test]
fn limits_of_a_connector_are_shown_and_held_to() {
    // The records' texts are the answer's own, so a page returns some 40 bytes a record.
    let vendor = Vendor::new(|_| json(orders_with(1..=4_000, "")));
    let all = format!("{}{FILES}", connection("acme", &vendor.origin(), ""));
    let place = Place::new(&format!(
        "[connector.rest]\nmemory = \"32MiB\"\nreturned = \"64KiB\"\nlog = 3\n{all}"
    ));
    let (listed, exit) = place.json(&["connectors"]);
    assert_eq!(exit, 0, "{listed}");
    let limits = &listed["connectors"][0]["limits"];
    assert_eq!(limits["call_memory_bytes"], 32 << 20);
    assert_eq!(limits["returned_bytes"], 64 << 10);
    assert_eq!(limits["log_lines_per_second"], 3);
    assert_eq!(limits["describe_ms"], 200);
    let shown = place.ask(&["connectors", "rest"]);
    assert!(
        shown
            .out
            .contains("64 KiB of results, 3 log lines a second"),
        "{shown:?}"
    );

    let (report, exit) = place.sync(&[]);
    assert_ne!(exit, 0, "{report}");
    let (polls, _) = place.json(&["polls", "acme"]);
    let said = polls["polls"][0].to_string();
    assert!(
        said.contains("too much returned: a result may hold 65536 bytes"),
        "{said}"
    );
    assert!(place.keys("acme").is_empty());

    place.configure(&all);
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.keys("acme").len(), 4_000);
}

#[test]
fn a_file_larger_than_its_connectors_limit_does_not_load_and_says_which_key() {
    let place = Place::new("[connector.rest]\nfile = \"64KiB\"\n");
    let (listed, exit) = place.json(&["connectors"]);
    assert_eq!(exit, 1, "{listed}");
    let error = listed["failing"][0]["error"].as_str().unwrap();
    assert!(error.contains("larger than 65536 bytes"), "{error}");
    assert!(error.contains("connector.NAME.file"), "{error}");
}

#[test]
fn limits_for_a_connector_that_is_not_there_are_told() {
    let place = Place::new("[connector.resst]\nlog = 5\n");
    let running = place.start(&["run"]);
    until("it is told", || {
        running
            .log()
            .contains("there are limits for a connector that is not there")
            .then_some(())
    });
    assert_eq!(running.stop().code(), 0);
}

/// A proxy in the environment would see every call, and dial what it likes.
#[test]
fn proxies_of_the_environment_are_ignored() {
    let vendor = Vendor::new(|_| json(orders_with(1..=2, "")));
    let proxy = Vendor::new(|_| json("{}"));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let place = [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ]
    .iter()
    .fold(place, |place, name| place.env(name, &proxy.origin()))
    .env("NO_PROXY", "");
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.keys("acme"), first_revisions(2));
    assert_eq!(proxy.count(""), 0);
    assert!(vendor.count("/acme") > 0);
}
