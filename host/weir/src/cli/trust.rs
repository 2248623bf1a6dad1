//! `weir trust`

use clap::Args;

use crate::control::Request;

/// `weir trust`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir trust github\n\
    What is trusted stands in connectors.lock in the data directory; `weir connectors verify` compares the files with it.")]
pub struct Trust {
    /// The connector whose present file is to be trusted
    #[arg(value_name = "CONNECTOR")]
    connector: String,
}

impl From<Trust> for Request {
    fn from(trust: Trust) -> Request {
        Request::Trust {
            connector: trust.connector,
        }
    }
}
