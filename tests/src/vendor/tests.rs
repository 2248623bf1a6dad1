//! A vendor as a poller meets it.

use super::*;
use crate::answer::SimResponse;
use crate::judge::{JudgeOptions, judge};
use crate::ledger::Outcome;
use crate::oracle::{Flaw, Oracle, is_stable};
use crate::spec::{
    CollectionSpec, Deletion, End, EtagKind, FaultKind, FaultPlan, Filter, IdKind, LimitSpec,
    Order, Outage, RandomFault, Validators, WaitForm, When, WritesSpec,
};
use crate::time::TimeFormat;
use proptest::prelude::*;

const START: i64 = 1_930_384_800_000;
const OVERLAP: i64 = 12_000;

fn vendor(change: impl FnOnce(&mut VendorSpec)) -> Vendor {
    let mut spec = VendorSpec::default();
    spec.collections[0].writes.initial = 5;
    change(&mut spec);
    Vendor::new(spec, START).unwrap()
}

fn get(vendor: &Vendor, now: i64, headers: &[(&str, &str)]) -> SimAnswer {
    let request = headers.iter().fold(
        SimRequest::get("http://h/orders"),
        |request, (name, value)| request.with(name, value),
    );
    vendor.handle(START + now, &request)
}

fn ok(vendor: &Vendor, now: i64, headers: &[(&str, &str)]) -> SimResponse {
    get(vendor, now, headers).response().unwrap().clone()
}

/// Polls every few seconds for five minutes, freezes, polls until all lag is over.
fn run(spec: &VendorSpec, flaw: Flaw) -> (Vendor, Oracle) {
    let vendor = Vendor::new(spec.clone(), START).unwrap();
    let mut oracle = Oracle::new(spec, OVERLAP, flaw);
    let mut now = START;
    while now < START + 300_000 {
        now = oracle.poll(&vendor, now, 150).0 + 2_000;
    }
    vendor.freeze(now);
    now += 15_000;
    let until = now + 60_000;
    let mut whole = 0;
    while now < until && whole < 2 {
        let (ended, is_whole) = oracle.poll(&vendor, now, 50);
        whole += u64::from(is_whole);
        now = ended + 1_000;
    }
    (vendor, oracle)
}

fn verdict(vendor: &Vendor, oracle: &Oracle) -> crate::judge::Verdict {
    let options = JudgeOptions {
        overlap_ms: OVERLAP,
        ..JudgeOptions::default()
    };
    let ledger = vendor.ledger(START + 10_000_000);
    judge(&ledger, oracle.lines.as_bytes(), &options).unwrap()
}

fn pagings() -> Vec<Paging> {
    let mut pagings = vec![
        Paging::default(),
        Paging::Page {
            param: "page".into(),
            first: 0,
        },
        Paging::Offset {
            param: "offset".into(),
        },
        Paging::Link { relative: true },
        Paging::NextUrl {
            field: "next".into(),
            relative: false,
            end: End::Null,
        },
        Paging::Feed {
            param: "sync".into(),
            field: "sync".into(),
            ttl_ms: 0,
        },
    ];
    for end in [
        End::Absent,
        End::EmptyString,
        End::HasMoreFalse,
        End::EmptyPage,
    ] {
        pagings.push(Paging::Token {
            param: "cursor".into(),
            field: "meta.cursor".into(),
            end,
            ttl_ms: 0,
        });
    }
    pagings
}

