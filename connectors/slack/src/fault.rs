//! What Slack's errors mean: they are words in the body of a 200.

use weir_sdk::prelude::*;

/// The error of a body that says `ok: false`.
pub(crate) fn check(text: &str) -> Result<(), Fault> {
    let [ok, error, needed] = json::fields(text, ["/ok", "/error", "/needed"])?;
    match ok.and_then(Raw::bool) {
        Some(true) => return Ok(()),
        Some(false) => {}
        None => {
            return Err(Fault::incomplete("the answer does not say whether it is ok").code("ok"));
        }
    }
    let code = error
        .and_then(Raw::string)
        .map_or_else(|| "error".to_owned(), |code| code.into_owned());
    let said = match needed.and_then(Raw::string) {
        Some(scope) => format!("{code}: the token lacks the scope {scope}"),
        None => code.clone(),
    };
    let fault = match code.as_str() {
        "ratelimited" | "rate_limited" => Fault::rate_limited(said),
        "token_expired" => Fault::auth_expired(said),
        "not_authed"
        | "invalid_auth"
        | "account_inactive"
        | "token_revoked"
        | "no_permission"
        | "team_access_not_granted"
        | "two_factor_setup_required" => Fault::auth_revoked(said),
        "invalid_cursor" => Fault::position_lost(said),
        "missing_scope"
        | "not_in_channel"
        | "channel_not_found"
        | "is_archived"
        | "invalid_arguments"
        | "invalid_limit"
        | "invalid_ts_latest"
        | "invalid_ts_oldest"
        | "access_denied"
        | "method_deprecated"
        | "enterprise_is_restricted" => Fault::permanent(said),
        "internal_error"
        | "fatal_error"
        | "service_unavailable"
        | "request_timeout"
        | "team_added_to_org" => Fault::temporary(said),
        _ => Fault::unknown(said),
    };
    Err(fault.code(code))
}
