//! The contract's values as they stand in a walk's file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use weir_runtime::contract::{self, Body, Data, Method};

use super::file::{FaultShown, LimitShown, Moment, PageShown, RecordShown, RequestShown};
use crate::authoring::layout;

/// A request that goes to this URL, to which its query is still to be added.
pub fn request(request: &contract::Request, url: &str) -> RequestShown {
    let mut shown = RequestShown {
        method: method(request.method).to_owned(),
        url: url.to_owned(),
        query: request.query.clone(),
        headers: request
            .headers
            .iter()
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect(),
        json: None,
        text: None,
        base64: None,
        conditional: request.conditional,
        bucket: request.bucket.clone(),
        cost: request.cost,
        idempotency_header: request.idempotency_header.clone(),
    };
    match &request.body {
        None => {}
        Some(Body::Text(text)) => match raw(text) {
            Some(json) => shown.json = Some(json),
            None => shown.text = Some(text.clone()),
        },
        Some(Body::Bytes(bytes)) => shown.base64 = Some(STANDARD.encode(bytes)),
    }
    shown
}

/// A page of this answer.
pub fn page(page: &contract::Page, answer: &contract::Response) -> PageShown {
    PageShown {
        records: page
            .records
            .iter()
            .map(|found| record(found, answer))
            .collect(),
        next: page.next.iter().filter_map(|step| raw(step)).collect(),
        cursor: page.cursor.as_deref().and_then(raw),
        total: page.total,
        truncated: page.truncated,
        poll_after: page.poll_after,
        limits: page.limits.iter().map(limit).collect(),
        extra: page.extra.clone(),
    }
}

fn record(record: &contract::Record, answer: &contract::Response) -> RecordShown {
    let mut shown = RecordShown {
        id: record.id.clone(),
        updated_at: record.updated_at.map(Moment),
        deleted: record.deleted,
        ..RecordShown::default()
    };
    let place = match (&record.data, answer.text()) {
        (Data::Slice(span), Some(text)) => {
            let start = span.start as usize;
            layout::pointer_to(text, start, start.saturating_add(span.len as usize))
        }
        _ => None,
    };
    let json = record.json(answer).unwrap_or_default();
    match (place, raw(json)) {
        (Some(place), _) => shown.at = Some(place),
        (None, Some(data)) => shown.data = Some(data),
        (None, None) => shown.broken = Some(json.to_owned()),
    }
    shown
}

/// A fault.
pub fn fault(fault: &contract::Fault) -> FaultShown {
    FaultShown {
        class: fault.class.into(),
        scope: fault.scope.into(),
        code: fault.code.clone(),
        message: fault.message.clone(),
        wait: fault.wait,
        page_size: fault.page_size,
        limits: fault.limits.iter().map(limit).collect(),
        extra: fault.extra.clone(),
    }
}

fn limit(limit: &contract::Limit) -> LimitShown {
    LimitShown {
        bucket: limit.bucket.clone(),
        scope: limit.scope.into(),
        quota_unit: limit.quota_unit.clone(),
        limit: limit.limit,
        remaining: limit.remaining,
        used_percent: limit.used_percent,
        per: limit.per,
        resets_in: limit.resets_in,
        restores: limit.restores,
        wait: limit.wait,
    }
}

/// The method's name on the wire.
pub fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
        Method::Head => "HEAD",
    }
}

/// JSON text, on one line; none when it is no JSON.
fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(layout::compact(text).ok()?).ok()
}
