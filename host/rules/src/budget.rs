//! The budget ledger: what a vendor allows in a window, shared by everyone who uses one key, and spent on
//! purpose.
//!
//! A [`Budget`] is the entry for one bucket of one sharer (a credential, a connection, an app). It is updated
//! from every answer, survives a restart, and decides when a call may go. Several budgets that concern one call
//! are asked together: the one that asks for the longest wait decides.
//!
//! Who gets what, of the part that no reserve keeps for other programs:
//!
//! | priority | keeps for those above | is spread until the reset once less is left than |
//! | --- | --- | --- |
//! | a person who waits | nothing | never |
//! | the schedule, of a stream with high priority | 2 % | a quarter of the limit |
//! | the schedule | 5 % | half of the limit |
//! | the schedule, of a stream with low priority | 12 % | three quarters of the limit |
//! | backfill | 20 % | all of it: it spends what is spare, evenly |
//!
//! Spreading means that what is left, divided by the time to the reset, sets the distance between two calls.
//! While plenty is left nobody is slowed down; when the second half is reached, it lasts until the reset. It
//! also does nothing while a larger share is left than of the window's time: then the pace so far was fine.
//!
//! Where the vendor tells a percentage instead of a count, calls keep a distance that grows with it (see
//! [`pause`]). Where a bucket leaks, it is spent as it refills. Slots for concurrent requests come back when a
//! call ends: they are no quota.
//!
//! `remaining` is advice, and what is not told is not assumed: a bucket without a count holds nobody back, and
//! one that is empty without a word on when it refills is tried again after a while. What the vendor does say
//! is never cut short.

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Limit, Timestamp};

/// The share of a limit below which the schedule is spread until the reset.
const SPREAD_BELOW: f64 = 0.5;
/// By how much that share is larger at low priority, and smaller at high.
const SPREAD_STEP: f64 = 0.25;
/// The share that the schedule leaves to people.
const SCHEDULE_LEAVES: f64 = 0.05;
/// The share that the schedule of a stream with low priority leaves to the others.
const LOW_LEAVES: f64 = 0.12;
/// The share that the schedule of a stream with high priority leaves to people.
const HIGH_LEAVES: f64 = 0.02;
/// The share that backfill leaves to everyone else.
const BACKFILL_LEAVES: f64 = 0.2;
/// An empty bucket that does not say when it refills is tried again after its window, or this.
const RETRY_EMPTY: Duration = 60_000;
/// Even if the window is longer: a rolling window gives back a little all the time.
const RETRY_EMPTY_MOST: Duration = 15 * 60_000;
/// A slot for a concurrent request is asked for again after this.
const RETRY_SLOT: Duration = 1000;
/// A percentage is forgotten after this; vendors send it only while there is something to say.
const PERCENT_LIFE: Duration = 60 * 60_000;
/// A clock that goes back by less has been corrected, not set.
const CLOCK_SLACK: Duration = 5000;
/// Two resets closer than this mean one window: dates have a resolution of a second.
const SAME_RESET: u64 = 2000;
/// The weight of the newest answer in what a call is measured to cost.
const COST_WEIGHT: f64 = 0.3;

/// Who asks for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// A gap or the settle pass: spends what is spare.
    Backfill,
    /// A unit of a stream with low priority was due.
    Low,
    /// The unit was due.
    Schedule,
    /// A unit of a stream with high priority was due.
    High,
    /// Somebody waits for it.
    Person,
}

impl Priority {
    /// The share of a limit that this priority leaves to those above it.
    fn leaves(self) -> f64 {
        match self {
            Priority::Backfill => BACKFILL_LEAVES,
            Priority::Low => LOW_LEAVES,
            Priority::Schedule => SCHEDULE_LEAVES,
            Priority::High => HIGH_LEAVES,
            Priority::Person => 0.0,
        }
    }

    /// The share of a limit below which what is left is spread until the reset.
    fn spread_below(self) -> f64 {
        match self {
            Priority::Backfill => f64::INFINITY,
            Priority::Low => SPREAD_BELOW + SPREAD_STEP,
            Priority::Schedule => SPREAD_BELOW,
            Priority::High => SPREAD_BELOW - SPREAD_STEP,
            Priority::Person => 0.0,
        }
    }
}

/// Whether a call may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    /// Now.
    Go,
    /// Not before this moment, which lies ahead; then ask again. Others wait for the same moment: come back a
    /// [little late](crate::wait::late).
    WaitUntil(Timestamp),
}

impl Admit {
    fn at(moment: Timestamp, now: Timestamp) -> Self {
        if moment > now {
            Admit::WaitUntil(moment)
        } else {
            Admit::Go
        }
    }

