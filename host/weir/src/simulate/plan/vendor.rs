//! A vendor out of a seed: every way to list, page, spell times, count quotas and tell waits turns up sooner or later.
//!
//! What it refuses to make: a vendor at which no poller could keep the promises. Page numbers over a listing whose
//! records change their place are only used where nothing does, a result cap only where the client can see it.

use weir_rules::model::Duration;
use weir_tests::dice::Dice;
use weir_tests::spec::{
    Bound, CollectionSpec, Counting, Deletion, Dialect, End, Envelope, EtagKind, Filter, IdKind,
    Lag, LatencySpec, LimitSpec, Order, PageSize, Paging, ResultCap, Total, Validators, VendorSpec,
    WaitForm, WritesSpec,
};
use weir_tests::time::TimeFormat;

use super::{chance, pick};

/// The bearer token that seed-made vendors take.
pub(super) const TOKEN: &str = "simulated-token-71ac";

/// What the configuration promises of one collection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promised {
    /// The overlap in ms.
    pub(super) overlap: i64,
    /// The shortest and the longest interval, in ms.
    pub(super) interval: (i64, i64),
    /// How much there is of everything.
    pub(super) size: Size,
}

/// How much happens in a run, to choose from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// For how long things happen.
    pub(super) minutes: &'static [i64],
    /// Writes to one collection in that time.
    pub(super) writes: &'static [f64],
    /// Records that are there from the start.
    pub(super) initial: &'static [u64],
}

impl Size {
    /// Enough that most polls of a busy collection find something, and few enough that a run takes a second.
    pub(super) const WHOLE: Size = Size {
        minutes: &[20, 20, 60, 60, 240, 1_440],
        writes: &[10.0, 60.0, 200.0, 400.0],
        initial: &[0, 5, 40, 150],
    };
    /// As much trouble over a tenth of the records.
    pub(super) const BRIEF: Size = Size {
        minutes: &[10, 20, 60],
        writes: &[10.0, 20.0, 50.0],
        initial: &[0, 5, 15],
    };
}

/// A vendor for a run of this length.
pub(super) fn vendor(dice: &mut Dice, name: &str, length: i64, promised: Promised) -> VendorSpec {
    let count = pick(dice, &[1, 1, 1, 2, 2, 3]);
    let collections = (0..count)
        .map(|index| collection(dice, index, length, promised))
        .collect();
    let mut spec = VendorSpec {
        name: name.into(),
        seed: dice.next() >> 16,
        base: format!("/{name}"),
        tokens: vec![TOKEN.into()],
        collections,
        free_not_modified: chance(dice, 0.5),
        latency: LatencySpec {
            base_ms: pick(dice, &[5, 20, 80, 400]),
            jitter_ms: pick(dice, &[0, 10, 200]),
            ..LatencySpec::default()
        },
        // Below the tolerance, within reason, and far off.
        date_skew_ms: pick(
            dice,
            &[0, 0, 0, 700, -700, 1_900, -4_000, 6_000, 90_000, -90_000],
        ),
        gzip: chance(dice, 0.3),
        ..VendorSpec::default()
    };
    if chance(dice, 0.5) {
        for number in 0..pick(dice, &[1, 1, 2]) {
            let mut limit = limit(dice, number, promised.interval.0, spec.collections.len());
            // At less than all calls within one window a walk whose page tokens expire may never end, and at much less no
            // walk ends in time.
            let windows = if has_short_tokens(&spec) { 1 } else { 20 };
            limit.limit = limit.limit.max(calls_of_all(&spec, length) / windows);
            spec.limits.push(limit);
        }
    }
    // A vendor's clock that is off stamps its records by the same clock.
    let skew = spec.date_skew_ms;
    for collection in &mut spec.collections {
        if collection.writes.writer_skew_ms.is_empty() {
            collection.writes.writer_skew_ms = vec![0];
        }
        for writer in &mut collection.writes.writer_skew_ms {
            *writer += skew;
        }
    }
    spec
}

/// How a collection can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Keyset,
    KeysetDescending,
    /// A window and a token.
    Token,
    Link,
    NextUrl,
    /// A window and page numbers or offsets; nothing changes its place.
    Numbered,
    /// No window: the whole collection in no order, with page numbers, offsets or tokens.
    Snapshot,
    Feed,
    /// By time alone.
    TimeAlone,
    /// Narrow windows only: to anything wider the vendor answers that there is nothing.
    Narrow,
}

