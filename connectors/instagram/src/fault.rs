//! What Meta's errors mean: by code and subcode. The type says `OAuthException` even for a limit, and the status says 400.

use weir_sdk::{fault, prelude::*};

const HOUR: u64 = 3_600_000;

/// Does a body hold an error?
pub(crate) fn in_body(text: &str) -> bool {
    json::at(text, "/error")
        .ok()
        .flatten()
        .is_some_and(|error| !error.is_null())
}

pub(crate) fn read(response: &Response, page_size: u32) -> Fault {
    let text = response.lossy_text();
    let found = json::fields(
        &text,
        [
            "/error/code",
            "/error/error_subcode",
            "/error/message",
            "/error/is_transient",
        ],
    );
    let [code, subcode, message, transient] = found.unwrap_or_default();
    let said = message
        .and_then(Raw::string)
        .map_or_else(|| fault::message(response), |said| said.into_owned());
    let (code, subcode) = (code.and_then(Raw::i64), subcode.and_then(Raw::i64));
    let named = |fault: Fault| match (code, subcode) {
        (Some(code), Some(subcode)) => fault.code(format!("{code}/{subcode}")),
        (Some(code), None) => fault.code(code),
        _ => fault.code(response.status),
    };
    let smaller = |fault: Fault| {
        if page_size > 1 {
            fault.page_size(page_size / 2)
        } else {
            fault
        }
    };
    let Some(number) = code else {
        return named(fault::from_status(response));
    };
    let lower = said.to_ascii_lowercase();
    named(match (number, subcode.unwrap_or_default()) {
        (4 | 341, _) => limited(said, response).scope(Scope::App),
        (17 | 613, _) => limited(said, response),
        (32 | 80_000..=80_014, _) => limited(said, response).scope(Scope::Connection),
        (190, 463) | (102, _) => Fault::auth_expired(said),
        (190, _) => Fault::auth_revoked(said),
        (10 | 200..=299 | 3, _) => Fault::permanent(format!("{said} (a permission is missing)")),
        (100, 1_487_534) => smaller(Fault::temporary(said)),
        (100, 33) | (803 | 33, _) => Fault::permanent(said),
        _ if lower.contains("reduce the amount of data") => smaller(Fault::temporary(said)),
        (100, _) => Fault::permanent(said),
        (1 | 2 | 104 | 960, _) | (_, 99) => Fault::temporary(said),
        _ if transient.and_then(Raw::bool) == Some(true) => Fault::temporary(said),
        (368, _) => Fault::permanent(said).scope(Scope::Connection),
        _ => Fault::unknown(said),
    })
}

/// The host reads how long from the usage headers; where they don't tell, an hour is when such a limit is lifted.
fn limited(said: String, response: &Response) -> Fault {
    let fault = Fault::rate_limited(said);
    let told = response
        .header_lines("x-business-use-case-usage")
        .any(tells_minutes);
    if told { fault } else { fault.wait(HOUR) }
}

/// Is there an `estimated_time_to_regain_access` other than 0?
fn tells_minutes(usage: &str) -> bool {
    usage
        .split("\"estimated_time_to_regain_access\"")
        .skip(1)
        .any(|rest| {
            rest.trim_start_matches([':', ' '])
                .starts_with(|c: char| matches!(c, '1'..='9'))
        })
}
