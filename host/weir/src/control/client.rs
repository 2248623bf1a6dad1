//! Asks a running host.

use std::io;
use std::path::Path;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::address::Address;
use super::{Failed, Line, Reply, Request, SILENCE, Said};

/// Why a running host gave no reply.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// No host runs on this data directory.
    #[error("no weir is running here")]
    NotRunning,
    /// The connection broke off.
    #[error("the running weir stopped answering ({0}): it has ended, or its log says more")]
    Broken(#[source] io::Error),
    /// It said something else.
    #[error(
        "the running weir answered in a way that this one does not understand ({0}): are both of one version?"
    )]
    Foreign(#[source] serde_json::Error),
    /// It could not do it.
    #[error("{}", .0.text)]
    Failed(Failed),
    /// It says nothing.
    #[error(
        "the running weir has not said a word for {} s: its process may be stopped or hang (`kill -CONT` wakes one that \
         is stopped); its log says more", SILENCE.as_secs()
    )]
    Silent,
}

/// Asks the host that runs on this data directory. `progress` gets what it says meanwhile.
///
/// # Errors
/// [`Unreachable`]; only [`Unreachable::NotRunning`] says that nobody holds the store by way of this socket.
pub async fn ask(
    data: &Path,
    request: &Request,
    mut progress: impl FnMut(Said),
) -> Result<Reply, Unreachable> {
    let stream = match connect(data).await {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(Unreachable::Silent),
        Ok(stream) => stream,
        // A socket file without a listener is what a killed host leaves behind. What is no directory holds no socket, and
        // none can be made at a path that is too long.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::InvalidInput
            ) =>
        {
            return Err(Unreachable::NotRunning);
        }
        Err(error) => return Err(Unreachable::Broken(error)),
    };
    let (read, mut write) = stream.into_split();
    let mut line = serde_json::to_vec(request).map_err(Unreachable::Foreign)?;
    line.push(b'\n');
    write.write_all(&line).await.map_err(Unreachable::Broken)?;
    let mut lines = BufReader::new(read).lines();
    loop {
        let heard = timeout(SILENCE, lines.next_line()).await;
        let heard = heard.map_err(|_| Unreachable::Silent)?;
        let Some(line) = heard.map_err(Unreachable::Broken)? else {
            break;
        };
        match serde_json::from_str(&line).map_err(Unreachable::Foreign)? {
            Line::Alive => {}
            Line::Said(said) => progress(said),
            Line::Reply(reply) => return Ok(reply),
            Line::Failed(failed) => return Err(Unreachable::Failed(failed)),
        }
    }
    Err(Unreachable::Broken(io::ErrorKind::UnexpectedEof.into()))
}

/// Does a host listen here?
pub async fn is_served(data: &Path) -> bool {
    connect(data).await.is_ok()
}

async fn connect(data: &Path) -> io::Result<UnixStream> {
    let address = Address::of(data)?;
    // A host that is stopped takes no more than a few connections.
    timeout(SILENCE, UnixStream::connect(address.path()))
        .await
        .unwrap_or(Err(io::ErrorKind::TimedOut.into()))
}
