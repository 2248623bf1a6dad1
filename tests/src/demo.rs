//! Three vendors that are hard in different ways, and the connections that poll them.
//!
//! | vendor | collection | what is hard |
//! | --- | --- | --- |
//! | `shop` | `orders` | ascending by whole seconds, so full of ties; visibility lag, skewed writers, late edits; ETags |
//! | `desk` | `tickets` | newest first over Link pages, empty pages in between; deletions; a quota that bites, 429s |
//! | `wms` | `items` | no filter, no order, page numbers; no published limits; 503s, errors in 200, cut bodies |

use crate::bulk::{Bulk, BulkPaging};
use crate::judge::JudgeOptions;
use crate::spec::{
    Bound, CollectionSpec, Counting, Deletion, Dialect, Envelope, EtagKind, FaultKind, FaultPlan,
    Filter, IdKind, Lag, LatencySpec, LimitSpec, Order, PageSize, Paging, Phase, RandomFault,
    Validators, VendorSpec, WaitForm, WritesSpec,
};
use crate::time::TimeFormat;

/// The bearer token that `shop` and `desk` take.
pub const DEMO_TOKEN: &str = "demo-token-9f1c";
/// The environment variable in which [`demo_config`] looks for it.
pub const DEMO_TOKEN_VARIABLE: &str = "WEIR_DEMO_TOKEN";

/// No write of the demo becomes visible later than this after its stamp: an overlap of as much finds all of them.
pub const DEMO_LATENESS_MS: i64 = 12_000;

/// How long writes go on, in rounds of busy and quiet times.
const ROUNDS: i64 = 360;
const ROUND_MS: i64 = 10_000;

/// The demo's vendors.
pub fn demo_spec(seed: u64) -> Vec<VendorSpec> {
    vec![shop(seed), desk(seed), wms(seed)]
}

/// The demo's vendors, with shorter waits than in the demo, for records and for limits: whoever kills a host again and
/// again sits them out.
pub fn storm_spec(seed: u64) -> Vec<VendorSpec> {
    let mut vendors = demo_spec(seed);
    for vendor in &mut vendors {
        for collection in &mut vendor.collections {
            collection.writes.lag.slow_ms = collection.writes.lag.slow_ms.min(1_500);
        }
        for random in &mut vendor.faults.random {
            // A limit without a number is waited out for a minute.
            if random.fault == FaultKind::too_many(WaitForm::None, 0) {
                random.fault = FaultKind::too_many(WaitForm::Seconds, 1_000);
            }
        }
    }
    vendors
}

/// The connections for them. Faults of a vendor that publishes no limits would double its interval, up to minutes, and
/// others would back off for as long.
pub fn storm_config(origin: &str) -> String {
    demo_config(origin)
        .replace("unpublished_limits = true, ", "")
        .replace(
            "freshness = ",
            "backoff = { base = \"500ms\", cap = \"3s\" }\nfreshness = ",
        )
}

/// What the demo's run is judged by: everything that became visible up to `grace_ms` before the end.
pub fn demo_judge(grace_ms: i64) -> JudgeOptions {
    JudgeOptions {
        overlap_ms: DEMO_LATENESS_MS,
        grace_ms,
        ..JudgeOptions::default()
    }
}

/// Busy for `busy_ms` at the beginning of each round.
fn rounds(busy_ms: i64, per_second: f64) -> Vec<Phase> {
    (0..ROUNDS)
        .map(|round| Phase {
            from_ms: round * ROUND_MS,
            until_ms: round * ROUND_MS + busy_ms,
            per_second,
        })
        .collect()
}

fn shop(seed: u64) -> VendorSpec {
    let orders = CollectionSpec {
        name: "orders".into(),
        path: "/v2/orders".into(),
        writes: WritesSpec {
            phases: rounds(4_000, 8.0),
            lag: Lag {
                min_ms: 0,
                max_ms: 1_500,
                slow: 0.03,
                slow_ms: 6_000,
            },
            deletes: 0.0,
            ..WritesSpec::lively(350, 0.0)
        },
        granularity_ms: 1_000,
        time_format: TimeFormat::Rfc3339,
        volatile_every_ms: 30_000,
        validators: Validators {
            etag: EtagKind::Weak,
            last_modified: false,
        },
        envelope: Envelope {
            records: "orders".into(),
            ..Envelope::default()
        },
        ..CollectionSpec::default()
    };
    VendorSpec {
        name: "shop".into(),
        seed,
        base: "/shop".into(),
        tokens: vec![DEMO_TOKEN.into()],
        collections: vec![orders],
        limits: vec![LimitSpec {
            name: "core".into(),
            limit: 600,
            window_ms: 60_000,
            dialects: vec![Dialect::IetfStructured],
            ..LimitSpec::default()
        }],
        faults: FaultPlan {
            random: vec![RandomFault::new(
                0.02,
                FaultKind::unavailable(WaitForm::HttpDate, 1_000),
            )],
            ..FaultPlan::default()
        },
        date_skew_ms: 400,
        gzip: true,
        ..VendorSpec::default()
    }
}

