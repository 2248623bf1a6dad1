//! Every way of paging through a world that stands still, and the ways in which a listing ends.

use super::*;
use crate::answer::SimRequest;
use crate::spec::{
    Bound as Filtered, End, Envelope, Filter, IdKind, Order, PageSize, ResultCap, Total,
    VendorSpec, Write, WritesSpec,
};
use crate::time::TimeFormat;
use crate::vendor::Vendor;
use serde_json::Value;

/// Six orders, three of them with one stamp.
fn six() -> WritesSpec {
    let write = |record, stamp_ms| Write {
        record,
        stamp_ms: Some(stamp_ms),
        ..Write::default()
    };
    WritesSpec {
        script: vec![
            write(0, 1000),
            write(1, 2000),
            write(2, 3000),
            write(3, 3000),
            write(4, 3000),
            write(5, 4000),
        ],
        ..WritesSpec::default()
    }
}

fn six_orders(change: impl FnOnce(&mut CollectionSpec)) -> Vendor {
    let mut orders = CollectionSpec {
        writes: six(),
        page_size: PageSize::fixed(2),
        time_format: TimeFormat::EpochMs,
        filter: Filter {
            format: TimeFormat::EpochMs,
            ..Filter::default()
        },
        ..CollectionSpec::default()
    };
    change(&mut orders);
    let spec = VendorSpec {
        collections: vec![orders],
        ..VendorSpec::default()
    };
    Vendor::new(spec, 0).unwrap()
}

fn get(vendor: &Vendor, query: &str) -> (u16, Value, Option<String>) {
    let url = format!("http://api.example.test/orders?{query}");
    let answer = vendor.handle(10_000, &SimRequest::get(&url));
    let response = answer.response().unwrap().clone();
    let body = serde_json::from_slice(&response.body).unwrap();
    let link = response.header("link").map(str::to_owned);
    (response.status, body, link)
}

fn ids(body: &Value) -> Vec<u64> {
    let records = body.get("data").unwrap_or(body).as_array().unwrap();
    records
        .iter()
        .map(|record| record["id"].as_u64().unwrap())
        .collect()
}

#[test]
fn keyset_gets_all_six_in_three_full_pages() {
    let vendor = six_orders(|_| {});
    let (mut query, mut got, mut calls) = (String::new(), Vec::new(), 0);
    loop {
        let (_, body, _) = get(&vendor, &query);
        got.extend(ids(&body));
        calls += 1;
        let last = &body["data"].as_array().unwrap().last().unwrap().clone();
        query = format!(
            "updated_since={}&after_id={}",
            last["updated_at"], last["id"]
        );
        if body["has_more"] == false {
            break;
        }
    }
    assert_eq!((got, calls), (vec![1, 2, 3, 4, 5, 6], 3));
}

#[test]
fn a_bare_stamp_loses_a_tie_or_never_ends() {
    let exclusive = six_orders(|orders| orders.filter.since.inclusive = false);
    let (_, second, _) = get(&exclusive, "updated_since=2000");
    assert_eq!(ids(&second), [3, 4]);
    let (_, third, _) = get(&exclusive, "updated_since=3000");
    assert_eq!(ids(&third), [6]);

    let inclusive = six_orders(|_| {});
    let (_, second, _) = get(&inclusive, "updated_since=3000");
    assert_eq!(ids(&second), [3, 4]);
}

#[test]
fn bounds_include_and_exclude() {
    for (inclusive, first) in [(true, 2), (false, 3)] {
        let vendor = six_orders(|orders| {
            orders.page_size = PageSize::fixed(10);
            orders.filter.since.inclusive = inclusive;
            orders.filter.until = Filtered::new("updated_until", inclusive);
        });
        let (_, body, _) = get(&vendor, "updated_since=2000&updated_until=4000");
        assert_eq!(ids(&body)[0], first);
        assert_eq!(ids(&body).contains(&6), inclusive);
    }
}