fn collection(dice: &mut Dice, index: usize, length: i64, promised: Promised) -> CollectionSpec {
    let kind = pick(
        dice,
        &[
            Kind::Keyset,
            Kind::Keyset,
            Kind::Keyset,
            Kind::KeysetDescending,
            Kind::Token,
            Kind::Token,
            Kind::Link,
            Kind::NextUrl,
            Kind::Numbered,
            Kind::Snapshot,
            Kind::Feed,
            Kind::TimeAlone,
            Kind::Narrow,
        ],
    );
    let name = pick(dice, &["orders", "tickets", "items", "events"]);
    let name = format!("{name}{}", index + 1);
    let granularity_ms = pick(dice, &[1, 1, 1, 1_000, 1_000, 10_000]);
    let whole_seconds = granularity_ms % 1_000 == 0;
    let formats: &[TimeFormat] = if whole_seconds {
        &[
            TimeFormat::Rfc3339Ms,
            TimeFormat::Rfc3339,
            TimeFormat::EpochS,
            TimeFormat::EpochMs,
        ]
    } else {
        &[TimeFormat::Rfc3339Ms, TimeFormat::EpochMs]
    };
    let mut spec = CollectionSpec {
        path: format!("/v1/{name}"),
        name,
        writes: writes(dice, kind, length, promised),
        ids: pick(dice, &[IdKind::Number, IdKind::Text]),
        first_id: pick(dice, &[1, 900, 9_007_199_254_740_993]),
        granularity_ms,
        time_format: pick(dice, formats),
        deletion: pick(
            dice,
            &[Deletion::Tombstone, Deletion::Tombstone, Deletion::Vanish],
        ),
        volatile_every_ms: pick(dice, &[0, 0, 30_000, 600_000]),
        flips: chance(dice, 0.2),
        filter: filter(dice, kind, formats, length, promised),
        page_size: page_size(dice),
        ..CollectionSpec::default()
    };
    list(dice, kind, &mut spec);
    if chance(dice, 0.5) {
        spec.validators = Validators {
            etag: pick(dice, &[EtagKind::None, EtagKind::Strong, EtagKind::Weak]),
            last_modified: chance(dice, 0.5),
        };
    }
    spec
}

/// Order, paging and envelope.
fn list(dice: &mut Dice, kind: Kind, spec: &mut CollectionSpec) {
    let (mut has_more, mut tokens) = (chance(dice, 0.6), false);
    let any_order = [Order::Ascending, Order::Ascending, Order::Descending];
    match kind {
        Kind::Keyset => {
            let shared = chance(dice, 0.5);
            if !shared {
                // A position is written as in the records.
                spec.filter.format = spec.time_format;
            }
            spec.paging = Paging::Keyset {
                after_time: if shared { "since" } else { "after_time" }.into(),
                after_id: "after_id".into(),
            };
        }
        Kind::KeysetDescending => {
            spec.filter.format = spec.time_format;
            spec.order = Order::Descending;
            spec.paging = Paging::Keyset {
                after_time: "after_time".into(),
                after_id: "after_id".into(),
            };
        }
        Kind::Narrow => {
            spec.paging = token(dice, End::Absent);
            tokens = true;
        }
        Kind::Token => {
            spec.order = pick(dice, &any_order);
            if chance(dice, 0.2) {
                spec.order = Order::Unordered;
            }
            let end = pick(
                dice,
                &[
                    End::Absent,
                    End::Null,
                    End::EmptyString,
                    End::HasMoreFalse,
                    End::EmptyPage,
                ],
            );
            has_more |= end == End::HasMoreFalse;
            spec.paging = token(dice, end);
            tokens = true;
        }
        Kind::Link => {
            spec.order = pick(dice, &any_order);
            spec.paging = Paging::Link {
                relative: chance(dice, 0.5),
            };
            tokens = true;
        }
        Kind::NextUrl => {
            spec.order = pick(dice, &any_order);
            spec.paging = Paging::NextUrl {
                field: "next".into(),
                relative: chance(dice, 0.5),
                end: pick(dice, &[End::Absent, End::Null, End::EmptyString]),
            };
            tokens = true;
        }
        Kind::Numbered => {
            spec.order = pick(dice, &[Order::Ascending, Order::Descending]);
            spec.paging = numbered(dice);
        }
        Kind::Snapshot => {
            spec.order = Order::Unordered;
            spec.paging = if chance(dice, 0.3) {
                tokens = true;
                token(dice, End::Null)
            } else {
                numbered(dice)
            };
        }
        Kind::Feed => {
            has_more = true;
            spec.paging = Paging::Feed {
                param: "cursor".into(),
                field: "cursor".into(),
                ttl_ms: pick(dice, &[0, 0, 600_000]),
            };
            tokens = true;
        }
        Kind::TimeAlone => {
            has_more = true;
            spec.paging = Paging::None;
            // A group of ties that fills a page cannot be walked through by time alone.
            spec.writes.ties = spec.writes.ties.min(0.3);
            spec.page_size = PageSize::fixed(pick(dice, &[12, 20, 50]));
        }
    }
    let bare = matches!(kind, Kind::Link) && chance(dice, 0.5);
    spec.envelope = Envelope {
        records: if bare { "" } else { "data" }.into(),
        has_more: if has_more && !bare { "has_more" } else { "" }.into(),
        count: if !bare && chance(dice, 0.4) {
            "count"
        } else {
            ""
        }
        .into(),
        total: Total::default(),
        ..Envelope::default()
    };
    if !bare && !matches!(kind, Kind::Feed | Kind::TimeAlone | Kind::Keyset) && chance(dice, 0.15) {
        spec.envelope.total.field = "total".into();
    }
    if tokens || matches!(kind, Kind::Keyset | Kind::KeysetDescending) {
        spec.short_pages = pick(dice, &[0.0, 0.0, 0.2]);
    }
    if tokens {
        spec.empty_pages = pick(dice, &[0.0, 0.0, 0.2]);
    }
    if kind == Kind::Numbered && chance(dice, 0.5) {
        spec.result_cap = Some(ResultCap {
            records: pick(dice, &[3, 10]) * spec.page_size.max as u64,
            refuse: true,
        });
    }
}

