//! Posts, stories, and the metrics of posts.

use weir_sdk::prelude::*;

use crate::{At, DAY, Instagram};

pub(crate) fn posts() -> Stream {
    Stream::new("media")
        .title("Posts")
        .key("/id")
        .required(&["id", "timestamp"])
        .order(Order::Descending)
        .page_size(100)
        // Listings end near ten thousand posts.
        .result_cap(10_000)
        .granularity(1000)
        .backfill(false)
        // Captions are edited, and no stamp tells of it.
        .settle(DAY)
        .volatile("/like_count")
        .volatile("/comments_count")
        // Addresses of files are signed anew for every answer.
        .volatile("/media_url")
        .volatile("/thumbnail_url")
}

/// One record per post and metric; read whole each time, since a count has no stamp.
pub(crate) fn metrics() -> Stream {
    Stream::new("media_insights")
        .title("Metrics of posts")
        .key("/id")
        .cursor(CursorKind::Snapshot)
        .page_size(50)
}

pub(crate) fn stories() -> Stream {
    Stream::new("stories")
        .title("Stories")
        .key("/id")
        .required(&["id", "timestamp"])
        .cursor(CursorKind::Snapshot)
        .page_size(100)
        .retention(DAY)
        .volatile("/like_count")
        .volatile("/comments_count")
        .volatile("/media_url")
        .volatile("/thumbnail_url")
}

pub(crate) fn list(
    task: &Task<Instagram>,
    account: &str,
    step: Option<At>,
) -> Result<Request, Fault> {
    let fields = ["id", "timestamp"]
        .into_iter()
        .chain(task.config.media_fields.iter().map(String::as_str));
    let request = Request::get("api", format!("/{account}/{}", task.stream))
        .query("fields", fields.collect::<Vec<_>>().join(","))
        .query("limit", task.page_size.clamp(1, 100));
    match step {
        None => Ok(request),
        Some(At::After(cursor)) => Ok(request.query("after", cursor)),
        Some(At::Media(_)) => Err(Fault::position_lost("a step of another stream").code("step")),
    }
}

pub(crate) fn metrics_request(
    task: &Task<Instagram>,
    account: &str,
    step: Option<At>,
) -> Result<Request, Fault> {
    let posts = Request::get("api", format!("/{account}/media"))
        .query("fields", "id,timestamp")
        .query("limit", task.page_size.clamp(1, 100));
    Ok(match step {
        None => posts,
        Some(At::After(cursor)) => posts.query("after", cursor),
        Some(At::Media(id)) => Request::get("api", format!("/{}/insights", url::segment(&id)))
            .query("metric", task.config.media_metrics.join(",")),
    })
}

/// Posts with the window's start as the end of the walk; stories are few and read whole.
pub(crate) fn read_list(task: &Task<Instagram>, text: &str) -> Result<Page<Instagram>, Fault> {
    let plan = list_plan();
    let listing = plan.read(text)?;
    let mut page = Page::with_capacity(listing.len());
    let mut oldest = None::<i64>;
    for row in listing.rows() {
        let made = row.time(1, time::Format::Rfc3339);
        oldest = [oldest, made].into_iter().flatten().min();
        page.push(row.identified(text, 0).updated_at(made));
    }
    let reached = match (task.window.since, oldest) {
        (Some(since), Some(oldest)) => oldest < since,
        _ => false,
    };
    Ok(page.next_if(after(&listing).filter(|_| !reached)))
}

/// Each post of the last days is a call of its own.
pub(crate) fn read_posts_for_metrics(
    task: &Task<Instagram>,
    text: &str,
) -> Result<Page<Instagram>, Fault> {
    let plan = list_plan();
    let listing = plan.read(text)?;
    let days = task.config.media_days.saturating_mul(DAY);
    let since = task.now.saturating_sub_unsigned(days);
    let mut page = Page::new();
    let mut reached = false;
    for row in listing.rows() {
        if row
            .time(1, time::Format::Rfc3339)
            .is_some_and(|made| made < since)
        {
            reached = true;
        } else {
            page = page.next(At::Media(row.id(0)?));
        }
    }
    Ok(page.next_if(after(&listing).filter(|_| !reached)))
}

pub(crate) fn read_metrics(text: &str) -> Result<Page<Instagram>, Fault> {
    let plan = Plan::new("/data").field("/id");
    let listing = plan.read(text)?;
    let mut page = Page::with_capacity(listing.len());
    for row in listing.rows() {
        // "17900000000000001/insights/reach/lifetime"
        page.push(row.identified(text, 0));
    }
    Ok(page)
}

fn list_plan() -> Plan {
    Plan::new("/data")
        .field("/id")
        .field("/timestamp")
        .outside("/paging/next")
        .outside("/paging/cursors/after")
}

/// The cursor stays there at the end; only the link tells whether there is more. It is not used itself: it holds the token.
fn after(listing: &json::Listing<'_, '_>) -> Option<At> {
    listing.outside_value(0)?;
    listing.outside_value(1)?.id().map(At::After)
}