#[test]
fn tokens_end_in_every_spelling() {
    for end in [
        End::Absent,
        End::Null,
        End::EmptyString,
        End::HasMoreFalse,
        End::EmptyPage,
    ] {
        for order in [Order::Ascending, Order::Descending, Order::Unordered] {
            let vendor = six_orders(|orders| {
                orders.order = order;
                orders.paging = Paging::Token {
                    param: "cursor".into(),
                    field: "paging.next.after".into(),
                    end,
                    ttl_ms: 0,
                };
            });
            let (mut query, mut got, mut last) = (String::new(), Vec::new(), Value::Null);
            for _ in 0..9 {
                let (_, body, _) = get(&vendor, &query);
                got.extend(ids(&body));
                let token = body.pointer("/paging/next/after").cloned();
                let done = match end {
                    End::HasMoreFalse => body["has_more"] == false,
                    End::EmptyPage => ids(&body).is_empty(),
                    _ => body["has_more"] == false,
                };
                last = token.clone().unwrap_or(Value::from("absent"));
                if done {
                    break;
                }
                query = format!("cursor={}", token.unwrap().as_str().unwrap());
            }
            match end {
                End::Absent => assert_eq!(last, "absent"),
                End::Null => assert_eq!(last, Value::Null),
                End::EmptyString | End::EmptyPage => assert_eq!(last, ""),
                End::HasMoreFalse => assert!(last.as_str().unwrap().len() > 10),
            }
            match order {
                Order::Ascending => assert_eq!(got, [1, 2, 3, 4, 5, 6]),
                Order::Descending => assert_eq!(got, [6, 5, 4, 3, 2, 1]),
                Order::Unordered => {
                    assert_ne!(got, [1, 2, 3, 4, 5, 6]);
                    got.sort_unstable();
                    assert_eq!(got, [1, 2, 3, 4, 5, 6]);
                }
            }
        }
    }
}

#[test]
fn links_carry_the_query_and_can_be_relative() {
    for relative in [false, true] {
        let vendor = six_orders(|orders| {
            orders.paging = Paging::Link { relative };
            orders.envelope = Envelope {
                records: String::new(),
                has_more: String::new(),
                ..Envelope::default()
            };
        });
        let (_, body, link) = get(&vendor, "state=open&updated_since=2000");
        assert_eq!(ids(&body), [2, 3]);
        let link = link.unwrap();
        let next = link.split("<").last().unwrap().split('>').next().unwrap();
        assert_eq!(
            next.starts_with("http://api.example.test/orders?"),
            !relative
        );
        assert!(next.contains("state=open&updated_since=2000&page_token="));
        let (_, body, _) = get(&vendor, next.split_once('?').unwrap().1);
        assert_eq!(ids(&body), [4, 5]);
    }
}

#[test]
fn a_size_is_capped_and_none_is_refused() {
    let vendor = six_orders(|orders| {
        orders.page_size = PageSize {
            param: "limit".into(),
            default: 2,
            max: 4,
        };
    });
    assert_eq!(ids(&get(&vendor, "limit=1000").1).len(), 4);
    assert_eq!(ids(&get(&vendor, "").1).len(), 2);
    assert_eq!(get(&vendor, "limit=0").0, 400);
    assert_eq!(get(&vendor, "limit=two").0, 400);
    assert_eq!(get(&vendor, "updated_since=yesterday").0, 400);
    assert_eq!(get(&vendor, "after_id=3").0, 400);
}

#[test]
fn a_result_cap_ends_a_listing_or_refuses() {
    for refuse in [false, true] {
        let vendor = six_orders(|orders| {
            orders.paging = Paging::Offset {
                param: "offset".into(),
            };
            orders.result_cap = Some(ResultCap { records: 3, refuse });
        });
        assert_eq!(ids(&get(&vendor, "offset=2").1), [3]);
        assert_eq!(get(&vendor, "offset=2").1["has_more"], refuse);
        let (status, body, _) = get(&vendor, "offset=4");
        if refuse {
            assert_eq!(status, 400);
        } else {
            assert_eq!((status, ids(&body)), (200, vec![]));
        }
    }
}

