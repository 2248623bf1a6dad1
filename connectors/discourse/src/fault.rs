//! What a forum's refusals mean.
//!
//! A refusal for too many calls comes from two places: from in front of the forum as plain text with a code in a header
//! (the whole client is meant), or from the forum itself as JSON with the seconds to wait (one kind of call is meant).

use weir_sdk::{fault, prelude::*};

pub(crate) fn read(response: &Response) -> Fault {
    let text = response.lossy_text();
    let kind = json::text_at(&text, "/error_type");
    let said = json::text_at(&text, "/errors/0").unwrap_or_else(|| fault::message(response));
    let coded = |fault: Fault| match &kind {
        Some(kind) => fault.code(format!("{}/{kind}", response.status)),
        None => fault.code(response.status),
    };
    match response.status {
        429 => {
            if let Some(code) = response.header("discourse-rate-limit-error-code") {
                return Fault::rate_limited(said).code(format!("429/{code}"));
            }
            let wait = json::at(&text, "/extras/wait_seconds")
                .ok()
                .flatten()
                .and_then(Raw::u64);
            let fault = Fault::rate_limited(said);
            match wait {
                Some(seconds) => coded(fault)
                    .scope(Scope::Unit)
                    .wait(seconds.saturating_mul(1000)),
                None => coded(fault),
            }
        }
        // A key that is not known, and a page that one may not see, carry the same type.
        403 if said.contains("API username or key") => coded(Fault::auth_revoked(said)),
        403 => coded(Fault::permanent(said)),
        404 => coded(Fault::permanent(format!(
            "{said} (not there, or hidden from this key)"
        ))),
        _ => fault::from_status(response),
    }
}
