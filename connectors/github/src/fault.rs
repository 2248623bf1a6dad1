//! What GitHub's refusals mean. The status alone does not say: 403 is a spent quota, a secondary limit, a lock-out or a
//! missing permission.

use weir_sdk::{fault, prelude::*};

/// Documented: without a `Retry-After`, wait at least one minute after hitting a secondary limit.
const SECONDARY_WAIT: u64 = 60_000;

pub(crate) fn read(response: &Response) -> Fault {
    let said = fault::message(response);
    let lower = said.to_ascii_lowercase();
    let coded = |fault: Fault| fault.code(response.status);
    match response.status {
        403 | 429 => {
            if response.header("x-ratelimit-remaining") == Some("0") {
                // The host has read when the quota starts anew.
                return coded(Fault::rate_limited(said));
            }
            if lower.contains("secondary rate limit") || lower.contains("abuse detection") {
                let fault =
                    Fault::rate_limited(said).code(format!("{}/secondary", response.status));
                let told = response
                    .header("retry-after")
                    .is_some_and(|wait| !wait.is_empty());
                return if told {
                    fault
                } else {
                    fault.wait(SECONDARY_WAIT)
                };
            }
            if lower.contains("login attempts exceeded") {
                // After bad credentials, for everyone on them, and it passes.
                return Fault::temporary(said)
                    .scope(Scope::Credential)
                    .code("403/lock-out");
            }
            if response.header("x-github-sso").is_some() {
                return Fault::permanent(format!(
                    "{said} (authorise the token for this organisation)"
                ))
                .code("403/sso");
            }
            if response.status == 403 && !fault::limit_signal(response) {
                return coded(Fault::permanent(format!(
                    "{said} (the token lacks a permission)"
                )));
            }
            coded(Fault::rate_limited(said))
        }
        404 => coded(Fault::permanent(format!(
            "{said} (no such repository, or the token may not see it)"
        ))),
        // Issues are switched off, or the issue was deleted: nothing was lost that a new walk would find.
        410 => coded(Fault::permanent(said)),
        _ => fault::from_status(response),
    }
}
