//! What Graph's refusals mean: by the error's code first, then by status.

use weir_sdk::{fault, prelude::*};

pub(crate) fn read(response: &Response) -> Fault {
    let text = response.lossy_text();
    let part = |pointer: &str| json::text_at(&text, pointer);
    let code = part("/error/code").unwrap_or_default();
    let said = part("/error/message").unwrap_or_else(|| fault::message(response));
    let coded = |fault: Fault| {
        if code.is_empty() {
            fault.code(response.status)
        } else {
            fault.code(format!("{}/{code}", response.status))
        }
    };
    let lower = code.to_ascii_lowercase();
    match response.status {
        // The vendor says where to begin anew; a walk without a delta link begins at the same place.
        410 => coded(Fault::position_lost(said)),
        400..=499 if lower.contains("syncstate") || lower.contains("resync") => {
            coded(Fault::position_lost(said))
        }
        403 if code == "ErrorAccountSuspend" => coded(Fault::auth_revoked(said)),
        401 if lower.contains("mfarequired") || said.contains("AADSTS50076") => {
            coded(Fault::auth_revoked(said))
        }
        412 => coded(Fault::permanent(format!(
            "{said} (it may want an application's sign-in instead of a user's)"
        ))),
        _ => coded(fault::from_status(response)),
    }
}
