//! Used and limit side by side, for vendors that say nothing about time: how the counts come back is fixed by
//! their documentation.

use std::collections::BTreeMap;

use super::draft::{Draft, Drafts, Family};
use super::named;
use crate::http_date::Anchor;
use crate::moment::Moment;

/// `X-Shopify-Shop-Api-Call-Limit: 32/40`, also under other prefixes.
const CALLS: &str = "api-call-limit";
/// That bucket leaks: it is empty again after so many seconds, whatever its size (2/s of 40, 4/s of 80).
const CALLS_EMPTY_AFTER: f64 = 20.0;
/// `Sforce-Limit-Info: api-usage=18/5000, per-app-api-usage=17/250(appName=sample)`
const SFORCE: &str = "sforce-limit-info";
/// Its counts roll over a day.
const DAY: u64 = 24 * 60 * 60 * 1000;
/// Strava counts by natural quarters of an hour
const QUARTER: u64 = 15 * 60 * 1000;

/// Reads a header that holds pairs; false if it is another one.
pub(super) fn read(name: &str, value: &str, drafts: &mut Drafts) -> bool {
    if name.ends_with(CALLS) {
        match named::fraction(value) {
            Some((used, limit)) => {
                let draft = drafts.bucket(Family::of(CALLS), None);
                draft.used.push(used);
                draft.limits.push(limit);
                draft.restores = Some(limit as f64 / CALLS_EMPTY_AFTER);
            }
            None => drafts.ignore(name, value, "not used/limit"),
        }
        return true;
    }
    if name == SFORCE {
        for member in value.split(',') {
            let pair = member.split_once('=').and_then(|(bucket, counts)| {
                // What follows in brackets names the app.
                let counts = counts.split('(').next()?;
                Some((bucket.trim(), named::fraction(counts)?))
            });
            match pair {
                Some((bucket, (used, limit))) => {
                    let draft = drafts.bucket(Family::of(SFORCE), Some(bucket.to_owned()));
                    draft.used.push(used);
                    draft.limits.push(limit);
                    draft.per = Some(DAY);
                }
                None => drafts.ignore(name, member, "not name=used/limit"),
            }
        }
        return true;
    }
    false
}

/// Splits `limit: 200,2000` with `usage: 51,116` into the two windows that Strava means: the natural quarter of
/// an hour and the day, both by UTC.
pub(super) fn split(
    drafts: BTreeMap<(Family, Option<String>), Draft>,
    at: &Anchor,
) -> BTreeMap<(Family, Option<String>), Draft> {
    let mut all = BTreeMap::new();
    for ((family, bucket), draft) in drafts {
        let ([short_limit, day_limit], [short_used, day_used]) =
            (draft.limits.as_slice(), draft.used.as_slice())
        else {
            all.insert((family, bucket), draft);
            continue;
        };
        let windows = [
            ("15-minutes", *short_limit, *short_used, QUARTER),
            ("day", *day_limit, *day_used, DAY),
        ];
        for (name, limit, used, per) in windows {
            let name = match &bucket {
                Some(bucket) => format!("{bucket}-{name}"),
                None => name.to_owned(),
            };
            let part = Draft {
                limits: vec![limit],
                used: vec![used],
                per: Some(per),
                reset: Some(Moment::In(until_next(per, at))),
                ..draft.clone()
            };
            all.insert((family.clone(), Some(name)), part);
        }
    }
    all
}

/// ms to the next natural window.
fn until_next(per: u64, at: &Anchor) -> i64 {
    let per = per as i64;
    per - at.moment().rem_euclid(per)
}