    /// The longer wait of two.
    #[must_use]
    pub fn and(self, other: Admit) -> Admit {
        match (self, other) {
            (Admit::Go, other) => other,
            (this, Admit::Go) => this,
            (Admit::WaitUntil(a), Admit::WaitUntil(b)) => Admit::WaitUntil(a.max(b)),
        }
    }
}

/// The ledger entry for one bucket of one sharer. Moments are by our clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// `requests`, `points`, `tokens`, `bytes`, `concurrent-requests`; empty before the first answer.
    pub quota_unit: String,
    /// What the vendor allows per window.
    pub limit: Option<u64>,
    /// What was left when the vendor last said so, less what was spent since.
    pub remaining: Option<u64>,
    /// The share used, in percent.
    pub used_percent: Option<f64>,
    /// The window's length in ms.
    pub per: Option<Duration>,
    /// When the window starts anew, as the vendor said.
    pub resets_at: Option<Timestamp>,
    /// Leaky bucket: what comes back each second.
    pub restores: Option<f64>,
    /// No call before this: the vendor refused one.
    pub not_before: Option<Timestamp>,
    /// When an answer last told of this bucket.
    pub seen_at: Timestamp,
    /// When a call was last admitted.
    pub spent_at: Option<Timestamp>,
    /// The last time by our clock that was seen here: how a clock that was set back is noticed.
    clock: Timestamp,
    /// The most that was seen left, for a vendor that does not state the limit.
    peak: u64,
    /// What the vendor said is left, before anything was spent of it.
    told: Option<u64>,
    /// Calls since then.
    calls_since: u64,
    /// Measured: what one call costs, in a bucket that counts something else than requests.
    call_cost: Option<f64>,
}

impl Budget {
    /// Takes in what an answer that arrived at `now` says of this bucket. What it does not say stays.
    ///
    /// Never brings a refusal's end forward: an answer that was on its way does not know of it.
    pub fn update(&mut self, limit: &Limit, now: Timestamp) {
        self.rebase(now);
        if let Some(remaining) = limit.remaining {
            self.measure_cost(remaining);
        }
        let reset = limit.resets_in.map(|ms| after(now, ms));
        let same_window = !self.rolled_over(now)
            && match (self.resets_at, reset) {
                (Some(known), Some(told)) => known.abs_diff(told) <= SAME_RESET,
                (_, told) => told.is_none(),
            };
        if !same_window {
            self.forget_window();
        }
        self.quota_unit.clone_from(&limit.quota_unit);
        self.limit = limit.limit.or(self.limit);
        self.per = limit.per.or(self.per);
        self.restores = limit.restores.filter(|r| *r > 0.0).or(self.restores);
        self.resets_at = reset.or(self.resets_at);
        if let Some(remaining) = limit.remaining {
            self.remaining = Some(remaining);
            self.told = Some(remaining);
            self.calls_since = 0;
            self.peak = self.peak.max(remaining);
        }
        self.used_percent = limit
            .used_percent
            .filter(|used| used.is_finite())
            .or(self.used_percent);
        self.seen_at = self.seen_at.max(now);
        if let Some(wait) = limit.wait.filter(|wait| *wait > 0) {
            self.hold(after(now, wait));
        }
    }

    /// At `now` the vendor refused a call, and wants none before `until`. Call it after [`Budget::update`] with
    /// the same answer.
    ///
    /// Its word stands above the count: a bucket that said "nothing left" is tried again at `until`.
    pub fn refused(&mut self, until: Timestamp, now: Timestamp) {
        self.rebase(now);
        self.spent(until);
    }

    /// As [`Budget::refused`], where the moment of the refusal is not known: a clock that is set back later makes
    /// such a wait longer.
    pub fn spent(&mut self, until: Timestamp) {
        self.hold(until);
        if self.remaining == Some(0) {
            self.remaining = None;
            self.told = None;
        }
        if self.used_percent.is_some_and(|used| used >= 100.0) {
            self.used_percent = None;
        }
    }

    /// Moves every moment along when our clock has been set back since the last call, so that no wait grows by
    /// the hours of the jump. Call it before [`Budget::admit`].
    ///
    /// A clock that was set forward cannot be told from time that has passed: whoever can tell them apart brings a clock
    /// that is not set.
    pub fn rebase(&mut self, now: Timestamp) {
        let back = now.saturating_sub(self.clock);
        if self.clock != 0 && back < -(CLOCK_SLACK as i64) {
            self.shift(back);
        }
        self.clock = now;
    }

