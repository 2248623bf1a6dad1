//! Zendesk: tickets and users by the incremental cursor exports, organisations by cursor paging.
//!
//! An export goes on for ever from its cursor, oldest change first. The vendor withholds the last minute. At its end it may
//! answer without a cursor: then the last one stays good.

mod fault;

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

const MINUTE: u64 = 60_000;

/// An export that is asked for the last minute is refused; this much older is safe.
const NOT_BEFORE: i64 = 2 * 60_000;

/// The connector.
pub struct Zendesk;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    subdomain: String,
    url: Option<String>,
    #[serde(default)]
    include: Vec<String>,
}

/// A place: in an export it outlives the poll, in a list it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    cursor: String,
}

/// What can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tickets,
    Users,
    Organizations,
}

impl Kind {
    fn of(stream: &str) -> Result<Kind, Fault> {
        match stream {
            "tickets" => Ok(Kind::Tickets),
            "users" => Ok(Kind::Users),
            "organizations" => Ok(Kind::Organizations),
            other => Err(Fault::no_stream(other)),
        }
    }

    fn records(self) -> &'static str {
        match self {
            Kind::Tickets => "/tickets",
            Kind::Users => "/users",
            Kind::Organizations => "/organizations",
        }
    }

    fn describe(self) -> Stream {
        let export = |name, title| {
            Stream::new(name)
                .title(title)
                .key("/id")
                .required(&["id", "updated_at"])
                .cursor(CursorKind::Opaque)
                .order(Order::Ascending)
                .page_size(1000)
                .granularity(1000)
                .settle(MINUTE)
                .backfill(false)
        };
        match self {
            // Moves with what the vendor does to a ticket by itself.
            Kind::Tickets => export("tickets", "Tickets").volatile("/generated_timestamp"),
            Kind::Users => export("users", "Users").volatile("/last_login_at"),
            Kind::Organizations => Stream::new("organizations")
                .title("Organisations")
                .key("/id")
                .required(&["id", "updated_at"])
                .cursor(CursorKind::Snapshot)
                .page_size(100),
        }
    }
}

impl Connector for Zendesk {
    type Config = Config;
    type Step = At;
    type Cursor = At;

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let subdomain = config.map_or("acme", |config| &config.subdomain);
        let url = config
            .and_then(|config| config.url.clone())
            .unwrap_or_else(|| format!("https://{subdomain}.zendesk.com/api/v2"));
        Ok(
            Descriptor::new("zendesk", "Zendesk", env!("CARGO_PKG_VERSION"))
                .docs("https://developer.zendesk.com/api-reference")
                .config_schema(include_str!("config.schema.json"))
                .origin(
                    Origin::new("api", url)
                        .auth(AuthScheme::Basic)
                        .auth(AuthScheme::Bearer),
                )
                .pacing(Pacing {
                    documented_limits: vec![
                        Limit::requests(400, MINUTE),
                        // Exports have a limit of their own, far below the account's.
                        Limit {
                            bucket: Some("zendesk-incremental-exports-cursor".to_owned()),
                            ..Limit::requests(10, MINUTE)
                        },
                    ],
                    ..Pacing::default()
                })
                .stream(Kind::Tickets.describe())
                .stream(Kind::Users.describe())
                .stream(Kind::Organizations.describe()),
        )
    }

    fn build_request(task: &Task<Self>, step: Option<At>) -> Result<Request, Fault> {
        let kind = Kind::of(&task.stream)?;
        if kind == Kind::Organizations {
            return Ok(Request::get("api", "/organizations.json")
                .query("page[size]", task.page_size.clamp(1, 100))
                .query_if("page[after]", step.map(|step| step.cursor)));
        }
        let request = Request::get("api", format!("/incremental{}/cursor.json", kind.records()))
            .query("per_page", task.page_size.clamp(1, 1000))
            .spends("zendesk-incremental-exports-cursor", 1);
        let request = match step.as_ref().or(task.cursor.as_ref()) {
            Some(at) => request.query("cursor", &at.cursor),
            None => {
                let newest = task.now.saturating_sub(NOT_BEFORE);
                let start = task.window.since.unwrap_or(0).min(newest).max(0);
                request.query("start_time", start.div_euclid(1000))
            }
        };
        let include = &task.config.include;
        Ok(request.query_if(
            "include",
            (kind == Kind::Tickets && !include.is_empty()).then(|| include.join(",")),
        ))
    }

    fn read_response(
        task: &Task<Self>,
        _step: Option<At>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        let kind = Kind::of(&task.stream)?;
        if response.status != 200 {
            return Err(fault::read(response, task.page_size));
        }
        let text = response.text()?;
        let plan = Plan::new(kind.records())
            .field("/id")
            .field("/updated_at")
            .field("/status")
            .field("/active")
            .outside("/after_cursor")
            .outside("/end_of_stream")
            .outside("/meta/after_cursor")
            .outside("/meta/has_more");
        let listing = plan.read(text)?;
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            let deleted = match kind {
                Kind::Tickets => row.get(2).and_then(Raw::string).as_deref() == Some("deleted"),
                // "false if the user has been deleted"; who is suspended stays active.
                Kind::Users => row.get(3).and_then(Raw::bool) == Some(false),
                Kind::Organizations => false,
            };
            page.push(
                row.identified(text, 0)
                    .updated_at(row.time(1, time::Format::Rfc3339))
                    .deleted(deleted),
            );
        }
        let (place, more) = match kind {
            Kind::Organizations => (
                listing.outside_value(2),
                listing.outside(3).and_then(Raw::bool) == Some(true),
            ),
            Kind::Tickets | Kind::Users => (
                listing.outside_value(0),
                listing.outside(1).and_then(Raw::bool) == Some(false),
            ),
        };
        let at = place.and_then(Raw::id).map(|cursor| At { cursor });
        if more && at.is_none() {
            return Err(
                Fault::incomplete("the answer says that there is more, and not where")
                    .code("cursor"),
            );
        }
        if let (Some(at), true) = (&at, kind != Kind::Organizations) {
            page = page.cursor(at.clone());
        }
        Ok(page.next_if(at.filter(|_| more)))
    }
}

weir_sdk::export!(Zendesk);
