//! A fuse for tests and simulation: makes the store fail or die at a chosen commit boundary.

use std::sync::{Mutex, PoisonError};

/// What happens when the fuse burns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The transaction fails as on a full disk; the store lives on.
    Refuse,
    /// The process dies before the transaction is durable: nobody is answered, and the store is closed.
    DieBefore,
    /// The process dies after the transaction is durable: nobody is answered, and the store is closed.
    DieAfter,
}

/// Burns once, at the transaction that it was set to.
#[derive(Debug, Default)]
pub struct Fuse {
    next: Mutex<Option<(u64, Cut)>>,
}

impl Fuse {
    /// A fuse that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Burns at the transaction after `spared` more of them.
    pub fn set(&self, spared: u64, cut: Cut) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some((spared, cut));
    }

    /// It will not burn.
    pub fn clear(&self) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Called before each transaction is committed.
    pub(super) fn burn(&self) -> Option<Cut> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        match next.take() {
            Some((0, cut)) => Some(cut),
            Some((spared, cut)) => {
                *next = Some((spared - 1, cut));
                None
            }
            None => None,
        }
    }
}
