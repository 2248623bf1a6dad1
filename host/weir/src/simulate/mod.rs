//! A host in a bottle: the real scheduler, poll path, delivery loop and connector, against simulated vendors, on a store
//! in memory and under a virtual clock.
//!
//! Promises:
//! - The same [`Setup`], happenings and seed give the same history, byte for byte. One thread does everything; chance
//!   comes from the seed alone.
//! - Time moves only when nothing can run, and then straight to the next moment at which something can. Nothing sleeps.
//! - What the host does is what `weir run` does: only the clock, the source of chance, the store's medium, the network
//!   and the sinks' far ends are replaced.
//! - Whoever watches is told of each event in its order, before anything else happens, and may end the run there.
//! - A host that dies leaves what it has committed, and nothing else. It never hears of what it had asked for.
//!
//! | file | job |
//! | --- | --- |
//! | `run` | one run: boots, drives time, makes happen what is to happen |
//! | `clock` | virtual time |
//! | `stage` | what outlives a boot: vendors, sinks, what is stored, who watches |
//! | `transport` | calls to the simulated vendors |
//! | `sink` | where records arrive |
//! | `plan` | what a seed makes happen |
//! | `check` | whether the promises are kept |
//! | `shrink` | the shortest history that breaks one |
//! | `hunt` | seed after seed |

mod check;
mod clock;
mod hunt;
mod machine;
mod plan;
mod run;
mod shrink;
mod sink;
mod stage;
mod transport;

use std::fmt;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use weir_rules::model::{Reason, Timestamp};
use weir_tests::answer::SimRequest;
use weir_tests::spec::{SpecError, VendorSpec};
use weir_tests::vendor::{Served, Vendor};

use crate::config::Config;
use crate::host::HostError;
use crate::store::{Cut, OutboxEntry, PollRow, StoreError, UnitId, UnitKey, UnitRow};

pub use crate::store::Committed;
pub use check::Checker;
pub use clock::SimClock;
pub use hunt::{Came, HuntError, Source, TRIES, hunt};
pub use machine::{Machine, MachineError};
pub use plan::{Base, Plan, START};
pub use run::run;
pub use shrink::{Found, check, shrink};

/// What is simulated.
#[derive(Clone)]
pub struct Setup {
    /// The configuration. Nothing of its `[host]` is touched: neither `data` nor the sinks' files.
    pub config: Config,
    /// Engine and connectors; runs may share them, on several threads too.
    pub machine: Machine,
    /// The vendors. A call goes to the one with the longest `base` that its path begins with; its host does not matter.
    pub vendors: Vec<VendorSpec>,
    /// When the simulation begins, ms since the Unix epoch. The vendors open then, and so does the host.
    pub start: Timestamp,
    /// How long it lasts, in ms.
    pub length: u64,
}

/// Something that happens to the host or around it. What vendors do of themselves is in their spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Happening {
    /// When, in ms after the start.
    pub at: u64,
    /// What.
    pub what: What,
}

/// What may happen. While the host is down, what concerns the host is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The store burns: after `spared` more transactions the next one fails or the process dies around it.
    Fuse {
        /// Transactions that still go well.
        spared: u64,
        /// What then happens.
        cut: Burn,
        /// After how many ms the process is started again, if it died.
        pause: u64,
    },
    /// The process dies where it stands, and is started again after `pause` ms.
    Kill {
        /// For how long it is down, in ms.
        pause: u64,
    },
    /// The process is told to stop, ends in order, and is started again after `pause` ms.
    Stop {
        /// For how long it is down, in ms.
        pause: u64,
    },
    /// Somebody sets the wall clock, by so many ms.
    Jump {
        /// Forward, or back.
        ms: i64,
    },
    /// The machine sleeps: the world goes on, the host stands still, and its wall clock is right when it wakes.
    Sleep {
        /// For how long, in ms.
        ms: u64,
    },
    /// A sink takes nothing.
    SinkDown {
        /// Which; none: all of them.
        sink: Option<String>,
        /// For how long, in ms.
        ms: u64,
    },
    /// Somebody asks for a poll.
    Ask {
        /// The unit's name: `connection/stream` or `connection/stream/partition`.
        unit: String,
        /// What for.
        reason: Reason,
    },
    /// From here on nothing is written at the vendors; what was written still becomes visible.
    Still,
}

/// How the store burns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Burn {
    /// The transaction fails as on a full disk; the host lives on.
    Refuse,
    /// The process dies before the transaction is durable.
    DieBefore,
    /// The process dies after it.
    DieAfter,
}

