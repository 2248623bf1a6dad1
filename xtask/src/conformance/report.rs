//! What is printed: an answer a line, what was read from its headers below it, and a count at the end.

use std::fmt;

use serde::Serialize;
use serde_json::json;
use weir_rules::model::Limit;
use weir_rules::wait::Wait;

use super::feed::{Fed, Outcome};
use super::vendor::Fit;

pub(super) fn print(results: &[Fed], as_json: bool) {
    let mut file = "";
    for fed in results {
        if fed.file != file {
            file = &fed.file;
            println!("{file}");
        }
        println!("  {} -> {}  {}", fed.asked, fed.status, read_as(fed));
        println!("    {}", outcome(fed));
        for limit in &fed.headers.reading.limits {
            println!("    headers: {}", limit_text(limit));
        }
        for ignored in &fed.headers.reading.ignored {
            println!("    headers: left out: {ignored}");
        }
        if !fed.headers.unread.is_empty() {
            println!("    headers: no limit in {}", fed.headers.unread.join(", "));
        }
        if let Some(trouble) = fed.trouble() {
            println!("    NOT DEALT WITH: {trouble}");
        }
    }
    let total = Total::of(results);
    println!("\n{total}");
    if as_json {
        println!("{}", json!(total));
    }
}

/// The count at the end.
#[derive(Serialize)]
struct Total {
    answers: usize,
    pages: usize,
    records: usize,
    faults: usize,
    traps: usize,
    /// Answers whose headers told of a limit.
    with_limits: usize,
    not_dealt_with: usize,
}

impl Total {
    fn of(results: &[Fed]) -> Total {
        let count = |test: &dyn Fn(&Fed) -> bool| results.iter().filter(|fed| test(fed)).count();
        Total {
            answers: results.len(),
            pages: count(&|fed| matches!(fed.outcome, Outcome::Page { .. })),
            records: results.iter().map(records).sum(),
            faults: count(&|fed| matches!(fed.outcome, Outcome::Fault { .. })),
            traps: count(&|fed| matches!(fed.outcome, Outcome::Trap(_))),
            with_limits: count(&|fed| !fed.headers.reading.limits.is_empty()),
            not_dealt_with: count(&|fed| fed.trouble().is_some()),
        }
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} answers: {} pages with {} records, {} faults, {} traps; limits read from {}; {} not dealt with",
            self.answers,
            self.pages,
            self.records,
            self.faults,
            self.traps,
            self.with_limits,
            self.not_dealt_with,
        )
    }
}

fn records(fed: &Fed) -> usize {
    match fed.outcome {
        Outcome::Page { records, .. } => records,
        _ => 0,
    }
}

fn read_as(fed: &Fed) -> String {
    let place = &fed.read_as;
    if fed.connector == "rest" {
        let turn = if place.continues { ", next page" } else { "" };
        return format!("(rest, as the recording tells{turn})");
    }
    let how = match place.fit {
        Fit::Url => "asks for this very URL",
        Fit::Path => "asks for this path",
        Fit::Name => "asks elsewhere for the like",
        Fit::No => "has no stream for it",
    };
    let turn = if place.continues { ", next page" } else { "" };
    format!("({} {how}; read as {}{turn})", fed.connector, place.stream)
}

fn outcome(fed: &Fed) -> String {
    match &fed.outcome {
        Outcome::Page {
            records,
            next,
            truncated,
            limits,
            ..
        } => {
            let mut text = format!("{records} of {} records", fed.held);
            text.push_str(match next {
                0 => ", the walk is complete",
                _ => ", there is a next page",
            });
            if *truncated {
                text.push_str(", the vendor holds more back");
            }
            for limit in limits {
                text.push_str("; body: ");
                text.push_str(&limit_text(limit));
            }
            text
        }
        Outcome::Fault { fault, wait } => {
            let wait = wait.as_ref().map_or_else(String::new, wait_text);
            format!(
                "{} for the {:?}, code {:?}{wait}: {}",
                fault.class.name(),
                fault.scope,
                fault.code,
                fault.message
            )
        }
        Outcome::Trap(why) => why.clone(),
    }
}

fn wait_text(wait: &Wait) -> String {
    format!(", wait {} ms ({:?})", wait.ms, wait.source)
}

fn limit_text(limit: &Limit) -> String {
    let mut parts = vec![limit.bucket.clone().unwrap_or_else(|| "limit".to_owned())];
    match (limit.remaining, limit.limit) {
        (Some(left), Some(all)) => parts.push(format!("{left} of {all} {} left", limit.quota_unit)),
        (Some(left), None) => parts.push(format!("{left} {} left", limit.quota_unit)),
        (None, Some(all)) => parts.push(format!("{all} {}", limit.quota_unit)),
        (None, None) => {}
    }
    if let Some(used) = limit.used_percent {
        parts.push(format!("{used} % used"));
    }
    for (word, ms) in [
        ("per", limit.per),
        ("resets in", limit.resets_in),
        ("wait", limit.wait),
    ] {
        if let Some(ms) = ms {
            parts.push(format!("{word} {ms} ms"));
        }
    }
    if let Some(restores) = limit.restores {
        parts.push(format!("{restores} a second come back"));
    }
    parts.join(", ")
}
