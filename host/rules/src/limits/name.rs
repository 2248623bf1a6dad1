//! The grammar of limit headers' names.
//!
//! A name is some spelling of "rate limit" with words before and behind it. A few words say what the value is
//! (limit, remaining, used, reset, window); the others name the bucket:
//! `x-ratelimit-remaining-tokens`, `x-rate-limit-api-key-max`, `ratelimit-reset-daily`.

use crate::model::Duration;

/// What a header's name says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Name {
    /// The spelling of "rate limit", with what stands before it: headers of one family speak of one bucket.
    pub(super) family: String,
    /// The words that name the bucket, joined by dashes.
    pub(super) bucket: Option<String>,
    /// What the value is.
    pub(super) role: Role,
    /// The value is in milliseconds.
    pub(super) milliseconds: bool,
    /// The window that the bucket's name implies, in ms.
    pub(super) per: Option<Duration>,
}

/// What the value of a limit header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The name is the spelling alone: a limit, or a field that holds everything.
    Whole,
    /// How much is allowed.
    Limit,
    /// How much is left.
    Remaining,
    /// How much is used.
    Used,
    /// When the window starts anew.
    Reset,
    /// The same, and certainly counted from the answer.
    ResetAfter,
    /// The window's length.
    Window,
    /// The policies behind the limit.
    Policy,
    /// The name of the family's bucket.
    Label,
    /// Who shares the family's bucket.
    Scope,
    /// Nothing known: only a value of `key=value` pairs makes sense of it.
    Other,
}

/// The spellings of "rate limit".
const MARKS: [&str; 3] = ["ratelimit", "rate-limit", "rate_limit"];
/// Stands where a family's spelling would, in names such as `x-hourly-requests-left`.
const BARE_LEFT: &str = "-requests-left";

/// Takes a header's name (in lower case) apart; none if it has nothing to do with limits.
pub(super) fn parse(name: &str) -> Option<Name> {
    if let Some(stem) = name.strip_suffix(BARE_LEFT)
        && !MARKS.iter().any(|mark| stem.contains(mark))
    {
        return Some(words(BARE_LEFT, stem, "left"));
    }
    let (at, mark) = MARKS
        .iter()
        .filter_map(|mark| Some((name.find(mark)?, *mark)))
        .min()?;
    let (before, rest) = name.split_at_checked(at)?;
    let behind = rest.strip_prefix(mark)?;
    let family = format!("{before}{mark}");
    Some(words(&family, before, behind))
}

fn words(family: &str, before: &str, behind: &str) -> Name {
    let split = |part: &str| -> Vec<String> {
        part.split('-')
            .map(|word| word.trim_matches('_').to_owned())
            .filter(|word| !word.is_empty())
            .collect()
    };
    let mut bucket: Vec<String> = split(before)
        .into_iter()
        .filter(|word| word != "x" && word != "beta")
        .collect();
    let behind = split(behind);
    let mut role = only_word(&behind);
    let mut milliseconds = false;
    if role.is_none() {
        let mut words = behind.iter().peekable();
        while let Some(word) = words.next() {
            let next = words.peek().map(|word| word.as_str());
            match meaning(word, next, role) {
                Meaning::Role(found) => role = Some(stronger(role, found)),
                Meaning::Milliseconds => milliseconds = true,
                Meaning::Filler => {}
                Meaning::Bucket => bucket.push(word.clone()),
            }
        }
    }
    let role = role.unwrap_or_else(|| match behind.as_slice() {
        [] => Role::Whole,
        // `…-daily: 250000` is how much a day allows.
        words if window(words).is_some() => Role::Limit,
        _ => Role::Other,
    });
    let per = window(&bucket);
    Name {
        family: family.to_owned(),
        bucket: (!bucket.is_empty()).then(|| bucket.join("-")),
        role,
        milliseconds,
        per,
    }
}

/// Words that only mean something when they stand alone.
fn only_word(behind: &[String]) -> Option<Role> {
    let [word] = behind else {
        return None;
    };
    match word.as_str() {
        "bucket" | "resource" | "name" | "category" => Some(Role::Label),
        "scope" => Some(Role::Scope),
        "key" | "type" | "tier" | "reason" | "global" | "nearlimit" | "cost" | "id" => {
            Some(Role::Other)
        }
        _ => None,
    }
}

enum Meaning {
    Role(Role),
    Milliseconds,
    Filler,
    Bucket,
}

fn meaning(word: &str, next: Option<&str>, so_far: Option<Role>) -> Meaning {
    let reset_before = so_far == Some(Role::Reset);
    match word {
        "limit" | "max" | "total" | "quota" => Meaning::Role(Role::Limit),
        "remaining" | "left" | "available" => Meaning::Role(Role::Remaining),
        "used" | "usage" | "observed" | "consumed" => Meaning::Role(Role::Used),
        "reset" | "resets" | "resettime" => Meaning::Role(Role::Reset),
        "after" | "in" if reset_before => Meaning::Role(Role::ResetAfter),
        "at" | "time" | "seconds" if reset_before => Meaning::Filler,
        "time" if matches!(next, Some("reset" | "window")) => Meaning::Filler,
        "interval" | "window" | "period" => Meaning::Role(Role::Window),
        "policy" => Meaning::Role(Role::Policy),
        "ms" | "milliseconds" | "millis" => Meaning::Milliseconds,
        // What this one call cost, and the answer to a wait of which `retry_after` takes care.
        "currentrequest" | "retry" => Meaning::Role(Role::Other),
        _ => Meaning::Bucket,
    }
}

/// Of two roles in one name, the one that says what the value is: a `limit-reset` is a reset.
fn stronger(a: Option<Role>, b: Role) -> Role {
    let rank = |role: Role| match role {
        Role::Other => 7,
        Role::ResetAfter => 6,
        Role::Reset => 5,
        Role::Remaining => 4,
        Role::Used => 3,
        Role::Window => 2,
        Role::Policy => 2,
        _ => 1,
    };
    match a {
        Some(a) if rank(a) >= rank(b) => a,
        _ => b,
    }
}

/// The window that a bucket's words imply, in ms.
fn window(words: &[String]) -> Option<Duration> {
    const SECOND: Duration = 1000;
    let last = words.last()?;
    let number: Option<Duration> = words.iter().rev().nth(1).and_then(|word| word.parse().ok());
    let unit = match last.as_str() {
        "second" | "secondly" => SECOND,
        "minute" | "minutely" => 60 * SECOND,
        "hour" | "hourly" => 3600 * SECOND,
        "day" | "daily" => 86_400 * SECOND,
        _ => return None,
    };
    unit.checked_mul(number.unwrap_or(1))
}
