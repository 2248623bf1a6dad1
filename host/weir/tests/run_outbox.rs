//! A sink that takes nothing for a while.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use run_support::vendor::{Vendor, answer, json, orders, orders_with};
use run_support::*;

/// Twenty more records of a kilobyte each with every call, as long as it is asked.
fn growing() -> (Vendor, Arc<AtomicUsize>) {
    let shown = Arc::new(AtomicUsize::new(0));
    let count = shown.clone();
    let vendor = Vendor::new(move |_| {
        let upto = count.fetch_add(20, Ordering::SeqCst) + 20;
        json(orders_with(1..=upto, &"x".repeat(1_000)))
    });
    (vendor, shown)
}

#[test]
fn polling_goes_on_to_the_outboxs_bound_and_everything_comes_when_the_sink_is_well_again() {
    let (vendor, shown) = growing();
    let place = Place::new(&format!(
        "[host]\noutbox = \"96KiB\"\n{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    // Where the sink's directory should be there is a file.
    fs::write(place.path("out"), "").unwrap();
    let mut running = place.start(&["run"]);
    running.until_said("the sinks do not keep up");
    let status = until("the status says so", || {
        let (status, _) = place.json(&["status"]);
        (status["outbox_full"] == true).then_some(status)
    });
    let why = status["sinks"][0]["delivery"]["failing"]["error"]
        .as_str()
        .unwrap();
    assert!(why.contains("out/acme.ndjson"), "{status}");
    let text = place.ask(&["status"]);
    assert!(text.out.contains("out/acme.ndjson"), "{text:?}");
    let calls = until("polling has come to rest", || {
        let before = vendor.count("/acme");
        std::thread::sleep(Duration::from_millis(700));
        (vendor.count("/acme") == before).then_some(before)
    });
    assert!(calls >= 3, "the bound is reached by several polls: {calls}");

    fs::remove_file(place.path("out")).unwrap();
    // The sink is tried again with a growing pause.
    within(Duration::from_secs(120), "polling goes on", || {
        (vendor.count("/acme") > calls + 2).then_some(())
    });
    running.until_said("the sinks have caught up");
    assert_eq!(running.stop().code(), 0);
    place.sync(&[]);
    let all = shown.load(Ordering::SeqCst);
    assert_eq!(
        place.keys("acme"),
        first_revisions(all),
        "in order, each once"
    );
}

#[test]
fn a_sync_says_what_waits_and_a_later_one_delivers_it() {
    let (vendor, _) = growing();
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    fs::write(place.path("out"), "").unwrap();
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 1, "{report}");
    assert_eq!(
        (&report["delivered"], &report["waiting_records"]),
        (&false.into(), &20.into()),
        "{report}"
    );
    fs::remove_file(place.path("out")).unwrap();
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(place.keys("acme"), first_revisions(40));
}

#[test]
fn a_host_ends_although_its_sink_takes_nothing_and_the_next_one_delivers() {
    let vendor = Vendor::new(|_| json(orders(3)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    fs::write(place.path("out"), "").unwrap();
    let mut running = place.start(&["run"]);
    running.until_said("nothing is delivered");
    running.signal(rustix::process::Signal::TERM);
    // Ten seconds for the sink, and what a busy machine needs besides.
    let ended = running.end_within(Duration::from_secs(30));
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(
        ended.err.contains("not everything was delivered"),
        "{ended:?}"
    );
    fs::remove_file(place.path("out")).unwrap();
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(place.keys("acme"), first_revisions(3));
}

#[test]
fn a_sink_that_takes_nothing_does_not_hold_up_another() {
    let vendor = Vendor::new(|_| json(orders(3)));
    let place = Place::new(&format!(
        "{}{FILES}\n[sink.second]\ntype = \"file\"\npath = \"second/{{connection}}.ndjson\"\n",
        connection("acme", &vendor.origin(), "")
    ));
    fs::write(place.path("out"), "").unwrap();
    let mut running = place.start(&["run"]);
    running.until_said("nothing is delivered");
    let second =
        || lines(&fs::read_to_string(place.path("second/acme.ndjson")).unwrap_or_default());
    until("the second sink has all", || {
        (second().len() == 3).then_some(())
    });
    let (status, _) = place.json(&["status"]);
    assert_eq!(
        status["outbox"]["entries"], 3,
        "kept for the first sink: {status}"
    );
    fs::remove_file(place.path("out")).unwrap();
    within(Duration::from_secs(90), "the first sink has all", || {
        (place.keys("acme").len() == 3).then_some(())
    });
    assert_eq!(running.stop().code(), 0);
    assert_eq!(keys(&second()), first_revisions(3));
    let (status, _) = place.json(&["status"]);
    assert_eq!(status["outbox"]["entries"], 0, "{status}");
}

#[test]
fn a_sync_that_finds_the_outbox_full_says_so_and_ends() {
    let (vendor, shown) = growing();
    let place = Place::new(&format!(
        "[host]\noutbox = \"16KiB\"\n{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    fs::write(place.path("out"), "").unwrap();
    // The first one fills it; the second one finds it full.
    assert_eq!(place.sync(&[]).1, 1);
    let calls = vendor.count("/acme");
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 1, "{report}");
    assert!(report.to_string().contains("out/acme.ndjson"), "{report}");
    assert_eq!(
        vendor.count("/acme"),
        calls,
        "what nobody takes is not asked for"
    );
    // The same with a host.
    let mut running = place.start(&["run"]);
    running.until_said("the sinks do not keep up");
    let (report, exit) = place.sync(&["acme"]);
    assert_eq!(exit, 1, "{report}");
    assert_eq!(vendor.count("/acme"), calls);
    running.kill();
    fs::remove_file(place.path("out")).unwrap();
    let (report, _) = place.sync(&[]);
    assert_eq!(report["delivered"], true, "{report}");
    assert_eq!(place.sync(&[]).1, 0);
    assert_eq!(
        place.keys("acme"),
        first_revisions(shown.load(Ordering::SeqCst))
    );
}

#[test]
fn what_waits_of_a_connection_that_was_taken_out_is_still_delivered() {
    let vendor = Vendor::new(|_| json(orders(3)));
    let acme = connection("acme", &vendor.origin(), "");
    let beta = connection("beta", &vendor.origin(), "");
    let place = Place::new(&format!("{acme}{beta}{FILES}"));
    fs::write(place.path("out"), "").unwrap();
    assert_eq!(place.sync(&[]).1, 1);
    fs::remove_file(place.path("out")).unwrap();
    place.configure(&format!("{acme}{FILES}"));
    let (report, exit) = place.sync(&[]);
    assert_eq!(exit, 0, "{report}");
    for connection in ["acme", "beta"] {
        assert_eq!(place.keys(connection), first_revisions(3), "{connection}");
    }
    // It comes back, and is not read anew.
    place.configure(&format!("{acme}{beta}{FILES}"));
    vendor.script(|_| json(orders(4)));
    assert_eq!(place.sync(&[]).1, 0);
    for connection in ["acme", "beta"] {
        assert_eq!(place.keys(connection), first_revisions(4), "{connection}");
    }
}

/// Makes the first three of the waiting records unreadable, behind the back of a host that has ended.
fn damage(place: &Place) {
    const OUTBOX: redb::TableDefinition<'_, u64, &[u8]> = redb::TableDefinition::new("outbox");
    /// Header, row of an entry, and where in the row its operation is.
    const LAYOUT: (usize, usize, usize) = (29, 25, 16);
    let db = redb::Database::open(place.data().join("weir.redb")).unwrap();
    let tx = db.begin_write().unwrap();
    {
        use redb::ReadableTable as _;
        let mut table = tx.open_table(OUTBOX).unwrap();
        let (first, mut chunk) = {
            let (first, chunk) = table.first().unwrap().unwrap();
            (first.value(), chunk.value().to_vec())
        };
        let (header, row, operation) = LAYOUT;
        for at in 0..3 {
            chunk[header + row * at + operation] = 7;
        }
        table.insert(first, chunk.as_slice()).unwrap();
    }
    tx.commit().unwrap();
}

#[test]
fn case_147_bad_rows_at_the_head_are_set_aside_and_the_rest_is_delivered_in_order() {
    let vendor = Vendor::new(|_| json(orders(100)));
    // Batches of three where the sink has batches.
    let (receiver, taken) = {
        let taken: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = taken.clone();
        let receiver = Vendor::new(move |asked| {
            let got = lines(&asked.body);
            log.lock()
                .unwrap()
                .extend(got.into_iter().map(|line| line.id));
            answer(200, &[], "")
        });
        (receiver, taken)
    };
    let hook = format!(
        "\n[sink.hook]\ntype = \"webhook\"\nurl = \"{}\"\nbatch = {{ records = 3 }}\n",
        receiver.origin()
    );
    let acme = connection("acme", &vendor.origin(), "");
    // Nobody listens yet.
    let deaf = "\n[sink.hook]\ntype = \"webhook\"\nurl = \"http://127.0.0.1:9\"\n";
    let place = Place::new(&format!("{acme}{FILES}{deaf}"));
    fs::write(place.path("out"), "").unwrap();
    assert_eq!(place.sync(&[]).1, 1);
    damage(&place);
    fs::remove_file(place.path("out")).unwrap();
    place.configure(&format!("{acme}{FILES}{hook}"));
    let (report, exit) = place.sync(&[]);
    assert_eq!(report["delivered"], true, "{report}");
    assert_eq!(exit, 3, "somebody must look: {report}");
    let good = first_revisions(100)[3..].to_vec();
    assert_eq!(place.keys("acme"), good);
    let ids: Vec<String> = (4..=100).map(|id| id.to_string()).collect();
    assert_eq!(*taken.lock().unwrap(), ids);
    let (status, exit) = place.json(&["status"]);
    assert_eq!(exit, 3);
    assert_eq!(status["dead_letters"], 6, "three of each sink: {status}");
}
