//! MediaWiki: recent changes and log entries of a wiki, by its action API.
//!
//! Both listings run oldest first from the window's start to its end. Where a page ends the wiki names what to send again, as
//! an object with one or more parameters: all of them go into the next call. Errors come with status 200, in the body.

mod fault;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

const DAY: u64 = 24 * 3_600_000;

/// The connector.
pub struct MediaWiki;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    url: String,
    namespaces: Option<Vec<i64>>,
    kinds: Option<Vec<String>>,
    #[serde(default = "five")]
    maxlag: u64,
}

fn five() -> u64 {
    5
}

/// A place in a walk: what the wiki wants to be sent again, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continue {
    send: BTreeMap<String, String>,
}

impl Connector for MediaWiki {
    type Config = Config;
    type Step = Continue;
    type Cursor = ();

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let url = config.map_or("https://wiki.example.test/w", |config| &config.url);
        Ok(
            Descriptor::new("mediawiki", "MediaWiki", env!("CARGO_PKG_VERSION"))
                .docs("https://www.mediawiki.org/wiki/API:Recentchanges")
                .config_schema(include_str!("config.schema.json"))
                .origin(
                    Origin::new("wiki", url.trim_end_matches('/'))
                        .auth(AuthScheme::Bearer)
                        .auth(AuthScheme::None),
                )
                .pacing(Pacing {
                    // Etiquette: one call after the other.
                    concurrency: Some(1),
                    ..Pacing::default()
                })
                .stream(
                    Stream::new("recentchanges")
                        .title("Recent changes")
                        .key("/rcid")
                        .required(&["rcid", "timestamp"])
                        .order(Order::Ascending)
                        .page_size(500)
                        .granularity(1000)
                        // What the big wikis keep; others keep longer.
                        .retention(30 * DAY)
                        .settle(10 * 60_000),
                )
                .stream(
                    Stream::new("logevents")
                        .title("Log entries")
                        .key("/logid")
                        .required(&["logid", "timestamp"])
                        .order(Order::Ascending)
                        .page_size(500)
                        .granularity(1000)
                        .settle(10 * 60_000),
                ),
        )
    }

    fn build_request(task: &Task<Self>, step: Option<Continue>) -> Result<Request, Fault> {
        let (list, prefix) = listing(&task.stream)?;
        let request = Request::get("wiki", "/api.php")
            .query("action", "query")
            .query("format", "json")
            .query("formatversion", 2)
            .query("maxlag", task.config.maxlag)
            .query("list", list)
            .query(&format!("{prefix}dir"), "newer")
            .query(&format!("{prefix}limit"), task.page_size.clamp(1, 500))
            .query_if(&format!("{prefix}start"), task.window.since.map(seconds))
            .query(&format!("{prefix}end"), seconds(task.window.until));
        let request = match list {
            "recentchanges" => request
                .query(
                    "rcprop",
                    "ids|title|timestamp|user|userid|comment|flags|sizes|tags|loginfo|redirect|sha1",
                )
                .query_if("rcnamespace", task.config.namespaces.as_ref().map(|n| joined(n)))
                .query_if("rctype", task.config.kinds.as_ref().map(|kinds| kinds.join("|"))),
            _ => request.query("leprop", "ids|title|type|user|userid|timestamp|comment|details|tags"),
        };
        let send = step.map(|step| step.send).unwrap_or_default();
        Ok(send.iter().fold(request, |request, (name, value)| {
            paging::with_param(request, name, value)
        }))
    }

    fn read_response(
        task: &Task<Self>,
        _step: Option<Continue>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        let (list, _) = listing(&task.stream)?;
        if response.status != 200 {
            return Err(fault::by_status(response));
        }
        let text = response.text()?;
        if let Some(fault) = fault::in_body(text) {
            return Err(fault);
        }
        let id = if list == "recentchanges" {
            "/rcid"
        } else {
            "/logid"
        };
        let plan = Plan::new(&format!("/query/{list}"))
            .field(id)
            .field("/timestamp")
            .outside("/continue")
            .outside("/warnings");
        let listing = plan.read(text)?;
        if let Some(warnings) = listing.outside_value(1) {
            log::warn(format!("the wiki warns: {}", warnings.json()));
        }
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            page.push(
                row.identified(text, 0)
                    .updated_at(row.time(1, time::Format::Rfc3339)),
            );
        }
        let next = listing.outside_value(0).map(sent_again).transpose()?;
        Ok(page.next_if(next))
    }
}

/// The list's name in the API, and what its parameters begin with.
fn listing(stream: &str) -> Result<(&'static str, &'static str), Fault> {
    match stream {
        "recentchanges" => Ok(("recentchanges", "rc")),
        "logevents" => Ok(("logevents", "le")),
        other => Err(Fault::no_stream(other)),
    }
}

/// The wiki counts in whole seconds, both ends included.
fn seconds(at: i64) -> String {
    time::rfc3339(at.div_euclid(1000) * 1000)
}

fn joined(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    numbers.join("|")
}

/// The members of a `continue` object: texts or numbers, as they were sent.
fn sent_again(object: Raw<'_>) -> Result<Continue, Fault> {
    let members: BTreeMap<String, serde_json::Value> = object.parse()?;
    let send = members
        .into_iter()
        .map(|(name, value)| match value {
            serde_json::Value::String(text) => (name, text),
            other => (name, other.to_string()),
        })
        .collect();
    Ok(Continue { send })
}

weir_sdk::export!(MediaWiki);
