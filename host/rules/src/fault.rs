//! What becomes of a unit after a fault: decided by what will fix it.
//!
//! Promises: a "wait" of the vendor is never cut short and never guessed over; nothing is repeated without a pause;
//! a token is refreshed once, not in a circle; an answer that nobody has mapped is tried a few times and then
//! shown to a person; nothing else is given up by counting attempts.

mod status;

use std::collections::BTreeMap;
use std::fmt;

use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::backoff::Backoff;
use crate::model::{Class, Duration, Fault, Timestamp};
use crate::wait::{self, Source, Wait};

pub use status::{Signals, default_class, default_scope, says_limit};

/// How often an unmapped answer is tried again before it is shown to a person.
pub const UNKNOWN_TRIES: u32 = 3;
/// The least pause before asking again for an answer that is being prepared, in ms.
const PENDING_FLOOR: Duration = 1_000;
/// How often a smaller page is tried where the fault itself is permanent.
const SMALLER_PAGES: u32 = 8;

/// The faults of a unit since it last went well. Cleared by a good poll: `FaultHistory::default()`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultHistory {
    /// How many there were of each class.
    pub counts: BTreeMap<Class, u32>,
    /// When the first came.
    pub since: Option<Timestamp>,
    /// The credential was refreshed because of one of them.
    pub refreshed: bool,
}

impl FaultHistory {
    /// Faults of that class since the unit last went well.
    pub fn count(&self, class: Class) -> u32 {
        self.counts.get(&class).copied().unwrap_or(0)
    }
}

/// When data that was not fetched yet will be gone from the vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The oldest of it goes then: the watermark and the retention.
    pub at: Timestamp,
    /// How long the vendor keeps it, in ms.
    pub retention: Duration,
}

impl Deadline {
    /// Time to tell a person: a tenth of the retention is left, and at least an hour.
    fn near(&self, now: Timestamp) -> bool {
        let margin = (self.retention / 10).max(3_600_000);
        now >= self.at.saturating_sub(signed(margin))
    }
}

/// What a fault is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Now, by this machine's clock.
    pub now: Timestamp,
    /// How long to wait where the vendor named no time.
    pub backoff: Backoff,
    /// The vendor's own word ([`wait::vendor_wait`]).
    pub wait: Option<Wait>,
    /// For a stream whose data expires.
    pub deadline: Option<Deadline>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Do the same call again then. A stored due time: no worker, slot or lease is held meanwhile.
    Retry {
        /// When.
        at: Timestamp,
        /// Why then.
        why: Why,
    },
    /// Get a fresh token, once for everybody who shares the credential, and do the same call again.
    Refresh,
    /// Stop calling for this connection until its user signs in again.
    NeedsSignIn,
    /// Take the unit off the queue and show it for review, with the answer that caused it.
    Park,
    /// Note it; this request will never work. Other units go on.
    RecordAndGoOn,
    /// Forget the position, keep what is known of the records, and walk the window from its start.
    WalkAgain {
        /// When: at once, unless the position was lost before.
        at: Timestamp,
    },
    /// No fault: do the same call then; the answer is being prepared.
    AskAgain {
        /// When.
        at: Timestamp,
    },
    /// Do the same call then, with smaller pages.
    SmallerPage {
        /// Records per page, at least 1.
        size: u32,
        /// When.
        at: Timestamp,
    },
}

/// Where the time of a retry comes from; shown in `status` and kept in the poll log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The vendor asked for it.
    Vendor(Source),
    /// Full jitter, after this many faults of the class in a row.
    Backoff(u32),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Vendor(source) => f.write_str(source.name()),
            Why::Backoff(attempt) => write!(f, "backoff after attempt {attempt}"),
        }
    }
}

/// What a person should hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// The vendor wants a pause of more than a day. It is kept.
    LongWait {
        /// When it ends.
        until: Timestamp,
    },
    /// Records will be gone from the vendor soon, and the unit still fails.
    DeadlineNear {
        /// When the first are gone.
        at: Timestamp,
    },
}

