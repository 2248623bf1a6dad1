//! `weir check`

use clap::Args;

use super::ask::{Answerer, answer_here, ask_or_open};
use super::output::{To, print};
use super::{CliError, Common, setting};
use crate::control::Request;
use crate::verbs;

/// `weir check`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir check --offline\n\
    One line per check. For each connection it makes the first call of its first unit and stores nothing of it.")]
pub struct Check {
    /// Call no vendor
    #[arg(long)]
    offline: bool,
}

impl Check {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        let request = Request::Check {
            offline: self.offline,
            file: std::path::absolute(&common.config).unwrap_or_else(|_| common.config.clone()),
        };
        let config = match setting::load(common) {
            Ok(config) => config,
            Err(CliError::Config(errors)) => {
                return print(common, &request, verbs::broken_config(&errors), To::Stdout);
            }
            Err(error) => return Err(error),
        };
        let reply = match ask_or_open(config, &request).await? {
            Answerer::Answered(reply) => reply,
            Answerer::Opened(host) => {
                host.prepare(false).await?;
                answer_here(&host, &request).await?
            }
        };
        print(common, &request, reply, To::Stdout)
    }
}
