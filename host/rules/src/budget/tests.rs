use proptest::prelude::*;

use super::*;

/// 2031-03-04T10:00:00Z
const NOW: Timestamp = 1_930_384_800_000;
const HOUR: Duration = 3_600_000;

fn told(allowed: u64, left: u64, resets_in: Duration) -> Limit {
    Limit {
        quota_unit: "requests".into(),
        limit: Some(allowed),
        remaining: Some(left),
        resets_in: Some(resets_in),
        ..Limit::default()
    }
}

fn of(limit: &Limit) -> Budget {
    let mut budget = Budget::default();
    budget.update(limit, NOW);
    budget
}

fn admit(budget: &Budget, now: Timestamp, priority: Priority) -> Admit {
    budget.admit(now, 1, priority, 0.0)
}

fn all(budget: &Budget, now: Timestamp) -> [Admit; 3] {
    [Priority::Person, Priority::Schedule, Priority::Backfill]
        .map(|priority| admit(budget, now, priority))
}

#[test]
fn what_is_not_told_holds_nobody_back() {
    assert_eq!(all(&Budget::default(), NOW), [Admit::Go; 3]);
    let only_limit = Limit {
        limit: Some(5000),
        ..Limit::default()
    };
    assert_eq!(all(&of(&only_limit), NOW), [Admit::Go; 3]);
}

#[test]
fn a_spent_bucket_waits_for_its_reset_and_not_a_moment_less() {
    let budget = of(&told(60, 0, 42_000));
    let reset = NOW + 42_000;
    assert_eq!(all(&budget, NOW), [Admit::WaitUntil(reset); 3]);
    assert_eq!(all(&budget, reset - 1), [Admit::WaitUntil(reset); 3]);
    assert_eq!(all(&budget, reset), [Admit::Go; 3]);
}

#[test]
fn a_refusal_holds_everyone_and_is_never_brought_forward() {
    let mut budget = of(&told(60, 29, 42_000));
    budget.refused(NOW + 60_000, NOW);
    // An answer that was on its way, and a refusal that ends earlier.
    budget.update(&told(60, 28, 41_000), NOW + 1000);
    budget.refused(NOW + 50_000, NOW + 1000);
    assert_eq!(
        all(&budget, NOW + 59_999),
        [Admit::WaitUntil(NOW + 60_000); 3]
    );
    assert_eq!(all(&budget, NOW + 60_000), [Admit::Go; 3]);
}

#[test]
fn the_vendors_word_stands_above_its_count() {
    let mut budget = of(&told(60, 0, HOUR));
    budget.refused(NOW + 5000, NOW);
    assert_eq!(all(&budget, NOW + 4999), [Admit::WaitUntil(NOW + 5000); 3]);
    assert_eq!(all(&budget, NOW + 5000), [Admit::Go; 3]);
}

#[test]
fn case_039_a_clock_that_is_set_back_makes_no_wait_longer() {
    let back = NOW - 6 * 3_600_000;
    let mut refused = Budget::default();
    refused.refused(NOW + 60_000, NOW);
    // Ten seconds into the wait.
    refused.rebase(NOW + 10_000);
    refused.rebase(back);
    assert_eq!(all(&refused, back), [Admit::WaitUntil(back + 50_000); 3]);

    let mut counted = of(&told(60, 0, 42_000));
    counted.rebase(back);
    assert_eq!(all(&counted, back), [Admit::WaitUntil(back + 42_000); 3]);
    counted.update(&told(60, 30, 42_000), back + 1000);
    assert_eq!(all(&counted, back + 1000), [Admit::Go; 3]);

    // A second back is a correction, and nothing that a wait should be cut for.
    let mut corrected = of(&told(60, 0, 42_000));
    corrected.rebase(NOW - 1000);
    assert_eq!(
        all(&corrected, NOW - 1000),
        [Admit::WaitUntil(NOW + 42_000); 3]
    );
}

#[test]
fn everyone_leaves_a_share_to_those_above() {
    let reset = Admit::WaitUntil(NOW + 1000);
    let at = |left| all(&of(&told(100, left, 1000)), NOW);
    assert_eq!(at(100), [Admit::Go; 3]);
    assert_eq!(at(21), [Admit::Go; 3]);
    assert_eq!(at(20), [Admit::Go, Admit::Go, reset]);
    assert_eq!(at(6), [Admit::Go, Admit::Go, reset]);
    assert_eq!(at(5), [Admit::Go, reset, reset]);
    assert_eq!(at(1), [Admit::Go, reset, reset]);
    assert_eq!(at(0), [reset; 3]);
}

