//! What has happened, for whoever reads about a violation.

use std::collections::VecDeque;
use std::fmt::Write;

use weir_rules::model::Timestamp;
use weir_tests::ledger::Outcome;

use super::super::{Called, What};
use crate::store::{OutboxEntry, PollRow};

/// So many events are kept.
const KEPT: usize = 60_000;

/// The last events of a run, as text. Empty unless it is asked for: text costs more than the run.
#[derive(Default)]
pub(super) struct Trail {
    events: Option<VecDeque<String>>,
    start: Timestamp,
}

impl Trail {
    pub(super) fn on(start: Timestamp) -> Trail {
        Trail {
            events: Some(VecDeque::new()),
            start,
        }
    }

    pub(super) fn begins(&mut self, start: Timestamp) {
        self.start = start;
    }

    pub(super) fn take(&mut self) -> Vec<String> {
        self.events.take().unwrap_or_default().into()
    }

    fn note(&mut self, at: Timestamp, text: impl FnOnce() -> String) {
        if let Some(events) = &mut self.events {
            if events.len() >= KEPT {
                events.pop_front();
            }
            let line = format!("{:>14}  {}", relative(at - self.start), text());
            // A host that is asked the same again and again says little that is new.
            if events.back() != Some(&line) {
                events.push_back(line);
            }
        }
    }

    pub(super) fn called(&mut self, call: &Called<'_>) {
        self.note(call.at.world, || {
            let unit = call.unit.map(|(_, key)| key.to_string());
            let served = &call.served.call;
            let outcome = match &served.outcome {
                Outcome::Page => format!("{} with {} records", served.status, served.records),
                Outcome::NotModified => "304".to_owned(),
                Outcome::Fault(name) if served.status == 0 => name.clone(),
                Outcome::Fault(name) => format!("{} ({name})", served.status),
                other => format!("{} ({other:?})", served.status),
            };
            let mut line = format!(
                "{} asks {}: {outcome}",
                unit.unwrap_or_default(),
                served.target
            );
            if let Some(page) = &call.served.page {
                for version in page.versions.iter().take(12) {
                    let _ = write!(line, " {}.{}", version.record + 1, version.revision);
                }
                if page.versions.len() > 12 {
                    line.push_str(" ...");
                }
                if page.more {
                    line.push_str(", more follows");
                }
            }
            if let Some(told) = call.served.told {
                let whom = if told.all { "everyone" } else { "this one" };
                let wait = told.until - call.at.world;
                let _ = write!(line, ", {whom} is to wait {}", relative(wait));
            }
            line
        });
    }

    pub(super) fn ended(&mut self, at: Timestamp, row: &PollRow) {
        self.note(at, || {
            format!(
                "{} poll ended {}: {} new, {} changed, {} unchanged, next in {} ms ({})",
                row.key,
                row.outcome,
                row.tally.new,
                row.tally.changed,
                row.tally.unchanged,
                row.interval,
                row.message.as_deref().unwrap_or(&row.why),
            )
        });
    }

    pub(super) fn delivered(&mut self, at: Timestamp, sink: &str, entries: &[OutboxEntry]) {
        self.note(at, || {
            format!("sink {sink} takes {} entries", entries.len())
        });
    }

    pub(super) fn happened(&mut self, at: Timestamp, what: &What) {
        self.note(at, || happening(what));
    }

    pub(super) fn said(&mut self, at: Timestamp, text: &str) {
        self.note(at, || text.to_owned());
    }
}

/// What happens, in words.
pub(crate) fn happening(what: &What) -> String {
    let after = |pause: &u64| format!("starts again after {}", length(*pause));
    match what {
        What::Fuse { spared, cut, pause } => {
            format!(
                "after {spared} more transactions the store will burn ({cut:?}); {}",
                after(pause)
            )
        }
        What::Kill { pause } => format!("the host is killed; {}", after(pause)),
        What::Stop { pause } => format!("the host is stopped; {}", after(pause)),
        What::Jump { ms } => format!("the wall clock is set by {ms} ms"),
        What::Sleep { ms } => format!("the machine sleeps for {}", length(*ms)),
        What::SinkDown { sink, ms } => format!(
            "{} takes nothing for {}",
            sink.as_deref().unwrap_or("every sink"),
            length(*ms)
        ),
        What::Ask { unit, reason } => format!("somebody asks for {unit} ({reason:?})"),
        What::Still => "nothing is written any more".to_owned(),
    }
}

fn length(ms: u64) -> String {
    relative(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// `+01:02:03.004`, days before it where there are any.
pub(crate) fn relative(ms: i64) -> String {
    let sign = if ms < 0 { '-' } else { '+' };
    let ms = ms.unsigned_abs();
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    let days = if days > 0 {
        format!("{days}d ")
    } else {
        String::new()
    };
    format!(
        "{sign}{days}{:02}:{:02}:{:02}.{:03}",
        rest / 3_600_000,
        rest / 60_000 % 60,
        rest / 1_000 % 60,
        rest % 1_000
    )
}
