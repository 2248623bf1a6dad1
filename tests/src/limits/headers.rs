//! The dialects in which vendors tell of a quota.

use crate::spec::Dialect;
use crate::time::{ceil_seconds, rfc3339};

/// One quota as an answer tells of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BucketView {
    pub(crate) name: String,
    pub(crate) dialects: Vec<Dialect>,
    pub(crate) limit: u64,
    pub(crate) used: u64,
    pub(crate) window_ms: i64,
    pub(crate) resets_ms: i64,
    /// While it refuses calls: for how long. 0: it doesn't.
    pub(crate) blocked_ms: i64,
}

impl BucketView {
    fn remaining(&self) -> u64 {
        if self.blocked_ms > 0 {
            0
        } else {
            self.limit.saturating_sub(self.used)
        }
    }

    fn percent(&self) -> u64 {
        self.used * 100 / self.limit.max(1)
    }
}

/// Adds the headers of all quotas. `server_now` is the vendor's own clock.
pub(crate) fn write(views: &[BucketView], server_now: i64, headers: &mut Vec<(String, String)>) {
    for view in views {
        for dialect in &view.dialects {
            dialect_headers(
                *dialect,
                view,
                server_now,
                &mut |name: &str, value: String| {
                    match headers.iter_mut().find(|(have, _)| have == name) {
                        // Several quotas in a list field: one line, as an intermediary would join them.
                        Some((_, before)) if name.starts_with("ratelimit") => {
                            before.push_str(", ");
                            before.push_str(&value);
                        }
                        _ => headers.push((name.to_owned(), value)),
                    }
                },
            );
        }
    }
}

fn dialect_headers(
    dialect: Dialect,
    view: &BucketView,
    now: i64,
    add: &mut dyn FnMut(&str, String),
) {
    let (limit, remaining, used) = (view.limit, view.remaining(), view.used);
    let seconds = ceil_seconds(view.resets_ms);
    let window = ceil_seconds(view.window_ms);
    let resets_at = now + view.resets_ms;
    let name = &view.name;
    let mut trio = |prefix: &str, reset: String| {
        add(&format!("{prefix}-limit"), limit.to_string());
        add(&format!("{prefix}-remaining"), remaining.to_string());
        add(&format!("{prefix}-reset"), reset);
    };
    match dialect {
        Dialect::IetfList => {
            add("ratelimit-limit", format!("{limit}, {limit};w={window}"));
            add("ratelimit-remaining", remaining.to_string());
            add("ratelimit-reset", seconds.to_string());
        }
        Dialect::IetfFields => {
            trio("ratelimit", seconds.to_string());
            add("ratelimit-policy", format!("{limit};w={window}"));
        }
        Dialect::IetfCombined => {
            add(
                "ratelimit",
                format!("limit={limit}, remaining={remaining}, reset={seconds}"),
            );
            add("ratelimit-policy", format!("{limit};w={window}"));
        }
        Dialect::IetfSemicolons => {
            add(
                "ratelimit",
                format!("limit={limit}; remaining={remaining}; reset={seconds}"),
            );
        }
        Dialect::IetfStructured => {
            add("ratelimit", format!("\"{name}\";r={remaining};t={seconds}"));
            add(
                "ratelimit-policy",
                format!("\"{name}\";q={limit};w={window}"),
            );
        }
        Dialect::IetfEpoch => trio("ratelimit", ceil_seconds(resets_at).to_string()),
        Dialect::XEpochSeconds => {
            trio("x-ratelimit", ceil_seconds(resets_at).to_string());
            add("x-ratelimit-used", used.to_string());
            add("x-ratelimit-resource", name.clone());
        }
        Dialect::XEpochFloat => trio("x-ratelimit", decimal(resets_at)),
        Dialect::XEpochMs => trio("x-ratelimit", resets_at.to_string()),
        Dialect::XSeconds => trio("x-ratelimit", seconds.to_string()),
        Dialect::XDecimal => {
            add("x-ratelimit-used", used.to_string());
            add("x-ratelimit-remaining", format!("{remaining}.0"));
            add("x-ratelimit-reset", decimal(view.resets_ms));
        }
        Dialect::XRfc3339 => trio("x-ratelimit", rfc3339(resets_at, 7)),
        Dialect::XDuration => trio("x-ratelimit", duration(view.resets_ms)),
        Dialect::XDashEpochSeconds => trio("x-rate-limit", ceil_seconds(resets_at).to_string()),
        Dialect::MsUntil => {
            add("x-rate-limit-requests-quota", limit.to_string());
            add("x-rate-limit-requests-left", remaining.to_string());
            add("x-rate-limit-time-reset-ms", view.resets_ms.to_string());
            add("x-rate-limit-time-window-ms", view.window_ms.to_string());
        }
        Dialect::Interval => {
            add("x-ratelimit-max", limit.to_string());
            add("x-ratelimit-remaining", remaining.to_string());
            add(
                "x-ratelimit-interval-milliseconds",
                view.window_ms.to_string(),
            );
        }
        Dialect::UsedOfLimit => add("x-shop-api-call-limit", format!("{used}/{limit}")),
        Dialect::UsagePair => add("limit-info", format!("api-usage={used}/{limit}")),
        Dialect::NamedBucket => add(
            &format!("acme-ratelimit-{name}"),
            format!("total={limit}; remaining={remaining}; resets={seconds}"),
        ),
        Dialect::PercentJson => {
            let percent = view.percent();
            add(
                "x-app-usage",
                format!(
                    "{{\"call_count\":{percent},\"total_time\":{},\"total_cputime\":0}}",
                    percent / 2
                ),
            );
        }
        Dialect::BusinessJson => {
            let minutes = ceil_seconds(view.blocked_ms).div_euclid(60)
                + i64::from(view.blocked_ms % 60_000 > 0);
            add(
                "x-business-usage",
                format!(
                    "{{\"42\":[{{\"type\":\"{name}\",\"call_count\":{},\"total_cputime\":1,\"total_time\":1,\
                     \"estimated_time_to_regain_access\":{minutes}}}]}}",
                    view.percent(),
                ),
            );
        }
        Dialect::OnlyLeft => add("x-requests-left", remaining.to_string()),
    }
}

