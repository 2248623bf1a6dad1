//! How long to wait before the next poll: what the last one yielded decides.
//!
//! A fixed interval samples a busy source too rarely and spends shared quota on a silent one. Promises: the
//! interval never passes the freshness that the user was promised, nor the ceiling; it never goes below the
//! vendor's own pause or the pressure that its latency showed; polls of a unit never bunch up after a slow
//! one or after the machine was asleep.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Timestamp};

/// Empty polls in a row that still lengthen the interval.
const MAX_EMPTIES: u32 = 6;

/// How the interval answers to what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Found something: x 0.8. Empty: the minimum x 1.5 per empty poll in a row.
    #[default]
    Yield,
    /// Found something: the minimum. Empty: doubled.
    Reset,
    /// What the times of the records let expect ([`crate::rhythm`]).
    Rhythm,
}

/// The bounds of a unit's interval, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interval {
    /// Never poll more often than this.
    pub min: Duration,
    /// Never poll more rarely than this.
    pub max: Duration,
    /// How it moves between the two.
    pub strategy: Strategy,
    /// What the user was promised; a lower ceiling than `max`, and than `min` too.
    pub freshness: Option<Duration>,
}

impl Default for Interval {
    fn default() -> Self {
        Interval {
            min: 30_000,
            max: 1_800_000,
            strategy: Strategy::Yield,
            freshness: None,
        }
    }
}

/// Why bounds were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntervalError {
    /// The range is empty.
    #[error(
        "min-interval ({min} ms) is longer than max-interval ({max} ms): swap them or raise max-interval"
    )]
    Inverted {
        /// As configured.
        min: Duration,
        /// As configured.
        max: Duration,
    },
    /// A loop without a pause.
    #[error("{field} is 0: a unit would be polled without a pause; give it at least 1 ms")]
    Zero {
        /// Which one.
        field: &'static str,
    },
}

impl Interval {
    /// Refuses an empty range, and a range that allows a loop without a pause.
    pub fn check(&self) -> Result<(), IntervalError> {
        if self.min == 0 {
            return Err(IntervalError::Zero {
                field: "min-interval",
            });
        }
        if self.freshness == Some(0) {
            return Err(IntervalError::Zero { field: "freshness" });
        }
        if self.min > self.max {
            return Err(IntervalError::Inverted {
                min: self.min,
                max: self.max,
            });
        }
        Ok(())
    }

    /// The longest interval that may be chosen.
    pub fn ceiling(&self) -> Duration {
        self.freshness
            .map_or(self.max, |fresh| fresh.min(self.max))
            .max(1)
    }

    /// The shortest interval that may be chosen.
    pub fn floor(&self) -> Duration {
        self.min.clamp(1, self.ceiling())
    }
}

/// What is remembered of a unit's interval between polls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntervalState {
    /// The rule's last choice in ms, before any floor; 0 before the first poll.
    pub current: Duration,
    /// Polls in a row that found nothing.
    pub consecutive_empties: u32,
}

/// What a poll that went well has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// Records, and its last page was not full (or led on to a next page).
    Productive,
    /// A full page without a next step: there was more and the vendor hid it. The poll is `truncated`.
    FullNoNext,
    /// Nothing new, or 304.
    Empty,
}

/// What no strategy may go below, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floors {
    /// The pause for which the vendor asked (`X-Poll-Interval`).
    pub vendor: Option<Duration>,
    /// What its latency says it can bear ([`crate::miad`]).
    pub pressure: Option<Duration>,
}

/// Why an interval was chosen; the poll log keeps it as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It found records: more often.
    Productive,
    /// A full page without a next step: the minimum.
    Truncated,
    /// It found nothing, this often in a row: more rarely.
    Empty(u32),
    /// When a record is to be expected.
    Expected,
    /// The strategy would have slept longer than the promised freshness.
    Freshness,
    /// The vendor asked for a longer pause.
    VendorAsked,
    /// The vendor's latency asked for a longer pause.
    Pressure,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Productive => f.write_str("found records: sooner"),
            Why::Truncated => f.write_str("full page without a next one: at the minimum"),
            Why::Empty(1) => f.write_str("found nothing new: later"),
            Why::Empty(times) => write!(f, "found nothing new {times} times in a row: later"),
            Why::Expected => f.write_str("when a record is to be expected"),
            Why::Freshness => f.write_str("held at the promised freshness"),
            Why::VendorAsked => f.write_str("the vendor asked for this pause"),
            Why::Pressure => f.write_str("the vendor answers slowly: backing off"),
        }
    }
}

