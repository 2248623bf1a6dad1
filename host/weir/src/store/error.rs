//! What can go wrong with the store, and the way out.

use std::path::PathBuf;

use super::UnitId;

/// An error of the store. Cheap to clone: one failed fsync is the answer to every commit that shared it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the file.
    #[error("{} is in use by another weir: stop it, or point `host.data` at another directory", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Written by a newer weir.
    #[error(
        "{} has store schema {found}; this weir knows up to {supported}: run the weir that wrote it, or a newer one",
        .path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The schema that the file says.
        found: u64,
        /// The newest schema that this program knows.
        supported: u64,
    },
    /// The file is not a store, or a damaged one. It is left as it is.
    #[error(
        "{} is damaged or not a weir store ({detail}): `weir store check` says more, `weir store restore` brings a copy \
         back; or move it away and start anew without it (then every record is delivered again)",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        detail: String,
    },
    /// There is nothing to come back to.
    #[error(
        "no copy in {} can take the store's place ({detail}): name one with --from, or move the store away and start \
         anew without it (then every record is delivered again)",
        .dir.display()
    )]
    NoCopy {
        /// Where copies are kept.
        dir: PathBuf,
        /// What is wrong with each.
        detail: String,
    },
    /// No room.
    #[error("no space left for {}: free some; nothing that was delivered is affected", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Any other failure of the file system.
    #[error("{}: {detail}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        detail: String,
    },
    /// No such unit.
    #[error("the store has no unit {}", .unit.0)]
    UnknownUnit {
        /// The number that was asked for.
        unit: UnitId,
    },
    /// The unit would remember more records than its configuration allows.
    #[error(
        "{known} records are remembered, {more} more have come, and dedup.max is {most}: raise it, or let \
         dedup.retain forget what is not read again"
    )]
    TooManyRecords {
        /// Remembered.
        known: u64,
        /// On the page and not known.
        more: u64,
        /// The bound.
        most: u64,
    },
    /// An earlier commit of the same lease failed, so this one must not land above the hole.
    #[error(
        "an earlier page of this poll was not stored, so this one was not either; the poll starts again"
    )]
    AfterFailure,
    /// The lease under which the commit was made is over.
    #[error("the lease of this poll is over; the unit is polled again")]
    StaleLease,
    /// The writer has ended.
    #[error("the store is closed")]
    Closed,
}
