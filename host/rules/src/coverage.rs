//! Which parts of a stream have been walked, and what is missing between them.
//!
//! A source that answers 429 for six hours raises no error anywhere; its hole shows up here. Promises: what is
//! covered was walked to its end and committed; extents are half-open, in the vendor's time, and touching ones
//! become one; a hole stays listed until it is filled; moving the start date back opens a hole and throws nothing
//! away.

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Order, Timestamp, Window};

/// A part of a stream: `since <= updated_at < until`. "From the beginning" is the smallest timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Extent {
    /// First moment.
    pub since: Timestamp,
    /// First moment after it.
    pub until: Timestamp,
}

impl Extent {
    /// The length in ms.
    pub fn width(&self) -> Duration {
        self.until.saturating_sub(self.since).max(0).unsigned_abs()
    }

    /// What both hold; none when they have nothing in common.
    pub fn common(&self, other: Extent) -> Option<Extent> {
        let both = Extent {
            since: self.since.max(other.since),
            until: self.until.min(other.until),
        };
        (both.since < both.until).then_some(both)
    }

    /// What is left of it without the other: nothing, one part or two.
    pub fn without(&self, other: Extent) -> Vec<Extent> {
        let Some(common) = self.common(other) else {
            return vec![*self];
        };
        let parts = [
            Extent {
                until: common.since,
                ..*self
            },
            Extent {
                since: common.until,
                ..*self
            },
        ];
        let parts = parts.into_iter();
        parts.filter(|part| part.since < part.until).collect()
    }
}

impl From<Window> for Extent {
    fn from(window: Window) -> Self {
        Extent {
            since: window.since.unwrap_or(Timestamp::MIN),
            until: window.until,
        }
    }
}

/// What has been walked of one unit: sorted extents that don't touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    from = "Vec<(Timestamp, Timestamp)>",
    into = "Vec<(Timestamp, Timestamp)>"
)]
pub struct Coverage {
    extents: Vec<Extent>,
}

impl From<Vec<(Timestamp, Timestamp)>> for Coverage {
    fn from(pairs: Vec<(Timestamp, Timestamp)>) -> Self {
        let mut coverage = Coverage::default();
        for (since, until) in pairs {
            coverage.add(Extent { since, until });
        }
        coverage
    }
}

impl From<Coverage> for Vec<(Timestamp, Timestamp)> {
    fn from(coverage: Coverage) -> Self {
        let extents = coverage.extents.into_iter();
        extents.map(|extent| (extent.since, extent.until)).collect()
    }
}

impl Coverage {
    /// What is covered, oldest first.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// An extent has been walked to its end and committed. Empty ones change nothing.
    pub fn add(&mut self, extent: Extent) {
        if extent.since >= extent.until {
            return;
        }
        let first = self
            .extents
            .partition_point(|have| have.until < extent.since);
        let last = self
            .extents
            .partition_point(|have| have.since <= extent.until);
        let merged = self
            .extents
            .get(first..last)
            .unwrap_or_default()
            .iter()
            .fold(extent, |merged, have| Extent {
                since: merged.since.min(have.since),
                until: merged.until.max(have.until),
            });
        self.extents.splice(first..last, [merged]);
    }

    /// Nothing is covered.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// An extent is not covered after all.
    pub fn remove(&mut self, extent: Extent) {
        let extents = std::mem::take(&mut self.extents);
        self.extents = extents
            .into_iter()
            .flat_map(|have| have.without(extent))
            .collect();
    }

    /// Takes in all that another one covers.
    pub fn merge(&mut self, other: &Coverage) {
        for extent in &other.extents {
            self.add(*extent);
        }
    }

    /// The whole extent is covered.
    pub fn covers(&self, extent: Extent) -> bool {
        extent.since >= extent.until || self.missing(extent.since, extent.until).is_empty()
    }

    /// What is not covered between the unit's start and `until`, oldest first.
    pub fn missing(&self, start: Timestamp, until: Timestamp) -> Vec<Extent> {
        let mut missing = Vec::new();
        let mut from = start;
        for have in self.extents.iter().filter(|have| have.until > start) {
            if have.since >= until {
                break;
            }
            if have.since > from {
                missing.push(Extent {
                    since: from,
                    until: have.since,
                });
            }
            from = have.until;
        }
        if from < until {
            missing.push(Extent { since: from, until });
        }
        missing
    }

