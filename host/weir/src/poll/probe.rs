//! One harmless call: is the vendor there, does it take the credential, and does the connector understand it?

use super::call::{CallFailed, Read};
use super::ledger::Full;
use super::rehearsal::{NoPoll, rehearsed};
use crate::host::Host;
use crate::store::{StoreError, UnitId, UnitKey};

/// What a probe found.
#[derive(Debug)]
pub enum Probed {
    /// The vendor answered and the connector understood it.
    Good {
        /// The unit whose first call was made.
        unit: UnitKey,
        /// What came.
        detail: String,
    },
    /// No call was made: somebody asked for a pause.
    Waits {
        /// The unit.
        unit: UnitKey,
        /// Who, and for how long.
        why: String,
    },
    /// Something is wrong.
    Bad {
        /// The unit, where there is one.
        unit: String,
        /// What.
        detail: String,
    },
}

/// Makes the first call of a unit as a poll would, with the connection's credential and under its budgets. Nothing
/// of what it brings is stored, and the unit stays where it is.
///
/// # Errors
/// When the store can't be read.
pub async fn probe(host: &Host, unit: UnitId) -> Result<Probed, StoreError> {
    let bad = |unit: &dyn std::fmt::Display, detail: String| Probed::Bad {
        unit: unit.to_string(),
        detail,
    };
    let mut poll = match rehearsed(host, unit)? {
        Ok(poll) => poll,
        Err(NoPoll { unit: None, why }) => return Ok(bad(&unit.0, why)),
        Err(NoPoll {
            unit: Some(key),
            why,
        }) => return Ok(bad(&key, why)),
    };
    let key = poll.row.key.clone();
    let step = poll.walk.step().flatten().map(str::to_owned);
    let request = match poll.request(step.as_deref()).await {
        Ok(request) => request,
        Err(fault) => return Ok(bad(&key, fault.text())),
    };
    if request.idempotency_header.is_some() {
        return Ok(Probed::Good {
            unit: key,
            detail: "not called: its first call has an effect at the vendor".to_owned(),
        });
    }
    if let Some(Full { until, why, .. }) = host.ledger.admit(&poll, &request) {
        let wait = until.saturating_sub(host.clock.wall()).max(0);
        return Ok(Probed::Waits {
            unit: key,
            why: format!("{why} for {} s", wait / 1_000 + 1),
        });
    }
    let call = match poll.call(step.as_deref(), request).await {
        Ok(call) => call,
        Err(CallFailed::Store(error)) => return Err(error),
        Err(CallFailed::Fault(fault)) => {
            return Ok(bad(&key, fault.text()));
        }
        Err(CallFailed::Repeat { why, .. }) => return Ok(Probed::Waits { unit: key, why }),
    };
    let latency = call.seen.latency;
    Ok(match call.read {
        Read::Page { prepared, .. } => Probed::Good {
            unit: key,
            detail: format!("{} records in {latency} ms", prepared.arrived()),
        },
        Read::NotModified { .. } => Probed::Good {
            unit: key,
            detail: format!("not modified, in {latency} ms"),
        },
        Read::Fault(seen) => {
            let fault = seen.fault;
            bad(
                &key,
                format!("{} {}: {}", fault.class.name(), fault.code, fault.message),
            )
        }
    })
}