fn token(dice: &mut Dice, end: End) -> Paging {
    Paging::Token {
        param: "cursor".into(),
        field: "next_cursor".into(),
        end,
        ttl_ms: pick(dice, &[0, 0, 0, 60_000]),
    }
}

fn numbered(dice: &mut Dice) -> Paging {
    if chance(dice, 0.5) {
        Paging::Page {
            param: "page".into(),
            first: pick(dice, &[0, 1]),
        }
    } else {
        Paging::Offset {
            param: "offset".into(),
        }
    }
}

fn filter(
    dice: &mut Dice,
    kind: Kind,
    formats: &[TimeFormat],
    length: i64,
    promised: Promised,
) -> Filter {
    if matches!(kind, Kind::Snapshot | Kind::Feed) {
        return Filter::none();
    }
    Filter {
        since: Bound::new("since", chance(dice, 0.7)),
        until: if kind == Kind::Narrow || chance(dice, 0.4) {
            Bound::new("until", chance(dice, 0.5))
        } else {
            Bound::default()
        },
        format: pick(dice, formats),
        widest_ms: if kind == Kind::Narrow {
            // Bounds are widened to whole seconds and to the stamps' granularity on both sides.
            length / pick(dice, &[2, 6, 12]) + 2 * promised.overlap + 30_000
        } else {
            0
        },
    }
}

fn page_size(dice: &mut Dice) -> PageSize {
    let max = pick(dice, &[2, 3, 5, 10, 20, 50]);
    if chance(dice, 0.3) {
        PageSize::fixed(max)
    } else {
        PageSize {
            param: "limit".into(),
            default: max,
            max,
        }
    }
}

fn writes(dice: &mut Dice, kind: Kind, length: i64, promised: Promised) -> WritesSpec {
    let overlap = promised.overlap;
    let per_run = pick(dice, promised.size.writes);
    let share = |of: f64| (overlap as f64 * of) as i64;
    let lag = pick(dice, &[(0.0, 0.0), (0.1, 0.3), (0.4, 0.8), (0.05, 1.5)]);
    let writer = share(0.05);
    let mut writes = WritesSpec {
        initial: pick(dice, promised.size.initial),
        initial_span_ms: length,
        per_second: per_run * 1_000.0 / length as f64,
        edits: pick(dice, &[0.0, 0.3, 0.6]),
        deletes: pick(dice, &[0.0, 0.05, 0.15]),
        late_edits: 0.5,
        reissues: pick(dice, &[0.0, 0.3]),
        ties: pick(dice, &[0.0, 0.3, 0.6, 0.9]),
        lag: Lag {
            min_ms: 0,
            max_ms: share(lag.0),
            slow: if lag.1 > 0.0 { 0.1 } else { 0.0 },
            slow_ms: share(lag.1),
        },
        writer_skew_ms: pick(dice, &[vec![], vec![0, writer, -writer]]),
        ..WritesSpec::default()
    };
    match kind {
        Kind::Numbered => {
            (writes.edits, writes.deletes) = (0.0, 0.0);
        }
        // The whole collection comes with every poll.
        Kind::Snapshot => {
            writes.initial = writes.initial.min(40);
            writes.edits = 0.7;
            writes.deletes = 0.1;
        }
        _ => {}
    }
    writes
}

