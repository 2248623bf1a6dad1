//! What a person and a monitoring system see of a host: `weir status`, `/metrics`, `/healthz`, `/readyz`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use run_support::vendor::{Vendor, answer, json, orders};
use run_support::*;
use rustix::process::Signal;

const TOKEN: &str = "T0KEN-of-gone-4711";

/// Four connections: a good one, one with an outage, one that is refused for an hour, one whose token is revoked.
fn troubled(vendor: &Vendor, host: &str, sink: &str) -> String {
    let origin = vendor.origin();
    // A credential each: those on one credential share its limits.
    let with = |name: &str, token: &str| {
        connection(name, &origin, &format!("auth = {{ bearer = \"{token}\" }}"))
    };
    format!(
        "[host]\n{host}\n{}{}{}{}{sink}",
        with("good", "T0KEN-good"),
        with("shaky", "T0KEN-shaky"),
        with("busy", "T0KEN-busy"),
        with("gone", TOKEN),
    )
}

fn troubled_vendor() -> Vendor {
    let mut tries = 0;
    Vendor::new(move |asked| {
        let target = asked.target.as_str();
        if target.starts_with("/shaky") {
            tries += 1;
            if (2..5).contains(&tries) {
                return answer(
                    503,
                    &[("content-type", "text/plain")],
                    "down for maintenance",
                );
            }
        }
        if target.starts_with("/busy") {
            return answer(429, &[("retry-after", "3600")], "{}");
        }
        if target.starts_with("/gone") {
            return answer(
                401,
                &[("content-type", "application/json")],
                r#"{"error":"revoked"}"#,
            );
        }
        json(orders(3))
    })
}

