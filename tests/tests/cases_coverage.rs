//! What was not read: how it is found, filled from spare quota, or given up; and how a side walk leaves the main walk
//! alone. A whole host each time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::script::{Asked, Reply, Script};
use support::shop::{
    HOUR, MIN, Order, S, USUAL, body, config, ids, listed, matching, ms, nothing, open, order,
    page, param, poll_at,
};
use support::{NOW, Rig};
use weir::poll::Outcome;
use weir_rules::coverage::GapSource;
use weir_rules::model::Reason;
use weir_rules::unit::UnitState;

const UNIT: &str = "shop/orders";

/// A window with both bounds, pages by token, oldest change first.
const BOUNDED: &str = r#"
order = "ascending"
window = { since = "since", until = "until" }
paging = { style = "token", token = "/next", param = "token" }
"#;

fn state(rig: &Rig) -> UnitState {
    rig.unit(UNIT).state
}

/// Orders that are shown from their stamp on: `h000` at this time and one more each `step`.
fn every(step: i64, from: i64, count: i64) -> Vec<Order> {
    (0..count)
        .map(|n| Order {
            id: format!("h{n:03}"),
            at: from + n * step,
            shown: from + n * step,
        })
        .collect()
}

fn bounds(asked: &Asked) -> (Option<i64>, Option<i64>) {
    let bound = |name| param(asked, name).map(|text| ms(&text));
    (bound("since"), bound("until"))
}

