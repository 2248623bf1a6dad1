//! The writers: a seeded stream of inserts, edits and deletions in the order of true time.

use crate::dice::{Dice, seed_for};
use crate::spec::{CollectionSpec, Op, WritesSpec};

/// A write that is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) record: u64,
    pub(crate) deleted: bool,
    pub(crate) written: i64,
    /// Before it is cut to the vendor's granularity.
    pub(crate) stamp: i64,
    pub(crate) visible_from: i64,
}

/// How many of the last written records an ordinary edit picks from.
const RECENT: usize = 20;

#[derive(Debug)]
pub(crate) struct Generator {
    spec: WritesSpec,
    dice: Dice,
    start: i64,
    /// When the next random write happens.
    next_at: Option<i64>,
    /// The next scripted write.
    scripted: usize,
    /// How many numbers have been given.
    numbers: u64,
    alive: Vec<u64>,
    dead: Vec<u64>,
    /// The instant and stamp of the last random write, for ties.
    last: Option<(i64, i64)>,
}

impl Generator {
    pub(crate) fn new(spec: &CollectionSpec, seed: u64, start: i64) -> Self {
        let mut writes = spec.writes.clone();
        writes.script.sort_by_key(|write| write.at_ms);
        let mut generator = Generator {
            dice: Dice::new(seed_for(seed, &format!("writes of {}", spec.name))),
            spec: writes,
            start,
            next_at: None,
            scripted: 0,
            numbers: 0,
            alive: Vec::new(),
            dead: Vec::new(),
            last: None,
        };
        generator.next_at = generator.gap_after(start);
        generator
    }

    /// The records that are there at the start, oldest first, with the moments of their writing.
    pub(crate) fn initial(&mut self) -> Vec<(u64, i64)> {
        let count = self.spec.initial;
        let mut moments: Vec<i64> = (0..count)
            .map(|_| self.start - self.dice.between(0, self.spec.initial_span_ms))
            .collect();
        moments.sort_unstable();
        // Ties as later: a record takes the stamp of the one before.
        for index in 1..moments.len() {
            if self.dice.chance(self.spec.ties)
                && let (Some(before), Some(moment)) =
                    (moments.get(index - 1).copied(), moments.get_mut(index))
            {
                *moment = before;
            }
        }
        self.alive.extend(0..count);
        self.numbers = count;
        (0..count).zip(moments).collect()
    }

    /// The next write that happens no later than `until`.
    pub(crate) fn next(&mut self, until: i64) -> Option<Planned> {
        let scripted = self
            .spec
            .script
            .get(self.scripted)
            .map(|write| self.start + write.at_ms);
        match (scripted, self.next_at) {
            (Some(at), random) if at <= until && random.is_none_or(|random| at <= random) => {
                self.script()
            }
            (_, Some(at)) if at <= until => Some(self.random(at)),
            _ => None,
        }
    }

    /// A write from outside: its record can be edited and deleted like any other.
    pub(crate) fn note(&mut self, record: u64, deleted: bool) {
        self.numbers = self.numbers.max(record.saturating_add(1));
        self.alive.retain(|alive| *alive != record);
        self.dead.retain(|dead| *dead != record);
        if deleted {
            self.dead.push(record);
        } else {
            self.alive.push(record);
        }
    }

    fn script(&mut self) -> Option<Planned> {
        let write = self.spec.script.get(self.scripted).copied()?;
        self.scripted += 1;
        let deleted = write.op == Op::Delete;
        self.note(write.record, deleted);
        let written = self.start + write.at_ms;
        Some(Planned {
            record: write.record,
            deleted,
            written,
            stamp: write.stamp_ms.map_or(written, |stamp| self.start + stamp),
            visible_from: written + write.lag_ms.max(0),
        })
    }

    fn random(&mut self, at: i64) -> Planned {
        let stamp = match self.last {
            Some((instant, stamp)) if instant == at => stamp,
            _ => at + self.skew(),
        };
        self.last = Some((at, stamp));
        self.next_at = if self.dice.chance(self.spec.ties) {
            Some(at)
        } else {
            self.gap_after(at)
        };
        let (record, deleted) = self.subject();
        Planned {
            record,
            deleted,
            written: at,
            stamp,
            visible_from: at + self.lag(),
        }
    }

