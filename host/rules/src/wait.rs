//! How long the vendor wants us to stay away after an answer that failed, and how that becomes a due time.
//!
//! The vendor's own signal always wins over a backoff of ours, on any status, in this order:
//! 1. its explicit word: `Retry-After`, its siblings, or a wait in the body; the longest of them;
//! 2. the time to regain access that usage headers estimate;
//! 3. the reset of the most restrictive spent bucket;
//! 4. for an answer that is known to be a limit although no bucket is spent: the reset of the most restrictive
//!    bucket, but no less than the penalty floor. Counts that are left describe some other bucket than the one
//!    that was hit;
//! 5. for a limit that comes with no number at all: the penalty floor, doubled with every repeat. Penalty-type
//!    limits start anew with each call that comes early.
//!
//! A signal that is there but unusable (`Retry-After: 0`, `-1`, blank) is no signal, and asks for the ordinary
//! backoff. A moment that is over asks for a call now: once, and with ordinary backoff if that fails too.
//!
//! Nothing here shortens a wait. Added to it is only a little time on the late side, so that units that wait
//! for the same reset don't return together.

use rand::{Rng, RngExt as _};

use crate::http_date::Anchor;
use crate::limits;
use crate::model::{Class, Duration, Limit};
use crate::planted::{Plant, is_planted};
use crate::retry_after::{self, RetryAfter};

/// What limits of the penalty type want at least: vendors that state it say one minute.
pub const PENALTY_FLOOR: Duration = 60_000;
/// Where doubling the penalty floor ends.
pub const PENALTY_CAP: Duration = 30 * 60_000;
/// The late side of a wait: at most this share of it,
const LATE_SHARE: u64 = 20;
/// at least so many ms,
const LATE_MIN: Duration = 500;
/// and at most so many.
const LATE_MAX: Duration = 10_000;

/// A failed answer, as far as its wait depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What it was classified as.
    pub class: Class,
    /// All header lines.
    pub headers: &'a [(String, String)],
    /// When it was given.
    pub at: Anchor,
    /// A wait that the connector found in the body, in ms.
    pub body_wait: Option<Duration>,
    /// What [`limits::read`] and the connector found.
    pub limits: &'a [Limit],
    /// How many answers of this class came in a row before this one.
    pub repeats: u32,
}

/// Where a wait comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `Retry-After`, a sibling, or the body.
    Explicit,
    /// The time to regain access in a usage header.
    Usage,
    /// The reset of a bucket.
    Reset,
    /// The floor for limits that give no number.
    Penalty,
    /// Everybody on the credential waits for a token.
    Credential,
}

impl Source {
    /// The words used in logs and by the command line.
    pub fn name(self) -> &'static str {
        match self {
            Source::Explicit => "the vendor's wait",
            Source::Usage => "the vendor's usage estimate",
            Source::Reset => "the limit's reset",
            Source::Penalty => "a limit without a number",
            Source::Credential => "the pause before the next token",
        }
    }
}

/// A wait that the vendor imposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// ms from the answer; 0 says that the vendor's pause is over.
    pub ms: Duration,
    /// Where it comes from.
    pub source: Source,
    /// More than a day: kept, and worth an alert.
    pub absurd: bool,
}

impl Wait {
    fn new(ms: Duration, source: Source) -> Self {
        let ms = if is_planted(Plant::ShortWait) {
            ms / 2
        } else {
            ms
        };
        let absurd = ms > retry_after::ABSURD;
        Self { ms, source, absurd }
    }
}

/// The vendor's wait after a failed answer; none asks for the ordinary backoff.
pub fn vendor_wait(answer: &Answer<'_>) -> Option<Wait> {
    let said = retry_after::read(answer.headers, &answer.at);
    if let Some(ms) = explicit(answer, said) {
        return Some(Wait::new(ms, Source::Explicit));
    }
    let regain = answer.limits.iter().filter_map(|limit| limit.wait).max();
    if let Some(ms) = regain.filter(|ms| *ms > 0) {
        return Some(Wait::new(ms, Source::Usage));
    }
    if let Some(ms) = spent_reset(answer.limits) {
        return Some(Wait::new(ms, Source::Reset));
    }
    if said == Some(RetryAfter::DueNow) {
        return Some(Wait::new(0, Source::Explicit));
    }
    if answer.class != Class::RateLimited {
        return None;
    }
    if let Some(wait) = unspent_reset(answer.limits) {
        return Some(wait);
    }
    let silent = said.is_none() && answer.body_wait.is_none();
    silent.then(|| Wait::new(penalty(answer.repeats), Source::Penalty))
}

/// The longest of the header's and the body's wait.
fn explicit(answer: &Answer<'_>, said: Option<RetryAfter>) -> Option<Duration> {
    let header = match said {
        Some(RetryAfter::Wait(ms)) => Some(ms),
        _ => None,
    };
    header.max(answer.body_wait.filter(|ms| *ms > 0))
}

/// The last reset among the buckets that are spent: one that is still spent refuses the next call too.
fn spent_reset(limits: &[Limit]) -> Option<Duration> {
    limits
        .iter()
        .filter(|limit| limits::is_spent(limit))
        .filter_map(|limit| limit.resets_in)
        .max()
}

/// The reset of the most restrictive bucket when none is spent.
fn unspent_reset(limits: &[Limit]) -> Option<Wait> {
    let (limit, ms) = limits
        .iter()
        .filter_map(|limit| Some((limit, limit.resets_in?)))
        .min_by(|(a, reset_a), (b, reset_b)| {
            limits::share_left(a)
                .total_cmp(&limits::share_left(b))
                .then(reset_b.cmp(reset_a))
        })?;
    Some(match limit.remaining {
        // Only a reset: that is the vendor's word on when.
        None if limit.used_percent.is_none() => Wait::new(ms, Source::Reset),
        _ if ms >= PENALTY_FLOOR => Wait::new(ms, Source::Reset),
        _ => Wait::new(PENALTY_FLOOR, Source::Penalty),
    })
}

/// The floor for limits that give no number, after so many in a row.
fn penalty(repeats: u32) -> Duration {
    let doubled = 1_u64.checked_shl(repeats).unwrap_or(u64::MAX);
    PENALTY_FLOOR.saturating_mul(doubled).min(PENALTY_CAP)
}

/// How many ms after the answer the next attempt is due: the vendor's wait with a little on the late side, or
/// the ordinary `backoff`, which the caller has drawn for this attempt.
///
/// `repeats` counts the failures in a row before this one. From the second on, a wait that is over does not
/// bring the next attempt before the backoff: a vendor whose reset always lies in the past makes no hot loop.
pub fn due_in<R: Rng + ?Sized>(
    wait: Option<Wait>,
    backoff: Duration,
    repeats: u32,
    rng: &mut R,
) -> Duration {
    match wait {
        None => backoff,
        Some(wait) if wait.ms == 0 && repeats > 0 => backoff.max(late(0, rng)),
        Some(wait) => late(wait.ms, rng),
    }
}

/// A wait with a little added on the late side: up to a twentieth of it, within half a second and ten seconds.
pub fn late<R: Rng + ?Sized>(wait: Duration, rng: &mut R) -> Duration {
    let most = (wait / LATE_SHARE).clamp(LATE_MIN, LATE_MAX);
    wait.saturating_add(rng.random_range(0..=most))
}

#[cfg(test)]
mod tests;
