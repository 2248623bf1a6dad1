//! The server, met over a socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use super::*;
use crate::bulk::BulkPaging;
use crate::spec::{FaultKind, LatencySpec, ScriptedFault, VendorSpec, When, WritesSpec};

const START: i64 = 1_930_384_800_000;

struct Scene {
    server: Server,
    vendor: Arc<Vendor>,
    now: Arc<AtomicI64>,
}

fn scene() -> Scene {
    let mut spec = VendorSpec {
        base: "/acme".into(),
        latency: LatencySpec {
            base_ms: 0,
            jitter_ms: 0,
            ..LatencySpec::default()
        },
        ..VendorSpec::default()
    };
    spec.collections[0].writes = WritesSpec::lively(30, 5.0);
    let vendor = Arc::new(Vendor::new(spec, START).unwrap());
    let now = Arc::new(AtomicI64::new(START));
    let clock = Arc::clone(&now);
    let server = Server::start(Stage {
        vendors: vec![Arc::clone(&vendor)],
        bulks: vec![Arc::new(Bulk::new("/bulk", 2_000, BulkPaging::Token))],
        clock: Arc::new(move || clock.load(Ordering::Relaxed)),
        port: 0,
    })
    .unwrap();
    Scene {
        server,
        vendor,
        now,
    }
}

impl Scene {
    fn plan(&self, fault: FaultKind) {
        let when = When::Between {
            from_ms: 0,
            until_ms: i64::MAX / 2,
        };
        self.vendor.inject(ScriptedFault {
            when,
            collection: None,
            fault,
        });
    }
}

/// Head and body of an answer; an error where the connection does not end in good order.
fn ask(addr: SocketAddr, method: &str, target: &str) -> std::io::Result<(String, Vec<u8>)> {
    let mut stream = TcpStream::connect(addr)?;
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    Ok((head, answer[end + 4..].to_vec()))
}

fn length(head: &str) -> usize {
    let line = head
        .lines()
        .find(|line| line.starts_with("content-length: "))
        .unwrap();
    line["content-length: ".len()..].parse().unwrap()
}

#[test]
fn the_vendor_answers_at_the_time_of_the_given_clock() {
    let scene = scene();
    let (head, body) = ask(scene.server.addr(), "GET", "/acme/orders?limit=100").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(
        head.contains("date: Tue, 04 Mar 2031 10:00:00 GMT"),
        "{head}"
    );
    assert_eq!(head.matches("date: ").count(), 1);
    let count = |body: &[u8]| {
        let body: serde_json::Value = serde_json::from_slice(body).unwrap();
        body["data"].as_array().unwrap().len()
    };
    assert_eq!(count(&body), 30);
    scene.now.store(START + 10_000, Ordering::Relaxed);
    let (_, body) = ask(scene.server.addr(), "GET", "/acme/orders?limit=100").unwrap();
    assert!(count(&body) > 30);
    assert!(
        ask(scene.server.addr(), "GET", "/nobody")
            .unwrap()
            .0
            .contains(" 404 ")
    );
    assert_eq!(scene.server.ledger().total().calls, 2);
    scene.server.stop();
}

#[test]
fn another_process_can_read_the_ledger_and_freeze() {
    let scene = scene();
    let addr = scene.server.addr();
    let ledger = || -> serde_json::Value {
        serde_json::from_slice(&ask(addr, "GET", "/_sim/ledger").unwrap().1).unwrap()
    };
    ask(addr, "GET", "/acme/orders").unwrap();
    assert_eq!(ledger()["total"]["calls"], 1);
    assert_eq!(
        ledger()["vendors"][0]["collections"][0]["visible_records"],
        30
    );
    let (_, frozen) = ask(addr, "POST", "/_sim/freeze").unwrap();
    assert_eq!(frozen, format!("{{\"frozen_at\":{START}}}").into_bytes());
    scene.now.store(START + 60_000, Ordering::Relaxed);
    assert_eq!(
        ledger()["vendors"][0]["collections"][0]["visible_versions"],
        30
    );
    let (_, calls) = ask(addr, "GET", "/_sim/calls?vendor=acme").unwrap();
    let call: serde_json::Value = serde_json::from_slice(&calls).unwrap();
    assert_eq!(call["outcome"], "page");
    assert!(
        ask(addr, "GET", "/_sim/freeze")
            .unwrap()
            .0
            .contains(" 405 ")
    );
}

#[test]
fn a_body_that_is_cut_short_is_shorter_than_announced() {
    let scene = scene();
    scene.plan(FaultKind::CutShort);
    let (head, body) = ask(scene.server.addr(), "GET", "/acme/orders").unwrap();
    assert!(body.len() > 100 && body.len() < length(&head));
}

#[test]
fn a_reset_gives_no_answer() {
    let scene = scene();
    scene.plan(FaultKind::Reset);
    let error = ask(scene.server.addr(), "GET", "/acme/orders").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_huge_body_is_announced_and_comes_for_as_long_as_one_reads() {
    let scene = scene();
    scene.plan(FaultKind::Huge { bytes: 5 << 30 });
    let mut stream = TcpStream::connect(scene.server.addr()).unwrap();
    stream
        .write_all(b"GET /acme/orders HTTP/1.1\r\nHost: h\r\n\r\n")
        .unwrap();
    let mut read = vec![0; 1 << 20];
    stream.read_exact(&mut read).unwrap();
    assert!(String::from_utf8_lossy(&read).contains("content-length: 5368709120"));
}

#[test]
fn a_hanging_call_says_nothing_and_does_not_hold_up_the_end() {
    let scene = scene();
    scene.plan(FaultKind::Hang);
    let mut stream = TcpStream::connect(scene.server.addr()).unwrap();
    stream
        .write_all(b"GET /acme/orders HTTP/1.1\r\nHost: h\r\n\r\n")
        .unwrap();
    while scene.vendor.counts().calls == 0 {
        std::thread::yield_now();
    }
    let began = Instant::now();
    scene.server.stop();
    assert!(began.elapsed() < STOP_PATIENCE * 10);
    assert_eq!(stream.read(&mut [0; 10]).unwrap_or(0), 0);
}

#[test]
fn a_bulk_is_served_page_by_page_over_one_connection() {
    let scene = scene();
    let (head, body) = ask(scene.server.addr(), "GET", "/bulk?limit=1000&cursor=1000").unwrap();
    assert_eq!(length(&head), body.len());
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["data"].as_array().unwrap().len(), 1000);
    assert_eq!(body["data"][0]["id"], 1001);
    assert_eq!(body["next_cursor"], serde_json::Value::Null);
}

#[test]
fn a_server_that_is_dropped_gives_its_port_back() {
    let scene = scene();
    let addr = scene.server.addr();
    drop(scene.server);
    assert!(TcpStream::connect(addr).is_err());
}
