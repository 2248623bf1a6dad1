//! Instagram, by Meta's Graph API: posts, their metrics, stories, and the metrics of accounts.
//!
//! Lists are newest first and page by a cursor; the link that the vendor gives besides holds the token and is never followed.
//! Metrics of an account are one value a day, kept for ninety days, and final after two.

mod account;
mod fault;
mod media;

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// The connector.
pub struct Instagram;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    accounts: Vec<String>,
    #[serde(default = "media_fields")]
    media_fields: Vec<String>,
    #[serde(default = "media_metrics")]
    media_metrics: Vec<String>,
    #[serde(default = "media_days")]
    media_days: u64,
    #[serde(default = "account_metrics")]
    account_metrics: Vec<String>,
    #[serde(default = "version")]
    version: String,
    #[serde(default = "public_api")]
    url: String,
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn media_fields() -> Vec<String> {
    owned(&[
        "caption",
        "media_type",
        "media_product_type",
        "media_url",
        "permalink",
        "thumbnail_url",
        "username",
        "like_count",
        "comments_count",
    ])
}

fn media_metrics() -> Vec<String> {
    owned(&["reach", "saved", "total_interactions"])
}

fn media_days() -> u64 {
    14
}

fn account_metrics() -> Vec<String> {
    owned(&["reach", "follower_count"])
}

fn version() -> String {
    "v24.0".to_owned()
}

fn public_api() -> String {
    "https://graph.facebook.com".to_owned()
}

/// A place in a walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// A list, after this cursor.
    After(String),
    /// The metrics of one post.
    Media(String),
}

impl Connector for Instagram {
    type Config = Config;
    type Step = At;
    type Cursor = ();

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let url = config.map_or_else(public_api, |config| config.url.clone());
        let version = config.map_or_else(version, |config| config.version.clone());
        let base = format!("{}/{version}", url.trim_end_matches('/'));
        Ok(
            Descriptor::new("instagram", "Instagram", env!("CARGO_PKG_VERSION"))
                .docs("https://developers.facebook.com/docs/instagram-platform")
                .config_schema(include_str!("config.schema.json"))
                .origin(
                    Origin::new("api", base)
                        .auth(AuthScheme::Bearer)
                        .auth(AuthScheme::Query("access_token".to_owned())),
                )
                .pacing(Pacing {
                    // Calls while blocked lengthen the block, which is lifted by the hour.
                    backoff_cap: Some(HOUR),
                    ..Pacing::default()
                })
                .stream(media::posts())
                .stream(media::metrics())
                .stream(media::stories())
                .stream(account::describe()),
        )
    }

    fn partitions(config: &Config, _stream: &str) -> Result<Vec<String>, Fault> {
        Ok(config.accounts.clone())
    }

    fn build_request(task: &Task<Self>, step: Option<At>) -> Result<Request, Fault> {
        let account = task.partition.as_deref().ok_or_else(|| {
            Fault::permanent("every stream is read account by account").code("partition")
        })?;
        match task.stream.as_str() {
            "media" | "stories" => media::list(task, account, step),
            "media_insights" => media::metrics_request(task, account, step),
            "account_insights" => account::request(task, account),
            other => Err(Fault::no_stream(other)),
        }
    }

    fn read_response(
        task: &Task<Self>,
        step: Option<At>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        let text = response.text();
        let body = text.as_ref().map_or("", |text| *text);
        // Errors come with 400 and 403, now and then with 200.
        if response.status != 200 || fault::in_body(body) {
            return Err(fault::read(response, task.page_size));
        }
        match (task.stream.as_str(), step) {
            ("media_insights", Some(At::Media(_))) => media::read_metrics(text?),
            ("media_insights", _) => media::read_posts_for_metrics(task, text?),
            ("account_insights", _) => account::read(text?),
            _ => media::read_list(task, text?),
        }
    }
}

weir_sdk::export!(Instagram);
