//! What a person sees of `weir status`: what needs them first, and short.

use std::fmt::Write as _;

use super::Status;
use super::unit::UnitStatus;
use crate::verbs::text::{bytes, count, from_now, length, moment, table};

/// The answer as text.
pub(in crate::verbs) fn render(status: &Status) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = head(&mut text, status);
    text.push_str(&connections(status));
    let _ = totals(&mut text, status);
    text.push_str(&units(status));
    let _ = delivery(&mut text, status);
    text
}

fn head(text: &mut String, status: &Status) -> std::fmt::Result {
    match status.running {
        Some(process) => writeln!(text, "weir runs on {} (process {process}).", status.data)?,
        None => writeln!(text, "No weir runs on {}.", status.data)?,
    }
    if status.oldest_due > 0 {
        writeln!(
            text,
            "The oldest job has been due for {}.",
            length(status.oldest_due)
        )?;
    }
    if status.outbox_full {
        writeln!(
            text,
            "Nothing is polled: the outbox is full, the sinks do not keep up."
        )?;
    }
    for failing in &status.failing_files {
        let named = failing.error.starts_with(&failing.file);
        let file = if named {
            String::new()
        } else {
            format!("{}: ", failing.file)
        };
        writeln!(text, "Does not load: {file}{}", failing.error)?;
    }
    Ok(())
}

fn connections(status: &Status) -> String {
    if status.connections.is_empty() {
        return "No connection is configured.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = status
        .connections
        .iter()
        .map(|connection| {
            let state = match (&connection.not_ready, &connection.needs_sign_in) {
                (Some(why), _) => format!("not polled: {why}"),
                (None, Some(needed)) => format!(
                    "needs sign-in since {}: {}; then `weir resume {}`",
                    moment(needed.since),
                    needed.why,
                    connection.name
                ),
                (None, None) if connection.paused => "paused".to_owned(),
                (None, None) if connection.starting => "starting".to_owned(),
                (None, None) => "ready".to_owned(),
            };
            vec![
                connection.name.clone(),
                connection.connector.clone(),
                connection.units.to_string(),
                state,
            ]
        })
        .collect();
    format!(
        "\n{}",
        table(&["connection", "connector", "units", "state"], &rows)
    )
}

fn totals(text: &mut String, status: &Status) -> std::fmt::Result {
    let totals = &status.totals;
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
    ];
    write!(text, "\n{}", count(totals.units, "unit"))?;
    for (number, what) in numbers.into_iter().filter(|(number, _)| *number > 0) {
        write!(text, ", {number} {what}")?;
    }
    text.push('\n');
    if !totals.faults.is_empty() {
        let faults: Vec<String> = totals
            .faults
            .iter()
            .map(|(class, times)| format!("{} {times}", class.name()))
            .collect();
        writeln!(
            text,
            "faults since each unit last went well: {}",
            faults.join(", ")
        )?;
    }
    if totals.unknown > 0 {
        writeln!(
            text,
            "{} parked with a code that nobody has mapped",
            totals.unknown
        )?;
    }
    if totals.gaps > 0 {
        write!(text, "{}", count(totals.gaps, "gap"))?;
        if let Some(until) = totals.oldest_gap {
            write!(text, ", the oldest up to {}", moment(until))?;
        }
        text.push('\n');
    }
    if totals.retired > 0 {
        writeln!(
            text,
            "{} more no longer configured; what is stored of them stays",
            count(totals.retired, "unit")
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
                last(unit, status.now),
                next(unit, status.now),
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
    parts.join(", ")
}

fn delivery(text: &mut String, status: &Status) -> std::fmt::Result {
    let sinks: Vec<String> = status
        .sinks
        .iter()
        .map(|sink| format!("{} ({})", sink.name, sink.kind))
        .collect();
    let outbox = &status.outbox;
    if outbox.entries == 0 {
        writeln!(text, "\noutbox: empty; sinks: {}", sinks.join(", "))?;
    } else {
        let age = outbox.oldest.map_or_else(String::new, |oldest| {
            format!(", the oldest seen {}", from_now(oldest, status.now))
        });
        writeln!(
            text,
            "\noutbox: {} ({}){age}; sinks: {}",
            count(outbox.entries, "record"),
            bytes(outbox.bytes),
            sinks.join(", ")
        )?;
    }
    for sink in &status.sinks {
        let failing = sink
            .delivery
            .as_ref()
            .and_then(|delivery| delivery.failing.as_ref());
        if let Some(failing) = failing {
            writeln!(
                text,
                "sink {} takes nothing since {} ({}): {}",
                sink.name,
                moment(failing.since),
                count(u64::from(failing.tries), "failure"),
                failing.error
            )?;
        }
    }
    if status.dead_letters > 0 {
        writeln!(
            text,
            "{} that a sink refused for good",
            count(status.dead_letters, "record")
        )?;
    }
    Ok(())
}
