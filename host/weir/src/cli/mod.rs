//! The command line: `weir VERB`.
//!
//! Promises: data goes to stdout and nothing else does (the answer of a verb is its data); logs, progress and errors
//! go to stderr. Exit codes: 0 done; 1 failed, a broken configuration included; 2 wrong use of the command line;
//! 3 done, but something needs a person. A reader that closes its end of a pipe ends a verb quietly.
//!
//! A verb asks the host that runs on the configuration's data directory; where none does, it opens one for itself
//! and answers its own question. What a person sees does not depend on it.
//!
//! | file | job |
//! | --- | --- |
//! | `run` | `weir run`: the host itself |
//! | `sync` | `weir sync`: a host that lives as long as the sync |
//! | `check`, `connectors` | what needs no store, or no sound configuration |
//! | `queries` | the verbs that only ask: `status`, `records`, `polls`, `resume`, `login` |
//! | `decisions` | `review` and `reset`, which ask before they take something away |
//! | `store` | `weir store`: the store's file while no host has it |
//! | `trust` | `weir trust`: a connector's new file may do more |
//! | `simulate` | `weir simulate`: no host at all, but one in a bottle |
//! | `new`, `build`, `test`, `dev` | for authors of connectors; no host, and no configuration |
//! | `record` | writes down real answers for them |
//! | `ask` | asks a running host, or opens one |
//! | `setting` | the configuration, and how to begin without one |
//! | `log`, `output` | stderr and stdout |

mod ask;
mod backfill;
mod build;
mod check;
mod connectors;
mod decisions;
mod dev;
mod duration;
mod log;
mod new;
mod output;
mod queries;
mod record;
mod run;
mod setting;
mod simulate;
mod store;
mod sync;
mod test;
mod trust;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::authoring::build::MakeError;
use crate::authoring::new::NewError;
use crate::authoring::project::ProjectError;
use crate::authoring::walk::file::WalkError;
use crate::config::ConfigErrors;
use crate::control::Unreachable;
use crate::deliveries::DeliveriesError;
use crate::host::HostError;
use crate::simulate::{MachineError, RunError};
use crate::store::StoreError;
use crate::verbs::Failure;

/// Polls other people's rate-limited APIs and never loses a record.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong use, 3 done but something needs a person.\n\
                  Begin with `weir connectors`, then write weir.toml, then `weir check` and `weir run`."
)]
pub struct Cli {
    /// What holds for every verb.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What holds for every verb.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// The configuration
    #[arg(long, global = true, value_name = "FILE", default_value = "weir.toml")]
    pub config: PathBuf,
    /// Print the answer as one JSON object
    #[arg(long, global = true)]
    pub json: bool,
    /// How log lines look, on stderr
    #[arg(long, global = true, value_name = "FORMAT", value_parser = log::Format::parser(), default_value = "text")]
    pub log_format: log::Format,
    /// off, error, warn, info, debug, trace; or by part: warn,weir::http=debug [default: info for run, else warn]
    #[arg(long, global = true, value_name = "LEVEL", value_parser = log::Level::parse)]
    pub log_level: Option<log::Level>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Poll every connection when it is due, until stopped
    Run(run::Run),
    /// Poll now, deliver what is new, and end
    Sync(sync::Sync),
    /// Try the configuration, the connectors and the credentials
    Check(check::Check),
    /// List the connectors, or show one in full
    Connectors(connectors::Connectors),
    /// Show how everything is; what needs a person first
    Status(queries::Status),
    /// List the records that are known of a unit
    Records(queries::Records),
    /// Show the log of polls, newest first
    Polls(queries::Polls),
    /// List the holes in the data that are not closed
    Gaps(queries::Gaps),
    /// Sign in for a connection whose tokens expire (OAuth 2)
    Login(queries::Login),
    /// Read a part of the past again, from spare quota
    Backfill(backfill::Backfill),
    /// Poll a connection again after a sign-in, and its parked units
    Resume(queries::Resume),
    /// Let a connector's new file do more than the one before
    Trust(trust::Trust),
    /// What waits for a person's look: list, show, retry, drop
    Review(decisions::Review),
    /// Read a unit again from its start
    Reset(decisions::Reset),
    /// Look after the store's file: check it, or bring back a copy
    Store(store::Store),
    /// Build and test a connector at every save, and show what has changed
    Dev(dev::Dev),
    /// Write real answers down as walks for a connector's tests
    Record(record::Record),
    /// Run a configuration against simulated vendors, days in seconds
    Simulate(simulate::Simulate),
    /// Begin a connector: a directory with a working example
    New(new::New),
    /// Make a component of a connector's sources
    Build(build::Build),
    /// Play a connector's recorded walks, and try it with answers that no vendor should give
    Test(test::Test),
}

