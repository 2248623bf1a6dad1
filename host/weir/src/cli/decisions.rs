//! The verbs by which a person decides: `review`, `reset`.
//!
//! What takes something away asks first: it says what is lost and waits for a yes on the terminal. Without a terminal it
//! does nothing unless `--yes` says so.

use std::io::{self, IsTerminal, Write as _};
use std::sync::Arc;

use clap::{Args, Subcommand};

use super::ask::{Answerer, answer_here, ask_or_open};
use super::output::{To, print};
use super::{CliError, Common, setting};
use crate::config::Config;
use crate::control::{Reply, Request};
use crate::host::Host;
use crate::stop;
use crate::verbs;

/// `weir review`
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: weir review\n         weir review show p12\n         weir review retry oss/issues\n\
    What waits: parked units, unknown answers, records that could not be taken, dead letters.\n\
    Ends with 3 while something waits."
)]
pub struct Review {
    #[command(subcommand)]
    what: Option<ReviewVerb>,
    #[command(flatten)]
    list: ReviewList,
}

#[derive(Debug, Args)]
struct ReviewList {
    /// CONNECTION, CONNECTION/STREAM or CONNECTION/STREAM/PARTITION; all without
    #[arg(value_name = "UNIT")]
    unit: Option<String>,
    /// What was given up too
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Subcommand)]
enum ReviewVerb {
    /// List what waits
    List(ReviewList),
    /// Show everything that is known of one thing, with the answer that caused it
    Show {
        /// As the list has it
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Poll a unit again, look at a record again, or let a dead letter go out again
    Retry {
        /// An ID of the list, or CONNECTION, CONNECTION/STREAM or CONNECTION/STREAM/PARTITION
        #[arg(value_name = "ID|UNIT")]
        what: String,
    },
    /// Give it up: it waits no longer, and what hangs on it is lost
    Drop {
        /// As the list has it
        #[arg(value_name = "ID")]
        id: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

impl Review {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        let request = match self.what {
            None => self.list.into(),
            Some(ReviewVerb::List(list)) => list.into(),
            Some(ReviewVerb::Show { id }) => Request::ReviewShow { id },
            Some(ReviewVerb::Retry { what }) => return retry(common, what).await,
            Some(ReviewVerb::Drop { id, yes }) => {
                let plan = Request::ReviewShow { id: id.clone() };
                return decide(common, plan, Request::ReviewDrop { id }, yes).await;
            }
        };
        let reply = match ask_or_open(setting::load(common)?, &request).await? {
            Answerer::Answered(reply) => reply,
            Answerer::Opened(host) => answer_here(&host, &request).await?,
        };
        print(common, &request, reply, To::Stdout)
    }
}

impl From<ReviewList> for Request {
    fn from(list: ReviewList) -> Request {
        Request::Review {
            unit: list.unit,
            all: list.all,
        }
    }
}

/// Without a host that runs, one is run until the units have been polled.
async fn retry(common: &Common, what: String) -> Result<u8, CliError> {
    let request = Request::ReviewRetry { what };
    let reply = match ask_or_open(setting::load(common)?, &request).await? {
        Answerer::Answered(reply) => reply,
        Answerer::Opened(host) => poll_here(host, &request).await?,
    };
    print(common, &request, reply, To::Stdout)
}

async fn poll_here(host: Arc<Host>, request: &Request) -> Result<Reply, CliError> {
    stop::on_signals(host.stop.clone()).map_err(|source| CliError::Io {
        what: "signals",
        source,
    })?;
    host.prepare(false).await?;
    let scheduler = tokio::spawn({
        let host = host.clone();
        async move { host.run().await }
    });
    let reply = answer_here(&host, request).await;
    host.stop.stop();
    // It has nothing to hand over; a panic of it is in the log.
    let _ = scheduler.await;
    reply
}

/// `weir reset`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir reset oss/issues\n\
    The unit is read again from its start. What is known of its records stays, so nothing is delivered twice;\n\
    with --records all of them are delivered anew, each as an insert under its next revision.")]
pub struct Reset {
    /// CONNECTION, CONNECTION/STREAM or CONNECTION/STREAM/PARTITION
    #[arg(value_name = "UNIT")]
    unit: String,
    /// Forget what is known of the records too
    #[arg(long)]
    records: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

impl Reset {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        let request = |plan| Request::Reset {
            unit: self.unit.clone(),
            records: self.records,
            plan,
        };
        decide(common, request(true), request(false), self.yes).await
    }
}

/// Says what would happen, asks, and does it.
async fn decide(common: &Common, plan: Request, act: Request, yes: bool) -> Result<u8, CliError> {
    let config = setting::load(common)?;
    let (planned, host) = match ask_or_open(config.clone(), &plan).await? {
        Answerer::Answered(reply) => (reply, None),
        Answerer::Opened(host) => {
            host.prepare(false).await?;
            (answer_here(&host, &plan).await?, Some(host))
        }
    };
    if !yes {
        let text = verbs::render(&plan, planned.body).map_err(CliError::Foreign)?;
        if !confirmed(&text)? {
            return Ok(1);
        }
    }
    let reply = match host {
        Some(host) => answer_here(&host, &act).await?,
        None => asked_again(config, &act).await?,
    };
    print(common, &act, reply, To::Stdout)
}

/// The host that ran may have ended while a person thought about it.
async fn asked_again(config: Config, act: &Request) -> Result<Reply, CliError> {
    match ask_or_open(config, act).await? {
        Answerer::Answered(reply) => Ok(reply),
        Answerer::Opened(host) => {
            host.prepare(false).await?;
            answer_here(&host, act).await
        }
    }
}

pub(super) fn confirmed(text: &str) -> Result<bool, CliError> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliError::Unconfirmed(text.trim_end().to_owned()));
    }
    let failed = |source| CliError::Io {
        what: "the question could not be asked",
        source,
    };
    let mut err = io::stderr().lock();
    write!(err, "{text}Go on? [y/N] ")
        .and_then(|()| err.flush())
        .map_err(failed)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(failed)?;
    let yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !yes {
        writeln!(err, "Nothing was changed.").map_err(failed)?;
    }
    Ok(yes)
}
