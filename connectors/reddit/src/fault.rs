//! What Reddit's refusals mean. A missing scope and a private subreddit have the same body: a header tells them apart.

use weir_sdk::{fault, prelude::*};

pub(crate) fn read(response: &Response) -> Fault {
    let challenge = response
        .header("www-authenticate")
        .unwrap_or_default()
        .to_ascii_lowercase();
    match response.status {
        403 if challenge.contains("insufficient_scope") => {
            Fault::permanent("the token lacks a scope: sign in again with scope `read`")
                .code("403/scope")
                .scope(Scope::Connection)
        }
        // A page for people, from in front of the API: no word on any subreddit, and the next one meets it too.
        403 if json::at(&response.lossy_text(), "/error").is_err() => Fault::unknown(
            "the vendor blocks this client: does `host.user_agent` say who calls, and is the token good?",
        )
        .scope(Scope::Connection)
        .code("403/blocked"),
        403 => {
            let reason = json::text_at(&response.lossy_text(), "/reason");
            let reason = reason
                .as_deref()
                .unwrap_or("private, or the account is suspended");
            Fault::permanent(format!("the subreddit may not be read: {reason}")).code(403)
        }
        404 => {
            let reason = json::text_at(&response.lossy_text(), "/reason");
            let reason = reason.as_deref().unwrap_or("it does not exist");
            Fault::permanent(format!("no such subreddit: {reason}")).code(404)
        }
        // A name that is not known leads to the search page.
        301..=308 => Fault::permanent("no such subreddit: the vendor leads to a search")
            .code(response.status),
        _ => fault::from_status(response),
    }
}
