//! Feeds recorded answers to a connector, page after page, and keeps what became of each.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use weir_rules::fault::{Signals, default_class, says_limit};
use weir_rules::http_date::Anchor;
use weir_rules::limits::{self, Reading};
use weir_rules::model;
use weir_rules::retry_after;
use weir_rules::wait::{self, Wait};
use weir_runtime::Connector;
use weir_runtime::contract::{Body, Header, Page, Response, Task};

use super::guess;
use super::recording::{Interaction, Recording};
use super::vendor::{self, Connection, Fit};

/// A recorded answer, and what was made of it.
pub(super) struct Fed {
    pub(super) file: String,
    pub(super) asked: String,
    pub(super) status: u16,
    pub(super) headers: Headers,
    pub(super) connector: String,
    pub(super) read_as: ReadAs,
    /// How many records the answer holds, counted without the connector.
    pub(super) held: usize,
    pub(super) outcome: Outcome,
}

/// What the headers say, read without a connector.
pub(super) struct Headers {
    pub(super) reading: Reading,
    /// Is there a header that looks like one of limits, though nothing was read?
    pub(super) unread: Vec<String>,
}

/// As which call of which stream the answer was read.
pub(super) struct ReadAs {
    pub(super) stream: String,
    pub(super) fit: Fit,
    /// The page before led here.
    pub(super) continues: bool,
}

/// What became of an answer.
pub(super) enum Outcome {
    Page {
        records: usize,
        ids: usize,
        next: usize,
        truncated: bool,
        limits: Vec<model::Limit>,
    },
    Fault {
        fault: model::Fault,
        wait: Option<Wait>,
    },
    /// No usable answer of the connector, or none that would take the recording.
    Trap(String),
}

impl Fed {
    /// Records of a stream that the connector does not have: it rightly refuses their shape.
    fn is_foreign(&self) -> bool {
        let refused = matches!(&self.outcome, Outcome::Fault { fault, .. } if fault.class == model::Class::Incomplete);
        refused && self.held > 0 && self.read_as.fit < Fit::Path
    }

    /// Why the answer was not dealt with; none if it was.
    pub(super) fn trouble(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Trap(why) => Some(format!("no usable result: {why}")),
            Outcome::Fault { fault, .. } if fault.class == model::Class::Unknown => {
                Some("a fault without a class".to_owned())
            }
            Outcome::Page { records, .. } if *records < self.held => {
                Some(format!("{} of its records are lost", self.held - records))
            }
            Outcome::Page { records, ids, .. } if ids < records => {
                Some(format!("{} of its records share an id", records - ids))
            }
            _ => None,
        }
    }
}

/// All answers of a recording.
pub(super) fn recording(recording: &Recording, connectors: &[Arc<Connector>]) -> Vec<Fed> {
    let mut fed = Vec::new();
    for walk in walks(recording) {
        let Some(first) = walk.first() else { continue };
        let vendor = recording
            .sources
            .get(first.from)
            .map_or("", |source| source.vendor.as_str());
        let file = recording.path.display().to_string();
        let own = vendor::find(connectors, vendor, &first.request.url)
            .map(|connector| vendor::connect(connector, &first.request.url));
        let read = own.map(|connection| through(&file, vendor, &walk, connection));
        fed.extend(match read {
            Some(read) if !read.iter().any(Fed::is_foreign) => read,
            // No connector of its own, or none that has a stream like this.
            _ => through(&file, vendor, &walk, plain(connectors, &walk)),
        });
    }
    fed
}

/// The connector `rest`, with a configuration that is read off the walk.
fn plain(connectors: &[Arc<Connector>], walk: &[&Interaction]) -> anyhow::Result<Connection> {
    let rest = connectors.iter().find(|one| one.name() == "rest");
    let rest = rest.context("there is no connector `rest`")?;
    vendor::with_config(rest, guess::config(walk))
}

fn through(
    file: &str,
    vendor: &str,
    walk: &[&Interaction],
    connection: anyhow::Result<Connection>,
) -> Vec<Fed> {
    match connection {
        Ok(connection) => Walk::new(&connection).feed(file, walk),
        Err(error) => {
            let why = format!("{error:#}");
            let trap = |one: &&Interaction| {
                let outcome = Outcome::Trap(why.clone());
                outcome_of(file, one, vendor, ReadAs::nothing(), outcome)
            };
            walk.iter().map(trap).collect()
        }
    }
}

/// Calls that belong together: of one source, to one path. A link may lead elsewhere, so a new path goes on with the
/// walk when the page before has named it.
fn walks(recording: &Recording) -> Vec<Vec<&Interaction>> {
    let mut walks: Vec<Vec<&Interaction>> = Vec::new();
    for one in &recording.interactions {
        let goes_on = walks
            .last()
            .and_then(|walk| walk.last())
            .is_some_and(|last| {
                let url = &one.request.url;
                last.from == one.from
                    && last.request.method == one.request.method
                    && (last.request.url.path() == url.path() || names(last, url.as_str()))
            });
        match walks.last_mut().filter(|_| goes_on) {
            Some(walk) => walk.push(one),
            None => walks.push(vec![one]),
        }
    }
    walks
}

fn names(answer: &Interaction, url: &str) -> bool {
    let headers = &answer.response.headers;
    headers.iter().any(|(_, value)| value.contains(url)) || answer.response.body.contains(url)
}

/// A walk through recorded pages.
struct Walk<'a> {
    connection: &'a Connection,
    /// Where the page before leads.
    next: Option<(Task, String)>,
}

