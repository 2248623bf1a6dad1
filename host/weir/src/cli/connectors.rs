//! `weir connectors`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use weir_runtime::{Limits, Runtime, RuntimeConfig};

use super::output::{To, print};
use super::{CliError, Common, setting};
use crate::catalogue::Catalogue;
use crate::control::{self, Request, Unreachable};
use crate::host::HostError;
use crate::trust::Trust;
use crate::verbs;

/// `weir connectors`
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: weir connectors github\n\
    `weir connectors verify` compares the files with those that are trusted.\n\
    It needs no weir.toml when --connectors names the directory, or when there is one named `connectors` here."
)]
pub struct Connectors {
    /// Only this one, with its streams, its config and its limits
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Read this directory, whatever weir.toml says
    #[arg(long, value_name = "DIR")]
    connectors: Option<PathBuf>,
    #[command(subcommand)]
    action: Option<Action>,
}

/// `weir connectors ACTION`
#[derive(Debug, Subcommand)]
enum Action {
    /// Compare the files with those that are trusted; run none of them
    #[command(after_help = "Example: weir connectors verify\n\
        Exit code 1: a trusted file has changed or is missing.")]
    Verify,
}

impl Connectors {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        if let Some(Action::Verify) = self.action {
            let host = setting::load_host(common)?;
            let reply = verbs::trust::verify(&host.connectors, &Trust::file_in(&host.data))?;
            return print(common, &Request::Verify, reply, To::Stdout);
        }
        let request = Request::Connectors {
            name: self.name.clone(),
        };
        let reply = match (self.connectors, setting::missing(common)) {
            (Some(dir), _) => read(&dir, None, BTreeMap::new(), self.name).await?,
            (None, true) => read(Path::new("connectors"), None, BTreeMap::new(), self.name).await?,
            (None, false) => {
                let config = setting::load(common)?;
                match control::ask(&config.host.data, &request, |_| ()).await {
                    Ok(reply) => reply,
                    Err(Unreachable::NotRunning) => {
                        // The compiled files are shared with the host; the store is not needed.
                        let cache = config.host.data.join("compiled");
                        read(
                            &config.host.connectors,
                            Some(cache),
                            config.connectors,
                            self.name,
                        )
                        .await?
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        print(common, &request, reply, To::Stdout)
    }
}

async fn read(
    dir: &Path,
    cache_dir: Option<PathBuf>,
    limits_of: BTreeMap<String, Limits>,
    name: Option<String>,
) -> Result<control::Reply, CliError> {
    let runtime = Runtime::new(RuntimeConfig {
        cache_dir,
        workers: 1,
        limits: Limits::default(),
        limits_of,
        ..RuntimeConfig::default()
    })
    .map_err(HostError::from)?;
    let dir = dir.to_owned();
    let opened = tokio::task::spawn_blocking(move || Catalogue::open(&dir, runtime)).await;
    let catalogue = opened
        .map_err(|error| CliError::Io {
            what: "reading the connectors",
            source: std::io::Error::other(error),
        })?
        .map_err(HostError::from)?;
    Ok(verbs::connectors::answer(&catalogue, name.as_deref())?)
}
