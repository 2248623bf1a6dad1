//! Validators, conditions, and the compression that changes an ETag.

use std::hash::{DefaultHasher, Hasher};
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::answer::{SimRequest, SimResponse};
use crate::spec::{CollectionSpec, EtagKind};
use crate::time::{http_date, read_http_date};

/// Adds the validators that the collection offers.
pub(super) fn validators(collection: &CollectionSpec, changed: i64, response: &mut SimResponse) {
    let mut hash = DefaultHasher::new();
    hash.write(&response.body);
    for (name, value) in &response.headers {
        hash.write(name.as_bytes());
        hash.write(value.as_bytes());
    }
    match collection.validators.etag {
        EtagKind::None => {}
        EtagKind::Strong => response.set("etag", format!("\"{:016x}\"", hash.finish())),
        EtagKind::Weak => response.set("etag", format!("W/\"{:016x}\"", hash.finish())),
    }
    if collection.validators.last_modified {
        response.set("last-modified", http_date(changed));
    }
}

/// RFC 9110, section 13.2.2: If-None-Match decides where it is there; the comparison is weak.
pub(super) fn is_unmodified(request: &SimRequest, response: &SimResponse, changed: i64) -> bool {
    if let Some(wanted) = request.header("if-none-match") {
        let Some(own) = response.header("etag").map(opaque) else {
            return false;
        };
        return wanted
            .split(',')
            .any(|tag| tag.trim() == "*" || opaque(tag) == own);
    }
    match (
        request.header("if-modified-since"),
        response.header("last-modified"),
    ) {
        (Some(since), Some(_)) => {
            read_http_date(since).is_some_and(|since| changed.div_euclid(1000) * 1000 <= since)
        }
        _ => false,
    }
}

/// A tag without its weakness and without what compression appended to it.
fn opaque(tag: &str) -> &str {
    let tag = tag.trim();
    let tag = tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"');
    tag.strip_suffix("-gzip").unwrap_or(tag)
}

pub(super) fn accepts_gzip(request: &SimRequest) -> bool {
    request
        .header("accept-encoding")
        .is_some_and(|accepted| accepted.contains("gzip"))
}

/// Compresses the body; the ETag says so, as with common servers.
pub(super) fn compress(response: &mut SimResponse) {
    if response.header("content-encoding").is_some() {
        return;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let done = encoder
        .write_all(&response.body)
        .and_then(|()| encoder.finish());
    if let Ok(body) = done {
        response.body = body.into();
        response.set("content-encoding", "gzip");
        if let Some(tag) = response
            .header("etag")
            .and_then(|tag| tag.strip_suffix('"'))
        {
            let tag = format!("{tag}-gzip\"");
            response.set("etag", tag);
        }
    }
}