impl From<Burn> for Cut {
    fn from(burn: Burn) -> Cut {
        match burn {
            Burn::Refuse => Cut::Refuse,
            Burn::DieBefore => Cut::DieBefore,
            Burn::DieAfter => Cut::DieAfter,
        }
    }
}

/// A moment, on all clocks that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// The true time, by which vendors live: ms since the Unix epoch.
    pub world: Timestamp,
    /// The machine's wall clock: ms since the Unix epoch.
    pub wall: Timestamp,
    /// The machine's monotonic clock, in ms.
    pub monotonic: u64,
}

/// A call that has reached a vendor.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// When it arrived.
    pub at: Moment,
    /// When its answer arrives, by the true time, if the host lives to see it. For a hanging call, when the host gives
    /// up.
    pub answered: Timestamp,
    /// For which unit it was made; none for a call that belongs to none.
    pub unit: Option<(UnitId, &'a UnitKey)>,
    /// Which vendor, by its place in [`Setup::vendors`].
    pub vendor: usize,
    /// As the vendor sees it.
    pub request: &'a SimRequest,
    /// The answer, the wait that it tells, and what the vendor makes of the call.
    pub served: &'a Served,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was told to.
    Stopped,
    /// It died.
    Died,
}

/// What a watcher says to an event.
pub type Verdict = Result<(), Violation>;

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which promise.
    pub promise: String,
    /// When that was seen.
    pub at: Moment,
    /// What was expected, and what was there instead.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

impl std::error::Error for Violation {}

/// Somebody who is told of everything that happens. Called within the run, so it must not call the host.
pub trait Watch: Send {
    /// The run begins. The vendors can be asked what they show throughout.
    fn begun(&mut self, _vendors: &[Arc<Vendor>]) {}
    /// A process has started, the `boot`-th.
    fn started(&mut self, _at: Moment, _boot: u32) -> Verdict {
        Ok(())
    }
    /// A process has ended.
    fn ended(&mut self, _at: Moment, _how: Ending) -> Verdict {
        Ok(())
    }
    /// Something has happened as planned.
    fn happened(&mut self, _at: Moment, _what: &What) -> Verdict {
        Ok(())
    }
    /// A call has reached a vendor.
    fn called(&mut self, _call: &Called<'_>) -> Verdict {
        Ok(())
    }
    /// A page, or another change of a unit, has become durable.
    fn committed(&mut self, _at: Moment, _committed: &Committed<'_>) -> Verdict {
        Ok(())
    }
    /// A poll has ended; told right after its last commit.
    fn poll_ended(&mut self, _at: Moment, _row: &PollRow) -> Verdict {
        Ok(())
    }
    /// A sink has taken these entries for good; the host may die before it learns of it.
    fn delivered(&mut self, _at: Moment, _sink: &str, _entries: &[OutboxEntry]) -> Verdict {
        Ok(())
    }
    /// Nothing is left to wait for: the run may end before its time is over. Asked whenever nothing can run and nothing
    /// more is planned.
    fn is_at_rest(&mut self, _at: Moment) -> bool {
        false
    }
    /// The time is over. The host still runs.
    fn finished(&mut self, _finished: &Finished) -> Verdict {
        Ok(())
    }
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Watch for Nobody {}

/// Who watches: the caller keeps a clone.
pub type Watcher = Arc<Mutex<dyn Watch>>;

/// What is there at the end.
#[derive(Clone)]
pub struct Finished {
    /// The last moment.
    pub at: Moment,
    /// Processes that were started.
    pub boots: u32,
    /// Polls that ended.
    pub polls: u64,
    /// Calls that reached a vendor.
    pub calls: u64,
    /// Pages and other changes that became durable.
    pub commits: u64,
    /// Entries that sinks took, repetitions included.
    pub delivered: u64,
    /// Every unit as stored, its gaps included.
    pub units: Vec<UnitRow>,
    /// Entries that still wait for a sink.
    pub waiting: u64,
    /// The vendors, with what they remember.
    pub vendors: Vec<Arc<Vendor>>,
}

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A promise was not kept.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// A vendor that can't be.
    #[error(transparent)]
    Vendor(#[from] SpecError),
    /// No host could be made.
    #[error(transparent)]
    Host(#[from] HostError),
    /// What a process left does not read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The setup makes no sense.
    #[error("{0}")]
    Setup(String),
}
