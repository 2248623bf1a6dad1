//! Slack: the channels of a workspace, the messages of each channel, and the users.
//!
//! Messages are a stream below the channels: each channel is polled by itself. They are listed newest first and cannot be
//! asked for by their last change: edits and deletions keep the old stamp and are found by reading a little again. Errors come
//! with status 200, as `ok: false`.

mod fault;

use serde::Deserialize;
use weir_sdk::prelude::*;

const HOUR: u64 = 3_600_000;

/// The connector.
pub struct Slack;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    #[serde(default = "public")]
    types: Vec<String>,
    #[serde(default)]
    archived: bool,
    #[serde(default = "public_api")]
    url: String,
}

fn public() -> Vec<String> {
    vec!["public_channel".to_owned()]
}

fn public_api() -> String {
    "https://slack.com/api".to_owned()
}

impl Connector for Slack {
    type Config = Config;
    type Step = paging::Token;
    type Cursor = ();

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let url = config.map_or_else(public_api, |config| config.url.clone());
        // Limits are told for each method, by the minute, and no header counts them down.
        let tier = |method: &str, calls| Limit {
            bucket: Some(method.to_owned()),
            ..Limit::requests(calls, 60_000)
        };
        let whole = |name, title| {
            Stream::new(name)
                .title(title)
                .key("/id")
                .cursor(CursorKind::Snapshot)
                .page_size(200)
        };
        Ok(Descriptor::new("slack", "Slack", env!("CARGO_PKG_VERSION"))
            .docs("https://docs.slack.dev/apis/web-api")
            .config_schema(include_str!("config.schema.json"))
            .origin(Origin::new("api", url).auth(AuthScheme::Bearer))
            .pacing(Pacing {
                documented_limits: vec![
                    tier("conversations.list", 20),
                    tier("users.list", 20),
                    tier("conversations.history", 50),
                ],
                backoff_cap: Some(60_000),
                ..Pacing::default()
            })
            .stream(
                whole("channels", "Channels")
                    .volatile("/num_members")
                    .volatile("/updated"),
            )
            .stream(whole("users", "Users"))
            .stream(
                Stream::new("messages")
                    .title("Messages")
                    .key("/ts")
                    .parent("channels")
                    .order(Order::Descending)
                    .page_size(200)
                    .settle(24 * HOUR)
                    // What others do to a message.
                    .volatile("/reactions")
                    .volatile("/reply_count")
                    .volatile("/reply_users")
                    .volatile("/reply_users_count")
                    .volatile("/latest_reply"),
            ))
    }

    fn build_request(task: &Task<Self>, step: Option<paging::Token>) -> Result<Request, Fault> {
        let limit = task.page_size.clamp(1, 999);
        let request = match task.stream.as_str() {
            "channels" => method("conversations.list")
                .query("types", task.config.types.join(","))
                .query("exclude_archived", !task.config.archived)
                .query("limit", limit),
            "users" => method("users.list").query("limit", limit),
            "messages" => {
                let channel = task.partition.as_deref().ok_or_else(|| {
                    Fault::permanent("messages are read channel by channel").code("partition")
                })?;
                method("conversations.history")
                    .query("channel", channel)
                    .query_if("oldest", task.window.since.map(stamp))
                    .query("latest", stamp(task.window.until))
                    .query("inclusive", "true")
                    .query("limit", limit)
            }
            other => return Err(Fault::no_stream(other)),
        };
        Ok(match step {
            Some(next) => next.apply(request, "cursor"),
            None => request,
        })
    }

    fn read_response(
        task: &Task<Self>,
        _step: Option<paging::Token>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        if response.status != 200 {
            return Err(weir_sdk::fault::from_status(response));
        }
        let text = response.text()?;
        fault::check(text)?;
        let (records, id, changed, format) = match task.stream.as_str() {
            "channels" => ("/channels", "/id", "/updated", time::Format::EpochMillis),
            "users" => ("/members", "/id", "/updated", time::Format::EpochSeconds),
            _ => ("/messages", "/ts", "/ts", time::Format::EpochSeconds),
        };
        let plan = Plan::new(records)
            .field(id)
            .field(changed)
            .field("/deleted")
            .outside("/response_metadata/next_cursor");
        let listing = plan.read(text)?;
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            let deleted = row.get(2).and_then(Raw::bool) == Some(true);
            page.push(
                row.identified(text, 0)
                    .updated_at(row.time(1, format))
                    .deleted(deleted),
            );
        }
        // Pages may be short, or empty, before the last one: only the cursor tells.
        Ok(page.next_if(paging::Token::next(listing.outside(0))))
    }
}

fn method(name: &str) -> Request {
    Request::get("api", format!("/{name}")).spends(name, 1)
}

/// The vendor's stamps are decimal seconds.
fn stamp(at: i64) -> String {
    format!("{}.{:03}", at.div_euclid(1000), at.rem_euclid(1000))
}

weir_sdk::export!(Slack);
