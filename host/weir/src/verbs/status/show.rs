//! What a person sees of `weir status`: what needs them first, and short.

use std::fmt::Write as _;

use super::unit::UnitStatus;
use super::{LISTED, Status, sinks};
use crate::status::{BudgetStatus, Snapshot};
use crate::verbs::text::{bytes, count, from_now, length, moment, table};

/// The answer as text.
pub(in crate::verbs) fn render(status: &Status) -> String {
    let view = &status.view;
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = head(&mut text, view);
    text.push_str(&connections(view));
    let _ = totals(&mut text, view);
    text.push_str(&units(status));
    let _ = recent(&mut text, view);
    text.push_str(&budgets(view));
    let _ = sinks::show(&mut text, view);
    let _ = remarks(&mut text, view);
    text
}

fn head(text: &mut String, view: &Snapshot) -> std::fmt::Result {
    match view.running {
        Some(process) => writeln!(text, "weir runs on {} (process {process}).", view.data)?,
        None => writeln!(text, "No weir runs on {}.", view.data)?,
    }
    if view.needs.is_empty() {
        writeln!(text, "Nothing needs a person.")?;
    } else {
        writeln!(text, "Needs a person:")?;
        for need in &view.needs {
            writeln!(text, "- {}", need.text)?;
        }
    }
    if let Some(copies) = &view.copies {
        match copies.newest {
            Some(newest) => writeln!(
                text,
                "The store was copied {} ({}, {}).",
                from_now(newest, view.now),
                match copies.count {
                    1 => "1 copy".to_owned(),
                    count => format!("{count} copies"),
                },
                bytes(copies.bytes)
            )?,
            None => writeln!(text, "The store has not been copied yet.")?,
        }
    }
    if view.oldest_due > 0 {
        writeln!(
            text,
            "The oldest job has been due for {}.",
            length(view.oldest_due)
        )?;
    }
    Ok(())
}