fn desk(seed: u64) -> VendorSpec {
    let tickets = CollectionSpec {
        name: "tickets".into(),
        path: "/api/tickets".into(),
        ids: IdKind::Text,
        writes: WritesSpec {
            deletes: 0.1,
            phases: rounds(6_000, 4.0),
            ..WritesSpec::lively(180, 0.0)
        },
        order: Order::Descending,
        filter: Filter {
            since: Bound::new("updated_after", true),
            until: Bound::default(),
            format: TimeFormat::Rfc3339Ms,
            ..Filter::default()
        },
        paging: Paging::Link { relative: false },
        page_size: PageSize {
            param: "per_page".into(),
            default: 30,
            max: 50,
        },
        envelope: Envelope {
            records: String::new(),
            has_more: String::new(),
            ..Envelope::default()
        },
        empty_pages: 0.1,
        validators: Validators {
            etag: EtagKind::Strong,
            last_modified: true,
        },
        ..CollectionSpec::default()
    };
    VendorSpec {
        name: "desk".into(),
        seed,
        base: "/desk".into(),
        tokens: vec![DEMO_TOKEN.into()],
        collections: vec![tickets],
        limits: vec![LimitSpec {
            name: "tickets".into(),
            limit: 30,
            window_ms: 5_000,
            counting: Counting::Fixed,
            dialects: vec![Dialect::XEpochSeconds],
            ..LimitSpec::default()
        }],
        faults: FaultPlan {
            random: vec![
                RandomFault::new(0.06, FaultKind::too_many(WaitForm::Seconds, 1_000)),
                RandomFault::new(0.02, FaultKind::Reset),
            ],
            ..FaultPlan::default()
        },
        ..VendorSpec::default()
    }
}

fn wms(seed: u64) -> VendorSpec {
    let items = CollectionSpec {
        name: "items".into(),
        path: "/api/v1/items".into(),
        writes: WritesSpec {
            phases: rounds(5_000, 2.0),
            edits: 0.6,
            deletes: 0.05,
            ..WritesSpec::lively(120, 0.0)
        },
        time_format: TimeFormat::EpochMs,
        deletion: Deletion::Vanish,
        order: Order::Unordered,
        filter: Filter::none(),
        paging: Paging::Page {
            param: "page".into(),
            first: 1,
        },
        page_size: PageSize {
            param: "per_page".into(),
            default: 50,
            max: 200,
        },
        envelope: Envelope {
            records: "items".into(),
            has_more: String::new(),
            count: "count".into(),
            ..Envelope::default()
        },
        ..CollectionSpec::default()
    };
    let noise = [
        (0.03, FaultKind::unavailable(WaitForm::None, 0)),
        (0.02, FaultKind::too_many(WaitForm::None, 0)),
        (
            0.03,
            FaultKind::ErrorIn200 {
                body: String::new(),
            },
        ),
        (0.02, FaultKind::Truncated),
        (0.02, FaultKind::CutShort),
        (0.01, FaultKind::CutGzip),
        (0.01, FaultKind::Html200),
        (0.02, FaultKind::MissingRecord),
        (0.02, FaultKind::Slow { ms: 900 }),
    ];
    VendorSpec {
        name: "wms".into(),
        seed,
        base: "/wms".into(),
        collections: vec![items],
        latency: LatencySpec {
            base_ms: 60,
            jitter_ms: 60,
            easy_per_second: 4.0,
            slower_by_ms: 250,
            give_in_per_second: 10.0,
        },
        faults: FaultPlan {
            random: noise
                .into_iter()
                .map(|(probability, fault)| RandomFault::new(probability, fault))
                .collect(),
            ..FaultPlan::default()
        },
        ..VendorSpec::default()
    }
}

