//! Which keys were given, outside of the store.
//!
//! A store that comes back from an older copy has forgotten which revisions it gave since. Given again to another
//! content, a key would be dropped by whoever knows it already, and a change would be lost. So each commit writes down,
//! before it is made, which records get which revision for which content: a few bytes each, in a journal beside the
//! copies. A restored store reads it back, and gives what it had given under the same key, and anything else under a new
//! one.
//!
//! An entry is of fixed length and has a sum. The journal is not synced with each commit: after a power failure its end
//! may be missing, which the sequence that each group ends with tells; then a new copy is due.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use weir_rules::model::Timestamp;

use super::disk::OURS_ALONE;
use super::trouble::{Outcome, Trouble};
use crate::store::Op;
use crate::store::record::Remembered;

const ENTRY: usize = 40;
const NAME: usize = 16;
const CONTENT: usize = 15;
/// Bytes of a row of the table: content, operation, revision.
pub(super) const ROW: usize = CONTENT + 1 + 4;
/// In the place of a name: the rest is the sequence that the outbox had then.
const MARK: [u8; NAME] = [0; NAME];

/// Names a record of a unit, whatever number the unit has.
pub(super) fn name(unit: &[u8], id: &str) -> [u8; NAME] {
    let mut digest = Sha256::new();
    digest.update(unit);
    digest.update([0]);
    digest.update(id.as_bytes());
    let digest: [u8; 32] = digest.finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// What a record was given last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    content: [u8; CONTENT],
    op: u8,
    revision: u32,
}

impl Given {
    pub(super) fn new(hash: &[u8; 32], op: Op, revision: u32) -> Self {
        Given {
            content: hash.first_chunk().copied().unwrap_or_default(),
            op: match op {
                Op::Insert => 0,
                Op::Update => 1,
                Op::Delete => 2,
            },
            revision,
        }
    }

    pub(super) fn row(&self) -> [u8; ROW] {
        let mut row = [0; ROW];
        let (content, rest) = row.split_at_mut(CONTENT);
        content.copy_from_slice(&self.content);
        let (op, revision) = rest.split_at_mut(1);
        op.fill(self.op);
        revision.copy_from_slice(&self.revision.to_be_bytes());
        row
    }

    pub(super) fn of_row(row: &[u8]) -> Option<Self> {
        let (content, rest) = row.split_first_chunk()?;
        let ([op], rest) = rest.split_first_chunk::<1>()?;
        Some(Given {
            content: *content,
            op: *op,
            revision: u32::from_be_bytes(*rest.first_chunk()?),
        })
    }

    /// What a record is delivered as that was delivered once before by a store which is lost. None: the store knows as
    /// much as the journal.
    pub(super) fn again(
        &self,
        known: Option<Remembered>,
        hash: [u8; 32],
        deleted: bool,
        now: Timestamp,
        epoch: u32,
    ) -> Option<(Op, Remembered)> {
        if known.is_some_and(|known| known.revision >= self.revision) {
            return None;
        }
        let was_deleted = self.op == 2;
        let same_content = hash.first_chunk() == Some(&self.content);
        let same = was_deleted == deleted && (deleted || same_content);
        let op = match (same, deleted) {
            (_, true) => Op::Delete,
            (true, false) if self.op == 0 => Op::Insert,
            (false, false) if was_deleted => Op::Insert,
            (_, false) => Op::Update,
        };
        let known = known.filter(|known| known.epoch == epoch);
        let row = Remembered {
            hash,
            first_seen: known.map_or(now, |known| known.first_seen),
            last_changed: now,
            revision: self.revision.saturating_add(u32::from(!same)),
            epoch,
            deleted,
        };
        Some((op, row))
    }
}

/// Appends an entry to what a commit will write.
pub(super) fn put(log: &mut Vec<u8>, name: [u8; NAME], given: Given) {
    let start = log.len();
    log.extend_from_slice(&name);
    log.extend_from_slice(&given.row());
    let sum = sum(log.get(start..).unwrap_or_default());
    log.extend_from_slice(&sum);
}

