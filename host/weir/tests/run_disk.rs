//! A disk that takes nothing, and directories that are not what they should be.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use run_support::vendor::{Vendor, json, orders, orders_with};
use run_support::*;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

/// A host whose files can be stopped from growing by [`full`].
fn start(place: &Place, args: &[&str]) -> Running {
    // The signal that comes with the refusal would end the process; a full disk sends none.
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(place.binary())
        .args(args);
    place.at_home(&mut command);
    Running::new(command)
}

/// From now on no file of that process grows beyond so many bytes: the disk is full. None: it no longer is.
fn full(running: &Running, bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(Some(running.pid()), Resource::Fsize, limit).unwrap();
}

fn mentions(running: &Running, text: &str) -> usize {
    running.log().matches(text).count()
}

#[test]
fn a_disk_that_takes_nothing_is_said_once_and_survived() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let mut running = start(&place, &["run", "--log-level", "debug"]);
    place.until_delivered("acme", 2);

    // Not even what is there can be written over.
    full(&running, Some(0));
    vendor.script(|_| json(orders(4)));
    running.until_said("it is made again until it can be");
    // The polls that follow say it for those who look closely.
    until("it tries again", || {
        let again = mentions(&running, "DEBUG poll not stored");
        (again >= 1).then_some(())
    });
    assert!(!running.is_gone());
    assert_eq!(
        mentions(&running, "ERROR poll not stored"),
        1,
        "{}",
        running.log()
    );
    assert_eq!(place.keys("acme"), first_revisions(2));

    full(&running, None);
    place.until_delivered("acme", 4);
    running.until_said("the store takes records again");
    vendor.script(|_| json(orders(5)));
    place.until_delivered("acme", 5);
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(5));
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.keys("acme"), first_revisions(5));
}

#[test]
fn a_page_that_finds_no_room_holds_up_nobody_else() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = Place::new(&format!(
        "{}{}{FILES}",
        connection("acme", &vendor.origin(), ""),
        connection("big", &vendor.origin(), ""),
    ));
    let mut running = start(&place, &["run"]);
    place.until_delivered("acme", 2);
    place.until_delivered("big", 2);

    // The store may not grow, and has no room for this.
    let store = fs::metadata(place.path("data/weir.redb")).unwrap().len();
    full(&running, Some(store));
    let many = 6_000;
    let text = "x".repeat(1_000);
    vendor.script(move |asked| match asked.target.starts_with("/big") {
        true => json(orders_with(1..=many, &text)),
        false => json(orders(4)),
    });
    running.until_said("poll not stored");
    // A few more records still find a place.
    place.until_delivered("acme", 4);
    let (status, exit) = place.json(&["status"]);
    // Unless a page of the other one has landed since, the store is what needs a person.
    assert!(exit == 0 || exit == 3, "{status}");
    assert!(!running.is_gone());
    assert!(place.keys("big").len() < many);

    full(&running, None);
    place.until_delivered("big", many);
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(4));
    // Record 1 and 2 have another text now.
    let big = place.keys("big");
    assert_eq!(big.len(), many + 2);
    assert!(counted(&big).values().all(|count| *count == 1));
}

#[test]
fn a_host_that_ends_on_a_full_disk_goes_on_after_a_restart() {
    for killed in [true, false] {
        let vendor = Vendor::new(|_| json(orders(2)));
        let place = Place::new(&format!(
            "{}{FILES}",
            connection("acme", &vendor.origin(), "")
        ));
        let mut running = start(&place, &["run"]);
        place.until_delivered("acme", 2);
        full(&running, Some(0));
        vendor.script(|_| json(orders(4)));
        running.until_said("poll not stored");
        match killed {
            true => running.kill(),
            false => running.stop().unbroken(),
        }
        assert_eq!(place.keys("acme"), first_revisions(2));
        let (report, exit) = place.sync(&[]);
        assert_eq!(exit, 0, "{report}");
        assert_eq!(place.keys("acme"), first_revisions(4));
    }
}