fn lively(paging: Paging, order: Order, seed: u64) -> VendorSpec {
    let by_number = matches!(paging, Paging::Page { .. } | Paging::Offset { .. });
    VendorSpec {
        seed,
        collections: vec![CollectionSpec {
            writes: WritesSpec::lively(70, 1.0),
            ids: if seed.is_multiple_of(2) {
                IdKind::Text
            } else {
                IdKind::Number
            },
            granularity_ms: if seed.is_multiple_of(3) { 1000 } else { 1 },
            deletion: if seed.is_multiple_of(5) {
                Deletion::Vanish
            } else {
                Deletion::Tombstone
            },
            order: if by_number { Order::Unordered } else { order },
            filter: if by_number {
                Filter::none()
            } else {
                Filter::default()
            },
            time_format: if seed.is_multiple_of(7) {
                TimeFormat::EpochMs
            } else {
                TimeFormat::Rfc3339Ms
            },
            volatile_every_ms: 5_000,
            empty_pages: 0.2,
            short_pages: 0.2,
            paging,
            ..CollectionSpec::default()
        }],
        faults: FaultPlan {
            random: vec![
                RandomFault::new(0.03, FaultKind::status(503)),
                RandomFault::new(0.02, FaultKind::Truncated),
                RandomFault::new(0.02, FaultKind::Reset),
                RandomFault::new(
                    0.02,
                    FaultKind::ErrorIn200 {
                        body: String::new(),
                    },
                ),
                RandomFault::new(0.02, FaultKind::MissingFields),
            ],
            ..FaultPlan::default()
        },
        ..VendorSpec::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Whoever pages right and keeps an overlap gets every record once, whatever the style.
    #[test]
    fn a_right_poller_loses_nothing(seed in any::<u64>(), style in 0usize..10, down in any::<bool>()) {
        let paging = pagings()[style].clone();
        let keyset = matches!(paging, Paging::Keyset { .. });
        let order = if down && !keyset { Order::Descending } else { Order::Ascending };
        let spec = lively(paging, order, seed);
        prop_assert!(is_stable(&spec.collections[0]));
        let (vendor, oracle) = run(&spec, Flaw::None);
        let verdict = verdict(&vendor, &oracle);
        prop_assert!(verdict.is_clean(), "{verdict:#?}");
        prop_assert!(verdict.visible() > 100);
        prop_assert_eq!(verdict.visible(), verdict.delivered());
        prop_assert!(verdict.updates() > 10);
    }

    #[test]
    fn the_same_calls_get_the_same_answers(seed in any::<u64>(), style in 0usize..10) {
        let spec = lively(pagings()[style].clone(), Order::Ascending, seed);
        let (first, oracle) = run(&spec, Flaw::None);
        let (second, again) = run(&spec, Flaw::None);
        prop_assert_eq!(oracle.lines, again.lines);
        prop_assert_eq!(first.calls(), second.calls());
    }
}

/// A checker that finds nothing proves nothing: each broken rule is found in at least one of a few seeds.
#[test]
fn every_broken_rule_is_found() {
    for (flaw, order) in [
        (Flaw::BareStamp, Order::Ascending),
        (Flaw::NoOverlap, Order::Ascending),
        (Flaw::EarlyWatermark, Order::Descending),
        (Flaw::DedupById, Order::Ascending),
        (Flaw::Amnesia, Order::Ascending),
    ] {
        let paging = if order == Order::Ascending {
            Paging::default()
        } else {
            Paging::Link { relative: false }
        };
        let found = (1..=10).any(|seed| {
            let (vendor, oracle) = run(&lively(paging.clone(), order, seed), flaw);
            let verdict = verdict(&vendor, &oracle);
            if flaw == Flaw::Amnesia {
                verdict.duplicated() > 0
            } else {
                verdict.lost() > 0
            }
        });
        assert!(found, "{flaw:?} was not found");
    }
}

#[test]
fn an_unchanged_page_is_304_and_free_if_the_vendor_says_so() {
    for free in [true, false] {
        let vendor = vendor(|spec| {
            spec.free_not_modified = free;
            spec.limits = vec![LimitSpec::default()];
            spec.collections[0].validators.etag = EtagKind::Weak;
        });
        let first = ok(&vendor, 0, &[]);
        let tag = first.header("etag").unwrap().to_owned();
        assert!(tag.starts_with("W/\""));
        let second = ok(&vendor, 1000, &[("If-None-Match", &tag)]);
        assert_eq!((second.status, second.body.len()), (304, 0));
        assert_eq!(second.header("etag"), Some(tag.as_str()));
        // Weak comparison: the same tag without its prefix.
        let strong = tag.trim_start_matches("W/");
        assert_eq!(ok(&vendor, 1000, &[("If-None-Match", strong)]).status, 304);
        let third = ok(&vendor, 2000, &[("If-None-Match", "\"other\"")]);
        assert_eq!(third.status, 200);
        let remaining = third.header("x-ratelimit-remaining").unwrap();
        assert_eq!(remaining, if free { "58" } else { "56" });
        assert_eq!(vendor.counts().quota_used, if free { 2 } else { 4 });
    }
}

#[test]
fn a_date_alone_misses_a_change_within_its_second() {
    let vendor = vendor(|spec| {
        spec.collections[0].validators = Validators {
            etag: EtagKind::None,
            last_modified: true,
        };
    });
    let write = Write {
        record: 90,
        ..Write::default()
    };
    vendor.write(START + 100, "orders", &write);
    let first = ok(&vendor, 200, &[]);
    let date = first.header("last-modified").unwrap().to_owned();
    assert_eq!(date, "Tue, 04 Mar 2031 10:00:00 GMT");
    vendor.write(START + 700, "orders", &write);
    assert_eq!(
        ok(&vendor, 800, &[("If-Modified-Since", &date)]).status,
        304
    );
    vendor.write(START + 1700, "orders", &write);
    assert_eq!(
        ok(&vendor, 1800, &[("If-Modified-Since", &date)]).status,
        200
    );
}

#[test]
fn a_spent_quota_refuses_with_a_wait_and_notices_who_comes_early() {
    let vendor = vendor(|spec| {
        spec.limits = vec![LimitSpec {
            limit: 2,
            window_ms: 10_000,
            ..LimitSpec::default()
        }];
    });
    ok(&vendor, 0, &[]);
    ok(&vendor, 100, &[]);
    let refused = ok(&vendor, 200, &[]);
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("10"));
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    // Someone else's key is someone else's quota.
    assert_eq!(
        ok(&vendor, 300, &[("Authorization", "Bearer other")]).status,
        200
    );
    ok(&vendor, 5_000, &[]);
    ok(&vendor, 15_100, &[]);
    let early: Vec<bool> = vendor.calls().iter().map(|call| call.early).collect();
    assert_eq!(early, [false, false, false, false, true, false]);
    let counts = vendor.counts();
    assert_eq!(
        (
            counts.calls,
            counts.over_quota,
            counts.early,
            counts.quota_used
        ),
        (6, 2, 1, 4)
    );
}

