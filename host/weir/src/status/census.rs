//! One pass over all units: how many are in which state, and what is odd about them.
//!
//! It keeps numbers, not rows: there may be 100,000.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_rules::coverage::Gap;
use weir_rules::miad::Miad;
use weir_rules::model::{Class, Timestamp};
use weir_rules::side::Found;
use weir_rules::unit::UnitState;

use crate::connection::Stream;
use crate::store::UnitRow;
use crate::verbs::text::{count, length, moment};

/// A wait longer than this, in ms, is worth a person's look.
const LONG_WAIT: i64 = 86_400_000;
/// What second looks have found is told for this long, in ms.
const FOUND_FOR: i64 = 7 * 86_400_000;
/// Units that are named for one reason.
const NAMED: usize = 5;

/// How much a unit needs a look: the most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Not polled until a person has looked at it.
    Parked,
    /// Records may be missing.
    Gap,
    /// Its last poll did not bring everything.
    Failing,
    /// Its vendor wants a pause.
    Waiting,
    /// It is polled and brings nothing new, for longer than ever.
    Still,
    /// It has never been polled to the end.
    New,
    /// Nothing to see.
    Fine,
}

impl Rank {
    /// A unit's.
    pub fn of(state: &UnitState, oddities: &Oddities) -> Rank {
        let last = state.last.as_ref().map(|last| last.outcome.as_str());
        match last {
            _ if state.needs_review() => Rank::Parked,
            _ if state.gaps.pending().next().is_some() || oddities.behind.is_some() => Rank::Gap,
            Some("failed" | "incomplete" | "truncated" | "needs-sign-in") => Rank::Failing,
            _ if state.waiting.is_some() => Rank::Waiting,
            _ if oddities.still.is_some() => Rank::Still,
            _ if !state.synced => Rank::New,
            _ => Rank::Fine,
        }
    }

    /// The word for it in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Rank::Parked => "parked",
            Rank::Gap => "gap",
            Rank::Failing => "failing",
            Rank::Waiting => "waiting",
            Rank::Still => "still",
            Rank::New => "new",
            Rank::Fine => "fine",
        }
    }
}

/// What is odd about a unit without being a fault of any poll.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Oddities {
    /// The part that has not been read because every try fails.
    pub behind: Option<Gap>,
    /// It is polled and brings nothing new, for longer than ever: in words.
    pub still: Option<String>,
    /// What a second look has found lately that every poll before it had missed.
    pub late: Option<Found>,
    /// Its listing is not in the order that its connector says.
    pub disordered: bool,
}

impl Oddities {
    /// A unit's. Without its stream (its connection is not ready) less is known.
    pub fn of(state: &UnitState, stream: Option<&Stream>, now: Timestamp) -> Oddities {
        let recently = |found: &&Found| now.saturating_sub(found.at) < FOUND_FOR;
        let standing = state
            .standing(now)
            .filter(|_| state.parked.is_none() && state.waiting.is_none());
        Oddities {
            behind: stream.and_then(|stream| state.behind(&stream.settings, now)),
            still: standing.map(|standing| {
                let silence = state.clock.now(now).abs_diff(standing.since);
                format!(
                    "stands still: nothing new for {} in {}, before that never longer than {}",
                    length(silence),
                    count(u64::from(standing.polls), "poll"),
                    length(standing.longest)
                )
            }),
            late: state.side.found.as_ref().filter(recently).cloned(),
            disordered: state.disordered,
        }
    }
}

/// What a second look found, in words.
pub(crate) fn late_words(found: &Found) -> String {
    format!(
        "a second look found {} new and {} changed that came late, last at {}",
        found.new,
        found.changed,
        moment(found.at)
    )
}

/// The units, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// All of them.
    pub units: u64,
    /// Polls in flight.
    pub polling: u64,
    /// Never polled to the end.
    pub unsynced: u64,
    /// Wait for a vendor.
    pub waiting: u64,
    /// Of them: for more than a day.
    pub long_waits: u64,
    /// Their last poll failed.
    pub failing: u64,
    /// Not polled until a person has looked.
    pub parked: u64,
    /// Of them: with a code that nobody has mapped.
    pub unknown: u64,
    /// Of them: ran out of retries, or refused for good. A person who has given a unit up is not asked again.
    pub given_up: u64,
    /// As rarely polled as their vendor's slowness can make it.
    pub pinned: u64,
    /// What is promised of their interval is not kept.
    pub unkept: u64,
    /// Are polled and bring nothing new, for longer than ever.
    #[serde(default)]
    pub still: u64,
    /// Of these a second look has lately found what every poll before it had missed.
    #[serde(default)]
    pub late: u64,
    /// Their listing is not in the order that their connector says.
    #[serde(default)]
    pub disordered: u64,
    /// Parts of streams that may hold records which never arrived, and units of which nothing has been read for long
    /// because every try fails.
    pub gaps: u64,
    /// Since when the oldest of them is known.
    pub oldest_gap: Option<Timestamp>,
    /// Faults since each unit last went well, by class.
    pub faults: BTreeMap<Class, u64>,
    /// Units that the configuration no longer has; what is stored of them stays.
    pub retired: u64,
}

