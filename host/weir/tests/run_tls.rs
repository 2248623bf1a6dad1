//! Certificates and versions of TLS, with the real binary against a server on loopback.
//!
//! `tls/` holds a root that signed three certificates (its key is gone): `good` for localhost, `other` for another name,
//! `expired` for localhost and over. None of them is trusted by anybody.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod run_support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use run_support::vendor::orders;
use run_support::*;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, Stream, SupportedProtocolVersion};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/ca.pem");

/// Answers each connection by `serve`, until it is dropped.
struct Server {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn new(mut serve: impl FnMut(TcpStream) + Send + 'static) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                // A client that has broken off must not hold up the others.
                stream.set_read_timeout(Some(DEADLINE)).unwrap();
                serve(stream);
            }
        });
        Server {
            port,
            stop,
            thread: Some(thread),
        }
    }

    /// Speaks TLS with that certificate; counts the requests that came through.
    fn tls(
        name: &str,
        versions: &[&'static SupportedProtocolVersion],
    ) -> (Server, Arc<AtomicUsize>) {
        let read = |end: &str| {
            std::fs::read(format!(
                "{}/tests/tls/{name}.{end}",
                env!("CARGO_MANIFEST_DIR")
            ))
            .unwrap()
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(read("p8")));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(read("der"))], key)
            .unwrap();
        let config = Arc::new(config);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let server = Server::new(move |mut tcp| {
            let mut session = ServerConnection::new(config.clone()).unwrap();
            let mut tls = Stream::new(&mut session, &mut tcp);
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") {
                match tls.read(&mut byte) {
                    Ok(1) => head.push(byte[0]),
                    _ => return,
                }
            }
            count.fetch_add(1, Ordering::SeqCst);
            let body = orders(2);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            // The client may have had enough.
            let _ = tls.write_all(answer.as_bytes());
            session.send_close_notify();
            let _ = session.write_tls(&mut tcp);
        });
        (server, asked)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A place whose weir trusts our root and nobody else.
fn place(port: u16) -> Place {
    Place::new(&format!(
        "{}{FILES}",
        connection("acme", &format!("https://localhost:{port}"), "")
    ))
    .env("SSL_CERT_FILE", ROOT)
}

#[test]
fn a_certificate_of_a_trusted_root_for_the_right_name_is_taken_with_tls_1_2_and_1_3() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (server, asked) = Server::tls("good", &[version]);
        let place = place(server.port);
        assert_eq!(place.sync(&[]).1, 0);
        assert_eq!(place.keys("acme"), first_revisions(2));
        assert!(asked.load(Ordering::SeqCst) > 0);
    }
}

#[test]
fn a_certificate_that_is_foreign_expired_or_for_another_name_is_not_taken() {
    for (name, trusts) in [("good", false), ("expired", true), ("other", true)] {
        let (server, asked) = Server::tls(name, rustls::ALL_VERSIONS);
        let mut place = place(server.port);
        if !trusts {
            place = place
                .env("SSL_CERT_FILE", "/dev/null")
                .env("SSL_CERT_DIR", "/dev/null");
        }
        let (report, exit) = place.sync(&[]);
        assert_ne!(exit, 0, "{name}: {report}");
        assert!(place.keys("acme").is_empty(), "{name}");
        assert_eq!(
            asked.load(Ordering::SeqCst),
            0,
            "{name}: a request went out"
        );
    }
}

/// The versions that a ClientHello offers: those of its extension, or the one in its head.
fn offered(hello: &[u8]) -> Vec<u16> {
    let number = |at: usize| u16::from_be_bytes([hello[at], hello[at + 1]]);
    // Record head 5, handshake head 4, version 2, random 32.
    let mut at = 43;
    at += 1 + usize::from(hello[at]);
    at += 2 + usize::from(number(at));
    at += 1 + usize::from(hello[at]);
    let end = at + 2 + usize::from(number(at));
    at += 2;
    while at < end {
        let (kind, length) = (number(at), usize::from(number(at + 2)));
        if kind == 43 {
            return (at + 5..at + 4 + length).step_by(2).map(number).collect();
        }
        at += 4 + length;
    }
    vec![number(9)]
}

#[test]
fn nothing_older_than_tls_1_2_is_offered() {
    let hello = Arc::new(Mutex::new(Vec::new()));
    let heard = hello.clone();
    let server = Server::new(move |mut tcp| {
        let mut head = [0; 5];
        if tcp.read_exact(&mut head).is_err() {
            return;
        }
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
        if tcp.read_exact(&mut body).is_ok() {
            *heard.lock().unwrap() = [head.to_vec(), body].concat();
        }
    });
    let place = place(server.port);
    assert_ne!(place.sync(&[]).1, 0);
    let hello = hello.lock().unwrap().clone();
    assert!(!hello.is_empty(), "it has called");
    let mut versions = offered(&hello);
    versions.sort_unstable();
    assert_eq!(versions, [0x0303, 0x0304]);
}
