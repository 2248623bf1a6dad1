//! How much of the log of polls is kept, and how old rows are made fewer.
//!
//! Promises: what went wrong stays longest. When a unit's part of the log is full, the older half is folded: rows of
//! polls that went well, one after the other, for one reason and over windows that touch, become one row that covers
//! them all, an hour of them at most. Only when that does not make room are the oldest rows removed. Coverage itself is
//! kept with the unit, not here: a row that is gone opens no gap.
//!
//! Pure, for every engine of the store.

use weir_rules::model::{Duration, Timestamp, Window};
use weir_rules::walk::Tally;

use super::PollRow;

/// What is kept of the log of polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollsKept {
    /// Rows of one unit; at least one.
    pub per_unit: u32,
    /// Rows of all units together.
    pub in_all: u64,
    /// For how long, in ms.
    pub keep: Duration,
}

impl Default for PollsKept {
    fn default() -> Self {
        PollsKept {
            per_unit: 200,
            in_all: 1_000_000,
            keep: 30 * 86_400_000,
        }
    }
}

/// A row covers at most this much time, in ms.
const SPAN: i64 = 3_600_000;

/// What folding a unit's rows changes.
#[derive(Debug, Default, PartialEq)]
pub struct Folded {
    /// Rows that go, by their numbers.
    pub removed: Vec<u64>,
    /// Rows that stand for those before them now.
    pub rewritten: Vec<(u64, PollRow)>,
}

impl PollsKept {
    /// Rows of one unit that are left when its part of the log was full: room for a while, so that the work of folding
    /// is done now and then and not with each poll.
    fn after_folding(&self) -> usize {
        let most = self.per_unit.max(1);
        (most - (most / 8).max(1)) as usize
    }

    /// Is a row that ended then too old now?
    pub fn is_over(&self, ended: Timestamp, now: Timestamp) -> bool {
        now.saturating_sub_unsigned(self.keep) > ended
    }

    /// Makes room among all rows of one unit, oldest first, each with its number.
    pub fn fold(&self, rows: &[(u64, &PollRow)]) -> Folded {
        let most = self.after_folding();
        let older = rows.len().div_ceil(2);
        let mut left = rows.len();
        let mut folded = Folded::default();
        let mut kept: Vec<Stretch<'_>> = Vec::with_capacity(older);
        for (number, row) in rows.iter().take(older) {
            match kept.last_mut() {
                Some(before) if before.joins(row) => {
                    folded.removed.push(before.number);
                    before.join(*number, row);
                    left -= 1;
                }
                _ => kept.push(Stretch::of(*number, row)),
            }
        }
        let surplus = left.saturating_sub(most).min(kept.len());
        for stretch in kept.drain(..surplus) {
            folded.removed.push(stretch.number);
        }
        folded.rewritten = kept.into_iter().filter_map(Stretch::row).collect();
        folded
    }
}

/// Rows that become one. Only what differs from the last of them is held: most stay what they are.
struct Stretch<'r> {
    number: u64,
    last: &'r PollRow,
    window: Window,
    intended: Option<Timestamp>,
    started: Timestamp,
    tally: Tally,
    polls: u64,
    rows: usize,
    /// They did not all end alike.
    mixed: bool,
}

impl<'r> Stretch<'r> {
    fn of(number: u64, row: &'r PollRow) -> Self {
        Stretch {
            number,
            last: row,
            window: row.window,
            intended: row.intended,
            started: row.started,
            tally: row.tally.clone(),
            polls: row.polls,
            rows: 1,
            mixed: false,
        }
    }

    /// May the row become one with those before it without a loss that matters?
    fn joins(&self, row: &PollRow) -> bool {
        self.last.is_good()
            && row.is_good()
            && self.last.reason == row.reason
            && self.last.message == row.message
            && touch(self.window, row.window)
            && row.ended.saturating_sub(self.started) <= SPAN
    }

    fn join(&mut self, number: u64, row: &'r PollRow) {
        let since = match (self.window.since, row.window.since) {
            (Some(a), Some(b)) => Some(a.min(b)),
            _ => None,
        };
        self.window = Window {
            since,
            until: self.window.until.max(row.window.until),
        };
        self.tally = self.tally.plus(&row.tally);
        self.polls = self.polls.saturating_add(row.polls);
        self.mixed |= self.last.outcome != row.outcome;
        self.number = number;
        self.last = row;
        self.rows += 1;
    }

    /// The row that stands for them all, under the number of the last; none where it is a row that is there already.
    fn row(self) -> Option<(u64, PollRow)> {
        if self.rows == 1 {
            return None;
        }
        let outcome = if self.mixed {
            "ok".to_owned()
        } else {
            self.last.outcome.clone()
        };
        let row = PollRow {
            window: self.window,
            intended: self.intended,
            started: self.started,
            tally: self.tally,
            polls: self.polls,
            outcome,
            ..self.last.clone()
        };
        Some((self.number, row))
    }
}