#[test]
fn a_limit_of_a_handful_stays_usable() {
    for allowed in 1..5 {
        assert_eq!(
            all(&of(&told(allowed, allowed, 1000)), NOW),
            [Admit::Go; 3],
            "{allowed}"
        );
    }
    assert_eq!(
        admit(&of(&told(1, 1, 1000)), NOW, Priority::Backfill),
        Admit::Go
    );
}

#[test]
fn a_reserve_is_kept_for_other_programs_by_everyone() {
    let budget = of(&told(100, 50, 1000));
    for priority in [Priority::Person, Priority::Schedule, Priority::Backfill] {
        assert_eq!(
            budget.admit(NOW, 1, priority, 0.5),
            Admit::WaitUntil(NOW + 1000)
        );
    }
    assert_eq!(budget.admit(NOW, 1, Priority::Person, 0.4), Admit::Go);
    // A reserve of nonsense is none.
    assert_eq!(budget.admit(NOW, 1, Priority::Person, f64::NAN), Admit::Go);
    assert_eq!(budget.admit(NOW, 1, Priority::Person, -3.0), Admit::Go);
}

#[test]
fn plenty_slows_nobody_down_and_the_rest_is_spread() {
    let mut budget = of(&told(5000, 5000, HOUR));
    budget.spend(1, NOW);
    assert_eq!(admit(&budget, NOW, Priority::Schedule), Admit::Go);
    assert_eq!(admit(&budget, NOW, Priority::Person), Admit::Go);
    // Backfill spends what is spare evenly: 3,999 of 4,999 in an hour.
    let Admit::WaitUntil(next) = admit(&budget, NOW, Priority::Backfill) else {
        panic!()
    };
    assert!((890..910).contains(&(next - NOW)), "{}", next - NOW);

    // The second half lasts until the reset: 2,250 calls in 50 minutes.
    let mut budget = of(&told(5000, 2501, 3_000_000));
    budget.spend(1, NOW);
    assert_eq!(admit(&budget, NOW, Priority::Person), Admit::Go);
    budget.spend(1, NOW);
    let Admit::WaitUntil(next) = admit(&budget, NOW, Priority::Schedule) else {
        panic!()
    };
    assert!((1300..1400).contains(&(next - NOW)), "{}", next - NOW);
    assert_eq!(admit(&budget, next, Priority::Schedule), Admit::Go);
}

#[test]
fn a_pace_that_was_fine_is_not_slowed() {
    let half_gone = Limit {
        per: Some(HOUR),
        ..told(100, 40, HOUR / 4)
    };
    let mut budget = of(&half_gone);
    budget.spend(1, NOW);
    // 39 % left with a quarter of the time.
    assert_eq!(admit(&budget, NOW, Priority::Schedule), Admit::Go);
    let mut budget = of(&Limit {
        per: Some(HOUR),
        ..told(100, 40, HOUR / 2)
    });
    budget.spend(1, NOW);
    assert!(matches!(
        admit(&budget, NOW, Priority::Schedule),
        Admit::WaitUntil(_)
    ));
}

#[test]
fn a_new_window_is_full() {
    let mut budget = of(&told(10, 0, 1000));
    let later = NOW + 1000;
    budget.spend(1, later);
    assert_eq!(budget.remaining, Some(9));
    assert_eq!(admit(&budget, later, Priority::Schedule), Admit::Go);
    budget.update(&told(10, 4, 1000), later + 10);
    assert_eq!(budget.remaining, Some(4));
    assert_eq!(budget.resets_at, Some(later + 1010));
}

#[test]
fn a_leaky_bucket_is_spent_as_it_refills() {
    let leaky = Limit {
        restores: Some(2.0),
        resets_in: None,
        ..told(40, 1, 0)
    };
    let budget = of(&leaky);
    assert_eq!(admit(&budget, NOW, Priority::Person), Admit::Go);
    // The schedule leaves 2 of 40: it needs 3, and 2 more come back in a second.
    assert_eq!(
        admit(&budget, NOW, Priority::Schedule),
        Admit::WaitUntil(NOW + 1000)
    );
    assert_eq!(admit(&budget, NOW + 1000, Priority::Schedule), Admit::Go);
    assert_eq!(
        admit(&budget, NOW, Priority::Backfill),
        Admit::WaitUntil(NOW + 4000)
    );
    // What has come back is not counted twice, and never above the limit.
    let mut budget = of(&leaky);
    budget.spend(1, NOW + 1000);
    budget.spend(1, NOW + 1000);
    assert_eq!(budget.remaining, Some(1));
    budget.spend(1, NOW + 1_000_000);
    assert_eq!(budget.remaining, Some(39));
}

