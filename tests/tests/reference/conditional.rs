//! What asking on condition saves, and when a date is too coarse to be asked with.

use serde_json::{Value, json};
use weir_tests::answer::{SimAnswer, SimRequest};
use weir_tests::spec::{CollectionSpec, EtagKind, Filter, Paging, Validators, WritesSpec};

use super::shop::{Wire, handed_over, orders, vendor, written};
use super::{Demo, HOST};
use crate::support::NOW;

const POLLS: u64 = 60;

/// Listed whole each time.
fn listed(writes: WritesSpec, validators: Validators) -> CollectionSpec {
    CollectionSpec {
        writes,
        validators,
        filter: Filter::none(),
        paging: Paging::None,
        ..orders()
    }
}

fn sums(wire: &Wire) -> Value {
    let calls = wire.calls();
    let unchanged = calls.iter().filter(|call| call.status == 304).count();
    json!({
        "calls": calls.len(),
        "units": wire.vendor.counts().quota_used,
        "not_modified": unchanged,
        "bodies_parsed": calls.len() - unchanged,
        "bytes": calls.iter().map(|call| call.bytes).sum::<usize>(),
    })
}

pub(crate) async fn sixty_polls() -> Demo {
    let tagged = Validators {
        etag: EtagKind::Strong,
        last_modified: false,
    };
    // An answer is a little larger than the reference's 648 bytes.
    let writes = WritesSpec {
        initial: 2,
        ..WritesSpec::default()
    };
    let vendor = vendor(listed(writes, tagged), 5, NOW);
    let mut sides = Vec::new();
    for conditional in [false, true] {
        let stream = format!("conditional = {conditional}");
        let (rig, wire) = vendor.polled(&stream, "interval = \"10s\"").await;
        rig.poll("shop/orders").await;
        rig.run_for((POLLS - 1) * 10_000).await;
        sides.push(sums(&wire));
    }
    let (without, with) = (sides[0].clone(), sides[1].clone());
    Demo {
        key: "conditional",
        title: "60 polls of a collection that does not change",
        how: HOST,
        holds: with["calls"] == POLLS
            && with["units"] == 1
            && with["not_modified"] == POLLS - 1
            && with["bodies_parsed"] == 1
            && with["bytes"].as_u64() <= Some(13_038)
            && without["units"] == POLLS
            && without["bytes"].as_u64() >= Some(38_880),
        theirs: json!({
            "without": { "calls": 60, "units": 60, "bytes": 38_880 },
            "with": { "calls": 60, "units": 1, "not_modified": 59, "bodies_parsed": 1, "bytes": 13_038 },
        }),
        ours: json!({ "without": without, "with": with }),
    }
}

/// An order is written twice in one second; the list is read in between, and again later.
pub(crate) async fn granularity() -> Demo {
    let dated = Validators {
        etag: EtagKind::None,
        last_modified: true,
    };
    let start = NOW - 60_000;
    let mut writes = written([200, 900], start);
    for write in &mut writes.script {
        write.record = 0;
    }
    let vendor = vendor(listed(writes, dated), 0, start);
    let (rig, wire) = vendor.polled("", "interval = \"10s\"").await;
    rig.clock.advance(500);
    for _ in 0..4 {
        rig.poll("shop/orders").await;
        rig.settle().await;
        rig.clock.advance(10_000);
    }
    let ours = json!({
        "versions_seen": handed_over(&rig).len(),
        "not_modified": wire.calls().iter().filter(|call| call.status == 304).count(),
    });

    // A client that sends every date back.
    let (trusting, mut seen, mut unchanged) = (vendor.build(), 0, 0);
    let mut date: Option<String> = None;
    for poll in 0..4 {
        let mut request = SimRequest::get("https://shop.example.test/shop/orders");
        if let Some(date) = &date {
            request = request.with("if-modified-since", date);
        }
        let answer = trusting.handle(NOW + 500 + poll * 10_000, &request);
        let SimAnswer::Response(response) = answer else {
            panic!("this vendor has no faults")
        };
        if response.status == 304 {
            unchanged += 1;
        } else {
            seen += 1;
            date = response.header("last-modified").map(str::to_owned);
        }
    }
    Demo {
        key: "validator_granularity",
        title: "written twice in one second and read in between, with only Last-Modified to ask by: versions seen of 2",
        how: HOST,
        holds: ours["versions_seen"] == 2 && ours["not_modified"] == 2 && seen == 1,
        theirs: json!({
            "rule": "a date is trusted when it is a second older than the answer's own",
            "by_hand": { "versions_seen": seen, "not_modified": unchanged },
        }),
        ours,
    }
}
