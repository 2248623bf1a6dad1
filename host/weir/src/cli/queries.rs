//! The verbs that only ask: `status`, `records`, `polls`, `resume`, `login`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use weir_rules::model::Class;

use super::ask::{Answerer, answer_here, ask, ask_or_open};
use super::output::{To, print};
use super::{CliError, Common, duration, setting};
use crate::control::{PollFilter, Request, Since, Unreachable};
use crate::poll::Outcome;
use crate::verbs::polls::CLASSES;

/// `weir status`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir status --all\n\
    Exit code 3: something needs a person; it stands at the top. Thresholds: [alert] in weir.toml.\n\
    The same as metrics: curl --unix-socket data/weir.sock http://weir/metrics")]
pub struct Status {
    /// List every unit, not only those that need a look and a few others
    #[arg(long)]
    all: bool,
}

/// `weir records`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir records oss/issues --limit 10\n\
    Without a UNIT: how many records of each unit are known.")]
pub struct Records {
    /// CONNECTION, CONNECTION/STREAM or CONNECTION/STREAM/PARTITION
    #[arg(value_name = "UNIT")]
    unit: Option<String>,
    /// At most this many of each unit
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Only records whose id comes after this one
    #[arg(long, value_name = "ID")]
    after: Option<String>,
}

/// `weir polls`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir polls oss --trouble --since 2h\n\
    Old polls that went well are folded into one row each hour; `host.poll_log` in weir.toml says how long rows are kept.")]
pub struct Polls {
    /// CONNECTION, CONNECTION/STREAM or CONNECTION/STREAM/PARTITION
    #[arg(value_name = "UNIT")]
    unit: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Only polls that ended so
    #[arg(long, value_name = "OUTCOME", value_parser = PossibleValuesParser::new(Outcome::ALL.map(Outcome::name)))]
    outcome: Option<String>,
    /// Only polls that ended in a fault of this class
    #[arg(long, value_name = "CLASS", value_parser = class())]
    class: Option<Class>,
    /// Only polls that did not bring everything: what went wrong, and when
    #[arg(long)]
    trouble: bool,
    /// Only polls that ended since then: a time ago (2h), a date, or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,
}

fn class() -> impl TypedValueParser<Value = Class> {
    PossibleValuesParser::new(CLASSES.map(Class::name)).map(|word| {
        CLASSES
            .into_iter()
            .find(|class| class.name() == word)
            .unwrap_or(Class::Unknown)
    })
}

fn since(text: &str) -> Result<Since, String> {
    if let Some(at) = crate::config::moment(text) {
        return Ok(Since::At(at));
    }
    duration::parse(text).map(Since::Ago).map_err(|_| {
        "write a time ago (30m, 2h, 1d), a date (2026-01-31) or an RFC 3339 time".to_owned()
    })
}

/// `weir gaps`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir gaps oss/issues\n\
    Gaps are filled by `weir run` and `weir sync` from spare quota, and listed for a week after they have been closed.\n\
    Exit code 3: there is one that is not closed, or that can't be filled and has not been accepted.")]
pub struct Gaps {
    /// CONNECTION, CONNECTION/STREAM or CONNECTION/STREAM/PARTITION; all without
    #[arg(value_name = "UNIT")]
    unit: Option<String>,
    /// Take note of the gaps that can't be filled: they stay listed and no longer call for a person
    #[arg(long)]
    accept: bool,
}

/// `weir login`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir login shop\n\
    Prints the vendor's sign-in page, and waits for what it sends to this machine. Without a browser here: --device, or \
    forward the port of auth.oauth2.redirect (ssh -L 8912:127.0.0.1:8912 HOST).\n\
    What the vendor gives is stored encrypted; then the connection is polled again.")]
pub struct Login {
    /// The connection's name in weir.toml
    #[arg(value_name = "CONNECTION")]
    connection: String,
    /// Sign in on another machine, by entering a code
    #[arg(long)]
    device: bool,
    /// How long you may take
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "10m")]
    wait: u64,
}

/// `weir resume`
#[derive(Debug, Args)]
#[command(after_help = "Examples: weir resume oss, weir resume sink.hook\n\
    Renew the credential first; a changed one counts as a sign-in by itself, in weir.toml at the next start, in a file at once.")]
pub struct Resume {
    /// The connection's name in weir.toml; a sink that needs a person is `sink.NAME`
    #[arg(value_name = "CONNECTION")]
    connection: String,
}

impl From<Status> for Request {
    fn from(status: Status) -> Request {
        Request::Status { all: status.all }
    }
}

impl From<Records> for Request {
    fn from(records: Records) -> Request {
        Request::Records {
            unit: records.unit,
            limit: records.limit,
            after: records.after,
        }
    }
}

impl From<Polls> for Request {
    fn from(polls: Polls) -> Request {
        Request::Polls(PollFilter {
            unit: polls.unit,
            limit: polls.limit,
            outcome: polls.outcome,
            class: polls.class,
            trouble: polls.trouble,
            since: polls.since,
        })
    }
}

impl From<Gaps> for Request {
    fn from(gaps: Gaps) -> Request {
        Request::Gaps {
            unit: gaps.unit,
            accept: gaps.accept,
        }
    }
}

impl From<Login> for Request {
    fn from(login: Login) -> Request {
        Request::Login {
            connection: login.connection,
            device: login.device,
            wait: login.wait,
        }
    }
}

impl From<Resume> for Request {
    fn from(resume: Resume) -> Request {
        Request::Resume {
            connection: resume.connection,
        }
    }
}

/// Asks, and prints the answer.
pub(super) async fn run(common: &Common, mut request: Request) -> Result<u8, CliError> {
    if let Request::Status { all } = &mut request {
        // A program reads numbers of its own choice.
        *all |= common.json;
    }
    // Whoever only asks a running host needs none of its secrets.
    let data = setting::load_host(common)?.data;
    let answered = match ask(&data, &request).await {
        Ok(reply) => Answerer::Answered(reply),
        Err(Unreachable::NotRunning) => ask_or_open(setting::load(common)?, &request).await?,
        Err(error) => return Err(error.into()),
    };
    let reply = match answered {
        Answerer::Answered(reply) => reply,
        Answerer::Opened(host) => {
            // What is known of connections is known once they have been made ready; records and polls are just read.
            if matches!(
                request,
                Request::Status { .. }
                    | Request::Resume { .. }
                    | Request::Trust { .. }
                    | Request::Login { .. }
                    | Request::Gaps { .. }
            ) {
                host.prepare(false).await?;
            }
            answer_here(&host, &request).await?
        }
    };
    print(common, &request, reply, To::Stdout)
}