/// The units of one stream, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamTotals {
    /// By the word of their [`Rank`].
    pub units: BTreeMap<String, u64>,
    /// Held at the longest interval by a slow vendor.
    pub pinned: u64,
    /// Polled and bring nothing new, for longer than ever.
    #[serde(default)]
    pub still: u64,
    /// In another order than their connector says.
    #[serde(default)]
    pub disordered: u64,
    /// Open gaps, and units of which nothing has been read for long because every try fails.
    pub gaps: u64,
    /// The widest overlap that is chosen for one of them, in ms.
    pub overlap: u64,
}

/// A unit that is named for some reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The unit.
    pub unit: String,
    /// What there is to say.
    pub what: String,
}

/// What a pass over the units found.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// All of them.
    pub totals: Totals,
    /// By connection and stream.
    pub streams: BTreeMap<(String, String), StreamTotals>,
    /// By connection.
    pub connections: BTreeMap<String, u64>,
    /// Some that ran out of retries or were refused for good, each with its last error.
    pub given_up: Vec<Named>,
    /// Some that were parked with a code that nobody has mapped.
    pub unknown: Vec<Named>,
    /// Some that wait for more than a day.
    pub long_waits: Vec<Named>,
    /// Some that a slow vendor holds at the longest interval.
    pub pinned: Vec<Named>,
    /// Some that are polled and bring nothing new.
    pub still: Vec<Named>,
    /// Some of which a second look has found what had been missed.
    pub late: Vec<Named>,
    /// Some in another order than their connector says.
    pub disordered: Vec<Named>,
}

impl Census {
    /// Counts a unit.
    pub fn count(
        &mut self,
        unit: &UnitRow,
        stream: Option<&Stream>,
        polling: bool,
        now: Timestamp,
    ) -> (Rank, Oddities) {
        let state = &unit.state;
        let oddities = Oddities::of(state, stream, now);
        let rank = Rank::of(state, &oddities);
        let name = || unit.key.to_string();
        let totals = &mut self.totals;
        totals.units += 1;
        totals.polling += u64::from(polling);
        totals.unsynced += u64::from(!state.synced);
        totals.failing += u64::from(rank == Rank::Failing);
        totals.unkept += u64::from(
            state
                .last
                .as_ref()
                .is_some_and(|last| last.unkept.is_some()),
        );
        if let Some(waiting) = &state.waiting {
            totals.waiting += 1;
            if waiting.until.saturating_sub(now) > LONG_WAIT {
                totals.long_waits += 1;
                let until = moment(waiting.until);
                name_one(&mut self.long_waits, name, || {
                    format!("until {until}: {}", waiting.why)
                });
            }
        }
        if let Some(parked) = &state.parked {
            totals.parked += 1;
            let what = || format!("{} {} {}", parked.class.name(), parked.code, parked.message);
            if parked.given_up {
                // A person knows.
            } else if parked.class == Class::Unknown {
                totals.unknown += 1;
                name_one(&mut self.unknown, name, what);
            } else {
                totals.given_up += 1;
                name_one(&mut self.given_up, name, what);
            }
        }
        let pinned = state.miad.is_pinned(&Miad::default());
        if pinned {
            totals.pinned += 1;
            name_one(&mut self.pinned, name, || {
                format!("polled every {} s at most", state.miad.interval / 1_000)
            });
        }
        if let Some(still) = &oddities.still {
            totals.still += 1;
            name_one(&mut self.still, name, || still.clone());
        }
        if let Some(found) = &oddities.late {
            totals.late += 1;
            name_one(&mut self.late, name, || late_words(found));
        }
        if oddities.disordered {
            totals.disordered += 1;
            name_one(&mut self.disordered, name, || {
                "nothing relies on the order any more".to_owned()
            });
        }
        let pending = || state.gaps.pending().chain(&oddities.behind);
        let gaps = pending().count() as u64;
        totals.gaps += gaps;
        let oldest = pending().map(known_since).min();
        totals.oldest_gap = totals.oldest_gap.into_iter().chain(oldest).min();
        for (class, count) in &state.faults.counts {
            *totals.faults.entry(*class).or_default() += u64::from(*count);
        }

        let key = (unit.key.connection.clone(), unit.key.stream.clone());
        *self.connections.entry(key.0.clone()).or_default() += 1;
        let of_stream = self.streams.entry(key).or_default();
        *of_stream.units.entry(rank.name().to_owned()).or_default() += 1;
        of_stream.pinned += u64::from(pinned);
        of_stream.gaps += gaps;
        of_stream.still += u64::from(oddities.still.is_some());
        of_stream.disordered += u64::from(oddities.disordered);
        if let Some(stream) = stream {
            of_stream.overlap = of_stream.overlap.max(state.overlap(&stream.settings));
        }
        (rank, oddities)
    }
}