/// A vendor that keeps these orders and gives at most `cap` of a window, the newest first.
fn capped(orders: Vec<Order>, cap: usize) -> Arc<Script> {
    Script::by(move |asked| {
        let (since, until) = bounds(asked);
        let mut found = matching(&orders, asked.at, since, until);
        found.reverse();
        let more = found.len() > cap;
        found.truncate(cap);
        listed(&found, &format!(r#""more":{more}"#))
    })
}

/// What the vendor was asked for, without what it says of the time: everything that the main walk keeps.
fn main_walk(state: &UnitState) -> UnitState {
    UnitState {
        side: Default::default(),
        gaps: Default::default(),
        coverage: Default::default(),
        clock: Default::default(),
        lags: Default::default(),
        ..state.clone()
    }
}

#[tokio::test]
async fn case_065_a_listing_in_the_wrong_order_loses_nothing_and_is_said() {
    let orders = |from: i64| -> Reply {
        let stamps: Vec<(String, String)> = (from - 2..=from)
            .rev()
            .map(|n| (format!("r{n}"), format!("09:59:0{n}")))
            .collect();
        let rows: Vec<(&str, &str)> = stamps
            .iter()
            .map(|(id, at)| (id.as_str(), at.as_str()))
            .collect();
        let next = if from > 3 {
            format!(r#""next":"t{}""#, from - 3)
        } else {
            String::new()
        };
        page(&rows, &next)
    };
    let script = Script::new([orders(9), Reply::broken()]);
    let rig = open(&config(BOUNDED, USUAL), &script).await;
    rig.poll(UNIT).await;
    let rig = rig.crash().await;
    script.then([orders(6), orders(3)]);
    let report = rig.poll(UNIT).await;
    assert_eq!(report.outcome, Outcome::Ok);
    let all: Vec<String> = (1..=9).map(|n| format!("r{n}")).collect();
    assert_eq!(ids(&rig), all);
    let said = report.message.expect("the order is said to be wrong");
    assert!(said.contains("oldest change first"), "{said}");
    assert!(state(&rig).disordered, "for good");
}

/// Newest first under an order of oldest first, and the vendor gives three records of a window and no more: what lies
/// before the newest must not be taken for read.
#[tokio::test]
async fn case_065_what_was_cut_short_is_read_although_the_order_is_wrong() {
    let stream = r#"
order = "ascending"
window = { since = "since", until = "until" }
paging = { style = "none", has_more = "/more" }
"#;
    let script = capped(every(MIN, NOW - HOUR, 9), 3);
    let rig = open(&config(stream, USUAL), &script).await;
    rig.poll(UNIT).await;
    rig.run_for(5_000).await;
    assert_eq!(ids(&rig).len(), 9);
    assert!(state(&rig).gaps.is_empty());
}

#[tokio::test]
async fn case_071_an_empty_answer_to_a_wide_window_is_not_believed() {
    // Nobody has told weir that windows of more than an hour are answered with nothing.
    let orders = every(HOUR, NOW - HOUR / 2, 73);
    let script = Script::by(move |asked| {
        let (since, until) = bounds(asked);
        if until.unwrap() - since.unwrap() > HOUR {
            return nothing();
        }
        listed(&matching(&orders, asked.at, since, until), "")
    });
    let settings = format!("start = 2031-03-04T09:00:00Z\n{USUAL}");
    let rig = open(&config(BOUNDED, &settings), &script).await;
    rig.poll(UNIT).await;
    assert_eq!(ids(&rig), ["h000"]);
    rig.settle().await;
    rig.clock.advance(72 * HOUR);
    rig.run_for(60_000).await;
    assert_eq!(ids(&rig).len(), 73, "one for each hour, once");
    let said: Vec<String> = rig
        .polls()
        .into_iter()
        .filter_map(|poll| poll.message)
        .collect();
    assert!(
        said.iter().any(|said| said.contains("narrower windows")),
        "{said:?}"
    );
    let narrow = state(&rig).narrow.expect("it was learnt");
    assert_eq!(narrow.stage, weir_rules::unit::Stage::Proven);
    // What was learnt holds: the next outage is caught up in narrow windows at once.
    let before = script.asked().len();
    rig.clock.advance(3 * HOUR);
    rig.run_for(60_000).await;
    assert!(script.asked()[before..].iter().all(|asked| {
        let (since, until) = bounds(asked);
        until.unwrap() - since.unwrap() <= HOUR
    }));
}

#[tokio::test]
async fn an_empty_answer_is_believed_in_the_end_when_the_newest_record_is_gone() {
    let gone = Arc::new(AtomicBool::new(false));
    let deleted = gone.clone();
    let script = Script::by(move |_| match deleted.load(Ordering::Relaxed) {
        false => page(&[("a", "09:59:00")], ""),
        true => nothing(),
    });
    let rig = open(&config(BOUNDED, USUAL), &script).await;
    rig.poll(UNIT).await;
    gone.store(true, Ordering::Relaxed);
    rig.settle().await;
    rig.clock.advance(24 * HOUR);
    rig.run_for(60_000).await;
    let after_the_outage = script.asked().len();
    assert!(after_the_outage < 70, "{after_the_outage} calls");
    // The vendor may have hidden everything for a while: nothing is passed over.
    assert_eq!(state(&rig).watermark, Some(ms("09:59:00")));
    rig.run_for(HOUR.unsigned_abs()).await;
    let later = script.asked().len() - after_the_outage;
    assert!(later < 100, "{later} calls in an hour");
}

#[tokio::test]
async fn case_073_a_feed_that_has_moved_on_is_a_gap_with_its_ids() {
    let numbered = |from: u64, to: u64| {
        let rows: Vec<String> = (from..=to)
            .rev()
            .map(|n| format!(r#"{{"id":{n}}}"#))
            .collect();
        body(&rows.join(","), "")
    };
    // With a page size that is known and full, and where only the length of the answers tells; with and without stamps.
    for stream in ["page_size = 300\npage_size_param = \"limit\"\n", ""] {
        let stream = format!("{stream}order = \"descending\"\n");
        let script = Script::new([
            numbered(1, 300),
            numbered(101, 400),
            numbered(450, 749),
            numbered(450, 749),
        ]);
        let rig = open(&config(&stream, USUAL), &script).await;
        rig.poll(UNIT).await;
        poll_at(&rig, "10:01:00").await;
        let fell_off = |rig: &Rig| -> Vec<weir_rules::coverage::Gap> {
            let gaps = state(rig).gaps;
            let fell = |gap: &&weir_rules::coverage::Gap| gap.source == GapSource::NoOverlap;
            gaps.iter().filter(fell).cloned().collect()
        };
        assert!(fell_off(&rig).is_empty(), "100 to 300 are in both");
        poll_at(&rig, "10:02:00").await;
        assert_eq!(ids(&rig).len(), 400 + 300);
        let gaps = fell_off(&rig);
        assert_eq!(gaps.len(), 1, "{stream}");
        let detail = gaps[0].detail.clone().expect("the ids");
        assert!(detail.contains("400") && detail.contains("450"), "{detail}");
        let fell = |poll: &&weir::store::PollRow| {
            poll.message
                .as_deref()
                .is_some_and(|said| said.contains("fell off"))
        };
        let polls = rig.polls();
        assert_eq!(
            polls.iter().find(fell).map(|poll| poll.interval),
            Some(10_000)
        );
        // It is no gap twice, and a poll that goes well does not close it.
        poll_at(&rig, "10:03:00").await;
        assert_eq!(fell_off(&rig).len(), 1);
    }
}

#[tokio::test]
async fn case_073_a_list_that_was_replaced_while_it_was_short_is_no_gap() {
    let stream = "page_size = 300\npage_size_param = \"limit\"\n";
    let script = Script::new([
        body(r#"{"id":1},{"id":2},{"id":3}"#, ""),
        body(r#"{"id":7},{"id":8}"#, ""),
    ]);
    let rig = open(&config(stream, USUAL), &script).await;
    rig.poll(UNIT).await;
    poll_at(&rig, "10:01:00").await;
    assert!(state(&rig).gaps.is_empty());
}

#[tokio::test]
async fn case_085_a_lost_anchor_is_left_out_after_a_bounded_number_of_empty_answers() {
    let stream = r#"
order = "descending"
sync = { token = "/before", param = "before" }
"#;
    let lost = Arc::new(AtomicBool::new(false));
    let vendor = lost.clone();
    let script = Script::by(move |asked| {
        let lost = vendor.load(Ordering::Relaxed);
        match param(asked, "before").as_deref() {
            None if lost => page(
                &[
                    ("t14", "10:05:00"),
                    ("t13", "10:04:00"),
                    ("t12", "10:03:00"),
                    ("t11", "10:02:00"),
                    ("t10", "10:01:00"),
                    ("t8", "09:58:00"),
                ],
                r#""before":"t14""#,
            ),
            None => page(
                &[("t9", "09:59:00"), ("t8", "09:58:00")],
                r#""before":"t9""#,
            ),
            Some(_) => nothing(),
        }
    });
    let rig = open(&config(stream, USUAL), &script).await;
    rig.poll(UNIT).await;
    lost.store(true, Ordering::Relaxed);
    let before = script.asked().len();
    rig.run_for(HOUR.unsigned_abs()).await;
    for id in ["t10", "t11", "t12", "t13", "t14"] {
        assert!(ids(&rig).contains(&id.to_owned()), "{id}");
    }
    let asked = &script.asked()[before..];
    let first = asked
        .iter()
        .position(|asked| param(asked, "before").is_none());
    assert_eq!(first, Some(6), "after six empty answers");
    let said = rig.polls().into_iter().filter_map(|poll| poll.message);
    assert!(
        said.into_iter()
            .any(|said| said.contains("lost the position"))
    );
    assert_eq!(state(&rig).cursor.as_deref(), Some("\"t14\""));
    // Each once, and the new anchor is used.
    assert_eq!(ids(&rig).len(), 7);
    // While nothing new comes the question is asked more and more rarely.
    let before = script.asked().len();
    rig.run_for(24 * HOUR.unsigned_abs()).await;
    let without = script.asked()[before..]
        .iter()
        .filter(|asked| param(asked, "before").is_none())
        .count();
    assert!(without <= 8, "{without} times in a day");
}

#[tokio::test]
async fn a_position_that_the_vendor_confirms_is_never_left_out() {
    let stream = r#"sync = { token = "/sync", param = "sync" }"#;
    let script = Script::by(|asked| match param(asked, "sync") {
        None => page(&[("a", "09:59:00")], r#""sync":"s1""#),
        Some(_) => page(&[], r#""sync":"s1""#),
    });
    let rig = open(&config(stream, USUAL), &script).await;
    rig.poll(UNIT).await;
    rig.run_for(24 * HOUR.unsigned_abs()).await;
    let asked = script.asked();
    assert!(
        asked[1..]
            .iter()
            .all(|asked| param(asked, "sync").is_some())
    );
}

#[tokio::test]
async fn a_window_that_hits_the_result_cap_is_read_in_parts() {
    for order in ["descending", "unordered"] {
        let stream = format!(
            "order = \"{order}\"\nwindow = {{ since = \"since\", until = \"until\" }}\npaging = {{ style = \"none\", has_more = \"/more\" }}\npage_size = 10\nresult_cap = 10\n"
        );
        let script = capped(every(MIN, NOW - 3 * HOUR, 100), 10);
        let rig = open(&config(&stream, USUAL), &script).await;
        let report = rig.poll(UNIT).await;
        assert_eq!(report.outcome, Outcome::Truncated, "{order}");
        rig.run_for(2_000).await;
        assert_eq!(ids(&rig).len(), 100, "{order}");
        let state = state(&rig);
        assert!(state.gaps.is_empty(), "{order} {:?}", state.gaps);
        assert!(!state.side.closed.is_empty());
        assert!(script.asked().len() < 80, "{}", script.asked().len());
        // And it is not polled at its minimum for ever because of that.
        rig.run_for(2 * HOUR.unsigned_abs()).await;
        let longest = rig.polls().iter().map(|poll| poll.interval).max();
        assert!(longest >= Some(60_000), "{longest:?}");
    }
}

#[tokio::test]
async fn a_tie_that_is_more_than_the_vendor_gives_is_listed_as_lost_and_the_rest_arrives() {
    let stream = "order = \"descending\"\nwindow = { since = \"since\", until = \"until\" }\npaging = { style = \"none\", has_more = \"/more\" }\npage_size = 4\nresult_cap = 4\n";
    let mut orders = every(MIN, NOW - 3 * HOUR, 20);
    orders.extend((0..7).map(|n| Order {
        id: format!("tie{n}"),
        at: NOW - 2 * HOUR - 30 * MIN + 500,
        shown: 0,
    }));
    let script = capped(orders, 4);
    let rig = open(&config(stream, USUAL), &script).await;
    rig.poll(UNIT).await;
    rig.run_for(2_000).await;
    assert_eq!(
        ids(&rig).iter().filter(|id| id.starts_with('h')).count(),
        20
    );
    let gaps = state(&rig).gaps;
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    let lost = gaps[0].lost.clone().expect("it can't be filled");
    assert!(lost.contains("one moment"), "{lost}");
    let calls = script.asked().len();
    assert!(calls < 200, "{calls}");
    rig.run_for(HOUR.unsigned_abs()).await;
    let later = rig.polls().into_iter().filter(|poll| {
        let tie = NOW - 2 * HOUR - 30 * MIN + 500;
        poll.reason == Reason::Backfill
            && poll.started > NOW + 3_000
            && poll.window.since.is_none_or(|since| since <= tie)
            && tie < poll.window.until
    });
    assert_eq!(later.count(), 0, "and it is not tried for ever");
}

/// The same on the way up, at a vendor that takes no upper bound: what lies behind the tie comes with the main walk.
#[tokio::test]
async fn a_tie_that_is_more_than_the_vendor_gives_holds_up_nothing_behind_it() {
    let stream = "order = \"ascending\"\nwindow = { since = \"since\" }\npaging = { style = \"none\", has_more = \"/more\" }\npage_size = 4\nresult_cap = 4\n";
    let mut orders = every(MIN, NOW - 3 * HOUR, 20);
    let tie = NOW - 2 * HOUR - 30 * MIN;
    orders.extend((0..7).map(|n| Order {
        id: format!("tie{n}"),
        at: tie + 500,
        shown: 0,
    }));
    orders.extend([order("behind", "08:00:00"), order("new", "10:30:00")]);
    let script = Script::by(move |asked| {
        let mut found = matching(&orders, asked.at, bounds(asked).0, None);
        let more = found.len() > 4;
        found.truncate(4);
        listed(&found, &format!("\"more\":{more}"))
    });
    let rig = open(&config(stream, USUAL), &script).await;
    rig.poll(UNIT).await;
    rig.run_for(2_000).await;
    let came = ids(&rig);
    let of = |start: &str| came.iter().filter(|id| id.starts_with(start)).count();
    assert_eq!((of("h"), of("tie"), of("behind")), (20, 4, 1), "{came:?}");
    let by_main = |poll: &weir::store::PollRow| poll.reason == Reason::Schedule;
    assert!(rig.polls().iter().filter(|poll| by_main(poll)).count() < 12);
    let gaps = state(&rig).gaps;
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(gaps[0].extent.since >= tie && gaps[0].extent.until <= tie + S);
    let calls = script.asked().len();
    rig.run_for(2 * HOUR.unsigned_abs()).await;
    assert!(ids(&rig).contains(&"new".to_owned()));
    assert_eq!(state(&rig).gaps.len(), 1, "listed once");
    let calls = script.asked().len() - calls;
    assert!(calls < 150, "it rests: {calls}");
}

#[tokio::test]
async fn a_step_behind_the_last_page_is_the_end_of_the_list() {
    for (status, last) in [(404, 2), (404, 1), (422, 1)] {
        let stream = "paging = { style = \"page\", param = \"page\" }\npage_size = 2\npage_size_param = \"limit\"\n";
        let script = Script::by(move |asked| match param(asked, "page").as_deref() {
            Some("1") => body(r#"{"id":1},{"id":2}"#, ""),
            Some("2") if last == 2 => body(r#"{"id":3},{"id":4}"#, ""),
            Some("2") => body(r#"{"id":3}"#, ""),
            _ => Reply::status(status, r#"{"error":"no such page"}"#),
        });
        let rig = open(&config(stream, USUAL), &script).await;
        let report = rig.poll(UNIT).await;
        assert_eq!(report.outcome, Outcome::Ok, "{status} after {last}");
        assert!(state(&rig).gaps.is_empty());
    }
    // Behind a full page another refusal may be the vendor's result cap.
    let stream = "paging = { style = \"page\", param = \"page\" }\npage_size = 2\npage_size_param = \"limit\"\n";
    let script = Script::by(|asked| match param(asked, "page").as_deref() {
        Some("1") => body(r#"{"id":1},{"id":2}"#, ""),
        _ => Reply::status(422, r#"{"error":"only the first results are available"}"#),
    });
    let rig = open(&config(stream, USUAL), &script).await;
    assert_eq!(rig.poll(UNIT).await.outcome, Outcome::Truncated);
    assert_eq!(state(&rig).gaps.len(), 1);
}

#[tokio::test]
async fn a_start_that_is_moved_back_is_filled_and_the_main_walk_does_not_notice() {
    let orders = every(HOUR, NOW - 50 * HOUR, 50);
    let script = support::shop::keeper(orders);
    let from = |start: &str| config(BOUNDED, &format!("start = {start}\n{USUAL}"));
    let rig = open(&from("2031-03-04T00:00:00Z"), &script).await;
    rig.poll(UNIT).await;
    assert_eq!(ids(&rig).len(), 10);
    // Forward: nothing is thrown away, nothing comes twice.
    let rig = rig.restart_with(&from("2031-03-04T05:00:00Z")).await;
    poll_at(&rig, "10:01:00").await;
    assert_eq!(ids(&rig).len(), 10);
    assert!(state(&rig).gaps.is_empty());
    let before = state(&rig);
    let rig = rig.restart_with(&from("2031-03-03T00:00:00Z")).await;
    poll_at(&rig, "10:02:00").await;
    rig.run_for(1_000).await;
    assert_eq!(ids(&rig).len(), 34, "and none of them twice");
    let after = state(&rig);
    assert!(after.gaps.is_empty());
    assert_eq!(after.side.closed.len(), 1);
    assert_eq!(after.watermark, before.watermark);
    assert_eq!(after.lags, before.lags, "old records are no lag");
    let fill = rig
        .polls()
        .into_iter()
        .find(|poll| poll.reason == Reason::Backfill);
    assert_eq!(fill.map(|poll| poll.tally.new), Some(24));
}

/// A vendor whose past lies on slow pages, the sixth of which is refused once.
fn slow_past(pages: i64) -> Arc<Script> {
    let mut broken = false;
    Script::by(move |asked| {
        let (since, until) = bounds(asked);
        if until.unwrap() > NOW - 30 * MIN {
            return page(&[("new", "09:59:00")], "").taking(100);
        }
        let number: i64 = param(asked, "token").map_or(1, |token| token.parse().unwrap());
        if number == 6 && !std::mem::replace(&mut broken, true) {
            return Reply::status(503, "{}").header("retry-after", "120");
        }
        assert_eq!(
            (since, until),
            (Some(NOW - 20 * HOUR), Some(NOW - 10 * HOUR))
        );
        let id = format!("old{number:02}");
        let next = if number < pages {
            format!(r#""next":"{}""#, number + 1)
        } else {
            String::new()
        };
        page(&[(id.as_str(), "2031-03-03T16:00:00Z")], &next).taking(8_000)
    })
}

async fn ask_for(rig: &Rig, since: i64, until: i64) {
    let unit = rig.unit(UNIT);
    let connection = rig.host.connections.get("shop").unwrap();
    let settings = connection.streams["orders"].settings.clone();
    let now = rig.clock.wall_now();
    let extent = weir_rules::coverage::Extent { since, until };
    rig.host
        .change_unit(
            unit.id,
            Box::new(move |state| state.ask_for(extent, &settings, now)),
        )
        .await
        .unwrap();
}

#[tokio::test]
async fn a_side_walk_gives_way_keeps_its_step_and_goes_on_after_a_crash() {
    let script = slow_past(10);
    let settings = "start = 2031-03-01\ninterval = \"30s\"\noverlap = { fixed = \"5m\" }\n";
    let rig = open(&config(BOUNDED, settings), &script).await;
    // The first sync is asked for everything since the start; the vendor's past is not in it.
    rig.poll(UNIT).await;
    let before = state(&rig);
    ask_for(&rig, NOW - 20 * HOUR, NOW - 10 * HOUR).await;
    rig.run_for(60_000).await;
    let polls = rig.polls();
    let gave_way = |poll: &&weir::store::PollRow| poll.outcome == "gave-way";
    assert!(polls.iter().any(|poll| gave_way(&poll)), "{polls:?}");
    let scheduled: Vec<i64> = polls
        .iter()
        .filter(|poll| poll.reason == Reason::Schedule)
        .map(|poll| poll.started - NOW)
        .collect();
    assert!(scheduled.len() >= 2, "the schedule is kept: {scheduled:?}");
    let under_way = state(&rig).side.walk.expect("it is under way");
    assert_eq!(under_way.tally.records, 5);
    let rig = rig.crash().await;
    rig.run_for(300_000).await;
    let old: Vec<String> = ids(&rig)
        .into_iter()
        .filter(|id| id.starts_with("old"))
        .collect();
    assert_eq!(old.len(), 10, "each once: {old:?}");
    let tokens: Vec<Option<String>> = script
        .asked()
        .iter()
        .filter(|asked| bounds(asked).1.unwrap() <= NOW - 30 * MIN)
        .map(|asked| param(asked, "token"))
        .collect();
    let firsts = tokens.iter().filter(|token| token.is_none()).count();
    assert_eq!(firsts, 1, "no page is begun anew: {tokens:?}");
    let after = state(&rig);
    assert!(after.gaps.is_empty() && after.side.walk.is_none());
    assert_eq!(after.watermark, before.watermark);
    assert_eq!(after.cursor, before.cursor);
}

/// Page tokens are good for fifteen seconds, a main walk takes twenty, and there is time for five of ten pages between two.
#[tokio::test]
async fn a_side_walk_whose_step_outlives_no_main_walk_is_made_in_one_go() {
    let mut issued = 0;
    let script = Script::by(move |asked| {
        let (_, until) = bounds(asked);
        if until.unwrap() > NOW - 30 * MIN {
            return nothing().taking(20_000);
        }
        let number: i64 = param(asked, "token").map_or(1, |token| token.parse().unwrap());
        if number > 1 && asked.at > issued + 15_000 {
            return Reply::status(410, "{}");
        }
        issued = asked.at + 8_000;
        let id = format!("old{number:02}");
        let next = match number {
            10 => String::new(),
            _ => format!(r#""next":"{}""#, number + 1),
        };
        page(&[(id.as_str(), "2031-03-03T16:00:00Z")], &next).taking(8_000)
    });
    let settings = "start = 2031-03-01\ninterval = \"60s\"\noverlap = { fixed = \"5m\" }\n\
                    backoff = { base = \"1s\", cap = \"5s\" }\n";
    let rig = open(&config(BOUNDED, settings), &script).await;
    rig.poll(UNIT).await;
    ask_for(&rig, NOW - 20 * HOUR, NOW - 10 * HOUR).await;
    rig.run_for(20 * 60_000).await;
    assert_eq!(ids(&rig).len(), 10);
    let after = state(&rig);
    assert!(after.gaps.is_empty() && after.side.walk.is_none());
    let mut gave_way = rig.polls();
    gave_way.retain(|poll| poll.outcome == "gave-way");
    assert!((1..=3).contains(&gave_way.len()), "{}", gave_way.len());
    let mut scheduled = rig.polls();
    scheduled.retain(|poll| poll.reason == Reason::Schedule);
    assert!(scheduled.len() >= 15, "the schedule is kept");
}

#[tokio::test]
async fn a_side_walk_moves_nothing_of_the_main_walk() {
    let script = slow_past(1);
    let settings = format!("start = 2031-03-01\n{USUAL}");
    let rig = open(&config(BOUNDED, &settings), &script).await;
    rig.poll(UNIT).await;
    let before = rig.unit(UNIT);
    ask_for(&rig, NOW - 20 * HOUR, NOW - 10 * HOUR).await;
    let report = rig.ask(UNIT, Reason::Backfill).await;
    assert_eq!((report.outcome, report.tally.new), (Outcome::Ok, 1));
    let after = rig.unit(UNIT);
    assert_eq!(main_walk(&after.state), main_walk(&before.state));
    assert_eq!(after.state.lags, before.state.lags);
    assert_eq!(after.due, before.due);
    // Nothing is left to do: asked again it makes no call.
    let calls = script.asked().len();
    assert_eq!(
        rig.ask(UNIT, Reason::Backfill).await.outcome,
        Outcome::Skipped
    );
    assert_eq!(script.asked().len(), calls);
}

#[tokio::test]
async fn a_second_look_finds_what_became_visible_late_and_says_so() {
    let late = NOW - 10 * MIN;
    let script = support::shop::keeper(vec![
        support::shop::order("a", "09:45:00"),
        support::shop::order("b", "09:59:00"),
        Order {
            id: "late".into(),
            at: late,
            shown: NOW + 30 * MIN,
        },
    ]);
    let settings = "interval = { min = \"1m\", max = \"10m\" }\noverlap = { fixed = \"2m\" }\nsettle = \"1h\"\n";
    let rig = open(&config(BOUNDED, settings), &script).await;
    rig.poll(UNIT).await;
    rig.run_for(50 * MIN.unsigned_abs()).await;
    assert_eq!(ids(&rig), ["a", "b"], "the overlap does not reach it");
    rig.run_for(20 * MIN.unsigned_abs()).await;
    assert_eq!(ids(&rig), ["a", "b", "late"]);
    let look = rig
        .polls()
        .into_iter()
        .find(|poll| poll.reason == Reason::Settle)
        .unwrap();
    assert_eq!((look.tally.new, look.tally.unchanged), (1, 2));
    assert!(look.message.unwrap().contains("1 new"));
    let state = state(&rig);
    assert_eq!(state.side.found.as_ref().map(|found| found.new), Some(1));
    assert_eq!(state.lags.count(), 1, "and its lag counts");
    // Once per settle time, and not more often.
    rig.run_for(6 * HOUR.unsigned_abs()).await;
    let looks = rig
        .polls()
        .iter()
        .filter(|poll| poll.reason == Reason::Settle)
        .count();
    assert!((5..=8).contains(&looks), "{looks}");
}

#[tokio::test]
async fn a_backfill_leaves_a_fifth_of_the_quota_to_the_others() {
    let left = Arc::new(std::sync::atomic::AtomicI64::new(100));
    let (quota, limit) = (left.clone(), 100);
    let orders = every(S, NOW - 20 * HOUR, 2_000);
    let script = Script::by(move |asked| {
        let (since, until) = bounds(asked);
        let mut found = matching(&orders, asked.at, since, until);
        let more = found.len() > 10;
        found.truncate(10);
        let left = quota.fetch_sub(1, Ordering::Relaxed) - 1;
        assert!(left >= 0, "the vendor's quota is overdrawn");
        listed(&found, &format!(r#""more":{more}"#))
            .header("x-ratelimit-limit", &limit.to_string())
            .header("x-ratelimit-remaining", &left.to_string())
            .header("x-ratelimit-reset", &((NOW + 2 * HOUR) / 1_000).to_string())
    });
    let stream = "order = \"ascending\"\nwindow = { since = \"since\", until = \"until\" }\npaging = { style = \"none\", has_more = \"/more\" }\n";
    let settings =
        "start = 2031-03-04T09:00:00Z\ninterval = \"30m\"\noverlap = { fixed = \"5m\" }\n";
    let rig = open(&config(stream, settings), &script).await;
    rig.poll(UNIT).await;
    ask_for(&rig, NOW - 20 * HOUR, NOW - 10 * HOUR).await;
    rig.run_for(2 * HOUR.unsigned_abs() - 60_000).await;
    let left = left.load(Ordering::Relaxed);
    assert!((15..=30).contains(&left), "{left} left");
    let scheduled = rig
        .polls()
        .iter()
        .filter(|poll| poll.reason == Reason::Schedule)
        .count();
    assert!(scheduled >= 4, "{scheduled}");
}

#[tokio::test]
async fn an_outage_shows_as_a_gap_while_it_lasts_and_as_closed_after_it() {
    let down = Arc::new(AtomicBool::new(false));
    let vendor = down.clone();
    let orders = every(30 * MIN, NOW - HOUR, 20);
    let script = Script::by(move |asked| {
        if vendor.load(Ordering::Relaxed) {
            return Reply::status(429, "{}").header("retry-after", "1800");
        }
        let (since, until) = bounds(asked);
        listed(&matching(&orders, asked.at, since, until), "")
    });
    let rig = open(&config(BOUNDED, USUAL), &script).await;
    rig.poll(UNIT).await;
    rig.settle().await;
    down.store(true, Ordering::Relaxed);
    rig.run_for(6 * HOUR.unsigned_abs()).await;
    let connection = rig.host.connections.get("shop").unwrap();
    let settings = &connection.streams["orders"].settings;
    let gap = state(&rig)
        .behind(settings, rig.clock.wall_now())
        .expect("six hours are missing");
    assert_eq!(gap.source, GapSource::GivenUp);
    assert!(gap.extent.width() > 5 * HOUR.unsigned_abs());
    down.store(false, Ordering::Relaxed);
    rig.run_for(HOUR.unsigned_abs()).await;
    let state = state(&rig);
    assert_eq!(state.behind(settings, rig.clock.wall_now()), None);
    assert!(
        state
            .side
            .closed
            .iter()
            .any(|closed| closed.source == GapSource::GivenUp)
    );
    assert!(ids(&rig).len() >= 16);
}
