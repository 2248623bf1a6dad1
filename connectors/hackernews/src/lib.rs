//! Hacker News: stories and comments, by Algolia's search.
//!
//! The search lists newest first and gives at most 1,000 hits per query, however one pages. So the walk splits its window
//! by time: a full answer is followed by the same query up to the oldest second that was seen. That second is asked for
//! again, since hits of it may have been cut off; what comes twice is the host's to drop.

mod walk;

use serde::Deserialize;
use weir_sdk::prelude::*;

use walk::Below;

/// The most hits that one query gives.
const CAP: u64 = 1000;

/// The connector.
pub struct HackerNews;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    query: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    from: Option<String>,
    #[serde(default = "public_api")]
    url: String,
}

fn public_api() -> String {
    "https://hn.algolia.com/api/v1".to_owned()
}

impl Config {
    fn from(&self) -> Result<Option<i64>, Fault> {
        let Some(text) = &self.from else {
            return Ok(None);
        };
        let at = time::parse_rfc3339(text).or_else(|| time::parse_naive(text, 0));
        at.map(Some).ok_or_else(|| {
            Fault::permanent(format!(
                "from = {text:?} is not a moment: write 2031-03-04T10:00:00Z"
            ))
            .code("config")
        })
    }
}

impl Connector for HackerNews {
    type Config = Config;
    type Step = Below;
    type Cursor = ();

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        if let Some(config) = config {
            config.from()?;
        }
        let url = config.map_or_else(public_api, |config| config.url.clone());
        Ok(
            Descriptor::new("hackernews", "Hacker News", env!("CARGO_PKG_VERSION"))
                .docs("https://hn.algolia.com/api")
                .config_schema(include_str!("config.schema.json"))
                .origin(Origin::new("api", url).auth(AuthScheme::None))
                .pacing(Pacing {
                    documented_limits: vec![Limit::requests(10_000, 3_600_000)],
                    ..Pacing::default()
                })
                .stream(stream("stories", "Stories"))
                .stream(stream("comments", "Comments")),
        )
    }

    fn build_request(task: &Task<Self>, step: Option<Below>) -> Result<Request, Fault> {
        let kind = match task.stream.as_str() {
            "stories" => "story",
            "comments" => "comment",
            other => return Err(Fault::no_stream(other)),
        };
        let below = step.unwrap_or_else(|| Below::first(task));
        let since = task.window.since.max(task.config.from()?);
        let tags = std::iter::once(kind).chain(task.config.tags.iter().map(String::as_str));
        let lower = since
            .map(|since| format!("created_at_i>={},", since.div_euclid(1000)))
            .unwrap_or_default();
        Ok(Request::get("api", "/search_by_date")
            .query_if("query", task.config.query.as_deref())
            .query("tags", tags.collect::<Vec<_>>().join(","))
            .query(
                "numericFilters",
                format!("{lower}created_at_i<={}", below.second),
            )
            .query("hitsPerPage", page_size(task))
            .query("page", below.page))
    }

    fn read_response(
        task: &Task<Self>,
        step: Option<Below>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        let text = response.success()?.text()?;
        let plan = Plan::new("/hits")
            .field("/objectID")
            .field("/created_at_i")
            .outside("/nbHits");
        let listing = plan.read(text)?;
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            let created = row.time(1, time::Format::EpochSeconds);
            page.push(row.identified(text, 0).updated_at(created));
        }
        if let Some(row) = listing.rows().next()
            && page
                .records
                .iter()
                .all(|record| record.updated_at.is_none())
        {
            return Err(row.fault(
                1,
                "is missing or no number, as in all others: the walk goes by it",
            ));
        }
        let below = step.unwrap_or_else(|| Below::first(task));
        let hits = listing.outside(0).and_then(Raw::u64);
        let after = below.after(&page.records, hits, page_size(task));
        Ok(page.next_if(after.next).truncated(after.truncated))
    }
}

fn page_size(task: &Task<HackerNews>) -> u64 {
    u64::from(task.page_size).clamp(1, CAP)
}

fn stream(name: &str, title: &str) -> Stream {
    Stream::new(name)
        .title(title)
        .key("/objectID")
        .required(&["objectID", "created_at_i"])
        .order(Order::Descending)
        .page_size(CAP as u32)
        .result_cap(CAP as u32)
        .granularity(1000)
        // Authors may edit for two hours, and no stamp tells of it.
        .settle(2 * 3_600_000)
        // What others do to a post, and what the search adds to a hit.
        .volatile("/points")
        .volatile("/num_comments")
        .volatile("/children")
        .volatile("/updated_at")
        .volatile("/_highlightResult")
}

weir_sdk::export!(HackerNews);
