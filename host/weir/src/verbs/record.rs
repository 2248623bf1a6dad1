//! `weir record`: real polls, written down as walks for a connector's tests.
//!
//! What leaves this file has been scrubbed: the answer goes to a terminal, over a socket, and into a repository.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir_runtime::contract::{Body, Response};

use super::text::count;
use super::{Caller, Failure, Selection, no_connection};
use crate::authoring::layout;
use crate::authoring::redact::Scrubber;
use crate::authoring::walk::WalkFile;
use crate::authoring::walk::file::{Exchange, Moment, ResponseGiven};
use crate::authoring::walk::play::Player;
use crate::connection::Connection;
use crate::control::{Reply, Said};
use crate::host::Host;
use crate::poll::{self, Recorded};
use crate::store::UnitRow;

/// What is to be recorded.
pub(super) struct Wanted<'w> {
    pub(super) connection: &'w str,
    pub(super) stream: Option<&'w str>,
    pub(super) partition: Option<&'w str>,
    pub(super) scrub: &'w [String],
    pub(super) calls: usize,
    pub(super) resume: bool,
}

/// The answer.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Walks {
    /// What was recorded.
    pub(crate) walks: Vec<Recording>,
}

/// One walk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Recording {
    unit: String,
    calls: usize,
    records: usize,
    /// Why it ended before its end, or what its file does not show.
    notes: Vec<String>,
    /// A name for its file.
    pub(crate) name: String,
    /// The file's text; none: nothing was recorded.
    pub(crate) text: Option<String>,
    /// Where it was written.
    #[serde(default)]
    pub(crate) file: Option<String>,
}

/// Records one walk of each stream: of its first slice, if it has slices and none is named.
pub(super) async fn answer(
    host: &Arc<Host>,
    wanted: &Wanted<'_>,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let Some(connection) = host.connections.get(wanted.connection) else {
        let known = host.config.connections.contains_key(wanted.connection);
        let all = host.connections.all();
        let why = all.into_iter().find(|(name, _)| name == wanted.connection);
        return Err(match why {
            Some((_, Err(why))) => Failure::Refused(why),
            _ if known => {
                Failure::Refused(format!("connection {} is not ready", wanted.connection))
            }
            _ => no_connection(host, wanted.connection),
        });
    };
    let scrubber = Scrubber::new(&connection.redactor, &connection.config, wanted.scrub)
        .map_err(|error| Failure::Unknown(error.to_string()))?;
    let mut walks = Walks::default();
    for unit in units(host, wanted)? {
        // Nobody has to listen.
        let _ = caller
            .progress
            .send(Said::Passing(format!("recording {}", unit.key)))
            .await;
        let key = unit.key.clone();
        let walk = match poll::record(host, unit.id, wanted.calls, !wanted.resume).await? {
            Ok(recorded) => written(&connection, recorded, &scrubber),
            Err(why) => Recording {
                unit: key.to_string(),
                calls: 0,
                records: 0,
                notes: vec![scrubber.text(&why)],
                name: String::new(),
                text: None,
                file: None,
            },
        };
        walks.walks.push(walk);
    }
    let failed = walks.walks.iter().any(|walk| walk.text.is_none());
    Ok(Reply::with_exit(u8::from(failed), walks))
}

/// The units to poll: one of each stream.
fn units(host: &Host, wanted: &Wanted<'_>) -> Result<Vec<UnitRow>, Failure> {
    let name = [Some(wanted.connection), wanted.stream, wanted.partition]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("/");
    let mut seen = BTreeSet::new();
    let mut units = Selection::parse(Some(&name)).units(host)?;
    units.retain(|unit| seen.insert(unit.key.stream.clone()));
    Ok(units)
}

