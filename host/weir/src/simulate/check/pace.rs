//! How often a unit is polled: when it is due, and not in a loop.

use std::collections::VecDeque;

use weir_rules::model::Timestamp;

use super::super::Moment;
use super::position::Known;
use super::trail::relative;
use super::unit::Unit;
use super::{PATIENCE, Wrong, promise};

/// The span over which polls and calls are counted, in ms.
const MINUTE: u64 = 60_000;

/// A unit's pace.
#[derive(Default)]
pub(super) struct Pace {
    /// When it is due, by the monotonic clock.
    due: Option<u64>,
    due_by_wall: Option<Timestamp>,
    /// Polls of the last minute, by the monotonic clock.
    polls: VecDeque<u64>,
    /// Calls of the last minute, and what they asked for.
    asked: VecDeque<(u64, u64)>,
    /// Polls that nobody would wonder about: asked for, or made because the host was started.
    allowed: u64,
}

impl Pace {
    /// Somebody asks for a poll, or the host starts.
    pub(super) fn allow(&mut self) {
        self.allowed += 1;
    }

    /// Nobody polls it any more.
    pub(super) fn is_never_due(&self) -> bool {
        self.due_by_wall.is_none()
    }

    /// Its stored due time.
    pub(super) fn is_due(&mut self, due: Option<Timestamp>, at: Moment) {
        self.due_by_wall = due;
        self.due = due.map(|due| {
            let wait = due.saturating_sub(at.wall).max(0).unsigned_abs();
            at.monotonic + wait
        });
    }

    /// A host that starts has its wall clock alone.
    pub(super) fn restarted(&mut self, at: Moment) {
        self.allow();
        self.is_due(self.due_by_wall, at);
    }

    /// How often a minute it may be polled: at its shortest interval, with room for retries, slices and people.
    fn bound(&self, shortest: Option<u64>) -> u64 {
        40 + 3 * MINUTE / shortest.unwrap_or(30_000).max(500) + 4 * self.allowed
    }
}

impl Unit {
    /// A call is made: not the same again and again.
    pub(super) fn asks(&mut self, at: Moment, target: u64, text: &str) -> Result<(), Wrong> {
        let bound = self.pace.bound(self.expected.shortest);
        let (now, asked) = (at.monotonic, &mut self.pace.asked);
        asked.push_back((now, target));
        while asked.front().is_some_and(|(at, _)| at + MINUTE < now) {
            asked.pop_front();
        }
        if asked.len() as u64 > bound {
            let same = asked.iter().filter(|(_, other)| *other == target);
            let same = same.count();
            if same as u64 > bound {
                let what = format!("{text} was asked {same} times in a minute");
                return self.wrong(promise::NO_LOOP, what);
            }
        }
        Ok(())
    }

    /// It is polled when it is due.
    pub(super) fn is_on_time(&self, at: Moment) -> Result<(), Wrong> {
        match self.pace.due {
            Some(due) if at.monotonic > due + PATIENCE && !self.is_polled() => {
                let late = i64::try_from(at.monotonic - due).unwrap_or(i64::MAX);
                self.wrong(
                    promise::ON_TIME,
                    format!("it has been due for {} and nobody polls it", relative(late)),
                )
            }
            _ => Ok(()),
        }
    }

    /// A poll has ended: there are not too many of them.
    pub(super) fn is_no_loop(&mut self, at: Moment) -> Result<(), Wrong> {
        // Slices of a catch-up follow each other at once, as long as each begins behind the one before it.
        let next = |known: &Option<Box<Known>>| known.as_ref().and_then(|known| known.resume);
        if next(&self.state) > next(&self.before) {
            return Ok(());
        }
        let (now, polls) = (at.monotonic, &mut self.pace.polls);
        polls.push_back(now);
        while polls.front().is_some_and(|at| at + MINUTE < now) {
            polls.pop_front();
        }
        let bound = self.pace.bound(self.expected.shortest);
        if self.pace.polls.len() as u64 > bound {
            let what = format!("{} polls within a minute", self.pace.polls.len());
            return self.wrong(promise::NO_LOOP, what);
        }
        Ok(())
    }

    /// After a poll that went well the next one comes within the longest interval.
    pub(super) fn is_asked_again_soon(&self, at: Moment) -> Result<(), Wrong> {
        let (Some(longest), Some(due)) = (self.expected.longest, self.pace.due) else {
            return Ok(());
        };
        let wait = due.saturating_sub(at.monotonic);
        if !self.expected.under_pressure && wait > longest + 1_000 {
            let what =
                format!("the next poll is due in {wait} ms, and {longest} ms is the longest");
            return self.wrong(promise::ON_TIME, what);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect::Expected;
    use super::*;

    /// Polls every 100 ms; where each says that the next slice begins.
    fn polls(resumes: impl IntoIterator<Item = Option<Timestamp>>) -> Result<(), Wrong> {
        let mut unit = Unit::new("acme/orders".into(), Expected::default());
        for (number, resume) in (0_u32..).zip(resumes) {
            let mut known = Known::default();
            known.resume = resume;
            unit.before = unit.state.replace(Box::new(known));
            unit.is_no_loop(Moment {
                world: 0,
                wall: 0,
                monotonic: 3_600_000 + 100 * u64::from(number),
            })?;
        }
        Ok(())
    }

    #[test]
    fn slices_that_come_further_are_no_loop_and_those_that_do_not_are() {
        let further = || (0..200).map(Some);
        assert!(polls(further()).is_ok());
        assert!(polls(further().chain([None, None, None])).is_ok());
        assert!(polls(std::iter::repeat_n(Some(7), 200)).is_err());
        assert!(polls((0..200).map(|n| (n % 2 == 0).then_some(n))).is_err());
        assert!(polls(std::iter::repeat_n(None, 200)).is_err());
    }
}
