//! Notices changes in the connectors' directory.
//!
//! The system's notices only say that something happened; the scan decides what. Where the system has no
//! notices to give (some network file systems), a scan every few seconds does the same later.

use std::sync::Arc;
use std::time::Duration;

use notify::Watcher;
use tokio::sync::mpsc;

use super::{Catalogue, Changes};

/// Writes come in bursts: wait for the end of one.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Scan this often even when nothing was said.
const EVERY: Duration = Duration::from_secs(5);

/// Scans whenever something happens in the directory, and hands over each change. Ends when the receiver of
/// `changes` is gone.
pub async fn watch(catalogue: Arc<Catalogue>, changes: mpsc::Sender<Changes>) {
    let (said, mut heard) = mpsc::channel::<()>(1);
    let watcher = notify::recommended_watcher(move |_| {
        // A full channel means that a scan is about to happen anyway.
        let _ = said.try_send(());
    })
    .and_then(|mut watcher| {
        watcher.watch(catalogue.dir(), notify::RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    let watcher = match watcher {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::info!(%error, "no notices from the file system: the connectors' directory is read every few seconds");
            None
        }
    };
    let mut pause = EVERY;
    while !changes.is_closed() {
        tokio::select! {
            _ = tokio::time::sleep(pause) => {}
            Some(()) = heard.recv(), if watcher.is_some() => {
                tokio::time::sleep(DEBOUNCE).await;
                while heard.try_recv().is_ok() {}
            }
            () = changes.closed() => return,
        }
        let scanner = catalogue.clone();
        let found = tokio::task::spawn_blocking(move || scanner.scan()).await;
        pause = EVERY;
        match found {
            Ok(Ok(found)) => {
                if found.unsettled {
                    pause = DEBOUNCE;
                }
                if !found.connectors.is_empty() && changes.send(found).await.is_err() {
                    return;
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, "the connectors' directory can't be read"),
            Err(error) => tracing::warn!(%error, "reading the connectors' directory was cut short"),
        }
    }
}
