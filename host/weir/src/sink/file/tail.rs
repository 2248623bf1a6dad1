//! The end of a file that an earlier run has written: what is in it, and what a crash has left half-done.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use serde::Deserialize;
use weir_rules::model::Timestamp;

use super::BATCH_BYTES;
use crate::sink::UNACKNOWLEDGED_BATCHES;
use crate::sink::line::BEGINNING;

/// What a batch may add to a file, counted as [`counted`] does: full batches but for the last line, which may be
/// of any length.
pub(super) const REACH: u64 = (UNACKNOWLEDGED_BATCHES * 2 * BATCH_BYTES) as u64;

/// However long a line is, it is one line: a batch ends with the first that goes beyond its bound.
fn counted(length: u64) -> u64 {
    length.min(BATCH_BYTES as u64)
}

/// The end of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The keys of its lines, as far back as anything may be unacknowledged.
    pub(super) keys: HashSet<Box<str>>,
    /// When the last record was seen.
    pub(super) last_seen: Option<Timestamp>,
    /// Where the last whole line ends: what lies behind it is a piece of a line.
    pub(super) whole: u64,
    /// How much further back something may be unacknowledged, in the files that were rotated away before this one.
    pub(super) reach_left: u64,
}

/// Why a file is not touched.
#[derive(Debug, thiserror::Error)]
pub(super) enum TailError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(
        "ends in the middle of a line that weir did not write: complete the line, or move the file away"
    )]
    Foreign,
}

#[derive(Deserialize)]
struct Marks {
    key: Option<Box<str>>,
    seen_at: Option<Box<str>>,
}

/// Reads the end of a file, as far back as `reach`.
pub(super) fn read(file: &mut File, reach: u64) -> Result<Tail, TailError> {
    let length = file.seek(SeekFrom::End(0))?;
    let (start, reach_left) = start(file, length, reach)?;
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Tail {
        whole: start,
        reach_left,
        ..Tail::default()
    };
    let mut reader = BufReader::with_capacity(64 << 10, file.take(length - start));
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(tail);
        }
        // After a power cut a file may have its new length and zeros in place of the bytes. JSON has no zeros.
        if !line.ends_with(b"\n") || line.contains(&0) {
            let written = line.split(|byte| *byte == 0).next().unwrap_or_default();
            let common = written.len().min(BEGINNING.len());
            if written.get(..common) != BEGINNING.get(..common) {
                return Err(TailError::Foreign);
            }
            return Ok(tail);
        }
        tail.whole += line.len() as u64;
        // A line that is not ours is left where it is, and tells nothing.
        if let Ok(marks) = serde_json::from_slice::<Marks>(&line) {
            tail.keys.extend(marks.key);
            let seen_at = marks.seen_at.and_then(|text| text.parse().ok());
            tail.last_seen = seen_at
                .map(jiff::Timestamp::as_millisecond)
                .or(tail.last_seen);
        }
    }
}

/// Where to begin to read, and what is missing then to be far enough back.
fn start(file: &mut File, length: u64, reach: u64) -> std::io::Result<(u64, u64)> {
    let mut block = vec![0; 64 << 10];
    let mut block_end = length;
    // The end of the line that is being measured; none before the last line break.
    let mut line_end = None;
    let mut sum = 0;
    while block_end > 0 {
        let block_start = block_end.saturating_sub(block.len() as u64);
        let part = block
            .get_mut(..(block_end - block_start) as usize)
            .unwrap_or_default();
        file.seek(SeekFrom::Start(block_start))?;
        file.read_exact(part)?;
        for at in memchr::memrchr_iter(b'\n', part) {
            let after = block_start + at as u64 + 1;
            if let Some(end) = line_end {
                sum += counted(end - after);
                if sum >= reach {
                    return Ok((after, 0));
                }
            }
            line_end = Some(after);
        }
        block_end = block_start;
    }
    let first_line = line_end.map_or(0, counted);
    Ok((0, reach.saturating_sub(sum + first_line)))
}
