//! Down through a window, a query at a time.

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

use crate::{CAP, HackerNews};

/// A query: hits of this second and older, and which page of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// Seconds since the epoch; hits of this second belong to it.
    pub(crate) second: i64,
    /// Counts from 0. Other than 0 only while a whole page was of one second.
    pub(crate) page: u64,
}

/// What comes after an answer.
pub(crate) struct After {
    pub(crate) next: Option<Below>,
    pub(crate) truncated: bool,
}

impl Below {
    /// The top of the window.
    pub(crate) fn first(task: &Task<HackerNews>) -> Self {
        Below {
            second: task.window.until.div_euclid(1000),
            page: 0,
        }
    }

    /// `hits` is the vendor's own count for the query, `size` what was asked for.
    pub(crate) fn after(self, records: &[Record], hits: Option<u64>, size: u64) -> After {
        let stop = After {
            next: None,
            truncated: false,
        };
        let go_on = |second, page| After {
            next: Some(Below { second, page }),
            truncated: false,
        };
        let Some(oldest) = records.iter().filter_map(|record| record.updated_at).min() else {
            return stop; // nothing of this second or older is left
        };
        let arrived = records.len() as u64;
        // The server may hold a page shorter than it was asked for: then its count tells.
        let full = arrived >= size || hits.is_some_and(|hits| hits > self.page * size + arrived);
        let oldest = oldest.div_euclid(1000);
        if !full {
            stop
        } else if oldest < self.second {
            go_on(oldest, 0)
        } else if (self.page + 1) * size < CAP {
            go_on(self.second, self.page + 1)
        } else {
            // One second holds more than a query can give. Go on below it, and say so.
            After {
                truncated: true,
                ..go_on(self.second - 1, 0)
            }
        }
    }
}
