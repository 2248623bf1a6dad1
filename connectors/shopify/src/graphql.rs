//! Queries: by the moment of change, products oldest first, paid in points.

use serde_json::json;
use weir_sdk::prelude::*;

use crate::{At, Shopify, fault};

/// The bucket that the points come from.
pub(crate) const BUCKET: &str = "graphql";

/// Points that a page is thought to cost before an answer has told.
const COST: u32 = 150;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Query {
    Products,
    InventoryItems,
}

pub(crate) fn streams() -> Vec<Stream> {
    [
        (Query::Products, "Products"),
        (Query::InventoryItems, "Inventory items"),
    ]
    .into_iter()
    .map(|(query, title)| {
        Stream::new(query.name())
            .title(title)
            .key("/id")
            .required(&["id", "updatedAt"])
            .order(query.order())
            .page_size(100)
            .granularity(1000)
            .settle(5 * 60_000)
    })
    .collect()
}

impl Query {
    pub(crate) fn of(stream: &str) -> Option<Query> {
        [Query::Products, Query::InventoryItems]
            .into_iter()
            .find(|query| query.name() == stream)
    }

    fn name(self) -> &'static str {
        match self {
            Query::Products => "products",
            Query::InventoryItems => "inventory_items",
        }
    }

    /// Inventory items come by id, whatever the filter: the last one's stamp says nothing about the others.
    fn order(self) -> Order {
        match self {
            Query::Products => Order::Ascending,
            Query::InventoryItems => Order::Unordered,
        }
    }

    /// The field of the answer's data.
    fn field(self) -> &'static str {
        match self {
            Query::Products => "products",
            Query::InventoryItems => "inventoryItems",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Query::Products => {
                "query($first: Int!, $after: String, $query: String) { \
                 products(first: $first, after: $after, query: $query, sortKey: UPDATED_AT) { \
                 pageInfo { hasNextPage endCursor } \
                 nodes { id handle title status vendor productType tags createdAt updatedAt publishedAt totalInventory } } }"
            }
            // No order by change is offered here; the filter by change is.
            Query::InventoryItems => {
                "query($first: Int!, $after: String, $query: String) { \
                 inventoryItems(first: $first, after: $after, query: $query) { \
                 pageInfo { hasNextPage endCursor } \
                 nodes { id sku tracked requiresShipping countryCodeOfOrigin createdAt updatedAt } } }"
            }
        }
    }

    pub(crate) fn page(self, task: &Task<Shopify>, after: Option<String>) -> Request {
        let seconds = |at: i64| time::rfc3339(at.div_euclid(1000) * 1000);
        let until = format!("updated_at:<='{}'", seconds(task.window.until));
        let filter = match task.window.since {
            Some(since) => format!("updated_at:>='{}' AND {until}", seconds(since)),
            None => until,
        };
        let body = json!({
            "query": self.text(),
            "variables": {
                "first": task.page_size.clamp(1, 250),
                "after": after,
                "query": filter,
            },
        });
        Request::post_json("admin", "/graphql.json", body.to_string()).spends(BUCKET, COST)
    }

    pub(crate) fn read(
        self,
        task: &Task<Shopify>,
        response: &Response,
    ) -> Result<Page<Shopify>, Fault> {
        let text = response.text()?;
        let points = Points::of(text);
        if let Some(fault) = fault::in_body(text, points.as_ref(), task.page_size) {
            return Err(fault);
        }
        let at = format!("/data/{}", self.field());
        let plan = Plan::new(&format!("{at}/nodes"))
            .field("/id")
            .field("/updatedAt")
            .outside(&format!("{at}/pageInfo/hasNextPage"))
            .outside(&format!("{at}/pageInfo/endCursor"));
        let listing = plan.read(text)?;
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            page.push(
                row.identified(text, 0)
                    .updated_at(row.time(1, time::Format::Rfc3339)),
            );
        }
        let more = listing.outside(0).and_then(Raw::bool) == Some(true);
        let cursor = listing.outside_value(1).and_then(Raw::id);
        if more && cursor.is_none() {
            return Err(
                Fault::incomplete("the answer says that there is more, and not where")
                    .code("cursor"),
            );
        }
        let page = match &points {
            Some(points) => page.limit(points.limit()),
            None => page,
        };
        Ok(page.next_if(cursor.filter(|_| more).map(At::After)))
    }
}

/// What an answer says of the points.
pub(crate) struct Points {
    pub(crate) requested: f64,
    pub(crate) most: f64,
    pub(crate) left: f64,
    pub(crate) restores: f64,
}

impl Points {
    pub(crate) fn of(text: &str) -> Option<Points> {
        let found = json::fields(
            text,
            [
                "/extensions/cost/requestedQueryCost",
                "/extensions/cost/throttleStatus/maximumAvailable",
                "/extensions/cost/throttleStatus/currentlyAvailable",
                "/extensions/cost/throttleStatus/restoreRate",
            ],
        )
        .ok()?;
        let number = |raw: Option<Raw<'_>>| raw?.json().parse::<f64>().ok();
        let [requested, most, left, restores] = found;
        Some(Points {
            requested: number(requested).unwrap_or(0.0),
            most: number(most)?,
            left: number(left)?,
            restores: number(restores)?,
        })
    }

    pub(crate) fn limit(&self) -> Limit {
        Limit {
            bucket: Some(BUCKET.to_owned()),
            quota_unit: "points".to_owned(),
            limit: Some(whole(self.most)),
            remaining: Some(whole(self.left)),
            restores: Some(self.restores),
            ..Limit::default()
        }
    }

    /// How long until the query can be paid, in ms.
    pub(crate) fn wait(&self) -> Option<u64> {
        let missing = self.requested - self.left;
        (missing > 0.0 && self.restores > 0.0)
            .then(|| whole((missing / self.restores * 1000.0).ceil()))
    }
}

/// Points may come with a fraction; a negative count means none.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}
