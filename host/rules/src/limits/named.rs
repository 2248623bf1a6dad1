//! One value a header, and the header's name says which: `X-RateLimit-Remaining: 42`.

use super::draft::Drafts;
use super::name::{Name, Role};
use super::structured;
use crate::model::{Duration, Scope};
use crate::moment::{self, HORIZON, Moment, Unit};

/// Labels longer than this are no names.
const LABEL_LENGTH: usize = 100;

/// Reads a header whose name has been taken apart.
pub(super) fn read(header: &str, name: &Name, value: &str, drafts: &mut Drafts) {
    // Some send the whole value in quotes.
    let value = unquoted(value.trim());
    let understood = match name.role {
        Role::Whole | Role::Limit => limit(name, value, drafts),
        Role::Remaining => remaining(name, value, drafts),
        Role::Used => used(name, value, drafts),
        Role::Reset | Role::ResetAfter => reset(name, value, drafts),
        Role::Window => window(name, value, drafts),
        Role::Label => label(name, value, drafts),
        Role::Scope => scope(name, value, drafts),
        Role::Policy | Role::Other => return,
    };
    if let Err(why) = understood {
        drafts.ignore(header, value, why);
    }
}

fn unquoted(value: &str) -> &str {
    value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|inner| !inner.contains('"'))
        .unwrap_or(value)
}

type Understood = Result<(), &'static str>;

/// `100`, `100, 100;w=60, 1000;w=3600`, `32/40`, or the window itself: `1s`.
fn limit(name: &Name, value: &str, drafts: &mut Drafts) -> Understood {
    if let Some((used, allowed)) = fraction(value) {
        let draft = drafts.named(name);
        draft.limits.push(allowed);
        draft.used.push(used);
        return Ok(());
    }
    if value.contains(';') {
        // The first item is the quota that counts now; what follows are the policies.
        let (first, policies) = value.split_once(',').unwrap_or((value, ""));
        let quota = first.split(';').next().and_then(count).ok_or(NO_COUNT)?;
        for policy in structured::number_policies(policies).unwrap_or_default() {
            drafts.policy(&name.family, policy);
        }
        if first.contains(';') {
            for policy in structured::number_policies(first).unwrap_or_default() {
                drafts.policy(&name.family, policy);
            }
        }
        drafts.named(name).limits.push(unsigned(quota)?);
        return Ok(());
    }
    if let Some(counts) = counts(value) {
        let limits = counts
            .into_iter()
            .map(unsigned)
            .collect::<Result<Vec<_>, _>>()?;
        drafts.named(name).limits.extend(limits);
        return Ok(());
    }
    let span = moment::unit_span(value).ok_or(NO_COUNT)?;
    drafts.named(name).per = Some(positive(span)?);
    Ok(())
}

fn remaining(name: &Name, value: &str, drafts: &mut Drafts) -> Understood {
    if let Some((left, allowed)) = fraction(value) {
        let draft = drafts.named(name);
        draft.limits.push(allowed);
        draft.remaining = i64::try_from(left).ok();
        return Ok(());
    }
    let fewest = counts(value).and_then(|counts| counts.into_iter().min());
    drafts.named(name).remaining = Some(fewest.ok_or(NO_COUNT)?);
    Ok(())
}

fn used(name: &Name, value: &str, drafts: &mut Drafts) -> Understood {
    if let Some((used, allowed)) = fraction(value) {
        let draft = drafts.named(name);
        draft.limits.push(allowed);
        draft.used.push(used);
        return Ok(());
    }
    let counts = counts(value).ok_or(NO_COUNT)?;
    let used = counts
        .into_iter()
        .map(unsigned)
        .collect::<Result<Vec<_>, _>>()?;
    drafts.named(name).used.extend(used);
    Ok(())
}

fn reset(name: &Name, value: &str, drafts: &mut Drafts) -> Understood {
    let now = drafts.at.moment();
    let unit = match name.milliseconds {
        true => Unit::Milliseconds,
        false => Unit::ByMagnitude,
    };
    let moment = moment::read(value, unit, now)
        .or_else(|| {
            // Lines of one name, joined: the latest.
            value
                .split(',')
                .filter_map(|part| moment::read(part, unit, now))
                .max_by_key(|moment| moment.from(now))
        })
        .ok_or("no known form of a time")?;
    if let Moment::In(..0) = moment {
        return Err("a time below zero");
    }
    let draft = drafts.named(name);
    match name.role {
        Role::ResetAfter => draft.reset_after = Some(moment),
        _ => draft.reset = Some(moment),
    }
    Ok(())
}

fn window(name: &Name, value: &str, drafts: &mut Drafts) -> Understood {
    let number = moment::thousandths(value).map(|thousandths| match name.milliseconds {
        true => thousandths / 1000,
        false => thousandths,
    });
    let span = number
        .or_else(|| moment::unit_span(value))
        .ok_or("no known form of a span")?;
    drafts.named(name).per = Some(positive(span)?);
    Ok(())
}

fn label(name: &Name, value: &str, drafts: &mut Drafts) -> Understood {
    let printable = value.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    if value.is_empty() || value.len() > LABEL_LENGTH || !printable {
        return Err("no name of a bucket");
    }
    drafts.label(&name.family, value);
    Ok(())
}

/// Only words that say who shares the bucket; others name kinds of limits.
fn scope(name: &Name, value: &str, drafts: &mut Drafts) -> Understood {
    match value.to_ascii_lowercase().as_str() {
        "app" | "application" => drafts.scope(&name.family, Scope::App),
        "user" | "token" | "key" => drafts.scope(&name.family, Scope::Credential),
        _ => {}
    }
    Ok(())
}

const NO_COUNT: &str = "no number";

/// A whole number; of a decimal one the part before the point.
pub(super) fn count(text: &str) -> Option<i64> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    whole.parse().ok()
}

/// One number, or several with commas between them.
fn counts(value: &str) -> Option<Vec<i64>> {
    value.split(',').map(count).collect()
}

/// `32/40`
pub(super) fn fraction(value: &str) -> Option<(u64, u64)> {
    let (part, whole) = value.split_once('/')?;
    let whole = u64::try_from(count(whole)?).ok()?;
    (whole > 0).then_some((u64::try_from(count(part)?).ok()?, whole))
}

fn unsigned(count: i64) -> Result<u64, &'static str> {
    u64::try_from(count).map_err(|_| "a count below zero")
}

fn positive(span: i64) -> Result<Duration, &'static str> {
    match Duration::try_from(span) {
        Ok(span @ 1..=HORIZON) => Ok(span),
        _ => Err("no possible window"),
    }
}
