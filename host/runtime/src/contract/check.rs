//! What a connector's results must keep to, beyond their types.
//!
//! A result that breaks a rule is refused whole, with words for the connector's author. Only a fault is never
//! refused: it is cut and tamed instead, so that bad news always arrives.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Body, Data, Descriptor, Fault, Header, Limit, Page, Record, Request, Response, Stream, Target,
};
use crate::limits::{
    CURSOR, EXTRA, HEADER_BYTES, HEADERS, LIMITS, MESSAGE, NAME, ORIGINS, PARTITIONS, QUERY,
    RECORD_ID, RECORDS, REQUEST_BODY, SCHEMA, STEPS, STREAMS, TARGET,
};
use crate::text::tame;

type Check = Result<(), String>;

/// `for_connection`: with a configuration, a connector must have streams.
pub(crate) fn check_descriptor(descriptor: &Descriptor, for_connection: bool) -> Check {
    check_connector_name(&descriptor.name)?;
    plain("title", &descriptor.title, NAME)?;
    plain("version", &descriptor.version, NAME)?;
    if descriptor.version.is_empty() {
        return Err("its version is empty".into());
    }
    if let Some(docs) = &descriptor.docs {
        plain("docs", docs, MESSAGE)?;
    }
    object("config-schema", &descriptor.config_schema, SCHEMA)?;
    extra(&descriptor.extra)?;
    limits(&descriptor.pacing.documented_limits)?;

    if descriptor.origins.is_empty() {
        return Err("it declares no origin, so it could not call anyone".into());
    }
    count("origins", descriptor.origins.len(), ORIGINS)?;
    let mut ids = HashSet::new();
    for origin in &descriptor.origins {
        name("an origin's id", &origin.id)?;
        if !ids.insert(&origin.id) {
            return Err(format!("it declares the origin {:?} twice", origin.id));
        }
        plain("an origin's url", &origin.url, MESSAGE)?;
        if origin.url.is_empty() {
            return Err(format!("the origin {:?} has no url", origin.id));
        }
    }

    if for_connection && descriptor.streams.is_empty() {
        return Err("it has no stream for this configuration".into());
    }
    count("streams", descriptor.streams.len(), STREAMS)?;
    let mut names = HashSet::new();
    for stream in &descriptor.streams {
        check_stream(stream)
            .map_err(|why| format!("stream {:?}: {why}", tame(&stream.name, NAME)))?;
        if !names.insert(stream.name.as_str()) {
            return Err(format!("it has the stream {:?} twice", stream.name));
        }
    }
    for stream in &descriptor.streams {
        if let Some(parent) = &stream.parent
            && (*parent == stream.name || !names.contains(parent.as_str()))
        {
            return Err(format!(
                "stream {:?} names the parent {:?}, which is none of its other streams",
                stream.name,
                tame(parent, NAME)
            ));
        }
    }
    Ok(())
}

/// Letters that need no quotes in a configuration, a path or a metric.
fn check_connector_name(name: &str) -> Check {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() {
        return Err("its name is empty".into());
    }
    if name.len() > 64
        || !name.chars().all(legal)
        || !name.starts_with(|c: char| c.is_ascii_lowercase())
    {
        return Err(format!(
            "its name {:?} is not made of at most 64 of a-z, 0-9, - and _, a letter first",
            tame(name, NAME)
        ));
    }
    Ok(())
}

fn check_stream(stream: &Stream) -> Check {
    name("its name", &stream.name)?;
    plain("title", &stream.title, NAME)?;
    for pointer in stream.key.iter().chain(&stream.volatile) {
        plain("a JSON pointer", pointer, MESSAGE)?;
        if !pointer.starts_with('/') {
            return Err(format!("{pointer:?} is no JSON pointer: it begins with /"));
        }
    }
    if let Some(schema) = &stream.schema {
        object("schema", schema, SCHEMA)?;
    }
    if stream.page_size == 0 || usize::try_from(stream.page_size).is_ok_and(|size| size > RECORDS) {
        return Err(format!(
            "page-size {} is not within 1 to {RECORDS}",
            stream.page_size
        ));
    }
    if stream.result_cap == Some(0) || stream.window_cap == Some(0) {
        return Err("a result-cap or window-cap of 0; leave it out if there is none".into());
    }
    if stream.granularity == 0 {
        return Err("granularity is 0; 1 is the finest, a millisecond".into());
    }
    extra(&stream.extra)
}

pub(crate) fn check_partitions(names: &[String]) -> Check {
    count("partitions", names.len(), PARTITIONS)?;
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() {
            return Err("a partition's name is empty".into());
        }
        plain("a partition's name", name, RECORD_ID)?;
        if !seen.insert(name) {
            return Err(format!("the partition {name:?} comes twice"));
        }
    }
    Ok(())
}

pub(crate) fn check_request(request: &Request) -> Check {
    name("the origin", &request.origin)?;
    let mut target = match &request.target {
        Target::Path(text) => {
            plain("the path", text, TARGET)?;
            text.len()
        }
        Target::Link(text) => {
            plain("the link", text, TARGET)?;
            if text.is_empty() {
                return Err("the link is empty".into());
            }
            text.len()
        }
    };
    count("query parameters", request.query.len(), QUERY)?;
    for (name, value) in &request.query {
        target = target
            .saturating_add(name.len())
            .saturating_add(value.len());
    }
    bytes("path and query", target, TARGET)?;

    count("headers", request.headers.len(), HEADERS)?;
    let mut total = 0usize;
    for Header { name, value } in &request.headers {
        header_name(name)?;
        header_value(name, value)?;
        total = total.saturating_add(name.len()).saturating_add(value.len());
    }
    bytes("headers", total, HEADER_BYTES)?;

    let body = match &request.body {
        None => 0,
        Some(Body::Text(text)) => text.len(),
        Some(Body::Bytes(data)) => data.len(),
    };
    bytes("body", body, REQUEST_BODY)?;
    if let Some(bucket) = &request.bucket {
        name("the bucket", bucket)?;
    }
    if let Some(header) = &request.idempotency_header {
        header_name(header)?;
    }
    Ok(())
}

