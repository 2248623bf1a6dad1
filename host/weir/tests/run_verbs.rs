//! Every verb, while a host runs and without one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use run_support::vendor::{Door, Vendor, json, orders};
use run_support::*;
use serde_json::Value;

const READ_ONLY: [&[&str]; 7] = [
    &["status"],
    &["records"],
    &["records", "acme/orders"],
    &["polls"],
    &["gaps"],
    &["connectors"],
    &["connectors", "rest"],
];

fn place(vendor: &Vendor) -> Place {
    Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ))
}

/// All keys of an answer, with those of its parts, but not of what may be empty in one of two answers.
fn shape(value: &Value) -> Vec<String> {
    let Some(object) = value.as_object() else {
        return Vec::new();
    };
    let mut keys: Vec<String> = object.keys().cloned().collect();
    keys.sort();
    keys
}

#[test]
fn every_verb_answers_alike_with_a_host_and_without_one() {
    let vendor = Vendor::new(|_| json(orders(3)));
    let place = place(&vendor);
    assert_eq!(place.sync(&[]).1, 0);

    let alone: Vec<(Value, i32)> = READ_ONLY.iter().map(|args| place.json(args)).collect();
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    let asked: Vec<(Value, i32)> = READ_ONLY.iter().map(|args| place.json(args)).collect();
    for ((args, alone), asked) in READ_ONLY.iter().zip(&alone).zip(&asked) {
        assert_eq!((alone.1, asked.1), (0, 0), "{args:?}: {alone:?} {asked:?}");
        assert_eq!(shape(&alone.0), shape(&asked.0), "{args:?}");
        let text = place.ask(args);
        assert_eq!(text.code(), 0, "{args:?}");
        assert!(!text.out.trim().is_empty(), "{args:?}");
    }
    assert!(alone[0].0["running"].is_null());
    assert!(asked[0].0["running"].is_u64());
    assert_eq!(
        asked[2].0["units"][0]["records"].as_array().unwrap().len(),
        3
    );

    for args in [
        &["check"][..],
        &["check", "--offline"],
        &["resume", "acme"],
        &["sync", "acme"],
    ] {
        let (answer, exit) = place.json(args);
        assert_eq!(exit, 0, "{args:?}: {answer}");
    }
    let (_, exit) = place.json(&["sync", "acme", "--full"]);
    assert_eq!(exit, 0);
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(3), "nothing came twice");
    for args in [
        &["check"][..],
        &["resume", "acme"],
        &["sync", "acme", "--full"],
    ] {
        let (answer, exit) = place.json(args);
        assert_eq!(exit, 0, "{args:?}: {answer}");
    }
    assert_eq!(place.keys("acme"), first_revisions(3));
}

#[test]
fn what_is_not_there_is_said_with_the_nearest_name() {
    let vendor = Vendor::new(|_| json(orders(1)));
    let place = place(&vendor);
    let mut hosts = vec![None];
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    hosts.push(Some(running));
    // With the host first, then without.
    while let Some(host) = hosts.pop() {
        for args in [
            &["sync", "acmee"][..],
            &["polls", "acmee"],
            &["records", "acmee/orders"],
            &["resume", "acmee"],
        ] {
            let ended = place.ask(args);
            assert_eq!(ended.code(), 2, "{args:?}: {ended:?}");
            let (named, rest) = ended.err.split_once("acmee").unwrap();
            assert!(named.starts_with("weir: no "), "{args:?}: {ended:?}");
            assert!(rest.contains("acme"), "{args:?}: {ended:?}");
        }
        drop(host);
    }
}

#[test]
fn case_035_syncs_for_one_unit_join_and_it_is_never_polled_twice_at_once() {
    let door = Door::default();
    let held = door.clone();
    let vendor = Vendor::new(move |_| held.behind(json(orders(3))));
    let place = place(&vendor);
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    until("the host polls", || {
        (vendor.count("/acme") == 1).then_some(())
    });
    let mut syncs = [
        place.start(&["sync", "acme", "--json"]),
        place.start(&["sync", "acme/orders", "--json"]),
    ];
    // Both have been heard when they say so; until then the door stays shut.
    for sync in &mut syncs {
        sync.until_said("joining that poll");
    }
    let (status, _) = place.json(&["status"]);
    assert_eq!(status["totals"]["polling"], 1, "{status}");
    assert_eq!(vendor.count("/acme"), 1);
    door.open();
    for sync in syncs {
        let ended = sync.end();
        assert_eq!(ended.code(), 0, "{ended:?}");
        let report: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(report["delivered"], true, "{report}");
        assert_eq!(report["units"][0]["outcome"], "ok", "{report}");
    }
    assert_eq!(vendor.most_at_once(), 1);
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(3));
}

