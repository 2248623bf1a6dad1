//! Plays a recorded walk through a component: the calls of a host, the answers of the file.
//!
//! What the host does with an answer's faults is followed as far as a file can show it: the call is made again, with
//! smaller pages where the fault asks for them, and from the start where the position was lost.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use weir_runtime::contract::{
    Body, Class, Descriptor, Fault, Header, Page, Reason, Request, Response, Stream, Target, Task,
    Window,
};
use weir_runtime::{CallError, Connector};

use super::file::{Exchange, FaultShown, PageShown, RequestShown, ResponseGiven, WalkFile};
use super::shown;
use crate::config;
use crate::http::guard::{self, Origin};
use crate::http::headers;

/// A walk that can be played.
pub struct Player<'c> {
    connector: &'c Connector,
    /// The descriptor for the walk's config.
    pub descriptor: Descriptor,
    origins: Vec<(String, Origin)>,
    /// The poll.
    pub task: Task,
    /// Where the answers' files are.
    dir: PathBuf,
}

/// What came of one exchange.
pub struct Played {
    /// The task of the call.
    pub task: Task,
    /// The step of the call.
    pub step: Option<String>,
    /// The connector's request.
    pub request: Request,
    /// The same as the file shows it.
    pub asked: RequestShown,
    /// Where it goes.
    pub url: String,
    /// The file's answer.
    pub response: Response,
    /// What the connector made of it.
    pub read: Result<Page, Fault>,
}

impl Played {
    /// What it made of the answer, as the file shows it.
    pub fn shown(&self) -> (Option<PageShown>, Option<FaultShown>) {
        match &self.read {
            Ok(page) => (Some(shown::page(page, &self.response)), None),
            Err(fault) => (None, Some(shown::fault(fault))),
        }
    }

    /// The exchange as it should stand in the file.
    pub fn exchange(&self, given: &ResponseGiven) -> Exchange {
        let (page, fault) = self.shown();
        Exchange {
            request: Some(self.asked.clone()),
            response: given.clone(),
            page,
            fault,
        }
    }
}

/// How a walk went.
#[derive(Default)]
pub struct Playing {
    /// The exchanges that took place.
    pub played: Vec<Played>,
    /// What ended it before its end, or was found on the way.
    pub wrong: Vec<String>,
    /// Nothing was left to ask.
    pub complete: bool,
}