/// Since when a gap is known; of one that an older program has found, where it ends.
fn known_since(gap: &Gap) -> Timestamp {
    if gap.found == 0 {
        gap.extent.until
    } else {
        gap.found
    }
}

fn name_one(named: &mut Vec<Named>, unit: impl FnOnce() -> String, what: impl FnOnce() -> String) {
    if named.len() < NAMED {
        named.push(Named {
            unit: unit(),
            what: what(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{UnitId, UnitKey};
    use weir_rules::unit::{Last, Parked, Waiting};

    fn with(change: impl FnOnce(&mut UnitState)) -> UnitState {
        let mut state = UnitState {
            synced: true,
            ..UnitState::default()
        };
        change(&mut state);
        state
    }

    fn ended(outcome: &str) -> Option<Last> {
        Some(Last {
            ended: 5,
            outcome: outcome.to_owned(),
            message: None,
            unkept: None,
        })
    }

    fn parked(class: Class, given_up: bool) -> Option<Parked> {
        Some(Parked {
            since: 1,
            class,
            code: "418".into(),
            message: "teapot".into(),
            given_up,
        })
    }

    fn waits(until: Timestamp) -> Option<Waiting> {
        Some(Waiting {
            until,
            why: "429".into(),
        })
    }

    #[test]
    fn what_needs_a_look_comes_first() {
        let ranks = [
            with(|s| s.parked = parked(Class::Unknown, false)),
            with(|s| s.last = ended("failed")),
            with(|s| s.waiting = waits(9)),
            with(|s| s.synced = false),
            with(|s| s.last = ended("ok")),
        ]
        .map(|state| Rank::of(&state, &Oddities::default()));
        assert_eq!(
            ranks,
            [
                Rank::Parked,
                Rank::Failing,
                Rank::Waiting,
                Rank::New,
                Rank::Fine
            ]
        );
        assert!(ranks.is_sorted());
    }

    #[test]
    fn what_is_odd_without_being_a_fault_is_counted_and_named() {
        let stood = with(|s| {
            for minute in 0..8 {
                s.still.observe(true, minute * 60_000);
            }
            for minute in 8..300 {
                s.still.observe(false, minute * 60_000);
            }
        });
        let late = with(|s| {
            s.side.found = Some(Found {
                at: 0,
                new: 3,
                changed: 1,
            });
        });
        let long_ago = with(|s| {
            s.side.found = Some(Found {
                at: -FOUND_FOR,
                new: 3,
                changed: 1,
            });
        });
        let mut census = Census::default();
        let now = 300 * 60_000;
        for (n, state) in (1..).zip([stood, late, long_ago, with(|s| s.disordered = true)]) {
            let unit = UnitRow {
                id: UnitId(n),
                key: UnitKey {
                    connection: "shop".into(),
                    stream: n.to_string(),
                    partition: None,
                },
                state,
                due: None,
            };
            census.count(&unit, None, false, now);
        }
        let totals = &census.totals;
        assert_eq!((totals.still, totals.late, totals.disordered), (1, 1, 1));
        assert_eq!(
            census.still[0].what,
            "stands still: nothing new for 4 h in 292 polls, before that never longer than 60 s"
        );
        assert_eq!(
            census.late[0].what,
            "a second look found 3 new and 1 changed that came late, last at 1970-01-01 00:00:00Z"
        );
        assert_eq!(census.disordered[0].unit, "shop/4");
    }

    #[test]
    fn every_signal_of_a_unit_is_counted_and_some_are_named() {
        let max = Miad::default().max;
        let states = [
            with(|s| s.parked = parked(Class::Unknown, false)),
            with(|s| s.parked = parked(Class::Permanent, false)),
            with(|s| s.parked = parked(Class::Permanent, true)),
            with(|s| s.waiting = waits(LONG_WAIT + 1)),
            with(|s| s.waiting = waits(LONG_WAIT)),
            with(|s| s.miad.interval = max),
            with(|s| s.miad.interval = max - 1),
        ];
        let mut census = Census::default();
        for (n, state) in (1..).zip(states) {
            let unit = UnitRow {
                id: UnitId(n),
                key: UnitKey {
                    connection: "shop".into(),
                    stream: "orders".into(),
                    partition: Some(n.to_string()),
                },
                state,
                due: None,
            };
            census.count(&unit, None, false, 0);
        }
        let totals = &census.totals;
        assert_eq!((totals.units, totals.parked, totals.unknown), (7, 3, 1));
        assert_eq!(totals.given_up, 1, "a person knows of the other one");
        assert_eq!(
            (totals.waiting, totals.long_waits, totals.pinned),
            (2, 1, 1)
        );
        assert_eq!(census.given_up[0].unit, "shop/orders/2");
        assert_eq!(census.given_up[0].what, "permanent 418 teapot");
        assert_eq!(census.pinned[0].unit, "shop/orders/6");
        assert_eq!(census.connections["shop"], 7);
    }
}
