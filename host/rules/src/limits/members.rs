//! Several `key=value` pairs in one header, between commas or semicolons:
//! `RateLimit: limit=100, remaining=50, reset=5`, `vendor-ratelimit-search: total=10; remaining=9; resets=60`.

use super::draft::{Draft, Drafts, Family};
use super::name::{Name, Role};
use super::named;
use crate::moment::{self, Unit};

/// Reads a header that holds pairs; false if it does not.
pub(super) fn read(name: &Name, value: &str, drafts: &mut Drafts) -> bool {
    if !matches!(name.role, Role::Whole | Role::Other) || !value.contains('=') {
        return false;
    }
    let now = drafts.at.moment();
    let mut pairs = Draft {
        per: name.per,
        ..Draft::default()
    };
    let mut known = false;
    for (key, value) in value
        .split([',', ';'])
        .filter_map(|member| member.split_once('='))
    {
        known |= take(&mut pairs, key.trim(), value.trim(), now);
    }
    if known {
        let family = match name.role {
            Role::Whole => Family::field(&name.family),
            _ => Family::of(&name.family),
        };
        *drafts.bucket(family, name.bucket.clone()) = pairs;
    }
    known
}

/// Takes one pair; false if the key is not known or the value no number.
fn take(pairs: &mut Draft, key: &str, value: &str, now: i64) -> bool {
    let count = named::count(value);
    match key.to_ascii_lowercase().as_str() {
        "limit" | "total" | "max" | "quota" => match count.map(u64::try_from) {
            Some(Ok(limit)) => pairs.limits.push(limit),
            _ => return false,
        },
        "remaining" | "left" => match count {
            Some(remaining) => pairs.remaining = Some(remaining),
            None => return false,
        },
        "used" => match count.map(u64::try_from) {
            Some(Ok(used)) => pairs.used.push(used),
            _ => return false,
        },
        "reset" | "resets" => match moment::read(value, Unit::ByMagnitude, now) {
            Some(moment) => pairs.reset = Some(moment),
            None => return false,
        },
        _ => return false,
    }
    true
}
