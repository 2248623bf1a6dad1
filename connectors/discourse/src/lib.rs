//! Discourse: the latest posts and topics of a forum.
//!
//! Posts are listed newest first, by id; topics by their last activity, pinned ones before all others. Neither listing can
//! be asked for a window, so a walk goes down until it is older than the window.

mod fault;
mod posts;
mod topics;

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

const HOUR: u64 = 3_600_000;

/// The connector.
pub struct Discourse;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    url: String,
    username: Option<String>,
}

/// A place in a walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// Posts with this id and older ones.
    Posts(posts::Below),
    /// Topics: a page, from 0.
    Topics(u64),
}

impl Connector for Discourse {
    type Config = Config;
    type Step = At;
    type Cursor = ();

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let url = config.map_or("https://forum.example.test", |config| &config.url);
        Ok(
            Descriptor::new("discourse", "Discourse", env!("CARGO_PKG_VERSION"))
                .docs("https://docs.discourse.org")
                .config_schema(include_str!("config.schema.json"))
                .origin(
                    Origin::new("forum", url.trim_end_matches('/'))
                        .auth(AuthScheme::Header("Api-Key".to_owned()))
                        .auth(AuthScheme::Header("User-Api-Key".to_owned()))
                        .auth(AuthScheme::None),
                )
                .pacing(Pacing {
                    // What a forum allows as it is installed: per address, and per key.
                    documented_limits: vec![
                        Limit {
                            bucket: Some("ip".to_owned()),
                            ..Limit::requests(200, 60_000)
                        },
                        Limit::requests(60, 60_000),
                    ],
                    ..Pacing::default()
                })
                .stream(posts::describe())
                .stream(topics::describe()),
        )
    }

    fn build_request(task: &Task<Self>, step: Option<At>) -> Result<Request, Fault> {
        let request = match (task.stream.as_str(), step) {
            ("posts", None) => Request::get("forum", "/posts.json").conditional(),
            ("posts", Some(At::Posts(below))) => {
                Request::get("forum", "/posts.json").query("before", below.before)
            }
            ("topics", None) => topics::page(0).conditional(),
            ("topics", Some(At::Topics(page))) => topics::page(page),
            ("posts" | "topics", Some(_)) => {
                return Err(Fault::position_lost("a step of another stream").code("step"));
            }
            (other, _) => return Err(Fault::no_stream(other)),
        };
        Ok(match &task.config.username {
            Some(name) => request.header("api-username", name.as_str()),
            None => request,
        })
    }

    fn read_response(
        task: &Task<Self>,
        step: Option<At>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        if response.status != 200 {
            return Err(fault::read(response));
        }
        let text = response.text()?;
        match step {
            Some(At::Posts(below)) => posts::read(task, Some(below), text),
            None if task.stream == "posts" => posts::read(task, None, text),
            Some(At::Topics(page)) => topics::read(task, page, text),
            None => topics::read(task, 0, text),
        }
    }
}

weir_sdk::export!(Discourse);
