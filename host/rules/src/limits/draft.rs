//! What is known of each bucket while the headers of an answer are read, and what is made of it at the end.

use std::collections::BTreeMap;

use super::name::Name;
use super::{Reading, pairs};
use crate::http_date::Anchor;
use crate::model::{Duration, Limit, Scope};
use crate::moment::Moment;

/// Foreign text in a note is cut here.
const NOTE_LENGTH: usize = 60;
/// Notes of one answer; a vendor with more has been understood well enough.
const NOTES: usize = 16;
/// A window may be stated a little shorter than its reset: clocks and rounding.
const WINDOW_SLACK: Duration = 2000;

/// Which headers a draft comes from. They sort by how far their words are trusted to mean what the standard
/// says; the first keeps the plain name when two disagree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Family {
    rank: u8,
    /// The spelling of "rate limit" in the header's name.
    pub(super) spelling: String,
}

impl Family {
    /// The headers `<spelling>-limit`, `<spelling>-remaining` and so on.
    pub(super) fn of(spelling: &str) -> Self {
        let rank = match spelling {
            "ratelimit" => 1,
            "x-ratelimit" => 2,
            "x-rate-limit" => 3,
            _ => 4,
        };
        Self {
            rank,
            spelling: spelling.to_owned(),
        }
    }

    /// The one header `<spelling>` that holds everything.
    pub(super) fn field(spelling: &str) -> Self {
        Self {
            rank: 0,
            spelling: spelling.to_owned(),
        }
    }
}

/// A quota policy: so much per window.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Policy {
    pub(super) quota: u64,
    pub(super) per: Duration,
}

/// One bucket as one family of headers tells of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// Several numbers, if the header held several.
    pub(super) limits: Vec<u64>,
    pub(super) remaining: Option<i64>,
    pub(super) used: Vec<u64>,
    pub(super) used_percent: Option<f64>,
    pub(super) per: Option<Duration>,
    pub(super) reset: Option<Moment>,
    /// A reset that is certainly counted from the answer; better than the other.
    pub(super) reset_after: Option<Moment>,
    pub(super) restores: Option<f64>,
    pub(super) wait: Option<Duration>,
    pub(super) quota_unit: Option<String>,
    pub(super) scope: Option<Scope>,
}

/// All drafts of one answer.
pub(super) struct Drafts {
    pub(super) at: Anchor,
    drafts: BTreeMap<(Family, Option<String>), Draft>,
    policies: BTreeMap<String, Vec<Policy>>,
    labels: BTreeMap<String, String>,
    scopes: BTreeMap<String, Scope>,
    ignored: Vec<String>,
}

impl Drafts {
    pub(super) fn new(at: Anchor) -> Self {
        Self {
            at,
            drafts: BTreeMap::new(),
            policies: BTreeMap::new(),
            labels: BTreeMap::new(),
            scopes: BTreeMap::new(),
            ignored: Vec::new(),
        }
    }

    /// The draft that a header's name belongs to.
    pub(super) fn named(&mut self, name: &Name) -> &mut Draft {
        let per = name.per;
        let draft = self.bucket(Family::of(&name.family), name.bucket.clone());
        draft.per = draft.per.or(per);
        draft
    }

    pub(super) fn bucket(&mut self, family: Family, bucket: Option<String>) -> &mut Draft {
        self.drafts.entry((family, bucket)).or_default()
    }

    pub(super) fn policy(&mut self, spelling: &str, policy: Policy) {
        let policies = self.policies.entry(spelling.to_owned()).or_default();
        policies.push(policy);
    }

    pub(super) fn label(&mut self, spelling: &str, label: &str) {
        self.labels.insert(spelling.to_owned(), label.to_owned());
    }

    pub(super) fn scope(&mut self, spelling: &str, scope: Scope) {
        self.scopes.insert(spelling.to_owned(), scope);
    }

    /// Notes why a header was left out.
    pub(super) fn ignore(&mut self, name: &str, value: &str, why: &str) {
        if self.ignored.len() < NOTES {
            let name = shorten(name);
            let value = shorten(value);
            self.ignored
                .push(format!("`{name}: {value}` is ignored: {why}"));
        }
    }

