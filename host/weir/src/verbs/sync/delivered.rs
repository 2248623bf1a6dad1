//! Waits until the sinks have taken what a sync has read.

use std::sync::Arc;
use std::time::Duration;

use super::say;
use crate::control::Said;
use crate::host::{DRAIN, Host};
use crate::store::Sequence;
use crate::verbs::{Caller, Failure};

/// How often the sinks' positions are looked at: first soon, since most have little to take, then less and less.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Waits until every sink has taken all that is in the outbox now. As long as they get on they get their time; when
/// none has moved for [`DRAIN`], or the host stops, it gives up and returns how many records wait.
pub(super) async fn wait(host: &Arc<Host>, caller: &Caller) -> Result<u64, Failure> {
    let end = *host.store.outbox_end().borrow();
    let mut before = None;
    let mut since = host.clock.monotonic();
    let mut said = since;
    let mut pause = LOOKS.0;
    loop {
        let left = left(host, end)?;
        if left.iter().all(Left::is_nothing) {
            return Ok(0);
        }
        let now = host.clock.monotonic();
        // What a sink has refused is tried again by itself, and waits like the rest.
        let held = left.iter().map(|left| left.held).max().unwrap_or(0);
        if before.as_ref() != Some(&left) {
            before = Some(left);
            since = now;
        }
        let waiting = host.store.outbox_size()?.entries.saturating_add(held);
        if now.saturating_sub(since) > DRAIN || host.stop.stopped() {
            return Ok(waiting);
        }
        if now.saturating_sub(said) >= super::TICK {
            said = now;
            let text = format!("{waiting} records wait for the sinks");
            say(caller, Said::Passing(text)).await;
        }
        host.clock.sleep(pause).await;
        pause = (pause * 2).min(LOOKS.1);
    }
}

/// What a sink has not taken yet.
#[derive(PartialEq, Eq)]
struct Left {
    /// The first entry that it has not been offered.
    next: Option<Sequence>,
    /// Entries that it has refused and that are tried again.
    held: u64,
}

impl Left {
    fn is_nothing(&self) -> bool {
        self.next.is_none() && self.held == 0
    }
}

/// For each sink what it has not taken of the entries before `end`.
fn left(host: &Host, end: Sequence) -> Result<Vec<Left>, Failure> {
    let board = host.sinks.all();
    let mut all = Vec::new();
    for sink in host.config.sinks.keys() {
        let next = host.store.outbox(sink, None, 1)?;
        let entry = next.entries.first().map(|entry| entry.sequence);
        let unreadable = next.unreadable.first().map(|entry| entry.sequence);
        let first = entry.into_iter().chain(unreadable).min();
        all.push(Left {
            next: first.filter(|first| *first < end),
            held: board.get(sink).map_or(0, |status| status.held),
        });
    }
    Ok(all)
}
