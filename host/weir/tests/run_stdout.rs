//! Records on standard output.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

use run_support::vendor::{Vendor, json, orders, orders_with};
use run_support::*;

#[test]
fn records_go_to_stdout_and_words_to_stderr() {
    let vendor = Vendor::new(|_| json(orders(3)));
    for args in [&["sync"][..], &["sync", "--json"]] {
        let place = Place::new(&connection("acme", &vendor.origin(), ""));
        let ended = place.ask(args);
        assert_eq!(ended.code(), 0, "{ended:?}");
        assert!(ended.out.ends_with('\n'));
        assert_eq!(keys(&lines(&ended.out)), first_revisions(3));
        assert_eq!(ended.out.lines().count(), 3, "{ended:?}");
        assert!(ended.err.contains("acme/orders"), "{ended:?}");
    }
}

#[test]
fn nothing_new_prints_nothing_on_stdout() {
    let vendor = Vendor::new(|_| json(orders(3)));
    let place = Place::new(&connection("acme", &vendor.origin(), ""));
    place.ask(&["sync"]);
    let again = place.ask(&["sync"]);
    assert_eq!((again.code(), again.out.as_str()), (0, ""), "{again:?}");
}

#[test]
fn a_reader_that_has_had_enough_loses_nothing() {
    let (count, text) = (4_000, "x".repeat(200));
    let vendor = Vendor::new(move |_| json(orders_with(1..=count, &text)));
    let place = Place::new(&connection("acme", &vendor.origin(), ""));
    let mut child = place.weir(&["sync"]).spawn().unwrap();
    // As `| head -1` does: more is coming than the pipe holds.
    let mut pipe = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    pipe.read_line(&mut first).unwrap();
    drop(pipe);
    let ended = Running::of(child).end();
    assert_ne!(ended.code(), 0, "not everything was delivered: {ended:?}");
    assert!(ended.err.contains("stopped reading"), "{ended:?}");

    let again = place.ask(&["sync"]);
    assert_eq!(again.code(), 0, "{}", again.err);
    let mut all: BTreeSet<String> = keys(&lines(&again.out)).into_iter().collect();
    all.extend(keys(&lines(&first)));
    assert_eq!(all, first_revisions(count).into_iter().collect());
    let last = place.ask(&["sync"]);
    assert_eq!((last.code(), last.out.as_str()), (0, ""), "{last:?}");
}

#[test]
fn a_host_whose_reader_goes_away_ends_and_keeps_the_rest() {
    let vendor = Vendor::new(|_| json(orders(1)));
    let place = Place::new(&connection("acme", &vendor.origin(), ""));
    let mut child = place.weir(&["run"]).spawn().unwrap();
    let mut pipe = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    pipe.read_line(&mut first).unwrap();
    assert_eq!(keys(&lines(&first)), ["1@1"]);
    drop(pipe);
    vendor.script(|_| json(orders(3)));
    let ended = Running::of(child).end();
    assert!(
        ended.err.contains("whoever read the records has gone"),
        "{ended:?}"
    );
    ended.unbroken();
    let again = place.ask(&["sync"]);
    assert_eq!(keys(&lines(&again.out)), ["2@1", "3@1"], "{again:?}");
}

#[test]
fn a_verb_whose_reader_goes_away_ends_quietly() {
    let vendor = Vendor::new(|_| json(orders(3)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    place.sync(&[]);
    for args in [
        &["status"][..],
        &["connectors", "--json"],
        &["records", "acme/orders"],
        &["--help"],
    ] {
        let mut command = place.weir(args);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.stdout(writer);
        let ended = Running::new(command).end();
        ended.unbroken();
        assert_eq!(ended.err, "", "{args:?}");
    }
}

#[test]
fn a_log_that_nobody_reads_any_more_ends_nothing() {
    let vendor = Vendor::new(|_| json(orders(1)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    for level in ["trace", "warn"] {
        let mut command = place.weir(&["run", "--log-level", level]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.stderr(writer);
        let mut running = Running::new(command);
        until("it polls on", || {
            let done = running.is_gone() || vendor.count("/acme") >= 6;
            done.then_some(())
        });
        assert!(!running.is_gone());
        // Faults are logged from the store's thread and from others.
        vendor.script(|_| json("no JSON"));
        let calls = vendor.count("/acme");
        until("it tries again", || {
            (vendor.count("/acme") >= calls + 3).then_some(())
        });
        vendor.script(|_| json(orders(2)));
        place.until_delivered("acme", 2);
        assert_eq!(running.stop().code(), 0);
    }
    assert_eq!(place.keys("acme"), first_revisions(2));
}

#[test]
fn a_reader_that_never_reads_does_not_keep_the_host_from_ending() {
    let (count, text) = (4_000, "x".repeat(200));
    let vendor = Vendor::new(move |_| json(orders_with(1..=count, &text)));
    let place = Place::new(&connection("acme", &vendor.origin(), ""));
    let mut child = place.weir(&["run"]).spawn().unwrap();
    let mut pipe = BufReader::new(child.stdout.take().unwrap());
    let mut running = Running::of(child);
    // The first line is out, and the pipe is full.
    let mut first = String::new();
    pipe.read_line(&mut first).unwrap();
    running.until_said("weir runs");
    running.signal(rustix::process::Signal::TERM);
    // Ten seconds for the sink, and what a busy machine needs besides.
    let ended = running.end_within(std::time::Duration::from_secs(30));
    ended.unbroken();
    drop(pipe);
    let again = place.ask(&["sync"]);
    assert_eq!(again.code(), 0, "{}", again.err);
    let mut all: BTreeSet<String> = keys(&lines(&again.out)).into_iter().collect();
    all.extend(keys(&lines(&first)));
    assert_eq!(all, first_revisions(count).into_iter().collect());
}