    /// Makes limits of the drafts.
    pub(super) fn finish(mut self) -> Reading {
        let at = self.at;
        let drafts = pairs::split(std::mem::take(&mut self.drafts), &at);
        let drafts = adopt_orphans(drafts);
        let mut kept: Vec<(Family, Limit)> = Vec::new();
        for ((family, bucket), draft) in drafts {
            let bucket = bucket.or_else(|| self.labels.get(&family.spelling).cloned());
            let scope = self.scopes.get(&family.spelling).copied();
            let policies = self
                .policies
                .get(&family.spelling)
                .map_or(&[][..], Vec::as_slice);
            let mut notes = Vec::new();
            let limit = draft.settle(bucket, scope, policies, &at, &mut notes);
            for (value, why) in notes {
                self.ignore(&family.spelling, &value, why);
            }
            if says_something(&limit) {
                merge(&mut kept, family, limit);
            }
        }
        Reading {
            limits: kept.into_iter().map(|(_, limit)| limit).collect(),
            ignored: self.ignored,
        }
    }
}

fn says_something(limit: &Limit) -> bool {
    limit.limit.is_some()
        || limit.remaining.is_some()
        || limit.used_percent.is_some()
        || limit.resets_in.is_some()
        || limit.per.is_some()
        || limit.wait.is_some()
}

