//! `/latest.json`: topics by their last activity, newest first, in numbered pages.
//!
//! A topic that becomes active moves to the top and pushes the others down: some come twice, none slips between pages.
//! Pinned topics stand before all others, however old: they say nothing about how far down the walk is.

use weir_sdk::prelude::*;

use crate::{At, Discourse, HOUR};

pub(crate) fn describe() -> Stream {
    Stream::new("topics")
        .title("Topics")
        .key("/id")
        .required(&["id", "bumped_at"])
        // Pinned ones first, so no order can be promised.
        .order(Order::Unordered)
        .page_size(30)
        .backfill(false)
        .settle(24 * HOUR)
        .volatile("/views")
        .volatile("/like_count")
        .volatile("/op_like_count")
        .volatile("/posters")
        .volatile("/unseen")
        .volatile("/last_read_post_number")
        .volatile("/unread_posts")
        .volatile("/bookmarked")
        .volatile("/liked")
}

pub(crate) fn page(number: u64) -> Request {
    Request::get("forum", "/latest.json")
        .query("order", "activity")
        .query("no_definitions", "true")
        .query("page", number)
}

pub(crate) fn read(
    task: &Task<Discourse>,
    number: u64,
    text: &str,
) -> Result<Page<Discourse>, Fault> {
    let plan = Plan::new("/topic_list/topics")
        .field("/id")
        .field("/bumped_at")
        .field("/pinned")
        .field("/pinned_globally")
        .outside("/topic_list/more_topics_url");
    let listing = plan.read(text)?;
    let mut page = Page::with_capacity(listing.len());
    let mut reached = false;
    for row in listing.rows() {
        let bumped = row.time(1, time::Format::Rfc3339);
        let pinned = [2, 3]
            .into_iter()
            .any(|field| row.get(field).and_then(Raw::bool) == Some(true));
        if let (Some(since), Some(bumped), false) = (task.window.since, bumped, pinned) {
            reached |= bumped < since;
        }
        page.push(row.identified(text, 0).updated_at(bumped));
    }
    let more = listing.outside_value(0).is_some() && !listing.is_empty();
    Ok(page.next_if((more && !reached).then_some(At::Topics(number + 1))))
}
