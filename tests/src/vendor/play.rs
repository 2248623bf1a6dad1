//! How a fault looks on the wire.

use super::conditional::compress;
use super::errors::{error, refusal, web_page, with_text};
use super::exchange::Shown;
use crate::answer::{SimAnswer, SimRequest, SimResponse};
use crate::ledger::Outcome;
use crate::limits;
use crate::spec::FaultKind;

/// An answer before the headers that every answer has, and what it was.
pub(super) struct Reply {
    pub(super) answer: SimAnswer,
    pub(super) outcome: Outcome,
    pub(super) records: usize,
    /// The wait that was told, and whether it concerns all collections.
    pub(super) told: Option<(i64, bool)>,
    /// The page that was asked for, where the call got so far.
    pub(super) page: Option<Shown>,
}

impl Reply {
    pub(super) fn new(response: SimResponse, outcome: Outcome) -> Self {
        Reply {
            answer: SimAnswer::Response(response),
            outcome,
            records: 0,
            told: None,
            page: None,
        }
    }
}

/// Plays a fault that stands in place of the right answer; none for those that spoil it.
pub(super) fn play(fault: &FaultKind, request: &SimRequest, server_now: i64) -> Option<Reply> {
    let outcome = Outcome::Fault(fault.name());
    let response = match fault {
        FaultKind::Status {
            status,
            body,
            content_type,
            wait,
            wait_ms,
            headers,
        } => {
            let told = limits::tell(*wait, *wait_ms, server_now);
            let wait_ms = told.wait_ms;
            let mut response = refusal(*status, body, content_type, told);
            for (name, value) in headers {
                response.set(name, value.clone());
            }
            return Some(Reply {
                told: wait_ms.map(|wait_ms| (wait_ms, false)),
                ..Reply::new(response, outcome)
            });
        }
        FaultKind::ErrorIn200 { body } if body.is_empty() => with_text(
            200,
            "application/json",
            r#"{"ok":false,"error":"internal_error"}"#.into(),
        ),
        FaultKind::ErrorIn200 { body } => with_text(200, "application/json", body.clone()),
        FaultKind::Html200 => web_page(200),
        FaultKind::Empty200 => with_text(200, "application/json", String::new()),
        FaultKind::Redirect { status, to } => {
            let own = format!("{}{}?{}", request.origin, request.path, request.raw_query);
            let mut response = error(*status, "moved", "see the Location header");
            response.set("location", if to.is_empty() { own } else { to.clone() });
            response
        }
        FaultKind::Huge { bytes } => {
            return Some(Reply {
                answer: SimAnswer::Huge {
                    response: with_text(200, "application/json", r#"{"data":["#.into()),
                    bytes: *bytes,
                },
                outcome,
                records: 0,
                told: None,
                page: None,
            });
        }
        FaultKind::Reset | FaultKind::Hang => {
            let answer = if *fault == FaultKind::Hang {
                SimAnswer::Hang
            } else {
                SimAnswer::Reset { after_ms: 5 }
            };
            return Some(Reply {
                answer,
                outcome,
                records: 0,
                told: None,
                page: None,
            });
        }
        FaultKind::Truncated
        | FaultKind::CutShort
        | FaultKind::CutGzip
        | FaultKind::MissingFields
        | FaultKind::MissingRecord
        | FaultKind::Slow { .. }
        | FaultKind::Headers { .. } => return None,
    };
    Some(Reply::new(response, outcome))
}

/// Spoils a right answer. Its validators stay as they are: whoever believes them loses what was cut off.
pub(super) fn spoil(mut response: SimResponse, fault: Option<&FaultKind>) -> (SimAnswer, Outcome) {
    let Some(fault) = fault else {
        return (SimAnswer::Response(response), Outcome::Page);
    };
    let outcome = Outcome::Fault(fault.name());
    match fault {
        FaultKind::Truncated => {
            let keep = response.body.len() * 2 / 3;
            response.body.truncate(keep);
        }
        FaultKind::CutShort => {
            let sent = response.body.len() / 2;
            return (SimAnswer::Broken { response, sent }, outcome);
        }
        FaultKind::CutGzip => {
            compress(&mut response);
            let keep = response.body.len() / 2;
            response.body.truncate(keep);
        }
        FaultKind::Slow { ms } => response.latency_ms += ms,
        FaultKind::Headers { headers } => {
            for (name, value) in headers {
                response.set(name, value.clone());
            }
        }
        _ => {}
    }
    (SimAnswer::Response(response), outcome)
}