    /// The holes: what is missing before the newest covered moment and is wider than `threshold` ms. What is
    /// newer is not missing, it is due.
    pub fn holes(&self, start: Timestamp, threshold: Duration) -> Vec<Extent> {
        let Some(newest) = self.extents.last() else {
            return Vec::new();
        };
        let mut holes = self.missing(start, newest.until);
        holes.retain(|hole| hole.width() > threshold);
        holes
    }
}

/// How it is known that something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapSource {
    /// Neighbouring windows don't touch, or the start date was moved back.
    Untouched,
    /// The vendor had more and would not give it.
    Truncated,
    /// Every try of the window failed.
    GivenUp,
    /// Two successive answers of a feed of the newest records have none in common.
    NoOverlap,
    /// The vendor answers narrow windows alone, and nobody said where the stream begins.
    NoStart,
    /// A person asked for the part to be read again; nothing need be missing.
    Asked,
}

/// A part of a stream that may hold records which never arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Where.
    pub extent: Extent,
    /// How it is known.
    pub source: GapSource,
    /// When it was found, by this machine's clock; 0 when an older program found it.
    #[serde(default)]
    pub found: Timestamp,
    /// What else is known of it: the ids on both of its sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The widest part that is asked for at once, in ms: wider ones hit the vendor's result cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<Duration>,
    /// Walks of it in a row that brought nothing that can be trusted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u32,
    /// Why the vendor can't fill it any more. It is not tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// A person has taken note that it can't be filled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
}

impl Gap {
    /// A gap that has just been found.
    pub fn new(extent: Extent, source: GapSource, found: Timestamp) -> Gap {
        Gap {
            extent,
            source,
            found,
            detail: None,
            slice: None,
            tries: 0,
            lost: None,
            accepted: false,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a truncated walk may still vouch for: up to the newest stamp it saw, or down to the oldest, by the order of
/// the listing. The last stamp itself is left out, since others may share it. None where the order says nothing.
pub fn walked_part(
    order: Order,
    window: Window,
    oldest: Option<Timestamp>,
    newest: Option<Timestamp>,
) -> Option<Extent> {
    let whole = Extent::from(window);
    let part = match order {
        Order::Ascending => Extent {
            until: newest?.min(whole.until),
            ..whole
        },
        Order::Descending => Extent {
            since: oldest?.saturating_add(1).max(whole.since),
            ..whole
        },
        Order::Unordered => return None,
    };
    (part.since < part.until).then_some(part)
}

/// The rest of a window, given what was walked of it.
pub fn left_over(window: Window, walked: &Coverage) -> Vec<Extent> {
    let whole = Extent::from(window);
    walked.missing(whole.since, whole.until)
}

/// Cuts an extent whose answer hit the vendor's result cap in two that touch, at a moment that the vendor can
/// tell apart. None: it can't be cut, so many records share one stamp that only a person can help.
pub fn split(extent: Extent, granularity: Duration) -> Option<(Extent, Extent)> {
    let grain = i64::try_from(granularity).unwrap_or(i64::MAX).max(1);
    if extent.since == Timestamp::MIN {
        return None;
    }
    let half = extent
        .since
        .saturating_add(i64::try_from(extent.width() / 2).ok()?);
    let down = half.saturating_sub(half.rem_euclid(grain));
    let middle = if down > extent.since {
        down
    } else {
        down.saturating_add(grain)
    };
    (extent.since < middle && middle < extent.until).then_some((
        Extent {
            until: middle,
            ..extent
        },
        Extent {
            since: middle,
            ..extent
        },
    ))
}

/// One answer of a feed that shows only the newest records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feed {
    /// Records in the answer, all its pages together.
    pub records: u64,
    /// Of them: known from earlier polls.
    pub known: u64,
    /// The newest stamp of the polls before; none on a first poll.
    pub newest_before: Option<Timestamp>,
    /// The oldest stamp of this answer.
    pub oldest: Option<Timestamp>,
}

/// The gap between two successive answers that share nothing: records came and went between the two polls. The unit
/// should poll at its minimum. Answers with stamps that overlap all the same, and quiet feeds, have none.
pub fn fell_off(feed: &Feed) -> Option<Extent> {
    let (before, oldest) = (feed.newest_before?, feed.oldest?);
    let extent = Extent {
        since: before.saturating_add(1),
        until: oldest,
    };
    (feed.records > 0 && feed.known == 0 && extent.since < extent.until).then_some(extent)
}

#[cfg(test)]
mod tests;
