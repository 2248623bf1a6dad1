use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::model::Scope;

const NOW: Timestamp = 1_930_384_800_000;

fn fault(class: Class) -> Fault {
    Fault {
        class,
        scope: Scope::Unit,
        code: "x".into(),
        message: "invented".into(),
        wait: None,
        page_size: None,
        limits: vec![],
    }
}

fn context() -> Context {
    Context {
        now: NOW,
        backoff: Backoff::default(),
        wait: None,
        deadline: None,
    }
}

fn rng() -> StdRng {
    StdRng::seed_from_u64(7)
}

/// The same fault that many times in a row.
fn repeat(fault: &Fault, context: &Context, times: u32) -> Vec<Decided> {
    let (mut rng, mut history) = (rng(), FaultHistory::default());
    (0..times)
        .map(|_| {
            let decided = decide(fault, &history, context, &mut rng);
            history = decided.history.clone();
            decided
        })
        .collect()
}

fn wait_of(decided: &Decided) -> u64 {
    match decided.decision {
        Decision::Retry { at, .. } | Decision::SmallerPage { at, .. } => (at - NOW) as u64,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_temporary_fault_backs_off_further_each_time_and_is_never_given_up() {
    let backoff = Backoff::default();
    for (n, decided) in repeat(&fault(Class::Temporary), &context(), 200)
        .iter()
        .enumerate()
    {
        assert!(wait_of(decided) <= backoff.ceiling(n as u32 + 1));
    }
}

fn said(ms: u64, source: Source) -> Option<Wait> {
    Some(Wait {
        ms,
        source,
        absurd: ms > 86_400_000,
    })
}

/// The choice: a value that is there and can't be used asks for the ordinary backoff, growing with each fault.
#[test]
fn case_005_without_a_usable_wait_the_ordinary_backoff_grows() {
    for (n, decided) in repeat(&fault(Class::RateLimited), &context(), 3)
        .iter()
        .enumerate()
    {
        let Decision::Retry { why, .. } = decided.decision else {
            panic!("{decided:?}");
        };
        assert_eq!(why, Why::Backoff(n as u32 + 1));
    }
}

#[test]
fn case_011_a_wait_that_is_over_retries_soon_but_never_in_a_hot_loop() {
    let context = Context {
        wait: said(0, Source::Explicit),
        ..context()
    };
    let decided = repeat(&fault(Class::RateLimited), &context, 60);
    assert!(wait_of(&decided[0]) <= 500);
    let total: u64 = decided.iter().map(wait_of).sum();
    assert!(total > 10 * 1_800_000, "{total}");
}

#[test]
fn the_vendors_word_beats_everything_on_any_class() {
    for class in [
        Class::Temporary,
        Class::RateLimited,
        Class::Incomplete,
        Class::Unknown,
    ] {
        let context = Context {
            wait: said(3_600_000, Source::Reset),
            ..context()
        };
        let decided = decide(
            &fault(class),
            &FaultHistory::default(),
            &context,
            &mut rng(),
        );
        let Decision::Retry { at, why } = decided.decision else {
            panic!("{decided:?}");
        };
        assert!((NOW + 3_600_000..=NOW + 3_610_000).contains(&at), "{at}");
        assert_eq!(why, Why::Vendor(Source::Reset));
        assert!(decided.alerts.is_empty());
    }
}

#[test]
fn an_absurd_wait_is_kept_and_told() {
    let wait = 3 * 86_400_000;
    let context = Context {
        wait: said(wait, Source::Explicit),
        ..context()
    };
    let decided = decide(
        &fault(Class::RateLimited),
        &FaultHistory::default(),
        &context,
        &mut rng(),
    );
    assert!(wait_of(&decided) >= wait);
    assert_eq!(
        decided.alerts,
        [Alert::LongWait {
            until: NOW + wait as i64
        }]
    );
}

#[test]
fn case_129_a_revoked_token_is_refreshed_once() {
    let decided = repeat(&fault(Class::AuthExpired), &context(), 3);
    assert_eq!(decided[0].decision, Decision::Refresh);
    assert_eq!(decided[1].decision, Decision::NeedsSignIn);
    assert_eq!(decided[2].decision, Decision::NeedsSignIn);
    // The refresh itself was refused.
    let refused = decide(
        &fault(Class::AuthRevoked),
        &decided[0].history,
        &context(),
        &mut rng(),
    );
    assert_eq!(refused.decision, Decision::NeedsSignIn);
    // A good poll in between makes room for another refresh.
    let later = decide(
        &fault(Class::AuthExpired),
        &FaultHistory::default(),
        &context(),
        &mut rng(),
    );
    assert_eq!(later.decision, Decision::Refresh);
}

#[test]
fn a_permanent_fault_is_not_repeated() {
    for decided in repeat(&fault(Class::Permanent), &context(), 3) {
        assert_eq!(decided.decision, Decision::RecordAndGoOn);
    }
}

#[test]
fn an_unmapped_answer_is_tried_three_times_and_then_parked() {
    let decided = repeat(&fault(Class::Unknown), &context(), 4);
    for decided in &decided[..3] {
        assert!(matches!(decided.decision, Decision::Retry { .. }));
    }
    assert_eq!(decided[3].decision, Decision::Park);
}

#[test]
fn a_lost_position_is_walked_again_at_once_and_not_in_a_hot_loop() {
    let decided = repeat(&fault(Class::PositionLost), &context(), 12);
    assert_eq!(decided[0].decision, Decision::WalkAgain { at: NOW });
    let last = decided.iter().filter_map(|decided| match decided.decision {
        Decision::WalkAgain { at } => Some(at),
        _ => None,
    });
    assert!(last.max() > Some(NOW + 60_000));
}

#[test]
fn an_answer_in_the_making_is_asked_for_again() {
    for decided in repeat(&fault(Class::Pending), &context(), 20) {
        let Decision::AskAgain { at } = decided.decision else {
            panic!("{decided:?}");
        };
        assert!(at >= NOW + 1_000);
    }
    let context = Context {
        wait: said(15_000, Source::Explicit),
        ..context()
    };
    let later = decide(
        &fault(Class::Pending),
        &FaultHistory::default(),
        &context,
        &mut rng(),
    );
    let Decision::AskAgain { at } = later.decision else {
        panic!("{later:?}");
    };
    assert!((NOW + 15_000..NOW + 16_000).contains(&at));
}

#[test]
fn a_smaller_page_is_tried_even_where_the_fault_is_permanent_but_not_for_ever() {
    let heavy = Fault {
        page_size: Some(0),
        ..fault(Class::Temporary)
    };
    let decided = decide(&heavy, &FaultHistory::default(), &context(), &mut rng());
    assert!(matches!(
        decided.decision,
        Decision::SmallerPage { size: 1, .. }
    ));
    let refused = Fault {
        page_size: Some(50),
        ..fault(Class::Permanent)
    };
    let decided = repeat(&refused, &context(), 9);
    assert!(matches!(
        decided[7].decision,
        Decision::SmallerPage { size: 50, .. }
    ));
    assert_eq!(decided[8].decision, Decision::RecordAndGoOn);
}

#[test]
fn expiring_data_raises_an_alert_and_keeps_trying() {
    let day = 86_400_000_u64;
    let deadline = Deadline {
        at: NOW + 10 * day as i64,
        retention: 90 * day,
    };
    let far = Context {
        deadline: Some(deadline),
        ..context()
    };
    let calm = decide(
        &fault(Class::Temporary),
        &FaultHistory::default(),
        &far,
        &mut rng(),
    );
    assert!(calm.alerts.is_empty());
    let near = Context {
        now: NOW + day as i64,
        ..far
    };
    let decided = decide(&fault(Class::Temporary), &calm.history, &near, &mut rng());
    assert_eq!(decided.alerts, [Alert::DeadlineNear { at: deadline.at }]);
    assert!(matches!(decided.decision, Decision::Retry { .. }));
}

#[test]
fn the_history_reads_back_and_grows_with_later_fields() {
    let history = repeat(&fault(Class::RateLimited), &context(), 2)[1]
        .history
        .clone();
    let text = serde_json::to_string(&history).unwrap();
    assert_eq!(
        text,
        r#"{"counts":{"rate-limited":2},"since":1930384800000,"refreshed":false}"#
    );
    assert_eq!(
        serde_json::from_str::<FaultHistory>(&text).unwrap(),
        history
    );
    assert_eq!(
        serde_json::from_str::<FaultHistory>(r#"{"later":1}"#).unwrap(),
        FaultHistory::default()
    );
}

proptest! {
    #[test]
    fn nothing_is_due_before_the_vendor_said(
        class in 0..9_usize,
        wait in 1_u64..100_000_000_000,
        attempts in 0_u32..50,
        seed: u64,
    ) {
        let class = [
            Class::Temporary, Class::RateLimited, Class::AuthExpired, Class::AuthRevoked, Class::Permanent,
            Class::PositionLost, Class::Pending, Class::Incomplete, Class::Unknown,
        ][class];
        let history = FaultHistory {
            counts: [(class, attempts)].into(),
            ..FaultHistory::default()
        };
        let context = Context { wait: said(wait, Source::Explicit), ..context() };
        let decided = decide(&fault(class), &history, &context, &mut StdRng::seed_from_u64(seed));
        if let Decision::Retry { at, .. } | Decision::WalkAgain { at } | Decision::AskAgain { at } = decided.decision {
            prop_assert!(at >= NOW + wait as i64);
        }
    }
}
