//! What a wiki's errors mean: by the code in the body of a 200, or by the status where something in front of it answers.

use weir_sdk::{fault, prelude::*};

/// The error in a body, if there is one.
pub(crate) fn in_body(text: &str) -> Option<Fault> {
    let error = json::at(text, "/error").ok().flatten()?;
    let part = |pointer| {
        let found = error.at(pointer).ok().flatten()?;
        found.string().map(|text| text.into_owned())
    };
    let code = part("/code").unwrap_or_else(|| "error".to_owned());
    let said = part("/info").unwrap_or_else(|| code.clone());
    let fault = match code.as_str() {
        // Its databases lag, or it is being looked after: the whole wiki is meant, and it passes.
        "maxlag" | "readonly" => Fault::temporary(said).scope(Scope::Connection),
        "ratelimited" => Fault::rate_limited(said),
        "assertuserfailed"
        | "assertbotfailed"
        | "assertnameduserfailed"
        | "badtoken"
        | "notloggedin" => Fault::auth_expired(said),
        "readapidenied" | "permissiondenied" | "blocked" | "autoblocked" => {
            Fault::permanent(said).scope(Scope::Connection)
        }
        "badcontinue" => Fault::position_lost(said),
        _ if code.starts_with("mwoauth-") => Fault::auth_expired(said),
        _ if code.starts_with("internal_api_error_") => Fault::temporary(said),
        _ if code.starts_with("unknown_")
            || code.starts_with("unrecognized")
            || code.starts_with("bad")
            || code.starts_with("missing")
            || code.starts_with("no") =>
        {
            Fault::permanent(said)
        }
        _ => Fault::unknown(said),
    };
    Some(fault.code(code))
}

/// What stands in front of the wiki speaks with a status, often in HTML.
pub(crate) fn by_status(response: &Response) -> Fault {
    match response.status {
        403 if response
            .lossy_text()
            .to_ascii_lowercase()
            .contains("user-agent") =>
        {
            Fault::permanent(
                "the wiki wants a User-Agent with a way to reach its operator: set host.user_agent",
            )
            .code("403/user-agent")
            .scope(Scope::Connection)
        }
        _ => in_body(&response.lossy_text()).unwrap_or_else(|| fault::from_status(response)),
    }
}
