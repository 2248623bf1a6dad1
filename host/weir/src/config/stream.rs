//! `connection.NAME.streams.STREAM`: how one stream is polled.

use weir_rules::model::{Duration, Timestamp};

use super::quiet::Quiet;
use super::reader::{Entry, Report, Section};

/// The settings of one stream, every key optional. What is left out is up to the connector's descriptor, and to the
/// rules' defaults after it.
///
/// ```toml
/// [connection.shop.streams.orders]
/// freshness = "1m"
/// interval = { min = "10s", max = "10m" }
/// overlap = "5m"
/// start = 2024-01-01
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSettings {
    /// `enabled`: false leaves the stream out. Default true.
    pub enabled: bool,
    /// `freshness`: no strategy sleeps longer than this while the budget allows it, in ms. Default: none.
    pub freshness: Option<Duration>,
    /// `interval`: between two polls. A single duration (`interval = "5m"`) is a fixed interval.
    pub interval: Interval,
    /// `overlap`: how far before the watermark a poll reads again.
    pub overlap: Overlap,
    /// `settle`: how late a record may become visible at the vendor, in ms. Default: the connector's word.
    pub settle: Option<Duration>,
    /// `start`: the oldest change that is wanted, RFC 3339 or a date (UTC). Default: everything.
    pub start: Option<Timestamp>,
    /// `volatile`: JSON pointers whose change alone is no change; added to the connector's. Example `["/score"]`.
    pub volatile: Vec<String>,
    /// `page_size`: records asked for per page, 1 to 100000. Default: the connector's.
    pub page_size: Option<u32>,
    /// `reserve`: percent of the vendor's quota that is left to other programs, 0 to 90. Default 0.
    pub reserve: u8,
    /// `priority`: who goes first when calls are scarce: `"high"`, `"normal"`, `"low"`. Default `"normal"`.
    pub priority: Priority,
    /// `backoff`: waits after a fault without the vendor's own word.
    pub backoff: Backoff,
    /// `quiet`: hours of the day in which no poll begins, UTC or in a zone. Example
    /// `{ hours = ["01:00-02:30"], zone = "Europe/Berlin" }`. Default: none.
    pub quiet: Quiet,
    /// `dedup`: what is remembered of records, and for how long.
    pub dedup: Dedup,
}

/// `dedup = { retain, max }`: one entry is remembered for each record, for ever and without bound unless told otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dedup {
    /// `retain`: records that have not changed for this long before the newest one, in ms, are forgotten; never one that
    /// the overlap or the settle pass may read again. One that comes back is delivered as an insert, under a revision
    /// that it never had. Default: none is forgotten.
    pub retain: Option<Duration>,
    /// `max`: more records than this are never remembered of one unit. A page that would make it more is not taken, and
    /// the unit is parked for review. Default: no bound.
    pub max: Option<u64>,
}

/// `interval = { min, max, strategy }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// `min`, in ms. Default: the connector's, else 30 s.
    pub min: Option<Duration>,
    /// `max`, in ms; never under `min`. Default: the connector's, else 30 min.
    pub max: Option<Duration>,
    /// `strategy`: `"yield"`, `"reset"` or `"rhythm"`. Default `"yield"`.
    pub strategy: Strategy,
}

/// How the interval follows what polls bring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Shrinks by a fifth when there was something, grows by half when there was nothing.
    #[default]
    Yield,
    /// Goes to the minimum when there was something, doubles when there was nothing.
    Reset,
    /// Follows the times of the records: soon while they come, and when one is to be expected.
    Rhythm,
}

/// `overlap`: how far before the watermark a poll begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Measured, and never under this many ms: `overlap = "5m"` or `{ floor = "5m" }`. `None`: the rule's own floor.
    Floor(Option<Duration>),
    /// Always this many ms: `{ fixed = "5m" }`. Measurement may say that it is too short, and changes nothing.
    Fixed(Duration),
}

/// Who goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// After the others.
    Low,
    /// As everyone.
    #[default]
    Normal,
    /// Before the others.
    High,
}

/// `backoff = { base, cap }`: the wait is drawn from nothing up to base x 2^(failures - 1), at most the cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// `base`, in ms. Default 5 s.
    pub base: Option<Duration>,
    /// `cap`, in ms; never under `base`. Default: the connector's, else 30 min.
    pub cap: Option<Duration>,
}

