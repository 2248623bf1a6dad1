//! Stripe: events, and the main objects by the time of their creation.
//!
//! Lists are newest first and page by the id of the last object. Only creation can be filtered by, so what changes later on
//! an object is seen in the events; they are kept for thirty days.

mod fault;
mod streams;

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

use streams::EVENTS_KEPT;

const SECOND: i64 = 1000;

/// The connector.
pub struct Stripe;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    account: Option<String>,
    version: Option<String>,
    #[serde(default)]
    event_types: Vec<String>,
    #[serde(default = "public_api")]
    url: String,
}

fn public_api() -> String {
    "https://api.stripe.com/v1".to_owned()
}

/// A place in a walk: older than this object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    id: String,
}

impl Connector for Stripe {
    type Config = Config;
    type Step = After;
    type Cursor = ();

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let url = config.map_or_else(public_api, |config| config.url.clone());
        let descriptor = Descriptor::new("stripe", "Stripe", env!("CARGO_PKG_VERSION"))
            .docs("https://docs.stripe.com/api")
            .config_schema(include_str!("config.schema.json"))
            .origin(Origin::new("api", url).auth(AuthScheme::Bearer))
            .pacing(Pacing {
                // The vendor's general limit for live keys is four times this; keys for tests have this one.
                documented_limits: vec![Limit::requests(25, 1000)],
                backoff_cap: Some(60_000),
                ..Pacing::default()
            });
        Ok(streams::all()
            .into_iter()
            .fold(descriptor, Descriptor::stream))
    }

    fn build_request(task: &Task<Self>, step: Option<After>) -> Result<Request, Fault> {
        let path = streams::path(&task.stream)?;
        let request = Request::get("api", path)
            .query("limit", task.page_size.clamp(1, 100))
            // The vendor counts in whole seconds, both ends included.
            .query_if(
                "created[gte]",
                reachable(task).0.map(|since| since.div_euclid(SECOND)),
            )
            .query("created[lte]", task.window.until.div_euclid(SECOND))
            .query_if("starting_after", step.map(|step| step.id));
        let types = task
            .config
            .event_types
            .iter()
            .filter(|_| task.stream == "events");
        let request = types.fold(request, |request, kind| request.query("types[]", kind));
        let request = match &task.config.account {
            Some(account) => request.header("stripe-account", account.as_str()),
            None => request,
        };
        Ok(match &task.config.version {
            Some(version) => request.header("stripe-version", version.as_str()),
            None => request,
        })
    }

    fn read_response(
        task: &Task<Self>,
        _step: Option<After>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        if response.status != 200 {
            return Err(fault::read(response));
        }
        let text = response.text()?;
        let plan = Plan::new("/data")
            .field("/id")
            .field("/created")
            .outside("/has_more");
        let listing = plan.read(text)?;
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            page.push(
                row.identified(text, 0)
                    .updated_at(row.time(1, time::Format::EpochSeconds)),
            );
        }
        let more = listing.outside(0).and_then(Raw::bool) == Some(true);
        let last = page.last_id().map(str::to_owned);
        let next = last.filter(|_| more).map(|id| After { id });
        // What the vendor no longer keeps is said once, where the walk ends.
        let cut = reachable(task).1 && next.is_none();
        Ok(page.next_if(next).truncated(cut))
    }
}

/// From where the window can still be read, and whether that is later than its start.
fn reachable(task: &Task<Stripe>) -> (Option<i64>, bool) {
    let Some(since) = task.window.since else {
        return (None, false);
    };
    if task.stream != "events" {
        return (Some(since), false);
    }
    let kept = i64::try_from(EVENTS_KEPT).unwrap_or(i64::MAX);
    let oldest = task.now.saturating_sub(kept);
    (Some(since.max(oldest)), since < oldest)
}

weir_sdk::export!(Stripe);
