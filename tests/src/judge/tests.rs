//! The judge, tried with planted faults: each must be found, and nothing else.

use super::*;
use crate::spec::{CollectionSpec, VendorSpec, Write, WritesSpec};
use crate::vendor::Vendor;

/// Three records; the second is edited at 5 s and deleted at 20 s, the third has a lag of 300 s.
fn ledger() -> Ledger {
    let write = |at_ms, record, op, lag_ms| Write {
        at_ms,
        record,
        op,
        lag_ms,
        ..Write::default()
    };
    use crate::spec::Op::{Delete, Put};
    let spec = VendorSpec {
        collections: vec![CollectionSpec {
            writes: WritesSpec {
                script: vec![
                    write(1_000, 0, Put, 0),
                    write(1_000, 1, Put, 0),
                    write(5_000, 1, Put, 0),
                    write(10_000, 2, Put, 300_000),
                    write(20_000, 1, Delete, 0),
                ],
                ..WritesSpec::default()
            },
            ..CollectionSpec::default()
        }],
        ..VendorSpec::default()
    };
    let vendor = Vendor::new(spec, 0).unwrap();
    vendor.handle(0, &crate::answer::SimRequest::get("/orders"));
    vendor.ledger(1_000_000)
}

fn line(ledger: &Ledger, id: u64, version: u32, revision: u64, op: &str) -> String {
    let history = &ledger.histories[0];
    let version = history
        .versions
        .iter()
        .find(|have| have.record == id - 1 && have.revision == version)
        .unwrap();
    let text = history.renderer.render(version);
    format!(
        "{{\"connection\":\"acme\",\"stream\":\"orders\",\"partition\":null,\"id\":\"{id}\",\"revision\":{revision},\
         \"op\":\"{op}\",\"updated_at\":\"x\",\"seen_at\":\"y\",\"key\":\"acme/orders/{id}/{revision}\",\
         \"data\":{}5{}}}\n",
        text.head, text.tail
    )
}

/// All that can be delivered, in order.
fn whole(ledger: &Ledger) -> Vec<String> {
    vec![
        line(ledger, 1, 1, 1, "insert"),
        line(ledger, 2, 1, 1, "insert"),
        line(ledger, 2, 2, 2, "update"),
        line(ledger, 2, 3, 3, "delete"),
        line(ledger, 3, 1, 1, "insert"),
    ]
}

fn judged(ledger: &Ledger, lines: &[String], options: &JudgeOptions) -> Tally {
    let verdict = judge(ledger, lines.concat().as_bytes(), options).unwrap();
    verdict.units["acme/orders"].clone()
}

fn options() -> JudgeOptions {
    JudgeOptions {
        overlap_ms: 500_000,
        ..JudgeOptions::default()
    }
}

#[test]
fn a_whole_delivery_is_clean() {
    let ledger = ledger();
    let tally = judged(&ledger, &whole(&ledger), &options());
    assert_eq!(
        (tally.visible, tally.delivered, tally.lines, tally.updates),
        (3, 3, 5, 1)
    );
    assert!(tally.lost.is_empty() && tally.duplicated.is_empty());
    assert!(tally.wrong.is_empty() && tally.out_of_order.is_empty());
}

#[test]
fn a_record_that_never_came_is_lost() {
    let ledger = ledger();
    let lines = whole(&ledger);
    let tally = judged(&ledger, &lines[1..], &options());
    assert_eq!(tally.lost.len(), 1);
    assert_eq!(
        (tally.lost[0].id.as_str(), tally.lost[0].delivered_revision),
        ("1", None)
    );
    assert_eq!((tally.visible, tally.delivered), (3, 2));
}

#[test]
fn a_record_whose_last_change_never_came_is_lost() {
    let ledger = ledger();
    let mut lines = whole(&ledger);
    lines.remove(3);
    let tally = judged(&ledger, &lines, &options());
    assert_eq!(tally.lost.len(), 1);
    assert!(tally.lost[0].deleted);
    assert_eq!(tally.lost[0].delivered_revision, Some(2));
}

