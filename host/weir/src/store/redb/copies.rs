//! Consistent copies of the store, in a directory beside it.
//!
//! A copy is made out of one snapshot, row by row, while commits go on: nobody waits for it. It gets its name when it
//! is whole and synced; whatever dies on the way leaves a file that is in nobody's way. Copies are numbered in the
//! order in which they were begun, so a clock that was set back does not make an old one the newest.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redb::TableHandle as _;
use redb::{
    Database, Key, ReadTransaction, ReadableTable as _, TableDefinition, TableError, Value,
};
use weir_rules::model::Timestamp;

use super::disk::{OURS_ALONE, sync_directory_of};
use super::given::Journal;
use super::tables;
use super::trouble::{Outcome, Trouble, guarded, io_error};
use crate::store::{CopyOrder, StoreCopy, StoreError};

/// Bytes of rows that are copied before the copy pauses: what one of its transactions holds.
const BATCH_BYTES: usize = 4 << 20;
/// The longest pause.
const REST: Duration = Duration::from_millis(200);
/// What stays free besides the copy itself.
const ROOM_LEFT: u64 = 64 << 20;

/// `weir.000012.20310304T100000Z.redb`
fn name_of(number: u64, at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
    format!("weir.{number:06}.{}.redb", at.strftime("%Y%m%dT%H%M%SZ"))
}

fn parse(name: &str) -> Option<(u64, Timestamp)> {
    let (number, at) = name
        .strip_prefix("weir.")?
        .strip_suffix(".redb")?
        .split_once('.')?;
    let at = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", at).ok()?;
    let at = jiff::tz::TimeZone::UTC.to_timestamp(at).ok()?;
    Some((number.parse().ok()?, at.as_millisecond()))
}

/// The copies in a directory, the newest first. None when there is no such directory.
pub(super) fn list(dir: &Path) -> io::Result<Vec<StoreCopy>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut copies = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some((number, at)) = entry.file_name().to_str().and_then(parse) else {
            continue;
        };
        copies.push(StoreCopy {
            path: entry.path(),
            number,
            at,
            bytes: entry.metadata()?.len(),
        });
    }
    copies.sort_by_key(|copy| std::cmp::Reverse(copy.number));
    Ok(copies)
}

/// Makes a copy out of a snapshot that `begin` opens. The journal turns its page before: what is committed after the
/// snapshot is in it for sure.
pub(super) fn make(
    dir: &Path,
    journal: &Journal,
    store: &Path,
    order: &CopyOrder<'_>,
    begin: impl FnOnce() -> Outcome<ReadTransaction>,
) -> Result<StoreCopy, StoreError> {
    let told = |trouble: Trouble| trouble.into_error(dir);
    check_room(dir, store)?;
    let number = journal.turn().map_err(|error| io_error(dir, &error))?;
    let snapshot = guarded(begin).map_err(|trouble| trouble.into_error(store))?;
    let copy = write(dir, number, order, &snapshot).map_err(told)?;
    journal.mend();
    prune(dir, order.keep).map_err(|error| io_error(dir, &error))?;
    Ok(copy)
}

/// Copies what a store is before it is brought to a newer schema.
pub(super) fn before_migration(dir: &Path, store: &Path, db: &Database) -> Result<(), StoreError> {
    use redb::ReadableDatabase as _;
    check_room(dir, store)?;
    let failed = |error| io_error(dir, &error);
    let copies = list(dir).map_err(failed)?;
    let last = copies.first().map(|copy| copy.number);
    let page = super::given::pages(dir).map_err(failed)?.last().copied();
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let order = CopyOrder {
        at: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        keep: usize::MAX,
        give_up: &|| false,
    };
    let number = last.max(page).map_or(1, |last| last + 1);
    let copied = guarded(|| write(dir, number, &order, &db.begin_read()?));
    let copy = copied.map_err(|trouble| trouble.into_error(dir))?;
    tracing::info!(copy = %copy.path.display(), "the store is copied before it is brought to a newer schema");
    Ok(())
}

