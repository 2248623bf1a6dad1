//! `RateLimit` and `RateLimit-Policy` as structured fields (RFC 9651), which the newest drafts of the IETF's
//! httpapi group use: `RateLimit: "burst";r=50;t=30`, `RateLimit-Policy: "burst";q=100;w=60`.
//!
//! Also the policies of the older drafts, whose items are numbers: `RateLimit-Policy: 100;w=10`.
//! Unknown parameters are comments; a malformed field is left out whole, as the draft says.

use sfv::{BareItem, Item, List, ListEntry, Parser};

use super::draft::{Drafts, Family, Policy};
use super::name::{Name, Role};
use crate::model::Duration;
use crate::moment::{HORIZON, Moment};

/// Reads one of the fields; false if the header is another one, or written in an older dialect.
pub(super) fn read(header: &str, name: &Name, value: &str, drafts: &mut Drafts) -> bool {
    match name.role {
        Role::Whole => limits(header, name, value, drafts),
        Role::Policy => policies(header, name, value, drafts),
        _ => false,
    }
}

fn limits(header: &str, name: &Name, value: &str, drafts: &mut Drafts) -> bool {
    let Some(items) = items(value) else {
        let meant = value.trim_start().starts_with('"') && value.contains(';');
        if meant {
            drafts.ignore(header, value, "not a list of named limits");
        }
        return meant;
    };
    let named: Vec<(String, &Item)> = items
        .iter()
        .filter_map(|item| Some((text(&item.bare_item)?, item)))
        .filter(|(_, item)| parameter(item, "r").is_some() || parameter(item, "t").is_some())
        .collect();
    for (bucket, item) in &named {
        let bucket = qualified(name, bucket);
        let draft = drafts.bucket(Family::field(&name.family), Some(bucket));
        let remaining = parameter(item, "r").filter(|r| *r >= 0);
        draft.remaining = match (draft.remaining, remaining) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if let Some(seconds) = parameter(item, "t").filter(|t| *t >= 0) {
            draft.reset = Some(Moment::In(seconds.saturating_mul(1000)));
        }
    }
    !named.is_empty()
}

fn policies(header: &str, name: &Name, value: &str, drafts: &mut Drafts) -> bool {
    let Some(items) = items(value) else {
        drafts.ignore(header, value, "not a list of policies");
        return true;
    };
    for item in &items {
        if let Some(policy) = number_policy(item) {
            drafts.policy(&name.family, policy);
        } else if let Some(bucket) = text(&item.bare_item) {
            named_policy(name, &bucket, item, drafts);
        }
    }
    true
}

fn named_policy(name: &Name, bucket: &str, item: &Item, drafts: &mut Drafts) {
    let bucket = qualified(name, bucket);
    let draft = drafts.bucket(Family::field(&name.family), Some(bucket));
    let quota = parameter(item, "q").and_then(|q| u64::try_from(q).ok());
    draft.limits.extend(quota);
    draft.per = draft.per.or_else(|| window(item));
    draft.quota_unit = item
        .params
        .get("qu")
        .and_then(text)
        .map(|unit| match unit.as_str() {
            "content-bytes" => "bytes".to_owned(),
            _ => unit,
        });
}

/// The bucket with the words that stand in the header's name.
fn qualified(name: &Name, bucket: &str) -> String {
    match &name.bucket {
        Some(words) => format!("{words}-{bucket}"),
        None => bucket.to_owned(),
    }
}

/// The policies of a list whose items are numbers with a window: `100;w=60, 1000;w=3600`.
pub(super) fn number_policies(value: &str) -> Option<Vec<Policy>> {
    Some(items(value)?.iter().filter_map(number_policy).collect())
}

fn number_policy(item: &Item) -> Option<Policy> {
    let quota = u64::try_from(i64::from(item.bare_item.as_integer()?)).ok()?;
    let per = window(item)?;
    Some(Policy { quota, per })
}

/// The window of a policy, which the oldest drafts spell out.
fn window(item: &Item) -> Option<Duration> {
    let seconds = parameter(item, "w").or_else(|| parameter(item, "window"))?;
    let ms = u64::try_from(seconds).ok()?.checked_mul(1000)?;
    (1..=HORIZON).contains(&ms).then_some(ms)
}

fn items(value: &str) -> Option<Vec<Item>> {
    let list: List = Parser::new(value.trim()).parse().ok()?;
    list.into_iter()
        .map(|entry| match entry {
            ListEntry::Item(item) => Some(item),
            ListEntry::InnerList(_) => None,
        })
        .collect()
}

fn parameter(item: &Item, key: &str) -> Option<i64> {
    Some(i64::from(item.params.get(key)?.as_integer()?))
}

/// A string, or the token that some send instead.
fn text(item: &BareItem) -> Option<String> {
    item.as_string()
        .map(|string| string.as_str().to_owned())
        .or_else(|| item.as_token().map(|token| token.as_str().to_owned()))
}