impl Default for StreamSettings {
    fn default() -> Self {
        StreamSettings {
            enabled: true,
            freshness: None,
            interval: Interval::default(),
            overlap: Overlap::Floor(None),
            settle: None,
            start: None,
            volatile: Vec::new(),
            page_size: None,
            reserve: 0,
            priority: Priority::Normal,
            backoff: Backoff::default(),
            quiet: Quiet::default(),
            dedup: Dedup::default(),
        }
    }
}

impl StreamSettings {
    /// The keys of a stream's table.
    pub(super) const KEYS: [&'static str; 13] = [
        "enabled",
        "freshness",
        "interval",
        "overlap",
        "settle",
        "start",
        "volatile",
        "page_size",
        "reserve",
        "priority",
        "backoff",
        "quiet",
        "dedup",
    ];

    /// Reads a stream's table over what holds for all streams of the connection.
    pub(super) fn read(mut section: Section<'_>, report: &mut Report<'_>, defaults: &Self) -> Self {
        let mut stream = defaults.clone();
        if let Some(at) = section.get(report, "enabled") {
            stream.enabled = at.flag(report).unwrap_or(true);
        }
        if let Some(at) = section.get(report, "freshness") {
            stream.freshness = at.duration(report);
        }
        if let Some(at) = section.get(report, "interval") {
            stream.interval = Interval::read(&at, report, stream.interval);
        }
        if let (Some(min), Some(freshness)) = (stream.interval.min, stream.freshness)
            && min > freshness
            && let Some(at) = section
                .get(report, "freshness")
                .or_else(|| section.get(report, "interval"))
        {
            report.complain(
                &at,
                &format!("freshness ({freshness} ms) is shorter than interval.min ({min} ms)"),
                "raise freshness or lower interval.min; example: freshness = \"1m\", interval = { min = \"10s\" }",
            );
        }
        if let Some(at) = section.get(report, "overlap")
            && let Some(overlap) = Overlap::read(&at, report)
        {
            stream.overlap = overlap;
        }
        if let Some(at) = section.get(report, "settle") {
            stream.settle = at.duration(report);
        }
        if let Some(at) = section.get(report, "start") {
            stream.start = moment(&at, report);
        }
        if let Some(at) = section.get(report, "volatile") {
            stream.volatile = pointers(&at, report);
        }
        if let Some(at) = section.get(report, "page_size") {
            stream.page_size = at
                .number(report, 1..100_001)
                .and_then(|size| u32::try_from(size).ok());
        }
        if let Some(at) = section.get(report, "reserve")
            && let Some(percent) = at.number(report, 0..91)
        {
            stream.reserve = u8::try_from(percent).unwrap_or(0);
        }
        if let Some(at) = section.get(report, "priority")
            && let Some(priority) = at.word(
                report,
                &[
                    ("high", Priority::High),
                    ("normal", Priority::Normal),
                    ("low", Priority::Low),
                ],
            )
        {
            stream.priority = priority;
        }
        if let Some(at) = section.get(report, "backoff") {
            stream.backoff = Backoff::read(&at, report, stream.backoff);
        }
        if let Some(at) = section.get(report, "quiet") {
            stream.quiet = Quiet::read(&at, report);
        }
        if let Some(at) = section.get(report, "dedup") {
            stream.dedup = Dedup::read(&at, report, stream.dedup);
        }
        section.finish(report);
        stream
    }
}

impl Interval {
    fn read(at: &Entry<'_>, report: &mut Report<'_>, defaults: Interval) -> Self {
        let help = "allowed: a duration or { min, max, strategy }; example: interval = { min = \"30s\", max = \"30m\" }";
        if at.value.is_str() {
            let fixed = at.duration(report);
            return Interval {
                min: fixed,
                max: fixed,
                ..defaults
            };
        }
        let mut interval = defaults;
        let Some(mut section) = at.section(report, help) else {
            return interval;
        };
        if let Some(at) = section.get(report, "min") {
            interval.min = at.duration(report);
        }
        if let Some(at) = section.get(report, "max") {
            interval.max = at.duration(report);
        }
        if let Some(at) = section.get(report, "strategy")
            && let Some(strategy) = at.word(
                report,
                &[
                    ("yield", Strategy::Yield),
                    ("reset", Strategy::Reset),
                    ("rhythm", Strategy::Rhythm),
                ],
            )
        {
            interval.strategy = strategy;
        }
        in_order(
            at,
            report,
            ("min", interval.min),
            ("max", interval.max),
            help,
        );
        section.finish(report);
        interval
    }
}

