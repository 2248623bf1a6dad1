//! What an answer's headers say about the vendor's limits, in whichever dialect they say it.
//!
//! Read on every answer, whatever its status. Each bucket that is named becomes one [`Limit`]; all are kept,
//! and the most restrictive decides. The dialects:
//!
//! | file | headers |
//! | --- | --- |
//! | `structured` | `RateLimit` and `RateLimit-Policy` of the IETF drafts, from the key-value forms to structured fields |
//! | `named` | `X-RateLimit-*` and relatives: one number a header, the name says which |
//! | `members` | several `key=value` pairs in one header |
//! | `pairs` | used and limit in one value: `32/40`, `51,116` |
//! | `usage` | percentages and JSON in a header |
//!
//! The names don't fix the units, so the values do, by their magnitude and form. A value
//! that is malformed, contradicts its siblings or is absurd is left out and noted; no header makes a poll fail.
//! `remaining` is advice and never a promise: other programs share the key.

use crate::http_date::Anchor;
use crate::model::Limit;

mod draft;
mod members;
mod name;
mod named;
mod pairs;
mod structured;
mod usage;

/// What the headers of one answer said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// One per bucket, in a stable order. No two share a name.
    pub limits: Vec<Limit>,
    /// What was left out and why, for a person; worth saying once, not on every answer.
    pub ignored: Vec<String>,
}

/// Reads the headers of one answer.
pub fn read(headers: &[(String, String)], at: &Anchor) -> Reading {
    let mut drafts = draft::Drafts::new(*at);
    for (name, value) in draft::joined(headers) {
        dispatch(&name, &value, &mut drafts);
    }
    drafts.finish()
}

/// Gives a header to the dialect that it is written in.
fn dispatch(name: &str, value: &str, drafts: &mut draft::Drafts) {
    if crate::retry_after::unit_of(name).is_some() {
        return;
    }
    if usage::read(name, value, drafts) || pairs::read(name, value, drafts) {
        return;
    }
    let Some(parsed) = name::parse(name) else {
        return;
    };
    if structured::read(name, &parsed, value, drafts) || members::read(&parsed, value, drafts) {
        return;
    }
    named::read(name, &parsed, value, drafts);
}

/// Nothing is left in this bucket.
pub fn is_spent(limit: &Limit) -> bool {
    limit.remaining == Some(0) || limit.used_percent.is_some_and(|used| used >= 100.0)
}

/// The share of a bucket that is left, from 0 to 1; 1 when the vendor did not say.
pub fn share_left(limit: &Limit) -> f64 {
    let by_count = match (limit.remaining, limit.limit) {
        (Some(0), _) => 0.0,
        (Some(remaining), Some(limit)) if limit > 0 => remaining as f64 / limit as f64,
        _ => 1.0,
    };
    let by_percent = limit.used_percent.map_or(1.0, |used| 1.0 - used / 100.0);
    by_count.min(by_percent).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests;
