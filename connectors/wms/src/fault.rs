//! What a warehouse's refusals mean.

use weir_sdk::{fault, prelude::*};

pub(crate) fn read(response: &Response) -> Fault {
    let text = response.lossy_text();
    let code = json::at(&text, "/error/code")
        .or_else(|_| json::at(&text, "/code"))
        .ok()
        .flatten()
        .and_then(Raw::id);
    let fault = match response.status {
        // The night's batch holds the tables, for the whole warehouse.
        409 | 423 => Fault::temporary(fault::message(response)).scope(Scope::Connection),
        _ => fault::from_status(response),
    };
    match code {
        Some(code) => fault.code(format!("{}/{code}", response.status)),
        None => fault.code(response.status),
    }
}
