//! What the verbs of the command line answer: one file per verb, each with the shape of its answer and the text
//! that a person sees of it.
//!
//! A verb's answer is made by [`answer`] on a host, wherever that runs, and printed by [`render`] where the person
//! is. `--json` prints the answer itself.

mod backfill;
mod check;
pub mod connectors;
mod gaps;
mod login;
pub(crate) mod polls;
pub(crate) mod record;
mod records;
mod reset;
mod resume;
mod review;
mod select;
mod status;
mod sync;
pub(crate) mod text;
pub mod trust;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::config;
use crate::control::{Reply, Request, Said};
use crate::host::Host;
use crate::oauth::login::LoginError;
use crate::store::StoreError;
use crate::trust::Trust;

pub use check::broken_config;
pub use select::Selection;

/// Who asks.
pub struct Caller {
    /// The host that answers is one that runs (`weir run`), not one that was opened for this request.
    pub running: bool,
    /// Where a verb that takes long says what it is doing. Nobody has to listen.
    pub progress: mpsc::Sender<Said>,
}

/// Why a verb gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something was named that is not there.
    #[error("{0}")]
    Unknown(String),
    /// Nobody has signed in.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// What was asked for must not be done.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    /// The exit code that it calls for: naming what is not there is wrong use.
    pub fn exit(&self) -> u8 {
        match self {
            Failure::Store(_) | Failure::Login(_) | Failure::Refused(_) => 1,
            Failure::Unknown(_) => 2,
        }
    }
}

/// Answers a request.
///
/// # Errors
/// [`Failure`]: the store, or a name that nothing has.
pub async fn answer(host: &Arc<Host>, request: Request, caller: Caller) -> Result<Reply, Failure> {
    // A host that has just started does not know its units yet. Whoever opened one for the request has seen to that.
    let about_units = match &request {
        Request::Sync { .. }
        | Request::Check { .. }
        | Request::Resume { .. }
        | Request::Record { .. }
        | Request::Trust { .. }
        | Request::Login { .. }
        | Request::ReviewRetry { .. }
        | Request::Reset { .. }
        | Request::Gaps { .. }
        | Request::Backfill { .. } => true,
        Request::Records { unit, .. } | Request::Review { unit, .. } => unit.is_some(),
        Request::Polls(filter) => filter.unit.is_some(),
        _ => false,
    };
    if caller.running && about_units {
        host.prepared().await;
    }
    match request {
        Request::Status { all } => {
            // It reads every unit, of which there may be 100,000: not on a thread that polls.
            let host = host.clone();
            tokio::task::spawn_blocking(move || status::answer(&host, all, &caller))
                .await
                .unwrap_or(Err(StoreError::Closed.into()))
        }
        Request::Sync { unit, full, wait } => {
            sync::answer(host, unit.as_deref(), full, wait, &caller).await
        }
        Request::Check { offline, file } => check::answer(host, offline, &file, &caller).await,
        Request::Connectors { name } => connectors::answer(&host.catalogue, name.as_deref()),
        Request::Records { unit, limit, after } => {
            records::answer(host, unit.as_deref(), limit, after.as_deref())
        }
        Request::Polls(filter) => polls::answer(host, &filter),
        Request::Gaps { unit, accept } => gaps::answer(host, unit.as_deref(), accept).await,
        Request::Backfill {
            unit,
            since,
            until,
            wait,
        } => backfill::answer(host, &unit, (since, until), wait, &caller).await,
        Request::Login {
            connection,
            device,
            wait,
        } => login::answer(host, &connection, device, wait, &caller).await,
        Request::Record {
            connection,
            stream,
            partition,
            scrub,
            calls,
            resume,
        } => {
            let wanted = record::Wanted {
                connection: &connection,
                stream: stream.as_deref(),
                partition: partition.as_deref(),
                scrub: &scrub,
                calls,
                resume,
            };
            record::answer(host, &wanted, &caller).await
        }
        Request::Resume { connection } => resume::answer(host, &connection, &caller).await,
        Request::Trust { connector } => trust::answer(host, &connector, &caller).await,
        Request::Verify => trust::verify(
            host.catalogue.dir(),
            &Trust::file_in(&host.config.host.data),
        ),
        Request::Review { unit, all } => review::listed(host, unit.as_deref(), all),
        Request::ReviewShow { id } => review::shown(host, &id),
        Request::ReviewRetry { what } => review::retried(host, &what, &caller).await,
        Request::ReviewDrop { id } => review::dropped(host, &id).await,
        Request::Reset {
            unit,
            records,
            plan,
        } => reset::answer(host, &unit, records, plan, &caller).await,
    }
}

/// The text that a person sees of an answer.
///
/// # Errors
/// When the answer has another shape: it came from a weir of another version.
pub fn render(request: &Request, body: serde_json::Value) -> Result<String, serde_json::Error> {
    Ok(match request {
        Request::Status { .. } => status::render(&serde_json::from_value(body)?),
        Request::Sync { .. } => sync::render(&serde_json::from_value(body)?),
        Request::Check { .. } => check::render(&serde_json::from_value(body)?),
        Request::Connectors { name } => {
            connectors::render(&serde_json::from_value(body)?, name.is_some())
        }
        Request::Records { .. } => records::render(&serde_json::from_value(body)?),
        Request::Polls(_) => polls::render(&serde_json::from_value(body)?),
        Request::Gaps { .. } => gaps::render(&serde_json::from_value(body)?),
        Request::Login { .. } => login::render(&serde_json::from_value(body)?),
        Request::Backfill { .. } => backfill::render(&serde_json::from_value(body)?),
        Request::Record { .. } => record::render(&serde_json::from_value(body)?),
        Request::Resume { .. } => resume::render(&serde_json::from_value(body)?),
        Request::Trust { .. } => trust::render(&serde_json::from_value(body)?),
        Request::Verify => trust::render_verified(&serde_json::from_value(body)?),
        Request::Review { .. } => review::render_list(&serde_json::from_value(body)?),
        Request::ReviewShow { .. } => review::render_one(&serde_json::from_value(body)?),
        Request::ReviewRetry { .. } => review::render_retried(&serde_json::from_value(body)?),
        Request::ReviewDrop { .. } => review::render_dropped(&serde_json::from_value(body)?),
        Request::Reset { .. } => reset::render(&serde_json::from_value(body)?),
    })
}

/// A connection was named that the configuration does not have.
fn no_connection(host: &Host, name: &str) -> Failure {
    let known: Vec<&str> = host.config.connections.keys().map(String::as_str).collect();
    Failure::Unknown(format!(
        "no connection is named {name} in {}: {}",
        host.config.source.file().display(),
        if known.is_empty() {
            "it has none yet".to_owned()
        } else {
            config::suggest_name(name, &known)
        }
    ))
}
