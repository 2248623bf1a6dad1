//! One poll of one unit, from lease to commit.
//!
//! ```text
//! window + cursor ─▶ build-request ─▶ guard ─▶ credentials ─▶ HTTP ─▶ read-response ─▶ schema gate ─▶ ONE commit
//!                                                               └──────────────▶ fault ─▶ wait / park / sign-in
//! ```
//!
//! Promises:
//! - A page's records, the walk's next step, validators, budgets and (with the last page) the cursor, the poll's
//!   row and the next due time land in one transaction.
//! - A walk keeps a few pages on their way into the store while it asks for the next, so that they share an fsync.
//!   It never gets ahead of a page that failed to land: the store refuses everything after it.
//! - A wait is never slept through here beyond [`SHORT_WAIT`]: it becomes a stored due time, and the walk goes on from
//!   its step when that has come.
//! - A side walk leaves the unit's main walk as it is, and makes room for it between two pages.
//! - A fault ends the poll with a row that names it. Text from outside is masked before it is kept.
//!
//! | file | job |
//! | --- | --- |
//! | `run` | the walk: step after step until it ends, waits or fails |
//! | `page` | one step: the call, and what its answer changes |
//! | `handover` | what goes into the store, page after page and at the end |
//! | `unstored` | polls that left nothing behind |
//! | `sweep` | forgetting records that need not be known any longer |
//! | `call` | one call: request, answer, what its headers say |
//! | `sign` | the same with a credential that is renewed on the way |
//! | `prepare` | from an answer to hashed records |
//! | `aside` | which records cannot be taken, and when their page is refused for them |
//! | `reviews` | what waits for a person |
//! | `shown` | what a person sees of an answer |
//! | `listed` | what a whole listing no longer shows |
//! | `write` | calls with an effect, and their keys |
//! | `rehearsal` | a poll of which nothing is stored, for the next two |
//! | `probe` | one harmless call, for `weir check` |
//! | `record` | a poll whose exchanges are kept, for `weir record` |
//! | `outcome` | what a fault makes of the unit |
//! | `end` | what the end of a poll leaves |
//! | `planted` | orders of storing that lose records, for the simulation to find |
//! | `side` | the same for side walks: settle passes and backfills |
//! | `ledger` | the budgets of everyone, in memory |
//! | `line` | who waits for room in them, and who goes first |

mod aside;
mod call;
mod end;
mod handover;
mod ledger;
mod line;
mod listed;
mod outcome;
mod page;
#[cfg(feature = "planted")]
mod planted;
mod prepare;
mod probe;
mod record;
mod rehearsal;
mod reviews;
mod run;
mod shown;
mod side;
mod sign;
mod sweep;
mod unstored;
mod write;

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Reason, Timestamp};
use weir_rules::walk::Tally;

use crate::store::{Ticket, UnitId, UnitKey};

pub use ledger::Ledger;
pub use probe::{Probed, probe};
pub use record::{Recorded, record};
pub use run::poll;

/// The longest wait that a poll sits out itself, in ms; a longer one is stored. Pacing between the pages of a long
/// walk stays below it.
pub const SHORT_WAIT: u64 = 2_000;

/// A poll that is to be made.
#[derive(Clone, Debug)]
pub struct Job {
    /// The unit.
    pub unit: UnitId,
    /// Who asked.
    pub reason: Reason,
    /// The lease under which it runs.
    pub ticket: Ticket,
    /// When it was meant to start, by this machine's clock.
    pub intended: Timestamp,
}

/// How a poll ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything that there was has been read.
    Ok,
    /// Every answer was 304.
    NotModified,
    /// The vendor would not give the rest.
    Truncated,
    /// What came disagrees with itself or with the vendor's total.
    Incomplete,
    /// A vendor wants a pause; the walk goes on after it.
    Waiting,
    /// A fault; tried again later.
    Failed,
    /// Not tried again before a person has looked at it.
    Parked,
    /// The connection needs a sign-in.
    NeedsSignIn,
    /// The host was told to stop; the walk goes on at the next start.
    Stopped,
    /// A side walk made room for its unit's main walk, and goes on after it.
    GaveWay,
    /// It was not made at all.
    #[default]
    Skipped,
}

impl Outcome {
    /// Every one of them.
    pub const ALL: [Outcome; 10] = [
        Outcome::Ok,
        Outcome::NotModified,
        Outcome::Truncated,
        Outcome::Incomplete,
        Outcome::Waiting,
        Outcome::Failed,
        Outcome::Parked,
        Outcome::NeedsSignIn,
        Outcome::Stopped,
        Outcome::Skipped,
    ];

    /// The word used in the poll log and by the command line.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::NotModified => "not-modified",
            Outcome::Truncated => "truncated",
            Outcome::Incomplete => "incomplete",
            Outcome::Waiting => "waiting",
            Outcome::Failed => "failed",
            Outcome::Parked => "parked",
            Outcome::NeedsSignIn => "needs-sign-in",
            Outcome::Stopped => "stopped",
            Outcome::GaveWay => "gave-way",
            Outcome::Skipped => "skipped",
        }
    }

    /// Everything that the vendor showed was read.
    pub fn is_good(self) -> bool {
        matches!(self, Outcome::Ok | Outcome::NotModified)
    }
}

/// What a poll did, for whoever waits for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The unit.
    pub unit: Option<UnitKey>,
    /// How it ended.
    pub outcome: Outcome,
    /// The fault's class, where there was one.
    pub class: Option<Class>,
    /// What happened, where something did.
    pub message: Option<String>,
    /// What it saw.
    pub tally: Tally,
    /// When the unit is due next, by this machine's clock; none: not until somebody asks.
    pub due: Option<Timestamp>,
    /// There is more to catch up with, and it may be asked for at once.
    pub more: bool,
    /// When the unit's next side walk (settle pass, backfill) may begin, by this machine's clock; none: there is none.
    pub side_due: Option<Timestamp>,
}