#[test]
fn a_total_counts_what_matches_and_can_be_wrong() {
    for wrong_by in [0, 2, -1] {
        let vendor = six_orders(|orders| {
            orders.envelope.total = Total {
                field: "meta.total".into(),
                wrong_by,
            };
        });
        let (_, body, _) = get(&vendor, "updated_since=3000");
        assert_eq!(body["meta"]["total"], 4 + wrong_by);
    }
}

#[test]
fn records_can_lie_deeper_with_fields_beside_them() {
    let vendor = six_orders(|orders| {
        orders.envelope.records = "data.children".into();
        orders.envelope.has_more = "data.more".into();
        orders.envelope.count = "meta.count".into();
        orders.ids = IdKind::Text;
    });
    let (_, body, _) = get(&vendor, "");
    assert_eq!(body["data"]["children"][1]["id"], "r_000000000002");
    assert_eq!(body["data"]["more"], true);
    assert_eq!(body["meta"]["count"], 2);
}

#[test]
fn page_numbers_say_where_the_next_one_is() {
    let vendor = six_orders(|orders| {
        orders.paging = Paging::Page {
            param: "page".into(),
            first: 1,
        };
    });
    assert_eq!(ids(&get(&vendor, "page=2").1), [3, 4]);
    assert_eq!(ids(&get(&vendor, "page=9").1), Vec::<u64>::new());
    assert_eq!(get(&vendor, "page=0").0, 400);
    for (page, next) in [(1, "2"), (3, "")] {
        let url = format!("/orders?page={page}");
        let answer = vendor.handle(10_000, &SimRequest::get(&url));
        assert_eq!(answer.response().unwrap().header("x-next-page"), Some(next));
    }
}

#[test]
fn a_token_that_was_never_given_is_refused() {
    let vendor = six_orders(|orders| {
        orders.paging = Paging::Token {
            param: "cursor".into(),
            field: "next".into(),
            end: End::Null,
            ttl_ms: 0,
        };
    });
    let (_, body, _) = get(&vendor, "");
    let token = body["next"].as_str().unwrap();
    assert_eq!(get(&vendor, &format!("cursor={token}")).0, 200);
    assert_eq!(get(&vendor, &format!("cursor=A{token}")).0, 400);
}

#[test]
fn empty_and_short_pages_lose_nothing() {
    let vendor = six_orders(|orders| {
        orders.paging = Paging::Token {
            param: "cursor".into(),
            field: "next".into(),
            end: End::Null,
            ttl_ms: 0,
        };
        orders.empty_pages = 1.0;
        orders.short_pages = 1.0;
    });
    let (mut query, mut got, mut empty) = (String::new(), Vec::new(), 0);
    loop {
        let (_, body, _) = get(&vendor, &query);
        empty += u64::from(ids(&body).is_empty());
        got.extend(ids(&body));
        match body["next"].as_str() {
            Some(token) => query = format!("cursor={token}"),
            None => break,
        }
    }
    assert_eq!(got, [1, 2, 3, 4, 5, 6]);
    assert!(empty >= 3, "{empty} empty pages");
}

#[test]
fn behind_the_last_id_newest_first_and_the_other_words_for_the_end() {
    let vendor = six_orders(|orders| {
        orders.order = Order::Descending;
        orders.paging = Paging::AfterId {
            param: "starting_after".into(),
        };
        orders.envelope.last = "end_of_stream".into();
        orders.envelope.pages = "page_count".into();
        orders.envelope.with = [("ok".to_owned(), true.into())].into_iter().collect();
    });
    let (mut query, mut got, mut ends) = (String::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        let (_, body, _) = get(&vendor, &query);
        assert_eq!(
            (&body["ok"], &body["page_count"]),
            (&true.into(), &3.into())
        );
        ends.push(body["end_of_stream"] == true);
        got.extend(ids(&body));
        query = format!("starting_after={}", got.last().unwrap());
    }
    assert_eq!(got, [6, 5, 4, 3, 2, 1]);
    assert_eq!(ends, [false, false, true]);
    let (status, _, _) = get(&vendor, "starting_after=99");
    assert_eq!(status, 400);
}
