//! Reddit: new posts and comments of a list of subreddits.
//!
//! Listings are newest first and end near a thousand items, whatever there is behind. A walk begins at the top each time and
//! goes down until it is older than the window: an anchor from the last poll (`before`) would show nothing for ever once
//! its item has been removed.

mod fault;

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

const HOUR: u64 = 3_600_000;

/// The vendor's listings end near a thousand items: some are filtered out on the way.
const HORIZON: u64 = 900;

/// The connector.
pub struct Reddit;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    subreddits: Vec<String>,
    #[serde(default = "public_api")]
    url: String,
}

fn public_api() -> String {
    "https://oauth.reddit.com".to_owned()
}

/// A place in a walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// The fullname that the vendor gave.
    after: String,
    /// Items seen before this page.
    seen: u64,
}

impl Connector for Reddit {
    type Config = Config;
    type Step = After;
    type Cursor = ();

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let url = config.map_or_else(public_api, |config| config.url.clone());
        Ok(
            Descriptor::new("reddit", "Reddit", env!("CARGO_PKG_VERSION"))
                .docs("https://www.reddit.com/dev/api")
                .config_schema(include_str!("config.schema.json"))
                .origin(
                    Origin::new("api", url)
                        .auth(AuthScheme::Oauth2(Oauth2 {
                            token_url: "https://www.reddit.com/api/v1/access_token".to_owned(),
                            authorize_url: Some(
                                "https://www.reddit.com/api/v1/authorize".to_owned(),
                            ),
                            scopes: vec!["read".to_owned()],
                            client_in_body: false,
                        }))
                        .auth(AuthScheme::Bearer),
                )
                .pacing(Pacing {
                    // Counted over ten minutes, so that short bursts are allowed.
                    documented_limits: vec![Limit::requests(1000, 600_000)],
                    ..Pacing::default()
                })
                .stream(stream("posts", "Posts"))
                .stream(stream("comments", "Comments")),
        )
    }

    fn partitions(config: &Config, _stream: &str) -> Result<Vec<String>, Fault> {
        Ok(config.subreddits.clone())
    }

    fn build_request(task: &Task<Self>, step: Option<After>) -> Result<Request, Fault> {
        let listing = match task.stream.as_str() {
            "posts" => "new",
            "comments" => "comments",
            other => return Err(Fault::no_stream(other)),
        };
        let subreddit = task.partition.as_deref().unwrap_or_default();
        let request = Request::get("api", format!("/r/{subreddit}/{listing}"))
            // Texts as they were written, without HTML's escapes.
            .query("raw_json", 1)
            .query("limit", task.page_size.clamp(1, 100));
        Ok(match step {
            Some(step) => request.query("after", step.after).query("count", step.seen),
            None => request,
        })
    }

    fn read_response(
        task: &Task<Self>,
        step: Option<After>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        if response.status != 200 {
            return Err(fault::read(response));
        }
        let text = response.text()?;
        let plan = Plan::new("/data/children")
            .field("/data/name")
            .field("/data/created_utc")
            .field("/data")
            .outside("/data/after");
        let listing = plan.read(text)?;
        let mut page = Page::with_capacity(listing.len());
        let mut oldest = None::<i64>;
        for row in listing.rows() {
            let created = row.time(1, time::Format::EpochSeconds);
            oldest = [oldest, created].into_iter().flatten().min();
            // The wrapper around it (`kind`) says nothing that the fullname does not.
            let item = row.need(2)?.json();
            page.push(Record::of(text, item, row.id(0).unwrap_or_default()).updated_at(created));
        }
        let seen = step.map_or(0, |step| step.seen) + listing.len() as u64;
        let reached = match (task.window.since, oldest) {
            (Some(since), Some(oldest)) => oldest < since,
            _ => false,
        };
        let after = listing.outside_value(0).and_then(Raw::id);
        let next = after
            .filter(|_| !reached)
            .map(|after| After { after, seen });
        // The listing ended at its horizon before it came down to the last poll.
        let cut = next.is_none() && !reached && task.window.since.is_some() && seen >= HORIZON;
        Ok(page.next_if(next).truncated(cut))
    }
}

fn stream(name: &str, title: &str) -> Stream {
    let stream = Stream::new(name)
        .title(title)
        .key("/name")
        .required(&["name", "created_utc"])
        .order(Order::Descending)
        .page_size(100)
        .result_cap(1000)
        .granularity(1000)
        .backfill(false)
        // Edits and removals move no stamp by which a listing could be asked.
        .settle(24 * HOUR);
    // What readers do to an item, and what the vendor counts of them.
    [
        "/score",
        "/ups",
        "/downs",
        "/upvote_ratio",
        "/likes",
        "/num_comments",
        "/num_crossposts",
        "/num_reports",
        "/view_count",
        "/saved",
        "/visited",
        "/clicked",
        "/gilded",
        "/gildings",
        "/all_awardings",
        "/total_awards_received",
        "/subreddit_subscribers",
        "/controversiality",
    ]
    .iter()
    .fold(stream, |stream, pointer| stream.volatile(pointer))
}

weir_sdk::export!(Reddit);
