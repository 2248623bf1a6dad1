//! Where a walk goes after a page.

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

use crate::GitHub;
use crate::streams::Kind;

/// A place in a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// The link that the vendor gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Issues: the stamp from which the listing was asked for anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<i64>,
    /// Records seen before this page.
    #[serde(default)]
    pub(crate) seen: u64,
}

/// The next step, and whether the vendor holds back more than it will give.
pub(crate) fn after(
    kind: Kind,
    task: &Task<GitHub>,
    at: At,
    records: &[Record],
    response: &Response,
) -> (Option<At>, bool) {
    let seen = at.seen + records.len() as u64;
    let link = link::next(response);
    match kind {
        Kind::Issues => (issues(task, at, records, link, seen), false),
        Kind::Events => {
            let reached = task
                .window
                .since
                .is_some_and(|since| oldest(records).is_some_and(|oldest| oldest < since));
            let next = link.filter(|_| !reached).map(|url| At {
                url: Some(url),
                since: None,
                seen,
            });
            // The list ended at its cap before it came down to the last poll: what lies between is lost to it.
            let truncated =
                next.is_none() && !reached && task.window.since.is_some() && seen >= 300;
            (next, truncated)
        }
        Kind::Releases | Kind::Commits => (
            link.map(|url| At {
                url: Some(url),
                since: None,
                seen,
            }),
            false,
        ),
    }
}

/// An issue that changes during the walk moves to the end of the list, and all behind it move up by one: with numbered
/// pages the first of the next page would never be seen. So a numbered link is not followed; the list is asked for anew
/// from the last stamp, the ties of which come twice. Links with a cursor of the vendor's are safe, and a page that did not
/// get past its first second has nothing better than its link.
fn issues(
    task: &Task<GitHub>,
    at: At,
    records: &[Record],
    link: Option<String>,
    seen: u64,
) -> Option<At> {
    let url = link?;
    let last = records.last().and_then(|record| record.updated_at);
    if last.is_some_and(|last| last >= task.window.until) {
        return None; // the rest is newer than the window
    }
    let begun = at.since.or(task.window.since);
    let numbered = url::param(&url, "after").is_none() && url::param(&url, "before").is_none();
    match last {
        Some(last)
            if numbered
                && ascending(records)
                && begun.is_none_or(|begun| last / 1000 > begun / 1000) =>
        {
            Some(At {
                url: None,
                since: Some(last),
                seen,
            })
        }
        _ => Some(At {
            url: Some(url),
            since: at.since,
            seen,
        }),
    }
}

fn ascending(records: &[Record]) -> bool {
    records.is_sorted_by_key(|record| record.updated_at)
}

fn oldest(records: &[Record]) -> Option<i64> {
    records.iter().filter_map(|record| record.updated_at).min()
}
