//! What Zendesk's refusals mean.

use weir_sdk::{fault, prelude::*};

pub(crate) fn read(response: &Response, page_size: u32) -> Fault {
    let text = response.lossy_text();
    let part = |pointer: &str| json::text_at(&text, pointer);
    // `error` is a word, or an object with a title.
    let code = part("/error").or_else(|| part("/error/title"));
    let said = part("/description")
        .or_else(|| part("/error/message"))
        .unwrap_or_else(|| fault::message(response));
    let coded = |fault: Fault| match &code {
        Some(code) => fault.code(format!("{}/{code}", response.status)),
        None => fault.code(response.status),
    };
    let lower = format!("{said} {}", code.as_deref().unwrap_or_default()).to_ascii_lowercase();
    match response.status {
        400 | 404 | 422 if lower.contains("cursor") => coded(Fault::position_lost(said)),
        // The clocks differ by more than was allowed for: a minute later it is old enough.
        422 if lower.contains("start_time") => coded(Fault::temporary(said)).wait(60_000),
        403 => coded(Fault::permanent(format!(
            "{said} (exports want an administrator)"
        ))),
        // An export that takes too long to put together.
        504 if page_size > 1 => coded(Fault::temporary(said)).page_size(page_size / 2),
        _ => coded(fault::from_status(response)),
    }
}