fn connections(view: &Snapshot) -> String {
    if view.connections.is_empty() {
        return "No connection is configured.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = view
        .connections
        .iter()
        .map(|connection| {
            let state = match (&connection.not_ready, &connection.needs_sign_in) {
                (Some(_), _) => "not polled",
                (None, Some(_)) => "needs sign-in",
                (None, None) if connection.paused => "paused",
                (None, None) if connection.starting => "starting",
                (None, None) => "ready",
            };
            vec![
                connection.name.clone(),
                connection.connector.clone(),
                connection.units.to_string(),
                state.to_owned(),
            ]
        })
        .collect();
    format!(
        "\n{}",
        table(&["connection", "connector", "units", "state"], &rows)
    )
}

fn totals(text: &mut String, view: &Snapshot) -> std::fmt::Result {
    let totals = &view.totals;
    let numbers = [
        (totals.polling, "polling"),
        (totals.waiting, "waiting for a vendor"),
        (totals.failing, "failing"),
        (totals.parked, "parked"),
        (totals.unsynced, "not read to the end yet"),
        (
            totals.pinned,
            "held at the longest interval by a slow vendor",
        ),
        (totals.unkept, "later than promised"),
        (totals.still, "standing still"),
        (totals.late, "with records that only a second look found"),
        (
            totals.disordered,
            "listed in another order than the connector says",
        ),
    ];
    write!(text, "\n{}", count(totals.units, "unit"))?;
    for (number, what) in numbers.into_iter().filter(|(number, _)| *number > 0) {
        write!(text, ", {number} {what}")?;
    }
    text.push('\n');
    if totals.retired > 0 {
        writeln!(
            text,
            "{} more no longer configured; what is stored of them stays",
            count(totals.retired, "unit")
        )?;
    }
    Ok(())
}

/// The last day: what came, and what was in the way.
fn recent(text: &mut String, view: &Snapshot) -> std::fmt::Result {
    let recent = &view.recent;
    let polls: u64 = recent.polls.values().sum();
    if polls == 0 {
        return Ok(());
    }
    let outcomes: Vec<String> = recent
        .polls
        .iter()
        .map(|(outcome, times)| format!("{times} {outcome}"))
        .collect();
    writeln!(
        text,
        "\nSince {}: {} ({}); {}, {} of them not modified; records: {} new, {} changed, {} deleted",
        moment(recent.since),
        count(polls, "poll"),
        outcomes.join(", "),
        count(recent.calls, "call"),
        recent.not_modified,
        recent.new,
        recent.changed,
        recent.deleted
    )?;
    if recent.late > 0 {
        writeln!(
            text,
            "{} of these came so late that only a second look found {}: the overlap grows with that",
            recent.late,
            if recent.late == 1 { "it" } else { "them" }
        )?;
    }
    if recent.trouble.is_empty() {
        return Ok(());
    }
    let rows: Vec<Vec<String>> = recent
        .trouble
        .iter()
        .take(LISTED)
        .map(|trouble| {
            let what = match trouble.class {
                Some(class) => class.name(),
                None if trouble.outcome == "waiting" => "held back",
                None => trouble.outcome.as_str(),
            };
            vec![
                trouble.connection.clone(),
                what.to_owned(),
                trouble.outcome.clone(),
                trouble.times.to_string(),
                moment(trouble.first),
                moment(trouble.last),
                match trouble.over {
                    Some(over) => format!("well since {}", moment(over)),
                    None => "goes on".to_owned(),
                },
                trouble.message.clone(),
            ]
        })
        .collect();
    text.push_str(&table(
        &[
            "connection",
            "trouble",
            "polls",
            "times",
            "first",
            "last",
            "now",
            "said last",
        ],
        &rows,
    ));
    let left_out = recent.trouble.len().saturating_sub(LISTED);
    if left_out > 0 {
        writeln!(text, "and {left_out} more: --json")?;
    }
    Ok(())
}

/// The vendors' limits that hold calls back, or soon will.
fn budgets(view: &Snapshot) -> String {
    let rows: Vec<Vec<String>> = view
        .budgets
        .iter()
        .filter(|budget| is_tight(budget))
        .map(|budget| {
            let left = match (budget.remaining, budget.limit, budget.used_percent) {
                (Some(left), Some(limit), _) => format!("{} of {limit}", left.floor()),
                (Some(left), None, _) => left.floor().to_string(),
                (None, _, Some(used)) => format!("{} % used", used.round()),
                (None, _, None) => String::new(),
            };
            vec![
                budget.connection.clone(),
                if budget.bucket.is_empty() {
                    "the vendor's limit".to_owned()
                } else {
                    budget.bucket.clone()
                },
                left,
                budget.resets_at.map(moment).unwrap_or_default(),
                budget.held_until.map(moment).unwrap_or_default(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n{}",
        table(
            &[
                "connection",
                "limit",
                "left",
                "full again",
                "no call before"
            ],
            &rows
        )
    )
}

/// Held back by the vendor, or less than a fifth is left.
fn is_tight(budget: &BudgetStatus) -> bool {
    let scarce = match (budget.remaining, budget.limit) {
        (Some(left), Some(limit)) => left * 5.0 < limit as f64,
        (Some(left), None) => left < 1.0,
        _ => false,
    };
    scarce || budget.held_until.is_some() || budget.used_percent.is_some_and(|used| used >= 80.0)
}

fn remarks(text: &mut String, view: &Snapshot) -> std::fmt::Result {
    for remark in &view.remarks {
        writeln!(
            text,
            "{}: {} (since {}, {})",
            remark.connection,
            remark.text,
            moment(remark.since),
            count(remark.times, "time")
        )?;
    }
    Ok(())
}

fn units(status: &Status) -> String {
    if status.units.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = status
        .units
        .iter()
        .map(|unit| {
            vec![
                unit.unit.clone(),
                last(unit, status.view.now),
                next(unit, status.view.now),
                if unit.interval > 0 {
                    length(unit.interval)
                } else {
                    String::new()
                },
                unit.watermark.map(moment).unwrap_or_default(),
                remark(unit),
            ]
        })
        .collect();
    let mut text = format!(
        "\n{}",
        table(
            &["unit", "last", "next", "interval", "read up to", ""],
            &rows
        )
    );
    let left_out = status
        .view
        .totals
        .units
        .saturating_sub(status.units.len() as u64);
    if left_out > 0 {
        text.push_str(&format!("and {left_out} more: --all\n"));
    }
    text
}

fn last(unit: &UnitStatus, now: i64) -> String {
    match (&unit.outcome, unit.ended) {
        (Some(outcome), Some(ended)) => format!("{outcome} {}", from_now(ended, now)),
        _ => "never".to_owned(),
    }
}

fn next(unit: &UnitStatus, now: i64) -> String {
    match (unit.due, &unit.parked) {
        _ if unit.polling => "now".to_owned(),
        (_, Some(_)) => "parked".to_owned(),
        (Some(due), None) if due <= now => "due".to_owned(),
        (Some(due), None) => from_now(due, now),
        (None, None) => "when asked".to_owned(),
    }
}

fn remark(unit: &UnitStatus) -> String {
    let mut parts = Vec::new();
    if unit.gaps > 0 {
        parts.push(count(unit.gaps, "gap"));
    }
    if let Some(since) = unit.behind {
        parts.push(format!("nothing read since {}", moment(since)));
    }
    match (&unit.parked, &unit.message) {
        (Some(parked), _) => parts.push(format!(
            "{} {} {} since {}",
            parked.class.name(),
            parked.code,
            parked.message,
            moment(parked.since)
        )),
        (None, Some(message)) => parts.push(message.clone()),
        (None, None) => {}
    }
    parts.extend(unit.unkept.clone());
    parts.extend(unit.odd.iter().cloned());
    parts.join(", ")
}
