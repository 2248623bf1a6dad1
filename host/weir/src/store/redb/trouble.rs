//! Failures inside the engine, before they have a path and a way out.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

use crate::store::StoreError;

/// What went wrong below the store's surface.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The engine's own error.
    Redb(redb::Error),
    /// A row that does not read.
    Row(String),
    /// Said already as the caller will hear it.
    Told(StoreError),
}

pub(super) type Outcome<T> = Result<T, Trouble>;

macro_rules! from_redb {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for Trouble {
            fn from(error: redb::$error) -> Self {
                Trouble::Redb(error.into())
            }
        })*
    };
}

from_redb!(
    StorageError,
    TableError,
    TransactionError,
    CommitError,
    DatabaseError,
    SetDurabilityError
);

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Trouble::Told(error)
    }
}

impl From<serde_json::Error> for Trouble {
    fn from(error: serde_json::Error) -> Self {
        Trouble::Row(error.to_string())
    }
}

impl Trouble {
    /// The engine refuses everything until the file is opened anew.
    pub(super) fn needs_reopening(&self) -> bool {
        matches!(
            self,
            Trouble::Redb(
                redb::Error::Io(_)
                    | redb::Error::PreviousIo
                    | redb::Error::LockPoisoned(_)
                    | redb::Error::Corrupted(_)
            )
        )
    }

    /// The error for those who call the store.
    pub(super) fn into_error(self, path: &Path) -> StoreError {
        let path = path.to_path_buf();
        match self {
            Trouble::Told(error) => error,
            Trouble::Row(detail) => StoreError::Damaged { path, detail },
            Trouble::Redb(error) => match error {
                redb::Error::DatabaseAlreadyOpen => StoreError::InUse { path },
                redb::Error::Io(error) => io_error(&path, &error),
                redb::Error::PreviousIo => StoreError::Io {
                    path,
                    detail: "an earlier write failed".into(),
                },
                error @ (redb::Error::Corrupted(_)
                | redb::Error::RepairAborted
                | redb::Error::UpgradeRequired(_)
                | redb::Error::TableTypeMismatch { .. }
                | redb::Error::TypeDefinitionChanged { .. }
                | redb::Error::TableIsMultimap(_)
                | redb::Error::TableIsNotMultimap(_)
                | redb::Error::TableDoesNotExist(_)) => StoreError::Damaged {
                    path,
                    detail: error.to_string(),
                },
                other => StoreError::Io {
                    path,
                    detail: other.to_string(),
                },
            },
        }
    }
}

/// A failure of the file system as the store tells of it.
pub(super) fn io_error(path: &Path, error: &io::Error) -> StoreError {
    let path = path.to_path_buf();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { path },
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => StoreError::Damaged {
            path,
            detail: error.to_string(),
        },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::Io {
            path,
            detail: format!(
                "{error}: let weir write there, or point `host.data` at another directory"
            ),
        },
        _ => StoreError::Io {
            path,
            detail: error.to_string(),
        },
    }
}

thread_local! {
    /// Panics of this thread are errors, not news.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a piece of work on the file; a panic in it is the answer to damaged bytes, and becomes an error.
pub(super) fn guarded<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if GUARDED.get() {
                tracing::debug!(%panic, "the store's reader gave up");
            } else {
                loud(panic);
            }
        }));
    });
    let before = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    done.unwrap_or_else(|panic| {
        Err(Trouble::Redb(redb::Error::Corrupted(format!(
            "the reader gave up: {}",
            panic_text(panic.as_ref())
        ))))
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a word")
}