    /// The same by a clock that is so many ms ahead of the one that it was kept by.
    pub fn shifted(&self, by: i64) -> Budget {
        let mut shifted = self.clone();
        if by != 0 {
            shifted.shift(by);
            shifted.clock = shifted.clock.saturating_add(by);
        }
        shifted
    }

    fn shift(&mut self, by: i64) {
        let moved = |moment: Timestamp| moment.saturating_add(by);
        self.resets_at = self.resets_at.map(moved);
        self.not_before = self.not_before.map(moved);
        self.spent_at = self.spent_at.map(moved);
        self.seen_at = moved(self.seen_at);
    }

    /// Notes that a call was admitted at `now`, at a `cost` in requests. The next answer corrects it.
    pub fn spend(&mut self, cost: u64, now: Timestamp) {
        self.rebase(now);
        if self.rolled_over(now) {
            self.forget_window();
            // Until an answer tells more, the new window is full.
            self.remaining = self.limit;
            self.seen_at = self.seen_at.max(now);
        }
        let refilled = self.left(now);
        if self.restores.is_some() {
            // What has come back so far is counted in, for the next call counts from here.
            self.seen_at = self.seen_at.max(now);
        }
        self.remaining = match self.is_concurrency() {
            true => self.remaining,
            false => refilled.map(|left| (left - self.price(cost)).max(0.0) as u64),
        };
        self.calls_since = self.calls_since.saturating_add(1);
        self.spent_at = Some(now);
    }

    /// Whether a call of `cost` requests may go at `now`.
    ///
    /// `reserve` is the share of the limit, from 0 to 1, that is kept for other programs on the same key.
    pub fn admit(&self, now: Timestamp, cost: u64, priority: Priority, reserve: f64) -> Admit {
        let held = Admit::at(self.not_before.unwrap_or(Timestamp::MIN), now);
        if self.is_concurrency() {
            return held.and(self.admit_slot(now));
        }
        held.and(self.admit_percent(now, priority, reserve))
            .and(self.admit_count(now, cost, priority, reserve))
    }

    fn admit_slot(&self, now: Timestamp) -> Admit {
        match self.remaining {
            Some(0) => Admit::at(after(self.seen_at, RETRY_SLOT), now),
            _ => Admit::Go,
        }
    }

    fn admit_percent(&self, now: Timestamp, priority: Priority, reserve: f64) -> Admit {
        let Some(used) = self.used_percent else {
            return Admit::Go;
        };
        let fresh = now < after(self.seen_at, PERCENT_LIFE);
        if !fresh || self.rolled_over(now) {
            return Admit::Go;
        }
        let since = self.seen_at.max(self.spent_at.unwrap_or(Timestamp::MIN));
        // What others must be left counts as used.
        let used = used + 100.0 * fraction(reserve);
        Admit::at(after(since, pause(used, priority)), now)
    }

    fn admit_count(&self, now: Timestamp, cost: u64, priority: Priority, reserve: f64) -> Admit {
        let Some(left) = self.left(now) else {
            return Admit::Go;
        };
        let allowed = self.allowed(left);
        let price = self.price(cost);
        // A window that allows a handful must still be usable: rounded down, the kept share may be nothing.
        let kept = (allowed * (fraction(reserve) + priority.leaves())).floor();
        let usable = left - kept;
        // A call that is dearer than the whole limit can only go when the bucket is full.
        let needed = price.min((allowed - kept).max(1.0));
        if usable < needed {
            return Admit::at(self.refilled_at(now, needed - usable), now);
        }
        self.admit_pace(now, left / allowed.max(1.0), usable / price, priority)
    }

    /// Spreads the calls that are still affordable over the time to the reset.
    fn admit_pace(&self, now: Timestamp, share: f64, calls: f64, priority: Priority) -> Admit {
        let (Some(reset), Some(last)) = (self.resets_at, self.spent_at) else {
            return Admit::Go;
        };
        if self.restores.is_some() || share >= priority.spread_below() {
            return Admit::Go;
        }
        let Ok(to_reset @ 1..) = Duration::try_from(reset.saturating_sub(now)) else {
            return Admit::Go;
        };
        let ahead = match self.per {
            Some(per) if per > 0 => share < to_reset as f64 / per as f64,
            _ => true,
        };
        if !ahead && priority != Priority::Backfill {
            return Admit::Go;
        }
        // Counted from the last call, at which one more was affordable and the reset was as far away as the
        // two moments differ.
        let spread = Duration::try_from(reset.saturating_sub(last)).unwrap_or(to_reset);
        let gap = (spread as f64 / (calls + 1.0)) as Duration;
        Admit::at(after(last, gap), now)
    }

