//! The descriptor: what a configuration makes of this connector.

use serde_json::{Map, Value, json};
use weir_sdk::{
    AuthScheme, CursorKind, Descriptor, Fault, Limit, Oauth2, Order, Origin, Pacing, Stream,
};

use crate::config::{Config, CursorKey, OrderKey, PacingKeys, SCHEMA};
use crate::endpoint::{Endpoint, Paging, misconfigured};

/// What a full page holds where one answer holds everything: the most that a page may hold, so that none looks cut.
const UNPAGED: u32 = 100_000;

/// Describes the connector, and with a config the streams of that connection.
pub(crate) fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
    let mut origin = Origin::new("api", "{base_url}");
    if let Some(oauth2) = config.and_then(|config| config.oauth2.as_ref()) {
        origin = origin.auth(AuthScheme::Oauth2(Oauth2 {
            token_url: oauth2.token_url.clone(),
            authorize_url: oauth2.authorize_url.clone(),
            scopes: oauth2.scopes.clone(),
            client_in_body: oauth2.client_in_body,
        }));
    }
    for scheme in [
        AuthScheme::Bearer,
        AuthScheme::Basic,
        AuthScheme::Header("X-API-Key".to_owned()),
        AuthScheme::Query("api_key".to_owned()),
        AuthScheme::None,
    ] {
        origin = origin.auth(scheme);
    }
    let descriptor = Descriptor::new("rest", "Any JSON API", env!("CARGO_PKG_VERSION"))
        .config_schema(SCHEMA)
        .origin(origin);
    let Some(config) = config else {
        return Ok(descriptor);
    };
    if !["https://", "http://"]
        .iter()
        .any(|scheme| config.base_url.starts_with(scheme))
    {
        return Err(misconfigured(
            "base_url",
            "has no scheme: write \"https://api.acme.test/v2\"",
        ));
    }
    if config.streams.is_empty() {
        return Err(misconfigured(
            "streams",
            "is empty: name at least one, such as [connection.NAME.config.streams.orders]",
        ));
    }
    let mut descriptor = descriptor.pacing(pacing(&config.pacing)?);
    for name in config.streams.keys() {
        descriptor = descriptor.stream(stream(name, Endpoint::of(config, name)?));
    }
    Ok(descriptor)
}

fn pacing(keys: &PacingKeys) -> Result<Pacing, Fault> {
    let (min, max) = (
        keys.min_interval.map(|d| d.0),
        keys.max_interval.map(|d| d.0),
    );
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        return Err(misconfigured(
            "pacing.min_interval",
            "is longer than pacing.max_interval: exchange them",
        ));
    }
    let documented_limits = keys
        .limits
        .iter()
        .map(|limit| Limit {
            bucket: limit.bucket.clone(),
            scope: limit.scope.into(),
            quota_unit: limit.unit.clone().unwrap_or_else(|| "requests".to_owned()),
            ..Limit::requests(limit.limit, limit.per.0)
        })
        .collect();
    Ok(Pacing {
        min_interval: min,
        max_interval: max,
        unpublished_limits: keys.unpublished_limits,
        concurrency: keys.concurrency,
        backoff_cap: keys.backoff_cap.map(|d| d.0),
        not_modified_is_free: keys.not_modified_is_free,
        documented_limits,
    })
}

fn stream(name: &str, endpoint: Endpoint) -> Stream {
    let one_answer = matches!(endpoint.paging, Paging::None) && endpoint.page_size_param.is_none();
    let cursor = match endpoint.cursor {
        CursorKey::Timestamp => CursorKind::Timestamp,
        CursorKey::Opaque => CursorKind::Opaque,
        CursorKey::Snapshot => CursorKind::Snapshot,
    };
    let order = match endpoint.order {
        OrderKey::Ascending => Order::Ascending,
        OrderKey::Descending => Order::Descending,
        OrderKey::Unordered => Order::Unordered,
    };
    Stream {
        title: endpoint.title.unwrap_or_else(|| name.to_owned()),
        key: endpoint.id,
        schema: (!endpoint.required.is_empty()).then(|| schema(&endpoint.required).to_string()),
        volatile: endpoint.volatile,
        result_cap: endpoint.result_cap,
        window_cap: endpoint.window_cap,
        retention: endpoint.retention,
        settle: endpoint.settle,
        parent: endpoint.parent,
        // Where only `since` can be asked for, a past window is read with everything after it, which dedup absorbs.
        backfill: cursor == CursorKind::Timestamp,
        ..Stream::new(name)
            .cursor(cursor)
            .order(order)
            .page_size(if one_answer {
                UNPAGED
            } else {
                endpoint.page_size
            })
            .granularity(endpoint.granularity)
    }
}

/// The schema gate: a record has all of these fields.
fn schema(required: &[String]) -> Value {
    fn require(schema: &mut Map<String, Value>, path: &[String]) {
        let Some((field, below)) = path.split_first() else {
            return;
        };
        schema.insert("type".to_owned(), json!("object"));
        let list = schema.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(list) = list
            && !list.iter().any(|known| known == field)
        {
            list.push(json!(field));
        }
        if below.is_empty() {
            return;
        }
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties
            && let Value::Object(child) =
                properties.entry(field.clone()).or_insert_with(|| json!({}))
        {
            require(child, below);
        }
    }
    let mut schema = Map::new();
    for pointer in required {
        let path: Vec<String> = pointer
            .split('/')
            .skip(1)
            .map(|part| part.replace("~1", "/").replace("~0", "~"))
            .collect();
        require(&mut schema, &path);
    }
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_pointers_become_a_schema() {
        let required = ["/sku_id", "/place/code", "/place/row", "/a~1b"].map(str::to_owned);
        assert_eq!(
            schema(&required),
            json!({
                "type": "object",
                "required": ["sku_id", "place", "a/b"],
                "properties": { "place": { "type": "object", "required": ["code", "row"] } }
            })
        );
    }
}