fn http(mut stream: impl Read + Write, line: &str) -> String {
    let request = format!("{line} HTTP/1.1\r\nhost: weir\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn socket(place: &Place) -> UnixStream {
    let stream = UnixStream::connect(place.data().join("weir.sock")).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// The value of a sample, by its name with its labels.
fn sample(page: &str, name: &str) -> Option<f64> {
    page.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[test]
fn the_metrics_tell_of_every_signal_on_the_socket_and_on_loopback() {
    let vendor = troubled_vendor();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let place = Place::new(&troubled(
        &vendor,
        &format!("metrics = \"127.0.0.1:{port}\""),
        FILES,
    ));
    let mut running = place.start(&["run"]);
    running.until_said("metrics are served");
    place.until_delivered("good", 3);
    let page = until("all of it has happened", || {
        let page = http(socket(&place), "GET /metrics");
        let retried = sample(
            &page,
            r#"weir_retries_total{connector="rest",class="temporary"}"#,
        );
        let waits = sample(
            &page,
            r#"weir_polls_total{connection="busy",stream="orders",outcome="waiting"}"#,
        );
        let gone = sample(&page, r#"weir_needs_sign_in{connection="gone"}"#);
        (retried >= Some(3.0) && waits >= Some(1.0) && gone == Some(1.0)).then_some(page)
    });
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("text/plain; version=0.0.4"), "{page}");
    for (name, value) in [
        (
            r#"weir_retries_total{connector="rest",class="rate-limited"}"#,
            1.0,
        ),
        (r#"weir_sign_ins_needed_total{connection="gone"}"#, 1.0),
        (
            r#"weir_records_total{connection="good",stream="orders",result="new"}"#,
            3.0,
        ),
        ("weir_units_unknown", 0.0),
        ("weir_units_given_up", 0.0),
        (
            r#"weir_units_pinned{connection="good",stream="orders"}"#,
            0.0,
        ),
        (r#"weir_gaps_open{connection="good",stream="orders"}"#, 0.0),
        ("weir_gap_oldest_seconds", 0.0),
        (r#"weir_alert{signal="sign-in"}"#, 1.0),
        (r#"weir_alert{signal="unknown"}"#, 0.0),
        (r#"weir_connection_ready{connection="busy"}"#, 1.0),
    ] {
        assert_eq!(sample(&page, name), Some(value), "{name} in {page}");
    }
    for name in [
        "weir_oldest_due_seconds",
        "weir_store_commits_total",
        "weir_outbox_entries",
        "weir_outbox_oldest_seconds",
        r#"weir_deliveries_total{sink="main"}"#,
        r#"weir_call_duration_seconds_bucket{connection="good",le="+Inf"}"#,
        r#"weir_overlap_seconds{connection="good",stream="orders"}"#,
        r#"weir_budget_held_seconds{connection="busy",scope="credential",bucket=""}"#,
    ] {
        assert!(sample(&page, name).is_some(), "{name} in {page}");
    }
    assert!(
        !page.contains(TOKEN) && !page.contains("127.0.0.1"),
        "{page}"
    );
    for line in page.lines().skip_while(|line| !line.is_empty()).skip(1) {
        let sound = line.starts_with("# ")
            || line
                .rsplit_once(' ')
                .is_some_and(|(_, n)| n.parse::<f64>().is_ok());
        assert!(sound, "{line}");
    }

    let tcp = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    assert!(http(tcp(), "GET /metrics").contains("weir_polls_total"));
    assert!(http(tcp(), "GET /healthz").ends_with("ok\n"));
    let ready = http(tcp(), "GET /readyz");
    assert!(
        ready.starts_with("HTTP/1.1 200"),
        "degraded is not failed: {ready}"
    );
    assert!(ready.contains("gone needs a sign-in"), "{ready}");
    assert!(http(tcp(), "POST /metrics").starts_with("HTTP/1.1 405"));
    assert!(http(socket(&place), "GET /secrets").starts_with("HTTP/1.1 404"));
    assert!(!http(socket(&place), "HEAD /metrics").contains("weir_polls_total"));
    // Verbs go on over the same socket.
    assert_eq!(place.json(&["status"]).1, 3);
    assert_eq!(running.stop().code(), 0);
}

#[test]
fn the_status_tells_what_happened_without_the_log() {
    let vendor = troubled_vendor();
    let place = Place::new(&troubled(
        &vendor,
        "",
        "\n[sink.main]\ntype = \"file\"\npath = \"blocked/{connection}.ndjson\"\n",
    ));
    std::fs::write(place.path("blocked"), "a file where a directory should be").unwrap();
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    let told = until("all of it has happened", || {
        let told = place.ask(&["status"]).out;
        let rows = |what: &str| told.lines().any(|line| line.starts_with(what));
        (rows("shaky       temporary")
            && told.contains("takes nothing")
            && rows("gone")
            && rows("busy"))
        .then_some(told)
    });
    let says = |told: &str| {
        for text in [
            "Needs a person:\n- gone needs a sign-in since",
            "then `weir resume gone`",
            "503",
            "down for maintenance",
            "rate-limited",
            "429",
            "auth-",
        ] {
            assert!(told.contains(text), "{text:?} in {told}");
        }
        assert!(!told.contains(TOKEN), "{told}");
    };
    says(&told);
    assert!(told.contains("takes nothing since"), "{told}");
    assert!(told.contains("Not a directory"), "{told}");
    let ended = running.stop();
    assert_eq!(ended.code(), 0);
    // And afterwards too: from the log of polls.
    let afterwards = place.ask(&["status"]);
    assert_eq!(afterwards.code(), 3);
    says(&afterwards.out);
    let (polls, _) = place.json(&["polls", "shaky", "--class", "temporary"]);
    assert!(!polls["polls"].as_array().unwrap().is_empty(), "{polls}");
    let (polls, _) = place.json(&["polls", "--outcome", "needs-sign-in", "--since", "1h"]);
    assert_eq!(polls["polls"].as_array().unwrap().len(), 1, "{polls}");
    let (none, _) = place.json(&["polls", "--since", "2100-01-01"]);
    assert!(none["polls"].as_array().unwrap().is_empty(), "{none}");
    assert_eq!(place.ask(&["polls", "--class", "tired"]).code(), 2);
}

/// Does `told` hold all of these?
fn holds(told: &str, sentences: &[&str]) -> bool {
    sentences.iter().all(|sentence| told.contains(sentence))
}

/// What `weir ARGS` prints, once it holds all of these.
fn until_told(place: &Place, args: &[&str], sentences: &[&str]) -> Ended {
    let mut last = String::new();
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("it is told", || {
            let ended = place.ask(args);
            last.clone_from(&ended.out);
            holds(&ended.out, sentences).then_some(ended)
        })
    }));
    told.unwrap_or_else(|_| panic!("{args:?} never told all of {sentences:#?}:\n{last}"))
}

/// A night with an outage, a limit, a revoked token and a dead sink, seen by somebody who reads no log.
#[test]
fn a_bad_night_is_told_by_the_verbs_alone_while_it_lasts_and_afterwards() {
    let (bad, taken): (Arc<AtomicBool>, Arc<Mutex<Vec<String>>>) = Default::default();
    let (is_bad, takes) = (bad.clone(), taken.clone());
    let vendor = Vendor::new(move |asked| {
        let is_bad = is_bad.load(Ordering::SeqCst);
        let plain = [("content-type", "text/plain")];
        match asked.target.split('/').nth(1).unwrap_or_default() {
            "sink" if is_bad => answer(503, &plain, "the receiver sleeps"),
            "sink" => {
                let taken = lines(&asked.body);
                let keys = taken
                    .iter()
                    .map(|line| format!("{}/{}", line.connection, line.id));
                takes.lock().unwrap().extend(keys);
                answer(204, &[], "")
            }
            "shaky" if is_bad => answer(503, &plain, "down for maintenance"),
            "busy" if is_bad => answer(429, &[("retry-after", "2")], r#"{"error":"slow down"}"#),
            "gone" if is_bad => answer(401, &[], r#"{"error":"token revoked"}"#),
            _ if is_bad => json(orders(4)),
            _ => json(orders(3)),
        }
    });
    let sink = format!(
        "\n[sink.hook]\ntype = \"webhook\"\nurl = \"{}/sink\"\nbackoff = {{ base = \"100ms\", cap = \"400ms\" }}\n",
        vendor.origin()
    );
    let place = Place::new(&troubled(&vendor, "", &sink));
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    let count = |taken: &Mutex<Vec<String>>| taken.lock().unwrap().len();
    until("all is well", || (count(&taken) == 12).then_some(()));
    assert_eq!(place.ask(&["status"]).code(), 0);

    // While it lasts.
    bad.store(true, Ordering::SeqCst);
    let told = until_told(
        &place,
        &["status"],
        &[
            "Needs a person:\n- gone needs a sign-in since",
            "token revoked: renew its credential, then `weir resume gone`",
            "HTTP 503: down for maintenance",
            "HTTP 429: slow down; the vendor's wait",
            "1 waiting for a vendor, 2 failing",
            "outbox: 1 record (",
            "takes nothing since",
            "the receiver sleeps",
            "goes on",
        ],
    );
    assert_eq!(told.code(), 3);
    let gaps = until_told(
        &place,
        &["gaps"],
        &[
            "No gap is known.\nNot read just now; what comes meanwhile is read when that is over:",
            "- busy/orders since",
            "- gone/orders since",
            "- shaky/orders since",
        ],
    );
    assert_eq!(gaps.code(), 0, "nothing is lost yet");
    let review = place.ask(&["review"]);
    assert_eq!(review.code(), 3);
    let id = review
        .out
        .lines()
        .nth(1)
        .and_then(|line| line.split(' ').next());
    let shown = place.ask(&["review", "show", id.unwrap()]);
    assert!(
        holds(
            &shown.out,
            &[
                "needs sign-in",
                "/gone/orders",
                "401",
                "token revoked",
                "weir resume gone"
            ]
        ),
        "{shown:?}"
    );
    assert!(!shown.out.contains(TOKEN), "{shown:?}");
    let polls = place.ask(&["polls", "--trouble", "--limit", "1000"]);
    let rows: Vec<&str> = polls.out.lines().skip(1).collect();
    for (unit, outcome, why) in [
        (
            "shaky/orders",
            "failed",
            "HTTP 503: down for maintenance; backoff after attempt 1",
        ),
        (
            "busy/orders",
            "waiting",
            "HTTP 429: slow down; the vendor's wait",
        ),
        ("gone/orders", "needs-sign-in", "HTTP 401: token revoked"),
    ] {
        let told = |row: &&&str| holds(row, &[unit, outcome]) && row.ends_with(why);
        assert!(
            rows.iter().any(|row| told(&row)),
            "{unit} {outcome}: {polls:?}"
        );
    }
    assert!(
        !rows.iter().any(|row| row.contains("good/orders")),
        "{polls:?}"
    );

    // Put right again, as the status says.
    bad.store(false, Ordering::SeqCst);
    vendor.script({
        let takes = taken.clone();
        move |asked| {
            if !asked.target.starts_with("/sink") {
                return json(orders(4));
            }
            let lines = lines(&asked.body);
            let keys = lines
                .iter()
                .map(|line| format!("{}/{}", line.connection, line.id));
            takes.lock().unwrap().extend(keys);
            answer(204, &[], "")
        }
    });
    let resumed = place.ask(&["resume", "gone"]);
    assert_eq!(resumed.code(), 0, "{resumed:?}");
    until("all has arrived", || (count(&taken) >= 16).then_some(()));
    let told = until_told(
        &place,
        &["status"],
        &[
            "Nothing needs a person.",
            "outbox: empty",
            "took nothing from",
            "what waited meanwhile was kept",
        ],
    );
    assert_eq!(told.code(), 0, "{told:?}");
    let trouble: Vec<&str> = told
        .out
        .lines()
        .skip_while(|line| !line.starts_with("connection  trouble"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect();
    for connection in ["shaky", "busy", "gone"] {
        let of_it = |line: &&&str| line.starts_with(connection);
        assert!(
            trouble.iter().any(|line| of_it(&line)),
            "{connection}: {told:?}"
        );
    }
    assert!(
        trouble.iter().all(|line| line.contains("well since")),
        "{told:?}"
    );
    assert_eq!(place.ask(&["gaps"]).out, "No gap is known.\n");
    assert_eq!(place.ask(&["review"]).code(), 0);
    assert_eq!(running.stop().code(), 0);
    // Nothing was lost, and nothing came twice.
    let mut arrived = taken.lock().unwrap().clone();
    arrived.sort();
    let expected: Vec<String> = ["busy", "gone", "good", "shaky"]
        .iter()
        .flat_map(|name| (1..=4).map(move |id| format!("{name}/{id}")))
        .collect();
    assert_eq!(arrived, expected);
    // Who looks in the morning, after the host has been stopped, reads the same.
    let morning = place.ask(&["status"]);
    assert!(
        holds(
            &morning.out,
            &["No weir runs", "well since", "down for maintenance"]
        ),
        "{morning:?}"
    );
}

#[test]
fn a_host_that_is_stopped_in_its_tracks_is_told_of_and_not_waited_for() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let mut running = place.start(&["run"]);
    running.until_said("weir runs");
    place.until_delivered("acme", 2);
    running.signal(Signal::STOP);
    let began = Instant::now();
    let asked = place.ask(&["status"]);
    running.signal(Signal::CONT);
    assert_eq!(asked.code(), 1, "{asked:?}");
    assert!(
        asked.err.contains("has not said a word for 10 s"),
        "{asked:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(place.json(&["status"]).1, 0, "it goes on");
    assert_eq!(running.stop().code(), 0);
}

#[test]
fn the_units_are_known_from_the_first_moment_of_a_host() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = Place::new(&format!(
        "{}{FILES}",
        connection("acme", &vendor.origin(), "")
    ));
    let running = place.start(&["run"]);
    until("the socket is there", || {
        UnixStream::connect(place.data().join("weir.sock")).ok()
    });
    for verb in ["polls", "records", "gaps"] {
        let asked = place.ask(&[verb, "acme/orders"]);
        assert_eq!(asked.code(), 0, "{verb}: {asked:?}");
    }
    assert_eq!(running.stop().code(), 0);
}

#[test]
fn records_are_not_written_into_a_stdout_that_is_closed() {
    let vendor = Vendor::new(|_| json(orders(2)));
    let place = Place::new(&connection("acme", &vendor.origin(), ""));
    let sync = |redirection: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args([
            "-c",
            &format!("exec '{}' sync {redirection}", place.binary().display()),
        ]);
        place.at_home(&mut shell);
        Running::new(shell).end()
    };
    let ended = sync(">&-");
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.err.contains("stdout, which is closed"), "{ended:?}");
    let ended = sync("");
    assert_eq!(lines(&ended.out).len(), 2, "nothing was lost: {ended:?}");
    let ended = sync(">/dev/null");
    assert_eq!(ended.code(), 0, "who throws them away may: {ended:?}");
}

#[test]
fn the_data_directory_is_for_nobody_else_and_no_place_for_a_sink() {
    use std::os::unix::fs::PermissionsExt;
    let vendor = Vendor::new(|_| json(orders(2)));
    let acme = connection("acme", &vendor.origin(), "");
    let place = Place::new(&format!("{acme}{FILES}"));
    assert_eq!(place.sync(&[]).1, 0);
    let mode =
        |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.data()), 0o700);
    assert_eq!(mode(place.data().join("weir.redb")), 0o600);
    assert_eq!(mode(place.data().join("weir.redb.lock")), 0o600);
    for path in ["data/{connection}.ndjson", "./data/../data/x.ndjson"] {
        place.configure(&format!(
            "{acme}\n[sink.main]\ntype = \"file\"\npath = \"{path}\"\n"
        ));
        let ended = place.ask(&["sync"]);
        assert_eq!(ended.code(), 1, "{ended:?}");
        assert!(
            ended.err.contains("lies in the data directory"),
            "{ended:?}"
        );
    }
    place.configure(&format!(
        "[host]\nmetrics = \"0.0.0.0:9464\"\n{acme}{FILES}"
    ));
    let ended = place.ask(&["status"]);
    assert!(ended.err.contains("open = true"), "{ended:?}");
}
