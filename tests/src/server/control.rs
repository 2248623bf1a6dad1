//! The paths below `/_sim/`: for whoever runs the vendors from another process.

use std::io;

use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};

use super::Stage;
use super::body::SimBody;
use super::service::{response, text};
use crate::ledger::Ledger;

pub(super) fn answer(stage: &Stage, request: &Request<Incoming>) -> io::Result<Response<SimBody>> {
    let now = (stage.clock)();
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/_sim/ledger") => {
            let ledgers = stage.vendors.iter().map(|vendor| vendor.ledger(now));
            let summary = ledgers.reduce(Ledger::and).unwrap_or_default().summary();
            let json = serde_json::to_string(&summary)?;
            response(StatusCode::OK, "application/json", text(&json))
        }
        (&Method::POST, "/_sim/freeze") => {
            for vendor in &stage.vendors {
                vendor.freeze(now);
            }
            let json = format!("{{\"frozen_at\":{now}}}");
            response(StatusCode::OK, "application/json", text(&json))
        }
        (&Method::GET, "/_sim/calls") => {
            let query = request.uri().query().unwrap_or_default();
            let wanted = query.strip_prefix("vendor=");
            let mut lines = String::new();
            for vendor in &stage.vendors {
                if wanted.is_none_or(|wanted| wanted == vendor.spec().name) {
                    for call in vendor.calls() {
                        lines.push_str(&serde_json::to_string(&call)?);
                        lines.push('\n');
                    }
                }
            }
            response(StatusCode::OK, "application/x-ndjson", text(&lines))
        }
        (_, "/_sim/ledger" | "/_sim/freeze" | "/_sim/calls") => response(
            StatusCode::METHOD_NOT_ALLOWED,
            "text/plain",
            text("GET ledger, POST freeze, GET calls"),
        ),
        _ => response(
            StatusCode::NOT_FOUND,
            "text/plain",
            text("ledger, freeze or calls"),
        ),
    }
}