#[test]
fn the_script_is_played_before_chance_and_outages_before_both() {
    let status = |status| FaultKind::status(status);
    let vendor = vendor(|spec| {
        spec.faults = FaultPlan {
            script: vec![ScriptedFault {
                when: When::Calls { from: 1, to: 2 },
                collection: Some("orders".into()),
                fault: FaultKind::too_many(WaitForm::BodyMs, 1500),
            }],
            random: vec![RandomFault::new(1.0, status(500))],
            outages: vec![Outage {
                from_ms: 1000,
                until_ms: 2000,
                fault: status(502),
            }],
            lose_tokens_at_ms: Vec::new(),
        };
    });
    let first = ok(&vendor, 0, &[]);
    assert_eq!(first.status, 429);
    let body: serde_json::Value = serde_json::from_slice(&first.body).unwrap();
    assert_eq!(body["retry_after_ms"], 1500);
    assert_eq!(ok(&vendor, 1500, &[]).status, 502);
    assert_eq!(ok(&vendor, 3000, &[]).status, 429);
    assert_eq!(ok(&vendor, 3001, &[]).status, 500);
    vendor.inject(ScriptedFault {
        when: When::Between {
            from_ms: 4000,
            until_ms: 5000,
        },
        collection: None,
        fault: FaultKind::Hang,
    });
    assert_eq!(get(&vendor, 4500, &[]), SimAnswer::Hang);
    let outcomes: Vec<Outcome> = vendor
        .calls()
        .into_iter()
        .map(|call| call.outcome)
        .collect();
    assert_eq!(outcomes[4], Outcome::Fault("hang".into()));
}

fn faulty(fault: FaultKind) -> SimAnswer {
    let vendor = vendor(|spec| {
        spec.collections[0].envelope.count = "count".into();
        spec.faults.random = vec![RandomFault::new(1.0, fault)];
    });
    get(&vendor, 0, &[("Accept-Encoding", "gzip")])
}

