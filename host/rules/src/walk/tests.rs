use super::*;

fn walk() -> Walk {
    Walk::start(Start {
        number: 1,
        reason: Reason::Schedule,
        window: Window {
            since: None,
            until: 1_000,
        },
        capped: false,
        then: None,
        cursor: None,
        page_size: 3,
        now: 1_000,
    })
}

fn page<'a>(ids: &[&'a str], next: &[&str]) -> PageFacts<'a> {
    PageFacts {
        ids: ids.to_vec(),
        content: fingerprint(ids),
        next: next.iter().map(|s| (*s).to_owned()).collect(),
        ..PageFacts::default()
    }
}

#[test]
fn walks_every_step_once_and_is_complete() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    assert_eq!(walk.step(), Some(None));
    walk.page(page(&["a", "b"], &["s2"]), &mut guard);
    assert_eq!(walk.step(), Some(Some("s2")));
    walk.page(page(&["c"], &[]), &mut guard);
    assert!(walk.done());
    assert_eq!(walk.ending(&guard), Ending::Complete);
}

#[test]
fn a_loop_over_two_steps_is_a_stall() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    walk.page(page(&["a"], &["A"]), &mut guard);
    walk.page(page(&["b"], &["B"]), &mut guard);
    walk.page(page(&["c"], &["A"]), &mut guard);
    assert!(walk.done());
    assert_eq!(walk.ending(&guard), Ending::Stalled);
}

#[test]
fn the_same_page_under_fresh_tokens_is_a_stall() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    walk.page(page(&["a", "b"], &["t1"]), &mut guard);
    walk.page(page(&["a", "b"], &["t2"]), &mut guard);
    assert_eq!(walk.ending(&guard), Ending::Stalled);
}

#[test]
fn case_075_a_repeated_token_on_an_empty_page_is_the_end() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    walk.page(page(&["1", "2", "3"], &["c3"]), &mut guard);
    walk.page(page(&["4", "5", "6"], &["c6"]), &mut guard);
    walk.page(page(&["7"], &["c7"]), &mut guard);
    walk.page(page(&[], &["c7"]), &mut guard);
    assert!(walk.done());
    assert_eq!(walk.ending(&guard), Ending::Complete);
}

#[test]
fn case_079_an_empty_page_with_a_next_step_is_not_the_end() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    walk.page(page(&["1", "2"], &["t2"]), &mut guard);
    walk.page(page(&[], &["t3"]), &mut guard);
    assert_eq!(walk.step(), Some(Some("t3")));
    walk.page(page(&["3", "4"], &[]), &mut guard);
    assert_eq!(walk.ending(&guard), Ending::Complete);
}

#[test]
fn empty_pages_for_ever_are_a_stall() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    let mut pages = 0;
    while !walk.done() && !walk.stalled {
        pages += 1;
        let next = format!("t{pages}");
        walk.page(page(&[], &[next.as_str()]), &mut guard);
        assert!(pages < 1_000, "a walk must end");
    }
    assert_eq!(walk.ending(&guard), Ending::Stalled);
}

#[test]
fn case_045_fewer_records_than_the_total_is_short() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    let with_total = |mut facts: PageFacts<'static>| {
        facts.total = Some(6);
        facts
    };
    walk.page(with_total(page(&["f1", "f2", "f3"], &["2"])), &mut guard);
    walk.page(with_total(page(&["f2", "f3", "f5"], &["3"])), &mut guard);
    walk.page(with_total(page(&[], &[])), &mut guard);
    assert_eq!(
        walk.ending(&guard),
        Ending::Short {
            total: 6,
            distinct: 4
        }
    );
}

#[test]
fn case_083_a_total_that_shrinks_on_the_way_is_short() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    let with_total = |total, mut facts: PageFacts<'static>| {
        facts.total = Some(total);
        facts
    };
    walk.page(with_total(6, page(&["1", "2"], &["2"])), &mut guard);
    walk.page(with_total(5, page(&["4", "5"], &["4"])), &mut guard);
    walk.page(with_total(5, page(&["6"], &[])), &mut guard);
    assert_eq!(
        walk.ending(&guard),
        Ending::Short {
            total: 6,
            distinct: 5
        }
    );
}

#[test]
fn case_091_another_page_size_begins_the_walk_anew() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    walk.page(page(&["a", "b", "c"], &["page=2"]), &mut guard);
    assert!(walk.clone().resume(100).is_none());
    let resumed = walk.resume(3).expect("same page size");
    assert_eq!(resumed.step(), Some(Some("page=2")));
}

#[test]
fn a_stored_walk_goes_on_from_its_step() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    walk.page(page(&["a"], &["s2"]), &mut guard);
    let text = serde_json::to_string(&walk).expect("walks are plain data");
    let stored: Walk = serde_json::from_str(&text).expect("and can be read back");
    let resumed = stored.resume(3).expect("resumable");
    assert_eq!(resumed.step(), Some(Some("s2")));
    assert!(resumed.resumed);
}

#[test]
fn not_modified_repeats_what_the_page_named() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    walk.not_modified(vec!["s2".into()], Some("c".into()), &mut guard);
    assert_eq!(walk.step(), Some(Some("s2")));
    walk.page(page(&["x"], &[]), &mut guard);
    assert_eq!(walk.next_cursor.as_deref(), Some("c"));
    assert_eq!(walk.ending(&guard), Ending::Complete);
}

/// Pages that follow on each other and end at the most that the vendor gives: what they showed has been read.
#[test]
fn a_refusal_at_the_cap_leaves_out_what_lies_behind_it_alone() {
    let seen = |ids: &[&'static str], at: i64, next: &[&str]| PageFacts {
        newest: Newest {
            seen: Some(at),
            ..Newest::default()
        },
        oldest: Some(at),
        ..page(ids, next)
    };
    let walked = |at_cap: bool, branches: bool| {
        let (mut walk, mut guard) = (walk(), Guard::default());
        let next: &[&str] = if branches { &["p2", "x"] } else { &["p2"] };
        walk.page(seen(&["a", "b", "c"], 300, next), &mut guard);
        walk.page(seen(&["d", "e", "f"], 500, &[]), &mut guard);
        walk.pending = VecDeque::from([Some("p3".to_owned())]);
        walk.skip(at_cap, &mut guard);
        assert_eq!(walk.ending(&guard), Ending::Truncated);
        walk.read_whole(Order::Ascending)
    };
    assert_eq!(walked(true, false).extents()[0].until, 500);
    assert!(walked(false, false).is_empty(), "it may lie anywhere");
    assert!(walked(true, true).is_empty(), "nor is this one list");
}

/// Behind a page that was not sent again a refusal may be the vendor's result cap, and not the end of the list.
#[test]
fn a_page_that_is_not_sent_again_counts_as_full() {
    let (mut walk, mut guard) = (walk(), Guard::default());
    assert!(!walk.last_full);
    walk.not_modified(vec!["s2".into()], None, &mut guard);
    assert!(walk.last_full);
    walk.page(page(&["x"], &[]), &mut guard);
    assert!(!walk.last_full);
}
