//! The leases that have been seen: what keeps a page from landing above a hole.
//!
//! An older lease than the newest one that was seen is over. Under a lease of which a page was not stored, no later
//! page is stored either. Kept in memory alone: a new process begins with tickets that are higher than any before.

use std::collections::HashMap;

use super::{StoreError, Ticket, UnitId};

/// The newest lease of each unit.
#[derive(Default)]
pub(super) struct Fences {
    newest: HashMap<UnitId, Fence>,
}

struct Fence {
    ticket: Ticket,
    broken: bool,
}

impl Fences {
    /// May this be done under that lease?
    pub(super) fn admit(&mut self, unit: UnitId, ticket: Ticket) -> Result<(), StoreError> {
        let fence = self.newest.entry(unit).or_insert(Fence {
            ticket,
            broken: false,
        });
        if ticket < fence.ticket {
            return Err(StoreError::StaleLease);
        }
        if ticket > fence.ticket {
            *fence = Fence {
                ticket,
                broken: false,
            };
        }
        if fence.broken {
            Err(StoreError::AfterFailure)
        } else {
            Ok(())
        }
    }

    /// Something under that lease was not stored: nothing after it is.
    pub(super) fn break_lease(&mut self, unit: UnitId, ticket: Ticket) {
        if let Some(fence) = self.newest.get_mut(&unit)
            && fence.ticket == ticket
        {
            fence.broken = true;
        }
    }
}
