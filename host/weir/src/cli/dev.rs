//! `weir dev`

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use clap::Args;
use notify::{EventKind, RecursiveMode, Watcher};
use weir_runtime::Runtime;

use super::build::aside;
use super::{CliError, Common};
use crate::authoring::build::{self, MakeError};
use crate::authoring::count;
use crate::authoring::project::{Project, ProjectError};
use crate::authoring::test::{self, Outcome, Report};

/// A save is several writes: wait for the last of them.
const DEBOUNCE: Duration = Duration::from_millis(150);

/// What builds write, and what no build reads.
const PASSED_OVER: [&str; 6] = [
    "target",
    "dist",
    "node_modules",
    ".git",
    ".venv",
    "__pycache__",
];

/// `weir dev`
#[derive(Debug, Args)]
#[command(after_help = "Example: weir dev acme-orders\n\
    At every save it builds the connector, plays its walks, and shows what is not as it was the time before. Ctrl-C ends it.")]
pub struct Dev {
    /// The connector's directory
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Watch and test this component; nothing is built
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
}

/// What the last round found, by walk and rule.
type Found = BTreeMap<String, Outcome>;

impl Dev {
    pub(super) async fn run(self, _common: &Common) -> Result<u8, CliError> {
        if self.component.is_none() {
            Project::open(&self.dir)?;
        }
        match aside(move || self.watch()).await? {
            Ok(()) => Ok(0),
            Err(source) => Err(CliError::Io {
                what: "watching the connector",
                source,
            }),
        }
    }

    fn watch(self) -> Result<io::Result<()>, MakeError> {
        let runtime = build::runtime()?;
        let (said, heard) = channel();
        let dir = std::path::absolute(&self.dir).unwrap_or_else(|_| self.dir.clone());
        let inside = dir.clone();
        let component = self
            .component
            .as_deref()
            .map(|file| std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
        let own = component.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let concerns = event.is_ok_and(|event| {
                !matches!(event.kind, EventKind::Access(_))
                    && event
                        .paths
                        .iter()
                        .any(|path| own.as_deref() == Some(path) || is_source(&inside, path))
            });
            if concerns {
                // Nobody listens any more when the command ends.
                let _ = said.send(());
            }
        });
        let watched = watcher.and_then(|mut watcher| {
            watcher.watch(&dir, RecursiveMode::Recursive)?;
            if let Some(folder) = component.as_deref().and_then(Path::parent) {
                watcher.watch(folder, RecursiveMode::NonRecursive)?;
            }
            Ok(watcher)
        });
        let _watcher = match watched {
            Ok(watcher) => watcher,
            Err(error) => return Ok(Err(io::Error::other(error))),
        };
        let mut before = None;
        loop {
            let (text, found) = match self.round(&runtime) {
                Ok(report) => told(&report, before.as_ref()),
                // The last result stays what the next one is compared with.
                Err(why) => (format!("{why}\n"), before),
            };
            before = found;
            if let Err(error) = show(&text) {
                let gone = error.kind() == io::ErrorKind::BrokenPipe;
                return Ok(if gone { Ok(()) } else { Err(error) });
            }
            if !changed(&heard) {
                return Ok(Ok(()));
            }
        }
    }

    /// Builds and tests once; what stands in the way is a text.
    fn round(&self, runtime: &Arc<Runtime>) -> Result<Report, String> {
        let path = match &self.component {
            Some(path) => path.clone(),
            None => {
                let project =
                    Project::open(&self.dir).map_err(|error: ProjectError| error.to_string())?;
                build::build(&project)
                    .map_err(|error| error.to_string())?
                    .path
            }
        };
        let connector = build::load(runtime, &path).map_err(|error| error.to_string())?;
        test::run(&connector, &self.dir, false).map_err(|error| error.to_string())
    }
}

/// Waits for a change, and for the end of it. False: nobody watches any more.
fn changed(heard: &Receiver<()>) -> bool {
    if heard.recv().is_err() {
        return false;
    }
    loop {
        match heard.recv_timeout(DEBOUNCE) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

fn is_source(dir: &Path, path: &Path) -> bool {
    path.strip_prefix(dir).is_ok_and(|inside| {
        !inside.components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            // Editors' own files: .main.rs.swp, main.rs~, #main.rs#.
            PASSED_OVER.contains(&part.as_ref())
                || part.ends_with(['~', '#'])
                || part.ends_with(".swp")
        })
    })
}

/// The first time all of it, then what has changed; and what the next round is compared with.
fn told(report: &Report, before: Option<&Found>) -> (String, Option<Found>) {
    let found: Found = report
        .results
        .iter()
        .map(|outcome| (outcome.what.clone(), outcome.clone()))
        .collect();
    let Some(before) = before else {
        return (report.text(), Some(found));
    };
    let changed: Vec<Outcome> = report
        .results
        .iter()
        .filter(|outcome| before.get(&outcome.what) != Some(outcome))
        .cloned()
        .collect();
    let gone = before.keys().filter(|what| !found.contains_key(*what));
    let gone: Vec<String> = gone.map(|what| format!("  gone      {what}\n")).collect();
    let text = if changed.is_empty() && gone.is_empty() {
        let state = if report.is_good() {
            "all good"
        } else {
            "not good"
        };
        format!(
            "nothing changed: {}, {state}\n",
            count(found.len(), "result")
        )
    } else {
        let part = Report {
            results: changed,
            connector: report.connector.clone(),
            version: report.version.clone(),
        };
        part.text() + &gone.concat()
    };
    (text, Some(found))
}

fn show(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring::test::Verdict;

    fn report(results: &[(&str, Verdict)]) -> Report {
        Report {
            connector: "acme".to_owned(),
            version: "1".to_owned(),
            results: results
                .iter()
                .map(|(what, verdict)| Outcome {
                    what: (*what).to_owned(),
                    verdict: *verdict,
                    detail: vec!["seen".to_owned()],
                })
                .collect(),
        }
    }

    #[test]
    fn only_what_has_changed_is_shown_again() {
        let (text, before) = told(
            &report(&[("walk a", Verdict::Ok), ("ids", Verdict::Ok)]),
            None,
        );
        assert!(text.contains("walk a") && text.contains("ids"), "{text}");
        let (text, _) = told(
            &report(&[("walk a", Verdict::Failed), ("ids", Verdict::Ok)]),
            before.as_ref(),
        );
        assert!(
            text.contains("FAILED    walk a") && !text.contains("ids"),
            "{text}"
        );
        let (text, _) = told(
            &report(&[("walk a", Verdict::Ok), ("ids", Verdict::Ok)]),
            before.as_ref(),
        );
        assert_eq!(text, "nothing changed: 2 results, all good\n");
        let (text, _) = told(&report(&[("ids", Verdict::Ok)]), before.as_ref());
        assert!(text.contains("gone      walk a"), "{text}");
    }

    #[test]
    fn what_a_build_writes_starts_no_build() {
        let dir = Path::new("/c");
        for (path, source) in [
            ("/c/src/lib.rs", true),
            ("/c/walks/a.json", true),
            ("/c/Cargo.toml", true),
            ("/c/target/release/x", false),
            ("/c/dist/c.wasm", false),
            ("/c/src/.lib.rs.swp", false),
            ("/c/src/lib.rs~", false),
            ("/d/src/lib.rs", false),
        ] {
            assert_eq!(is_source(dir, Path::new(path)), source, "{path}");
        }
    }
}
