//! The log of polls in memory.

use std::collections::{BTreeMap, VecDeque};

use crate::store::{PollRow, PollsKept, UnitId};

/// How often, in polls, rows that are too old are looked for, as in the embedded store.
const TIDY_EVERY: u64 = 32;
/// How many are removed then at most.
const TIDY_MOST: usize = 2 * TIDY_EVERY as usize;

/// All rows, by the number of the poll.
#[derive(Default)]
pub(super) struct PollLog {
    rows: BTreeMap<u64, PollRow>,
    /// The numbers of each unit's rows, oldest first. A row that was removed for its age may still be named here.
    of: BTreeMap<UnitId, VecDeque<u64>>,
    made: u64,
}

impl PollLog {
    /// Adds a poll of the unit.
    pub(super) fn add(&mut self, unit: UnitId, mut poll: PollRow, kept: &PollsKept) {
        if poll.unit == UnitId(0) {
            poll.unit = unit;
        }
        let of_unit = self.of.entry(unit).or_default();
        if of_unit.len() >= kept.per_unit.max(1) as usize {
            let rows = &self.rows;
            let numbered: Vec<(u64, &PollRow)> = of_unit
                .iter()
                .filter_map(|number| Some((*number, rows.get(number)?)))
                .collect();
            let folded = kept.fold(&numbered);
            for number in &folded.removed {
                self.rows.remove(number);
            }
            self.rows.extend(folded.rewritten);
            let rows = &self.rows;
            of_unit.retain(|number| rows.contains_key(number));
        }
        self.made += 1;
        of_unit.push_back(self.made);
        let ended = poll.ended;
        self.rows.insert(self.made, poll);
        if self.made.is_multiple_of(TIDY_EVERY) {
            self.tidy(kept, ended);
        }
    }

    /// Removes rows that are too old or too many.
    fn tidy(&mut self, kept: &PollsKept, now: i64) {
        let mut surplus = (self.rows.len() as u64).saturating_sub(kept.in_all);
        for _ in 0..TIDY_MOST {
            let Some(oldest) = self.rows.first_entry() else {
                return;
            };
            if surplus == 0 && !kept.is_over(oldest.get().ended, now) {
                return;
            }
            oldest.remove();
            surplus = surplus.saturating_sub(1);
        }
    }

    /// The row that was added last.
    pub(super) fn last(&self) -> Option<&PollRow> {
        self.rows.get(&self.made)
    }

    /// Rows, newest first.
    pub(super) fn newest_first(
        &self,
        unit: Option<UnitId>,
    ) -> Box<dyn Iterator<Item = &PollRow> + '_> {
        match unit {
            Some(unit) => Box::new(
                self.of
                    .get(&unit)
                    .into_iter()
                    .flat_map(|numbers| numbers.iter().rev())
                    .filter_map(|number| self.rows.get(number)),
            ),
            None => Box::new(self.rows.values().rev()),
        }
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut PollRow> {
        self.rows.values_mut()
    }
}