impl<'a> Walk<'a> {
    fn new(connection: &'a Connection) -> Self {
        Walk {
            connection,
            next: None,
        }
    }

    fn feed(mut self, file: &str, walk: &[&Interaction]) -> Vec<Fed> {
        walk.iter().map(|one| self.one(file, one)).collect()
    }

    fn one(&mut self, file: &str, one: &Interaction) -> Fed {
        let response = response(one);
        let (task, step, read_as) = self.place(one, &response);
        let connector = &self.connection.connector;
        let read = connector.read_response(&task, step.as_deref(), &response);
        let outcome = match read {
            Err(error) => Outcome::Trap(error.to_string()),
            Ok(Err(fault)) => {
                // The same call again is what a poll does after a fault.
                self.next = step.map(|step| (task, step));
                fault_seen(one, fault.into())
            }
            Ok(Ok(page)) => {
                let outcome = page_seen(&page);
                let step = page.next.into_iter().next();
                self.next = step.map(|step| (task, step));
                outcome
            }
        };
        outcome_of(file, one, connector.name(), read_as, outcome)
    }

    /// The stream and the step that the answer is read as.
    fn place(&self, one: &Interaction, response: &Response) -> (Task, Option<String>, ReadAs) {
        let connection = self.connection;
        if let Some((task, step)) = &self.next {
            let read_as = ReadAs {
                stream: task.stream.clone(),
                fit: connection.fit(task, Some(step), &one.request.url),
                continues: true,
            };
            return (task.clone(), Some(step.clone()), read_as);
        }
        let now = moment(one);
        let streams = connection.descriptor.streams.iter();
        let best = streams
            .map(|stream| connection.task(&stream.name, now))
            .map(|task| {
                (
                    connection.fit(&task, None, &one.request.url),
                    taken(connection, &task, response),
                    task,
                )
            })
            // The first of equals.
            .reduce(|best, other| {
                if (other.0, other.1) > (best.0, best.1) {
                    other
                } else {
                    best
                }
            });
        match best {
            Some((fit, _, task)) => {
                let read_as = ReadAs {
                    stream: task.stream.clone(),
                    fit,
                    continues: false,
                };
                (task, None, read_as)
            }
            None => (connection.task("", now), None, ReadAs::nothing()),
        }
    }
}

impl ReadAs {
    fn nothing() -> Self {
        ReadAs {
            stream: String::new(),
            fit: Fit::No,
            continues: false,
        }
    }
}

/// How many records a stream would take from an answer.
fn taken(connection: &Connection, task: &Task, response: &Response) -> usize {
    let read = connection.connector.read_response(task, None, response);
    read.ok()
        .and_then(Result::ok)
        .map_or(0, |page| page.records.len())
}

fn page_seen(page: &Page) -> Outcome {
    let ids: BTreeSet<&str> = page
        .records
        .iter()
        .map(|one| one.id.as_str())
        .filter(|id| !id.is_empty())
        .collect();
    Outcome::Page {
        records: page.records.len(),
        ids: ids.len(),
        next: page.next.len(),
        truncated: page.truncated,
        limits: page.limits.iter().cloned().map(Into::into).collect(),
    }
}

/// The class and the wait, as a poll would have them.
fn fault_seen(one: &Interaction, mut fault: model::Fault) -> Outcome {
    let (headers, status) = (&one.response.headers, one.response.status);
    let anchor = Anchor::of(headers, moment(one));
    let mut found = limits::read(headers, &anchor).limits;
    let signals = Signals {
        limit: found.iter().any(limits::is_spent)
            || (status >= 400 && says_limit(one.response.body.as_bytes())),
        retry_after: retry_after::read(headers, &anchor).is_some(),
    };
    if fault.class == model::Class::Unknown && !(200..300).contains(&status) {
        fault.class = default_class(status, signals);
    }
    found.extend(fault.limits.iter().cloned());
    let wait = wait::vendor_wait(&wait::Answer {
        class: fault.class,
        headers,
        at: anchor,
        body_wait: fault.wait,
        limits: &found,
        repeats: 0,
    });
    Outcome::Fault { fault, wait }
}

fn outcome_of(
    file: &str,
    one: &Interaction,
    connector: &str,
    read_as: ReadAs,
    outcome: Outcome,
) -> Fed {
    let body = guess::body(one);
    Fed {
        file: file.to_owned(),
        // Without the query: it may carry a key.
        asked: format!("{} {}", one.request.method, one.request.url.path()),
        status: one.response.status,
        headers: headers_seen(one),
        connector: connector.to_owned(),
        read_as,
        held: guess::records(&body).1.len(),
        outcome,
    }
}

fn headers_seen(one: &Interaction) -> Headers {
    let headers = &one.response.headers;
    let anchor = Anchor::of(headers, moment(one));
    let reading = limits::read(headers, &anchor);
    let speaks = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["ratelimit", "rate-limit", "call-limit", "usage"]
            .iter()
            .any(|word| name.contains(word))
    };
    let unread = if reading.limits.is_empty() {
        headers
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| speaks(name))
            .collect()
    } else {
        Vec::new()
    };
    Headers { reading, unread }
}

/// When the answer was given: its own date, else now (ms).
fn moment(one: &Interaction) -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    Anchor::of(&one.response.headers, now).moment()
}

fn response(one: &Interaction) -> Response {
    let headers = one.response.headers.iter();
    Response {
        status: one.response.status,
        headers: headers
            .map(|(name, value)| Header {
                name: name.clone(),
                value: value.clone(),
            })
            .collect(),
        body: Body::Text(one.response.body.clone()),
        url: one.request.url.to_string(),
        elapsed: 0,
    }
}
