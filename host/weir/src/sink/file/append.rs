//! Adds lines to files, durably.

use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use weir_rules::model::Timestamp;

use super::tail::{self, REACH, Tail};
use super::{FileError, FileSettings, Group, Line, Rotation, rotate};

/// How often a file that somebody takes away is made anew for the same lines.
const TRIES: usize = 5;

/// Files whose ends are known; beyond it the ones that are not open are forgotten, and read again.
const KNOWN: usize = 4096;

/// All files of a sink.
pub(super) struct Files {
    rotation: Rotation,
    max_open: usize,
    known: HashMap<PathBuf, Known>,
    /// Grows with each use: tells which open file was used longest ago.
    uses: u64,
}

/// A file whose end has been read.
#[derive(Default)]
struct Known {
    file: Option<File>,
    last_seen: Option<Timestamp>,
    /// Keys that may be offered again; empty once a new one has come.
    tail: HashSet<Box<str>>,
    used: u64,
}

impl Files {
    pub(super) fn new(settings: &FileSettings) -> Self {
        Files {
            rotation: settings.rotation,
            max_open: settings.max_open.max(1),
            known: HashMap::new(),
            uses: 0,
        }
    }

    /// Writes and syncs all groups. After an error nothing is known of their files any more: they are opened anew,
    /// and what is in them then is not written again.
    pub(super) fn write(&mut self, groups: HashMap<PathBuf, Group>) -> Result<(), FileError> {
        let mut paths: Vec<&PathBuf> = groups.keys().collect();
        paths.sort();
        for path in paths {
            let written = groups
                .get(path)
                .map_or(Ok(()), |group| self.write_group(path, group));
            if let Err(error) = written {
                self.known.retain(|path, _| !groups.contains_key(path));
                return Err(FileError::new(path, error));
            }
        }
        Ok(())
    }

    fn write_group(
        &mut self,
        path: &Path,
        group: &Group,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let rotation = self.rotation;
        let mut known = self.take(path)?;
        let (mut lines, mut start) = known.unwritten(group);
        while let Some(first) = lines.first() {
            let length = known.length(path)?;
            if rotation.is_due(length, known.last_seen, first.seen_at) {
                known.rotate(path)?;
            }
            let same_file = lines
                .iter()
                .take_while(|line| !rotation.is_due(1, Some(first.seen_at), line.seen_at))
                .count();
            let (now, later) = lines
                .split_at_checked(same_file.max(1))
                .unwrap_or((lines, &[]));
            let end = now.last().map_or(start, |line| line.end);
            known.append(path, group.text.get(start..end).unwrap_or_default())?;
            known.last_seen = known
                .last_seen
                .max(now.iter().map(|line| line.seen_at).max());
            (lines, start) = (later, end);
        }
        self.uses += 1;
        known.used = self.uses;
        self.known.insert(path.to_path_buf(), known);
        self.close_some();
        Ok(())
    }

    /// What is known of a file; a file that is not known is opened, mended and read.
    fn take(&mut self, path: &Path) -> Result<Known, Box<dyn std::error::Error>> {
        match self.known.remove(path) {
            Some(known) => Ok(known),
            None => Known::read(path),
        }
    }

    /// How many files are open.
    pub(super) fn open(&self) -> usize {
        self.known
            .values()
            .filter(|known| known.file.is_some())
            .count()
    }

    /// Takes something that is no file for one whose end is known.
    #[cfg(test)]
    pub(super) fn take_for_open(&mut self, path: &Path) {
        let known = Known {
            file: OpenOptions::new().append(true).open(path).ok(),
            ..Known::default()
        };
        self.known.insert(path.to_path_buf(), known);
    }

    fn close_some(&mut self) {
        if self.known.len() > KNOWN {
            self.known.retain(|_, known| known.file.is_some());
        }
        while self.open() > self.max_open {
            let oldest = self
                .known
                .values_mut()
                .filter(|known| known.file.is_some())
                .min_by_key(|known| known.used);
            if let Some(oldest) = oldest {
                oldest.file = None;
            }
        }
    }
}

