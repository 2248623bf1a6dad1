//! What Shopify's refusals mean.

use weir_sdk::{fault, prelude::*};

use crate::graphql::Points;

/// REST, and what stands before GraphQL: by status.
pub(crate) fn by_status(response: &Response) -> Fault {
    let said = words(response);
    let coded = |fault: Fault| fault.code(response.status);
    match response.status {
        // A token of an app: nothing refreshes it.
        401 => coded(Fault::auth_revoked(said)),
        402 => coded(
            Fault::permanent(format!(
                "{said} (the shop is frozen until its bill is paid)"
            ))
            .scope(Scope::Connection),
        ),
        403 => coded(Fault::permanent(format!("{said} (the app lacks a scope)"))),
        // A position that is too old, or a filter beside a position.
        400 if said.to_ascii_lowercase().contains("page_info") => coded(Fault::position_lost(said)),
        423 => coded(Fault::temporary(said)).scope(Scope::Connection),
        _ => coded(fault::from_status(response)),
    }
}

/// GraphQL: by the code of the first error in the body, if there is one.
pub(crate) fn in_body(text: &str, points: Option<&Points>, page_size: u32) -> Option<Fault> {
    let part = |pointer: &str| json::text_at(text, pointer);
    let errors = json::at(text, "/errors").ok().flatten()?;
    if errors.is_null() || errors.json() == "[]" {
        return None;
    }
    let code = part("/errors/0/extensions/code").unwrap_or_else(|| "errors".to_owned());
    let said = part("/errors/0/message")
        .or_else(|| part("/errors"))
        .unwrap_or_else(|| code.clone());
    let fault = match code.as_str() {
        "THROTTLED" => {
            let fault = Fault::rate_limited(said);
            match points.and_then(Points::wait) {
                Some(wait) => fault.wait(wait),
                None => fault,
            }
        }
        "MAX_COST_EXCEEDED" if page_size > 1 => Fault::temporary(said).page_size(page_size / 2),
        "ACCESS_DENIED" | "MAX_COST_EXCEEDED" => Fault::permanent(said),
        "SHOP_INACTIVE" => Fault::permanent(said).scope(Scope::Connection),
        "INTERNAL_SERVER_ERROR" | "TIMEOUT" => Fault::temporary(said),
        _ if said.to_ascii_lowercase().contains("invalid cursor") => Fault::position_lost(said),
        _ => Fault::unknown(said),
    };
    Some(fault.code(code))
}

/// `errors` is a text, a list or an object.
fn words(response: &Response) -> String {
    let text = response.lossy_text();
    ["/errors", "/errors/0", "/errors/base/0", "/error"]
        .iter()
        .find_map(|pointer| json::text_at(&text, pointer))
        .unwrap_or_else(|| fault::message(response))
}