    /// What is left at `now`, in the vendor's unit; none: it has not said.
    pub fn available(&self, now: Timestamp) -> Option<f64> {
        self.left(now)
    }

    /// When `missing` more will be there.
    fn refilled_at(&self, now: Timestamp, missing: f64) -> Timestamp {
        if let Some(restores) = self.restores {
            let wait = (missing / restores * 1000.0).ceil();
            return after(now, wait.max(1.0) as Duration);
        }
        if let Some(reset) = self.resets_at {
            return reset;
        }
        let wait = self.per.unwrap_or(RETRY_EMPTY).min(RETRY_EMPTY_MOST);
        after(self.seen_at, wait)
    }

    /// What is left at `now`: nothing told is none; a window that is over is full again.
    fn left(&self, now: Timestamp) -> Option<f64> {
        if self.rolled_over(now) {
            return self.limit.map(|limit| limit as f64);
        }
        let remaining = self.remaining? as f64;
        let Some(restores) = self.restores else {
            return match self.quiet_since_empty(now) {
                true => None,
                false => Some(remaining),
            };
        };
        let seconds = now.saturating_sub(self.seen_at).max(0) as f64 / 1000.0;
        let most = self.limit.unwrap_or(self.peak) as f64;
        Some((remaining + restores * seconds).min(most.max(remaining)))
    }

    /// A count without a reset says nothing any more once its window, or a while, has passed.
    fn quiet_since_empty(&self, now: Timestamp) -> bool {
        let wait = self.per.unwrap_or(RETRY_EMPTY).min(RETRY_EMPTY_MOST);
        self.resets_at.is_none() && now >= after(self.seen_at, wait)
    }

    fn allowed(&self, left: f64) -> f64 {
        let limit = self.limit.unwrap_or(self.peak) as f64;
        limit.max(left)
    }

    /// What calls cost in this bucket's unit.
    fn price(&self, cost: u64) -> f64 {
        let cost = cost.max(1) as f64;
        match self.call_cost {
            Some(each) if self.quota_unit != "requests" => cost * each.max(1.0),
            _ => cost,
        }
    }

    /// Learns from two counts what the calls between them cost.
    fn measure_cost(&mut self, remaining: u64) {
        let Some(told) = self.told else {
            return;
        };
        if self.calls_since == 0 || remaining >= told {
            return;
        }
        let each = (told - remaining) as f64 / self.calls_since as f64;
        self.call_cost = Some(match self.call_cost {
            Some(known) => known + COST_WEIGHT * (each - known),
            None => each,
        });
    }

    fn is_concurrency(&self) -> bool {
        self.quota_unit == "concurrent-requests"
    }

    fn rolled_over(&self, now: Timestamp) -> bool {
        self.resets_at.is_some_and(|reset| now >= reset)
    }

    fn forget_window(&mut self) {
        self.remaining = None;
        self.told = None;
        self.calls_since = 0;
        self.resets_at = None;
        self.used_percent = None;
        self.peak = 0;
    }

    fn hold(&mut self, until: Timestamp) {
        self.not_before = self.not_before.max(Some(until));
    }
}

/// Asks all budgets that concern a call: the most restrictive decides.
pub fn admit_all<'b>(
    budgets: impl IntoIterator<Item = &'b Budget>,
    now: Timestamp,
    cost: u64,
    priority: Priority,
    reserve: f64,
) -> Admit {
    budgets
        .into_iter()
        .map(|budget| budget.admit(now, cost, priority, reserve))
        .fold(Admit::Go, Admit::and)
}

/// The distance between two calls, in ms, at a percentage used: from 75 % on calls keep 5 s, from 90 % 15 s,
/// from 95 % a minute, and from 100 % five minutes. People wait only at 100 %, backfill waits five minutes from
/// 80 % on.
pub fn pause(used_percent: f64, priority: Priority) -> Duration {
    const SECOND: Duration = 1000;
    let full = 300 * SECOND;
    match (priority, used_percent) {
        (_, used) if used >= 100.0 => full,
        (Priority::Person, _) => 0,
        (Priority::Backfill, used) if used >= 100.0 * (1.0 - BACKFILL_LEAVES) => full,
        (_, used) if used >= 95.0 => 60 * SECOND,
        (_, used) if used >= 90.0 => 15 * SECOND,
        (_, used) if used >= 75.0 => 5 * SECOND,
        _ => 0,
    }
}

/// A share that somebody configured.
fn fraction(share: f64) -> f64 {
    if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    }
}

fn after(moment: Timestamp, ms: Duration) -> Timestamp {
    moment.saturating_add_unsigned(ms)
}

#[cfg(test)]
mod tests;