impl Known {
    fn read(path: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let mut tail = Tail {
            reach_left: REACH,
            ..Tail::default()
        };
        let mut file = None;
        // Before it is opened: a pipe that nobody reads would hold us up, and a device has no end to read.
        match look(path)? {
            Some(metadata) if metadata.is_file() => {
                let mut opened = OpenOptions::new().read(true).append(true).open(path)?;
                tail = tail::read(&mut opened, REACH)?;
                if opened.metadata()?.len() > tail.whole {
                    opened.set_len(tail.whole)?;
                    opened.sync_all()?;
                }
                file = Some(opened);
            }
            Some(_) => return Err("is not a file: name one that is, or that can be made".into()),
            None => {}
        }
        let mut rotated = match rotate::newest_first(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            rotated => rotated?,
        }
        .into_iter();
        while tail.reach_left > 0
            && let Some(older) = rotated.next()
        {
            let older = tail::read(&mut File::open(older)?, tail.reach_left)?;
            tail.keys.extend(older.keys);
            tail.reach_left = older.reach_left;
        }
        Ok(Known {
            file,
            last_seen: tail.last_seen,
            tail: tail.keys,
            used: 0,
        })
    }

    /// The lines that are not in the file yet, and where their text begins. Entries are offered again from the
    /// oldest unacknowledged one on and in the same order, so with the first line that is not there the rest is not.
    fn unwritten<'g>(&mut self, group: &'g Group) -> (&'g [Line], usize) {
        let mut start = 0;
        let mut lines = group.lines.as_slice();
        while let Some((first, rest)) = lines.split_first() {
            let key = group
                .text
                .get(first.key.clone())
                .and_then(|key| std::str::from_utf8(key).ok());
            if !key.is_some_and(|key| self.tail.contains(key)) {
                self.tail = HashSet::new();
                break;
            }
            (lines, start) = (rest, first.end);
        }
        (lines, start)
    }

    /// The length of the file at that path, whichever it is; 0 when there is none.
    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(look(path)?.map_or(0, |metadata| metadata.len()))
    }

    fn rotate(&mut self, path: &Path) -> io::Result<()> {
        self.file = None;
        let last_seen = self.last_seen.take().unwrap_or_default();
        std::fs::rename(path, rotate::next_name(path, last_seen)?)?;
        sync_directory_of(path)
    }

    /// Adds text and syncs it. A file that is taken away meanwhile is made anew, and gets the text too.
    fn append(&mut self, path: &Path, text: &[u8]) -> io::Result<()> {
        for _ in 0..TRIES {
            let mut file = match self.file.take() {
                Some(file) if is_at(&file, path)? => file,
                _ => create(path)?,
            };
            file.write_all(text)?;
            file.sync_data()?;
            if is_at(&file, path)? {
                self.file = Some(file);
                return Ok(());
            }
        }
        Err(io::Error::other(
            "somebody takes the file away again and again",
        ))
    }
}

fn look(path: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Is the open file still the one that the path leads to?
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let Some(there) = look(path)? else {
        return Ok(false);
    };
    let open = file.metadata()?;
    Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
}

/// Opens a file to add to it; makes it, and the directories on its way, durably.
fn create(path: &Path) -> io::Result<File> {
    let parent = parent_of(path);
    let mut made = Vec::new();
    let mut missing = parent;
    while !missing.as_os_str().is_empty() && !missing.try_exists()? {
        made.push(missing);
        missing = parent_of(missing);
    }
    std::fs::create_dir_all(parent)?;
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    for directory in made {
        sync_directory_of(directory)?;
    }
    sync_directory_of(path)?;
    Ok(file)
}

fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = parent_of(path);
    if parent.as_os_str().is_empty() {
        return File::open(".")?.sync_all();
    }
    File::open(parent)?.sync_all()
}
