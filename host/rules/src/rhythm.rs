//! When to look next, from the records' own rhythm: how long it was quiet between the writes seen so far.
//!
//! A call is worth it once a record that may have been written meanwhile has waited, in expectation, for about as long
//! as the shortest interval. How likely one has been written follows from the silences that were longer than the
//! present one, and from one more that was not seen: silences come in all lengths, and the longer one has
//! lasted, the longer it may last.
//!
//! So a dense burst is read at about the minimum, the end of a burst is told by the age of its last record (no call is
//! needed to find nothing), few calls are made where records never come, between two beats, and a long silence is
//! sampled ever more rarely, though not as rarely as by doubling.
//!
//! Promises: no clock, no chance; the same writes give the same interval on every machine. Bounded state: a weight per
//! quarter of a doubling. What it wants is clamped by [`crate::interval`] like any strategy's wish.

use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Timestamp};

/// The expected wait that a call is worth, in parts of the shortest interval. Tried against bursts, cycles, chance,
/// beats and heavy tails: fewer calls and shorter waits than doubling in all of them.
const WORTH: f64 = 0.85;
/// The weight of one silence. Whole numbers, since stored fractions come back a little different.
const WEIGHT: u32 = 1_000;
/// A weight below this is forgotten.
const FAINT: u32 = 10;
/// Classes of lengths per doubling.
const STEPS: u32 = 4;

/// What is remembered of a unit's writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rhythm {
    /// The newest write, in the vendor's time; before any, when the watch began.
    last: Option<Timestamp>,
    /// How late even the promptest records have become visible lately, in ms.
    late: u64,
    /// Silences between writes: weight by class of length.
    silences: BTreeMap<u8, u32>,
}

impl Rhythm {
    /// Nothing has been watched.
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// A poll has ended at `now`, by the vendor's clock. `lags` are the ages of its new and changed records in ms; it may
    /// have found some without ages.
    pub fn observe(&mut self, productive: bool, lags: &[i64], now: Timestamp) {
        let Some(watched) = self.last else {
            self.last = Some(now);
            return;
        };
        if !productive {
            return;
        }
        // What was learnt fades with each poll that finds something.
        for weight in self.silences.values_mut() {
            *weight -= *weight / 20;
        }
        self.silences.retain(|_, weight| *weight > FAINT);
        let mut ages: Vec<i64> = lags.iter().map(|lag| (*lag).max(0)).collect();
        if ages.is_empty() {
            ages.push(0);
        }
        ages.sort_unstable_by(|a, b| b.cmp(a));
        let youngest = ages.last().copied().unwrap_or(0).unsigned_abs();
        self.late = if youngest < self.late || self.silences.is_empty() {
            youngest
        } else {
            self.late.saturating_add((youngest - self.late) / 8)
        };
        let mut last = watched;
        for age in ages {
            let written = now.saturating_sub(age);
            // An edit that shows up behind later ones says nothing of a silence.
            if written > last {
                let quiet = written.saturating_sub(last).unsigned_abs();
                let weight = self.silences.entry(class(quiet)).or_default();
                *weight = weight.saturating_add(WEIGHT);
                last = written;
            }
        }
        self.last = Some(last);
    }

    /// How long to wait from `now` on, in ms.
    pub fn expected(&self, now: Timestamp, floor: Duration, ceiling: Duration) -> Duration {
        let last = self.last.unwrap_or(now);
        let age = now.saturating_sub(last).max(0).unsigned_abs();
        let age = age.saturating_sub(self.late).max(1) as f64;
        let longer: Vec<(f64, f64)> = self
            .silences
            .iter()
            .filter_map(|(class, weight)| {
                remaining(*class, f64::from(*weight) / f64::from(WEIGHT), age)
            })
            .collect();
        let weight = 1.0 + longer.iter().map(|(_, weight)| weight).sum::<f64>();
        // The expected wait, after so long, of what may have been written meanwhile.
        let waited = |ms: f64| {
            let unseen = ms - 2.0 * age.sqrt() * ((age + ms).sqrt() - age.sqrt());
            let seen: f64 = longer
                .iter()
                .map(|(left, weight)| weight * (ms - left).max(0.0))
                .sum();
            (unseen + seen) / weight
        };
        let worth = WORTH * floor as f64;
        let (mut low, mut high) = (0, ceiling);
        while low < high {
            let middle = low + (high - low) / 2;
            if waited(middle as f64) < worth {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Quarters of a doubling, from 1 ms on.
fn class(quiet: u64) -> u8 {
    let quiet = quiet.max(1);
    let doublings = quiet.ilog2();
    let part = (0..STEPS)
        .rev()
        .find(|part| quiet as f64 >= bound(doublings * STEPS + part))
        .unwrap_or(0);
    u8::try_from(doublings * STEPS + part).unwrap_or(u8::MAX)
}

/// Where a class begins, in ms.
fn bound(class: u32) -> f64 {
    let quarter = [1.0, SQRT_2.sqrt(), SQRT_2, SQRT_2 * SQRT_2.sqrt()];
    let doublings = i32::try_from(class / STEPS).unwrap_or(i32::MAX);
    2_f64.powi(doublings) * quarter.get((class % STEPS) as usize).unwrap_or(&1.0)
}

/// How much longer a silence of that class would last, and with what weight; none where the present one has outlasted it.
fn remaining(of: u8, weight: f64, age: f64) -> Option<(f64, f64)> {
    let (from, to) = (bound(u32::from(of)), bound(u32::from(of) + 1));
    if to <= age {
        return None;
    }
    let begin = from.max(age);
    Some((
        (begin + to) / 2.0 - age,
        weight * (to - begin) / (to - from),
    ))
}

#[cfg(test)]
mod tests;
