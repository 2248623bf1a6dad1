//! GitHub: issues (pull requests among them), events, releases and commits of a list of repositories.
//!
//! Each repository is a partition. Paging follows the `Link` header; first pages are conditional, since an answer of 304
//! costs no quota.

mod fault;
mod streams;
mod walk;

use serde::Deserialize;
use weir_sdk::prelude::*;

use streams::Kind;
use walk::At;

/// The connector.
pub struct GitHub;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    repos: Vec<String>,
    #[serde(default = "public_api")]
    url: String,
    branch: Option<String>,
}

fn public_api() -> String {
    "https://api.github.com".to_owned()
}

impl Connector for GitHub {
    type Config = Config;
    type Step = At;
    type Cursor = ();

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let url = config.map_or_else(public_api, |config| config.url.clone());
        let descriptor = Descriptor::new("github", "GitHub", env!("CARGO_PKG_VERSION"))
            .docs("https://docs.github.com/rest")
            .config_schema(include_str!("config.schema.json"))
            .origin(
                Origin::new("api", url)
                    .auth(AuthScheme::Bearer)
                    .auth(AuthScheme::None),
            )
            .pacing(Pacing {
                // "Make requests serially": the vendor's own advice against secondary limits.
                concurrency: Some(1),
                backoff_cap: Some(3_600_000),
                not_modified_is_free: true,
                documented_limits: vec![Limit {
                    bucket: Some("core".to_owned()),
                    ..Limit::requests(5000, 3_600_000)
                }],
                ..Pacing::default()
            });
        Ok(Kind::ALL.iter().fold(descriptor, |descriptor, kind| {
            descriptor.stream(kind.describe())
        }))
    }

    fn partitions(config: &Config, _stream: &str) -> Result<Vec<String>, Fault> {
        Ok(config.repos.clone())
    }

    fn build_request(task: &Task<Self>, step: Option<At>) -> Result<Request, Fault> {
        let kind = Kind::of(&task.stream)?;
        let request = match step {
            Some(At { url: Some(url), .. }) => Request::follow("api", url),
            Some(At { since, .. }) => kind.first_page(task, since)?,
            None => kind.first_page(task, task.window.since)?.conditional(),
        };
        Ok(request
            .header("accept", "application/vnd.github+json")
            .header("x-github-api-version", "2022-11-28")
            .spends("core", 1))
    }

    fn read_response(
        task: &Task<Self>,
        step: Option<At>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        let kind = Kind::of(&task.stream)?;
        // "Git Repository is empty.": no commits is an answer, not a conflict.
        if response.status == 409 && kind == Kind::Commits {
            return Ok(Page::new());
        }
        if response.status != 200 {
            return Err(fault::read(response));
        }
        let text = response.text()?;
        let plan = Plan::new("").field(kind.id()).field(kind.stamp());
        let listing = plan.read(text)?;
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            page.push(
                row.identified(text, 0)
                    .updated_at(row.time(1, time::Format::Rfc3339)),
            );
        }
        let (next, truncated) = walk::after(
            kind,
            task,
            step.unwrap_or_default(),
            &page.records,
            response,
        );
        Ok(page
            .next_if(next)
            .truncated(truncated)
            .poll_after(poll_interval(response)))
    }
}

/// `X-Poll-Interval`, in seconds: how long the vendor wants to be left alone about this listing.
fn poll_interval(response: &Response) -> Option<u64> {
    response
        .header("x-poll-interval")?
        .parse::<u64>()
        .ok()?
        .checked_mul(1000)
}

weir_sdk::export!(GitHub);
