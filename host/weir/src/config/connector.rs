//! `[connector.NAME]`: what one connector may use.

use std::ops::RangeInclusive;
use std::time::Duration;

use weir_runtime::Limits;
use weir_runtime::limits::{CALL_MS, FILE, LOG, MAX_MEMORY, MIN_MEMORY, RETURNED};

use super::reader::{Entry, Report, Section};

/// `[connector.NAME]`, every key optional; the defaults are those of [`Limits`].
///
/// ```toml
/// [connector.github]
/// memory = "128MiB"   # of one call, "4MiB" to "256MiB"
/// call = "2s"         # processor time of one call, "50ms" to "60s"
/// describe = "1s"     # of telling what it is, "50ms" to "60s"
/// returned = "32MiB"  # of the result of one call, "64KiB" to "64MiB"
/// file = "64MiB"      # of the connector's file, "64KiB" to "256MiB"
/// log = 100           # lines a second, 0 to 10000
/// ```
pub(super) fn read(mut section: Section<'_>, report: &mut Report<'_>) -> Option<Limits> {
    let mut limits = Limits::default();
    for (key, allowed, help, place) in [
        (
            "memory",
            MIN_MEMORY..=MAX_MEMORY,
            "allowed: \"4MiB\" to \"256MiB\"",
            &mut limits.memory,
        ),
        (
            "returned",
            RETURNED,
            "allowed: \"64KiB\" to \"64MiB\"",
            &mut limits.returned,
        ),
        (
            "file",
            FILE,
            "allowed: \"64KiB\" to \"256MiB\"",
            &mut limits.file,
        ),
    ] {
        if let Some(at) = section.get(report, key)
            && let Some(bytes) = size(&at, &allowed, help, report)
        {
            *place = bytes;
        }
    }
    for (key, place) in [
        ("call", &mut limits.call),
        ("describe", &mut limits.describe),
    ] {
        if let Some(at) = section.get(report, key)
            && let Some(ms) = at.duration(report)
        {
            if CALL_MS.contains(&ms) {
                *place = Duration::from_millis(ms);
            } else {
                report.complain(&at, "is out of range", "allowed: \"50ms\" to \"60s\"");
            }
        }
    }
    if let Some(at) = section.get(report, "log")
        && let Some(lines) = at.number(report, 0..u64::from(*LOG.end()) + 1)
    {
        limits.log = u32::try_from(lines).unwrap_or(limits.log);
    }
    section.finish(report);
    Some(limits)
}

fn size(
    at: &Entry<'_>,
    allowed: &RangeInclusive<usize>,
    help: &str,
    report: &mut Report<'_>,
) -> Option<usize> {
    let bytes = usize::try_from(at.size(report)?).ok();
    let bytes = bytes.filter(|bytes| allowed.contains(bytes));
    if bytes.is_none() {
        report.complain(at, "is out of range", help);
    }
    bytes
}