/// The `[connection.*]` tables of a `weir.toml` that polls the demo's vendors at this origin with the `rest`
/// connector. The token is expected in [`DEMO_TOKEN_VARIABLE`].
pub fn demo_config(origin: &str) -> String {
    format!(
        r#"[connection.shop]
connector = "rest"
auth = {{ bearer = {{ env = "{DEMO_TOKEN_VARIABLE}" }} }}

[connection.shop.config]
base_url = "{origin}/shop"
pacing = {{ min_interval = "500ms", max_interval = "3s", not_modified_is_free = true }}

[connection.shop.config.streams.orders]
path = "/v2/orders"
records = "/orders"
id = "/id"
updated_at = "/updated_at"
deleted = "/deleted"
required = ["/id", "/rev", "/updated_at"]
volatile = ["/views"]
order = "ascending"
window = {{ since = "updated_since" }}
paging = {{ style = "keyset", after_id = "after_id", after_time = "updated_since", has_more = "/has_more" }}
page_size = 100
page_size_param = "limit"
granularity = "1s"

[connection.shop.streams.orders]
freshness = "3s"
overlap = "15s"

[connection.desk]
connector = "rest"
auth = {{ bearer = {{ env = "{DEMO_TOKEN_VARIABLE}" }} }}

[connection.desk.config]
base_url = "{origin}/desk"
pacing = {{ min_interval = "500ms", max_interval = "3s", not_modified_is_free = true }}

[connection.desk.config.streams.tickets]
path = "/api/tickets"
id = "/id"
updated_at = "/updated_at"
deleted = "/deleted"
required = ["/id", "/rev", "/updated_at"]
volatile = ["/views"]
order = "descending"
window = {{ since = "updated_after" }}
paging = {{ style = "link" }}
page_size = 50
page_size_param = "per_page"

[connection.desk.streams.tickets]
freshness = "3s"
overlap = "15s"

[connection.wms]
connector = "rest"

[connection.wms.config]
base_url = "{origin}/wms"
pacing = {{ min_interval = "1s", max_interval = "4s", unpublished_limits = true, concurrency = 1 }}

[[connection.wms.config.errors]]
pointer = "/ok"
equals = false
class = "temporary"
code = "/error"

[connection.wms.config.streams.items]
path = "/api/v1/items"
records = "/items"
id = "/id"
updated_at = {{ pointer = "/updated_at", format = "epoch_ms" }}
required = ["/id", "/rev", "/updated_at"]
volatile = ["/views"]
count = "/count"
cursor = "snapshot"
order = "unordered"
paging = {{ style = "page", param = "page", short_page_ends = true }}
page_size = 50
page_size_param = "per_page"

[connection.wms.streams.items]
freshness = "4s"
"#
    )
}

/// A connection named `bulk` that reads a [`Bulk`] at this origin as its stream `records`.
pub fn bulk_config(origin: &str, bulk: &Bulk, page_size: u32) -> String {
    let paging = match bulk.paging() {
        BulkPaging::Keyset => {
            r#"{ style = "keyset", after_id = "after_id", after_time = "updated_since", has_more = "/has_more" }"#
        }
        BulkPaging::Token => r#"{ style = "token", param = "cursor", token = "/next_cursor" }"#,
    };
    format!(
        r#"[connection.bulk]
connector = "rest"

[connection.bulk.config]
base_url = "{origin}"

[connection.bulk.config.streams.records]
path = "{path}"
records = "/data"
id = "/id"
updated_at = "/updated_at"
order = "ascending"
window = {{ since = "updated_since" }}
paging = {paging}
page_size = {page_size}
page_size_param = "limit"
"#,
        path = bulk.path(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::judge;
    use crate::ledger::Ledger;
    use crate::oracle::{Flaw, Oracle};
    use crate::vendor::Vendor;

    const START: i64 = 1_930_384_800_000;

    #[test]
    fn a_right_poller_gets_all_of_the_demo() {
        for seed in [1, 2, 3] {
            let mut ledger = Ledger::default();
            let mut lines = String::new();
            for spec in demo_spec(seed) {
                let vendor = Vendor::new(spec.clone(), START).unwrap();
                let mut oracle = Oracle::new(&spec, DEMO_LATENESS_MS, Flaw::None);
                let mut now = START;
                while now < START + 60_000 {
                    if now > START + 35_000 {
                        vendor.freeze(now);
                    }
                    now = oracle.poll(&vendor, now, 100).0 + 700;
                }
                assert!(
                    oracle.whole > 10,
                    "{}: {} whole walks",
                    spec.name,
                    oracle.whole
                );
                lines.push_str(&oracle.lines);
                ledger = ledger.and(vendor.ledger(now));
            }
            let verdict = judge(&ledger, lines.as_bytes(), &demo_judge(5_000)).unwrap();
            assert!(verdict.is_clean(), "seed {seed}: {verdict:#?}");
            assert!(verdict.visible() > 500 && verdict.updates() > 50);
            let out_of_reach: u64 = verdict.units.values().map(|unit| unit.out_of_reach).sum();
            assert_eq!(out_of_reach, 0);
            assert!(ledger.total().faults > 10);
        }
    }

    #[test]
    fn the_configs_are_toml_and_name_the_vendors_paths() {
        let config: toml::Table = demo_config("http://127.0.0.1:4000").parse().unwrap();
        for spec in demo_spec(1) {
            let connection = &config["connection"][&spec.name]["config"];
            let base = connection["base_url"].as_str().unwrap();
            assert_eq!(base, format!("http://127.0.0.1:4000{}", spec.base));
            let collection = &spec.collections[0];
            let stream = &connection["streams"][&collection.name];
            assert_eq!(stream["path"].as_str(), Some(collection.path.as_str()));
        }
        for paging in [BulkPaging::Keyset, BulkPaging::Token] {
            let bulk = Bulk::new("/bulk", 1, paging);
            bulk_config("http://127.0.0.1:4000", &bulk, 1000)
                .parse::<toml::Table>()
                .unwrap();
        }
    }
}