#[test]
fn bodies_are_spoiled_in_the_way_that_was_asked_for() {
    let whole = |fault| faulty(fault).response().unwrap().clone();
    let json = |response: &SimResponse| serde_json::from_slice::<serde_json::Value>(&response.body);

    let truncated = whole(FaultKind::Truncated);
    assert!(truncated.status == 200 && truncated.body.len() > 100 && json(&truncated).is_err());
    let cut = whole(FaultKind::CutGzip);
    assert_eq!(cut.header("content-encoding"), Some("gzip"));
    assert!(cut.decoded().is_err());
    let stampless = json(&whole(FaultKind::MissingFields)).unwrap();
    assert!(stampless["data"][0].get("updated_at").is_none());
    let missing = json(&whole(FaultKind::MissingRecord)).unwrap();
    assert_eq!(missing["count"], 5);
    assert_eq!(missing["data"].as_array().unwrap().len(), 4);
    assert!(whole(FaultKind::Slow { ms: 5000 }).latency_ms >= 5000);
    assert_eq!(whole(FaultKind::Empty200).body.len(), 0);
    assert!(
        whole(FaultKind::Html200)
            .header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    let headers = vec![(
        "date".to_owned(),
        "Fri, 07 Oct 2022 22:43:18 UTC".to_owned(),
    )];
    let odd = whole(FaultKind::Headers { headers });
    assert_eq!(odd.header("date"), Some("Fri, 07 Oct 2022 22:43:18 UTC"));
    assert_eq!(
        odd.headers
            .iter()
            .filter(|(name, _)| name == "date")
            .count(),
        1
    );
    let moved = whole(FaultKind::Redirect {
        status: 302,
        to: String::new(),
    });
    assert_eq!(moved.header("location"), Some("http://h/orders?"));
    assert!(matches!(faulty(FaultKind::CutShort), SimAnswer::Broken { sent, .. } if sent > 100));
    assert!(matches!(faulty(FaultKind::Reset), SimAnswer::Reset { .. }));
    assert!(
        matches!(faulty(FaultKind::Huge { bytes: 5 << 30 }), SimAnswer::Huge { bytes, .. } if bytes == 5 << 30)
    );
}

#[test]
fn compressed_answers_are_the_same_and_their_tag_still_matches() {
    let vendor = vendor(|spec| {
        spec.gzip = true;
        spec.collections[0].validators.etag = EtagKind::Strong;
    });
    let plain = ok(&vendor, 0, &[]);
    let packed = ok(&vendor, 0, &[("Accept-Encoding", "gzip, br")]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.decoded().unwrap(), plain.body);
    let tag = packed.header("etag").unwrap().to_owned();
    assert!(tag.ends_with("-gzip\""));
    assert_eq!(ok(&vendor, 0, &[("If-None-Match", &tag)]).status, 304);
}

#[test]
fn who_may_not_call_is_told_so() {
    let vendor = vendor(|spec| spec.tokens = vec!["secret".into()]);
    assert_eq!(ok(&vendor, 0, &[]).status, 401);
    assert_eq!(
        ok(&vendor, 0, &[("authorization", "Bearer wrong")]).status,
        401
    );
    assert_eq!(
        ok(&vendor, 0, &[("authorization", "Bearer secret")]).status,
        200
    );
    let other = vendor.handle(START, &SimRequest::get("/elsewhere"));
    assert_eq!(other.response().unwrap().status, 404);
    let post = SimRequest {
        method: "POST".into(),
        ..SimRequest::get("/orders").with("authorization", "Bearer secret")
    };
    assert_eq!(vendor.handle(START, &post).response().unwrap().status, 405);
}

#[test]
fn feeds_go_on_where_they_were_and_lose_their_place() {
    let vendor = vendor(|spec| {
        spec.collections[0].paging = Paging::Feed {
            param: "sync".into(),
            field: "sync".into(),
            ttl_ms: 60_000,
        };
        spec.faults.lose_tokens_at_ms = vec![30_000];
    });
    let ask = |now: i64, token: &str| {
        let request = SimRequest::get(&format!("/orders?sync={token}"));
        let response = vendor
            .handle(START + now, &request)
            .response()
            .unwrap()
            .clone();
        let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
        (response.status, body)
    };
    let (_, first) = ask(0, "");
    assert_eq!(first["data"].as_array().unwrap().len(), 5);
    let token = first["sync"].as_str().unwrap();
    let (_, second) = ask(1000, token);
    assert_eq!(second["data"].as_array().unwrap().len(), 0);
    vendor.write(
        START + 2000,
        "orders",
        &Write {
            record: 2,
            ..Write::default()
        },
    );
    let (_, third) = ask(3000, second["sync"].as_str().unwrap());
    assert_eq!(third["data"][0]["id"], 3);
    assert_eq!(third["data"][0]["rev"], 2);
    assert_eq!(ask(31_000, third["sync"].as_str().unwrap()).0, 410);
    let (_, anew) = ask(31_000, "");
    let token = anew["sync"].as_str().unwrap();
    assert_eq!(ask(90_000, token).0, 200);
    assert_eq!(ask(91_001, token).0, 410);
}

#[test]
fn a_busy_vendor_gets_slow_and_gives_in_without_a_header() {
    let vendor = vendor(|spec| {
        spec.latency.slower_by_ms = 100;
        spec.latency.easy_per_second = 1.0;
        spec.latency.give_in_per_second = 4.0;
    });
    let calm = ok(&vendor, 0, &[]).latency_ms;
    let last = (0..60)
        .map(|call| ok(&vendor, 60_000 + call, &[]))
        .last()
        .unwrap();
    assert_eq!(last.status, 503);
    assert!(last.latency_ms > calm + 300);
    assert!(last.header("retry-after").is_none());
    assert!(vendor.counts().overlapping > 50);
}

#[test]
fn a_skewed_vendor_dates_by_its_own_clock() {
    let vendor = vendor(|spec| {
        spec.date_skew_ms = -7_000;
        spec.limits = vec![LimitSpec {
            limit: 1,
            wait: WaitForm::HttpDate,
            window_ms: 10_000,
            ..LimitSpec::default()
        }];
    });
    assert_eq!(
        ok(&vendor, 8_000, &[]).header("date"),
        Some("Tue, 04 Mar 2031 10:00:01 GMT")
    );
    let refused = ok(&vendor, 8_500, &[]);
    assert_eq!(
        refused.header("retry-after"),
        Some("Tue, 04 Mar 2031 10:00:03 GMT")
    );
    assert_eq!(refused.header("x-ratelimit-reset"), Some("1930384803"));
}

#[test]
fn a_window_that_is_too_wide_is_answered_as_if_it_were_empty() {
    let mut spec = VendorSpec::default();
    let collection = &mut spec.collections[0];
    collection.writes.initial = 30;
    collection.filter.widest_ms = 3_600_000;
    let vendor = Vendor::new(spec, START).unwrap();
    let records = |since: i64| {
        let stamp = |at| crate::time::TimeFormat::Rfc3339Ms.write(at);
        let url = format!(
            "/orders?updated_since={}&updated_until={}",
            stamp(since),
            stamp(START)
        );
        vendor.serve(START, &SimRequest::get(&url)).call.records
    };
    assert_eq!(records(START - 3_600_000), 20);
    assert_eq!(records(START - 3_600_001), 0);
}

#[test]
fn flipping_content_takes_turns() {
    let spec = CollectionSpec {
        flips: true,
        ..CollectionSpec::default()
    };
    let vendor = Vendor::new(
        VendorSpec {
            collections: vec![spec],
            ..VendorSpec::default()
        },
        START,
    )
    .unwrap();
    for at in 1..=3 {
        vendor.write(START + at, "orders", &Write::default());
    }
    let versions = vendor.versions_from(START + 3, 0, 0);
    let renderer = vendor.renderer(0).unwrap();
    let title = |index: usize| {
        let text = renderer.render(&versions[index]);
        text.head[text.head.find("title").unwrap()..].to_owned()
    };
    assert_eq!(title(0), title(2));
    assert_ne!(title(0), title(1));
}
