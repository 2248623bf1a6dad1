//! A poll whose exchanges are kept and whose outcome is not, for `weir record`.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_runtime::contract::{Request, Response, Task};

use super::call::{Answered, exchange, response};
use super::ledger::Full;
use super::rehearsal::{NoPoll, rehearsed};
use super::run::Poll;
use crate::host::Host;
use crate::http::credentials::Credential;
use crate::http::guard::Origin;
use crate::store::{StoreError, UnitId, UnitKey};

/// What was asked and answered.
#[derive(Debug)]
pub struct Recorded {
    /// The unit.
    pub unit: UnitKey,
    /// The poll.
    pub task: Task,
    /// The calls, in order; nothing in them is masked yet.
    pub exchanges: Vec<(Request, Response)>,
    /// Why it ended before its end, where it did.
    pub ended: Option<String>,
}

/// Polls a unit and keeps what was said. At most so many calls; `afresh`: as if it had never been polled.
///
/// # Errors
/// When the store can't be read.
pub async fn record(
    host: &Host,
    unit: UnitId,
    calls: usize,
    afresh: bool,
) -> Result<Result<Recorded, String>, StoreError> {
    let mut poll = match rehearsed(host, unit)? {
        Ok(poll) => poll,
        Err(NoPoll { why, .. }) => return Ok(Err(why)),
    };
    if afresh {
        let since = poll.stream.settings.start;
        let task = Arc::make_mut(&mut poll.task);
        task.cursor = None;
        task.window.since = since;
    }
    let mut recorded = Recorded {
        unit: poll.row.key.clone(),
        task: Task::clone(&poll.task),
        exchanges: Vec::new(),
        ended: None,
    };
    recorded.ended = walk(&mut poll, calls, &mut recorded.exchanges).await.err();
    Ok(Ok(recorded))
}

async fn walk(
    poll: &mut Poll<'_>,
    calls: usize,
    kept: &mut Vec<(Request, Response)>,
) -> Result<(), String> {
    let mut steps = VecDeque::from([None::<String>]);
    while let Some(step) = steps.pop_front() {
        if kept.len() >= calls {
            return Err(format!(
                "it goes on after {calls} calls: --calls allows more"
            ));
        }
        let request = poll
            .request(step.as_deref())
            .await
            .map_err(|fault| fault.text())?;
        if request.idempotency_header.is_some() {
            return Err("its next call has an effect at the vendor, and is not made".to_owned());
        }
        if let Some(Full { until, why, .. }) = poll.host.ledger.admit(poll, &request) {
            let wait = until.saturating_sub(poll.host.clock.wall()).max(0) / 1_000 + 1;
            return Err(format!("{why} for {wait} s"));
        }
        let answer = ask(poll, &request).await?;
        kept.push((request, answer.clone()));
        let (connector, task) = (poll.connection.connector.clone(), poll.task.clone());
        let read = poll
            .host
            .runtime
            .workers()
            .run(move || connector.read_response(&task, step.as_deref(), &answer))
            .await;
        match read.map_err(|gone| gone.to_string())? {
            Ok(Ok(page)) => {
                for next in page.next {
                    if !steps.iter().any(|waiting| waiting.as_ref() == Some(&next)) {
                        steps.push_back(Some(next));
                    }
                }
            }
            Ok(Err(fault)) => {
                let fault = poll.masked(fault.into());
                return Err(format!(
                    "{} {}: {}",
                    fault.class.name(),
                    fault.code,
                    fault.message
                ));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

/// The answer to one call; a token that has expired is renewed once.
async fn ask(poll: &mut Poll<'_>, request: &Request) -> Result<Response, String> {
    let connection = poll.connection.clone();
    let Some(place) = connection.origins.get(&request.origin) else {
        return Err(format!(
            "the connector does not declare the origin {:?}",
            request.origin
        ));
    };
    let trouble = |trouble: crate::oauth::Trouble| trouble.fault.message;
    let credential = place.credential.current().await.map_err(trouble)?;
    let answer = send(poll, request, &place.origin, &credential).await?;
    if answer.status != 401 {
        return Ok(answer);
    }
    match place.credential.after(&credential).await.map_err(trouble)? {
        Some(renewed) => send(poll, request, &place.origin, &renewed).await,
        None => Ok(answer),
    }
}

async fn send(
    poll: &mut Poll<'_>,
    request: &Request,
    origin: &Origin,
    credential: &Credential,
) -> Result<Response, String> {
    let exchange = exchange(poll.host, request, origin, credential)
        .map_err(|error| error.to_string())?
        .made_for(poll.row.id);
    match poll.send(&exchange, None, &mut Answered::none()).await {
        Ok((answer, ..)) => Ok(response(answer)),
        Err(error) => Err(error.to_string()),
    }
}
