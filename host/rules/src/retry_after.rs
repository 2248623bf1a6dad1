//! `Retry-After` (RFC 9110, section 10.2.3) and its siblings: the vendor's own word on when to come back.
//!
//! | value | outcome |
//! | --- | --- |
//! | seconds, whole or decimal | a wait, rounded up to whole seconds |
//! | ms under a name that says so | a wait |
//! | a date, an epoch, a span with units | a wait, counted from the answer's own `Date` |
//! | a date that is over | due now: skew and slow networks make it, and the vendor's pause is over |
//! | zero, negative, blank, unreadable, more than a year | unusable: as if the vendor had said nothing |
//!
//! Of several readable values the longest counts. A wait of more than a day is believed and marked absurd:
//! going early would be wrong, and so would be silence.

use crate::http_date::Anchor;
use crate::model::Duration;
use crate::moment::{self, Moment, Unit};

/// From here on a wait is [absurd](RetryAfter::Wait).
pub const ABSURD: Duration = 24 * 60 * 60 * 1000;

/// The names under which vendors say it, and the unit of a plain number there.
const NAMES: [(&str, Unit); 6] = [
    ("retry-after", Unit::ByMagnitude),
    ("x-retry-after", Unit::ByMagnitude),
    ("beta-retry-after", Unit::ByMagnitude),
    ("x-ratelimit-retry-after", Unit::ByMagnitude),
    ("retry-after-ms", Unit::Milliseconds),
    ("x-ms-retry-after-ms", Unit::Milliseconds),
];

/// What an answer says about coming back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// Not before this many ms have passed since the answer; never 0.
    Wait(Duration),
    /// The moment is over.
    DueNow,
    /// The header is there, and says nothing that could be followed.
    Unusable,
}

/// Reads the headers of one answer; none if it has no such header.
pub fn read(headers: &[(String, String)], at: &Anchor) -> Option<RetryAfter> {
    headers
        .iter()
        .filter_map(|(name, value)| {
            let unit = unit_of(name)?;
            Some(one(value, unit, at))
        })
        .reduce(|a, b| match (a, b) {
            (RetryAfter::Wait(a), RetryAfter::Wait(b)) => RetryAfter::Wait(a.max(b)),
            (RetryAfter::Wait(ms), _) | (_, RetryAfter::Wait(ms)) => RetryAfter::Wait(ms),
            (RetryAfter::DueNow, _) | (_, RetryAfter::DueNow) => RetryAfter::DueNow,
            _ => RetryAfter::Unusable,
        })
}

/// Whether a header is one of these.
pub(crate) fn unit_of(name: &str) -> Option<Unit> {
    NAMES
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known))
        .map(|(_, unit)| *unit)
}

fn one(value: &str, unit: Unit, at: &Anchor) -> RetryAfter {
    let Some(moment) = readable(value, unit, at) else {
        return RetryAfter::Unusable;
    };
    let Some(wait) = moment.from(at.moment()) else {
        return RetryAfter::Unusable;
    };
    match (Duration::try_from(wait), moment) {
        (Ok(1..), _) => RetryAfter::Wait(whole_seconds(wait.unsigned_abs(), unit)),
        (_, Moment::At(_)) => RetryAfter::DueNow,
        (_, Moment::In(_)) => RetryAfter::Unusable,
    }
}

/// The value, or the latest of several that a proxy joined into one line.
fn readable(value: &str, unit: Unit, at: &Anchor) -> Option<Moment> {
    let now = at.moment();
    moment::read(value, unit, now).or_else(|| {
        value
            .split(',')
            .filter_map(|part| moment::read(part, unit, now))
            .max_by_key(|moment| moment.from(now))
    })
}

/// Vendors count whole seconds; a fraction is rounded up.
fn whole_seconds(wait: Duration, unit: Unit) -> Duration {
    match unit {
        Unit::ByMagnitude => wait.div_ceil(1000) * 1000,
        Unit::Milliseconds => wait,
    }
}