impl Draft {
    /// The limit that the draft amounts to; contradictions are resolved to the careful side and noted.
    fn settle(
        self,
        bucket: Option<String>,
        scope: Option<Scope>,
        policies: &[Policy],
        at: &Anchor,
        notes: &mut Vec<(String, &'static str)>,
    ) -> Limit {
        // Several numbers under one name, without a word on which is which: the smallest.
        let mut limit = self.limits.iter().copied().min();
        let per = self.per.or_else(|| window(limit, policies));
        if limit.is_none()
            && let [policy] = policies
        {
            limit = Some(policy.quota);
        }
        let used = self.used.iter().copied().max();
        let mut remaining = match (self.remaining, limit, used) {
            (Some(left), Some(_), _) if left < 0 => Some(0),
            (Some(left), _, _) => u64::try_from(left).ok(),
            (None, Some(limit), Some(used)) => Some(limit.saturating_sub(used)),
            (None, _, _) => None,
        };
        if let (Some(left), Some(allowed)) = (remaining, limit)
            && left > allowed
        {
            // A proxy overwrote one of them. Neither can be trusted to divide by.
            notes.push((
                format!("{left} of {allowed}"),
                "more is left than the limit allows",
            ));
            remaining = (allowed > 0).then_some(allowed);
            limit = None;
        }
        let resets_in = self.resets_in(per, at, notes);
        let quota_unit = self
            .quota_unit
            .unwrap_or_else(|| unit_by_name(bucket.as_deref()).to_owned());
        let by_app = bucket.as_deref().is_some_and(|name| {
            name.split('-')
                .any(|word| matches!(word, "app" | "application"))
        });
        let by_name = if by_app {
            Scope::App
        } else {
            Scope::Credential
        };
        Limit {
            scope: self.scope.or(scope).unwrap_or(by_name),
            bucket,
            quota_unit,
            limit: limit.filter(|limit| *limit > 0),
            remaining,
            used_percent: self.used_percent,
            per,
            resets_in,
            restores: self.restores,
            wait: self.wait,
        }
    }

    fn resets_in(
        &self,
        per: Option<Duration>,
        at: &Anchor,
        notes: &mut Vec<(String, &'static str)>,
    ) -> Option<Duration> {
        let reset = self.reset_after.or(self.reset)?;
        // A number of seconds that overshoots its own window is one of milliseconds.
        let reset = match (reset, per) {
            (Moment::In(ms), Some(per)) if overshoots(ms, per) && !overshoots(ms / 1000, per) => {
                Moment::In(ms / 1000)
            }
            _ => reset,
        };
        let Some(ms) = reset.from(at.moment()) else {
            notes.push((format!("{reset:?}"), "a reset more than a year ahead"));
            return None;
        };
        // Over already: the window has started anew.
        Some(Duration::try_from(ms).unwrap_or(0))
    }
}

fn overshoots(ms: i64, per: Duration) -> bool {
    u64::try_from(ms).is_ok_and(|ms| ms > per.saturating_add(WINDOW_SLACK))
}

/// The window of the policy that allows exactly `limit`, if only one does; of the only policy, if the limit is
/// not known.
fn window(limit: Option<u64>, policies: &[Policy]) -> Option<Duration> {
    let mut fitting = policies
        .iter()
        .filter(|policy| limit.is_none_or(|limit| policy.quota == limit));
    let first = fitting.next()?;
    fitting
        .all(|other| other.per == first.per)
        .then_some(first.per)
}

/// What a bucket's name says about what it counts.
fn unit_by_name(bucket: Option<&str>) -> &'static str {
    let name = bucket.unwrap_or_default();
    if name.contains("token") && !name.contains("api-token") {
        "tokens"
    } else if name.contains("complexity") || name.contains("point") || name.contains("cost") {
        "points"
    } else if name.contains("concurren") {
        "concurrent-requests"
    } else if name.contains("byte") {
        "bytes"
    } else {
        "requests"
    }
}

type ByKey = BTreeMap<(Family, Option<String>), Draft>;

/// Gives a reset or window that stands without a count to the one bucket of its family that lacks it: some
/// vendors name the bucket in the count's header and not in the reset's.
fn adopt_orphans(mut drafts: ByKey) -> ByKey {
    let orphans: Vec<Family> = drafts
        .iter()
        .filter(|((_, bucket), draft)| bucket.is_none() && draft.is_orphan())
        .map(|((family, _), _)| family.clone())
        .collect();
    for family in orphans {
        let mut siblings = drafts
            .keys()
            .filter(|(of, bucket)| *of == family && bucket.is_some());
        let (Some(only), None) = (siblings.next().cloned(), siblings.next()) else {
            continue;
        };
        let Some(orphan) = drafts.remove(&(family, None)) else {
            continue;
        };
        if let Some(adopter) = drafts.get_mut(&only) {
            adopter.per = adopter.per.or(orphan.per);
            adopter.reset = adopter.reset.or(orphan.reset);
            adopter.reset_after = adopter.reset_after.or(orphan.reset_after);
        }
    }
    drafts
}

impl Draft {
    fn is_orphan(&self) -> bool {
        self.limits.is_empty()
            && self.remaining.is_none()
            && self.used.is_empty()
            && self.used_percent.is_none()
            && self.wait.is_none()
    }
}

/// Adds a limit to those of other families. If it speaks of the same bucket and does not contradict its limit, each
/// part takes the more restrictive value; else it is a bucket of its own, named after its family.
fn merge(kept: &mut Vec<(Family, Limit)>, family: Family, mut limit: Limit) {
    let same = kept
        .iter_mut()
        .find(|(_, other)| other.bucket == limit.bucket);
    let Some((_, other)) = same else {
        kept.push((family, limit));
        return;
    };
    let most = other.limit.or(limit.limit);
    let fits = |left: Option<u64>| most.is_none_or(|most| left.is_none_or(|left| left <= most));
    let agree = match (other.limit, limit.limit) {
        (Some(a), Some(b)) => a == b,
        // One states a limit, the other what is left: of that limit, if it can be.
        _ => fits(other.remaining) && fits(limit.remaining),
    };
    if !agree {
        let spelling = family.spelling.trim_matches('-');
        let own = match &limit.bucket {
            Some(bucket) => format!("{spelling}/{bucket}"),
            None => spelling.to_owned(),
        };
        limit.bucket = Some(own);
        if kept.iter().all(|(_, other)| other.bucket != limit.bucket) {
            kept.push((family, limit));
        }
        return;
    }
    other.limit = other.limit.or(limit.limit);
    other.remaining = fewer(other.remaining, limit.remaining);
    other.used_percent = match (other.used_percent, limit.used_percent) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    };
    other.per = other.per.or(limit.per);
    other.resets_in = other.resets_in.max(limit.resets_in);
    other.restores = other.restores.or(limit.restores);
    other.wait = other.wait.max(limit.wait);
}

fn fewer(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Foreign text for a note: short, and without control characters.
fn shorten(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(NOTE_LENGTH)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(NOTE_LENGTH).is_some() {
        short.push('…');
    }
    short
}

/// The headers that could matter, by name in lower case; the lines of one name joined as RFC 9110 section 5.3
/// says.
pub(super) fn joined(headers: &[(String, String)]) -> Vec<(String, String)> {
    let mut joined: Vec<(String, String)> = Vec::new();
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        let relevant = ["limit", "usage", "throttle", "-left"];
        if !relevant.iter().any(|part| name.contains(part)) {
            continue;
        }
        match joined.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => {
                values.push_str(", ");
                values.push_str(value);
            }
            None => joined.push((name, value.clone())),
        }
    }
    joined
}
