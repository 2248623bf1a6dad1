//! From a page to the text of an answer.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::Page;
use crate::answer::SimRequest;
use crate::spec::{CollectionSpec, End, Paging};
use crate::world::{Renderer, Texts};

/// Headers that tell of the pages around.
pub(crate) type PagingHeaders = Vec<(String, String)>;

/// What a vendor in trouble leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    None,
    NoStamps,
    NoLastRecord,
}

/// The body of a page, and its headers.
pub(crate) fn body(
    spec: &CollectionSpec,
    (renderer, texts): (&Renderer, &mut Texts),
    page: &Page,
    request: &SimRequest,
    since_start: i64,
    damage: Damage,
) -> (String, PagingHeaders) {
    let mut fields = spec.envelope.with.clone();
    let headers = paging_fields(spec, page, request, &mut fields);
    if !spec.envelope.has_more.is_empty() {
        insert(
            &mut fields,
            &spec.envelope.has_more,
            Value::Bool(page.has_more),
        );
    }
    if !spec.envelope.last.is_empty() {
        insert(
            &mut fields,
            &spec.envelope.last,
            Value::Bool(!page.has_more),
        );
    }
    if let Some(pages) = page.pages {
        insert(&mut fields, &spec.envelope.pages, pages.into());
    }
    if !spec.envelope.count.is_empty() {
        insert(
            &mut fields,
            &spec.envelope.count,
            page.versions.len().into(),
        );
    }
    if let Some(total) = page.total {
        insert(&mut fields, &spec.envelope.total.field, total.into());
    }

    let mut text = String::with_capacity(page.versions.len() * 450 + 128);
    let path: Vec<&str> = match spec.envelope.records.as_str() {
        "" => Vec::new(),
        path => path.split('.').collect(),
    };
    for name in &path {
        text.push_str(&format!("{{{}:", Value::from(*name)));
    }
    text.push('[');
    let missing = usize::from(damage == Damage::NoLastRecord);
    let shown = page.versions.len().saturating_sub(missing);
    for (index, version) in page.versions.iter().take(shown).enumerate() {
        if index > 0 {
            text.push(',');
        }
        let record = texts.of(renderer, version);
        if damage == Damage::NoStamps {
            text.push_str(&record.without_stamp().head);
        } else {
            text.push_str(&record.head);
        }
        // Writing to a string can't fail.
        let _ = write!(text, "{}", renderer.views(version.record, since_start));
        text.push_str(&record.tail);
    }
    text.push(']');
    for fields in levels(fields, &path).into_iter().rev() {
        if fields.is_empty() {
            text.push('}');
        } else {
            let rest = Value::Object(fields).to_string();
            text.push(',');
            text.push_str(rest.strip_prefix('{').unwrap_or(&rest));
        }
    }
    (text, headers)
}

/// The fields that stand beside each object on the way to the records, outermost first.
fn levels(mut fields: Map<String, Value>, path: &[&str]) -> Vec<Map<String, Value>> {
    let mut levels = Vec::with_capacity(path.len());
    for name in path {
        let inner = match fields.remove(*name) {
            Some(Value::Object(inner)) => inner,
            _ => Map::new(),
        };
        levels.push(std::mem::replace(&mut fields, inner));
    }
    levels
}

fn paging_fields(
    spec: &CollectionSpec,
    page: &Page,
    request: &SimRequest,
    fields: &mut Map<String, Value>,
) -> PagingHeaders {
    let mut headers = PagingHeaders::new();
    match &spec.paging {
        Paging::Token { field, end, .. } => {
            let has_next = page.has_more || (*end == End::EmptyPage && !page.versions.is_empty());
            let token = if has_next || *end == End::HasMoreFalse {
                Some(Value::String(page.next.token()))
            } else {
                ending(*end)
            };
            if let Some(token) = token {
                insert(fields, field, token);
            }
        }
        Paging::Feed { field, .. } => insert(fields, field, Value::String(page.next.token())),
        Paging::NextUrl {
            field,
            relative,
            end,
        } => {
            let url = page.has_more.then(|| next_url(request, page, *relative));
            if let Some(value) = url.map(Value::String).or_else(|| ending(*end)) {
                insert(fields, field, value);
            }
        }
        Paging::Link { relative } => headers.push(("link".into(), link(request, page, *relative))),
        Paging::Page { first, .. } => {
            let own = first + page.turn;
            let next = if page.has_more {
                (own + 1).to_string()
            } else {
                String::new()
            };
            headers.push(("x-page".into(), own.to_string()));
            headers.push(("x-next-page".into(), next));
        }
        Paging::Keyset { .. } | Paging::AfterId { .. } | Paging::Offset { .. } | Paging::None => {}
    }
    headers
}

/// What the last page's field holds.
fn ending(end: End) -> Option<Value> {
    match end {
        End::Null => Some(Value::Null),
        End::EmptyString | End::EmptyPage => Some(Value::String(String::new())),
        End::Absent | End::HasMoreFalse => None,
    }
}

/// The relations as large vendors send them: `next` among others, in no fixed place, with a comma inside of a
/// quoted parameter.
fn link(request: &SimRequest, page: &Page, relative: bool) -> String {
    let first = format!(
        "<{}>; rel=\"first\"; title=\"first, of all\"",
        own_url(request, relative)
    );
    if page.has_more {
        format!(
            "{first}, <{}>; rel=\"next\"",
            next_url(request, page, relative)
        )
    } else {
        first
    }
}

fn own_url(request: &SimRequest, relative: bool) -> String {
    let origin = if relative {
        ""
    } else {
        request.origin.as_str()
    };
    let query: Vec<&str> = request
        .raw_query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("page_token="))
        .collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{origin}{}{mark}{}", request.path, query.join("&"))
}

fn next_url(request: &SimRequest, page: &Page, relative: bool) -> String {
    let own = own_url(request, relative);
    let mark = if own.contains('?') { '&' } else { '?' };
    let token = page.next.token().replace('=', "%3D");
    format!("{own}{mark}page_token={token}")
}

/// Puts a value at a dotted path.
fn insert(fields: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            fields.insert(path.to_owned(), value);
        }
        Some((name, rest)) => {
            let inner = fields
                .entry(name.to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}
