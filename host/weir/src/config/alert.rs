//! `[alert]`: from which number on a signal needs a person.

use weir_rules::model::Duration;

use super::reader::{Report, Section};

/// `[alert]`, every key optional. What passes its number stands at the top of `weir status`, and in
/// `weir_alert` of the metrics.
///
/// ```toml
/// [alert]
/// oldest_due = "5m"
/// retries = 100
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    /// `retries`: of one connector for one class of fault, within the last hour. Default 100.
    pub retries: u64,
    /// `oldest_due`: how long the oldest job may have been due, in ms. Default `"5m"`.
    pub oldest_due: Duration,
    /// `sign_in`: connections that need a sign-in. Default 1.
    pub sign_in: u64,
    /// `given_up`: units that ran out of retries, or were refused for good. Default 1.
    pub given_up: u64,
    /// `unknown`: codes that nobody has mapped, waiting for review. Default 1.
    pub unknown: u64,
    /// `pinned`: units that a slow vendor holds at the longest interval. Default 1.
    pub pinned: u64,
    /// `gaps`: open gaps. Default 1.
    pub gaps: u64,
    /// `gap_age`: how long the oldest open gap may have been open, in ms, whatever their number. Default `"1d"`.
    pub gap_age: Duration,
    /// `outbox_age`: how long a record may wait for a sink, in ms. Default `"15m"`.
    pub outbox_age: Duration,
}

impl Default for Alert {
    fn default() -> Self {
        Alert {
            retries: 100,
            oldest_due: 5 * 60_000,
            sign_in: 1,
            given_up: 1,
            unknown: 1,
            pinned: 1,
            gaps: 1,
            gap_age: 86_400_000,
            outbox_age: 15 * 60_000,
        }
    }
}

impl Alert {
    pub(super) fn read(mut section: Section<'_>, report: &mut Report<'_>) -> Self {
        let mut alert = Alert::default();
        for (key, number) in [
            ("retries", &mut alert.retries),
            ("sign_in", &mut alert.sign_in),
            ("given_up", &mut alert.given_up),
            ("unknown", &mut alert.unknown),
            ("pinned", &mut alert.pinned),
            ("gaps", &mut alert.gaps),
        ] {
            if let Some(at) = section.get(report, key)
                && let Some(most) = at.number(report, 1..1_000_000_001)
            {
                *number = most;
            }
        }
        for (key, length) in [
            ("oldest_due", &mut alert.oldest_due),
            ("gap_age", &mut alert.gap_age),
            ("outbox_age", &mut alert.outbox_age),
        ] {
            if let Some(at) = section.get(report, key)
                && let Some(ms) = at.duration(report)
            {
                *length = ms;
            }
        }
        section.finish(report);
        alert
    }
}
