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
        let positions = positions(host, end)?;
        if positions.iter().all(Option::is_none) {
            return Ok(0);
        }
        let now = host.clock.monotonic();
        if before.as_ref() != Some(&positions) {
            before = Some(positions);
            since = now;
        }
        let size = host.store.outbox_size()?;
        if now.saturating_sub(since) > DRAIN || host.stop.stopped() {
            return Ok(size.entries);
        }
        if now.saturating_sub(said) >= super::TICK {
            said = now;
            let text = format!("{} records wait for the sinks", size.entries);
            say(caller, Said::Passing(text)).await;
        }
        host.clock.sleep(pause).await;
        pause = (pause * 2).min(LOOKS.1);
    }
}

/// For each sink the first entry before `end` that it has not taken; none where it has taken all of them.
fn positions(host: &Host, end: Sequence) -> Result<Vec<Option<Sequence>>, Failure> {
    let mut positions = Vec::new();
    for sink in host.config.sinks.keys() {
        let next = host.store.outbox(sink, None, 1)?;
        let entry = next.entries.first().map(|entry| entry.sequence);
        let unreadable = next.unreadable.first().map(|entry| entry.sequence);
        let first = entry.into_iter().chain(unreadable).min();
        positions.push(first.filter(|first| *first < end));
    }
    Ok(positions)
}
