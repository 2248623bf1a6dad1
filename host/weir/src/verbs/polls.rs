//! `weir polls`: the log of polls, newest first.

use serde::{Deserialize, Serialize};

use super::text::{length, moment, table};
use super::{Failure, Selection};
use crate::control::Reply;
use crate::host::Host;
use crate::store::PollRow;

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Polls {
    polls: Vec<PollRow>,
}

pub(super) fn answer(host: &Host, unit: Option<&str>, limit: usize) -> Result<Reply, Failure> {
    let mut polls = Vec::new();
    if unit.is_some() {
        for row in Selection::parse(unit).units(host)? {
            polls.extend(host.store.polls(Some(row.id), limit)?);
        }
        polls.sort_by_key(|poll| std::cmp::Reverse(poll.started));
        polls.truncate(limit);
    } else {
        polls = host.store.polls(None, limit)?;
    }
    Ok(Reply::done(Polls { polls }))
}

pub(super) fn render(answer: &Polls) -> String {
    if answer.polls.is_empty() {
        return "No poll has been made yet.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = answer
        .polls
        .iter()
        .map(|poll| {
            vec![
                moment(poll.started),
                poll.key.to_string(),
                poll.outcome.clone(),
                poll.calls.to_string(),
                poll.records.to_string(),
                poll.new.to_string(),
                poll.changed.to_string(),
                length(poll.interval),
                poll.message.clone().unwrap_or_else(|| poll.why.clone()),
            ]
        })
        .collect();
    table(
        &[
            "started", "unit", "outcome", "calls", "records", "new", "changed", "next in", "why",
        ],
        &rows,
    )
}