/// The interval after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// To be stored with the poll.
    pub state: IntervalState,
    /// How long until the next poll, in ms.
    pub interval: Duration,
    /// The part of it that must pass after the poll's end, whatever the grid says; 0 when nobody asked.
    pub pause: Duration,
    /// Why.
    pub why: Why,
    /// It is longer than the freshness that the user was promised: the vendor does not allow that.
    pub late: bool,
}

/// Chooses the interval after a poll that went well. A failed poll leaves the interval alone: its fault says
/// when to come back. `expected` is what [`crate::rhythm`] says, in ms; the other strategies don't ask.
pub fn next(
    config: &Interval,
    state: IntervalState,
    found: Yield,
    floors: Floors,
    expected: Option<Duration>,
) -> Chosen {
    let (floor, ceiling) = (config.floor(), config.ceiling());
    let current = state.current.clamp(floor, ceiling);
    let empties = match found {
        Yield::Empty => state.consecutive_empties.saturating_add(1),
        Yield::Productive | Yield::FullNoNext => 0,
    };
    let (wanted, mut why) = match (found, config.strategy) {
        (Yield::FullNoNext, _) => (floor, Why::Truncated),
        (_, Strategy::Rhythm) => (expected.unwrap_or(floor), Why::Expected),
        (Yield::Productive, Strategy::Yield) => {
            (current / 5 * 4 + current % 5 * 4 / 5, Why::Productive)
        }
        (Yield::Productive, Strategy::Reset) => (floor, Why::Productive),
        (Yield::Empty, Strategy::Yield) => (geometric(floor, empties), Why::Empty(empties)),
        (Yield::Empty, Strategy::Reset) => (current.saturating_mul(2), Why::Empty(empties)),
    };
    let chosen = wanted.clamp(floor, ceiling);
    if wanted > ceiling && ceiling < config.max {
        why = Why::Freshness;
    }

    let vendor = floors.vendor.unwrap_or(0);
    let pressure = floors.pressure.unwrap_or(0);
    let interval = chosen.max(vendor).max(pressure);
    if interval > chosen {
        why = if vendor >= pressure {
            Why::VendorAsked
        } else {
            Why::Pressure
        };
    }
    Chosen {
        state: IntervalState {
            current: chosen,
            consecutive_empties: empties,
        },
        interval,
        pause: vendor.max(pressure),
        why,
        late: config.freshness.is_some_and(|fresh| interval > fresh),
    }
}

/// `min` x 1.5 for each empty poll in a row, of which six count.
fn geometric(min: Duration, empties: u32) -> Duration {
    let steps = empties.min(MAX_EMPTIES);
    let grown = u128::from(min) * 3_u128.pow(steps) / 2_u128.pow(steps);
    Duration::try_from(grown).unwrap_or(Duration::MAX)
}

/// When a poll was meant to start, did start, and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its due time.
    pub intended: Timestamp,
    /// When its first call went out.
    pub started: Timestamp,
    /// When it was committed.
    pub ended: Timestamp,
}

/// When a unit is due again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The moment.
    pub at: Timestamp,
    /// The poll took longer than its own interval: the unit can't keep its pace, and says so.
    pub overrun: bool,
}

/// The next due time: on the grid that the intended start laid out, so that small delays don't add up, and
/// never before the poll has ended.
///
/// Missed grid points are skipped, not made up: one slow poll or a night in suspend is followed by one poll,
/// not by a salvo. It always lies within `max(interval, pause)` of the end, also when the clock was set back
/// during the poll.
pub fn next_due(span: Span, interval: Duration, pause: Duration) -> Due {
    let step = i64::try_from(interval).unwrap_or(i64::MAX).max(1);
    let pause = i64::try_from(pause).unwrap_or(i64::MAX);
    let intended = span.intended.min(span.ended);
    let behind = span.ended.saturating_sub(intended);
    let steps = (behind / step + i64::from(behind % step != 0)).max(1);
    let on_grid = intended.saturating_add(step.saturating_mul(steps));
    let took = span.ended.saturating_sub(span.started);
    Due {
        at: on_grid.max(span.ended.saturating_add(pause)),
        overrun: took > step,
    }
}

#[cfg(test)]
mod tests;
