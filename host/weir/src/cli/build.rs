//! `weir build`

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::output::answer;
use super::{CliError, Common};
use crate::authoring::build::{self, MakeError};
use crate::authoring::count;
use crate::authoring::project::Project;

/// `weir build`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir build acme-orders\n\
    The component is DIR/dist/NAME.wasm; it has been loaded once, as a host would. What the compiler says goes to stderr.")]
pub struct Build {
    /// The connector's directory
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

/// What came out.
#[derive(Debug, Serialize)]
struct Built {
    component: PathBuf,
    bytes: usize,
    changed: bool,
    connector: String,
    version: String,
    contract: &'static str,
    streams: usize,
}

impl Build {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        let project = Project::open(&self.dir)?;
        let built = aside(move || {
            let placed = build::build(&project)?;
            let connector = build::load(&*build::runtime()?, &placed.path)?;
            let about = connector.descriptor();
            Ok(Built {
                bytes: placed.bytes,
                changed: placed.changed,
                connector: about.name.clone(),
                version: about.version.clone(),
                contract: connector.contract_version(),
                streams: about.streams.len(),
                component: placed.path,
            })
        })
        .await?;
        let text = format!(
            "{}  {} KiB{}\n{} {}, {}, for weir:connector {}\n",
            built.component.display(),
            built.bytes.div_ceil(1024),
            if built.changed { "" } else { "  (unchanged)" },
            built.connector,
            built.version,
            count(built.streams, "stream"),
            built.contract,
        );
        answer(common, &built, &text, 0)
    }
}

/// Compiling and calling components is no work for the threads of the network.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MakeError> + Send + 'static,
) -> Result<T, CliError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(CliError::Io {
            what: "the work broke down",
            source: std::io::Error::other(error),
        }),
    }
}