#[test]
fn an_empty_bucket_that_does_not_say_when_is_tried_again() {
    let silent = |per| Limit {
        resets_in: None,
        per,
        ..told(100, 0, 0)
    };
    let until = |per| match admit(&of(&silent(per)), NOW, Priority::Schedule) {
        Admit::WaitUntil(until) => (until - NOW).unsigned_abs(),
        Admit::Go => 0,
    };
    assert_eq!(until(None), RETRY_EMPTY);
    assert_eq!(until(Some(10_000)), 10_000);
    assert_eq!(until(Some(24 * HOUR)), RETRY_EMPTY_MOST);
    assert_eq!(
        admit(&of(&silent(None)), NOW + 60_000, Priority::Backfill),
        Admit::Go
    );
}

#[test]
fn slots_for_concurrent_requests_are_no_quota() {
    let slots = |left| Limit {
        quota_unit: "concurrent-requests".into(),
        resets_in: None,
        ..told(80, left, 0)
    };
    let mut budget = of(&slots(3));
    for _ in 0..100 {
        assert_eq!(all(&budget, NOW), [Admit::Go; 3]);
        budget.spend(1, NOW);
    }
    assert_eq!(budget.remaining, Some(3));
    assert_eq!(
        admit(&of(&slots(0)), NOW, Priority::Person),
        Admit::WaitUntil(after(NOW, RETRY_SLOT))
    );
}

#[test]
fn case_023_a_high_percentage_slows_down_at_once() {
    let usage = |used| Limit {
        used_percent: Some(used),
        ..Limit::default()
    };
    let waits = |used| all(&of(&usage(used)), NOW);
    let wait = |seconds: i64| Admit::WaitUntil(NOW + seconds * 1000);
    assert_eq!(waits(12.0), [Admit::Go; 3]);
    assert_eq!(waits(75.0), [Admit::Go, wait(5), wait(5)]);
    assert_eq!(waits(80.0), [Admit::Go, wait(5), wait(300)]);
    assert_eq!(waits(96.0), [Admit::Go, wait(60), wait(300)]);
    assert_eq!(waits(100.0), [wait(300); 3]);
    // The most restrictive decides, in any order.
    let (business, app) = (of(&usage(96.0)), of(&usage(12.0)));
    for pair in [[&business, &app], [&app, &business]] {
        assert_eq!(admit_all(pair, NOW, 1, Priority::Schedule, 0.0), wait(60));
    }
    // Each call is followed by the pause, and old news is forgotten.
    let mut budget = of(&usage(96.0));
    budget.spend(1, NOW + 60_000);
    assert_eq!(admit(&budget, NOW + 60_000, Priority::Schedule), wait(120));
    assert_eq!(
        admit(&budget, NOW + 3_600_000, Priority::Schedule),
        Admit::Go
    );
}

#[test]
fn a_time_to_regain_access_holds_everyone() {
    let blocked = Limit {
        used_percent: Some(100.0),
        wait: Some(19 * 60_000),
        ..Limit::default()
    };
    let budget = of(&blocked);
    assert_eq!(all(&budget, NOW), [Admit::WaitUntil(NOW + 19 * 60_000); 3]);
}

#[test]
fn what_a_call_costs_is_learned_where_requests_are_not_counted() {
    let points = |left| Limit {
        quota_unit: "points".into(),
        ..told(1000, left, HOUR)
    };
    let mut budget = of(&points(1000));
    for call in 1..=9 {
        budget.spend(1, NOW);
        budget.update(&points(1000 - call * 100), NOW);
    }
    // 100 left, 50 are kept for people: a call that costs 100 does not fit any more.
    assert!(matches!(
        admit(&budget, NOW, Priority::Schedule),
        Admit::WaitUntil(_)
    ));
    assert_eq!(admit(&budget, NOW, Priority::Person), Admit::Go);
    budget.spend(1, NOW);
    assert_eq!(budget.remaining, Some(0));
}

#[test]
fn answers_without_a_count_keep_what_is_known() {
    let mut budget = of(&told(100, 50, HOUR));
    budget.spend(1, NOW);
    budget.update(
        &Limit {
            quota_unit: "requests".into(),
            limit: Some(100),
            ..Limit::default()
        },
        NOW + 5,
    );
    assert_eq!(
        (budget.remaining, budget.resets_at),
        (Some(49), Some(NOW + 3_600_000))
    );
}

#[test]
fn it_survives_a_restart() {
    let mut budget = of(&told(100, 30, HOUR));
    budget.spend(3, NOW);
    budget.refused(NOW + 70_000, NOW);
    let stored = serde_json::to_string(&budget).unwrap();
    assert_eq!(serde_json::from_str::<Budget>(&stored).unwrap(), budget);
    // An entry of an older version is read with what it has.
    assert_eq!(
        serde_json::from_str::<Budget>("{}").unwrap(),
        Budget::default()
    );
}

