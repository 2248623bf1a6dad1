//! `weir new`

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;

use super::output::answer;
use super::{CliError, Common};
use crate::authoring::new;
use crate::authoring::project::Language;

/// `weir new`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir new acme-orders\n\
    It makes the directory acme-orders with an example that builds and passes `weir test`; nothing else is touched.")]
pub struct New {
    /// The connector's name: a-z, 0-9 and hyphens
    #[arg(value_name = "NAME")]
    name: String,
    /// What to write it in
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value = "rust")]
    lang: Language,
    /// Where the directory is made
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

impl New {
    pub(super) fn run(self, common: &Common) -> Result<u8, CliError> {
        let made = new::make(&self.dir, &self.name, self.lang)?;
        let dir = made.dir.strip_prefix(".").unwrap_or(&made.dir);
        let mut text = format!("made {}\n", dir.display());
        for (file, what) in &made.files {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {file:<26} {what}");
        }
        let _ = writeln!(text, "next: cd {} && weir test", dir.display());
        let value = serde_json::json!({ "dir": dir, "name": self.name, "language": self.lang });
        answer(common, &value, &text, 0)
    }
}