/// Writes the copy with that number.
fn write(
    dir: &Path,
    number: u64,
    order: &CopyOrder<'_>,
    snapshot: &ReadTransaction,
) -> Outcome<StoreCopy> {
    let fresh = dir.join("weir.new");
    let path = dir.join(name_of(number, order.at));
    let made = fill(&fresh, snapshot, order).and_then(|()| {
        File::open(&fresh)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&fresh, &path))
            .and_then(|()| sync_directory_of(&path))
            .map_err(|error| Trouble::Redb(redb::Error::Io(error)))
    });
    if let Err(trouble) = made {
        // A full disk shall not stay full of this; that the copy failed is what is told.
        let _ = fs::remove_file(&fresh);
        return Err(trouble);
    }
    let bytes = fs::metadata(&path).map_or(0, |file| file.len());
    Ok(StoreCopy {
        path,
        number,
        at: order.at,
        bytes,
    })
}

fn fill(fresh: &Path, snapshot: &ReadTransaction, order: &CopyOrder<'_>) -> Outcome<()> {
    let io = |error| Trouble::Redb(redb::Error::Io(error));
    match fs::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(OURS_ALONE)
        .open(fresh)
        .map_err(io)?;
    guarded(|| {
        let mut known = Vec::new();
        let to = redb::Builder::new()
            .set_cache_size(BATCH_BYTES * 2)
            .create(fresh)?;
        macro_rules! copy {
            ($table:expr) => {{
                known.push($table.name());
                copy_table(snapshot, &to, $table, order)?;
            }};
        }
        tables::each_table!(copy);
        for table in snapshot.list_tables()? {
            if !known.contains(&table.name()) {
                let name = table.name();
                return Err(Trouble::Row(format!("nobody knows its table {name}")));
            }
        }
        to.close()?;
        Ok(())
    })
}

fn copy_table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &Database,
    table: TableDefinition<'_, K, V>,
    order: &CopyOrder<'_>,
) -> Outcome<()> {
    let source = match from.open_table(table) {
        // A file of an older schema.
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        source => source?,
    };
    let mut rows = source.iter()?;
    loop {
        let began = Instant::now();
        let tx = to.begin_write()?;
        let mut bytes = 0;
        {
            let mut copy = tx.open_table(table)?;
            for row in rows.by_ref() {
                let (key, value) = row?;
                let (key, value) = (key.value(), value.value());
                bytes += K::as_bytes(&key).as_ref().len() + V::as_bytes(&value).as_ref().len();
                copy.insert(&key, &value)?;
                if bytes >= BATCH_BYTES {
                    break;
                }
            }
        }
        tx.commit()?;
        if bytes < BATCH_BYTES {
            return Ok(());
        }
        if (order.give_up)() {
            return Err(StoreError::Closed.into());
        }
        // Half of the time belongs to the others.
        std::thread::sleep(began.elapsed().min(REST));
    }
}

/// A copy must not be what fills the disk.
fn check_room(dir: &Path, store: &Path) -> Result<(), StoreError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| io_error(dir, &error))?;
    let needed = fs::metadata(store).map_or(0, |file| file.len());
    let Ok(system) = rustix::fs::statvfs(dir) else {
        // It does not say; whatever is full will.
        return Ok(());
    };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    if free < needed.saturating_add(ROOM_LEFT) {
        return Err(StoreError::Full {
            path: dir.to_path_buf(),
        });
    }
    Ok(())
}

/// Removes the oldest copies, and the journals that no copy needs.
fn prune(dir: &Path, keep: usize) -> io::Result<()> {
    let copies = list(dir)?;
    for old in copies.iter().skip(keep.max(1)) {
        fs::remove_file(&old.path)?;
    }
    if let Some(oldest) = copies
        .get(..keep.max(1).min(copies.len()))
        .and_then(<[_]>::last)
    {
        super::given::remove_before(dir, oldest.number)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_they_were_written() {
        let at = 1_930_384_800_000;
        let name = name_of(12, at);
        assert_eq!(name, "weir.000012.20310304T100000Z.redb");
        assert_eq!(parse(&name), Some((12, at)));
        for other in [
            "weir.redb",
            "weir.new",
            "given.000012",
            "weir.12.redb",
            "weir.x.y.redb",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