fn touch(before: Window, after: Window) -> bool {
    after.since.is_none_or(|since| since <= before.until)
        && before.since.is_none_or(|since| since <= after.until)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_rules::model::{Class, Reason};

    use super::*;
    use crate::store::{UnitId, UnitKey};

    const MINUTE: i64 = 60_000;

    fn row(started: i64, outcome: &str) -> PollRow {
        PollRow {
            unit: UnitId(1),
            key: UnitKey {
                connection: "shop".into(),
                stream: "orders".into(),
                partition: None,
            },
            reason: Reason::Schedule,
            window: Window {
                since: Some(started - 5 * MINUTE),
                until: started,
            },
            intended: Some(started),
            started,
            ended: started + 10,
            outcome: outcome.into(),
            class: (outcome == "failed").then_some(Class::Temporary),
            code: None,
            message: None,
            tally: Tally {
                calls: 1,
                ..Tally::default()
            },
            interval: 60_000,
            why: "found nothing new: later".into(),
            polls: 1,
        }
    }

    fn named(rows: &[(u64, PollRow)]) -> Vec<(u64, &PollRow)> {
        rows.iter().map(|(number, row)| (*number, row)).collect()
    }

    /// What is left after folding, oldest first.
    fn left(kept: PollsKept, rows: Vec<(u64, PollRow)>) -> Vec<(u64, PollRow)> {
        let folded = kept.fold(&named(&rows));
        let mut left: Vec<(u64, PollRow)> = rows
            .into_iter()
            .filter(|(number, _)| !folded.removed.contains(number))
            .collect();
        for (number, row) in folded.rewritten {
            let place = left.iter_mut().find(|(other, _)| *other == number);
            place.expect("a rewritten row is still there").1 = row;
        }
        left
    }

    fn numbered(rows: impl IntoIterator<Item = PollRow>) -> Vec<(u64, PollRow)> {
        (1..).zip(rows).collect()
    }

    #[test]
    fn quiet_polls_are_folded_and_faults_stay() {
        let rows = numbered((0..200).map(|n| {
            let outcome = if n % 20 == 7 { "failed" } else { "ok" };
            row(n * MINUTE, outcome)
        }));
        let left = left(PollsKept::default(), rows);
        assert!(left.len() < 130, "{}", left.len());
        let failed = left.iter().filter(|(_, row)| row.outcome == "failed");
        assert_eq!(failed.count(), 10, "what went wrong stays");
        let polls: u64 = left.iter().map(|(_, row)| row.polls).sum();
        let calls: u64 = left.iter().map(|(_, row)| row.tally.calls).sum();
        assert_eq!((polls, calls), (200, 200), "nothing is lost of the counts");
        assert!(left.iter().rev().take(100).all(|(_, row)| row.polls == 1));
    }

    #[test]
    fn windows_that_do_not_touch_are_not_made_one() {
        let mut second = row(20 * MINUTE, "ok");
        let rows = |second: &PollRow| {
            numbered([
                row(0, "ok"),
                second.clone(),
                row(40 * MINUTE, "ok"),
                row(41 * MINUTE, "ok"),
            ])
        };
        let kept = PollsKept {
            per_unit: 100,
            ..PollsKept::default()
        };
        assert_eq!(left(kept, rows(&second)).len(), 4);
        second.window.since = Some(0);
        let joined = left(kept, rows(&second));
        assert_eq!(joined.len(), 3);
        assert_eq!(
            joined[0].1.window,
            Window {
                since: Some(-5 * MINUTE),
                until: 20 * MINUTE
            }
        );
    }

    #[test]
    fn a_row_is_kept_for_its_time() {
        let kept = PollsKept {
            keep: 1_000,
            ..PollsKept::default()
        };
        assert!(!kept.is_over(0, 1_000));
        assert!(kept.is_over(0, 1_001));
        assert!(!kept.is_over(5_000, 0), "a clock that was set back");
    }

    #[test]
    fn a_row_of_an_older_program_reads() {
        let text = r#"{"unit":7,"key":{"connection":"shop","stream":"orders","partition":null},
            "reason":"schedule","window":{"since":null,"until":5},"started":1,"ended":5,"outcome":"ok","class":null,
            "code":null,"message":null,"calls":3,"not_modified":1,"bytes":9,"records":4,"new":2,"changed":1,
            "unchanged":1,"deleted":0,"full_page":true,"latency":12,"interval":30000,"why":"found records: sooner"}"#;
        let row: PollRow = serde_json::from_str(text).unwrap();
        assert_eq!((row.tally.calls, row.tally.new, row.polls), (3, 2, 1));
        assert!(row.tally.full_page);
        let again: PollRow = serde_json::from_slice(&serde_json::to_vec(&row).unwrap()).unwrap();
        assert_eq!(again, row);
    }

    proptest! {
        #[test]
        fn there_is_room_afterwards_and_the_newest_rows_are_as_they_were(
            per_unit in 1_u32..60, bad in proptest::collection::vec(any::<bool>(), 60), gap in 1_i64..30,
        ) {
            let rows = numbered((0..per_unit).map(|n| {
                let outcome = if bad[n as usize] { "failed" } else { "ok" };
                row(i64::from(n) * gap * MINUTE, outcome)
            }));
            let kept = PollsKept { per_unit, ..PollsKept::default() };
            let left = left(kept, rows.clone());
            prop_assert!(left.len() < per_unit as usize);
            let newest = rows.len() / 2;
            prop_assert_eq!(&left[left.len() - newest..], &rows[rows.len() - newest..]);
        }
    }
}
