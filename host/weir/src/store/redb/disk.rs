//! Where the store's bytes are: a file, or memory for tests and simulation.
//!
//! A new file is made under another name, gets its tables, is synced, and only then takes its own name: whoever
//! dies on the way leaves no half-made store behind. A lock file beside it is held for the life of the process,
//! so that two processes that start at once, or one that must open the file anew after a failed write, never
//! meet inside it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use redb::{Builder, Database, DatabaseError, StorageBackend};

use super::trouble::{Trouble, guarded, io_error};
use super::{StoreOptions, copies, tables};
use crate::store::StoreError;

/// The store holds what vendors show to those alone who may see it.
pub(super) const OURS_ALONE: u32 = 0o600;

const REDB_MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";

/// A place that can be opened, and opened again after a failed write.
pub(super) enum Disk {
    /// A file, and the lock that keeps other processes out.
    File { path: PathBuf, _lock: File },
    /// Memory.
    Memory(MemoryDisk),
}

impl Disk {
    /// Takes the lock of a store file.
    pub(super) fn file(path: &Path) -> Result<Self, StoreError> {
        let lock_path = beside(path, "lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(OURS_ALONE)
            .open(&lock_path)
            .map_err(|error| io_error(&lock_path, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse {
                    path: path.to_path_buf(),
                });
            }
            // A file system without locks: the engine's own lock is all there is.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(io_error(&lock_path, &error)),
        }
        Ok(Disk::File {
            path: path.to_path_buf(),
            _lock: lock,
        })
    }

    /// The name for messages.
    pub(super) fn path(&self) -> &Path {
        match self {
            Disk::File { path, .. } => path,
            Disk::Memory(_) => Path::new("(memory)"),
        }
    }

    /// Opens the store, at the newest schema; makes it when there is none.
    pub(super) fn open(&self, options: &StoreOptions) -> Result<Database, StoreError> {
        let cache_bytes = options.cache_bytes;
        match self {
            Disk::File { path, .. } => {
                if path.try_exists().map_err(|error| io_error(path, &error))? {
                    check_magic(path)?;
                    close_to_others(path);
                } else {
                    create(path, cache_bytes)?;
                }
                look(path, cache_bytes)?;
                let db = guarded(|| Ok(builder(cache_bytes).open(path)?));
                let db = db.map_err(|trouble| trouble.into_error(path))?;
                ready(path, db, options.copies.as_deref())
            }
            Disk::Memory(memory) => {
                let path = self.path();
                let is_new = memory.is_empty();
                let to_error = |trouble: Trouble| trouble.into_error(path);
                let db = guarded(|| Ok(builder(cache_bytes).create_with_backend(memory.clone())?))
                    .map_err(to_error)?;
                if is_new {
                    guarded(|| tables::migrate(&db, 0)).map_err(to_error)?;
                }
                ready(path, db, None)
            }
        }
    }
}

pub(super) fn builder(cache_bytes: usize) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    builder
}

/// Refuses what this program cannot read before anything is written: opening for writing leaves traces in a file.
/// A file that was not closed cleanly cannot be looked at in this way; it is mended when it is opened.
fn look(path: &Path, cache_bytes: usize) -> Result<(), StoreError> {
    let schema = guarded(|| {
        let db = match builder(cache_bytes).open_read_only(path) {
            Err(DatabaseError::RepairAborted) => return Ok(None),
            opened => opened?,
        };
        tables::schema(&db).map(Some)
    });
    match schema {
        Ok(Some(schema)) => check_schema(path, schema).map(drop),
        Ok(None) => Ok(()),
        Err(trouble) => Err(trouble.into_error(path)),
    }
}

/// Brings an open store to the newest schema. What it was before is copied first: a migration has no way back.
pub(super) fn ready(
    path: &Path,
    db: Database,
    copies: Option<&Path>,
) -> Result<Database, StoreError> {
    let to_error = |trouble: Trouble| trouble.into_error(path);
    let found = check_schema(path, guarded(|| tables::schema(&db)).map_err(to_error)?)?;
    if found < tables::newest_schema()
        && let Some(dir) = copies
    {
        copies::before_migration(dir, path, &db)?;
    }
    guarded(|| tables::migrate(&db, found)).map_err(to_error)?;
    Ok(db)
}