#[test]
fn a_line_that_the_full_disk_cut_is_mended() {
    // Page by page, so that the sink's file outgrows the store and is what meets the limit first.
    let (page, all) = (400, 12_000);
    let text = "x".repeat(1_000);
    let mut shown = 0;
    let more = text.clone();
    let vendor = Vendor::new(move |_| {
        shown = (shown + page).min(all);
        json(orders_with(shown + 1 - page..=shown, &more))
    });
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let mut running = start(&place, &["run"]);
    place.until_delivered("acme", all);
    let size = |name: &str| fs::metadata(place.path(name)).unwrap().len();
    let (sink, store) = (size("out/acme.ndjson"), size("data/weir.redb"));
    assert!(sink > store + (64 << 10), "sink {sink}, store {store}");

    full(&running, Some(sink + 500));
    vendor.script(move |_| json(orders_with(all + 1..=all + 3, &text)));
    running.until_said("nothing is delivered");
    let (status, _) = place.json(&["status"]);
    let failing = status["sinks"][0]["delivery"]["failing"]["error"].as_str();
    assert!(
        failing.is_some_and(|error| error.contains("acme.ndjson")),
        "{status}"
    );
    full(&running, None);
    within(Duration::from_secs(90), "the rest is delivered", || {
        (place.delivered("acme").len() >= all + 3).then_some(())
    });
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(all + 3));
}

#[test]
fn a_host_without_a_free_file_handle_recovers() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let mut running = start(&place, &["run"]);
    place.until_delivered("acme", 2);
    let pid = running.pid();
    let handles = |limit| {
        let limit = Rlimit {
            current: limit,
            maximum: getrlimit(Resource::Nofile).maximum,
        };
        prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    };
    handles(Some(3));
    running.until_said("the poll ended in a fault");
    vendor.script(|_| json(orders(4)));
    handles(Some(1_024));
    place.until_delivered("acme", 4);
    assert_eq!(running.stop().code(), 0);
    assert_eq!(place.keys("acme"), first_revisions(4));
}

#[test]
fn a_data_directory_that_is_a_file_is_named() {
    let place = Place::new("");
    fs::write(place.data(), "something").unwrap();
    for verb in ["run", "sync", "status"] {
        let ended = place.ask(&[verb]);
        assert_eq!(ended.code(), 1, "{ended:?}");
        assert!(ended.err.contains("data directory data: "), "{ended:?}");
        assert!(ended.err.contains("host.data"), "{ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    }
    assert_eq!(fs::read_to_string(place.data()).unwrap(), "something");
}

#[test]
fn a_data_directory_that_may_not_be_written_is_named() {
    let place = Place::new("");
    fs::create_dir(place.data()).unwrap();
    let place = place.for_a_plain_user();
    fs::set_permissions(place.data(), Permissions::from_mode(0o555)).unwrap();
    for verb in ["run", "sync", "status"] {
        let ended = place.ask(&[verb]);
        assert_eq!(ended.code(), 1, "{ended:?}");
        assert!(ended.err.contains("data/weir.redb.lock"), "{ended:?}");
        assert!(ended.err.contains("ermission denied"), "{ended:?}");
        assert!(ended.err.contains("host.data"), "{ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    }
}

#[test]
fn a_store_that_may_not_be_written_is_named() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    assert_eq!(place.sync(&[]).1, 0);
    let place = place.for_a_plain_user();
    let store = place.data().join("weir.redb");
    fs::set_permissions(&store, Permissions::from_mode(0o444)).unwrap();
    let ended = place.ask(&["run"]);
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.err.contains("data/weir.redb: "), "{ended:?}");
    assert!(ended.err.contains("ermission denied"), "{ended:?}");
}

#[test]
fn a_connectors_directory_that_is_not_there_is_named_with_the_way_out() {
    let place = Place::empty();
    place.configure("");
    for verb in ["run", "sync", "connectors", "status"] {
        let ended = place.ask(&[verb]);
        assert_eq!(ended.code(), 1, "{ended:?}");
        assert!(
            ended.err.contains("connectors directory connectors: "),
            "{ended:?}"
        );
        assert!(ended.err.contains("create it"), "{ended:?}");
    }
}
