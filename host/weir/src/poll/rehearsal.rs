//! A poll of which nothing is stored: what `weir check` and `weir record` make their calls with.
//!
//! It asks as a poll would: through the guard, with the connection's credential, under its budgets. The unit keeps its
//! cursor, its records and its due time. What the answers say of limits counts for everyone.

use weir_rules::model::Reason;

use super::Job;
use super::reviews::Reviews;
use super::run::Poll;
use crate::host::Host;
use crate::store::{StoreError, Ticket, UnitId, UnitKey};

/// Why there is none.
pub(super) struct NoPoll {
    /// The unit's name; none where the unit is gone.
    pub(super) unit: Option<UnitKey>,
    pub(super) why: String,
}

/// A poll of a unit that is not leased and will not be stored.
pub(super) fn rehearsed(
    host: &Host,
    unit: UnitId,
) -> Result<Result<Box<Poll<'_>>, NoPoll>, StoreError> {
    let Some(row) = host.store.unit(unit)? else {
        return Ok(Err(NoPoll {
            unit: None,
            why: "the unit is gone".to_owned(),
        }));
    };
    let key = row.key.clone();
    let no = |why: String| {
        Ok(Err(NoPoll {
            unit: Some(key.clone()),
            why,
        }))
    };
    let connection = host.connections.get(&key.connection);
    let stream = connection
        .as_ref()
        .and_then(|connection| connection.streams.get(&key.stream).cloned());
    let (Some(connection), Some(stream)) = (connection, stream) else {
        return no("it is not polled any more".to_owned());
    };
    if let Some(needed) = host.sign_in.all().remove(&key.connection) {
        let way_out = needed.way_out(&key.connection);
        return no(format!("needs a sign-in: {}; then `{way_out}`", needed.why));
    }
    let job = Job {
        unit,
        reason: Reason::SyncNow,
        // Nothing is committed under it.
        ticket: Ticket(0),
        intended: host.clock.wall(),
    };
    let reviews = Reviews::none(row.id, &row.key);
    match Poll::new(host, job, row, connection, stream, reviews) {
        Ok(poll) => Ok(Ok(poll)),
        Err(report) => no(report.message.unwrap_or_default()),
    }
}
