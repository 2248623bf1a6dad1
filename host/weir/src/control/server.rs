//! Listens on the control socket and lets the host answer.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::address::Address;
use super::{ALIVE, Failed, Line, Request, SILENCE, Said};
use crate::host::Host;
use crate::verbs::Caller;

/// A request is a short line; more than this is not one.
const LONGEST_REQUEST: u64 = 64 * 1024;

/// Answers requests until the host stops. The caller holds the store's lock, so a socket file that is already
/// there was left by a host that is gone.
///
/// # Errors
/// When the socket can't be made or removed.
pub async fn serve(host: Arc<Host>, data: &Path) -> io::Result<()> {
    let address = Address::of(data)?;
    let path = address.path();
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file handles, mostly: a pause lets some go.
                    tracing::warn!(%error, "control socket");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = host.stop.stopping() => break,
        };
        let host = host.clone();
        tokio::spawn(async move {
            if let Err(error) = converse(host, stream).await {
                tracing::debug!(%error, "a control client left");
            }
        });
    }
    fs::remove_file(path)
}

async fn converse(host: Arc<Host>, stream: UnixStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    // A client that says nothing has no business here.
    let first = timeout(SILENCE, stream.fill_buf()).await??.first().copied();
    if first.is_some_and(|byte| byte != b'{') {
        crate::status::serve_client(host, stream).await;
        return Ok(());
    }
    let (read, mut write) = tokio::io::split(stream);
    let mut read = BufReader::new(read.take(LONGEST_REQUEST));
    let mut text = String::new();
    timeout(SILENCE, read.read_line(&mut text)).await??;
    let request: Request = match serde_json::from_str(&text) {
        Ok(request) => request,
        Err(error) => {
            let text = format!(
                "the running weir does not know this request ({error}): are both of one version?"
            );
            return send(&mut write, &Line::Failed(Failed { text, exit: 1 })).await;
        }
    };
    let (progress, mut said) = mpsc::channel::<Said>(16);
    let caller = Caller {
        running: true,
        progress,
    };
    let mut answer = JoinSet::new();
    answer.spawn(async move { crate::verbs::answer(&host, request, caller).await });
    let mut alive = tokio::time::interval(ALIVE);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(said) = said.recv() => send(&mut write, &Line::Said(said)).await?,
            Some(outcome) = answer.join_next() => break outcome,
            _ = alive.tick() => send(&mut write, &Line::Alive).await?,
            // Nothing more is due from the client, so an end of its side means that it has left. Dropping the
            // answer takes the request back.
            _ = read.read_line(&mut text) => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
    };
    let line = match outcome {
        Ok(Ok(reply)) => Line::Reply(reply),
        Ok(Err(failure)) => Line::Failed(Failed {
            text: failure.to_string(),
            exit: failure.exit(),
        }),
        Err(_) => Line::Failed(Failed {
            text: "answering failed; the log of the running weir has more".to_owned(),
            exit: 1,
        }),
    };
    send(&mut write, &line).await
}

async fn send(write: &mut (impl AsyncWriteExt + Unpin), line: &Line) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line).map_err(io::Error::other)?;
    bytes.push(b'\n');
    write.write_all(&bytes).await
}