#[test]
fn what_was_overwritten_counts_only_if_it_stayed_long_enough() {
    let ledger = ledger();
    let mut lines = whole(&ledger);
    // The edit stayed for 15 s.
    lines.remove(2);
    lines[2] = line(&ledger, 2, 3, 2, "delete");
    assert!(judged(&ledger, &lines, &options()).lost.is_empty());
    let dwell = |dwell_ms| JudgeOptions {
        dwell_ms: Some(dwell_ms),
        ..options()
    };
    assert_eq!(judged(&ledger, &lines, &dwell(15_000)).lost.len(), 1);
    assert!(judged(&ledger, &lines, &dwell(15_001)).lost.is_empty());
}

#[test]
fn a_record_that_came_back_and_went_again_unseen_is_gone_as_before() {
    use crate::spec::Op::{Delete, Put};
    let script = [(1_000, Put), (5_000, Delete), (9_000, Put), (9_500, Delete)];
    let script = script.map(|(at_ms, op)| Write {
        at_ms,
        op,
        ..Write::default()
    });
    let spec = VendorSpec {
        collections: vec![CollectionSpec {
            writes: WritesSpec {
                script: script.to_vec(),
                ..WritesSpec::default()
            },
            ..CollectionSpec::default()
        }],
        ..VendorSpec::default()
    };
    let vendor = Vendor::new(spec, 0).unwrap();
    vendor.handle(0, &crate::answer::SimRequest::get("/orders"));
    let ledger = vendor.ledger(1_000_000);
    let inserted = line(&ledger, 1, 1, 1, "insert");
    let gone = inserted.clone() + &line(&ledger, 1, 2, 2, "delete");
    let lost = |lines: &str| {
        let verdict = judge(&ledger, lines.as_bytes(), &JudgeOptions::default());
        verdict.unwrap().lost()
    };
    assert_eq!(lost(&gone), 0);
    assert_eq!(
        lost(&inserted),
        1,
        "it is still there for whoever reads this"
    );
}

#[test]
fn of_a_record_that_nobody_saw_the_deletion_need_not_come() {
    let ledger = ledger();
    let lines = [
        line(&ledger, 1, 1, 1, "insert"),
        line(&ledger, 3, 1, 1, "insert"),
    ];
    let tally = judged(&ledger, &lines, &options());
    assert!(tally.lost.is_empty());
    assert_eq!(tally.visible, 2);
}

#[test]
fn what_lies_beyond_the_overlap_is_not_lost_but_said() {
    let ledger = ledger();
    let lines = &whole(&ledger)[..4];
    assert_eq!(judged(&ledger, lines, &options()).lost.len(), 1);
    for (overlap_ms, lost) in [(299_999, 0), (300_000, 1)] {
        let options = JudgeOptions {
            overlap_ms,
            ..options()
        };
        let tally = judged(&ledger, lines, &options);
        assert_eq!(
            (tally.lost.len() as u64, tally.out_of_reach),
            (lost, 1 - lost)
        );
    }
}

#[test]
fn what_became_visible_at_the_very_end_is_not_judged() {
    let ledger = ledger();
    let lines = &whole(&ledger)[..4];
    let at = |end, grace_ms| JudgeOptions {
        end: Some(end),
        grace_ms,
        ..options()
    };
    assert!(judged(&ledger, lines, &at(309_999, 0)).lost.is_empty());
    assert_eq!(judged(&ledger, lines, &at(310_000, 0)).lost.len(), 1);
    let fresh = judged(&ledger, lines, &at(315_000, 10_000));
    assert_eq!((fresh.lost.len(), fresh.too_fresh), (0, 1));
}

