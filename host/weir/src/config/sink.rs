//! `[sink.NAME]`: where records go.

use std::path::PathBuf;

use super::error::suggest;
use super::reader::{Report, Section};
use super::webhook::Webhook;

/// `[sink.NAME]`. Without any sink, records go to stdout.
///
/// ```toml
/// [sink.main]
/// type = "file"
/// path = "out/{connection}/{stream}.ndjson"
/// rotate = { size = "100MB", every = "day" }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum SinkConfig {
    /// `type = "stdout"`: one JSON object per line.
    Stdout,
    /// `type = "file"`: NDJSON files.
    File {
        /// `path`: where to, with `{connection}` and `{stream}` filled in. Read from the configuration's folder.
        path: PathBuf,
        /// `rotate`: when a new file is begun. Default: never.
        rotate: Rotate,
    },
    /// `type = "webhook"`: POSTed in batches.
    Webhook(Box<Webhook>),
}

/// `rotate = { size, every }`: whichever comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotate {
    /// `size`: bytes after which a new file is begun.
    pub size: Option<u64>,
    /// `every`: `"day"` begins a new file at midnight UTC.
    pub every: Option<Every>,
}

/// A span of the calendar, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// From the full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
}

/// What a file sink's path may name.
const FIELDS: [&str; 2] = ["connection", "stream"];

impl SinkConfig {
    pub(super) fn read(mut section: Section<'_>, report: &mut Report<'_>) -> Option<Self> {
        let help = "allowed: \"stdout\", \"file\", \"webhook\"; example: type = \"file\"";
        let Some(kind) = section.get(report, "type") else {
            report.missing(&section, "type", help);
            return None;
        };
        let sink = match kind.text(report, help)? {
            "stdout" => Some(SinkConfig::Stdout),
            "file" => Self::file(&mut section, report),
            "webhook" => Webhook::read(&mut section, report)
                .map(|webhook| SinkConfig::Webhook(Box::new(webhook))),
            other => {
                report.complain(
                    &kind,
                    "is not a type of sink",
                    &suggest(other, &["stdout", "file", "webhook"]),
                );
                return None;
            }
        };
        section.finish(report);
        sink
    }

    fn file(section: &mut Section<'_>, report: &mut Report<'_>) -> Option<Self> {
        let help = "allowed: a path with {connection} and {stream}; example: path = \"out/{connection}/{stream}.ndjson\"";
        let rotate = section
            .get(report, "rotate")
            .and_then(|at| {
                let section = at.section(
                    report,
                    "example: rotate = { size = \"100MB\", every = \"day\" }",
                )?;
                Some(Rotate::read(section, report))
            })
            .unwrap_or_default();
        let Some(at) = section.get(report, "path") else {
            report.missing(section, "path", help);
            return None;
        };
        let path = at.filled(report, help)?;
        for field in placeholders(path) {
            match field {
                Ok(name) if FIELDS.contains(&name) => {}
                Ok(name) => {
                    let problem = format!("names {{{name}}}, which is not known");
                    report.complain(&at, &problem, help);
                }
                Err(()) => report.complain(&at, "has a brace without its other half", help),
            }
        }
        Some(SinkConfig::File {
            path: report.path(path),
            rotate,
        })
    }
}

/// The names between braces; an error for a brace that is alone.
fn placeholders(template: &str) -> Vec<Result<&str, ()>> {
    let mut found = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (_, from) = rest.split_at(at);
        let closing = from
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'));
        match closing {
            Some((name, after)) => {
                found.push(Ok(name));
                rest = after;
            }
            None => {
                found.push(Err(()));
                break;
            }
        }
    }
    found
}

impl Rotate {
    fn read(mut section: Section<'_>, report: &mut Report<'_>) -> Self {
        let size = section.get(report, "size").and_then(|at| at.size(report));
        let every = section
            .get(report, "every")
            .and_then(|at| at.word(report, &[("hour", Every::Hour), ("day", Every::Day)]));
        section.finish(report);
        Rotate { size, every }
    }
}
