//! The log of polls: adding a row, and making room.

use redb::{ReadableTable as _, ReadableTableMetadata as _};

use super::Work;
use crate::store::redb::tables;
use crate::store::redb::trouble::Outcome;
use crate::store::redb::unit::Head;
use crate::store::{PollRow, UnitId};

/// How often, in polls, rows that are too old are looked for.
const TIDY_EVERY: u64 = 32;
/// How many are removed then at most: twice as many as have come, so that a log that was allowed to grow shrinks again.
const TIDY_MOST: usize = 2 * TIDY_EVERY as usize;

impl Work<'_> {
    /// Adds a poll of the unit with this head.
    pub(super) fn add_poll(
        &mut self,
        unit: UnitId,
        head: &mut Head,
        mut poll: PollRow,
    ) -> Outcome<()> {
        if poll.unit == UnitId(0) {
            poll.unit = unit;
        }
        if head.polls >= self.kept.per_unit.max(1) {
            self.fold(unit, head)?;
        }
        let number = self.counters.poll;
        self.counters.poll += 1;
        self.polls.insert(
            tables::pair(unit.0, number).as_slice(),
            serde_json::to_vec(&poll)?.as_slice(),
        )?;
        self.poll_order.insert(number, unit.0)?;
        head.polls += 1;
        if number.is_multiple_of(TIDY_EVERY) {
            self.tidy(unit, head, poll.ended)?;
        }
        Ok(())
    }

    /// Makes room in the unit's part of the log.
    fn fold(&mut self, unit: UnitId, head: &mut Head) -> Outcome<()> {
        let bounds = tables::of_unit(unit);
        let mut rows: Vec<(u64, PollRow)> = Vec::with_capacity(head.polls as usize);
        for row in self.polls.range::<&[u8]>(tables::slices(&bounds))? {
            let (key, row) = row?;
            let (_, number) = tables::unpair(key.value())?;
            rows.push((number, serde_json::from_slice(row.value())?));
        }
        head.polls = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let named: Vec<(u64, &PollRow)> = rows.iter().map(|(number, row)| (*number, row)).collect();
        let folded = self.kept.fold(&named);
        for number in folded.removed {
            self.polls.remove(tables::pair(unit.0, number).as_slice())?;
            self.poll_order.remove(number)?;
            head.polls = head.polls.saturating_sub(1);
        }
        for (number, row) in folded.rewritten {
            self.polls.insert(
                tables::pair(unit.0, number).as_slice(),
                serde_json::to_vec(&row)?.as_slice(),
            )?;
        }
        Ok(())
    }

    /// Removes rows of any unit that are too old or too many. `unit` is the one at hand, whose head is not stored yet.
    fn tidy(&mut self, unit: UnitId, head: &mut Head, now: i64) -> Outcome<()> {
        let surplus = self.poll_order.len()?.saturating_sub(self.kept.in_all);
        let mut over = Vec::new();
        for row in self.poll_order.iter()?.take(TIDY_MOST) {
            let (number, of) = row?;
            let (number, of) = (number.value(), UnitId(of.value()));
            let too_many = (over.len() as u64) < surplus;
            if !too_many {
                let Some(row) = self.polls.get(tables::pair(of.0, number).as_slice())? else {
                    continue;
                };
                let row: PollRow = serde_json::from_slice(row.value())?;
                if !self.kept.is_over(row.ended, now) {
                    break;
                }
            }
            over.push((number, of));
        }
        for (number, of) in over {
            self.polls.remove(tables::pair(of.0, number).as_slice())?;
            self.poll_order.remove(number)?;
            if of == unit {
                head.polls = head.polls.saturating_sub(1);
                continue;
            }
            let changed = match self.units.get(of.0)? {
                Some(row) => {
                    let (mut head, state) = Head::split(row.value())?;
                    head.polls = head.polls.saturating_sub(1);
                    head.before(state)
                }
                None => continue,
            };
            self.units.insert(of.0, changed.as_slice())?;
        }
        Ok(())
    }
}
