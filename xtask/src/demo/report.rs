//! The result: a table for people, an object for programs, and whether it is good.

use std::collections::BTreeMap;

use anyhow::bail;
use serde::Serialize;
use weir_tests::judge::{Tally, Verdict};
use weir_tests::ledger::{Counts, Ledger};

/// Of what went wrong, this much is told.
const TOLD: usize = 8;

/// The result. The sums over all units come first.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    total: Numbers,
    kills: u64,
    seed: u64,
    units: BTreeMap<String, Numbers>,
    #[serde(skip)]
    wrongs: Vec<String>,
}

/// The numbers of one unit, or of all.
#[derive(Clone, Copy, Default, Serialize)]
struct Numbers {
    /// Records whose last version had to be delivered.
    visible: u64,
    delivered: u64,
    lost: u64,
    duplicated: u64,
    /// Lines that say something else than the vendor did, or in another order.
    wrong: u64,
    /// Updates that were seen.
    updates: u64,
    calls: u64,
    not_modified: u64,
    quota_used: u64,
    /// Calls before a wait was over.
    early: u64,
}

impl Numbers {
    fn new(tally: &Tally, counts: Counts) -> Self {
        Numbers {
            visible: tally.visible,
            delivered: tally.delivered,
            lost: tally.lost.len() as u64,
            duplicated: tally.duplicated.len() as u64,
            wrong: (tally.wrong.len() + tally.out_of_order.len()) as u64,
            updates: tally.updates,
            calls: counts.calls,
            not_modified: counts.not_modified,
            quota_used: counts.quota_used,
            early: counts.early,
        }
    }

    fn plus(self, other: Numbers) -> Numbers {
        Numbers {
            visible: self.visible + other.visible,
            delivered: self.delivered + other.delivered,
            lost: self.lost + other.lost,
            duplicated: self.duplicated + other.duplicated,
            wrong: self.wrong + other.wrong,
            updates: self.updates + other.updates,
            calls: self.calls + other.calls,
            not_modified: self.not_modified + other.not_modified,
            quota_used: self.quota_used + other.quota_used,
            early: self.early + other.early,
        }
    }

    fn cells(&self) -> [u64; 8] {
        [
            self.visible,
            self.delivered,
            self.lost,
            self.duplicated,
            self.updates,
            self.calls,
            self.not_modified,
            self.quota_used,
        ]
    }
}

const HEADINGS: [&str; 8] = [
    "visible",
    "delivered",
    "lost",
    "duplicated",
    "updates seen",
    "calls",
    "304s",
    "quota used",
];

impl Report {
    pub(super) fn new(verdict: &Verdict, ledger: &Ledger, kills: u64, seed: u64) -> Self {
        let mut units = BTreeMap::new();
        let mut wrongs = Vec::new();
        for (name, tally) in &verdict.units {
            let vendor = name.split('/').next().unwrap_or_default();
            let counts = ledger.counts.iter().find(|(of, _)| of == vendor);
            let counts = counts.map_or_else(Counts::default, |(_, counts)| *counts);
            units.insert(name.clone(), Numbers::new(tally, counts));
            tell(name, tally, &mut wrongs);
        }
        Report {
            total: units
                .values()
                .fold(Numbers::default(), |sum, unit| sum.plus(*unit)),
            kills,
            seed,
            units,
            wrongs,
        }
    }

    /// As a table.
    pub(super) fn table(&self) -> String {
        let width = self.units.keys().map(String::len).max().unwrap_or(0).max(5);
        let mut text = format!("{:width$}", "");
        for heading in HEADINGS {
            text.push_str(&format!("  {heading}"));
        }
        let total = ("total".to_owned(), self.total);
        for (name, numbers) in self.units.clone().into_iter().chain([total]) {
            text.push_str(&format!("\n{name:width$}"));
            for (heading, cell) in HEADINGS.iter().zip(numbers.cells()) {
                text.push_str(&format!("  {cell:>width$}", width = heading.len()));
            }
        }
        text.push_str(&format!(
            "\nkilled {} with SIGKILL on the way; calls before a wait was over: {} (only a wait in an answer that the kill cut off \
             can be missed); seed {}",
            match self.kills {
                1 => "once".to_owned(),
                kills => format!("{kills} times"),
            },
            self.total.early,
            self.seed,
        ));
        text
    }

    /// Fails when the promise was broken.
    pub(super) fn fail(&self) -> anyhow::Result<()> {
        let Numbers {
            lost,
            duplicated,
            wrong,
            ..
        } = self.total;
        if lost + duplicated + wrong > 0 {
            bail!(
                "{lost} lost, {duplicated} duplicated, {wrong} wrong:\n{}",
                self.wrongs.join("\n")
            );
        }
        if self.total.visible == 0 {
            bail!("nothing was visible, so nothing was shown to work");
        }
        Ok(())
    }
}

/// The first few things that went wrong in a unit.
fn tell(name: &str, tally: &Tally, wrongs: &mut Vec<String>) {
    for loss in tally.lost.iter().take(TOLD) {
        let had = match loss.delivered_revision {
            Some(revision) => format!("version {revision} was delivered last"),
            None => "it was never delivered".to_owned(),
        };
        wrongs.push(format!(
            "{name}: {} is lost in version {}{}, stamped {}, visible from {}; {had}",
            loss.id,
            loss.revision,
            if loss.deleted { " (its deletion)" } else { "" },
            loss.stamp,
            loss.visible_from,
        ));
    }
    for duplicate in tally.duplicated.iter().take(TOLD) {
        wrongs.push(format!(
            "{name}: line {} of {} is a duplicate: {} ({})",
            duplicate.line, duplicate.id, duplicate.reason, duplicate.key
        ));
    }
    for wrong in tally.wrong.iter().chain(&tally.out_of_order).take(TOLD) {
        wrongs.push(format!(
            "{name}: line {} of {} is wrong: {}",
            wrong.line, wrong.id, wrong.reason
        ));
    }
}
