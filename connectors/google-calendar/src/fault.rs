//! What Google's refusals mean. A 403 is a limit or a missing permission: the reason in the body tells.
//!
//! The body has two shapes (`error.errors[].reason`, or `error.status` with details), and is sometimes wrapped in an array.

use weir_sdk::{fault, prelude::*};

const HOUR: i64 = 3_600_000;

/// The vendor's day ends at midnight in California: 07:00 or 08:00 UTC.
const DAY_ENDS: i64 = 8 * HOUR;

pub(crate) fn read(response: &Response, now: i64) -> Fault {
    let text = response.lossy_text();
    let part = |pointer: &str| {
        ["", "/0"]
            .iter()
            .find_map(|at| json::text_at(&text, &format!("{at}{pointer}")))
    };
    let reason = part("/error/errors/0/reason")
        .or_else(|| part("/error/details/0/reason"))
        .or_else(|| part("/error/status"));
    let said = part("/error/message").unwrap_or_else(|| fault::message(response));
    let coded = |fault: Fault| match &reason {
        Some(reason) => fault.code(format!("{}/{reason}", response.status)),
        None => fault.code(response.status),
    };
    match (response.status, reason.as_deref().unwrap_or_default()) {
        (403 | 429, "dailyLimitExceeded" | "quotaExceeded") => {
            coded(Fault::rate_limited(said)).wait(until_day_ends(now))
        }
        (
            403,
            "rateLimitExceeded"
            | "userRateLimitExceeded"
            | "RATE_LIMIT_EXCEEDED"
            | "RESOURCE_EXHAUSTED",
        )
        | (429, _) => {
            let told = retry_after(&said).map(|at| at.saturating_sub(now));
            let fault = coded(Fault::rate_limited(said));
            match told.and_then(|wait| u64::try_from(wait).ok()) {
                Some(wait) => fault.wait(wait),
                None => fault,
            }
        }
        (403, _) => coded(Fault::permanent(said)),
        // The token is too old, or (400) no longer fits what is asked for.
        (410, _) | (400, "fullSyncRequired" | "updatedMinTooLongAgo" | "invalidSyncToken") => {
            coded(Fault::position_lost(said))
        }
        (404, _) => coded(Fault::permanent(format!(
            "{said} (no such calendar, or the account may not see it)"
        ))),
        _ => coded(fault::from_status(response)),
    }
}

/// "User-rate limit exceeded. Retry after 2031-03-04T10:05:00.000Z".
fn retry_after(said: &str) -> Option<i64> {
    let (_, rest) = said.split_once("Retry after ")?;
    let stamp = rest.split_whitespace().next()?;
    time::parse_rfc3339(stamp.trim_end_matches(['.', ','])).or_else(|| time::parse_rfc3339(stamp))
}

fn until_day_ends(now: i64) -> u64 {
    const DAY: i64 = 24 * HOUR;
    let into = (now - DAY_ENDS).rem_euclid(DAY);
    u64::try_from(DAY - into).unwrap_or(0)
}
