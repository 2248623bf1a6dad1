//! `weir gaps` and `weir backfill` as a person uses them, beside a host that runs and without one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::sync::{Arc, Mutex};

use run_support::vendor::{Vendor, answer, json, orders_with};
use run_support::*;

/// Records by id, with their stamps.
type Records = Arc<Mutex<Vec<(u32, &'static str)>>>;

/// A vendor that can be asked for a part of its past, with what it has.
fn with_windows(first: &[(u32, &'static str)]) -> (Vendor, Records) {
    let records: Records = Arc::new(Mutex::new(first.to_vec()));
    let has = records.clone();
    let vendor = Vendor::new(move |asked| {
        let bound = |name: &str| {
            let (_, query) = asked.target.split_once('?')?;
            let value = query.split('&').find_map(|part| part.strip_prefix(name))?;
            Some(value.replace("%3A", ":"))
        };
        let (since, until) = (bound("since="), bound("until="));
        let listed: Vec<String> = has
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, at)| since.as_ref().is_none_or(|since| since.as_str() <= *at))
            .filter(|(_, at)| until.as_ref().is_none_or(|until| *at < until.as_str()))
            .map(|(id, at)| format!(r#"{{"id":{id},"at":"{at}"}}"#))
            .collect();
        json(format!(r#"{{"orders":[{}]}}"#, listed.join(",")))
    });
    (vendor, records)
}

fn windowed(vendor: &Vendor, more: &str) -> Place {
    let connection = connection("acme", &vendor.origin(), "");
    let stream = "[connection.acme.config.streams.orders]\n";
    let keys = format!(
        "{stream}updated_at = \"/at\"\norder = \"ascending\"\nwindow = {{ since = \"since\", until = \"until\" }}\n{more}\n"
    );
    Place::new(&format!("{}{FILES}", connection.replace(stream, &keys)))
}

const MAY: [&str; 4] = ["--from", "2025-05-01", "--to", "2025-06-01"];

fn backfill<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["backfill", "acme/orders"][..], &MAY, more].concat()
}

#[test]
fn a_part_of_the_past_is_read_again_without_a_host_and_beside_one() {
    let (vendor, records) =
        with_windows(&[(1, "2025-04-01T00:00:00Z"), (2, "2025-07-01T00:00:00Z")]);
    let place = windowed(&vendor, "");
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.keys("acme"), ["1@1", "2@1"]);

    // So late that neither the overlap nor a second look finds it.
    records.lock().unwrap().push((3, "2025-05-05T00:00:00Z"));
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(place.keys("acme").len(), 2);
    let calls = vendor.count("/acme");
    let read = place.ask(&backfill(&[]));
    assert_eq!(read.code(), 0, "{read:?}");
    assert!(
        read.out.contains(
            "acme/orders: 2025-05-01 00:00:00Z to 2025-06-01 00:00:00Z: read again: 1 new, 0 changed"
        ),
        "{read:?}"
    );
    assert_eq!(place.keys("acme"), ["1@1", "2@1", "3@1"]);
    let asked = &vendor.asked()[calls..];
    assert!(
        asked
            .iter()
            .all(|asked| asked.target.contains("since=2025-05-01")),
        "the part alone: {asked:?}"
    );
    let gaps = place.ask(&["gaps"]);
    assert_eq!(gaps.code(), 0, "{gaps:?}");
    assert!(
        gaps.out.contains("closed") && gaps.out.contains("asked for"),
        "{gaps:?}"
    );

    // Beside a host: queued, or waited for.
    records.lock().unwrap().push((4, "2025-05-06T00:00:00Z"));
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    let queued = place.ask(&backfill(&[]));
    assert_eq!(queued.code(), 0, "{queued:?}");
    assert!(
        queued
            .out
            .contains("queued; `weir gaps` shows how far it is"),
        "{queued:?}"
    );
    place.until_delivered("acme", 4);
    records.lock().unwrap().push((5, "2025-05-07T00:00:00Z"));
    let waited = place.ask(&backfill(&["--wait"]));
    assert_eq!(waited.code(), 0, "{waited:?}");
    assert!(
        waited.out.contains("read again: 1 new, 0 changed"),
        "{waited:?}"
    );
    assert_eq!(running.stop().code(), 0);
    assert_eq!(
        place.keys("acme"),
        ["1@1", "2@1", "3@1", "4@1", "5@1"],
        "nothing came twice"
    );
    let (polls, _) = place.json(&["polls", "acme"]);
    let polls = polls["polls"].as_array().unwrap();
    let asides = polls.iter().filter(|poll| poll["reason"] == "backfill");
    assert!(asides.count() >= 3, "{polls:?}");
}

#[test]
fn what_cannot_be_asked_for_is_said() {
    let (vendor, _) = with_windows(&[(1, "2025-04-01T00:00:00Z")]);
    let place = windowed(&vendor, "");
    assert_eq!(place.sync(&[]).1, 0);
    for (args, said) in [
        (
            vec![
                "backfill",
                "acme/orders",
                "--from",
                "2025-06-01",
                "--to",
                "2025-05-01",
            ],
            "--from must come before --to",
        ),
        (
            vec!["backfill", "acme/orders", "--from", "2999-01-01"],
            "both not after now",
        ),
        (
            vec!["backfill", "acme/order", "--from", "2025-06-01"],
            "acme/orders",
        ),
        (
            vec!["backfill", "acme/orders", "--from", "last week"],
            "write a date",
        ),
        (vec!["backfill", "acme/orders"], "--from"),
    ] {
        let ended = place.ask(&args);
        assert_eq!(ended.code(), 2, "{args:?}: {ended:?}");
        assert!(ended.err.contains(said), "{args:?}: {ended:?}");
    }
    assert_eq!(
        place.ask(&["gaps"]).out,
        "No gap is known.\n",
        "nothing was noted"
    );
}

#[test]
fn a_vendor_that_fails_leaves_the_part_listed_and_a_later_run_reads_it() {
    let (vendor, records) = with_windows(&[(1, "2025-04-01T00:00:00Z")]);
    let place = windowed(&vendor, "");
    assert_eq!(place.sync(&[]).1, 0);
    records.lock().unwrap().push((2, "2025-05-05T00:00:00Z"));
    let has = vendor.asked().len();
    vendor.script(|_| answer(503, &[("retry-after", "3600")], "out"));
    let failed = place.ask(&backfill(&[]));
    assert_eq!(failed.code(), 1, "{failed:?}");
    assert!(failed.out.contains("not all of it is read"), "{failed:?}");
    assert!(vendor.asked().len() > has);
    let listed = place.ask(&["gaps"]);
    assert!(
        listed.out.contains("asked for") && listed.out.contains("waits until"),
        "{listed:?}"
    );
    vendor.script(|_| json(r#"{"orders":[{"id":2,"at":"2025-05-05T00:00:00Z"}]}"#));
    let again = place.ask(&backfill(&[]));
    // Asked for once more: the vendor's own wait is kept, whoever asks.
    assert_eq!(again.code(), 1, "{again:?}");
    assert_eq!(vendor.count("/acme"), has + 1);
}

#[test]
fn a_gap_that_cannot_be_filled_calls_for_a_person_until_it_is_accepted() {
    // A feed of the newest three.
    let vendor = Vendor::new(|_| json(orders_with(1..=3, "")));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    assert_eq!(place.sync(&[]).1, 0);
    vendor.script(|_| json(orders_with(10..=12, "")));
    let (synced, exit) = place.sync(&[]);
    assert_eq!(exit, 3, "{synced}");
    assert_eq!(place.keys("acme").len(), 6);

    let told = place.ask(&["gaps"]);
    assert_eq!(told.code(), 3, "{told:?}");
    for part in [
        "acme/orders",
        "can't be filled",
        "records fell off the feed between two polls: after id",
        "the vendor shows only the newest records, and these have gone",
    ] {
        assert!(told.out.contains(part), "{part}: {told:?}");
    }
    let status = place.ask(&["status"]);
    assert_eq!(status.code(), 3);
    assert!(status.out.contains("- 1 gap open"), "{status:?}");

    // Somebody else's unit.
    assert_eq!(place.ask(&["gaps", "acmee", "--accept"]).code(), 2);
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    let accepted = place.ask(&["gaps", "acme", "--accept"]);
    assert_eq!(accepted.code(), 0, "{accepted:?}");
    assert!(accepted.out.starts_with("1 accepted.\n"), "{accepted:?}");
    assert_eq!(running.stop().code(), 0);
    // It stays listed, and asks for nobody any more.
    let told = place.ask(&["gaps"]);
    assert_eq!(told.code(), 0, "{told:?}");
    assert!(told.out.contains("accepted"), "{told:?}");
    assert_eq!(place.ask(&["status"]).code(), 0);
}

#[test]
fn what_was_asked_for_and_is_gone_can_be_accepted_too() {
    let (vendor, _) = with_windows(&[(1, "2025-04-01T00:00:00Z")]);
    let place = windowed(&vendor, "retention = \"30d\"");
    assert_eq!(place.sync(&[]).1, 0);
    let gone = place.ask(&[
        "backfill",
        "acme/orders",
        "--from",
        "2020-01-01",
        "--to",
        "2020-02-01",
    ]);
    assert_eq!(gone.code(), 3, "{gone:?}");
    assert!(
        gone.out.contains("can't be read: 2020-01-01 00:00:00Z to 2020-02-01 00:00:00Z: the vendor keeps records for 30 days"),
        "{gone:?}"
    );
    assert_eq!(place.ask(&["gaps"]).code(), 3);
    let accepted = place.ask(&["gaps", "--accept"]);
    assert_eq!(accepted.code(), 0, "{accepted:?}");
    assert!(accepted.out.starts_with("1 accepted.\n"), "{accepted:?}");
    assert_eq!(place.ask(&["gaps"]).code(), 0);
}

#[test]
fn a_hole_behind_the_vendors_own_position_names_the_way_out_and_that_closes_it() {
    let broken = |token: bool| match token {
        true => answer(403, &[], "not for you"),
        false => json(r#"{"orders":[{"id":1}],"next":"t2"}"#),
    };
    let vendor = Vendor::new(move |asked| broken(asked.target.contains("token=t2")));
    let stream = "[connection.acme.config.streams.orders]\n";
    let keys = format!(
        "{stream}paging = {{ style = \"token\", token = \"/next\", param = \"token\" }}\n\
         sync = {{ token = \"/latest\", param = \"position\" }}\n"
    );
    let connection = connection("acme", &vendor.origin(), "");
    let place = Place::new(&format!("{}{FILES}", connection.replace(stream, &keys)));
    place.sync(&[]);
    assert_eq!(place.keys("acme"), ["1@1"]);
    let told = place.ask(&["gaps"]);
    assert_eq!(told.code(), 3, "{told:?}");
    assert!(
        told.out
            .contains("`weir sync acme/orders --full` reads everything again"),
        "{told:?}"
    );
    vendor.script(|asked| match asked.target.contains("token=t2") {
        true => json(r#"{"orders":[{"id":2}],"latest":"s1"}"#),
        false => json(r#"{"orders":[{"id":1}],"next":"t2"}"#),
    });
    let (synced, exit) = place.sync(&["acme/orders", "--full"]);
    assert!(
        exit == 0 || exit == 3,
        "the refused page still waits for review: {synced}"
    );
    assert_eq!(place.keys("acme"), ["1@1", "2@1"]);
    let told = place.ask(&["gaps"]);
    assert_eq!(told.code(), 0, "{told:?}");
}

#[test]
fn a_stream_without_windows_is_read_again_whole() {
    let vendor = Vendor::new(|_| json(orders_with(1..=3, "")));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    assert_eq!(place.sync(&[]).1, 0);
    vendor.script(|_| json(orders_with(1..=4, "")));
    let read = place.ask(&["backfill", "acme/orders", "--from", "2025-01-01"]);
    assert_eq!(read.code(), 0, "{read:?}");
    assert!(
        read.out
            .contains("everything (its stream has no windows): read again: 1 new"),
        "{read:?}"
    );
    assert_eq!(place.keys("acme"), first_revisions(4));
}