/// A token of RFC 9110, section 5.6.2.
fn header_name(name: &str) -> Check {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || name.len() > NAME || !name.bytes().all(legal) {
        return Err(format!("{:?} is no legal header name", tame(name, NAME)));
    }
    Ok(())
}

/// Visible ASCII with blanks inside: what RFC 9110, section 5.5 asks of new values.
fn header_value(name: &str, value: &str) -> Check {
    let legal = |b: u8| (0x20..0x7f).contains(&b) || b == b'\t';
    if !value.bytes().all(legal) {
        return Err(format!(
            "the header {name} has a value with line breaks or letters outside ASCII"
        ));
    }
    Ok(())
}

pub(crate) fn check_page(page: &Page, response: &Response) -> Check {
    count("records", page.records.len(), RECORDS)?;
    for (n, record) in page.records.iter().enumerate() {
        check_record(record, response)
            .map_err(|why| format!("record {n} ({:?}): {why}", tame(&record.id, 80)))?;
    }
    count("next steps", page.next.len(), STEPS)?;
    for step in &page.next {
        json("a next step", step, CURSOR)?;
    }
    if let Some(cursor) = &page.cursor {
        json("the cursor", cursor, CURSOR)?;
    }
    limits(&page.limits)?;
    extra(&page.extra)
}

/// Nothing that a vendor could send: a record without an id, or one that is too large, is the host's to set aside.
fn check_record(record: &Record, response: &Response) -> Check {
    let Data::Slice(span) = &record.data else {
        return Ok(());
    };
    let Some(text) = response.text() else {
        return Err("it is a slice of an answer that is not text".into());
    };
    match record.json(response) {
        Some(_) => Ok(()),
        None => Err(format!(
            "its slice ({} bytes from {}) does not lie within the {} bytes of the answer, or cuts a \
             character",
            span.len,
            span.start,
            text.len()
        )),
    }
}

/// A fault with its foreign texts cut and tamed.
pub(crate) fn tame_fault(mut fault: Fault) -> Fault {
    fault.code = tame(&fault.code, NAME);
    fault.message = tame(&fault.message, MESSAGE);
    fault.limits.truncate(LIMITS);
    fault.limits.retain(|limit| check_limit(limit).is_ok());
    fault.extra.truncate(EXTRA);
    for (key, value) in &mut fault.extra {
        *key = tame(key, NAME);
        *value = tame(value, MESSAGE);
    }
    fault
}

fn limits(limits: &[Limit]) -> Check {
    count("limits", limits.len(), LIMITS)?;
    limits.iter().try_for_each(check_limit)
}

fn check_limit(limit: &Limit) -> Check {
    if let Some(bucket) = &limit.bucket {
        name("a limit's bucket", bucket)?;
    }
    plain("a limit's unit", &limit.quota_unit, NAME)?;
    for number in [limit.used_percent, limit.restores].into_iter().flatten() {
        if !number.is_finite() || number < 0.0 {
            return Err(format!("a limit with the number {number}"));
        }
    }
    Ok(())
}

fn extra(pairs: &[(String, String)]) -> Check {
    count("extra entries", pairs.len(), EXTRA)?;
    for (key, value) in pairs {
        name("an extra entry's key", key)?;
        bytes("an extra entry", value.len(), MESSAGE)?;
    }
    Ok(())
}

/// A name: not empty, one plain line.
fn name(what: &str, text: &str) -> Check {
    if text.is_empty() {
        return Err(format!("{what} is empty"));
    }
    plain(what, text, NAME)
}

/// Text without control characters, of at most `max` bytes.
fn plain(what: &str, text: &str, max: usize) -> Check {
    bytes(what, text.len(), max)?;
    if text.chars().any(char::is_control) {
        return Err(format!(
            "{what} has control characters: {:?}",
            tame(text, 80)
        ));
    }
    Ok(())
}

fn json(what: &str, text: &str, max: usize) -> Check {
    bytes(what, text.len(), max)?;
    serde_json::from_str::<&serde_json::value::RawValue>(text)
        .map(|_| ())
        .map_err(|error| format!("{what} is not JSON: {error}: {:?}", tame(text, 80)))
}

/// A JSON Schema; any deeper check is the host's.
fn object(what: &str, text: &str, max: usize) -> Check {
    bytes(what, text.len(), max)?;
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) => Ok(()),
        Ok(_) => Err(format!("{what} is not a JSON object")),
        Err(error) => Err(format!("{what} is not JSON: {error}")),
    }
}

fn count(what: &str, have: usize, max: usize) -> Check {
    if have > max {
        return Err(format!("{have} {what}; {max} are allowed"));
    }
    Ok(())
}

fn bytes(what: &str, have: usize, max: usize) -> Check {
    if have > max {
        return Err(format!("{what}: {have} bytes; {max} are allowed"));
    }
    Ok(())
}
