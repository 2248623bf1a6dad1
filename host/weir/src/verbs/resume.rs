//! `weir resume`: a person says that a connection is in order again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Caller, Failure, no_connection};
use crate::control::Reply;
use crate::host::Host;
use crate::store::{Conclusion, StoreError};

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Resumed {
    connection: String,
    /// It had been waiting for a sign-in.
    signed_in: bool,
    /// Its units that had been parked.
    units: Vec<String>,
    /// Why it still is not polled, where it is not.
    not_ready: Option<String>,
    /// It is no connection but a sink; whether it is delivered to here, so that it is tried at once.
    #[serde(default)]
    sink: Option<bool>,
}

/// How a sink is named where a connection may be named too: no connection's name has a dot.
const SINK: &str = "sink.";

/// Forgets that the connection needs a sign-in and that units of it were parked. They are due at once.
pub(super) async fn answer(
    host: &Arc<Host>,
    name: &str,
    caller: &Caller,
) -> Result<Reply, Failure> {
    if let Some(sink) = name.strip_prefix(SINK)
        && host.config.sinks.contains_key(sink)
    {
        return Ok(Reply::with_exit(
            0,
            Resumed {
                connection: name.to_owned(),
                signed_in: false,
                units: Vec::new(),
                not_ready: None,
                sink: Some(host.sinks.resume(sink)),
            },
        ));
    }
    if !host.config.connections.contains_key(name) {
        return Err(no_connection(host, name));
    }
    let signed_in = host.sign_in.needed(name).is_some();
    host.renew_secrets(name).await?;
    if let Some(connection) = host.connections.get(name)
        && let Some((_, held)) = connection.renewal()
    {
        held.revive().await;
    }
    // What is read anew below must already have landed.
    settled(host.sign_in.clear(&*host.store, name).await)?;
    let mut parked = Vec::new();
    host.store.for_each_unit(&mut |unit| {
        if unit.key.connection == name && unit.state.parked.is_some() {
            parked.push(unit);
        }
    })?;
    let now = host.clock.wall();
    let mut units = Vec::with_capacity(parked.len());
    for unit in parked {
        // They are being tried again: if they fail, they wait anew.
        let review = host.store.reviews(Some(unit.id), usize::MAX)?;
        let review = review
            .into_iter()
            .filter(|entry| entry.record.is_none())
            .map(|entry| (entry.id, None))
            .collect();
        let change = host.store.update_unit(
            unit.id,
            Box::new(move |state| Conclusion {
                state: state.retry(),
                due: Some(Some(now)),
                review,
                ..Conclusion::default()
            }),
        );
        settled(change.await)?;
        units.push(unit.key.to_string());
    }
    host.prepare_connection(name, caller.running).await?;
    let state = host
        .connections
        .all()
        .into_iter()
        .find(|(known, _)| known == name);
    let not_ready = state.and_then(|(_, state)| state.err());
    Ok(Reply::with_exit(
        if not_ready.is_some() { 3 } else { 0 },
        Resumed {
            connection: name.to_owned(),
            signed_in,
            units,
            not_ready,
            sink: None,
        },
    ))
}

fn settled<T, E>(answer: Result<Result<T, StoreError>, E>) -> Result<T, StoreError> {
    answer.unwrap_or(Err(StoreError::Closed))
}

pub(super) fn render(answer: &Resumed) -> String {
    let Resumed {
        connection,
        signed_in,
        units,
        not_ready,
        sink,
    } = answer;
    match sink {
        Some(true) => return format!("{connection}: tried again now.\n"),
        Some(false) => {
            return format!("{connection}: no weir runs here; it is tried at the next start.\n");
        }
        None => {}
    }
    let mut text = match (signed_in, units.len()) {
        (false, 0) => format!("{connection}: nothing was held back.\n"),
        (true, 0) => format!("{connection}: polled again.\n"),
        (_, parked) => format!("{connection}: polled again, with {parked} that had been parked:\n"),
    };
    for unit in units {
        text.push_str(&format!("  {unit}\n"));
    }
    if let Some(why) = not_ready {
        text.push_str(&format!("{connection} is still not polled: {why}\n"));
    }
    text
}
