//! What a person sees of `weir sync`.

use weir_rules::walk::Tally;

use super::{Synced, UnitSync};
use crate::verbs::text::{count, length, moment, table};

/// Units that are listed when all of them went well.
const LISTED: usize = 20;

/// The line that is said when a unit's sync has ended.
pub(super) fn line(unit: &UnitSync) -> String {
    let mut text = format!(
        "{}: {}, {}",
        unit.unit,
        unit.outcome.name(),
        numbers(&unit.tally)
    );
    if let Some(message) = &unit.message {
        text.push_str(&format!(": {message}"));
    }
    text
}

/// `3 new, 1 changed, 4 calls`
fn numbers(tally: &Tally) -> String {
    let mut parts = vec![format!("{} new", tally.new)];
    for (number, what) in [
        (tally.changed, "changed"),
        (tally.deleted, "deleted"),
        (tally.unchanged, "unchanged"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    parts.push(count(tally.calls, "call"));
    if tally.not_modified > 0 {
        parts.push(format!("{} not modified", tally.not_modified));
    }
    parts.join(", ")
}

/// The answer as text: a table of what did not go well (of everything, when that is little), then the sums.
pub(in crate::verbs) fn render(synced: &Synced) -> String {
    let mut text = String::new();
    for out in &synced.left_out {
        text.push_str(&format!("{}: not polled: {}\n", out.connection, out.why));
    }
    let everything = synced.units.len() <= LISTED;
    let rows: Vec<Vec<String>> = synced
        .units
        .iter()
        .filter(|unit| everything || !unit.outcome.is_good() || unit.gaps > 0)
        .map(row)
        .collect();
    if !rows.is_empty() {
        text.push_str(&table(
            &[
                "unit",
                "outcome",
                "new",
                "changed",
                "unchanged",
                "calls",
                "304s",
                "",
            ],
            &rows,
        ));
    }
    let good = synced
        .units
        .iter()
        .filter(|unit| unit.outcome.is_good())
        .count();
    text.push_str(&format!(
        "{good} of {} up to date: {} in {}\n",
        count(synced.units.len() as u64, "unit"),
        numbers(&synced.total),
        length(synced.elapsed_ms)
    ));
    if synced.stopped {
        text.push_str("Stopped before it was done: the next sync goes on from here.\n");
    } else if !synced.delivered {
        text.push_str(&format!(
            "{} not delivered yet; kept for the next `weir run` or `weir sync`.
",
            count(synced.waiting_records, "record")
        ));
    }
    if synced.dead_letters > 0 {
        text.push_str(&format!(
            "{} that a sink refused for good: `weir review`\n",
            count(synced.dead_letters, "record")
        ));
    }
    for error in synced.failing_sinks.values() {
        text.push_str(&format!(
            "{error}
"
        ));
    }
    text
}

fn row(unit: &UnitSync) -> Vec<String> {
    let tally = &unit.tally;
    let mut remarks = Vec::new();
    if unit.gaps > 0 {
        remarks.push(count(unit.gaps, "gap"));
    }
    remarks.extend(unit.message.clone());
    if !unit.outcome.is_good()
        && let Some(due) = unit.due
    {
        remarks.push(format!("tried again from {}", moment(due)));
    }
    vec![
        unit.unit.clone(),
        unit.outcome.name().to_owned(),
        tally.new.to_string(),
        tally.changed.to_string(),
        tally.unchanged.to_string(),
        tally.calls.to_string(),
        tally.not_modified.to_string(),
        remarks.join("; "),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::poll::Outcome;

    fn unit(name: &str, outcome: Outcome, message: Option<&str>) -> UnitSync {
        UnitSync {
            unit: name.to_owned(),
            outcome,
            class: None,
            message: message.map(Into::into),
            tally: Tally {
                new: 3,
                changed: 1,
                calls: 4,
                ..Tally::default()
            },
            polls: 1,
            due: None,
            gaps: 0,
        }
    }

    #[test]
    fn a_units_line_says_what_came_and_what_went_wrong() {
        assert_eq!(
            line(&unit("oss/issues", Outcome::Ok, None)),
            "oss/issues: ok, 3 new, 1 changed, 4 calls"
        );
        assert_eq!(
            line(&unit("oss/issues", Outcome::Failed, Some("503 busy"))),
            "oss/issues: failed, 3 new, 1 changed, 4 calls: 503 busy"
        );
    }

    #[test]
    fn of_many_units_only_those_that_need_a_look_are_listed() {
        let mut units: Vec<UnitSync> = (0..50)
            .map(|n| unit(&format!("shop/orders/{n}"), Outcome::Ok, None))
            .collect();
        units.push(unit("shop/orders/bad", Outcome::Parked, Some("418 teapot")));
        let synced = Synced {
            units,
            left_out: Vec::new(),
            total: Tally::default(),
            delivered: true,
            waiting_records: 0,
            dead_letters: 0,
            failing_sinks: BTreeMap::new(),
            stopped: false,
            elapsed_ms: 1_500,
        };
        let text = render(&synced);
        assert!(text.contains("418 teapot"), "{text}");
        assert!(!text.contains("shop/orders/7"), "{text}");
        assert!(
            text.ends_with("50 of 51 units up to date: 0 new, 0 calls in 1 s\n"),
            "{text}"
        );
    }
}
