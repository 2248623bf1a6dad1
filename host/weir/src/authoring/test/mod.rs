//! Is every recorded walk as it was accepted, and does what must hold of any connector hold of this one?
//!
//! | file | job |
//! | --- | --- |
//! | `walks` | plays the files, compares, accepts |
//! | `rules` | streams, ids, cursors, the schema gate |
//! | `hostile` | answers that no vendor should give and some do |

mod hostile;
mod rules;
mod walks;

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use weir_runtime::Connector;

use super::project;
use super::walk::file::{self, WalkError};

/// What a test found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The connector.
    pub connector: String,
    /// Its version.
    pub version: String,
    /// The walks, then what must hold of any connector.
    pub results: Vec<Outcome>,
}

/// What came of one walk or one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// `walk two_pages`, `ids`.
    pub what: String,
    /// How it went.
    pub verdict: Verdict,
    /// What was seen, or what is wrong: a line each.
    pub detail: Vec<String>,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// The file was written anew.
    Accepted,
    /// Not as it should be.
    Failed,
}

/// Tests a connector with the walks in its directory; `update` accepts what it gives now.
///
/// # Errors
/// The directory of the walks cannot be read.
pub fn run(connector: &Connector, dir: &Path, update: bool) -> Result<Report, WalkError> {
    let mut results = Vec::new();
    let mut walked = Vec::new();
    for (name, path) in file::all(&project::walks(dir))? {
        let (outcome, walk) = walks::run(connector, &name, &path, dir, update);
        results.push(outcome);
        walked.extend(walk);
    }
    let files = results.len();
    results.push(rules::some_walks(files));
    if files > 0 {
        results.push(rules::streams(&walked));
        results.push(rules::ids(&walked));
        results.push(rules::cursors(connector, &walked));
        results.push(hostile::run(connector, &walked));
    }
    results.retain(|outcome| !outcome.detail.is_empty() || outcome.verdict != Verdict::Ok);
    let about = connector.descriptor();
    Ok(Report {
        connector: about.name.clone(),
        version: about.version.clone(),
        results,
    })
}

impl Report {
    /// Is everything as it should be?
    pub fn is_good(&self) -> bool {
        self.results
            .iter()
            .all(|outcome| outcome.verdict != Verdict::Failed)
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = format!("{} {}\n", self.connector, self.version);
        let mut failed = 0;
        let mut differs = false;
        for outcome in &self.results {
            let verdict = match outcome.verdict {
                Verdict::Ok => "ok",
                Verdict::Accepted => "accepted",
                Verdict::Failed => "FAILED",
            };
            let mut lines = outcome.detail.iter();
            // Writing to a string cannot fail.
            let first = if outcome.verdict == Verdict::Failed {
                failed += 1;
                ""
            } else {
                lines.next().map_or("", String::as_str)
            };
            let _ = writeln!(out, "  {verdict:<9} {:<24} {first}", outcome.what);
            for line in lines {
                differs |= line.contains("--update");
                let _ = writeln!(out, "            {line}");
            }
        }
        let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
        let mut out = lines.join("\n");
        out.push('\n');
        if failed > 0 {
            let _ = writeln!(out, "{failed} of {} failed", self.results.len());
            if differs {
                out.push_str("`weir test --update` accepts what the connector gives now\n");
            }
        }
        out
    }
}

impl Outcome {
    fn ok(what: impl Into<String>, seen: impl Into<String>) -> Outcome {
        Outcome {
            what: what.into(),
            verdict: Verdict::Ok,
            detail: vec![seen.into()],
        }
    }

    /// Failed if there is anything to say.
    fn of(what: &str, wrong: Vec<String>, seen: impl Into<String>) -> Outcome {
        if wrong.is_empty() {
            return Outcome::ok(what, seen);
        }
        Outcome {
            what: what.to_owned(),
            verdict: Verdict::Failed,
            detail: wrong,
        }
    }
}
