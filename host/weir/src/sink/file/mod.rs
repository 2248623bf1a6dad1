//! NDJSON files.
//!
//! Promises:
//! - An entry counts as delivered when its line is synced, and so is the directory in which its file was made.
//! - What was written before a crash and not acknowledged is not written again: when a file is first opened its
//!   end is read, and the ends of those that were rotated away just before.
//! - A line that a crash has cut off is removed before anything is added.
//! - A file that is deleted or moved away under the host is made anew.
//!
//! Refuses: to touch a file that ends in the middle of a line that is not one of ours.

mod append;
mod rotate;
mod tail;
mod template;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use weir_rules::model::Timestamp;

use self::append::Files;
use self::template::Template;
use crate::clock::BoxFuture;
use crate::sink::line::Lines;
use crate::sink::{Delivered, Sink, SinkError};
use crate::store::OutboxEntry;

pub use self::rotate::{Period, Rotation};
pub use self::template::TemplateError;

/// Bytes of lines after which a batch is cut. The tail that is read at start is reckoned from it.
const BATCH_BYTES: usize = 2 << 20;

/// Settings of a file sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSettings {
    /// Where to: a path in which `{connection}`, `{stream}`, `{partition}` and `{date}` are filled in.
    pub path: PathBuf,
    /// When a new file is begun.
    pub rotation: Rotation,
    /// Files that are kept open at most.
    pub max_open: usize,
}

impl FileSettings {
    /// Never rotated.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        FileSettings {
            path: path.into(),
            rotation: Rotation::default(),
            max_open: 64,
        }
    }
}

/// Writes lines to files.
pub struct FileSink {
    name: String,
    settings: FileSettings,
    template: Template,
    lines: Lines,
    /// None while a batch is being written. Should that be given up half-way, the files are opened anew, and their
    /// ends tell what was written.
    files: Option<Files>,
}

/// The lines of a batch that go to one file.
#[derive(Debug, Default)]
struct Group {
    text: Vec<u8>,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    key: Range<usize>,
    end: usize,
    seen_at: Timestamp,
}

impl FileSink {
    /// # Errors
    /// A path that names something that is not known, or no file.
    pub fn new(name: impl Into<String>, settings: FileSettings) -> Result<Self, TemplateError> {
        Ok(FileSink {
            name: name.into(),
            template: Template::new(&settings.path)?,
            settings,
            lines: Lines::default(),
            files: None,
        })
    }

    /// The lines of the first entries, by file, and how many entries that are.
    fn group(&mut self, batch: &[OutboxEntry]) -> (HashMap<PathBuf, Group>, usize) {
        let mut groups: HashMap<PathBuf, Group> = HashMap::new();
        let (mut bytes, mut done) = (0, 0);
        let mut rest = batch;
        while let Some(first) = rest.first()
            && bytes < BATCH_BYTES
        {
            // Entries of a page go to the same file, so its path is made once for all of them.
            let same = rest
                .iter()
                .take_while(|entry| self.template.same_file(first, entry))
                .count();
            let (page, later) = rest.split_at_checked(same.max(1)).unwrap_or((rest, &[]));
            let group = groups.entry(self.template.path(first)).or_default();
            for entry in page {
                let before = group.text.len();
                let key = self.lines.write(entry, &mut group.text);
                group.lines.push(Line {
                    key,
                    end: group.text.len(),
                    seen_at: entry.seen_at,
                });
                done += 1;
                bytes += group.text.len() - before;
                if bytes >= BATCH_BYTES {
                    break;
                }
            }
            rest = later;
        }
        (groups, done)
    }
}

impl Sink for FileSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn deliver<'a>(
        &'a mut self,
        batch: &'a [OutboxEntry],
        _key: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Delivered, SinkError>> {
        Box::pin(async move {
            let (groups, done) = self.group(batch);
            let mut files = self
                .files
                .take()
                .unwrap_or_else(|| Files::new(&self.settings));
            let written = tokio::task::spawn_blocking(move || {
                let result = files.write(groups);
                (files, result)
            })
            .await;
            match written {
                Ok((files, result)) => {
                    self.files = Some(files);
                    result.map_err(|error| SinkError::new(&self.name, error.to_string()))?;
                }
                Err(panic) => return Err(SinkError::new(&self.name, panic.to_string())),
            }
            Ok(Delivered {
                done,
                refused: Vec::new(),
            })
        })
    }
}

/// A failure and the file that it happened to.
#[derive(Debug, thiserror::Error)]
#[error("{}: {detail}", .path.display())]
struct FileError {
    path: PathBuf,
    detail: String,
}

impl FileError {
    fn new(path: &Path, detail: impl ToString) -> Self {
        FileError {
            path: path.to_path_buf(),
            detail: detail.to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
