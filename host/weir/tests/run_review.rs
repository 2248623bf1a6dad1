//! `weir review` and `weir reset` as a person uses them, beside a host that runs and without one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use run_support::vendor::{Vendor, answer, json, orders};
use run_support::*;
use serde_json::Value;

fn place(vendor: &Vendor) -> Place {
    let one = |name| connection(name, &vendor.origin(), "");
    Place::new(&format!("{}{}{FILES}", one("acme"), one("corp")))
}

fn ids(list: &Value) -> Vec<String> {
    let entries = list["entries"].as_array().unwrap();
    let ids = entries.iter().map(|entry| entry["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

/// A parked unit and a record that cannot be taken.
fn troubled() -> Vendor {
    Vendor::new(|asked| {
        if asked.target.starts_with("/acme") {
            json(r#"{"orders":[{"id":1},null,{"id":2}]}"#)
        } else {
            answer(
                404,
                &[("content-type", "application/json")],
                r#"{"message":"no such corp"}"#,
            )
        }
    })
}

#[test]
fn what_waits_is_listed_shown_tried_again_and_given_up() {
    let vendor = troubled();
    let place = place(&vendor);
    let (synced, exit) = place.sync(&[]);
    assert_eq!(exit, 3, "{synced}");
    assert_eq!(place.keys("acme").len(), 2, "the others were delivered");

    let (list, exit) = place.json(&["review"]);
    assert_eq!(exit, 3, "{list}");
    let [parked, record] = &ids(&list)[..] else {
        panic!("{list}");
    };
    let text = place.ask(&["review"]);
    assert!(
        text.out.contains("corp/orders") && text.out.contains(record),
        "{text:?}"
    );
    let shown = place.ask(&["review", "show", parked]);
    assert_eq!(shown.code(), 0);
    for part in [
        "GET http://",
        "/corp/orders",
        "404",
        "no such corp",
        "weir review retry",
    ] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    let shown = place.ask(&["review", "show", record]);
    assert!(
        shown.out.contains("null") && shown.out.contains("no id"),
        "{shown:?}"
    );
    assert_eq!(place.ask(&["status"]).code(), 3);
    assert_eq!(
        place.ask(&["gaps"]).code(),
        3,
        "a record that is missing is a hole"
    );

    // Nobody can be asked: nothing is taken away.
    let unasked = place.ask(&["review", "drop", record]);
    assert_eq!(unasked.code(), 2, "{unasked:?}");
    assert!(
        unasked.err.contains("this record") && unasked.err.contains("--yes"),
        "{unasked:?}"
    );
    assert_eq!(ids(&place.json(&["review"]).0).len(), 2);

    // The same beside a host that runs.
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    assert_eq!(ids(&place.json(&["review"]).0), [parked.as_str(), record]);
    assert_eq!(place.ask(&["review", "drop", record, "--yes"]).code(), 0);
    assert_eq!(
        place.ask(&["review", "retry", parked]).code(),
        3,
        "not mended"
    );
    vendor.script(|_| json(orders(3)));
    let retried = place.ask(&["review", "retry", "corp"]);
    assert_eq!(retried.code(), 0, "{retried:?}");
    assert!(retried.out.contains("corp/orders: ok"), "{retried:?}");
    assert_eq!(place.ask(&["review"]).code(), 0);
    place.until_delivered("corp", 3);
    assert_eq!(running.stop().code(), 0);
    for (args, exit) in [
        (&["review", "show", "p99"][..], 2),
        (&["review", "drop", "nothing", "--yes"], 2),
        (&["review", "retry", "main:1"], 2),
        (&["review", "retry", "acmee"], 2),
    ] {
        let ended = place.ask(args);
        assert_eq!(ended.code(), exit, "{args:?}: {ended:?}");
    }
}

#[test]
fn a_parked_unit_is_tried_again_without_a_host_too() {
    let vendor = troubled();
    let place = place(&vendor);
    place.sync(&[]);
    vendor.script(|_| json(orders(2)));
    let retried = place.ask(&["review", "retry", "corp/orders"]);
    assert_eq!(retried.code(), 0, "{retried:?}");
    let (_, exit) = place.sync(&["corp"]);
    assert_eq!(exit, 0);
    assert_eq!(place.keys("corp").len(), 2);
}

#[test]
fn a_reset_says_what_it_will_do_and_needs_a_yes() {
    let vendor = Vendor::new(|_| json(orders(3)));
    let place = place(&vendor);
    assert_eq!(place.sync(&[]).1, 0);
    let unasked = place.ask(&["reset", "acme"]);
    assert_eq!(unasked.code(), 2, "{unasked:?}");
    for part in ["acme/orders: 3 known records", "--yes"] {
        assert!(unasked.err.contains(part), "{part}: {unasked:?}");
    }
    // Without a host: nothing is delivered twice.
    assert_eq!(place.ask(&["reset", "acme", "--yes"]).code(), 0);
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.keys("acme"), first_revisions(3));
    // Beside one, with the records: each comes anew, under a key of its own.
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    assert_eq!(
        place
            .ask(&["reset", "acme/orders", "--records", "--yes"])
            .code(),
        0
    );
    place.until_delivered("acme", 6);
    assert_eq!(running.stop().code(), 0);
    let lines = place.delivered("acme");
    let again: Vec<u64> = lines[3..].iter().map(|line| line.revision).collect();
    assert_eq!(again, [2, 2, 2]);
    assert_eq!(
        place.keys("corp"),
        first_revisions(3),
        "the other one is left alone"
    );
    assert_eq!(place.ask(&["reset", "acmee", "--yes"]).code(), 2);
}