#[test]
fn an_old_count_of_an_unknown_limit_is_measured_by_its_peak() {
    let unknown = |left| Limit {
        limit: None,
        ..told(0, left, HOUR)
    };
    let mut budget = of(&unknown(600));
    budget.update(&unknown(100), NOW);
    // 100 of 600 are fewer than the 20 % that backfill leaves.
    assert!(matches!(
        admit(&budget, NOW, Priority::Backfill),
        Admit::WaitUntil(_)
    ));
    assert_eq!(admit(&budget, NOW, Priority::Schedule), Admit::Go);
}

/// Plays a vendor with a fixed window and callers that call whenever they may; returns how many calls each of
/// `callers` got in each window.
fn play(allowed: u64, per: Duration, callers: &[Priority], windows: u64) -> Vec<Vec<u64>> {
    let mut budget = Budget::default();
    let mut all = Vec::new();
    let mut now = NOW;
    for window in 1..=windows {
        let reset = NOW + (per * window) as i64;
        let mut left = allowed;
        let mut calls = vec![0; callers.len()];
        while now < reset {
            let mut next = reset;
            for (caller, priority) in callers.iter().enumerate() {
                match budget.admit(now, 1, *priority, 0.0) {
                    Admit::Go => {
                        assert!(left > 0, "a call beyond the limit");
                        left -= 1;
                        calls[caller] += 1;
                        budget.spend(1, now);
                        let limit = Limit {
                            per: Some(per),
                            ..told(allowed, left, (reset - now).unsigned_abs())
                        };
                        budget.update(&limit, now);
                        next = next.min(now + 1);
                    }
                    Admit::WaitUntil(until) => {
                        assert!(until > now, "a wait that is over");
                        next = next.min(until);
                    }
                }
            }
            now = next;
        }
        all.push(calls);
    }
    all
}

#[test]
fn the_schedule_uses_its_share_and_lasts_until_the_reset() {
    for calls in play(1000, 100_000, &[Priority::Schedule], 3) {
        assert!((940..=950).contains(&calls[0]), "{calls:?}");
    }
}

#[test]
fn backfill_beside_the_schedule_takes_only_what_is_spare() {
    for calls in play(1000, 100_000, &[Priority::Schedule, Priority::Backfill], 3) {
        assert!(calls[0] > calls[1], "{calls:?}");
        assert!(calls[1] <= 800, "{calls:?}");
    }
    for calls in play(1000, 100_000, &[Priority::Backfill], 2) {
        assert!((700..=800).contains(&calls[0]), "{calls:?}");
    }
}

proptest! {
    #[test]
    fn the_limit_is_never_passed(allowed in 1_u64..300, per in 1000_u64..100_000, windows in 1_u64..4) {
        // `play` asserts it call by call.
        let calls = play(allowed, per, &[Priority::Person, Priority::Schedule, Priority::Backfill], windows);
        prop_assert!(calls.iter().all(|window| window.iter().sum::<u64>() <= allowed));
    }

    #[test]
    fn no_history_panics_or_waits_in_the_past(
        steps in proptest::collection::vec(
            (any::<(Option<u64>, Option<u64>, Option<u64>, Option<u64>, Option<u64>)>(), any::<(Option<f64>, Option<f64>)>(), any::<i64>(), 0_u8..4, any::<bool>()),
            1..20,
        ),
        reserve in any::<f64>(),
        cost in any::<u64>(),
    ) {
        let mut budget = Budget::default();
        for ((limit, remaining, per, resets_in, wait), (used_percent, restores), now, step, points) in steps {
            match step {
                0 => budget.refused(now.saturating_add(60_000), now),
                1 => budget.spend(cost, now),
                _ => {
                    let quota_unit = if points { "points" } else { "requests" }.to_owned();
                    let limit = Limit { limit, remaining, per, resets_in, wait, used_percent, restores, quota_unit, ..Limit::default() };
                    budget.update(&limit, now);
                }
            }
            for priority in [Priority::Person, Priority::Schedule, Priority::Backfill] {
                if let Admit::WaitUntil(until) = budget.admit(now, cost, priority, reserve) {
                    prop_assert!(until > now);
                }
            }
        }
    }

    #[test]
    fn who_stands_higher_never_waits_longer(allowed in 1_u64..1000, left in 0_u64..1000, resets_in in 1_u64..1_000_000, later in 0_i64..1_000_000) {
        let mut budget = of(&told(allowed, left.min(allowed), resets_in));
        budget.spend(1, NOW);
        let wait = |priority| match admit(&budget, NOW + later, priority) {
            Admit::Go => 0,
            Admit::WaitUntil(until) => until,
        };
        prop_assert!(wait(Priority::Person) <= wait(Priority::Schedule));
        prop_assert!(wait(Priority::Schedule) <= wait(Priority::Backfill));
    }
}