/// A decision, and what to remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// What to do.
    pub decision: Decision,
    /// To be stored.
    pub history: FaultHistory,
    /// For a person.
    pub alerts: Vec<Alert>,
}

/// Decides what becomes of whom the fault concerns.
pub fn decide<R: Rng + ?Sized>(
    fault: &Fault,
    history: &FaultHistory,
    context: &Context,
    rng: &mut R,
) -> Decided {
    let mut history = history.clone();
    let counted = history.counts.entry(fault.class).or_default();
    *counted = counted.saturating_add(1);
    let attempt = *counted;
    history.since.get_or_insert(context.now);

    let mut alerts = Vec::new();
    if let Some(wait) = context.wait.filter(|wait| wait.absurd) {
        alerts.push(Alert::LongWait {
            until: after(context.now, wait.ms),
        });
    }
    if let Some(deadline) = context
        .deadline
        .filter(|deadline| deadline.near(context.now))
    {
        alerts.push(Alert::DeadlineNear { at: deadline.at });
    }

    let decision = match fault.class {
        Class::Temporary | Class::RateLimited | Class::Incomplete => retry(context, attempt, rng),
        Class::AuthExpired if !history.refreshed => {
            history.refreshed = true;
            Decision::Refresh
        }
        Class::AuthExpired | Class::AuthRevoked => Decision::NeedsSignIn,
        Class::Permanent => Decision::RecordAndGoOn,
        Class::PositionLost => Decision::WalkAgain {
            at: walk_again(context, attempt, rng),
        },
        Class::Pending => Decision::AskAgain {
            at: ask_again(context, attempt, rng),
        },
        Class::Unknown if attempt > UNKNOWN_TRIES => Decision::Park,
        Class::Unknown => retry(context, attempt, rng),
    };
    Decided {
        decision: smaller_page(decision, fault, attempt, context, rng),
        history,
        alerts,
    }
}

/// The same call again: when the vendor says so, else after a backoff.
fn retry<R: Rng + ?Sized>(context: &Context, attempt: u32, rng: &mut R) -> Decision {
    let drawn = context.backoff.draw(attempt, rng);
    Decision::Retry {
        at: due(context, drawn, attempt, rng),
        why: match context.wait {
            Some(wait) => Why::Vendor(wait.source),
            None => Why::Backoff(attempt),
        },
    }
}

/// At once the first time; a position that is lost again and again must not become a hot loop.
fn walk_again<R: Rng + ?Sized>(context: &Context, attempt: u32, rng: &mut R) -> Timestamp {
    let drawn = match attempt {
        0 | 1 => 0,
        again => context.backoff.draw(again - 1, rng),
    };
    due(context, drawn, attempt, rng)
}

fn ask_again<R: Rng + ?Sized>(context: &Context, attempt: u32, rng: &mut R) -> Timestamp {
    let drawn = context.backoff.draw(attempt, rng).max(PENDING_FLOOR);
    due(context, drawn, attempt, rng)
}

/// The vendor's time if it named one, else the backoff that was drawn.
fn due<R: Rng + ?Sized>(
    context: &Context,
    drawn: Duration,
    attempt: u32,
    rng: &mut R,
) -> Timestamp {
    let repeats = attempt.saturating_sub(1);
    after(context.now, wait::due_in(context.wait, drawn, repeats, rng))
}

/// Turns a plain repetition into one with smaller pages, where the connector knows that these will do.
fn smaller_page<R: Rng + ?Sized>(
    decision: Decision,
    fault: &Fault,
    attempt: u32,
    context: &Context,
    rng: &mut R,
) -> Decision {
    let Some(size) = fault.page_size.map(|size| size.max(1)) else {
        return decision;
    };
    match decision {
        Decision::Retry { at, .. } => Decision::SmallerPage { size, at },
        Decision::RecordAndGoOn if attempt <= SMALLER_PAGES => match retry(context, attempt, rng) {
            Decision::Retry { at, .. } => Decision::SmallerPage { size, at },
            other => other,
        },
        other => other,
    }
}

fn after(now: Timestamp, wait: Duration) -> Timestamp {
    now.saturating_add(signed(wait))
}

fn signed(ms: Duration) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
