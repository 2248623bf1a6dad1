//! `weir backfill`

use clap::Args;
use weir_rules::model::Timestamp;

use super::ask::{Answerer, ask_or_open};
use super::output::{To, print};
use super::sync::here;
use super::{CliError, Common, setting};
use crate::control::Request;
use crate::deliveries::writes_to_stdout;

/// `weir backfill`
#[derive(Debug, Args)]
#[command(
    after_help = "Example: weir backfill oss/issues --from 2026-01-01 --to 2026-02-01\n\
    A running weir reads it in its spare time, a fifth of the quota is left to the other polls; `weir gaps` shows how far it \
    is. Without a running weir it is read now. What has not changed is not delivered again.\n\
    A stream without windows is read again from its beginning, whatever the dates.\n\
    Exit code 1: something was not read or not delivered. 3: a part of it can't be read any more."
)]
pub struct Backfill {
    /// CONNECTION/STREAM or CONNECTION/STREAM/PARTITION
    #[arg(value_name = "UNIT")]
    unit: String,
    /// The first moment of it: a date (2026-01-31) or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Timestamp,
    /// The first moment after it [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Timestamp>,
    /// Beside a running weir: wait until it has been read
    #[arg(long)]
    wait: bool,
}

fn moment(text: &str) -> Result<Timestamp, String> {
    crate::config::moment(text)
        .ok_or_else(|| "write a date (2026-01-31) or an RFC 3339 time".to_owned())
}

impl Backfill {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        let request = Request::Backfill {
            unit: self.unit,
            since: self.from,
            until: self.to,
            wait: self.wait,
        };
        let config = setting::load(common)?;
        let stdout_has_records = writes_to_stdout(&config);
        match ask_or_open(config, &request).await? {
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
