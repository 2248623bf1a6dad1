//! Asks the host that runs on the data directory, or opens one for the time of one question.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::CliError;
use super::output::Progress;
use crate::config::Config;
use crate::control::{self, Reply, Request, Said, Unreachable};
use crate::host::{Host, HostError};
use crate::stop::Stop;
use crate::store::StoreError;
use crate::verbs::{self, Caller};

/// How long to try again while something holds the store and does not answer: another verb is done by then, and a
/// host that is just starting listens by then.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

/// Who will answer.
pub(super) enum Answerer {
    /// The host that runs here has answered.
    Answered(Reply),
    /// None runs here; this one was opened for the question.
    Opened(Arc<Host>),
}

/// Asks the running host; where there is none, opens one.
pub(super) async fn ask_or_open(config: Config, request: &Request) -> Result<Answerer, CliError> {
    let data = config.host.data.clone();
    let began = Instant::now();
    loop {
        match ask(&data, request).await {
            Ok(reply) => return Ok(Answerer::Answered(reply)),
            Err(Unreachable::NotRunning) => {}
            Err(error) => return Err(error.into()),
        }
        match Host::open(config.clone(), Stop::default()) {
            Ok(host) => return Ok(Answerer::Opened(host)),
            Err(HostError::Store(StoreError::InUse { .. })) if began.elapsed() < PATIENCE => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(HostError::Store(StoreError::InUse { .. })) => return Err(CliError::Busy(data)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Asks the host that runs.
pub(super) async fn ask(data: &Path, request: &Request) -> Result<Reply, Unreachable> {
    let mut progress = Progress::new();
    let reply = control::ask(data, request, |said| progress.show(&said)).await;
    progress.end();
    reply
}

/// Opens the host of this process. Another one that runs here is an error; a verb at work is waited for.
pub(super) async fn open(config: Config, stop: Stop) -> Result<Arc<Host>, CliError> {
    let data = config.host.data.clone();
    let began = Instant::now();
    loop {
        match Host::open(config.clone(), stop.clone()) {
            Ok(host) => return Ok(host),
            Err(HostError::Store(StoreError::InUse { .. })) => {}
            Err(error) => return Err(error.into()),
        }
        if control::is_served(&data).await {
            return Err(CliError::Runs(data));
        }
        if began.elapsed() >= PATIENCE {
            return Err(CliError::Busy(data));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Answers a request on a host of this process, and shows what it says meanwhile.
pub(super) async fn answer_here(host: &Arc<Host>, request: &Request) -> Result<Reply, CliError> {
    let (progress, mut said) = mpsc::channel::<Said>(16);
    let caller = Caller {
        running: false,
        progress,
    };
    let shown = async {
        let mut progress = Progress::new();
        while let Some(said) = said.recv().await {
            progress.show(&said);
        }
        progress.end();
    };
    let (reply, ()) = tokio::join!(verbs::answer(host, request.clone(), caller), shown);
    Ok(reply?)
}
