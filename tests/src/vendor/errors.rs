//! Answers that carry no page.

use serde_json::json;

use crate::answer::SimResponse;
use crate::limits::Told;

/// An answer with a short JSON error.
pub(super) fn error(status: u16, code: &str, message: &str) -> SimResponse {
    let body = json!({ "error": { "code": code, "message": message } });
    with_text(status, "application/json", body.to_string())
}

/// An answer with this text.
pub(super) fn with_text(status: u16, content_type: &str, body: String) -> SimResponse {
    SimResponse {
        status,
        headers: vec![("content-type".into(), content_type.into())],
        body: body.into(),
        latency_ms: 0,
    }
}

/// An answer that says when to come back.
pub(super) fn refusal(status: u16, body: &str, content_type: &str, told: Told) -> SimResponse {
    let mut text = if body.is_empty() {
        let (code, message) = words(status);
        json!({ "error": { "code": code, "message": message } }).to_string()
    } else {
        body.to_owned()
    };
    if let Some((name, value)) = told.member
        && let Some(open) = text.strip_suffix('}')
    {
        let comma = if open.trim_end().ends_with('{') {
            ""
        } else {
            ","
        };
        text = format!("{open}{comma}\"{name}\":{value}}}");
    }
    let content_type = if content_type.is_empty() {
        "application/json"
    } else {
        content_type
    };
    let mut response = with_text(status, content_type, text);
    response.headers.extend(told.headers);
    response
}

fn words(status: u16) -> (&'static str, &'static str) {
    match status {
        202 => ("pending", "the result is being prepared"),
        401 => ("invalid_token", "the token is expired or revoked"),
        403 => ("forbidden", "you may not do this"),
        404 => ("not_found", "there is no such thing"),
        408 => ("timeout", "the request took too long"),
        410 => ("cursor_expired", "this cursor is no longer known"),
        429 => ("rate_limited", "too many requests"),
        500 => ("internal", "something went wrong"),
        502..=504 => ("unavailable", "try again later"),
        _ => ("error", "the request failed"),
    }
}

/// A web page, as proxies and login walls send it.
pub(super) fn web_page(status: u16) -> SimResponse {
    let page = "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Please wait.</body></html>";
    with_text(status, "text/html; charset=utf-8", page.into())
}
