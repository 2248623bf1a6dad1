//! `/posts.json`: fifty ids at a time, newest first.
//!
//! A page covers a range of ids, less the posts that were deleted or may not be seen. So a page may be short, or empty,
//! without being the last one; the walk then goes on below the range.

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

use crate::{At, Discourse, HOUR};

/// Ids that one page covers.
const RANGE: u64 = 50;

/// Empty pages in a row after which the walk says that it gives up: 5,000 ids without a post that may be seen.
const EMPTY: u32 = 100;

/// A place in the walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// The highest id that is asked for.
    pub(crate) before: u64,
    /// Empty pages in a row before this one.
    #[serde(default)]
    pub(crate) empty: u32,
}

pub(crate) fn describe() -> Stream {
    Stream::new("posts")
        .title("Posts")
        .key("/id")
        .required(&["id", "created_at"])
        .order(Order::Descending)
        .page_size(50)
        .backfill(false)
        // Posts are edited and moderated, and no listing tells of it.
        .settle(24 * HOUR)
        // What readers do to a post.
        .volatile("/reads")
        .volatile("/readers_count")
        .volatile("/score")
        .volatile("/incoming_link_count")
        .volatile("/actions_summary")
        .volatile("/reply_count")
        .volatile("/quote_count")
        .volatile("/trust_level")
        .volatile("/reactions")
        .volatile("/reaction_users_count")
}

pub(crate) fn read(
    task: &Task<Discourse>,
    at: Option<Below>,
    text: &str,
) -> Result<Page<Discourse>, Fault> {
    let plan = Plan::new("/latest_posts").field("/id").field("/created_at");
    let listing = plan.read(text)?;
    let mut page = Page::with_capacity(listing.len());
    let (mut lowest, mut oldest) = (None::<u64>, None::<i64>);
    for row in listing.rows() {
        let id = row.get(0).and_then(Raw::u64);
        let created = row.time(1, time::Format::Rfc3339);
        lowest = [lowest, id].into_iter().flatten().min();
        oldest = [oldest, created].into_iter().flatten().min();
        page.push(row.identified(text, 0).updated_at(created));
    }
    let reached = match (task.window.since, oldest) {
        (Some(since), Some(oldest)) => oldest < since,
        _ => false,
    };
    if reached {
        return Ok(page);
    }
    let next = match (lowest, at) {
        // The post at the border comes twice: whether the vendor means it to differs by version.
        (Some(lowest), Some(at)) if lowest >= at.before => Some(Below {
            before: at.before.saturating_sub(RANGE - 1),
            empty: at.empty + 1,
        }),
        (Some(lowest), _) => Some(Below {
            before: lowest,
            empty: 0,
        }),
        (None, Some(at)) => Some(Below {
            before: at.before.saturating_sub(RANGE),
            empty: at.empty + 1,
        }),
        // A forum without posts.
        (None, None) => None,
    };
    let next = next.filter(|next| next.before > 1);
    let gives_up = next.as_ref().is_some_and(|next| next.empty > EMPTY);
    Ok(page
        .next_if(next.filter(|_| !gives_up).map(At::Posts))
        .truncated(gives_up))
}
