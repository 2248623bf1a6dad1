//! `weir polls`: the log of polls, newest first.

use serde::{Deserialize, Serialize};
use weir_rules::model::{Class, Timestamp};

use super::text::{count, length, moment, table};
use super::{Failure, Selection};
use crate::control::{PollFilter, Reply, Since};
use crate::host::Host;
use crate::store::{PollRow, UnitId};

/// With more units than this the log of all is read through instead of each one's own.
const UNITS_READ_ALONE: usize = 64;
/// A poll that began this much after it was meant to is said to be late, in ms.
const LATE: i64 = 5_000;

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Polls {
    polls: Vec<PollRow>,
    /// What was asked for leaves out polls that there are.
    filtered: bool,
}

pub(super) fn answer(host: &Host, filter: &PollFilter) -> Result<Reply, Failure> {
    let since = filter.since.map(|since| match since {
        Since::At(at) => at,
        Since::Ago(ms) => host.clock.wall().saturating_sub_unsigned(ms),
    });
    let fits = |poll: &PollRow| {
        let outcome = filter.outcome.as_ref();
        outcome.is_none_or(|outcome| *outcome == poll.outcome)
            && filter.class.is_none_or(|class| poll.class == Some(class))
            && (!filter.trouble || !poll.is_good())
    };
    let selection = Selection::parse(filter.unit.as_deref());
    let chosen = match &filter.unit {
        Some(_) => selection.units(host)?,
        None => Vec::new(),
    };
    let mut polls = Vec::new();
    let read = |unit: Option<UnitId>, polls: &mut Vec<PollRow>| {
        let most = polls.len().saturating_add(filter.limit);
        host.store.each_poll(unit, &mut |poll| {
            if polls.len() >= most || since.is_some_and(|since| poll.ended < since) {
                return false;
            }
            if selection.holds(&poll.key) && fits(&poll) {
                polls.push(poll);
            }
            true
        })
    };
    if chosen.is_empty() || chosen.len() > UNITS_READ_ALONE {
        read(None, &mut polls)?;
    } else {
        for unit in &chosen {
            read(Some(unit.id), &mut polls)?;
        }
        polls.sort_by_key(|poll| std::cmp::Reverse(poll.ended));
        polls.truncate(filter.limit);
    }
    Ok(Reply::done(Polls {
        polls,
        filtered: filter.unit.is_some()
            || filter.outcome.is_some()
            || filter.class.is_some()
            || filter.trouble
            || filter.since.is_some(),
    }))
}

pub(super) fn render(answer: &Polls) -> String {
    if answer.polls.is_empty() {
        return if answer.filtered {
            "No such poll is in the log.\n".to_owned()
        } else {
            "No poll has been made yet.\n".to_owned()
        };
    }
    let rows: Vec<Vec<String>> = answer
        .polls
        .iter()
        .map(|poll| {
            let tally = &poll.tally;
            vec![
                moment(poll.started),
                poll.key.to_string(),
                asker(poll).to_owned(),
                poll.outcome.clone(),
                tally.calls.to_string(),
                tally.not_modified.to_string(),
                tally.records.to_string(),
                tally.new.to_string(),
                tally.changed.to_string(),
                length(poll.interval),
                remark(poll),
            ]
        })
        .collect();
    table(
        &[
            "started", "unit", "asked by", "outcome", "calls", "304s", "records", "new", "changed",
            "next in", "why",
        ],
        &rows,
    )
}

/// Who asked for the poll.
fn asker(poll: &PollRow) -> &'static str {
    use weir_rules::model::Reason;
    match poll.reason {
        Reason::Schedule => "schedule",
        Reason::SyncNow => "sync",
        Reason::Backfill => "backfill",
        Reason::Settle => "settle",
        Reason::Resync => "resync",
    }
}

/// Why the next poll is when it is, and what else there is to say.
fn remark(poll: &PollRow) -> String {
    let mut parts = Vec::new();
    if poll.polls > 1 {
        parts.push(format!(
            "{} until {}",
            count(poll.polls, "poll"),
            moment(poll.ended)
        ));
    }
    // Why the next poll is when it is often begins with what happened.
    if let Some(message) = &poll.message
        && !poll.why.starts_with(message)
    {
        parts.push(message.clone());
    }
    if !poll.why.is_empty() {
        parts.push(poll.why.clone());
    }
    if poll.tally.full_page {
        parts.push("a page was full".to_owned());
    }
    let late = poll.intended.map_or(0, |intended| lateness(poll, intended));
    if late > LATE {
        parts.push(format!("began {} late", length(late.unsigned_abs())));
    }
    parts.join("; ")
}

/// How much after its intended start the poll began, in ms; a person's poll is never late.
fn lateness(poll: &PollRow, intended: Timestamp) -> i64 {
    if poll.reason == weir_rules::model::Reason::Schedule {
        poll.started.saturating_sub(intended)
    } else {
        0
    }
}

/// Every class of fault.
pub(crate) const CLASSES: [Class; 9] = [
    Class::Temporary,
    Class::RateLimited,
    Class::AuthExpired,
    Class::AuthRevoked,
    Class::Permanent,
    Class::PositionLost,
    Class::Pending,
    Class::Incomplete,
    Class::Unknown,
];

#[cfg(test)]
mod tests {
    use weir_rules::model::{Reason, Window};
    use weir_rules::walk::Tally;

    use super::*;
    use crate::store::UnitKey;

    fn row() -> PollRow {
        PollRow {
            unit: UnitId(1),
            key: UnitKey {
                connection: "shop".into(),
                stream: "orders".into(),
                partition: None,
            },
            reason: Reason::Schedule,
            window: Window {
                since: None,
                until: 0,
            },
            intended: Some(0),
            started: 0,
            ended: 0,
            outcome: "ok".into(),
            class: None,
            code: None,
            message: None,
            tally: Tally::default(),
            interval: 30_000,
            why: "found records: sooner".into(),
            polls: 1,
        }
    }

    #[test]
    fn a_row_says_why_and_what_was_unusual() {
        assert_eq!(remark(&row()), "found records: sooner");
        let mut odd = row();
        odd.message = Some("the vendor would not give all of the window".into());
        odd.tally.full_page = true;
        odd.started = 40_000;
        assert_eq!(
            remark(&odd),
            "the vendor would not give all of the window; found records: sooner; a page was full; began 40 s late"
        );
        let wait = PollRow {
            message: Some("429 slow down".into()),
            why: "429 slow down".into(),
            ..row()
        };
        assert_eq!(remark(&wait), "429 slow down", "said once");
        let retry = PollRow {
            why: "429 slow down; the vendor's wait".into(),
            ..wait
        };
        assert_eq!(remark(&retry), "429 slow down; the vendor's wait");
    }
}
