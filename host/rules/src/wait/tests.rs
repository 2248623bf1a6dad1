use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::*;

/// 2031-03-04T10:00:00Z
const NOW: i64 = 1_930_384_800_000;
const AT: Anchor = Anchor {
    received: NOW,
    date: Some(NOW),
};
const MINUTE: Duration = 60_000;

struct Given {
    class: Class,
    headers: Vec<(String, String)>,
    body_wait: Option<Duration>,
    repeats: u32,
}

fn limited(lines: &[(&str, &str)]) -> Given {
    Given {
        class: Class::RateLimited,
        headers: lines
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body_wait: None,
        repeats: 0,
    }
}

impl Given {
    fn wait(&self) -> Option<Wait> {
        let reading = limits::read(&self.headers, &AT);
        vendor_wait(&Answer {
            class: self.class,
            headers: &self.headers,
            at: AT,
            body_wait: self.body_wait,
            limits: &reading.limits,
            repeats: self.repeats,
        })
    }
}

fn said(given: &Given) -> Option<(Duration, Source)> {
    given.wait().map(|wait| (wait.ms, wait.source))
}

#[test]
fn case_001_one_wait_of_ninety_seconds_late_side_only() {
    let given = limited(&[("Retry-After", "Tue, 04 Mar 2031 10:01:30 GMT")]);
    assert_eq!(said(&given), Some((90_000, Source::Explicit)));
    for seed in 0..200 {
        let due = due_in(given.wait(), 7, 0, &mut StdRng::seed_from_u64(seed));
        assert!((90_000..=94_500).contains(&due), "{due}");
    }
}

#[test]
fn case_003_decimal_seconds() {
    assert_eq!(
        said(&limited(&[("Retry-After", "299.997")])),
        Some((300_000, Source::Explicit))
    );
}

#[test]
fn case_005_an_unusable_value_asks_for_ordinary_backoff() {
    for value in ["-1", "0", "", "soon"] {
        let mut given = limited(&[("Retry-After", value)]);
        for repeats in 0..3 {
            given.repeats = repeats;
            assert_eq!(given.wait(), None, "{value:?}");
            let backoff = 5000 << repeats;
            assert_eq!(
                due_in(
                    given.wait(),
                    backoff,
                    repeats,
                    &mut StdRng::seed_from_u64(1)
                ),
                backoff
            );
        }
    }
}

#[test]
fn case_007_a_limit_without_a_number_waits_a_minute_and_grows() {
    let mut given = limited(&[("content-type", "application/json")]);
    let mut waits = Vec::new();
    for repeats in 0..8 {
        given.repeats = repeats;
        let (ms, source) = said(&given).unwrap();
        assert_eq!(source, Source::Penalty);
        waits.push(ms / MINUTE);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    given.repeats = u32::MAX;
    assert_eq!(said(&given), Some((PENALTY_CAP, Source::Penalty)));
}

#[test]
fn case_009_an_hour_is_an_hour_on_any_status() {
    let mut given = limited(&[("Retry-After", "3600")]);
    given.class = Class::Temporary;
    assert_eq!(
        given.wait(),
        Some(Wait {
            ms: 3_600_000,
            source: Source::Explicit,
            absurd: false
        })
    );
    let days = limited(&[("Retry-After", "259200")]);
    assert_eq!(
        days.wait(),
        Some(Wait {
            ms: 259_200_000,
            source: Source::Explicit,
            absurd: true
        })
    );
}

#[test]
fn case_011_a_date_that_is_over_is_due_now_and_no_hot_loop() {
    let given = limited(&[("Retry-After", "Tue, 04 Mar 2031 09:59:20 GMT")]);
    let wait = given.wait();
    assert_eq!(said(&given), Some((0, Source::Explicit)));
    let rng = &mut StdRng::seed_from_u64(3);
    assert!(due_in(wait, 5000, 0, rng) <= LATE_MIN);
    assert!(due_in(wait, 10_000, 1, rng) >= 10_000);
}

#[test]
fn case_013_a_reset_in_milliseconds() {
    let given = limited(&[
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1930384860000"),
    ]);
    assert_eq!(said(&given), Some((60_000, Source::Reset)));
}

#[test]
fn case_015_a_reset_in_the_past_is_due_now() {
    let given = limited(&[("X-RateLimit-Reset", "1930384795")]);
    assert_eq!(said(&given), Some((0, Source::Reset)));
    let given = limited(&[
        ("X-RateLimit-Reset", "1930384795"),
        ("X-RateLimit-Remaining", "0"),
    ]);
    assert_eq!(said(&given), Some((0, Source::Reset)));
}

#[test]
fn case_017_a_limit_that_only_the_body_tells() {
    let given = limited(&[
        ("content-type", "application/json"),
        ("date", "Tue, 04 Mar 2031 10:00:00 GMT"),
    ]);
    assert!(said(&given).unwrap().0 >= MINUTE);
}

#[test]
fn case_021_counts_that_are_left_describe_another_bucket() {
    let given = limited(&[
        ("X-RateLimit-Remaining", "29"),
        ("X-RateLimit-Reset", "1930384842"),
    ]);
    // The reset is 42 s away; the floor is later.
    assert_eq!(said(&given), Some((60_000, Source::Penalty)));
    let given = limited(&[
        ("X-RateLimit-Remaining", "29"),
        ("X-RateLimit-Reset", "1930385400"),
    ]);
    assert_eq!(said(&given), Some((600_000, Source::Reset)));
    // The same headers on a failure that is no limit say nothing.
    let mut given = given;
    given.class = Class::Temporary;
    assert_eq!(given.wait(), None);
}

#[test]
fn the_vendors_signals_in_their_order() {
    let spent = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "600")];
    let usage = (
        "x-app-usage",
        r#"{"call_count":100,"estimated_time_to_regain_access":3}"#,
    );
    let explicit = ("retry-after", "10");
    assert_eq!(said(&limited(&spent)), Some((600_000, Source::Reset)));
    assert_eq!(
        said(&limited(&[spent[0], spent[1], usage])),
        Some((180_000, Source::Usage))
    );
    assert_eq!(
        said(&limited(&[spent[0], spent[1], usage, explicit])),
        Some((10_000, Source::Explicit))
    );
    // An unusable word gives way to the next signal, one that is over too.
    assert_eq!(
        said(&limited(&[spent[0], spent[1], ("retry-after", "0")])),
        Some((600_000, Source::Reset))
    );
    let over = ("retry-after", "Tue, 04 Mar 2031 09:59:20 GMT");
    assert_eq!(
        said(&limited(&[spent[0], spent[1], over])),
        Some((600_000, Source::Reset))
    );
}

