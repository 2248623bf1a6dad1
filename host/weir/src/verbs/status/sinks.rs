//! The sinks' part of `weir status`: what waits for them, what they refuse, and which of them takes nothing.

use std::fmt::Write as _;

use crate::status::Snapshot;
use crate::verbs::text::{bytes, count, from_now, moment};

/// The part at the end of the answer.
pub(super) fn show(text: &mut String, status: &Snapshot) -> std::fmt::Result {
    let outbox = &status.outbox;
    if outbox.entries == 0 {
        writeln!(text, "\noutbox: empty")?;
    } else {
        let age = outbox.oldest.map_or_else(String::new, |oldest| {
            format!(", the oldest seen {}", from_now(oldest, status.now))
        });
        writeln!(
            text,
            "\noutbox: {} ({} of {}){age}",
            count(outbox.entries, "record"),
            bytes(outbox.bytes),
            bytes(status.outbox_bound),
        )?;
    }
    for sink in &status.sinks {
        write!(text, "sink {} ({})", sink.name, sink.kind)?;
        if let Some(delivery) = &sink.delivery {
            write!(text, ": {} delivered", delivery.delivered)?;
        }
        if sink.held > 0 {
            write!(text, ", {} refused and tried again", sink.held)?;
        }
        if sink.dead > 0 {
            write!(text, ", {} refused for good", sink.dead)?;
        }
        writeln!(text)?;
        if let Some(failing) = sink.failing() {
            let next = match failing.next {
                Some(next) if next > status.now => {
                    format!("next try {}", from_now(next, status.now))
                }
                Some(_) => "being tried".to_owned(),
                None => "no more until a person says so".to_owned(),
            };
            writeln!(
                text,
                "  takes nothing since {} ({}), {next}: {}",
                moment(failing.since),
                count(u64::from(failing.tries), "failure"),
                failing.error
            )?;
        } else if let Some(outage) = sink.delivery.as_ref().and_then(|d| d.outage.as_ref()) {
            writeln!(
                text,
                "  took nothing from {} to {} ({}); what waited meanwhile was kept: {}",
                moment(outage.since),
                moment(outage.until),
                count(u64::from(outage.tries), "failure"),
                outage.error
            )?;
        }
    }
    Ok(())
}