fn put_mark(log: &mut Vec<u8>, sequence: u64) {
    let mut content = [0; CONTENT];
    let (place, _) = content.split_at_mut(8);
    place.copy_from_slice(&sequence.to_be_bytes());
    let mark = Given {
        content,
        op: 0,
        revision: 0,
    };
    put(log, MARK, mark);
}

/// FNV-1a.
fn sum(bytes: &[u8]) -> [u8; 4] {
    let sum = bytes.iter().fold(0x811c_9dc5_u32, |sum, byte| {
        (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    sum.to_be_bytes()
}

enum Entry {
    Record([u8; NAME], Given),
    Mark(u64),
}

fn read(entry: &[u8]) -> Option<Entry> {
    let (body, said) = entry.split_at_checked(ENTRY - 4)?;
    if sum(body) != said {
        return None;
    }
    let (name, row) = body.split_first_chunk::<NAME>()?;
    if *name == MARK {
        return Some(Entry::Mark(u64::from_be_bytes(*row.first_chunk()?)));
    }
    Some(Entry::Record(*name, Given::of_row(row)?))
}

/// The journal that is being written.
pub(super) struct Journal {
    dir: PathBuf,
    page: Mutex<Page>,
    /// Commits are in the store that the journal has not heard of.
    holed: AtomicBool,
}

struct Page {
    number: u64,
    file: File,
    length: u64,
    /// What the outbox's next sequence was last.
    sequence: u64,
}

impl Journal {
    /// Goes on where the last one ended. `sequence`: what the store says.
    pub(super) fn open(dir: &Path, sequence: u64) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
        let pages = pages(dir)?;
        let last_copy = super::copies::list(dir)?.first().map(|copy| copy.number);
        let mut heard = None;
        for number in pages.iter().rev() {
            heard = last_mark(&path_of(dir, *number))?;
            if heard.is_some() {
                break;
            }
        }
        let number = pages.last().copied().max(last_copy).unwrap_or(0);
        let page = Page::open(dir, number, sequence)?;
        Ok(Journal {
            dir: dir.to_path_buf(),
            page: Mutex::new(page),
            holed: AtomicBool::new(heard.unwrap_or(1) < sequence),
        })
    }

    /// It does not know all that was committed before it was opened, so no copy but a new one is complete with it.
    pub(super) fn is_holed(&self) -> bool {
        self.holed.load(Ordering::Relaxed)
    }

    /// A new copy has been made: what it misses from before is in the copy.
    pub(super) fn mend(&self) {
        self.holed.store(false, Ordering::Relaxed);
    }

    /// Writes a commit's entries, before the commit.
    pub(super) fn append(&self, mut log: Vec<u8>, sequence: u64) -> Outcome<()> {
        if log.is_empty() {
            return Ok(());
        }
        put_mark(&mut log, sequence);
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        // What a full disk has cut off is written over by the next.
        page.file
            .write_all_at(&log, page.length)
            .map_err(|error| Trouble::Redb(redb::Error::Io(error)))?;
        page.length += log.len() as u64;
        page.sequence = sequence;
        Ok(())
    }

    /// Begins a new page, and gives its number: that of the copy which it belongs to.
    pub(super) fn turn(&self) -> io::Result<u64> {
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        page.file.sync_data()?;
        let mut next = Page::open(&self.dir, page.number + 1, page.sequence)?;
        // The pages before may be removed: the new one says by itself that it misses nothing.
        let mut mark = Vec::new();
        put_mark(&mut mark, next.sequence);
        next.file.write_all_at(&mark, next.length)?;
        next.length += mark.len() as u64;
        *page = next;
        Ok(page.number)
    }
}

impl Page {
    fn open(dir: &Path, number: u64, sequence: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(OURS_ALONE)
            .open(path_of(dir, number))?;
        let length = file.metadata()?.len() / ENTRY as u64 * ENTRY as u64;
        Ok(Page {
            number,
            file,
            length,
            sequence,
        })
    }
}

fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("given.{number:06}"))
}

/// The numbers of the pages that are there, in order.
pub(super) fn pages(dir: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("given."));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

pub(super) fn remove_before(dir: &Path, number: u64) -> io::Result<()> {
    for page in pages(dir)?.into_iter().filter(|page| *page < number) {
        fs::remove_file(path_of(dir, page))?;
    }
    Ok(())
}

