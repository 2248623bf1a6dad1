//! `weir test`

use std::path::PathBuf;

use clap::Args;

use super::build::aside;
use super::output::answer;
use super::{CliError, Common};
use crate::authoring::build;
use crate::authoring::project::Project;
use crate::authoring::test;

/// `weir test`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir test acme-orders --update\n\
    It plays DIR/walks/*.json through the real component, without a network, and compares requests, records, cursors,\n\
    faults and limits with what was accepted. Exit code 1: something differs, or a rule for all connectors is broken.")]
pub struct Test {
    /// The connector's directory
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Accept what the connector gives now: write it into the files of the walks
    #[arg(long)]
    update: bool,
    /// Test this component as it is; nothing is built
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
}

impl Test {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        let project = match &self.component {
            Some(_) => None,
            None => Some(Project::open(&self.dir)?),
        };
        let report = aside(move || {
            let path = match (self.component, project) {
                (Some(path), _) => path,
                (None, Some(project)) => build::build(&project)?.path,
                // One of the two is always there.
                (None, None) => self.dir.clone(),
            };
            let connector = build::load(&*build::runtime()?, &path)?;
            Ok(test::run(&connector, &self.dir, self.update))
        })
        .await??;
        let exit = u8::from(!report.is_good());
        answer(common, &report, &report.text(), exit)
    }
}
