//! Vendors on a loopback port, over HTTP/1.1.
//!
//! Besides the vendors' own paths there are, for another process:
//! - `GET /_sim/ledger`: the numbers of [`crate::ledger::Summary`], as JSON.
//! - `POST /_sim/freeze`: nothing is written from now on, so that a run can drain.
//! - `GET /_sim/calls?vendor=NAME`: the calls of a vendor, one JSON object a line.

mod body;
mod control;
mod service;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::bulk::Bulk;
use crate::ledger::Ledger;
use crate::time::wall;
use crate::vendor::Vendor;
use service::Reception;

/// How long a stop waits for answers that are on their way. Hanging ones are cut off then.
const STOP_PATIENCE: Duration = Duration::from_millis(500);

/// The vendors' clock: ms since the epoch.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// What a server plays.
#[derive(Clone)]
pub struct Stage {
    /// The vendors; their bases must differ.
    pub vendors: Vec<Arc<Vendor>>,
    /// Large collections.
    pub bulks: Vec<Arc<Bulk>>,
    /// The vendors' clock.
    pub clock: Clock,
    /// 0: any port that is free.
    pub port: u16,
}

impl Stage {
    /// These vendors, by this machine's wall clock, on any free port.
    pub fn new(vendors: impl IntoIterator<Item = Arc<Vendor>>) -> Self {
        Stage {
            vendors: vendors.into_iter().collect(),
            bulks: Vec::new(),
            clock: Arc::new(wall),
            port: 0,
        }
    }
}

/// A running server. It has a thread of its own, so that it works beside any runtime or none; dropping it stops it.
pub struct Server {
    addr: SocketAddr,
    stage: Stage,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts on 127.0.0.1. When it returns, the port accepts connections.
    ///
    /// # Errors
    /// The port is taken, or there is no thread to be had.
    pub fn start(stage: Stage) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, stage.port))?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let reception = Arc::new(Reception::new(stage.clone()));
        let thread = std::thread::Builder::new()
            .name("simulated-vendor".into())
            .spawn(move || {
                runtime.block_on(async {
                    if let Ok(listener) = TcpListener::from_std(listener) {
                        serve(listener, reception, stopped).await;
                    }
                });
                // Hanging answers are still waiting in there.
                runtime.shutdown_background();
            })?;
        Ok(Server {
            addr,
            stage,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:PORT`
    pub fn origin(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The vendors that it plays.
    pub fn vendors(&self) -> &[Arc<Vendor>] {
        &self.stage.vendors
    }

    /// What its vendors remember up to now.
    pub fn ledger(&self) -> Ledger {
        let now = (self.stage.clock)();
        let ledgers = self.stage.vendors.iter().map(|vendor| vendor.ledger(now));
        ledgers.reduce(Ledger::and).unwrap_or_default()
    }

    /// Nothing is written from now on.
    pub fn freeze(&self) {
        let now = (self.stage.clock)();
        for vendor in &self.stage.vendors {
            vendor.freeze(now);
        }
    }

    /// Stops: answers that are on their way get half a second.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may be gone already, and then there is nothing to stop.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

async fn serve(
    listener: TcpListener,
    reception: Arc<Reception>,
    mut stopped: oneshot::Receiver<()>,
) {
    let graceful = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            _ = &mut stopped => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Out of file descriptors, or the client is gone already: the next one may succeed.
                Err(_) => continue,
            },
        };
        let Ok(line) = Line::new(&stream) else {
            continue;
        };
        let reception = Arc::clone(&reception);
        let to_line = Arc::clone(&line);
        let service = service_fn(move |request| {
            service::answer(Arc::clone(&reception), Arc::clone(&to_line), request)
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A connection that breaks, by our doing or the client's, concerns nobody else.
            let _ = connection.await;
            drop(line);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(STOP_PATIENCE, graceful.shutdown()).await;
}

/// A second handle on a connection's socket, to reset it while hyper owns the first.
pub(crate) struct Line(TcpStream);

impl Line {
    fn new(stream: &TcpStream) -> io::Result<Arc<Self>> {
        stream.set_nodelay(true)?;
        let twin = std::os::fd::AsFd::as_fd(stream).try_clone_to_owned()?;
        let twin = std::net::TcpStream::from(twin);
        Ok(Arc::new(Line(TcpStream::from_std(twin)?)))
    }

    /// Closing the connection from now on resets it, instead of ending it in good order.
    pub(crate) fn will_reset(&self) {
        // Without it the connection just ends, which is a broken answer too.
        let _ = self.0.set_zero_linger();
    }
}

#[cfg(test)]
mod tests;
