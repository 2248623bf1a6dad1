//! Microsoft Graph: users, groups, mail messages and files, by delta queries.
//!
//! A walk follows the links that the vendor gives, as they are, until one is a delta link: that is where the next poll begins.
//! Empty pages with a next link are common, one object may come several times in a walk, and nothing has an order.

mod fault;
mod streams;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

use streams::Kind;

/// The connector.
pub struct MicrosoftGraph;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    user: Option<String>,
    #[serde(default = "inbox")]
    folders: Vec<String>,
    #[serde(default)]
    select: BTreeMap<String, Vec<String>>,
    #[serde(default = "common")]
    tenant: String,
    #[serde(default = "public_api")]
    url: String,
}

fn inbox() -> Vec<String> {
    vec!["inbox".to_owned()]
}

fn common() -> String {
    "common".to_owned()
}

fn public_api() -> String {
    "https://graph.microsoft.com/v1.0".to_owned()
}

/// Where the changes since the last poll begin: a delta link, as it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    link: String,
}

impl Connector for MicrosoftGraph {
    type Config = Config;
    type Step = paging::NextUrl;
    type Cursor = Delta;

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let url = config.map_or_else(public_api, |config| config.url.clone());
        let tenant = config.map_or_else(common, |config| config.tenant.clone());
        let login = format!("https://login.microsoftonline.com/{tenant}/oauth2/v2.0");
        let descriptor = Descriptor::new(
            "microsoft-graph",
            "Microsoft Graph",
            env!("CARGO_PKG_VERSION"),
        )
        .docs("https://learn.microsoft.com/graph/delta-query-overview")
        .config_schema(include_str!("config.schema.json"))
        .origin(
            Origin::new("api", url)
                .auth(AuthScheme::Oauth2(Oauth2 {
                    token_url: format!("{login}/token"),
                    authorize_url: Some(format!("{login}/authorize")),
                    scopes: vec![
                        "https://graph.microsoft.com/.default".to_owned(),
                        "offline_access".to_owned(),
                    ],
                    client_in_body: true,
                }))
                .auth(AuthScheme::Bearer),
        );
        Ok(Kind::ALL.iter().fold(descriptor, |descriptor, kind| {
            descriptor.stream(kind.describe())
        }))
    }

    fn partitions(config: &Config, stream: &str) -> Result<Vec<String>, Fault> {
        Ok(match Kind::of(stream)? {
            Kind::Messages => config.folders.clone(),
            Kind::Users | Kind::Groups | Kind::Files => Vec::new(),
        })
    }

    fn build_request(task: &Task<Self>, step: Option<paging::NextUrl>) -> Result<Request, Fault> {
        let kind = Kind::of(&task.stream)?;
        let request = match (step, &task.cursor) {
            (Some(next), _) => next.request("api"),
            (None, Some(delta)) => Request::follow("api", delta.link.as_str()),
            (None, None) => {
                let select = task.config.select.get(&task.stream);
                Request::get(
                    "api",
                    kind.path(task.config.user.as_deref(), task.partition.as_deref()),
                )
                .query_if("$select", select.map(|fields| fields.join(",")))
            }
        };
        // A hint: the vendor may send more or less.
        Ok(request.header(
            "prefer",
            format!("odata.maxpagesize={}", task.page_size.clamp(1, 999)),
        ))
    }

    fn read_response(
        task: &Task<Self>,
        _step: Option<paging::NextUrl>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        let kind = Kind::of(&task.stream)?;
        if response.status != 200 {
            return Err(fault::read(response));
        }
        let text = response.text()?;
        let plan = Plan::new("/value")
            .field("/id")
            .field(kind.stamp())
            .field("/@removed")
            .field("/deleted")
            .outside("/@odata.nextLink")
            .outside("/@odata.deltaLink");
        let listing = plan.read(text)?;
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            let removed = [2, 3]
                .into_iter()
                .any(|field| row.get(field).is_some_and(|found| !found.is_null()));
            page.push(
                row.identified(text, 0)
                    .updated_at(row.time(1, time::Format::Rfc3339))
                    .deleted(removed),
            );
        }
        if let Some(next) = paging::NextUrl::from_body(listing.outside(0), response) {
            return Ok(page.next(next));
        }
        match listing.outside_value(1).and_then(Raw::id) {
            Some(link) => Ok(page.cursor(Delta { link })),
            None => Err(
                Fault::incomplete("the answer names neither a next link nor a delta link")
                    .code("links"),
            ),
        }
    }
}

weir_sdk::export!(MicrosoftGraph);
