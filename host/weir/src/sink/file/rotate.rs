//! When a file is closed for a new one, and what the old one is called then.
//!
//! `stream.ndjson` is always the file that grows; an old one is `stream.2025-01-31.1.ndjson`: the day of its last
//! line, and a number that grows.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use weir_rules::model::Timestamp;

use super::template::date;

/// When a new file is begun: whichever comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// At this many bytes.
    pub bytes: Option<u64>,
    /// When the records seen are of another day or hour (UTC).
    pub period: Option<Period>,
}

/// A span of the calendar, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// From the full hour to the next.
    Hour,
    /// From midnight to midnight.
    Day,
}

const HOUR: i64 = 3_600_000;

impl Rotation {
    /// Must the file, of that length and with that last line, be closed before a line of `next` is written?
    pub(super) fn is_due(&self, length: u64, last: Option<Timestamp>, next: Timestamp) -> bool {
        if length == 0 {
            return false;
        }
        let full = self.bytes.is_some_and(|bytes| length >= bytes);
        // Forward only: a record that was seen just before midnight may come just after one that was seen later.
        let over = match (self.period, last) {
            (Some(Period::Hour), Some(last)) => next.div_euclid(HOUR) > last.div_euclid(HOUR),
            (Some(Period::Day), Some(last)) => {
                next.div_euclid(24 * HOUR) > last.div_euclid(24 * HOUR)
            }
            _ => false,
        };
        full || over
    }
}

/// The name for a file that is rotated away.
pub(super) fn next_name(path: &Path, last: Timestamp) -> std::io::Result<PathBuf> {
    let day = date(last);
    let number = rotated(path)?
        .filter(|rotated| rotated.day == day)
        .map(|rotated| rotated.number)
        .max()
        .unwrap_or(0);
    let (stem, extension) = names(path);
    Ok(path.with_file_name(format!("{stem}.{day}.{}{extension}", number + 1)))
}

/// The files that were rotated away, the last one first.
pub(super) fn newest_first(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut rotated: Vec<Rotated> = rotated(path)?.collect();
    rotated.sort_by(|one, other| (&other.day, other.number).cmp(&(&one.day, one.number)));
    Ok(rotated.into_iter().map(|rotated| rotated.path).collect())
}

struct Rotated {
    day: String,
    number: u64,
    path: PathBuf,
}

fn rotated(path: &Path) -> std::io::Result<impl Iterator<Item = Rotated>> {
    let (stem, extension) = names(path);
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let entries = std::fs::read_dir(directory)?.collect::<std::io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().filter_map(move |entry| {
        let name = entry.file_name();
        let middle = name
            .to_str()?
            .strip_prefix(&stem)?
            .strip_prefix('.')?
            .strip_suffix(&extension)?;
        let (day, number) = middle.rsplit_once('.')?;
        let is_day = day.len() >= 10
            && day
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-');
        Some(Rotated {
            day: is_day.then(|| day.to_owned())?,
            number: number.parse().ok()?,
            path: entry.path(),
        })
    }))
}

/// `stream` and `.ndjson`
fn names(path: &Path) -> (String, String) {
    let text = |name: Option<&OsStr>| name.unwrap_or_default().to_string_lossy().into_owned();
    let extension = path
        .extension()
        .map(|extension| format!(".{}", extension.to_string_lossy()));
    (text(path.file_stem()), extension.unwrap_or_default())
}
