//! How a host is told to stop, and when.
//!
//! The first request lets calls in flight end and what they brought be stored; nothing new is begun. The second
//! ends the process at once: whatever was not committed then is asked for again at the next start.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells everyone who holds a copy that the host is to stop.
#[derive(Clone)]
pub struct Stop {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for Stop {
    fn default() -> Self {
        Stop {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Stop {
    /// Asks everyone to stop.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }

    /// Has it been asked for?
    pub fn stopped(&self) -> bool {
        *self.sender.borrow()
    }

    /// Ends when it is asked for.
    pub async fn stopping(&self) {
        let mut receiver = self.sender.subscribe();
        // The sender lives in self, so waiting can't fail.
        let _ = receiver.wait_for(|stopped| *stopped).await;
    }
}

/// Turns the first SIGTERM or Ctrl-C into [`Stop::stop`], and the second into the end of the process.
pub fn on_signals(stop: Stop) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stop.stopped() {
                tracing::warn!(
                    "stopping at once; what was not stored is asked for again at the next start"
                );
                std::process::exit(130);
            }
            tracing::info!("stopping: calls in flight end first; once more to stop at once");
            stop.stop();
        }
    });
    Ok(())
}