#[test]
fn the_longer_of_the_headers_and_the_bodys_wait() {
    let mut given = limited(&[("retry-after", "65")]);
    given.body_wait = Some(64_570);
    assert_eq!(said(&given), Some((65_000, Source::Explicit)));
    given.body_wait = Some(300_000);
    assert_eq!(said(&given), Some((300_000, Source::Explicit)));
    let mut given = limited(&[]);
    given.body_wait = Some(0);
    assert_eq!(given.wait(), None);
}

#[test]
fn of_several_spent_buckets_the_last_reset_counts() {
    let given = limited(&[
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "20s"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "6m0s"),
        ("x-ratelimit-remaining-images", "7"),
        ("x-ratelimit-reset-images", "9h"),
    ]);
    assert_eq!(said(&given), Some((360_000, Source::Reset)));
}

#[test]
fn of_several_unspent_buckets_the_one_with_the_smallest_share() {
    let given = limited(&[
        ("x-ratelimit-limit-hourly", "100"),
        ("x-ratelimit-remaining-hourly", "3"),
        ("x-ratelimit-reset-hourly", "120"),
        ("x-ratelimit-limit-daily", "100"),
        ("x-ratelimit-remaining-daily", "90"),
        ("x-ratelimit-reset-daily", "80000"),
    ]);
    assert_eq!(said(&given), Some((120_000, Source::Reset)));
}

#[test]
fn no_number_and_no_limit_is_ordinary_backoff() {
    for class in [Class::Temporary, Class::Incomplete, Class::Unknown] {
        let given = Given {
            class,
            ..limited(&[])
        };
        assert_eq!(given.wait(), None);
    }
}

proptest! {
    #[test]
    fn nothing_is_ever_due_before_the_vendors_wait(ms in any::<u64>(), backoff in any::<u64>(), repeats in any::<u32>(), seed in any::<u64>()) {
        let wait = Wait::new(ms, Source::Explicit);
        let due = due_in(Some(wait), backoff, repeats, &mut StdRng::seed_from_u64(seed));
        prop_assert!(due >= ms);
        prop_assert!(ms == 0 || due <= ms.saturating_add(LATE_MAX));
        prop_assert_eq!(wait.absurd, ms > 86_400_000);
    }

    #[test]
    fn waits_of_one_reset_are_spread(ms in 60_000_u64..3_600_000) {
        let rng = &mut StdRng::seed_from_u64(ms);
        let mut due: Vec<_> = (0..20).map(|_| late(ms, rng)).collect();
        due.sort_unstable();
        due.dedup();
        prop_assert!(due.len() > 10);
    }
}
