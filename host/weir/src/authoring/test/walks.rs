//! Plays the files of a connector, compares what came with what was accepted, and accepts.

use std::path::Path;

use serde::Serialize;
use similar::TextDiff;
use weir_rules::canonical::Digester;
use weir_rules::model;
use weir_runtime::Connector;
use weir_runtime::contract::Stream;

use super::{Outcome, Verdict};
use crate::authoring::walk::WalkFile;
use crate::authoring::walk::file::{Exchange, FaultShown, PageShown, RequestShown};
use crate::authoring::walk::play::{Played, Player};
use crate::authoring::{count, layout};

/// Lines of a difference around what differs.
const AROUND: usize = 3;

/// A walk that was played.
pub(super) struct Walked {
    pub(super) name: String,
    /// The streams of its config.
    pub(super) streams: Vec<Stream>,
    pub(super) stream: Stream,
    pub(super) played: Vec<Played>,
}

/// Plays one file.
pub(super) fn run(
    connector: &Connector,
    name: &str,
    path: &Path,
    dir: &Path,
    update: bool,
) -> (Outcome, Option<Walked>) {
    let what = format!("walk {name}");
    let failed = |why: String| (Outcome::of(&what, vec![why], ""), None);
    let mut walk = match WalkFile::read(path) {
        Ok(walk) => walk,
        Err(error) => return failed(error.to_string()),
    };
    let player = match Player::new(connector, &walk, dir) {
        Ok(player) => player,
        Err(why) => return failed(why),
    };
    let Some(stream) = player.stream().cloned() else {
        return failed(format!("there is no stream {}", walk.stream));
    };
    let playing = player.play(&walk.exchanges);
    let mut wrong = playing.wrong;
    wrong.extend(gate(&stream, &playing.played));
    let mut seen = Vec::new();
    let mut changed = false;
    for (number, (given, played)) in walk.exchanges.iter_mut().zip(&playing.played).enumerate() {
        let now = played.exchange(&given.response);
        if let Some(difference) = difference(given, &now) {
            if update {
                *given = now;
            } else {
                wrong.push(format!("exchange {} {}", number + 1, difference.head));
                wrong.extend(difference.lines);
            }
            changed = true;
        }
        seen.push(short(played));
    }
    let detail = seen.join("; ");
    let mut outcome = Outcome::of(&what, wrong, detail);
    if update && changed {
        match walk.write(path) {
            Ok(_) if outcome.verdict == Verdict::Ok => outcome.verdict = Verdict::Accepted,
            Ok(_) => {}
            Err(error) => outcome = Outcome::of(&what, vec![error.to_string()], ""),
        }
    }
    let walked = Walked {
        name: name.to_owned(),
        streams: player.descriptor.streams.clone(),
        stream,
        played: playing.played,
    };
    (outcome, Some(walked))
}

/// `3 records and on`, `rate-limited 429`
fn short(played: &Played) -> String {
    match &played.read {
        Ok(page) => {
            let records = count(page.records.len(), "record");
            let more = if page.next.is_empty() { "" } else { ", more" };
            format!("{records}{more}")
        }
        Err(fault) => format!("{} {}", model::Class::from(fault.class).name(), fault.code),
    }
}

/// What the host would set aside: the schema gate, and texts that are no JSON.
fn gate(stream: &Stream, played: &[Played]) -> Vec<String> {
    let rules = model::Stream::from(stream);
    let mut digester = match Digester::new(&rules.volatile, &rules.required) {
        Ok(digester) => digester,
        Err(error) => return vec![format!("stream {}: volatile: {error}", stream.name)],
    };
    let mut wrong = Vec::new();
    for (number, played) in played.iter().enumerate() {
        let Ok(page) = &played.read else { continue };
        for record in &page.records {
            let json = record.json(&played.response).unwrap_or_default();
            let why = match digester.digest(json) {
                Ok(digest) => match digest.missing.first() {
                    Some(pointer) if !record.deleted => {
                        format!("there is no {pointer}, which the stream's schema requires")
                    }
                    _ => continue,
                },
                Err(error) => error.to_string(),
            };
            // A recorded record without an id is there to show that the host sets it aside.
            if !record.id.is_empty() {
                wrong.push(format!(
                    "exchange {}: the host would set record {:?} aside: {why}",
                    number + 1,
                    record.id
                ));
            }
        }
    }
    wrong
}

struct Difference {
    head: &'static str,
    lines: Vec<String>,
}

/// What of an exchange is compared.
#[derive(Serialize)]
struct Compared<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    request: &'e Option<RequestShown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: &'e Option<PageShown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: &'e Option<FaultShown>,
}

fn difference(accepted: &Exchange, now: &Exchange) -> Option<Difference> {
    let is_new = accepted.request.is_none() && accepted.page.is_none() && accepted.fault.is_none();
    let before = match is_new {
        true => String::new(),
        false => text(accepted),
    };
    let after = text(now);
    if before == after {
        return None;
    }
    let diff = TextDiff::from_lines(&before, &after);
    let lines = diff
        .unified_diff()
        .context_radius(AROUND)
        .to_string()
        .lines()
        .map(str::to_owned)
        .collect();
    Some(Difference {
        head: if is_new {
            "has not been accepted yet (look at it, then weir test --update):"
        } else {
            "differs (- accepted, + now; weir test --update accepts it):"
        },
        lines,
    })
}

fn text(exchange: &Exchange) -> String {
    let compared = Compared {
        request: &exchange.request,
        page: &exchange.page,
        fault: &exchange.fault,
    };
    let laid = serde_json::to_string(&compared).and_then(|json| layout::pretty(&json));
    // What was read from JSON can be written as JSON.
    laid.map(|text| text + "\n").unwrap_or_default()
}
