//! What the verbs of the command line answer: one file per verb, each with the shape of its answer and the text
//! that a person sees of it.
//!
//! A verb's answer is made by [`answer`] on a host, wherever that runs, and printed by [`render`] where the person
//! is. `--json` prints the answer itself.

mod check;
mod connectors;
mod polls;
mod records;
mod resume;
mod select;
mod status;
mod sync;
mod text;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::control::{Reply, Request};
use crate::host::Host;
use crate::store::StoreError;

pub use select::Selection;

/// Where a verb that takes long says what it is doing.
pub type Progress = mpsc::Sender<String>;

/// Why a verb gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something was named that is not there.
    #[error("{0}")]
    Unknown(String),
}

/// Answers a request.
pub async fn answer(
    host: &Arc<Host>,
    request: Request,
    progress: Progress,
) -> Result<Reply, Failure> {
    match request {
        Request::Status => status::answer(host),
        Request::Sync { unit, full, wait } => {
            sync::answer(host, unit.as_deref(), full, wait, progress).await
        }
        Request::Check { offline } => check::answer(host, offline).await,
        Request::Connectors { name } => connectors::answer(host, name.as_deref()),
        Request::Records { unit, limit, after } => {
            records::answer(host, unit.as_deref(), limit, after.as_deref())
        }
        Request::Polls { unit, limit } => polls::answer(host, unit.as_deref(), limit),
        Request::Resume { connection } => resume::answer(host, &connection).await,
    }
}

/// The text that a person sees of an answer.
pub fn render(request: &Request, body: serde_json::Value) -> Result<String, serde_json::Error> {
    Ok(match request {
        Request::Status => status::render(&serde_json::from_value(body)?),
        Request::Sync { .. } => sync::render(&serde_json::from_value(body)?),
        Request::Check { .. } => check::render(&serde_json::from_value(body)?),
        Request::Connectors { .. } => connectors::render(&serde_json::from_value(body)?),
        Request::Records { .. } => records::render(&serde_json::from_value(body)?),
        Request::Polls { .. } => polls::render(&serde_json::from_value(body)?),
        Request::Resume { .. } => resume::render(&serde_json::from_value(body)?),
    })
}
