use proptest::prelude::*;

use super::*;
use crate::model::Scope;

/// 2031-03-04T10:00:00Z
const NOW: i64 = 1_930_384_800_000;
const AT: Anchor = Anchor {
    received: NOW,
    date: Some(NOW),
};
const DAY: u64 = 86_400_000;

fn reading(lines: &[(&str, &str)]) -> Reading {
    let headers: Vec<_> = lines
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    read(&headers, &AT)
}

/// The limits of headers that are all understood.
fn limits(lines: &[(&str, &str)]) -> Vec<Limit> {
    let reading = reading(lines);
    assert_eq!(reading.ignored, [""; 0]);
    reading.limits
}

fn only(lines: &[(&str, &str)]) -> Limit {
    let mut limits = limits(lines);
    assert_eq!(limits.len(), 1, "{limits:#?}");
    limits.remove(0)
}

fn bucket<'a>(limits: &'a [Limit], name: &str) -> &'a Limit {
    limits
        .iter()
        .find(|limit| limit.bucket.as_deref() == Some(name))
        .unwrap_or_else(|| panic!("no bucket {name} in {limits:#?}"))
}

/// limit, remaining, seconds to the reset
fn trio(limit: &Limit) -> (Option<u64>, Option<u64>, Option<u64>) {
    (
        limit.limit,
        limit.remaining,
        limit.resets_in.map(|ms| ms.div_ceil(1000)),
    )
}

mod structured_fields {
    use super::*;