impl Backoff {
    pub(super) fn read(at: &Entry<'_>, report: &mut Report<'_>, defaults: Backoff) -> Self {
        let help = "example: backoff = { base = \"5s\", cap = \"30m\" }";
        let mut backoff = defaults;
        let Some(mut section) = at.section(report, help) else {
            return backoff;
        };
        if let Some(at) = section.get(report, "base") {
            backoff.base = at.duration(report);
        }
        if let Some(at) = section.get(report, "cap") {
            backoff.cap = at.duration(report);
        }
        in_order(
            at,
            report,
            ("base", backoff.base),
            ("cap", backoff.cap),
            help,
        );
        section.finish(report);
        backoff
    }
}

impl Dedup {
    fn read(at: &Entry<'_>, report: &mut Report<'_>, defaults: Dedup) -> Self {
        let help = "example: dedup = { retain = \"90d\", max = 1000000 }";
        let mut dedup = defaults;
        let Some(mut section) = at.section(report, help) else {
            return dedup;
        };
        if let Some(at) = section.get(report, "retain") {
            dedup.retain = at.duration(report);
        }
        if let Some(at) = section.get(report, "max") {
            dedup.max = at.number(report, 1..1_000_000_000_001);
        }
        section.finish(report);
        dedup
    }
}

/// The first of two durations must not be the longer one.
fn in_order(
    at: &Entry<'_>,
    report: &mut Report<'_>,
    (least, low): (&str, Option<Duration>),
    (most, high): (&str, Option<Duration>),
    help: &str,
) {
    if let (Some(low), Some(high)) = (low, high)
        && low > high
    {
        report.complain(
            at,
            &format!("{least} ({low} ms) is longer than {most} ({high} ms)"),
            help,
        );
    }
}

impl Overlap {
    fn read(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Self> {
        let help = "allowed: a duration (a floor), { floor = ... } or { fixed = ... }; example: overlap = \"2m\"";
        if at.value.is_str() {
            return at.duration(report).map(|floor| Overlap::Floor(Some(floor)));
        }
        let mut section = at.section(report, help)?;
        let floor = section.get(report, "floor");
        let fixed = section.get(report, "fixed");
        let overlap = match (floor, fixed) {
            (Some(floor), None) => floor.duration(report).map(|ms| Overlap::Floor(Some(ms))),
            (None, Some(fixed)) => fixed.duration(report).map(Overlap::Fixed),
            _ => {
                report.complain(at, "needs one of floor and fixed", help);
                None
            }
        };
        section.finish(report);
        overlap
    }
}

/// An RFC 3339 moment or a plain date, as a string or as TOML's own date; without an offset it is UTC.
fn moment(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Timestamp> {
    let help =
        "allowed: a date or an RFC 3339 time; example: \"2024-01-01\" or \"2024-01-01T00:00:00Z\"";
    let text = match at.value.as_datetime() {
        Some(written) => written.to_string(),
        None => at.text(report, help)?.to_owned(),
    };
    let read = parse_moment(&text);
    if read.is_none() {
        report.complain(at, "is not a date", help);
    }
    read
}

/// Reads an RFC 3339 time, or a date or time without an offset as UTC.
pub(super) fn parse_moment(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>()
        .or_else(|_| jiff::tz::TimeZone::UTC.to_timestamp(text.parse::<jiff::civil::DateTime>()?))
        .map(jiff::Timestamp::as_millisecond)
        .ok()
}

/// A list of JSON pointers (RFC 6901), none of them to the whole record.
fn pointers(at: &Entry<'_>, report: &mut Report<'_>) -> Vec<String> {
    let help = "allowed: a list of JSON pointers; example: [\"/score\", \"/stats/views\"]";
    let Some(list) = at.texts(report, help) else {
        return Vec::new();
    };
    for pointer in &list {
        if !pointer.starts_with('/') {
            let problem = format!("holds {pointer:?}, which is not a JSON pointer to a field");
            report.complain(at, &problem, help);
        }
    }
    list.into_iter().map(str::to_owned).collect()
}
