//! Google Calendar: the events of a list of calendars, and the list of calendars itself, by sync tokens.
//!
//! A first walk lists everything and ends with a sync token, which only the last page has. The next poll sends it and gets
//! what has changed, deletions included. A token that the vendor no longer knows (410) means that everything is listed again.

mod fault;

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

/// The connector.
pub struct GoogleCalendar;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    #[serde(default = "primary")]
    calendars: Vec<String>,
    #[serde(default = "public_api")]
    url: String,
}

fn primary() -> Vec<String> {
    vec!["primary".to_owned()]
}

fn public_api() -> String {
    "https://www.googleapis.com/calendar/v3".to_owned()
}

/// The vendor's sync token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sync {
    token: String,
}

impl Connector for GoogleCalendar {
    type Config = Config;
    type Step = paging::Token;
    type Cursor = Sync;

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let url = config.map_or_else(public_api, |config| config.url.clone());
        let stream = |name, title, size| {
            Stream::new(name)
                .title(title)
                .key("/id")
                .cursor(CursorKind::Opaque)
                .page_size(size)
                .backfill(false)
        };
        Ok(Descriptor::new(
            "google-calendar",
            "Google Calendar",
            env!("CARGO_PKG_VERSION"),
        )
        .docs("https://developers.google.com/workspace/calendar/api/v3/reference")
        .config_schema(include_str!("config.schema.json"))
        .origin(
            Origin::new("api", url)
                .auth(AuthScheme::Oauth2(Oauth2 {
                    token_url: "https://oauth2.googleapis.com/token".to_owned(),
                    authorize_url: Some("https://accounts.google.com/o/oauth2/v2/auth".to_owned()),
                    scopes: vec!["https://www.googleapis.com/auth/calendar.readonly".to_owned()],
                    client_in_body: true,
                }))
                .auth(AuthScheme::Bearer),
        )
        .pacing(Pacing {
            documented_limits: vec![Limit::requests(600, 60_000)],
            ..Pacing::default()
        })
        // The version of an event moves with it; the tags of its answer do not belong to it.
        .stream(stream("events", "Events", 2500).volatile("/etag"))
        .stream(stream("calendars", "Calendars", 250).volatile("/etag")))
    }

    fn partitions(config: &Config, stream: &str) -> Result<Vec<String>, Fault> {
        Ok(match stream {
            "events" => config.calendars.clone(),
            _ => Vec::new(),
        })
    }

    fn build_request(task: &Task<Self>, step: Option<paging::Token>) -> Result<Request, Fault> {
        let request = match task.stream.as_str() {
            "events" => {
                let calendar = task.partition.as_deref().unwrap_or("primary");
                Request::get(
                    "api",
                    format!("/calendars/{}/events", url::segment(calendar)),
                )
                .query("maxResults", task.page_size.clamp(1, 2500))
            }
            "calendars" => Request::get("api", "/users/me/calendarList")
                .query("maxResults", task.page_size.clamp(1, 250)),
            other => return Err(Fault::no_stream(other)),
        };
        // Any other filter than these would make the sync token refused, or never given.
        let request = request
            .query("showDeleted", "true")
            .query_if("syncToken", task.cursor.as_ref().map(|sync| &sync.token));
        Ok(match step {
            Some(page) => page.apply(request, "pageToken"),
            None => request,
        })
    }

    fn read_response(
        task: &Task<Self>,
        _step: Option<paging::Token>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        if response.status != 200 {
            return Err(fault::read(response, task.now));
        }
        let text = response.text()?;
        let plan = Plan::new("/items")
            .field("/id")
            .field("/updated")
            .field("/status")
            .field("/deleted")
            .outside("/nextPageToken")
            .outside("/nextSyncToken");
        let listing = plan.read(text)?;
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            let cancelled = row.get(2).and_then(Raw::string).as_deref() == Some("cancelled");
            let removed = row.get(3).and_then(Raw::bool) == Some(true);
            page.push(
                row.identified(text, 0)
                    .updated_at(row.time(1, time::Format::Rfc3339))
                    .deleted(cancelled || removed),
            );
        }
        let next = paging::Token::next(listing.outside(0));
        let sync = listing.outside_value(1).and_then(Raw::id);
        match (next, sync) {
            (Some(next), _) => Ok(page.next(next)),
            (None, Some(token)) => Ok(page.cursor(Sync { token })),
            // Without a token the next poll would list everything again, and nobody would know why.
            (None, None) => {
                Err(Fault::incomplete("the last page has no sync token").code("sync-token"))
            }
        }
    }
}

weir_sdk::export!(GoogleCalendar);
