//! `weir store`: is the store's file sound, and how does one come back from a copy.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::decisions::confirmed;
use super::{CliError, Common, output, setting};
use crate::clock::{Clock as _, SystemClock};
use crate::store::{self, Checkup, RestorePlan, Restored, StoreState};
use crate::verbs::text::{bytes, count, moment};

/// `weir store`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir store check\n\
    No weir may run on the data directory meanwhile.")]
pub struct Store {
    #[command(subcommand)]
    what: StoreVerb,
}

#[derive(Debug, Subcommand)]
enum StoreVerb {
    /// Is the file sound? Looks at every page and changes nothing
    #[command(after_help = "Example: weir store check\n\
        Exit code 1: it is not, or there is none.")]
    Check,
    /// Put a copy in the store's place
    #[command(
        after_help = "Example: weir store restore --from data/copies/weir.000012.20310304T100000Z.redb\n\
        The file that is there is kept beside it. Without --from: the newest copy that is sound."
    )]
    Restore {
        /// This copy
        #[arg(long, value_name = "COPY")]
        from: Option<PathBuf>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

impl Store {
    pub(super) async fn run(self, common: &Common) -> Result<u8, CliError> {
        let host = setting::load_host(common)?;
        let (file, copies) = (host.store_file(), host.copies_dir());
        // Both read whole files.
        let done = match self.what {
            StoreVerb::Check => tokio::task::spawn_blocking(move || check(&file, &copies)).await,
            StoreVerb::Restore { from, yes } => {
                tokio::task::spawn_blocking(move || restore(&file, &copies, from.as_deref(), yes))
                    .await
            }
        };
        let Answer { value, text, exit } = done.map_err(|error| CliError::Io {
            what: "the store",
            source: std::io::Error::other(error),
        })??;
        output::answer(common, &value, &text, exit)
    }
}

struct Answer {
    value: serde_json::Value,
    text: String,
    exit: u8,
}

fn answer(value: &impl serde::Serialize, text: String, exit: u8) -> Result<Answer, CliError> {
    let value = serde_json::to_value(value).map_err(CliError::Foreign)?;
    Ok(Answer { value, text, exit })
}

fn check(file: &Path, copies: &Path) -> Result<Answer, CliError> {
    let found = store::check(file)?;
    let exit = u8::from(found.state != StoreState::Sound);
    let text = told(&found, copies);
    answer(&found, text, exit)
}

fn told(found: &Checkup, copies: &Path) -> String {
    let mut text = String::new();
    let file = found.path.display();
    let detail = found.detail.as_deref().unwrap_or_default();
    let way_out = format!(
        "`weir store restore` puts the newest sound copy of {} in its place.\n\
         Or run this weir on after you have moved the file away: it begins anew then, and every record is delivered again.",
        copies.display()
    );
    // Writing to a string can't fail.
    let _ = match found.state {
        StoreState::Sound => writeln!(text, "{file} is sound."),
        StoreState::Missing => writeln!(
            text,
            "There is no {file}: the next `weir run` makes one. If there should be one: {way_out}"
        ),
        StoreState::Damaged => writeln!(text, "{file} is damaged: {detail}.\n{way_out}"),
        // The text has its way out.
        StoreState::Newer => writeln!(text, "{detail}"),
    };
    if found.state == StoreState::Missing {
        return text;
    }
    let schema = match found.schema {
        Some(schema) => format!("schema {schema} (this weir writes {})", found.supported),
        None => "no schema to be read".to_owned(),
    };
    let _ = writeln!(text, "{}, {schema}.", bytes(found.bytes));
    if let Some(counts) = &found.counts {
        let _ = writeln!(
            text,
            "{}, {}, {} in the outbox, {}.",
            count(counts.units, "unit"),
            count(counts.records, "record"),
            counts.outbox,
            count(counts.polls, "poll")
        );
    }
    if found.state == StoreState::Sound && !found.checksums {
        let _ = writeln!(
            text,
            "Its rows read; its checksums were not looked at, for want of room for a scratch copy."
        );
    }
    text
}

fn restore(file: &Path, copies: &Path, from: Option<&Path>, yes: bool) -> Result<Answer, CliError> {
    let mut asked = Ok(true);
    let restored = store::restore(file, copies, from, SystemClock::new().wall(), |plan| {
        if !yes {
            asked = confirmed(&planned(file, plan));
        }
        matches!(asked, Ok(true))
    })?;
    asked?;
    match restored {
        Some(restored) => {
            let text = done(file, &restored);
            answer(&restored, text, 0)
        }
        None => answer(&serde_json::Value::Null, String::new(), 1),
    }
}

/// What coming back means, said before it is done.
fn planned(file: &Path, plan: &RestorePlan) -> String {
    let mut text = String::new();
    let counts = &plan.counts;
    let _ = writeln!(
        text,
        "{} becomes what it was at {}: {} ({}, {}, {} in the outbox).",
        file.display(),
        moment(plan.copy.at),
        plan.copy.path.display(),
        count(counts.units, "unit"),
        count(counts.records, "record"),
        counts.outbox,
    );
    for (path, why) in &plan.passed_over {
        let _ = writeln!(text, "{} is no good: {why}.", path.display());
    }
    text.push_str(
        "- Each unit is read again from where it was then. What was delivered since is delivered again, under the same \
         keys.\n",
    );
    let _ = writeln!(
        text,
        "- {} given keys since that are known; any other content gets a new key.",
        count(plan.given_since, "record"),
    );
    if !plan.journal_reaches_back || plan.unreadable > 0 {
        text.push_str(
            "- The journal of keys is not whole: a record that has changed more than once since may come under a key that \
             another content of it had. If your consumer goes by keys alone, let it forget those since then.\n",
        );
    }
    text.push_str(
        "- What its vendor no longer shows and no sink had taken yet is not read again.\n\
         - Tokens that were renewed since are those from before: `weir status` says who must sign in again.\n\
         The file that is there now is kept beside it.\n",
    );
    text
}

fn done(file: &Path, restored: &Restored) -> String {
    let mut text = format!(
        "{} is what it was at {}.\n",
        file.display(),
        moment(restored.plan.copy.at)
    );
    match &restored.kept {
        Some(kept) => {
            let _ = writeln!(text, "What was there lies in {}.", kept.display());
        }
        None => text.push_str("There was none before.\n"),
    }
    text.push_str("`weir run` goes on from there.\n");
    text
}