/// Why a verb failed. Its text is for a person, one problem a line.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// There is none yet.
    #[error("{0}")]
    Begin(String),
    /// No host could be opened.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Another command holds the data directory.
    #[error(
        "another weir is at work on {} and answers no questions (a `weir sync`, or a `weir run` that is just starting \
         or ending): try again when it has ended; with `weir run` in its place, every command works beside it",
        .0.display()
    )]
    Busy(PathBuf),
    /// A host runs, and this verb is one.
    #[error(
        "weir already runs on {}: `weir status` shows it; a second one needs a data directory of its own (host.data)",
        .0.display()
    )]
    Runs(PathBuf),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The running host.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The verb itself.
    #[error(transparent)]
    Verb(#[from] Failure),
    /// A sink that can't be set up.
    #[error(transparent)]
    Sinks(#[from] DeliveriesError),
    /// Something would be taken away, and nobody could be asked.
    #[error("{0}\n\nthere is no terminal to ask on, so nothing was changed: add --yes to go on")]
    Unconfirmed(String),
    /// The answer came from another version.
    #[error(
        "the running weir gave an answer that this one does not understand ({0}): are both of one version?"
    )]
    Foreign(#[source] serde_json::Error),
    /// No directory for a new connector.
    #[error(transparent)]
    New(#[from] NewError),
    /// A directory that holds no connector.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// No component.
    #[error(transparent)]
    Make(#[from] MakeError),
    /// A recorded walk.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// A simulation that can't be set up.
    #[error("{0}")]
    Simulation(String),
    /// Output, signals, sockets.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl From<MachineError> for CliError {
    fn from(error: MachineError) -> Self {
        CliError::Simulation(error.to_string())
    }
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        CliError::Simulation(error.to_string())
    }
}

impl CliError {
    /// 1 failed, 2 wrong use.
    fn exit(&self) -> u8 {
        match self {
            CliError::Verb(failure) => failure.exit(),
            CliError::Unreachable(Unreachable::Failed(failed)) => failed.exit,
            CliError::Unconfirmed(_)
            | CliError::New(NewError::Name { .. } | NewError::Exists(_)) => 2,
            _ => 1,
        }
    }

    /// Whoever reads our output has closed it; there is nobody left to tell.
    fn is_closed_pipe(&self) -> bool {
        matches!(self, CliError::Io { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

/// Does what the command line says.
pub async fn main(cli: Cli) -> ExitCode {
    let Cli { common, verb } = cli;
    log::start(
        common.log_format,
        common.log_level.clone(),
        verb.default_level(),
    );
    let outcome = match verb {
        Verb::Run(run) => run.run(&common).await,
        Verb::Sync(sync) => sync.run(&common).await,
        Verb::Check(check) => check.run(&common).await,
        Verb::Connectors(connectors) => connectors.run(&common).await,
        Verb::Status(status) => queries::run(&common, status.into()).await,
        Verb::Records(records) => queries::run(&common, records.into()).await,
        Verb::Polls(polls) => queries::run(&common, polls.into()).await,
        Verb::Gaps(gaps) => queries::run(&common, gaps.into()).await,
        Verb::Login(login) => queries::run(&common, login.into()).await,
        Verb::Simulate(simulate) => simulate.run(&common).await,
        Verb::Dev(dev) => dev.run(&common).await,
        Verb::Record(record) => record.run(&common).await,
        Verb::New(new) => new.run(&common),
        Verb::Build(build) => build.run(&common).await,
        Verb::Test(test) => test.run(&common).await,
        Verb::Backfill(backfill) => backfill.run(&common).await,
        Verb::Resume(resume) => queries::run(&common, resume.into()).await,
        Verb::Trust(trust) => queries::run(&common, trust.into()).await,
        Verb::Review(review) => review.run(&common).await,
        Verb::Reset(reset) => reset.run(&common).await,
        Verb::Store(store) => store.run(&common).await,
    };
    match outcome {
        Ok(exit) => ExitCode::from(exit),
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(error.exit())
        }
    }
}

impl Verb {
    /// What is logged unless the user says otherwise. A verb that prints what is wrong does not log it besides.
    fn default_level(&self) -> log::Level {
        match self {
            // What goes wrong there is meant to; what must not is the answer.
            Verb::Simulate(_) => log::Level::off(),
            Verb::Run(_) => log::Level::plain(tracing::Level::INFO),
            Verb::Sync(_) | Verb::Backfill(_) => {
                log::Level::warnings_except(&["weir::host", "weir::poll", "weir::sign_in"])
            }
            _ => log::Level::warnings_except(&[
                "weir::host",
                "weir::poll",
                "weir::sign_in",
                "weir::catalogue",
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_has_an_example() {
        for verb in Cli::command().get_subcommands() {
            let help = verb
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.contains(&format!("weir {}", verb.get_name())),
                "{}",
                verb.get_name()
            );
        }
    }

    #[test]
    fn common_flags_go_before_and_after_the_verb() {
        for line in [
            "weir --json --config a.toml status",
            "weir status --json --config a.toml",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert!(cli.common.json);
            assert_eq!(cli.common.config, PathBuf::from("a.toml"));
        }
    }

    #[test]
    fn wrong_use_is_told_apart() {
        for line in [
            "weir",
            "weir stats",
            "weir resume",
            "weir login",
            "weir records --limit many",
            "weir sync --wait 1minute",
            "weir --log-level loud status",
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
