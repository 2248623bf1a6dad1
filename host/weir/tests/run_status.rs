//! What a person and a monitoring system see of a host: `weir status`, `/metrics`, `/healthz`, `/readyz`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
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
