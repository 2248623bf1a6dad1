//! Copies of the store, made while the host runs, so that a damaged file is not the end of it.
//!
//! A copy is due when the newest one is older than `host.copies.every`, when there is none, and when it is not known for
//! sure what has been given since the newest one. It is made beside the polls, which never wait for it. One that fails is
//! told (`weir status`, the metrics) and tried again; nothing else hangs on it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_rules::model::Timestamp;

use crate::host::Host;
use crate::store::{CopyOrder, StoreCopy, StoreError};

/// How often it is looked whether a copy is due.
const LOOK: Duration = Duration::from_secs(1);
/// How long a copy that failed is not tried again, in ms; the interval where that is shorter.
const REST: u64 = 600_000;

/// How the copies of a host are doing.
#[derive(Debug, Default)]
pub struct Copies {
    failed: Mutex<Option<Failed>>,
}

/// A copy that could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Why.
    pub error: String,
    /// When it was tried last, by this machine's clock.
    pub at: Timestamp,
}

impl Copies {
    /// Why the last try failed, if it did.
    pub fn failed(&self) -> Option<Failed> {
        self.failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn ended(&self, outcome: Option<Failed>) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
    }
}

/// Is a copy due? `every` in ms.
fn is_due(
    copies: &[StoreCopy],
    incomplete: bool,
    failed: Option<&Failed>,
    every: u64,
    now: Timestamp,
) -> bool {
    if failed.is_some_and(|failed| now.abs_diff(failed.at) < every.min(REST)) {
        return false;
    }
    // A copy from the future was made before the clock was set back: how old it is nobody knows.
    copies
        .first()
        .is_none_or(|newest| incomplete || newest.at > now || now.abs_diff(newest.at) >= every)
}

/// Makes copies for as long as the host runs.
pub async fn run(host: Arc<Host>) {
    host.prepared().await;
    while !host.stop.stopped() {
        make_if_due(&host).await;
        tokio::select! {
            () = host.clock.sleep(LOOK) => {}
            () = host.stop.stopping() => {}
        }
    }
}

/// Makes a copy if one is due. Nobody is told but through [`Host::copies`] and the log.
pub async fn make_if_due(host: &Arc<Host>) {
    let Some(settings) = host.config.host.copies else {
        return;
    };
    let now = host.clock.wall();
    let failed = host.copies.failed();
    let made = match host.store.copies() {
        Ok(None) => return,
        Ok(Some(copies)) => {
            let incomplete = host.store.copy_is_due();
            if !is_due(&copies, incomplete, failed.as_ref(), settings.every, now) {
                return;
            }
            make(host, settings.keep, now).await
        }
        Err(error) => Err(error),
    };
    match made {
        Ok(copy) => {
            if let Some(copy) = copy {
                tracing::info!(copy = %copy.path.display(), bytes = copy.bytes, "the store has been copied");
            }
            host.copies.ended(None);
        }
        // The host ends; the next one makes it.
        Err(StoreError::Closed) => {}
        Err(error) => {
            if failed.is_none() {
                tracing::error!(%error, "the store could not be copied: polling goes on; it is tried again");
            }
            let error = error.to_string();
            host.copies.ended(Some(Failed { error, at: now }));
        }
    }
}

async fn make(
    host: &Arc<Host>,
    keep: usize,
    at: Timestamp,
) -> Result<Option<StoreCopy>, StoreError> {
    let (store, stop) = (host.store.clone(), host.stop.clone());
    let made = tokio::task::spawn_blocking(move || {
        store.make_copy(&CopyOrder {
            at,
            keep,
            give_up: &|| stop.stopped(),
        })
    });
    made.await.unwrap_or(Err(StoreError::Closed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(number: u64, at: Timestamp) -> StoreCopy {
        StoreCopy {
            path: "x".into(),
            number,
            at,
            bytes: 1,
        }
    }

    #[test]
    fn a_copy_is_due_by_age_and_whenever_the_age_is_not_known() {
        let every = 1_000;
        let due = |copies: &[StoreCopy], now| is_due(copies, false, None, every, now);
        assert!(due(&[], 5_000));
        assert!(!due(&[copy(1, 4_500)], 5_000));
        assert!(due(&[copy(1, 4_000)], 5_000));
        // The clock was set back.
        assert!(due(&[copy(1, 9_000)], 5_000));
        assert!(!due(&[copy(2, 5_000), copy(1, 9_000)], 5_000));
        assert!(is_due(&[copy(1, 4_900)], true, None, every, 5_000));
    }

    #[test]
    fn a_failed_copy_is_not_tried_again_at_once() {
        let failed = Failed {
            error: "no space".into(),
            at: 5_000,
        };
        assert!(!is_due(&[], false, Some(&failed), 1_000, 5_500));
        assert!(is_due(&[], false, Some(&failed), 1_000, 6_000));
        assert!(!is_due(&[], false, Some(&failed), 86_400_000, 500_000));
        assert!(is_due(&[], false, Some(&failed), 86_400_000, 700_000));
    }
}