/// The file of a walk, with what the connector makes of the answers as they are kept.
fn written(connection: &Connection, recorded: Recorded, scrubber: &Scrubber) -> Recording {
    let Recorded {
        unit,
        task,
        exchanges,
        ended,
    } = recorded;
    let raw = |json: String| RawValue::from_string(json).ok();
    let mut notes: Vec<String> = ended.iter().map(|why| scrubber.text(why)).collect();
    let calls = exchanges.len();
    let mut walk = WalkFile {
        about: None,
        stream: unit.stream.clone(),
        partition: unit.partition.as_deref().map(|slice| scrubber.text(slice)),
        parent: task
            .parent
            .as_deref()
            .and_then(|json| raw(scrubber.json(json)?)),
        config: raw(scrubber.config(&task.config)).unwrap_or_else(|| RawValue::NULL.to_owned()),
        cursor: task
            .cursor
            .as_deref()
            .and_then(|json| raw(scrubber.text(json))),
        since: task.window.since.map(Moment),
        until: (task.window.until != task.now).then_some(Moment(task.window.until)),
        now: Moment(task.now),
        reason: weir_rules::model::Reason::Schedule,
        page_size: Some(task.page_size),
        exchanges: exchanges
            .into_iter()
            .map(|(_, answer)| Exchange {
                request: None,
                response: scrubber.response(given(answer)),
                page: None,
                fault: None,
            })
            .collect(),
    };
    let mut records = 0;
    match Player::new(&connection.connector, &walk, Path::new(".")) {
        Ok(player) => {
            let playing = player.play(&walk.exchanges);
            for (exchange, played) in walk.exchanges.iter_mut().zip(&playing.played) {
                records += played.read.as_ref().map_or(0, |page| page.records.len());
                // Where an answer came from is of interest only if that is not where it was asked.
                exchange.response.url.take_if(|url| *url == played.url);
                let mut now = played.exchange(&exchange.response);
                now.request = now.request.map(|request| scrubber.request(request));
                *exchange = now;
            }
            notes.extend(playing.wrong.iter().map(|why| scrubber.text(why)));
        }
        Err(why) => notes.push(scrubber.text(&why)),
    }
    Recording {
        unit: unit.to_string(),
        calls,
        records,
        notes,
        name: file_name(&unit.stream, unit.partition.as_deref()),
        text: walk.text().ok().filter(|_| calls > 0),
        file: None,
    }
}

/// An answer as a file holds it.
fn given(answer: Response) -> ResponseGiven {
    let mut given = ResponseGiven {
        status: answer.status,
        headers: answer
            .headers
            .into_iter()
            .map(|header| (header.name, header.value))
            .collect(),
        url: Some(answer.url),
        json: None,
        text: None,
        base64: None,
        file: None,
    };
    match answer.body {
        Body::Text(text) => match layout::compact(&text).ok().map(RawValue::from_string) {
            Some(Ok(json)) => given.json = Some(json),
            _ => given.text = Some(text),
        },
        Body::Bytes(bytes) => given.base64 = Some(STANDARD.encode(bytes)),
    }
    given
}

/// `issues_acme_widgets`
fn file_name(stream: &str, partition: Option<&str>) -> String {
    let parts = [Some(stream), partition].into_iter().flatten();
    let joined = parts.collect::<Vec<_>>().join("_");
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    joined.chars().take(80).map(plain).collect()
}

/// For people.
pub(super) fn render(walks: &Walks) -> String {
    let mut out = String::new();
    for walk in &walks.walks {
        let file = walk.file.as_deref().unwrap_or("nothing recorded");
        out += &format!(
            "{file}  {}: {}, {}\n",
            walk.unit,
            count(walk.calls as u64, "call"),
            count(walk.records as u64, "record")
        );
        for note in &walk.notes {
            out += &format!("  note: {note}\n");
        }
    }
    if walks.walks.iter().any(|walk| walk.file.is_some()) {
        out += "look through the files before they are committed: names and addresses of people are not known by their \
                fields (--scrub POINTER)\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(
            file_name("issues", Some("acme/widgets")),
            "issues_acme_widgets"
        );
        assert_eq!(file_name("../x", None), "___x");
    }
}
