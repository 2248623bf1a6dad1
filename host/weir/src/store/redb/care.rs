//! Looking after the file: is it sound, and how does one come back from a copy.
//!
//! Neither ever changes a file that it doubts: a check looks at a scratch copy, and a restore keeps what was there
//! beside it, under a name that says what it is.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableTable as _, ReadableTableMetadata as _};
use serde::{Deserialize, Serialize};
use weir_rules::model::Timestamp;
use weir_rules::unit::UnitState;

use super::disk::{
    Disk, OURS_ALONE, beside, builder, check_magic, check_schema, ready, sync_directory_of,
};
use super::tables::{self, Counters};
use super::trouble::{Outcome, Trouble, guarded, io_error};
use super::unit::Head;
use super::{copies, given};
use crate::store::{StoreCopy, StoreError};

const CACHE: usize = 16 << 20;

/// How a store file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreState {
    /// Every page has its checksum, every row reads.
    Sound,
    /// There is none.
    Missing,
    /// It does not open, or not all of it reads.
    Damaged,
    /// A newer weir wrote it.
    Newer,
}

/// What a check found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checkup {
    /// The file.
    pub path: PathBuf,
    /// How it is.
    pub state: StoreState,
    /// What is wrong, in words.
    pub detail: Option<String>,
    /// Its length in bytes.
    pub bytes: u64,
    /// The schema that it says it has.
    pub schema: Option<u64>,
    /// The newest schema that this program knows.
    pub supported: u64,
    /// Every page was compared with its checksum; false where there was no room for a scratch copy.
    pub checksums: bool,
    /// Units, records, entries in the outbox, polls, in that order; none when they could not be counted.
    pub counts: Option<StoreCounts>,
}

/// What is in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreCounts {
    /// Units.
    pub units: u64,
    /// Records that are remembered.
    pub records: u64,
    /// Entries that wait for a sink.
    pub outbox: u64,
    /// Polls in the log.
    pub polls: u64,
}

/// Looks at a store file without changing it.
///
/// # Errors
/// [`StoreError::InUse`], and failures of the file system. Damage is an answer and no error.
pub fn check(path: &Path) -> Result<Checkup, StoreError> {
    let _lock = Disk::file(path)?;
    Ok(look_at(path))
}

fn look_at(path: &Path) -> Checkup {
    let mut found = Checkup {
        path: path.to_path_buf(),
        state: StoreState::Sound,
        detail: None,
        bytes: 0,
        schema: None,
        supported: tables::newest_schema(),
        checksums: false,
        counts: None,
    };
    match fs::metadata(path) {
        Ok(file) => found.bytes = file.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            found.state = StoreState::Missing;
            return found;
        }
        Err(error) => {
            found.state = StoreState::Damaged;
            found.detail = Some(error.to_string());
            return found;
        }
    }
    if let Err(error) = examine(path, &mut found) {
        let (state, detail) = match error {
            StoreError::TooNew { .. } => (StoreState::Newer, error.to_string()),
            StoreError::Damaged { detail, .. } => (StoreState::Damaged, detail),
            other => (StoreState::Damaged, other.to_string()),
        };
        found.state = state;
        found.detail = Some(detail);
    }
    found
}

fn examine(path: &Path, found: &mut Checkup) -> Result<(), StoreError> {
    check_magic(path)?;
    let scratch = beside(path, "check");
    let copied = private_copy(path, &scratch);
    let examined = match copied {
        Ok(()) => examine_scratch(&scratch, path, found),
        // The file itself is only read then.
        Err(_) => guarded(|| {
            let db = builder(CACHE).open_read_only(path)?;
            found.schema = tables::schema(&db)?;
            check_schema(path, found.schema)?;
            found.counts = Some(count(&db)?);
            Ok(())
        })
        .map_err(|trouble| trouble.into_error(path)),
    };
    // It may never have come to be.
    let _ = fs::remove_file(&scratch);
    examined
}

fn examine_scratch(scratch: &Path, path: &Path, found: &mut Checkup) -> Result<(), StoreError> {
    let examined = guarded(|| {
        let mut db = builder(CACHE).open(scratch)?;
        found.schema = tables::schema(&db)?;
        check_schema(path, found.schema)?;
        let sound = db.check_integrity()?;
        found.checksums = true;
        if !sound {
            return Err(Trouble::Row(
                "a part of it does not have its checksum".into(),
            ));
        }
        found.counts = Some(count(&db)?);
        Ok(())
    });
    examined.map_err(|trouble| trouble.into_error(path))
}

/// Reads every row of the tables that everything hangs on.
fn count(db: &impl redb::ReadableDatabase) -> Outcome<StoreCounts> {
    let tx = db.begin_read()?;
    let counters = Counters::read(&tx)?;
    let mut counts = StoreCounts {
        outbox: counters.entries,
        ..StoreCounts::default()
    };
    for row in tx.open_table(tables::UNITS)?.iter()? {
        let (_, row) = row?;
        let (_, state) = Head::split(row.value())?;
        serde_json::from_slice::<UnitState>(state)?;
        counts.units += 1;
    }
    for row in tx.open_table(tables::RECORDS)?.iter()? {
        row?;
        counts.records += 1;
    }
    for row in tx.open_table(tables::OUTBOX)?.iter()? {
        row?;
    }
    counts.polls = tx.open_table(tables::POLLS)?.len()?;
    Ok(counts)
}

/// What a restore would do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RestorePlan {
    /// The copy that would take the store's place.
    pub copy: StoreCopy,
    /// What is in it.
    pub counts: StoreCounts,
    /// Newer copies that are no good, each with the reason.
    pub passed_over: Vec<(PathBuf, String)>,
    /// Records that were given keys since: each is delivered again under its own.
    pub given_since: u64,
    /// Entries of the journal that do not read: of those records it is not known.
    pub unreadable: u64,
    /// The journal begins with the copy, or before.
    pub journal_reaches_back: bool,
}

