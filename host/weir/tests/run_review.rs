//! `weir review` and `weir reset` as a person uses them, beside a host that runs and without one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::fs::File;
use std::io::{Read, Write};

use run_support::vendor::{Door, Vendor, answer, json, orders};
use run_support::*;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
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

/// Runs `weir ARGS` on a terminal on which somebody types this when asked. What the terminal showed, and how it ended.
fn on_a_terminal(place: &Place, args: &[&str], typed: &str) -> (String, i32) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let mut slave = File::options();
    slave.read(true).write(true);
    let slave = slave.open(name.to_str().unwrap()).unwrap();
    let mut command = place.weir(args);
    command.stdin(slave.try_clone().unwrap()).stderr(slave);
    let running = Running::new(command);
    let mut master = File::from(master);
    let mut shown = Vec::new();
    let mut byte = [0];
    while !shown.ends_with(b"[y/N] ") {
        assert_eq!(master.read(&mut byte).unwrap(), 1);
        shown.extend(byte);
    }
    master.write_all(typed.as_bytes()).unwrap();
    let ended = running.end();
    // The other side has closed it: an end of file, or an error on Linux.
    while let Ok(1) = master.read(&mut byte) {
        shown.extend(byte);
    }
    (String::from_utf8(shown).unwrap(), ended.code())
}

#[test]
fn a_reset_asks_on_a_terminal_and_only_a_yes_does_it() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = place(&vendor);
    assert_eq!(place.sync(&[]).1, 0);
    let reset = ["reset", "acme", "--records"];
    for typed in ["n\n", "\n", "yesterday\n"] {
        let (shown, exit) = on_a_terminal(&place, &reset, typed);
        assert_eq!(exit, 1, "{typed:?}: {shown}");
        for part in [
            "acme/orders: 2 known records",
            "will be forgotten",
            "Go on? [y/N]",
            "Nothing was changed.",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.keys("acme"), first_revisions(2));
    let (shown, exit) = on_a_terminal(&place, &reset, "y\n");
    assert_eq!(exit, 0, "{shown}");
    assert!(!shown.contains("Nothing was changed"), "{shown}");
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.keys("acme"), ["1@1", "2@1", "1@2", "2@2"]);
}

#[test]
fn a_reset_during_a_poll_waits_for_its_page_and_then_reads_from_the_start() {
    let door = Door::default();
    let held = door.clone();
    let vendor = Vendor::new(move |_| held.behind(json(orders(3))));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    until("the host polls", || {
        (vendor.count("/acme") == 1).then_some(())
    });
    let mut reset = place.start(&["reset", "acme", "--records", "--yes"]);
    reset.until_said("acme/orders: waits for its poll to end");
    assert!(!reset.is_gone());
    vendor.script(|_| json(orders(4)));
    door.open();
    let ended = reset.end();
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(
        ended.out.contains("the next poll reads from the start"),
        "{ended:?}"
    );
    // What the poll had in its hands was taken; then each came anew.
    place.until_delivered("acme", 7);
    assert_eq!(running.stop().code(), 0);
    let again = ["1@2", "2@2", "3@2", "4@1"].map(str::to_owned);
    assert_eq!(
        place.keys("acme"),
        [first_revisions(3), again.to_vec()].concat()
    );
    assert_eq!(vendor.most_at_once(), 1);
}

#[test]
fn dead_letters_are_listed_shown_tried_again_and_dropped() {
    let vendor = Vendor::new(|_| json(orders(4)));
    // Takes no even number.
    let receiver = Vendor::new(|asked| {
        let odd = lines(&asked.body)
            .iter()
            .all(|line| line.id != "2" && line.id != "4");
        answer(if odd { 204 } else { 422 }, &[], "no even ones")
    });
    let place = Place::new(&format!(
        "{}\n[sink.hook]\ntype = \"webhook\"\nurl = \"{}/records\"\nbackoff = {{ base = \"10ms\", cap = \"50ms\" }}\n\
         tries = 2\nbatch = {{ records = 1 }}\n",
        connection("acme", &vendor.origin(), ""),
        receiver.origin()
    ));
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    let list = until("both have been refused for good", || {
        let (list, exit) = place.json(&["review"]);
        (ids(&list).len() == 2 && exit == 3).then_some(list)
    });
    let [two, four] = &ids(&list)[..] else {
        panic!("{list}");
    };
    let text = place.ask(&["review"]);
    assert!(
        text.out.contains(two) && text.out.contains("acme/orders") && text.out.contains("422"),
        "{text:?}"
    );
    let shown = place.ask(&["review", "show", two]);
    assert_eq!(shown.code(), 0);
    for part in [
        "hook",
        "422",
        "no even ones",
        r#"{"id":2"#,
        "weir review retry",
    ] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    // Still refused: it comes back.
    assert_eq!(place.ask(&["review", "retry", two]).code(), 0);
    let refused = receiver.asked().len();
    until("it has been offered again", || {
        (receiver.asked().len() > refused).then_some(())
    });
    until("it has come back", || {
        (ids(&place.json(&["review"]).0).len() == 2).then_some(())
    });
    let unasked = place.ask(&["review", "drop", four]);
    assert_eq!(unasked.code(), 2, "{unasked:?}");
    let dropped = place.ask(&["review", "drop", four, "--yes"]);
    assert_eq!(dropped.code(), 0, "{dropped:?}");
    receiver.script(|_| answer(204, &[], ""));
    let left = ids(&place.json(&["review"]).0);
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(place.ask(&["review", "retry", &left[0]]).code(), 0);
    until("nothing waits", || {
        (place.ask(&["review"]).code() == 0).then_some(())
    });
    assert_eq!(running.stop().code(), 0);
    let last = receiver.asked().last().unwrap().body.clone();
    assert_eq!(
        lines(&last)[0].id,
        "2",
        "and the dropped one never went out"
    );
    assert_eq!(place.ask(&["status"]).code(), 0);
}