impl<'c> Player<'c> {
    /// Makes a walk ready. `dir` is the connector's directory.
    ///
    /// # Errors
    /// The config does not fit, or the stream is none of the connector's.
    pub fn new(connector: &'c Connector, walk: &WalkFile, dir: &Path) -> Result<Self, String> {
        let config = walk.config.get();
        let schema = &connector.descriptor().config_schema;
        config::validate_connector_config(schema, config, "NAME").map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            errors.join("; ").replace("connection.NAME.", "")
        })?;
        let descriptor = match connector.describe_for(config) {
            Ok(Ok(descriptor)) => descriptor,
            Ok(Err(fault)) => return Err(format!("describe refuses the config: {}", told(&fault))),
            Err(error) => return Err(error.to_string()),
        };
        let stream = stream(&descriptor, &walk.stream)?;
        let values: Value = serde_json::from_str(config).map_err(|error| error.to_string())?;
        let mut origins = Vec::new();
        for declared in &descriptor.origins {
            let origin = Origin::new(&declared.url, &values, true, true)
                .map_err(|error| error.to_string())?;
            origins.push((declared.id.clone(), origin));
        }
        let text = |raw: &Option<Box<serde_json::value::RawValue>>| {
            raw.as_ref().map(|raw| raw.get().to_owned())
        };
        let task = Task {
            stream: walk.stream.clone(),
            partition: walk.partition.clone(),
            parent: text(&walk.parent),
            config: config.to_owned(),
            cursor: text(&walk.cursor),
            window: Window {
                since: walk.since.map(|at| at.0),
                until: walk.until.unwrap_or(walk.now).0,
            },
            reason: walk.reason.into(),
            now: walk.now.0,
            page_size: walk.page_size.unwrap_or(stream.page_size),
        };
        Ok(Player {
            connector,
            origins,
            task,
            dir: dir.to_owned(),
            descriptor,
        })
    }

    /// The walk's stream.
    pub fn stream(&self) -> Option<&Stream> {
        stream(&self.descriptor, &self.task.stream).ok()
    }

    /// Plays the exchanges of a file.
    pub fn play(&self, exchanges: &[Exchange]) -> Playing {
        let mut playing = Playing::default();
        let mut task = self.task.clone();
        let mut steps = VecDeque::from([None::<String>]);
        for (number, exchange) in exchanges.iter().enumerate() {
            let Some(step) = steps.front().cloned() else {
                playing.wrong.push(format!(
                    "the walk ended after {number} of {} exchanges: nothing is left to ask",
                    exchanges.len()
                ));
                playing.complete = true;
                return playing;
            };
            let played = match self.exchange(&task, step, exchange) {
                Ok(played) => played,
                Err(why) => {
                    playing
                        .wrong
                        .push(format!("exchange {}: {why}", number + 1));
                    return playing;
                }
            };
            match &played.read {
                Ok(page) => {
                    steps.pop_front();
                    for next in &page.next {
                        if steps.iter().any(|waiting| waiting.as_ref() == Some(next)) {
                            continue;
                        }
                        steps.push_back(Some(next.clone()));
                    }
                }
                Err(fault) if fault.class == Class::PositionLost => {
                    task.cursor = None;
                    task.reason = Reason::Resync;
                    steps = VecDeque::from([None]);
                }
                Err(fault) => task.page_size = fault.page_size.unwrap_or(task.page_size),
            }
            if let Some(why) = self.asks_again(&playing.played, &played) {
                playing
                    .wrong
                    .push(format!("exchange {}: {why}", number + 1));
            }
            playing.played.push(played);
        }
        // A file may end with a fault: what the host does then is its own affair.
        let ends_with_fault = playing.played.last().is_some_and(|last| last.read.is_err());
        playing.complete = steps.is_empty();
        if let (false, false, Some(step)) = (playing.complete, ends_with_fault, steps.front()) {
            let step = step.as_deref().unwrap_or("none");
            playing.wrong.push(format!(
                "the walk does not end: the connector goes on with step {step}, and no answer to that is recorded"
            ));
        }
        playing
    }

    /// A step that was taken once leads round in a circle.
    fn asks_again(&self, before: &[Played], now: &Played) -> Option<String> {
        let same = before.iter().any(|earlier| {
            earlier.read.is_ok() && earlier.step == now.step && earlier.task == now.task
        });
        same.then(|| {
            format!(
                "the connector takes step {} a second time: the walk would go round in a circle",
                now.step.as_deref().unwrap_or("none")
            )
        })
    }

    fn exchange(
        &self,
        task: &Task,
        step: Option<String>,
        exchange: &Exchange,
    ) -> Result<Played, String> {
        let request = twice(|| self.connector.build_request(task, step.as_deref()))?
            .map_err(|fault| format!("build-request answers with a fault: {}", told(&fault)))?;
        let (base, url) = self.resolve(&request)?;
        let asked = shown::request(&request, &base);
        let response = self.response(&exchange.response, &url)?;
        let read = twice(|| {
            self.connector
                .read_response(task, step.as_deref(), &response)
        })?;
        Ok(Played {
            task: task.clone(),
            step,
            request,
            asked,
            url,
            response,
            read,
        })
    }

    /// Where the host would send it: without its query, and with it.
    fn resolve(&self, request: &Request) -> Result<(String, String), String> {
        let origin = self.origins.iter().find(|(id, _)| *id == request.origin);
        let Some((_, origin)) = origin else {
            return Err(format!(
                "the request names the origin {:?}, which the connector does not declare",
                request.origin
            ));
        };
        let headers: Vec<_> = request
            .headers
            .iter()
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect();
        let admitted = headers::admit(&headers).map_err(|error| error.to_string())?;
        if let Some(name) = admitted.left_out.first() {
            return Err(format!(
                "the request sets the header {name}, which is the host's to set: leave it out"
            ));
        }
        let target = match &request.target {
            Target::Path(path) => guard::Target::Path(path.clone()),
            Target::Link(link) => guard::Target::Link(link.clone()),
        };
        let url = |query: &[(String, String)]| {
            let resolved = origin.resolve(&target, query, None);
            resolved
                .map(|resolved| String::from(resolved.url))
                .map_err(|error| error.to_string())
        };
        Ok((url(&[])?, url(&request.query)?))
    }

    /// The file's answer, as the host hands it over.
    fn response(&self, given: &ResponseGiven, url: &str) -> Result<Response, String> {
        let from_file = |file: &PathBuf| {
            let path = self.dir.join(file);
            fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let body = match given {
            ResponseGiven {
                json: Some(json), ..
            } => Body::Text(json.get().to_owned()),
            ResponseGiven {
                text: Some(text), ..
            } => Body::Text(text.clone()),
            ResponseGiven {
                base64: Some(base64),
                ..
            } => Body::Bytes(
                STANDARD
                    .decode(base64)
                    .map_err(|error| format!("the answer's base64: {error}"))?,
            ),
            ResponseGiven {
                file: Some(file), ..
            } => match String::from_utf8(from_file(file)?) {
                Ok(text) => Body::Text(text),
                Err(error) => Body::Bytes(error.into_bytes()),
            },
            _ => Body::Text(String::new()),
        };
        Ok(Response {
            status: given.status,
            headers: given
                .headers
                .iter()
                .map(|(name, value)| Header {
                    name: name.to_ascii_lowercase(),
                    value: value.clone(),
                })
                .collect(),
            body,
            url: given.url.clone().unwrap_or_else(|| url.to_owned()),
            elapsed: 100,
        })
    }
}

/// The same question twice: a connector is a pure function, so the answers are the same.
fn twice<T: PartialEq>(
    call: impl Fn() -> Result<Result<T, Fault>, CallError>,
) -> Result<Result<T, Fault>, String> {
    let first = call().map_err(|error| error.to_string())?;
    let second = call().map_err(|error| error.to_string())?;
    if first != second {
        return Err(
            "the same input gave two different outputs: a connector must not depend on anything else (the order of a \
             hash map, a random number, a global)"
                .to_owned(),
        );
    }
    Ok(first)
}

/// A fault in a line.
pub fn told(fault: &Fault) -> String {
    let class = weir_rules::model::Class::from(fault.class);
    format!("{} {}: {}", class.name(), fault.code, fault.message)
}

fn stream<'d>(descriptor: &'d Descriptor, name: &str) -> Result<&'d Stream, String> {
    let found = descriptor.streams.iter().find(|stream| stream.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = descriptor
            .streams
            .iter()
            .map(|stream| stream.name.as_str())
            .collect();
        format!(
            "the connector has no stream {name:?} for this config: {}",
            config::suggest_name(name, &known)
        )
    })
}
