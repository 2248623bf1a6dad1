//! How the host ends when it is told to: in good order the first time, at once the second time, and whatever was not
//! done is done at the next start.
#![allow(clippy::unwrap_used, clippy::panic)]

mod run_support;

use std::time::Duration;

use run_support::vendor::{Door, Vendor, answer, json, orders, silence};
use run_support::*;
use rustix::process::Signal;

const STOPPING: &str = "stopping: calls in flight end first";

/// A vendor that holds every answer back until its door is open.
fn held_back(count: usize) -> (Vendor, Door) {
    let door = Door::default();
    let held = door.clone();
    let vendor = Vendor::new(move |_| held.behind(json(orders(count))));
    (vendor, door)
}

fn place(vendor: &Vendor) -> Place {
    Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ))
}

#[test]
fn an_answer_in_flight_is_read_stored_and_delivered_before_the_end() {
    for (signal, verb) in [(Signal::TERM, "run"), (Signal::INT, "run")] {
        let (vendor, door) = held_back(3);
        let place = place(&vendor);
        let mut running = place.start(&[verb]);
        until("the call is in flight", || {
            (vendor.count("/acme") == 1).then_some(())
        });
        running.signal(signal);
        running.until_said(STOPPING);
        assert!(!running.is_gone());
        door.open();
        let ended = running.end();
        assert_eq!(ended.code(), 0, "{ended:?}");
        assert_eq!(place.keys("acme"), first_revisions(3));
        assert_eq!(vendor.count("/acme"), 1, "nothing new is begun");

        vendor.script(|_| json(orders(5)));
        let running = place.start(&["run"]);
        place.until_delivered("acme", 5);
        assert_eq!(running.stop().code(), 0);
        assert_eq!(place.keys("acme"), first_revisions(5));
    }
}

#[test]
fn an_answer_that_never_comes_holds_the_end_up_for_one_calls_time_at_most() {
    let vendor = Vendor::new(|_| silence());
    let place = Place::new(&format!(
        "[host]\ntimeout = {{ connect = \"1s\", idle = \"1s\", total = \"2s\" }}\n{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let mut running = place.start(&["run"]);
    until("the call is in flight", || {
        (vendor.count("/acme") == 1).then_some(())
    });
    running.signal(Signal::TERM);
    running.until_said(STOPPING);
    // The call's two seconds, and what a busy machine needs besides.
    let ended = running.end_within(Duration::from_secs(20));
    assert_eq!(ended.code(), 0, "{ended:?}");
    vendor.script(|_| json(orders(2)));
    place.sync(&[]);
    assert_eq!(place.keys("acme"), first_revisions(2));
}

#[test]
fn a_second_signal_ends_it_at_once_and_nothing_is_lost() {
    let (vendor, door) = held_back(3);
    let place = place(&vendor);
    let mut running = place.start(&["run"]);
    until("the call is in flight", || {
        (vendor.count("/acme") == 1).then_some(())
    });
    running.signal(Signal::TERM);
    running.until_said(STOPPING);
    running.signal(Signal::INT);
    // The answer is still held back.
    let ended = running.end();
    assert_eq!(ended.code(), 130, "{ended:?}");
    assert!(ended.err.contains("stopping at once"), "{ended:?}");
    assert!(place.keys("acme").is_empty());

    door.open();
    let running = place.start(&["run"]);
    place.until_delivered("acme", 3);
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(3));
}

#[test]
fn ctrl_c_in_a_sync_ends_it_in_good_order() {
    let (vendor, door) = held_back(3);
    let place = place(&vendor);
    let mut running = place.start(&["sync", "--json"]);
    until("the call is in flight", || {
        (vendor.count("/acme") == 1).then_some(())
    });
    running.signal(Signal::INT);
    assert!(!running.is_gone());
    door.open();
    let ended = running.end();
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["stopped"], true, "{report}");
    assert_eq!(
        ended.code(),
        1,
        "not all was done, or nobody knows: {ended:?}"
    );
    assert_eq!(place.keys("acme"), first_revisions(3));
    place.sync(&[]);
    assert_eq!(place.keys("acme"), first_revisions(3));
}

#[test]
fn a_second_ctrl_c_in_a_sync_ends_it_at_once() {
    let (vendor, door) = held_back(3);
    let place = place(&vendor);
    let running = place.start(&["sync", "--log-level", "info"]);
    until("the call is in flight", || {
        (vendor.count("/acme") == 1).then_some(())
    });
    let mut running = running;
    running.signal(Signal::INT);
    running.until_said(STOPPING);
    running.signal(Signal::INT);
    assert_eq!(running.end().code(), 130);
    door.open();
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(place.keys("acme"), first_revisions(3));
}

#[test]
fn a_host_without_anything_to_do_ends_too() {
    let place = Place::new("");
    let mut running = place.start(&["run"]);
    running.until_said("no connection is configured");
    let ended = running.stop();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(!place.data().join("weir.sock").exists());
}

#[test]
fn case_009_a_long_wait_holds_up_neither_others_nor_the_end_and_outlives_it() {
    let vendor = Vendor::new(|asked| match asked.target.starts_with("/tired") {
        true => answer(503, &[("retry-after", "3600")], "come back later"),
        false => json(orders(2)),
    });
    let place = Place::new(&format!(
        "{}{}{FILES}",
        connection("tired", &vendor.origin(), ""),
        connection("acme", &vendor.origin(), ""),
    ));
    let in_an_hour = |place: &Place| {
        let (status, _) = place.json(&["status"]);
        let units = status["units"].as_array().unwrap();
        let tired = units.iter().find(|unit| unit["unit"] == "tired/orders")?;
        let wait = tired["due"].as_i64()? - status["now"].as_i64()?;
        (3_000_000..=4_000_000).contains(&wait).then_some(())
    };
    for start in 1..=3 {
        let mut running = place.start(&["run"]);
        // It listens from then on; before, a question that takes long would find its store locked and nobody there.
        running.until_said("weir runs");
        until("it waits", || in_an_hour(&place));
        let calls = vendor.count("/acme");
        until("the other goes on", || {
            (vendor.count("/acme") > calls + 2).then_some(())
        });
        match start {
            // Killed, ended in good order, and ended again.
            1 => running.kill(),
            _ => {
                running.signal(Signal::TERM);
                running.until_said(STOPPING);
                assert_eq!(running.end_within(Duration::from_secs(20)).code(), 0);
            }
        }
    }
    assert_eq!(vendor.count("/tired"), 1);
    // Nobody's question makes it early either.
    place.sync(&[]);
    assert_eq!(vendor.count("/tired"), 1);
    assert_eq!(place.keys("acme"), first_revisions(2));
}
