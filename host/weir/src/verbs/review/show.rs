//! What a person sees of it.

use std::fmt::Write as _;

use super::decide::{Dropped, Retried};
use super::{Entry, Waiting, What};
use crate::verbs::text::{bytes, count, moment, table};

/// Characters of a message in the list.
const SHORT: usize = 100;

pub(in crate::verbs) fn render_list(answer: &Waiting) -> String {
    if answer.entries.is_empty() {
        return "Nothing waits for review.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = answer
        .entries
        .iter()
        .map(|entry| {
            let mut what = entry.what.name().to_owned();
            if entry.dropped {
                what.push_str(" (given up)");
            }
            vec![
                entry.id.clone(),
                what,
                entry.unit.clone(),
                moment(entry.first),
                short(&told(entry)),
            ]
        })
        .collect();
    let mut text = table(&["id", "what", "unit", "since", "why"], &rows);
    if answer.more {
        text.push_str("... and more\n");
    }
    text.push_str(
        "\n`weir review show ID` has the answer that caused it; then `retry ID` or `drop ID`.\n",
    );
    text
}

/// Which record, code and message.
fn told(entry: &Entry) -> String {
    let message = entry.message.trim();
    match (&entry.record, entry.what) {
        (Some(record), What::Record) => match &record.id {
            Some(id) => format!("{id}: {message}"),
            None => message.to_owned(),
        },
        _ if entry.code.is_empty() || message.contains(&entry.code) => message.to_owned(),
        _ => format!("{} {message}", entry.code),
    }
}

/// One line of so many characters.
fn short(text: &str) -> String {
    let line: String = text.lines().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHORT) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line,
    }
}

pub(in crate::verbs) fn render_one(entry: &Entry) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = one(&mut text, entry);
    text
}

fn one(text: &mut String, entry: &Entry) -> std::fmt::Result {
    writeln!(
        text,
        "{}: {} of {}",
        entry.id,
        entry.what.name(),
        entry.unit
    )?;
    if entry.dropped {
        writeln!(text, "It was given up, and waits for nobody.")?;
    }
    writeln!(
        text,
        "since {}, last {}, {}",
        moment(entry.first),
        moment(entry.last),
        count(entry.times, "time")
    )?;
    if let Some(class) = entry.class {
        writeln!(text, "class {}, code {}", class.name(), entry.code)?;
    }
    writeln!(text, "{}", entry.message)?;
    if let Some(answer) = &entry.answer {
        writeln!(text, "\n{}", answer.request)?;
        match answer.status {
            None => writeln!(text, "no answer")?,
            Some(status) => {
                writeln!(text, "{status}")?;
                for (name, value) in &answer.headers {
                    writeln!(text, "{name}: {value}")?;
                }
                writeln!(text, "\n{}", answer.body)?;
                cut(text, answer.body.len(), answer.bytes)?;
            }
        }
    }
    if let Some(record) = &entry.record {
        if let Some(id) = &record.id {
            writeln!(text, "\nid {id}")?;
        }
        if let Some(at) = record.updated_at {
            writeln!(text, "updated {}", moment(at))?;
        }
        writeln!(text, "\n{}", record.text)?;
        cut(text, record.text.len(), record.bytes)?;
    }
    writeln!(text, "\nWay out: {}.", entry.way_out)?;
    if !entry.lost.is_empty() && !entry.dropped {
        writeln!(text, "If it is dropped, this is lost: {}.", entry.lost)?;
    }
    Ok(())
}

fn cut(text: &mut String, shown: usize, all: u64) -> std::fmt::Result {
    if all > shown as u64 {
        writeln!(text, "... of {}", bytes(all))?;
    }
    Ok(())
}

pub(in crate::verbs) fn render_retried(answer: &Retried) -> String {
    let mut text = String::new();
    for unit in &answer.units {
        let mut line = format!("{}: {}", unit.unit, unit.outcome.name());
        if unit.news > 0 {
            line.push_str(&format!(", {} new or changed", count(unit.news, "record")));
        }
        if let Some(message) = &unit.message {
            line.push_str(&format!("; {message}"));
        }
        if let Some(due) = unit.due.filter(|_| !unit.outcome.is_good()) {
            line.push_str(&format!("; tried again at {}", moment(due)));
        }
        if unit.left > 0 {
            line.push_str(&format!("; {} still waiting", unit.left));
        }
        text.push_str(&line);
        text.push('\n');
    }
    for connection in &answer.need_sign_in {
        text.push_str(&format!(
            "{connection}: needs a sign-in: renew its credential, then `weir resume {connection}`\n"
        ));
    }
    if let Some(letter) = &answer.letter {
        text.push_str(&format!("{letter}\n"));
    }
    if text.is_empty() {
        text.push_str("Nothing of it waits for review.\n");
    }
    text
}

pub(in crate::verbs) fn render_dropped(answer: &Dropped) -> String {
    format!(
        "{} ({} of {}) was given up.\n",
        answer.entry.id,
        answer.entry.what.name(),
        answer.entry.unit
    )
}