    /// Which record is written, and whether that deletes it.
    fn subject(&mut self) -> (u64, bool) {
        let kind = self.dice.unit();
        if !self.alive.is_empty() && kind < self.spec.edits + self.spec.deletes {
            let deleted = kind >= self.spec.edits;
            let pool = if deleted || self.dice.chance(self.spec.late_edits) {
                self.alive.len()
            } else {
                self.alive.len().min(RECENT)
            };
            let back = usize::try_from(self.dice.below(pool as u64)).unwrap_or(0);
            let index = self.alive.len().saturating_sub(1 + back);
            if deleted {
                let record = self.alive.remove(index);
                self.dead.push(record);
                return (record, true);
            }
            if let Some(record) = self.alive.get(index) {
                return (*record, false);
            }
        }
        let record = if !self.dead.is_empty() && self.dice.chance(self.spec.reissues) {
            let index = usize::try_from(self.dice.below(self.dead.len() as u64)).unwrap_or(0);
            self.dead.swap_remove(index)
        } else {
            self.numbers += 1;
            self.numbers - 1
        };
        self.alive.push(record);
        (record, false)
    }

    fn skew(&mut self) -> i64 {
        let writer = self.dice.below(self.spec.writer_skew_ms.len() as u64);
        usize::try_from(writer)
            .ok()
            .and_then(|writer| self.spec.writer_skew_ms.get(writer))
            .copied()
            .unwrap_or(0)
    }

    fn lag(&mut self) -> i64 {
        let lag = self.spec.lag;
        if self.dice.chance(lag.slow) {
            self.dice.between(lag.max_ms, lag.slow_ms)
        } else {
            self.dice.between(lag.min_ms, lag.max_ms)
        }
    }

    /// When the next random write after this moment happens.
    fn gap_after(&mut self, at: i64) -> Option<i64> {
        if self.spec.phases.is_empty() {
            return self.draw(at, self.spec.per_second);
        }
        let phases = self.spec.phases.clone();
        let mut from = at;
        for phase in &phases {
            let (begin, end) = (self.start + phase.from_ms, self.start + phase.until_ms);
            if from >= end {
                continue;
            }
            from = from.max(begin);
            if let Some(next) = self.draw(from, phase.per_second)
                && next < end
            {
                return Some(next);
            }
            from = end;
        }
        None
    }

    fn draw(&mut self, at: i64, per_second: f64) -> Option<i64> {
        if per_second <= 0.0 {
            return None;
        }
        let gap = self.dice.exponential(1000.0 / per_second);
        // At least 1 ms, so that only a tie is a tie.
        Some(at.saturating_add((gap as i64).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Phase, Write};

    fn all(spec: WritesSpec, until: i64) -> Vec<Planned> {
        let spec = CollectionSpec {
            writes: spec,
            ..CollectionSpec::default()
        };
        let mut generator = Generator::new(&spec, 9, 0);
        generator.initial();
        std::iter::from_fn(|| generator.next(until)).collect()
    }

    #[test]
    fn the_rate_is_kept() {
        let spec = WritesSpec {
            per_second: 5.0,
            ..WritesSpec::default()
        };
        let count = all(spec, 1_000_000).len();
        assert!((4500..5500).contains(&count), "{count}");
    }

    #[test]
    fn nothing_is_written_outside_of_the_phases() {
        let phase = |from_ms, until_ms| Phase {
            from_ms,
            until_ms,
            per_second: 20.0,
        };
        let spec = WritesSpec {
            phases: vec![phase(0, 2000), phase(9000, 11_000)],
            ..WritesSpec::default()
        };
        let writes = all(spec, 100_000);
        assert!(writes.len() > 40);
        assert!(
            writes.iter().all(|write| (0..2000).contains(&write.written)
                || (9000..11_000).contains(&write.written))
        );
    }

    #[test]
    fn the_script_is_played_in_time_order_among_the_others() {
        let write = |at_ms, record| Write {
            at_ms,
            record,
            ..Write::default()
        };
        let spec = WritesSpec {
            per_second: 1.0,
            script: vec![write(9000, 700), write(3000, 600)],
            ..WritesSpec::default()
        };
        let writes = all(spec, 20_000);
        assert!(
            writes
                .iter()
                .any(|write| write.record == 600 && write.written == 3000)
        );
        assert!(
            writes
                .iter()
                .any(|write| write.record == 700 && write.written == 9000)
        );
        assert!(writes.is_sorted_by_key(|write| write.written));
    }
}
