//! The client against a server that misbehaves, byte by byte; the exchange against a scripted transport.

mod client;
mod exchange;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use super::address::AddressPolicy;
use super::{CallLimits, HttpRequest};

/// What may be called in these tests: this machine.
pub(super) const LOOPBACK: AddressPolicy = AddressPolicy {
    loopback: true,
    private: false,
};

/// Limits that no test comes near, unless it is about one.
pub(super) fn limits() -> CallLimits {
    CallLimits {
        connect: Duration::from_secs(20),
        idle: Duration::from_secs(20),
        total: Duration::from_secs(60),
        body: 1 << 20,
    }
}

pub(super) fn get(url: &str) -> HttpRequest {
    HttpRequest {
        method: "GET",
        url: Url::parse(url).unwrap(),
        headers: Vec::new(),
        secret_headers: Vec::new(),
        body: None,
        addresses: LOOPBACK,
        limits: limits(),
        unit: None,
    }
}

/// How a scripted answer ends.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Then {
    /// The connection is closed.
    Close,
    /// The next request is awaited on it.
    KeepOpen,
    /// Silence.
    Hang,
    /// The last part again and again, until the other side has enough.
    Repeat,
}

/// A server on loopback that answers every request with the same bytes.
pub(super) struct RawServer {
    pub(super) port: u16,
    /// The heads of the requests so far, one list per connection.
    heads: Arc<Mutex<Vec<Vec<String>>>>,
}

impl RawServer {
    pub(super) async fn start(answer: impl Into<Vec<u8>>, then: Then) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(Vec::new());
                    seen.len() - 1
                };
                tokio::spawn(serve(
                    stream,
                    Arc::clone(&answer),
                    then,
                    Arc::clone(&seen),
                    connection,
                ));
            }
        });
        RawServer { port, heads }
    }

    pub(super) fn url(&self, path_and_query: &str) -> String {
        format!("http://127.0.0.1:{}{path_and_query}", self.port)
    }

    pub(super) fn connections(&self) -> usize {
        self.heads.lock().unwrap().len()
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().concat()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: Arc<[u8]>,
    then: Then,
    seen: Arc<Mutex<Vec<Vec<String>>>>,
    connection: usize,
) {
    loop {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte).await {
                Ok(1) => head.push(byte[0]),
                _ => return,
            }
        }
        seen.lock().unwrap()[connection].push(String::from_utf8(head).unwrap());
        if stream.write_all(&answer).await.is_err() {
            return;
        }
        match then {
            Then::Close => return,
            Then::KeepOpen => {}
            Then::Hang => std::future::pending().await,
            Then::Repeat => while stream.write_all(&[b' '; 4096]).await.is_ok() {},
        }
    }
}
