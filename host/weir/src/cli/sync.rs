//! `weir sync`

use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::ask::{Answerer, answer_here, ask_or_open};
use super::output::{To, print};
use super::{CliError, Common, duration, setting};
use crate::control::{Reply, Request};
use crate::copies;
use crate::deliveries::{Deliveries, writes_to_stdout};
use crate::host::{DRAIN, Host};
use crate::stop;

/// What a sink that takes nothing gets at the end.
const LAST_TRY: Duration = Duration::from_millis(500);

/// `weir sync`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir sync oss/issues --wait 5m\n\
    The report goes to stdout; where a sink writes records there, to stderr, with --json too.\n\
    Exit code 1: something was not read or not delivered. 3: something needs a person.")]
pub struct Sync {
    /// CONNECTION, CONNECTION/STREAM or CONNECTION/STREAM/PARTITION [default: everything]
    #[arg(value_name = "UNIT")]
    unit: Option<String>,
    /// Read everything again, not only what is new; what has not changed is not delivered again
    #[arg(long)]
    full: bool,
    /// How long a unit may wait for its vendor before anything more arrives; the rest is left to later
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration::parse)]
    wait: u64,
}

impl Sync {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        let request = Request::Sync {
            unit: self.unit,
            full: self.full,
            wait: self.wait,
        };
        let config = setting::load(common)?;
        setting::warn(&config);
        let stdout_has_records = writes_to_stdout(&config);
        match ask_or_open(config, &request).await? {
            // The records go to the running host's stdout, not to ours.
            Answerer::Answered(reply) => print(common, &request, reply, To::Stdout),
            Answerer::Opened(host) => {
                let reply = here(host, &request).await?;
                let to = if stdout_has_records {
                    To::Stderr
                } else {
                    To::Stdout
                };
                print(common, &request, reply, to)
            }
        }
    }
}

/// Answers on a host that lives as long as the question, and delivers.
pub(super) async fn here(host: Arc<Host>, request: &Request) -> Result<Reply, CliError> {
    stop::on_signals(host.stop.clone()).map_err(|source| CliError::Io {
        what: "signals",
        source,
    })?;
    let deliveries = Deliveries::start(&host).await?;
    host.prepare(false).await?;
    let scheduler = tokio::spawn({
        let host = host.clone();
        async move { host.run().await }
    });
    let reply = answer_here(&host, request).await;
    copies::make_if_due(&host).await;
    host.stop.stop();
    // It has nothing to hand over; a panic of it is in the log.
    let _ = scheduler.await;
    // The sync has waited for its sinks; one that takes nothing is not waited for again.
    let in_vain = host.sinks.all().values().any(|sink| sink.failing.is_some());
    deliveries
        .finish(&host, if in_vain { LAST_TRY } else { DRAIN })
        .await;
    reply
}