#[test]
fn a_key_that_comes_twice_is_a_duplicate_unless_repeats_are_allowed() {
    let ledger = ledger();
    let mut lines = whole(&ledger);
    lines.push(lines[0].clone());
    let tally = judged(&ledger, &lines, &options());
    assert_eq!(tally.duplicated.len(), 1);
    assert_eq!(tally.duplicated[0].line, 6);
    assert!(tally.wrong.is_empty() && tally.out_of_order.is_empty());
    let lenient = JudgeOptions {
        repeats_allowed: true,
        ..options()
    };
    let verdict = judge(&ledger, lines.concat().as_bytes(), &lenient).unwrap();
    assert_eq!((verdict.duplicated(), verdict.repeats), (0, 1));
    assert!(verdict.is_clean());
}

#[test]
fn one_content_under_two_keys_is_a_duplicate_even_if_repeats_are_allowed() {
    let ledger = ledger();
    let mut lines = whole(&ledger);
    lines.push(line(&ledger, 1, 1, 2, "update"));
    for repeats_allowed in [false, true] {
        let options = JudgeOptions {
            repeats_allowed,
            ..options()
        };
        assert_eq!(judged(&ledger, &lines, &options).duplicated.len(), 1);
    }
}

#[test]
fn a_change_of_the_volatile_field_alone_is_a_duplicate() {
    let ledger = ledger();
    let mut lines = whole(&ledger);
    lines.push(line(&ledger, 1, 1, 2, "update").replace("\"views\":5", "\"views\":6"));
    assert_eq!(judged(&ledger, &lines, &options()).duplicated.len(), 1);
}

#[test]
fn one_key_over_two_contents_is_a_duplicate() {
    let ledger = ledger();
    let mut lines = whole(&ledger);
    lines[2] = line(&ledger, 2, 2, 1, "update");
    let lenient = JudgeOptions {
        repeats_allowed: true,
        ..options()
    };
    assert_eq!(judged(&ledger, &lines, &lenient).duplicated.len(), 1);
}

#[test]
fn content_that_goes_back_is_out_of_order() {
    let ledger = ledger();
    let mut lines = whole(&ledger);
    lines[1] = line(&ledger, 2, 2, 1, "insert");
    lines[2] = line(&ledger, 2, 1, 2, "update");
    let tally = judged(&ledger, &lines, &options());
    assert_eq!(tally.out_of_order.len(), 1);
    assert_eq!(tally.out_of_order[0].line, 3);
    lines[2] = line(&ledger, 2, 3, 1, "delete").replace("orders/2/1", "orders/2/x");
    assert!(!judged(&ledger, &lines, &options()).out_of_order.is_empty());
}

#[test]
fn wrong_content_is_seen_to_the_byte() {
    let ledger = ledger();
    for (from, to) in [
        ("\"amount\":", "\"amount\": "),
        ("\"rev\":1", "\"rev\":77"),
        ("0e3", "0e03"),
        ("\"insert\"", "\"delete\""),
        ("\"stream\":\"orders\"", "\"stream\":\"other\""),
    ] {
        let mut lines = whole(&ledger);
        lines[0] = lines[0].replace(from, to);
        let verdict = judge(&ledger, lines.concat().as_bytes(), &options()).unwrap();
        assert!(verdict.wrong() > 0, "{from} -> {to}");
        assert!(!verdict.is_clean());
    }
}

#[test]
fn units_can_have_other_names() {
    let ledger = ledger();
    let lines: Vec<String> = whole(&ledger)
        .iter()
        .map(|line| {
            line.replace("\"connection\":\"acme\"", "\"connection\":\"mine\"")
                .replace("\"partition\":null", "\"partition\":\"eu\"")
        })
        .collect();
    let options = JudgeOptions {
        units: BTreeMap::from([("mine/orders/eu".into(), "acme/orders".into())]),
        ..options()
    };
    let verdict = judge(&ledger, lines.concat().as_bytes(), &options).unwrap();
    assert!(verdict.is_clean(), "{verdict:?}");
    assert_eq!(verdict.delivered(), 3);
}

#[test]
fn half_a_line_is_an_error_that_says_which() {
    let ledger = ledger();
    let mut lines = whole(&ledger);
    lines[1].truncate(50);
    let error = judge(&ledger, lines.concat().as_bytes(), &options()).unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
}