fn last_mark(path: &Path) -> io::Result<Option<u64>> {
    let mut last = None;
    each(path, |entry| {
        if let Some(Entry::Mark(sequence)) = entry {
            last = Some(sequence);
        }
    })?;
    Ok(last)
}

fn each(path: &Path, mut each: impl FnMut(Option<Entry>)) -> io::Result<()> {
    use std::io::Read as _;
    let mut file = io::BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut entry = [0; ENTRY];
    loop {
        match file.read_exact(&mut entry) {
            Ok(()) => each(read(&entry)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// What the journal knows of the time since a copy.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) given: HashMap<[u8; NAME], Given>,
    /// Entries that do not read.
    pub(super) unreadable: u64,
}

/// Reads the pages from that of a copy on.
pub(super) fn since(dir: &Path, number: u64) -> io::Result<Memory> {
    let mut memory = Memory::default();
    for page in pages(dir)?.into_iter().filter(|page| *page >= number) {
        each(&path_of(dir, page), |entry| match entry {
            Some(Entry::Record(name, given)) => {
                let last = memory.given.entry(name).or_insert(given);
                // A commit that failed may have been written down before the one that did not.
                if given.revision >= last.revision {
                    *last = given;
                }
            }
            Some(Entry::Mark(_)) => {}
            None => memory.unreadable += 1,
        })?;
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(byte: u8) -> [u8; 32] {
        [byte; 32]
    }

    #[test]
    fn the_same_content_keeps_its_key_and_another_gets_a_new_one() {
        let given = Given::new(&hash(1), Op::Update, 3);
        let first = Remembered::first(hash(9), false, 0, 1, 0);
        for known in [None, Some(first)] {
            let (op, row) = given.again(known, hash(1), false, 5, 1).unwrap();
            assert_eq!((op, row.revision), (Op::Update, 3));
            let (op, row) = given.again(known, hash(2), false, 5, 1).unwrap();
            assert_eq!((op, row.revision), (Op::Update, 4));
            let (op, row) = given.again(known, hash(2), true, 5, 1).unwrap();
            assert_eq!((op, row.revision), (Op::Delete, 4));
        }
        let newer = Remembered {
            revision: 3,
            ..first
        };
        assert!(given.again(Some(newer), hash(2), false, 5, 1).is_none());
        let gone = Given::new(&hash(1), Op::Delete, 2);
        let (op, row) = gone.again(None, hash(1), false, 5, 1).unwrap();
        assert_eq!((op, row.revision), (Op::Insert, 3));
    }

    #[test]
    fn a_journal_goes_on_after_a_cut_and_tells_what_it_missed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let write = |journal: &Journal, id: &str, revision, sequence| {
            let mut log = Vec::new();
            let given = Given::new(&hash(1), Op::Insert, revision);
            put(&mut log, name(b"unit", id), given);
            journal.append(log, sequence).unwrap();
        };
        let journal = Journal::open(dir, 1).unwrap();
        assert!(!journal.is_holed());
        write(&journal, "a", 1, 2);
        assert_eq!(journal.turn().unwrap(), 1);
        write(&journal, "b", 1, 3);
        drop(journal);
        // The end of an entry is missing.
        let page = path_of(dir, 1);
        let length = fs::metadata(&page).unwrap().len();
        OpenOptions::new()
            .write(true)
            .open(&page)
            .unwrap()
            .set_len(length - 7)
            .unwrap();
        let journal = Journal::open(dir, 3).unwrap();
        assert!(journal.is_holed());
        write(&journal, "c", 2, 4);
        drop(journal);
        assert!(!Journal::open(dir, 4).unwrap().is_holed());
        let memory = since(dir, 0).unwrap();
        assert_eq!(memory.unreadable, 0);
        let quiet = Journal::open(dir, 4).unwrap();
        quiet.turn().unwrap();
        drop(quiet);
        remove_before(dir, 2).unwrap();
        assert!(!Journal::open(dir, 4).unwrap().is_holed());
        assert_eq!(memory.given.len(), 3);
        assert_eq!(memory.given[&name(b"unit", "c")].revision, 2);
        assert_eq!(pages(dir).unwrap(), [2]);
    }
}
