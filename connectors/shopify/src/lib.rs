//! Shopify: orders and customers by the REST API, products and stock levels by GraphQL.
//!
//! REST lists run by the moment of change and page by a link, which carries its own filters. GraphQL runs by the moment of
//! change too, pays in points, and tells in every answer how many are left. Its errors come with status 200.

mod fault;
mod graphql;
mod rest;

use serde::{Deserialize, Serialize};
use weir_sdk::prelude::*;

/// The connector.
pub struct Shopify;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    shop: String,
    #[serde(default = "newest")]
    version: String,
    url: Option<String>,
}

fn newest() -> String {
    "2026-10".to_owned()
}

/// A place in a walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// The link that the vendor gave.
    Link(paging::NextUrl),
    /// GraphQL's cursor.
    After(String),
}

impl Connector for Shopify {
    type Config = Config;
    type Step = At;
    type Cursor = ();

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let shop = config.map_or("acme", |config| &config.shop);
        let version = config.map_or_else(newest, |config| config.version.clone());
        let base = config.and_then(|config| config.url.as_deref()).map_or_else(
            || format!("https://{shop}.myshopify.com"),
            |url| url.trim_end_matches('/').to_owned(),
        );
        let descriptor = Descriptor::new("shopify", "Shopify", env!("CARGO_PKG_VERSION"))
            .docs("https://shopify.dev/docs/api/admin")
            .config_schema(include_str!("config.schema.json"))
            .origin(
                Origin::new("admin", format!("{base}/admin/api/{version}"))
                    .auth(AuthScheme::Header("X-Shopify-Access-Token".to_owned())),
            )
            .pacing(Pacing {
                // The smallest plan: forty calls at once, of which two come back each second; and the points' own bucket.
                documented_limits: vec![
                    Limit {
                        limit: Some(40),
                        restores: Some(2.0),
                        ..Limit::default()
                    },
                    Limit {
                        bucket: Some(graphql::BUCKET.to_owned()),
                        quota_unit: "points".to_owned(),
                        limit: Some(1000),
                        restores: Some(50.0),
                        ..Limit::default()
                    },
                ],
                ..Pacing::default()
            });
        Ok(rest::streams()
            .into_iter()
            .chain(graphql::streams())
            .fold(descriptor, Descriptor::stream))
    }

    fn build_request(task: &Task<Self>, step: Option<At>) -> Result<Request, Fault> {
        match (
            rest::List::of(&task.stream),
            graphql::Query::of(&task.stream),
            step,
        ) {
            (Some(_), _, Some(At::Link(next))) => Ok(next.request("admin")),
            (Some(list), _, None) => Ok(list.first_page(task)),
            (None, Some(query), None) => Ok(query.page(task, None)),
            (None, Some(query), Some(At::After(cursor))) => Ok(query.page(task, Some(cursor))),
            (None, None, _) => Err(Fault::no_stream(&task.stream)),
            _ => Err(Fault::position_lost("a step of another stream").code("step")),
        }
    }

    fn read_response(
        task: &Task<Self>,
        _step: Option<At>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        if response.status != 200 {
            return Err(fault::by_status(response));
        }
        if let Some(served) = response.header("x-shopify-api-version")
            && served != task.config.version
        {
            log::warn(format!(
                "the vendor serves version {served} instead of {}: its fields may differ",
                task.config.version
            ));
        }
        match (
            rest::List::of(&task.stream),
            graphql::Query::of(&task.stream),
        ) {
            (Some(list), _) => list.read(response),
            (None, Some(query)) => query.read(task, response),
            (None, None) => Err(Fault::permanent("no such stream").code("stream")),
        }
    }
}

weir_sdk::export!(Shopify);
