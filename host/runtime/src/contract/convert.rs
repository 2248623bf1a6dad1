//! From the contract's types to the rules' own, and back.

use serde_json::Value;
use weir_rules::model;

use super::{Class, CursorKind, Fault, Limit, Order, Reason, Scope, Stream, Window};

/// Schemas are a connector's own text: no deeper than this is looked for required fields.
const DEPTH: usize = 8;

impl From<Class> for model::Class {
    fn from(class: Class) -> Self {
        match class {
            Class::Temporary => model::Class::Temporary,
            Class::RateLimited => model::Class::RateLimited,
            Class::AuthExpired => model::Class::AuthExpired,
            Class::AuthRevoked => model::Class::AuthRevoked,
            Class::Permanent => model::Class::Permanent,
            Class::PositionLost => model::Class::PositionLost,
            Class::Pending => model::Class::Pending,
            Class::Incomplete => model::Class::Incomplete,
            Class::Unknown => model::Class::Unknown,
        }
    }
}

impl From<Scope> for model::Scope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Unit => model::Scope::Unit,
            Scope::Connection => model::Scope::Connection,
            Scope::Credential => model::Scope::Credential,
            Scope::App => model::Scope::App,
        }
    }
}

impl From<Limit> for model::Limit {
    fn from(limit: Limit) -> Self {
        model::Limit {
            bucket: limit.bucket,
            scope: limit.scope.into(),
            quota_unit: limit.quota_unit,
            limit: limit.limit,
            remaining: limit.remaining,
            used_percent: limit.used_percent,
            per: limit.per,
            resets_in: limit.resets_in,
            restores: limit.restores,
            wait: limit.wait,
        }
    }
}

impl From<Fault> for model::Fault {
    fn from(fault: Fault) -> Self {
        model::Fault {
            class: fault.class.into(),
            scope: fault.scope.into(),
            code: fault.code,
            message: fault.message,
            wait: fault.wait,
            page_size: fault.page_size,
            limits: fault.limits.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<CursorKind> for model::CursorKind {
    fn from(kind: CursorKind) -> Self {
        match kind {
            CursorKind::Timestamp => model::CursorKind::Timestamp,
            CursorKind::Opaque => model::CursorKind::Opaque,
            CursorKind::Snapshot => model::CursorKind::Snapshot,
        }
    }
}

impl From<Order> for model::Order {
    fn from(order: Order) -> Self {
        match order {
            Order::Ascending => model::Order::Ascending,
            Order::Descending => model::Order::Descending,
            Order::Unordered => model::Order::Unordered,
        }
    }
}

impl From<&Stream> for model::Stream {
    fn from(stream: &Stream) -> Self {
        model::Stream {
            name: stream.name.clone(),
            cursor: stream.cursor.into(),
            order: stream.order.into(),
            page_size: stream.page_size,
            result_cap: stream.result_cap,
            window_cap: stream.window_cap,
            retention: stream.retention,
            granularity: stream.granularity.max(1),
            settle: stream.settle,
            volatile: stream.volatile.clone(),
            required: stream
                .schema
                .as_deref()
                .map(required_pointers)
                .unwrap_or_default(),
            backfill: stream.backfill,
        }
    }
}

impl From<model::Reason> for Reason {
    fn from(reason: model::Reason) -> Self {
        match reason {
            model::Reason::Schedule => Reason::Schedule,
            model::Reason::SyncNow => Reason::SyncNow,
            model::Reason::Backfill => Reason::Backfill,
            model::Reason::Settle => Reason::Settle,
            model::Reason::Resync => Reason::Resync,
        }
    }
}

impl From<model::Window> for Window {
    fn from(window: model::Window) -> Self {
        Window {
            since: window.since,
            until: window.until,
        }
    }
}

/// JSON pointers to the fields that a JSON Schema requires of every record.
///
/// A field inside an optional object is not required; text that is no schema requires nothing.
pub fn required_pointers(schema: &str) -> Vec<String> {
    let mut pointers = Vec::new();
    if let Ok(schema) = serde_json::from_str(schema) {
        collect(&schema, "", DEPTH, &mut pointers);
    }
    pointers
}

fn collect(schema: &Value, at: &str, depth: usize, pointers: &mut Vec<String>) {
    let Some(required) = schema.get("required").and_then(Value::as_array) else {
        return;
    };
    for field in required.iter().filter_map(Value::as_str) {
        // RFC 6901, section 4.
        let pointer = format!("{at}/{}", field.replace('~', "~0").replace('/', "~1"));
        let inner = schema.get("properties").and_then(|all| all.get(field));
        pointers.push(pointer.clone());
        if let (Some(inner), Some(depth)) = (inner, depth.checked_sub(1)) {
            collect(inner, &pointer, depth, pointers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_fields_are_those_that_every_record_has() {
        let schema = r#"{
            "required": ["id", "a/b", "user"],
            "properties": {
                "user": { "required": ["login"] },
                "note": { "required": ["text"] }
            }
        }"#;
        assert_eq!(
            required_pointers(schema),
            ["/id", "/a~1b", "/user", "/user/login"]
        );
        assert!(required_pointers("true").is_empty());
        assert!(required_pointers("{").is_empty());
    }
}
