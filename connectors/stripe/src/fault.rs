//! What Stripe's errors mean: by the error's code first, then by the vendor's own word on trying again, then by status.

use weir_sdk::{fault, prelude::*};

pub(crate) fn read(response: &Response) -> Fault {
    let text = response.lossy_text();
    let part = |pointer: &str| json::text_at(&text, pointer);
    let said = part("/error/message").unwrap_or_else(|| fault::message(response));
    let code = part("/error/code").or_else(|| part("/error/type"));
    let coded = |fault: Fault| match &code {
        Some(code) => fault.code(format!("{}/{code}", response.status)),
        None => fault.code(response.status),
    };
    let again = response.header("stripe-should-retry");
    match (response.status, code.as_deref()) {
        // Another call holds the object for a moment: nobody's quota is spent.
        (_, Some("lock_timeout")) => coded(Fault::temporary(said)),
        (429, _) => coded(Fault::rate_limited(said)),
        // The only 400 that a list of events can have in spite of good parameters.
        (400 | 404, _) if said.contains("retention") => coded(Fault::position_lost(said)),
        // The object that paging went on from is gone.
        (400 | 404, Some("resource_missing"))
            if part("/error/param").as_deref() == Some("starting_after") =>
        {
            coded(Fault::position_lost(said))
        }
        (403, Some("account_invalid")) => coded(Fault::auth_revoked(said)),
        (403, _) => coded(Fault::permanent(format!(
            "{said} (the key may lack a permission)"
        ))),
        (401, _) => coded(fault::from_status(response)),
        (400..=499, _) if again == Some("true") => coded(Fault::temporary(said)),
        (400..=499, _) if again == Some("false") => coded(Fault::permanent(said)),
        _ => coded(fault::from_status(response)),
    }
}