#[test]
fn a_sync_that_is_taken_back_leaves_the_host_alone() {
    let door = Door::default();
    let held = door.clone();
    let vendor = Vendor::new(move |_| held.behind(json(orders(2))));
    let place = place(&vendor);
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    until("the host polls", || {
        (vendor.count("/acme") == 1).then_some(())
    });
    place.start(&["sync", "acme"]).kill();
    door.open();
    place.until_delivered("acme", 2);
    assert!(!running.is_gone());
    assert_eq!(running.stop().code(), 0);
}

#[test]
fn a_second_host_on_one_data_directory_is_told_of_the_first() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = place(&vendor);
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    place.until_delivered("acme", 2);
    let second = place.ask(&["run"]);
    assert_eq!(second.code(), 1, "{second:?}");
    // Somebody has tidied up: the store itself is locked too.
    std::fs::remove_file(place.data().join("weir.redb.lock")).unwrap();
    let third = place.ask(&["run"]);
    assert_eq!(third.code(), 1, "{third:?}");
    assert!(third.err.contains("already runs on data"), "{third:?}");
    assert!(!running.is_gone());
    assert_eq!(place.json(&["status"]).1, 0, "the first one still answers");
    assert_eq!(running.stop().code(), 0);
}

#[test]
fn two_syncs_without_a_host_do_not_meet_in_the_store() {
    let door = Door::default();
    let held = door.clone();
    let vendor = Vendor::new(move |_| held.behind(json(orders(2))));
    let place = place(&vendor);
    let first = place.start(&["sync", "--json"]);
    until("the first one polls", || {
        (vendor.count("/acme") == 1).then_some(())
    });
    let second = place.ask(&["sync"]);
    assert_eq!(second.code(), 1, "{second:?}");
    assert!(second.err.contains("another weir is at work"), "{second:?}");
    door.open();
    assert_eq!(first.end().code(), 0);
    assert_eq!(vendor.most_at_once(), 1);
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.keys("acme"), first_revisions(2));
}

#[test]
fn a_socket_that_a_killed_host_left_behind_is_no_obstacle() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = place(&vendor);
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    place.until_delivered("acme", 2);
    running.kill();
    assert!(place.data().join("weir.sock").exists());
    let (status, exit) = place.json(&["status"]);
    assert_eq!(exit, 0, "{status}");
    assert!(status["running"].is_null(), "{status}");
    assert_eq!(place.sync(&[]).1, 0);
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    until("the new host answers", || {
        place.json(&["status"]).0["running"].is_u64().then_some(())
    });
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(2));
}

#[test]
fn a_data_directory_with_a_long_path_has_a_socket_like_any_other() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let data = ["deep"; 40].join("/");
    let place = Place::new(&format!(
        "[host]\ndata = \"{data}\"\n{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    assert_eq!(place.sync(&[]).1, 0, "without a host");
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    until("the host answers", || {
        place.json(&["status"]).0["running"].is_u64().then_some(())
    });
    assert_eq!(place.sync(&["acme"]).1, 0);
    let second = place.ask(&["run"]);
    assert!(second.err.contains("already runs"), "{second:?}");
    let ended = running.stop();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(!ended.err.contains("ERROR"), "{ended:?}");
    assert_eq!(place.keys("acme"), first_revisions(2));
}

#[test]
fn many_who_ask_at_once_are_all_answered() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = place(&vendor);
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    let asked: Vec<Running> = (0..24)
        .map(|number| match number % 3 {
            0 => place.start(&["sync", "acme", "--json"]),
            1 => place.start(&["status", "--json"]),
            _ => place.start(&["polls", "--json"]),
        })
        .collect();
    for asked in asked {
        let ended = asked.end();
        assert_eq!(ended.code(), 0, "{ended:?}");
        serde_json::from_str::<Value>(&ended.out).unwrap();
    }
    assert_eq!(vendor.most_at_once(), 1);
    assert_eq!(running.stop().code(), 0);
}

#[test]
fn a_sync_whose_host_ends_ends_too() {
    for killed in [true, false] {
        let door = Door::default();
        let held = door.clone();
        let vendor = Vendor::new(move |_| held.behind(json(orders(2))));
        let place = place(&vendor);
        let mut running = place.start(&["run"]);
        running.until_said("weir runs");
        until("the host polls", || {
            (vendor.count("/acme") == 1).then_some(())
        });
        let mut sync = place.start(&["sync", "acme"]);
        // The host has heard it; before, the sync might not have found it any more.
        sync.until_said("joining that poll");
        if killed {
            running.kill();
        } else {
            running.signal(rustix::process::Signal::TERM);
            running.until_said("stopping: calls in flight");
            door.open();
            assert_eq!(running.end().code(), 0);
        }
        let ended = sync.end();
        assert_ne!(ended.code(), 0, "{ended:?}");
        assert!(
            ended.out.contains("topped") || ended.err.contains("stopped answering"),
            "{ended:?}"
        );
        door.open();
        assert_eq!(place.sync(&[]).1, 0);
        assert_eq!(place.keys("acme"), first_revisions(2));
    }
}