    #[test]
    fn named_policies_and_limits() {
        let found = limits(&[
            (
                "RateLimit-Policy",
                r#""burst";q=100;w=60,"daily";q=1000;w=86400"#,
            ),
            ("RateLimit", r#""burst";r=50;t=30, "daily";r=900"#),
        ]);
        let burst = bucket(&found, "burst");
        assert_eq!(trio(burst), (Some(100), Some(50), Some(30)));
        assert_eq!(
            (burst.per, burst.quota_unit.as_str()),
            (Some(60_000), "requests")
        );
        assert_eq!(burst.scope, Scope::Credential);
        let daily = bucket(&found, "daily");
        assert_eq!(
            (trio(daily), daily.per),
            ((Some(1000), Some(900), None), Some(DAY))
        );
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn units_other_than_requests() {
        let found = limits(&[
            (
                "ratelimit",
                r#""minuteRate";r=1334, "concurrency";r=79, "complexityMinute";r=4999840;t=60"#,
            ),
            (
                "ratelimit-policy",
                r#""concurrency";q=80;qu="concurrent-requests""#,
            ),
            (
                "ratelimit-policy",
                r#""complexityMinute";q=5000000;w=60;qu="content-bytes";pk=:cHsdsRa894==:"#,
            ),
        ]);
        assert_eq!(bucket(&found, "minuteRate").remaining, Some(1334));
        let slots = bucket(&found, "concurrency");
        assert_eq!(
            (slots.quota_unit.as_str(), slots.limit, slots.remaining),
            ("concurrent-requests", Some(80), Some(79))
        );
        let bytes = bucket(&found, "complexityMinute");
        assert_eq!(
            (bytes.quota_unit.as_str(), bytes.per),
            ("bytes", Some(60_000))
        );
        assert_eq!(trio(bytes), (Some(5_000_000), Some(4_999_840), Some(60)));
    }

    #[test]
    fn under_a_beta_prefix() {
        let limit = only(&[
            (
                "Beta-RateLimit-Policy",
                r#""global-app-quota";q=65000;w=3600"#,
            ),
            ("Beta-RateLimit", r#""global-app-quota";r=11000;t=600"#),
        ]);
        assert_eq!(limit.bucket.as_deref(), Some("global-app-quota"));
        assert_eq!(trio(&limit), (Some(65_000), Some(11_000), Some(600)));
        assert_eq!(limit.scope, Scope::App);
    }

    #[test]
    fn a_malformed_field_is_left_out_whole() {
        let reading = reading(&[
            ("RateLimit", r#""burst";r=50;t=30, "daily"#),
            ("x-ratelimit-remaining", "7"),
        ]);
        assert_eq!(reading.limits.len(), 1);
        assert_eq!(reading.limits[0].remaining, Some(7));
        assert_eq!(reading.ignored.len(), 1);
        assert!(
            reading.ignored[0].contains("RateLimit") || reading.ignored[0].contains("ratelimit")
        );
    }

    #[test]
    fn unknown_parameters_are_comments_and_wrong_ones_are_left_out() {
        let limit = only(&[("RateLimit", r#""a";r=5;colour="red";t=9"#)]);
        assert_eq!(trio(&limit), (None, Some(5), Some(9)));
        let limit = only(&[("RateLimit", r#""a";r=-5;t=9"#)]);
        assert_eq!(trio(&limit), (None, None, Some(9)));
    }
}

mod older_drafts {
    use super::*;

    #[test]
    fn a_list_of_policies_behind_the_limit() {
        let limit = only(&[
            ("RateLimit-Limit", "100, 100;w=60, 1000;w=3600"),
            ("RateLimit-Remaining", "12"),
            ("RateLimit-Reset", "30"),
        ]);
        assert_eq!(
            (trio(&limit), limit.per),
            ((Some(100), Some(12), Some(30)), Some(60_000))
        );
        let limit = only(&[
            ("ratelimit-limit", "350, 350;w=1, 3500;w=60"),
            ("ratelimit-remaining", "349"),
            ("ratelimit-reset", "0"),
        ]);
        assert_eq!(
            (trio(&limit), limit.per),
            ((Some(350), Some(349), Some(0)), Some(1000))
        );
        let limit = only(&[(
            "X-Ratelimit-Limit",
            r#"100, 100;window=1;name="safety_net", 1000;w=60;name="ads_read""#,
        )]);
        assert_eq!((limit.limit, limit.per), (Some(100), Some(1000)));
    }

    #[test]
    fn the_policy_in_a_header_of_its_own() {
        let limit = only(&[
            ("RateLimit-Limit", "300"),
            ("RateLimit-Remaining", "283"),
            ("RateLimit-Reset", "872"),
            ("RateLimit-Policy", "300;w=900"),
        ]);
        assert_eq!(
            (trio(&limit), limit.per),
            ((Some(300), Some(283), Some(872)), Some(900_000))
        );
    }

    #[test]
    fn pairs_with_commas_and_with_semicolons() {
        let limit = only(&[
            ("RateLimit", "limit=100, remaining=50, reset=5"),
            ("RateLimit-Policy", "100;w=10"),
        ]);
        assert_eq!(
            (trio(&limit), limit.per),
            ((Some(100), Some(50), Some(5)), Some(10_000))
        );
        let limit = only(&[("RateLimit", "limit=240; remaining=239; reset=8")]);
        assert_eq!(trio(&limit), (Some(240), Some(239), Some(8)));
    }

    #[test]
    fn standard_names_with_an_epoch() {
        let limit = only(&[
            ("ratelimit-limit", "2000"),
            ("ratelimit-remaining", "1992"),
            ("ratelimit-observed", "8"),
            ("ratelimit-name", "throttle_authenticated_api"),
            ("ratelimit-reset", "1930384860"),
            ("RateLimit-ResetTime", "Tue, 04 Mar 2031 10:01:00 GMT"),
        ]);
        assert_eq!(limit.bucket.as_deref(), Some("throttle_authenticated_api"));
        assert_eq!(trio(&limit), (Some(2000), Some(1992), Some(60)));
    }
}

mod one_value_a_header {
    use super::*;

    /// The seconds that a spent bucket's reset is away.
    fn reset(name: &str, value: &str) -> Option<u64> {
        only(&[("x-ratelimit-remaining", "0"), (name, value)]).resets_in
    }

    #[test]
    fn case_013_the_unit_that_lands_near_now() {
        assert_eq!(reset("X-RateLimit-Reset", "1930384860000"), Some(60_000));
        assert_eq!(reset("X-RateLimit-Reset", "1930384860"), Some(60_000));
        assert_eq!(reset("X-RateLimit-Reset", "60"), Some(60_000));
        assert_eq!(reset("X-RateLimit-Reset", "1930384860.143"), Some(60_143));
        assert_eq!(reset("X-RateLimit-Reset", "7.550697"), Some(7551));
        assert_eq!(
            reset("X-RateLimit-Reset", "2031-03-04T10:00:37.9606191Z"),
            Some(37_960)
        );
        assert_eq!(
            reset("X-RateLimit-Reset", "2031-03-04T10:01Z"),
            Some(60_000)
        );
        assert_eq!(
            reset("X-RateLimit-Reset", "Tue, 04 Mar 2031 10:01:00 GMT"),
            Some(60_000)
        );
        assert_eq!(reset("X-RateLimit-Reset", "6m0s"), Some(360_000));
        assert_eq!(reset("X-RateLimit-Reset-After", "10.000"), Some(10_000));
        assert_eq!(reset("X-RateLimit-Reset-Ms", "27928"), Some(27_928));
    }

    #[test]
    fn case_015_a_reset_in_the_past_has_happened() {
        let limit = only(&[("X-RateLimit-Reset", "1930384795")]);
        assert_eq!(limit.resets_in, Some(0));
    }

    #[test]
    fn the_reset_counts_from_the_answers_own_date() {
        let headers = [("x-ratelimit-reset".to_owned(), "1930384860".to_owned())];
        let at = Anchor {
            received: NOW - 3_600_000,
            date: Some(NOW),
        };
        assert_eq!(read(&headers, &at).limits[0].resets_in, Some(60_000));
    }

    #[test]
    fn seconds_that_overshoot_their_window_are_milliseconds() {
        let found = limits(&[
            ("x-ratelimit-limit-daily", "200000"),
            ("x-ratelimit-daily-remaining", "199000"),
            ("x-ratelimit-daily-reset", "83011000"),
            ("x-ratelimit-interval-milliseconds", "10000"),
            ("x-ratelimit-max", "100"),
            ("x-ratelimit-remaining", "98"),
        ]);
        let daily = bucket(&found, "daily");
        assert_eq!(
            (trio(daily), daily.per),
            ((Some(200_000), Some(199_000), Some(83_011)), Some(DAY))
        );
        let short = found.iter().find(|limit| limit.bucket.is_none()).unwrap();
        assert_eq!(
            (trio(short), short.per),
            ((Some(100), Some(98), None), Some(10_000))
        );
    }

    #[test]
    fn an_identity_in_a_header_of_its_own() {
        let limit = only(&[
            ("x-ratelimit-limit", "5000"),
            ("x-ratelimit-remaining", "4999"),
            ("x-ratelimit-used", "1"),
            ("x-ratelimit-reset", "1930388400"),
            ("x-ratelimit-resource", "core"),
        ]);
        assert_eq!(limit.bucket.as_deref(), Some("core"));
        assert_eq!(trio(&limit), (Some(5000), Some(4999), Some(3600)));

        let limit = only(&[
            ("X-RateLimit-Limit", "5"),
            ("X-RateLimit-Remaining", "0"),
            ("X-RateLimit-Reset", "1930384801.143"),
            ("X-RateLimit-Reset-After", "1.050"),
            ("X-RateLimit-Bucket", "abcd1234"),
            ("X-RateLimit-Scope", "shared"),
            ("X-RateLimit-Global", "true"),
        ]);
        assert_eq!(
            (limit.bucket.as_deref(), limit.resets_in),
            (Some("abcd1234"), Some(1050))
        );

        let limit = only(&[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-period", "10"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset", "3"),
            ("x-ratelimit-name", "list_hosts"),
        ]);
        assert_eq!(
            (limit.bucket.as_deref(), limit.per),
            (Some("list_hosts"), Some(10_000))
        );
    }

    #[test]
    fn a_decimal_count() {
        let limit = only(&[
            ("x-ratelimit-used", "1"),
            ("x-ratelimit-remaining", "599.0"),
            ("x-ratelimit-reset", "82"),
        ]);
        assert_eq!(trio(&limit), (None, Some(599), Some(82)));
    }

    #[test]
    fn what_is_left_from_what_is_used() {
        let limit = only(&[("x-ratelimit-limit", "100"), ("x-ratelimit-used", "40")]);
        assert_eq!(limit.remaining, Some(60));
        let limit = only(&[("x-ratelimit-limit", "100"), ("x-ratelimit-used", "140")]);
        assert_eq!(limit.remaining, Some(0));
        let limit = only(&[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "-3"),
        ]);
        assert_eq!(limit.remaining, Some(0));
    }

    #[test]
    fn buckets_in_the_names() {
        let found = limits(&[
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-limit-tokens", "30000"),
            ("x-ratelimit-remaining-requests", "499"),
            ("x-ratelimit-remaining-tokens", "29000"),
            ("x-ratelimit-reset-requests", "120ms"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ]);
        assert_eq!(bucket(&found, "requests").resets_in, Some(120));
        let tokens = bucket(&found, "tokens");
        assert_eq!(
            (trio(tokens), tokens.quota_unit.as_str()),
            ((Some(30_000), Some(29_000), Some(360)), "tokens")
        );
        assert_eq!(found.len(), 2);

        let found = limits(&[
            ("x-ratelimit-requests-limit", "5000"),
            ("x-ratelimit-requests-remaining", "4990"),
            ("x-ratelimit-requests-reset", "1930388400000"),
            ("x-ratelimit-complexity-limit", "2000000"),
            ("x-ratelimit-complexity-remaining", "1999991"),
            ("x-ratelimit-complexity-reset", "1930388400000"),
            ("x-complexity", "9"),
        ]);
        assert_eq!(
            trio(bucket(&found, "requests")),
            (Some(5000), Some(4990), Some(3600))
        );
        assert_eq!(bucket(&found, "complexity").quota_unit, "points");

        let found = limits(&[
            ("ratelimit-limit", "3, 3;w=1, 60;w=60"),
            ("ratelimit-remaining", "2"),
            ("ratelimit-reset", "0"),
            ("ratelimit-remaining-daily", "100"),
            ("ratelimit-reset-daily", "69112"),
        ]);
        assert_eq!(
            trio(bucket(&found, "daily")),
            (None, Some(100), Some(69_112))
        );
        let found = limits(&[
            ("x-ratelimit-remaining-call_join", "0"),
            ("x-ratelimit-reset-call_join", "587"),
        ]);
        assert_eq!(
            trio(bucket(&found, "call_join")),
            (None, Some(0), Some(587))
        );
    }

    #[test]
    fn periods_in_the_names() {
        let found = limits(&[
            ("X-HubSpot-RateLimit-Max", "110"),
            ("X-HubSpot-RateLimit-Remaining", "108"),
            ("X-HubSpot-RateLimit-Interval-Milliseconds", "10000"),
            ("X-HubSpot-RateLimit-Secondly", "11"),
            ("X-HubSpot-RateLimit-Secondly-Remaining", "10"),
            ("X-HubSpot-RateLimit-Daily", "250000"),
            ("X-HubSpot-RateLimit-Daily-Remaining", "249999"),
        ]);
        let of = |name| {
            let limit = bucket(&found, name);
            (limit.limit, limit.remaining, limit.per)
        };
        assert_eq!(of("hubspot"), (Some(110), Some(108), Some(10_000)));
        assert_eq!(of("hubspot-secondly"), (Some(11), Some(10), Some(1000)));
        assert_eq!(
            of("hubspot-daily"),
            (Some(250_000), Some(249_999), Some(DAY))
        );

        let found = limits(&[
            ("x-rate-limit-minute", "50"),
            ("x-minute-requests-left", "49"),
            ("x-rate-limit-24-hour", "600"),
            ("x-24-hour-requests-left", "598"),
        ]);
        assert_eq!(trio(bucket(&found, "minute")), (Some(50), Some(49), None));
        let day = bucket(&found, "24-hour");
        assert_eq!(
            (trio(day), day.per),
            ((Some(600), Some(598), None), Some(DAY))
        );
    }

    #[test]
    fn names_with_other_words_for_the_same() {
        let found = limits(&[
            ("x-rate-limit-requests-left", "149"),
            ("x-rate-limit-requests-quota", "150"),
            ("x-rate-limit-time-reset-ms", "27928"),
            ("x-rate-limit-time-window-ms", "30000"),
        ]);
        let limit = bucket(&found, "requests");
        assert_eq!(
            (limit.limit, limit.remaining, limit.resets_in, limit.per),
            (Some(150), Some(149), Some(27_928), Some(30_000))
        );
        assert_eq!(found.len(), 1);

        let found = limits(&[
            ("x-rate-limit-api-key-interval-ms", "10000"),
            ("x-rate-limit-api-key-max", "300"),
            ("x-rate-limit-api-key-remaining", "299"),
            ("x-rate-limit-db-query-time-interval-ms", "600000"),
            ("x-rate-limit-db-query-time-max", "7200000"),
            ("x-rate-limit-db-query-time-remaining", "7199990"),
        ]);
        let key = bucket(&found, "api-key");
        assert_eq!(
            (key.limit, key.remaining, key.per),
            (Some(300), Some(299), Some(10_000))
        );
        assert_eq!(bucket(&found, "db-query-time").per, Some(600_000));

        let limit = only(&[
            ("X-RateLimit-Total", "700"),
            ("X-RateLimit-Remaining", "699"),
            ("X-RateLimit-Used-CurrentRequest", "1"),
        ]);
        assert_eq!(trio(&limit), (Some(700), Some(699), None));

        let found = limits(&[
            ("x-daily-ratelimit-token-limit", "30000"),
            ("x-daily-ratelimit-token-remaining", "29990"),
        ]);
        assert_eq!(bucket(&found, "daily-token").quota_unit, "tokens");
    }

    #[test]
    fn a_period_where_the_limit_should_be() {
        let limit = only(&[
            ("x-rate-limit-limit", "1s"),
            ("x-rate-limit-remaining", "9"),
            ("x-rate-limit-reset", "2031-03-04T10:00:01.0000000Z"),
        ]);
        assert_eq!(
            (limit.limit, limit.per, limit.resets_in),
            (None, Some(1000), Some(1000))
        );
    }

    #[test]
    fn hints_that_are_no_limits() {
        let none = limits(&[
            ("x-ratelimit-nearlimit", "true"),
            ("x-ratelimit-reason", "burst"),
            ("x-ratelimit-tier", "free"),
            ("x-ratelimit-retry-after", "5"),
            ("x-poll-interval", "60"),
            ("x-limited-edition", "1"),
            ("content-length", "12"),
            ("retry-after", "9"),
            ("access-control-expose-headers", "x-ratelimit-limit"),
        ]);
        assert_eq!(none, []);
    }
}

mod several_families {
    use super::*;

    #[test]
    fn siblings_that_agree_are_one_bucket() {
        let limit = only(&[
            ("X-Rate-Limit", "400"),
            ("X-Rate-Limit-Remaining", "398"),
            ("ratelimit-limit", "400"),
            ("ratelimit-remaining", "399"),
            ("ratelimit-reset", "48"),
        ]);
        assert_eq!(trio(&limit), (Some(400), Some(398), Some(48)));
        assert_eq!(limit.bucket, None);
    }

    #[test]
    fn siblings_that_disagree_are_all_kept() {
        let found = limits(&[
            ("RateLimit", "limit=240, remaining=239, reset=8"),
            ("ratelimit-limit", "60"),
            ("ratelimit-remaining", "59"),
            ("ratelimit-reset", "1"),
        ]);
        let first = found.iter().find(|limit| limit.bucket.is_none()).unwrap();
        assert_eq!(trio(first), (Some(240), Some(239), Some(8)));
        assert_eq!(
            trio(bucket(&found, "ratelimit")),
            (Some(60), Some(59), Some(1))
        );
    }

    #[test]
    fn an_incoherent_trio_is_never_divided_by() {
        let reading = reading(&[
            ("x-ratelimit-limit", "10"),
            ("x-ratelimit-remaining", "4990"),
            ("x-ratelimit-reset", "30"),
        ]);
        assert_eq!(trio(&reading.limits[0]), (None, Some(10), Some(30)));
        assert_eq!(reading.ignored.len(), 1);
        let zero = reading_of_zero();
        assert_eq!(zero.limits[0].limit, None);
        assert_eq!(zero.limits[0].remaining, Some(0));
    }

    fn reading_of_zero() -> Reading {
        reading(&[("x-ratelimit-limit", "0"), ("x-ratelimit-remaining", "0")])
    }

    #[test]
    fn lines_of_one_name_are_all_read() {
        let limit = only(&[
            ("x-ratelimit-remaining", "10"),
            ("X-RateLimit-Remaining", "5"),
            ("x-ratelimit-reset", "9"),
            ("x-ratelimit-reset", "30"),
        ]);
        assert_eq!(trio(&limit), (None, Some(5), Some(30)));
    }

    #[test]
    fn endpoint_buckets_as_pairs() {
        let found = limits(&[
            ("ratelimit-limit", "400"),
            ("ratelimit-remaining", "399"),
            ("ratelimit-reset", "48"),
            (
                "zendesk-ratelimit-tickets-index",
                "total=100; remaining=98; resets=30",
            ),
            (
                "zendesk-ratelimit-incremental-exports-cursor",
                "total=20; remaining=0; resets=60",
            ),
        ]);
        assert_eq!(
            trio(bucket(&found, "zendesk-tickets-index")),
            (Some(100), Some(98), Some(30))
        );
        assert_eq!(
            trio(bucket(&found, "zendesk-incremental-exports-cursor")),
            (Some(20), Some(0), Some(60))
        );
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn who_shares_it() {
        let found = limits(&[
            ("x-rate-limit-limit", "900"),
            ("x-rate-limit-remaining", "899"),
            ("x-app-rate-limit-limit", "100000"),
            ("x-app-rate-limit-remaining", "99999"),
        ]);
        assert_eq!(bucket(&found, "app").scope, Scope::App);
        assert_eq!(
            found
                .iter()
                .find(|limit| limit.bucket.is_none())
                .unwrap()
                .scope,
            Scope::Credential
        );
    }
}

mod used_and_limit {
    use super::*;

    #[test]
    fn a_leaky_bucket() {
        let limit = only(&[("X-Shopify-Shop-Api-Call-Limit", "32/40")]);
        assert_eq!(
            (trio(&limit), limit.restores),
            ((Some(40), Some(8), None), Some(2.0))
        );
        let limit = only(&[("X-Shopify-Shop-Api-Call-Limit", "80/400")]);
        assert_eq!(
            (trio(&limit), limit.restores),
            ((Some(400), Some(320), None), Some(20.0))
        );
    }

    #[test]
    fn named_pairs() {
        let found = limits(&[(
            "Sforce-Limit-Info",
            "api-usage=18/5000, per-app-api-usage=17/250(appName=sample)",
        )]);
        let all = bucket(&found, "api-usage");
        assert_eq!(
            (trio(all), all.per),
            ((Some(5000), Some(4982), None), Some(DAY))
        );
        let app = bucket(&found, "per-app-api-usage");
        assert_eq!((app.remaining, app.scope), (Some(233), Scope::App));
    }

    #[test]
    fn two_natural_windows() {
        let headers = [
            ("x-ratelimit-limit".to_owned(), "200,2000".to_owned()),
            ("x-ratelimit-usage".to_owned(), "51,116".to_owned()),
            ("x-readratelimit-limit".to_owned(), "100,1000".to_owned()),
            ("x-readratelimit-usage".to_owned(), "100,1".to_owned()),
        ];
        // 10:05, ten minutes before the next quarter and 13 h 55 min before midnight.
        let at = Anchor {
            received: NOW + 300_000,
            date: None,
        };
        let found = read(&headers, &at).limits;
        assert_eq!(
            trio(bucket(&found, "15-minutes")),
            (Some(200), Some(149), Some(600))
        );
        assert_eq!(
            trio(bucket(&found, "day")),
            (Some(2000), Some(1884), Some(50_100))
        );
        assert_eq!(
            trio(bucket(&found, "read-15-minutes")),
            (Some(100), Some(0), Some(600))
        );
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn what_is_no_pair_is_noted() {
        for value in ["", "32", "a/b", "1/0", "-1/40", "1/2/3"] {
            let reading = reading(&[("X-Shopify-Shop-Api-Call-Limit", value)]);
            assert_eq!(
                (reading.limits.len(), reading.ignored.len()),
                (0, 1),
                "{value}"
            );
        }
    }
}

mod shares {
    use super::*;

    #[test]
    fn case_023_the_highest_percentage_of_all_entries_counts() {
        let found = limits(&[
            (
                "X-Business-Usage",
                r#"{"acct_9":[{"call_count":28,"total_cputime":96,"total_time":40,"estimated_time_to_regain_access":0}]}"#,
            ),
            ("X-App-Usage", r#"{"call_count":12}"#),
        ]);
        let business = bucket(&found, "business-usage");
        assert_eq!(business.used_percent, Some(96.0));
        assert_eq!(business.wait, None, "zero says that nothing is blocked yet");
        assert!((share_left(business) - 0.04).abs() < 1e-9);
        let app = bucket(&found, "app-usage");
        assert_eq!((app.used_percent, app.scope), (Some(12.0), Scope::App));
    }

    #[test]
    fn the_time_to_regain_access_is_in_minutes() {
        let limit = only(&[(
            "x-business-use-case-usage",
            r#"{"17":[{"type":"pages","call_count":100,"estimated_time_to_regain_access":19},{"type":"leadgen","call_count":1,"estimated_time_to_regain_access":3}],"18":[]}"#,
        )]);
        assert_eq!(
            (limit.used_percent, limit.wait),
            (Some(100.0), Some(19 * 60_000))
        );
        assert!(is_spent(&limit));
    }

    #[test]
    fn repeated_keys_and_lines_are_all_seen() {
        let limit = only(&[
            (
                "x-app-usage",
                r#"{"call_count":90,"call_count":10,"total_time":"85.5"}"#,
            ),
            ("x-app-usage", r#"{"total_cputime":91.5}"#),
        ]);
        assert_eq!(limit.used_percent, Some(91.5));
    }

    #[test]
    fn relatives() {
        let limit = only(&[("x-ad-account-usage", r#"{"acc_id_util_pct":100}"#)]);
        assert_eq!(limit.used_percent, Some(100.0));
        let limit = only(&[(
            "X-FB-Ads-Insights-Throttle",
            r#"{"app_id_util_pct":1.5,"acc_id_util_pct":30}"#,
        )]);
        assert_eq!(limit.used_percent, Some(30.0));
        let limit = only(&[("x-ms-throttle-limit-percentage", "0.9")]);
        assert_eq!(limit.used_percent, Some(90.0));
    }

    #[test]
    fn what_is_not_understood_is_noted() {
        for value in [
            "{",
            r#"{"call_count":}"#,
            r#"{"call_count":true}"#,
            "{}",
            "[null]",
            r#"{"call_count":-1}"#,
            r#"{"call_count":1e999}"#,
        ] {
            let reading = reading(&[("x-app-usage", value)]);
            assert_eq!(
                (reading.limits.len(), reading.ignored.len()),
                (0, 1),
                "{value}"
            );
        }
        let deep = "[".repeat(100_000);
        assert_eq!(reading(&[("x-app-usage", &deep)]).ignored.len(), 1);
    }
}

#[test]
fn malformed_values_are_noted_and_the_rest_is_kept() {
    let reading = reading(&[
        ("x-ratelimit-limit", "many"),
        ("x-ratelimit-remaining", "7"),
        ("x-ratelimit-reset", "soon\u{7}\n"),
        ("x-ratelimit-used", "-4"),
    ]);
    assert_eq!(trio(&reading.limits[0]), (None, Some(7), None));
    assert_eq!(reading.ignored.len(), 3);
    for note in &reading.ignored {
        assert!(!note.contains(char::is_control), "{note:?}");
    }
}

#[test]
fn a_reset_years_ahead_is_not_believed() {
    let reading = reading(&[
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "2130384860"),
    ]);
    assert_eq!(reading.limits[0].resets_in, None);
    assert_eq!(reading.ignored.len(), 1);
}

#[test]
fn notes_are_bounded() {
    let lines: Vec<_> = (0..1000)
        .map(|n| (format!("x-ratelimit-limit-{n}"), "x".repeat(10_000)))
        .collect();
    let ignored = read(&lines, &AT).ignored;
    assert!(ignored.len() <= 16);
    assert!(ignored.iter().all(|note| note.len() < 300));
}

#[test]
fn the_share_that_is_left() {
    let limit = |limit, remaining, used_percent| Limit {
        limit,
        remaining,
        used_percent,
        ..Limit::default()
    };
    assert_eq!(share_left(&limit(Some(40), Some(10), None)), 0.25);
    assert_eq!(share_left(&limit(None, Some(10), None)), 1.0);
    assert_eq!(share_left(&limit(None, Some(0), None)), 0.0);
    assert_eq!(share_left(&limit(Some(40), Some(40), Some(130.0))), 0.0);
    assert_eq!(share_left(&limit(Some(0), Some(5), None)), 1.0);
    assert!(is_spent(&limit(None, None, Some(100.0))));
    assert!(!is_spent(&limit(Some(1), None, Some(99.0))));
}

/// Names that the dialects know, and names close to them.
fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        "(x-)?(app-|daily-|beta-)?(ratelimit|rate-limit)(-(limit|remaining|used|usage|reset|after|ms|policy|daily|requests|interval|name|scope)){0,3}",
        "(x-shopify-shop-api-call-limit|sforce-limit-info|x-app-usage|x-ms-throttle-limit-percentage|x-hourly-requests-left|ratelimit)",
        "\\PC{0,20}limit\\PC{0,10}",
    ]
}

fn contents() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "-?[0-9]{0,21}(\\.[0-9]{0,5})?",
        "[0-9]{1,4}[,/;][ ]?[0-9]{0,4}(;w=[0-9]{0,20})?",
        "\"[a-z]{0,4}\";(r|q|t|w|qu)=[-0-9\"a-z]{0,20}(, \"[a-z]{0,3}\";t=[0-9]{1,15})?",
        "(limit|remaining|reset|total)=[-0-9]{0,21}[,;] ?(used|resets)=[0-9.]{0,9}",
        "[\\[{]\"(call_count|estimated_time_to_regain_access|a)\":[-0-9.e]{0,9}[\\]}]?",
    ]
}

#[test]
fn a_limit_of_one_family_is_not_put_beside_more_that_is_left_in_another() {
    let headers = [
        ("rate-limit-remaining".to_owned(), "8".to_owned()),
        ("beta-ratelimit".to_owned(), "1,1".to_owned()),
    ];
    let limits = read(&headers, &AT).limits;
    assert!(
        limits.iter().all(|limit| limit.remaining.is_none()
            || limit.limit.is_none()
            || limit.remaining <= limit.limit),
        "{limits:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_headers_panic_or_give_an_impossible_limit(
        headers in proptest::collection::vec((names(), contents()), 0..8),
        received in any::<i64>(),
        date in proptest::option::of(any::<i64>()),
    ) {
        let reading = read(&headers, &Anchor { received, date });
        for (n, limit) in reading.limits.iter().enumerate() {
            if let (Some(remaining), Some(limit)) = (limit.remaining, limit.limit) {
                prop_assert!(remaining <= limit);
            }
            let horizon = crate::moment::HORIZON;
            prop_assert!(limit.resets_in.is_none_or(|ms| ms <= horizon));
            prop_assert!(limit.per.is_none_or(|ms| ms > 0 && ms <= horizon));
            prop_assert!(limit.wait.is_none_or(|ms| ms > 0 && ms <= horizon));
            prop_assert!((0.0..=1.0).contains(&share_left(limit)));
            prop_assert!(reading.limits[..n].iter().all(|other| other.bucket != limit.bucket));
        }
    }

    #[test]
    fn a_plain_trio_is_read_under_every_spelling(
        spelling in prop_oneof!["x-ratelimit", "X-Rate-Limit", "ratelimit", "RateLimit", "x-acme-ratelimit"],
        limit in 1_u64..1_000_000,
        used in 0_u64..1_000_000,
        seconds in 1_i64..86_400,
    ) {
        let remaining = limit.saturating_sub(used);
        for reset in [seconds.to_string(), (NOW / 1000 + seconds).to_string(), (NOW + seconds * 1000).to_string()] {
            let headers = [
                (format!("{spelling}-limit"), limit.to_string()),
                (format!("{spelling}-Remaining"), remaining.to_string()),
                (format!("{spelling}-reset"), reset),
            ];
            let reading = read(&headers, &AT);
            prop_assert_eq!(reading.limits.len(), 1);
            let expected = (Some(limit), Some(remaining), Some(seconds.unsigned_abs()));
            prop_assert_eq!(trio(&reading.limits[0]), expected);
        }
    }
}
