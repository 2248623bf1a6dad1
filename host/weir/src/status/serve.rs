//! `/metrics`, `/healthz` and `/readyz`, over HTTP: on the control socket, and on a loopback address where the
//! configuration names one.
//!
//! - `/healthz`: the process answers.
//! - `/readyz`: it polls and can store. What needs a person is listed and is no failure: a host with one dead connection
//!   still serves the others. 503 only while it starts, stops, or can store nothing.
//! - `/metrics`: the numbers. The pass over all units behind them is made at most every [`FRESH`], and never on a thread
//!   that polls.
//!
//! Refuses: methods other than GET and HEAD; clients that take longer than [`PATIENCE`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore};

use super::exposition;
use super::metrics;
use super::snapshot::Snapshot;
use crate::host::Host;
use crate::store::StoreError;

/// How old the numbers of the units may be.
const FRESH: Duration = Duration::from_secs(5);
/// For how long the store may take nothing before the host is not ready: one page that finds no room is not all.
const STORE_GRACE: Duration = Duration::from_secs(10);
/// How long one client is served.
const PATIENCE: Duration = Duration::from_secs(30);
/// Clients that are served at once over the network.
const CLIENTS: usize = 16;

/// The last look at the host, and when it was taken.
#[derive(Default)]
pub struct LastLook {
    last: Mutex<Option<(Duration, Arc<Snapshot>)>>,
}

impl LastLook {
    /// How the host is, or was a moment ago. Whoever comes while it is being looked at waits for that look.
    async fn take(&self, host: &Arc<Host>) -> Result<Arc<Snapshot>, StoreError> {
        let mut last = self.last.lock().await;
        let now = host.clock.monotonic();
        if let Some((at, view)) = &*last
            && now.saturating_sub(*at) < FRESH
        {
            return Ok(view.clone());
        }
        let looker = host.clone();
        let look = move || Snapshot::of(&looker, true, &mut |_, _, _, _| ());
        let view = tokio::task::spawn_blocking(look)
            .await
            .unwrap_or(Err(StoreError::Closed))?;
        let view = Arc::new(view);
        *last = Some((now, view.clone()));
        Ok(view)
    }
}

/// Serves one client of the control socket or the network.
pub async fn serve_client(
    host: Arc<Host>,
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let service = service_fn(move |request| {
        let host = host.clone();
        async move { Ok::<_, std::convert::Infallible>(answer(&host, &request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(io), service);
    match tokio::time::timeout(PATIENCE, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a client of the metrics left"),
        Err(_) => tracing::debug!("a client of the metrics took too long"),
    }
}

/// Listens on a network address until the host stops.
///
/// # Errors
/// When the address can't be had.
pub async fn listen(host: Arc<Host>, address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "metrics are served");
    let clients = Arc::new(Semaphore::new(CLIENTS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = host.stop.stopping() => return Ok(()),
        };
        let Ok((stream, _)) = accepted else {
            // Out of file handles, mostly: a pause lets some go.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = clients.clone().try_acquire_owned() else {
            continue;
        };
        let host = host.clone();
        tokio::spawn(async move {
            serve_client(host, stream).await;
            drop(place);
        });
    }
}

async fn answer<B>(host: &Arc<Host>, request: &Request<B>) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD\n".to_owned(),
        );
        let allowed = hyper::header::HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    match request.uri().path() {
        "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => ready(host).await,
        "/metrics" => match host.last_look.take(host).await {
            Ok(view) => {
                let page = metrics::page(&view, &host.meters.read(), host.store.commits());
                let mut response = text(StatusCode::OK, page);
                let kind = hyper::header::HeaderValue::from_static(exposition::CONTENT_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        },
        _ => text(
            StatusCode::NOT_FOUND,
            "there are /metrics, /healthz and /readyz\n".to_owned(),
        ),
    }
}

async fn ready(host: &Arc<Host>) -> Response<Full<Bytes>> {
    let unready = |why: String| {
        text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {why}\n"),
        )
    };
    if host.stop.stopped() {
        return unready("it is stopping".to_owned());
    }
    if !host.is_prepared() {
        return unready("it is starting".to_owned());
    }
    let trouble = host.scheduler.store_trouble(host.clock.monotonic());
    if let Some((error, length)) = trouble
        && length >= STORE_GRACE
    {
        return unready(format!("nothing can be stored: {error}"));
    }
    match host.last_look.take(host).await {
        Ok(view) if view.needs.is_empty() => text(StatusCode::OK, "ready\n".to_owned()),
        Ok(view) => {
            let mut body = "ready, and degraded:\n".to_owned();
            for need in &view.needs {
                body.push_str(&format!("{}: {}\n", need.signal, need.text));
            }
            text(StatusCode::OK, body)
        }
        Err(error) => unready(error.to_string()),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let plain = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, plain);
    let fresh = hyper::header::HeaderValue::from_static("no-store");
    headers.insert(CACHE_CONTROL, fresh);
    response
}
