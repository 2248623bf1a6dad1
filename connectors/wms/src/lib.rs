//! A warehouse management system: inventory and movements, page by page.
//!
//! Such systems publish no limits and slow down long before they refuse, so the host goes by their latency. They also cut
//! answers short under load, with status 200: a page is taken only when it holds as many rows as it says, and every row has
//! what makes it a row.

mod fault;

use serde::Deserialize;
use weir_sdk::prelude::*;

const MINUTE: u64 = 60_000;

/// The connector.
pub struct Wms;

/// The connection's config.
#[derive(Deserialize)]
pub struct Config {
    url: String,
    #[serde(default)]
    sites: Vec<String>,
}

/// Rows of the four fields without which a row means nothing.
const ROW: &str = r#"{
  "type": "object",
  "required": ["sku_id", "location_code", "pick_count", "last_updated_ts"],
  "properties": {
    "sku_id": { "type": "string", "minLength": 1 },
    "location_code": { "type": "string", "minLength": 1 },
    "pick_count": { "type": "integer" },
    "last_updated_ts": { "type": "string" }
  }
}"#;

impl Connector for Wms {
    type Config = Config;
    type Step = paging::PageNumber;
    type Cursor = ();

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        let url = config.map_or("https://wms.example.test/api/v1", |config| &config.url);
        let stream = |name, title| {
            Stream::new(name)
                .title(title)
                .schema(ROW)
                .page_size(200)
                .granularity(1000)
                .settle(15 * MINUTE)
        };
        Ok(Descriptor::new(
            "wms",
            "Warehouse management system",
            env!("CARGO_PKG_VERSION"),
        )
        .config_schema(include_str!("config.schema.json"))
        .origin(
            Origin::new("api", url.trim_end_matches('/'))
                .auth(AuthScheme::Bearer)
                .auth(AuthScheme::Header("X-Api-Key".to_owned()))
                .auth(AuthScheme::Basic)
                .auth(AuthScheme::None),
        )
        .pacing(Pacing {
            unpublished_limits: true,
            concurrency: Some(1),
            ..Pacing::default()
        })
        .stream(
            stream("inventory", "Inventory")
                .key("/sku_id")
                .key("/location_code"),
        )
        .stream(
            stream("movements", "Movements")
                .key("/movement_id")
                .order(Order::Ascending),
        ))
    }

    fn partitions(config: &Config, _stream: &str) -> Result<Vec<String>, Fault> {
        Ok(config.sites.clone())
    }

    fn build_request(
        task: &Task<Self>,
        step: Option<paging::PageNumber>,
    ) -> Result<Request, Fault> {
        let stream = known(&task.stream)?;
        let page = step.unwrap_or_else(|| paging::PageNumber::first(1, task.page_size));
        let request = Request::get("api", format!("/{stream}"))
            .query_if("site", task.partition.as_deref())
            .query_if("updated_since", task.window.since.map(time::rfc3339))
            .query("updated_until", time::rfc3339(task.window.until))
            .query("sort", "last_updated_ts");
        Ok(page.apply(request, "page", Some("page_size")))
    }

    fn read_response(
        task: &Task<Self>,
        step: Option<paging::PageNumber>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        let stream = known(&task.stream)?;
        if response.status != 200 {
            return Err(fault::read(response));
        }
        let text = response.text()?;
        let plan = Plan::new("/items")
            .field("/sku_id")
            .field("/location_code")
            .field("/pick_count")
            .field("/last_updated_ts")
            .field("/movement_id")
            .outside("/count")
            .outside("/total")
            .outside("/page_count");
        let listing = plan.read(text)?;
        let said = listing.outside(0).and_then(Raw::u64);
        if let Some(said) = said
            && said != listing.len() as u64
        {
            return Err(Fault::incomplete(format!(
                "the answer says that it holds {said} rows, and holds {}",
                listing.len()
            ))
            .code("count"));
        }
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            let changed = row
                .time(3, time::Format::Rfc3339)
                .ok_or_else(|| row.fault(3, "is missing or no moment"))?;
            if row.need(2)?.i64().is_none() {
                return Err(row.fault(2, "is no whole number"));
            }
            let (sku, location) = (row.id(0)?, row.id(1)?);
            let id = match stream {
                "movements" => row.id(4)?,
                // A slash in a part would make two pairs look alike.
                _ => format!("{}/{}", url::segment(&sku), url::segment(&location)),
            };
            page.push(row.record(text, id).updated_at(changed));
        }
        let at = step.unwrap_or_else(|| paging::PageNumber::first(1, task.page_size));
        let pages = listing.outside(2).and_then(Raw::u64);
        let more = match pages {
            Some(pages) => at.page < pages,
            None => listing.len() >= task.page_size as usize,
        };
        Ok(page
            .total(listing.outside(1).and_then(Raw::u64))
            .next_if(more.then(|| at.following())))
    }
}

fn known(stream: &str) -> Result<&str, Fault> {
    match stream {
        "inventory" | "movements" => Ok(stream),
        other => Err(Fault::no_stream(other)),
    }
}

weir_sdk::export!(Wms);