pub(super) fn check_schema(path: &Path, schema: Option<u64>) -> Result<u64, StoreError> {
    let supported = tables::newest_schema();
    match schema {
        Some(found) if found <= supported => Ok(found),
        Some(found) => Err(StoreError::TooNew {
            path: path.to_path_buf(),
            found,
            supported,
        }),
        None => Err(StoreError::Damaged {
            path: path.to_path_buf(),
            detail: "it is a database of another program".into(),
        }),
    }
}

/// An empty or foreign file is refused before the engine can take it for a place to begin in.
pub(super) fn check_magic(path: &Path) -> Result<(), StoreError> {
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(REDB_MAGIC.len() as u64).read_to_end(&mut start))
        .map_err(|error| io_error(path, &error))?;
    if start == REDB_MAGIC {
        return Ok(());
    }
    Err(StoreError::Damaged {
        path: path.to_path_buf(),
        detail: match start.len() {
            0 => "it is empty".into(),
            short if short < REDB_MAGIC.len() => format!("it has only {short} bytes"),
            _ => "it does not begin like one".into(),
        },
    })
}

fn create(path: &Path, cache_bytes: usize) -> Result<(), StoreError> {
    let fresh = beside(path, "new");
    // Left by a start that died; the lock says that nobody is at work on it.
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io_error(&fresh, &error));
        }
        _ => {}
    }
    OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(OURS_ALONE)
        .open(&fresh)
        .map_err(|error| io_error(&fresh, &error))?;
    guarded(|| {
        let db = builder(cache_bytes).create(&fresh)?;
        tables::migrate(&db, 0)?;
        db.close()?;
        Ok(())
    })
    .map_err(|trouble| trouble.into_error(&fresh))?;
    File::open(&fresh)
        .and_then(|file| file.sync_all())
        .and_then(|()| std::fs::rename(&fresh, path))
        .and_then(|()| sync_directory_of(path))
        .map_err(|error| io_error(path, &error))
}

/// A file of an older program may be open to all. What its owner may do with it stays as it is.
fn close_to_others(path: &Path) {
    let Ok(mode) = std::fs::metadata(path).map(|file| file.permissions().mode()) else {
        return;
    };
    let ours = std::fs::Permissions::from_mode(mode & 0o700);
    if mode & 0o077 != 0
        && let Err(error) = std::fs::set_permissions(path, ours)
    {
        tracing::warn!(path = %path.display(), %error, "other users may be able to read the store");
    }
}

pub(super) fn sync_directory_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// `weir.redb` -> `weir.redb.lock`
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

/// A disk in memory: clones share the bytes, so a store can be opened again on what an earlier one left.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    bytes: Arc<RwLock<Vec<u8>>>,
    capacity: Arc<RwLock<Option<usize>>>,
}

impl MemoryDisk {
    /// An empty disk without limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on the disk is full at this many bytes; `None` lifts the limit.
    pub fn set_capacity(&self, bytes: Option<usize>) {
        *self
            .capacity
            .write()
            .unwrap_or_else(PoisonError::into_inner) = bytes;
    }

    /// What a kill at this instant would leave: a disk of its own, on which the writes to this one no longer show.
    pub fn snapshot(&self) -> MemoryDisk {
        MemoryDisk {
            bytes: Arc::new(RwLock::new(self.read_lock().clone())),
            capacity: Arc::default(),
        }
    }

    /// Bytes in use.
    pub fn len(&self) -> usize {
        self.read_lock().len()
    }

    /// Nothing was ever written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read_lock(&self) -> std::sync::RwLockReadGuard<'_, Vec<u8>> {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn full(&self, length: usize) -> bool {
        self.capacity
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some_and(|capacity| length > capacity)
    }
}

fn out_of_range() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "beyond the end of the memory disk",
    )
}

fn span(offset: u64, length: usize) -> io::Result<std::ops::Range<usize>> {
    let start = usize::try_from(offset).map_err(|_| out_of_range())?;
    Ok(start..start.checked_add(length).ok_or_else(out_of_range)?)
}

impl StorageBackend for MemoryDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.read_lock().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.read_lock();
        let part = bytes
            .get(span(offset, out.len())?)
            .ok_or_else(out_of_range)?;
        out.copy_from_slice(part);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(|_| out_of_range())?;
        let mut bytes = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        if length > bytes.len() && self.full(length) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        bytes.resize(length, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let part = bytes
            .get_mut(span(offset, data.len())?)
            .ok_or_else(out_of_range)?;
        part.copy_from_slice(data);
        Ok(())
    }
}