/// Milliseconds as decimal seconds.
pub(crate) fn decimal(ms: i64) -> String {
    format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000))
}

/// `6m0s`, `8.64s`, `120ms`
fn duration(ms: i64) -> String {
    match ms {
        ..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}s", ms as f64 / 1000.0),
        _ => format!("{}m{}s", ms / 60_000, ceil_seconds(ms % 60_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_930_384_800_000;

    fn headers(dialect: Dialect, blocked_ms: i64) -> Vec<String> {
        let view = BucketView {
            name: "core".into(),
            dialects: vec![dialect],
            limit: 100,
            used: 88,
            window_ms: 60_000,
            resets_ms: 29_500,
            blocked_ms,
        };
        let mut headers = Vec::new();
        write(&[view], NOW, &mut headers);
        headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect()
    }

    #[test]
    fn dialects_read_as_vendors_write_them() {
        assert_eq!(
            headers(Dialect::IetfList, 0),
            [
                "ratelimit-limit: 100, 100;w=60",
                "ratelimit-remaining: 12",
                "ratelimit-reset: 30"
            ]
        );
        assert_eq!(
            headers(Dialect::IetfStructured, 0),
            [
                "ratelimit: \"core\";r=12;t=30",
                "ratelimit-policy: \"core\";q=100;w=60"
            ]
        );
        assert_eq!(
            headers(Dialect::UsedOfLimit, 0),
            ["x-shop-api-call-limit: 88/100"]
        );
        assert!(
            headers(Dialect::XEpochSeconds, 0).contains(&"x-ratelimit-reset: 1930384830".into())
        );
        assert!(
            headers(Dialect::XEpochFloat, 0).contains(&"x-ratelimit-reset: 1930384829.500".into())
        );
        assert!(headers(Dialect::XEpochMs, 0).contains(&"x-ratelimit-reset: 1930384829500".into()));
        assert!(headers(Dialect::XDuration, 0).contains(&"x-ratelimit-reset: 29.5s".into()));
        assert!(
            headers(Dialect::XRfc3339, 0)
                .contains(&"x-ratelimit-reset: 2031-03-04T10:00:29.5000000Z".into())
        );
        assert!(headers(Dialect::XSeconds, 1).contains(&"x-ratelimit-remaining: 0".into()));
        assert!(
            headers(Dialect::BusinessJson, 61_000)[0]
                .contains("\"estimated_time_to_regain_access\":2")
        );
        assert_eq!(duration(360_000), "6m0s");
        assert_eq!(duration(120), "120ms");
    }

    #[test]
    fn two_quotas_share_one_standard_field() {
        let view = |name: &str| BucketView {
            name: name.into(),
            dialects: vec![Dialect::IetfStructured],
            limit: 10,
            used: 0,
            window_ms: 1000,
            resets_ms: 1000,
            blocked_ms: 0,
        };
        let mut headers = Vec::new();
        write(&[view("burst"), view("daily")], NOW, &mut headers);
        assert_eq!(headers[0].1, "\"burst\";r=10;t=1, \"daily\";r=10;t=1");
    }
}