fn limit(dice: &mut Dice, number: usize, min_interval: i64, collections: usize) -> LimitSpec {
    let window_ms = pick(dice, &[10_000, 60_000, 300_000]);
    // Twice what polls of one call a minimal interval need, and sometimes too little for that.
    let needed = (window_ms / min_interval.max(1) + 1) as u64 * collections as u64;
    let limit = needed * pick(dice, &[1, 2, 2, 4]) + 3;
    LimitSpec {
        name: if number == 0 { "core" } else { "burst" }.into(),
        limit,
        window_ms,
        counting: pick(dice, &[Counting::Fixed, Counting::Rolling, Counting::Leaky]),
        per_token: true,
        dialects: dialects(dice),
        status: pick(dice, &[429, 429, 429, 403]),
        wait: pick(
            dice,
            &[
                WaitForm::Seconds,
                WaitForm::Decimal,
                WaitForm::HttpDate,
                WaitForm::Rfc3339,
                WaitForm::RetryAfterMs,
            ],
        ),
        body: String::new(),
        penalty_ms: pick(dice, &[0, 0, 0, 20_000]),
    }
}

/// A page token is good for a while only.
fn has_short_tokens(spec: &VendorSpec) -> bool {
    spec.collections.iter().any(|collection| {
        matches!(collection.paging, Paging::Token { ttl_ms, .. } | Paging::Feed { ttl_ms, .. } if ttl_ms > 0)
    })
}

/// Calls in which all that will ever be written can be listed, twice over.
fn calls_of_all(spec: &VendorSpec, length: i64) -> u64 {
    let collections = spec.collections.iter().map(|collection| {
        let writes = &collection.writes;
        // Each of these moments comes with those that share it.
        let moments = writes.per_second * length as f64 / 1_000.0;
        let all = writes.initial as f64 + moments / (1.0 - writes.ties);
        let pages = all / f64::from(u32::try_from(collection.page_size.max).unwrap_or(u32::MAX));
        2 * pages.ceil() as u64 + 1
    });
    collections.sum()
}

fn dialects(dice: &mut Dice) -> Vec<Dialect> {
    let all = [
        Dialect::IetfList,
        Dialect::IetfFields,
        Dialect::IetfCombined,
        Dialect::IetfSemicolons,
        Dialect::IetfStructured,
        Dialect::IetfEpoch,
        Dialect::XEpochSeconds,
        Dialect::XEpochFloat,
        Dialect::XEpochMs,
        Dialect::XSeconds,
        Dialect::XDecimal,
        Dialect::XRfc3339,
        Dialect::XDuration,
        Dialect::XDashEpochSeconds,
        Dialect::MsUntil,
        Dialect::Interval,
        Dialect::UsedOfLimit,
        Dialect::UsagePair,
        Dialect::NamedBucket,
        Dialect::PercentJson,
        Dialect::BusinessJson,
        Dialect::OnlyLeft,
    ];
    if chance(dice, 0.2) {
        return Vec::new();
    }
    vec![pick(dice, &all)]
}

/// The overlap that a run promises, and its intervals.
pub(super) fn promised(dice: &mut Dice, length: i64, size: Size) -> Promised {
    let min = (length / pick(dice, &[40, 100, 250])).clamp(2_000, 600_000);
    let max = min * pick(dice, &[1, 3, 10]);
    Promised {
        overlap: pick(dice, &[10_000, 60_000, 120_000, 600_000]).max(10_000),
        interval: (min, max),
        size,
    }
}

/// A length of time as `weir.toml` spells it.
pub(super) fn spelt(ms: i64) -> String {
    let ms: Duration = ms.unsigned_abs();
    format!("{ms}ms")
}