/// What a restore has done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Restored {
    /// What was planned and done.
    pub plan: RestorePlan,
    /// Where the file lies that was there; none when there was none.
    pub kept: Option<PathBuf>,
}

/// Puts a copy in the place of a store file: the newest that is sound, or the one that is named. `agreed` is asked with
/// what would be done; when it says no, nothing is.
///
/// # Errors
/// [`StoreError::InUse`], [`StoreError::NoCopy`], failures of the file system. The store is as it was then.
pub fn restore(
    path: &Path,
    copies_dir: &Path,
    from: Option<&Path>,
    now: Timestamp,
    agreed: impl FnOnce(&RestorePlan) -> bool,
) -> Result<Option<Restored>, StoreError> {
    let _lock = Disk::file(path)?;
    let (plan, memory) = plan(copies_dir, from)?;
    if !agreed(&plan) {
        return Ok(None);
    }
    let fresh = beside(path, "new");
    let made = make_ready(&plan.copy.path, &fresh, &memory);
    if let Err(error) = made {
        // What is left of it is in nobody's way.
        let _ = fs::remove_file(&fresh);
        return Err(error);
    }
    let kept = keep_aside(path, now)?;
    fs::rename(&fresh, path)
        .and_then(|()| sync_directory_of(path))
        .map_err(|error| io_error(path, &error))?;
    Ok(Some(Restored { plan, kept }))
}

fn plan(dir: &Path, from: Option<&Path>) -> Result<(RestorePlan, given::Memory), StoreError> {
    let mut found = copies::list(dir).map_err(|error| io_error(dir, &error))?;
    if let Some(from) = from {
        let named = found.iter().find(|copy| same(&copy.path, from)).cloned();
        let named = match named {
            Some(named) => named,
            None => elsewhere(from)?,
        };
        found = vec![named];
    }
    let mut passed_over = Vec::new();
    for copy in found {
        let look = look_at(&copy.path);
        let (StoreState::Sound, Some(counts)) = (look.state, look.counts) else {
            let detail = look.detail.unwrap_or_else(|| "it is not there".to_owned());
            passed_over.push((copy.path, detail));
            continue;
        };
        let failed = |error| io_error(dir, &error);
        let memory = given::since(dir, copy.number).map_err(failed)?;
        let pages = given::pages(dir).map_err(failed)?;
        let plan = RestorePlan {
            counts,
            passed_over,
            given_since: memory.given.len() as u64,
            unreadable: memory.unreadable,
            journal_reaches_back: pages.contains(&copy.number),
            copy,
        };
        return Ok((plan, memory));
    }
    Err(StoreError::NoCopy {
        dir: dir.to_path_buf(),
        detail: match passed_over.as_slice() {
            [] => "there is none".to_owned(),
            some => some
                .iter()
                .map(|(path, why)| format!("{}: {why}", path.display()))
                .collect::<Vec<_>>()
                .join("; "),
        },
    })
}

fn same(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// A copy that somebody has taken elsewhere. Whatever the journal still knows is taken into account.
fn elsewhere(path: &Path) -> Result<StoreCopy, StoreError> {
    let file = fs::metadata(path).map_err(|error| io_error(path, &error))?;
    let modified = file.modified().ok();
    let at = modified.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Ok(StoreCopy {
        path: path.to_path_buf(),
        number: 0,
        at: at.map_or(0, |at| i64::try_from(at.as_millis()).unwrap_or(i64::MAX)),
        bytes: file.len(),
    })
}

fn make_ready(copy: &Path, fresh: &Path, memory: &given::Memory) -> Result<(), StoreError> {
    private_copy(copy, fresh).map_err(|error| io_error(fresh, &error))?;
    let db = guarded(|| Ok(builder(CACHE).open(fresh)?));
    let db = db.map_err(|trouble| trouble.into_error(copy))?;
    let db = ready(copy, db, None)?;
    guarded(|| remember(db, memory)).map_err(|trouble| trouble.into_error(fresh))?;
    File::open(fresh)
        .and_then(|file| file.sync_all())
        .map_err(|error| io_error(fresh, &error))
}

fn remember(db: Database, memory: &given::Memory) -> Outcome<()> {
    let mut tx = db.begin_write()?;
    tx.set_quick_repair(true);
    {
        let mut table = tx.open_table(tables::GIVEN)?;
        for (name, given) in &memory.given {
            table.insert(name.as_slice(), given.row().as_slice())?;
        }
    }
    tx.commit()?;
    db.close()?;
    Ok(())
}

/// Gives the file a second name. The first one always names a store.
fn keep_aside(path: &Path, now: Timestamp) -> Result<Option<PathBuf>, StoreError> {
    if !path.try_exists().map_err(|error| io_error(path, &error))? {
        return Ok(None);
    }
    let time = jiff::Timestamp::from_millisecond(now).unwrap_or_default();
    let aside = beside(path, &format!("{}.kept", time.strftime("%Y%m%dT%H%M%SZ")));
    match fs::hard_link(path, &aside) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(io_error(&aside, &error));
        }
        // A file system without links.
        Err(_) => fs::rename(path, &aside).map_err(|error| io_error(path, &error))?,
    }
    Ok(Some(aside))
}

fn private_copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let copied = fs::copy(from, to)
        .and_then(|_| fs::set_permissions(to, fs::Permissions::from_mode(OURS_ALONE)));
    if copied.is_err() {
        // The room is somebody else's.
        let _ = fs::remove_file(to);
    }
    copied
}
