//! The next call of a poll: path, parameters and body from the stream's keys, the window and the step.
//!
//! Promises: a later page is asked for exactly as the first one was, apart from the position. A parameter takes one
//! value: a position replaces the window's bound of the same name. Refuses to ask for a slice without knowing which.

use weir_sdk::{Fault, Method, Request, Target, Task, json, url};

use crate::Rest;
use crate::config::{CursorKey, MethodKey, Scalar};
use crate::endpoint::{Endpoint, Paging, Sync};
use crate::errors::text_of;
use crate::stamp::Bound;
use crate::step::Step;
use crate::template::{self, Name, Part};

/// The id of the only origin.
const ORIGIN: &str = "api";

/// Builds the call.
pub(crate) fn build(
    endpoint: &Endpoint,
    task: &Task<Rest>,
    step: Option<&Step>,
) -> Result<Request, Fault> {
    let method = match endpoint.method {
        MethodKey::Get => Method::Get,
        MethodKey::Post => Method::Post,
    };
    let window = Bounds::of(endpoint, task);
    let mut body = endpoint.body.clone();
    if let Some(body) = &mut body {
        fill_body(body, &window, task)?;
    }
    let mut params = Params {
        query: Vec::new(),
        body,
    };

    let mut request = match whole_url(endpoint, task, step) {
        Some(url) => Request::new(method, ORIGIN, Target::Link(url)),
        None => {
            let path = template::fill(&endpoint.path, |name, spread| {
                window
                    .text(name, task)
                    .map(|text| text.map(|text| encoded(&text, spread)))
            })?;
            let Some(path) = path else {
                return Err(
                    Fault::permanent("the path asks for a window, and this poll has none")
                        .code("config"),
                );
            };
            let alone =
                matches!(&endpoint.paging, Paging::Token { alone: true, .. }) && step.is_some();
            if !alone {
                for (name, value) in &endpoint.query {
                    if let Some(text) =
                        template::fill(&value.text, |name, _| window.text(name, task))?
                    {
                        params.set(
                            name,
                            Scalar {
                                text,
                                quoted: value.quoted,
                            },
                        );
                    }
                }
                params.set_if(endpoint.window.since.as_deref(), window.since.clone());
                params.set_if(endpoint.window.until.as_deref(), window.until.clone());
            }
            let size = match step {
                Some(Step::Ties { size, .. }) => *size,
                _ => task.page_size,
            };
            params.set_if(
                endpoint.page_size_param.as_deref(),
                Some(whole(u64::from(size))),
            );
            if step.is_none()
                && let (Some(Sync::Token { param, .. }), Some(token)) =
                    (&endpoint.sync, &task.cursor)
            {
                params.set(
                    param,
                    Scalar {
                        text: token.clone(),
                        quoted: true,
                    },
                );
            }
            position(endpoint, step, &mut params);
            Request::new(method, ORIGIN, Target::Path(path))
        }
    };

    request.query = params.query;
    if method == Method::Post {
        let body = params
            .body
            .unwrap_or_else(|| serde_json::Value::Object(serde_json::Map::new()));
        request = request
            .body(weir_sdk::Body::Text(body.to_string()))
            .header("content-type", "application/json");
    }
    let named = |name: &str| {
        endpoint
            .headers
            .iter()
            .any(|(header, _)| header.eq_ignore_ascii_case(name))
    };
    if !named("accept") {
        request = request.header("accept", "application/json");
    }
    for (name, value) in &endpoint.headers {
        request = request.header(name, value.clone());
    }
    request.conditional = endpoint.conditional;
    request.idempotency_header = endpoint.idempotency_header.clone();
    request.bucket = endpoint.bucket.clone();
    request.cost = endpoint.cost;
    Ok(request)
}

/// The URL to follow, where the vendor gave one: for the next page, or to begin this poll with.
fn whole_url(endpoint: &Endpoint, task: &Task<Rest>, step: Option<&Step>) -> Option<String> {
    match (step, &endpoint.sync) {
        (Some(Step::Url(url)), _) => Some(url.clone()),
        (None, Some(Sync::Url { .. })) => task.cursor.clone(),
        _ => None,
    }
}

/// Sets the parameters that say where the page begins.
fn position(endpoint: &Endpoint, step: Option<&Step>, params: &mut Params) {
    match (&endpoint.paging, step) {
        (
            Paging::Keyset {
                id: id_param,
                time: time_param,
            },
            Some(Step::After { id, time }),
        ) => {
            params.set_if(
                time_param.as_ref().map(|after| after.param.as_str()),
                time.clone(),
            );
            params.set_if(id_param.as_deref(), id.clone());
        }
        (
            Paging::Keyset {
                time: Some(time), ..
            },
            Some(Step::Ties {
                after: Some(place), ..
            })
            | Some(Step::Past(place)),
        ) => params.set(&time.param, place.clone()),
        (Paging::Token { param, .. }, Some(Step::Token(token))) => params.set(param, token.clone()),
        (Paging::Page { param, first }, step) => {
            let number = match step {
                Some(Step::Page { number, .. }) => *number,
                _ => *first,
            };
            params.set(param, whole(number));
        }
        (Paging::Offset { param }, step) => {
            let offset = match step {
                Some(Step::Offset(offset)) => *offset,
                _ => 0,
            };
            params.set(param, whole(offset));
        }
        _ => {}
    }
}

fn whole(number: u64) -> Scalar {
    Scalar {
        text: number.to_string(),
        quoted: false,
    }
}

/// One segment of a path, or several when the slashes stay. Empty segments, `.` and `..` would lead elsewhere.
fn encoded(text: &str, spread: bool) -> String {
    if spread {
        let segments: Vec<String> = text
            .split('/')
            .filter(|part| !part.is_empty())
            .map(url::segment)
            .collect();
        segments.join("/")
    } else {
        url::segment(text)
    }
}

/// What the placeholders stand for in this poll.
struct Bounds {
    since: Option<Scalar>,
    until: Option<Scalar>,
}

impl Bounds {
    fn of(endpoint: &Endpoint, task: &Task<Rest>) -> Self {
        let window = &endpoint.window;
        let written = |at, bound| Scalar {
            text: window
                .format
                .write(at, bound, window.resolution, window.clock),
            quoted: !window.format.is_number(),
        };
        // A stored token says where to begin; a window beside it is refused by the vendors that have both.
        let asked = match endpoint.cursor {
            CursorKey::Snapshot => false,
            CursorKey::Opaque => task.cursor.is_none(),
            CursorKey::Timestamp => true,
        };
        if !asked {
            return Bounds {
                since: None,
                until: None,
            };
        }
        let one_step = i64::try_from(window.resolution).unwrap_or(i64::MAX);
        let since = task.window.since.or(window.start).map(|since| {
            // The vendor leaves out the bound itself: begin one step earlier.
            if window.since_exclusive {
                since.saturating_sub(one_step)
            } else {
                since
            }
        });
        Bounds {
            since: since.map(|at| written(at, Bound::Lower)),
            until: Some(written(task.window.until, Bound::Upper)),
        }
    }

    fn text(&self, name: Name<'_>, task: &Task<Rest>) -> Result<Option<String>, Fault> {
        Ok(self.value(name, task)?.map(|value| value.text))
    }

    fn value(&self, name: Name<'_>, task: &Task<Rest>) -> Result<Option<Scalar>, Fault> {
        let text = |text: &str| Scalar {
            text: text.to_owned(),
            quoted: true,
        };
        Ok(match name {
            Name::Since => self.since.clone(),
            Name::Until => self.until.clone(),
            Name::PageSize => Some(whole(u64::from(task.page_size))),
            Name::Partition => match &task.partition {
                Some(partition) => Some(text(partition)),
                None => {
                    return Err(
                        Fault::permanent("this poll has no partition to ask for").code("config")
                    );
                }
            },
            Name::Parent(path) => Some(parent_field(task, path)?),
        })
    }
}

/// A field of the parent's record: members joined by dots.
fn parent_field(task: &Task<Rest>, path: &str) -> Result<Scalar, Fault> {
    let Some(parent) = &task.parent else {
        return Err(Fault::permanent("this poll has no parent record").code("config"));
    };
    let pointer = format!("/{}", path.replace('.', "/"));
    let found = json::at(parent, &pointer)?;
    let Some(raw) = found.filter(|raw| raw.id().is_some()) else {
        return Err(Fault::permanent(format!(
            "the parent record has no text or number at {pointer}"
        ))
        .code("parent"));
    };
    Ok(Scalar {
        text: text_of(raw).into_owned(),
        quoted: raw.string().is_some(),
    })
}

/// The parameters of a call: in the query, or, where the name begins with a slash, at that place of the body.
struct Params {
    query: Vec<(String, String)>,
    body: Option<serde_json::Value>,
}

impl Params {
    fn set_if(&mut self, name: Option<&str>, value: Option<Scalar>) {
        if let (Some(name), Some(value)) = (name, value) {
            self.set(name, value);
        }
    }

    fn set(&mut self, name: &str, value: Scalar) {
        if name.starts_with('/') {
            let body = self
                .body
                .get_or_insert_with(|| serde_json::Value::Object(serde_json::Map::new()));
            place(body, name, json_of(value));
        } else if let Some((_, old)) = self.query.iter_mut().find(|(known, _)| known == name) {
            *old = value.text;
        } else {
            self.query.push((name.to_owned(), value.text));
        }
    }
}

/// A scalar as a value of a JSON body.
fn json_of(value: Scalar) -> serde_json::Value {
    if value.quoted {
        return serde_json::Value::String(value.text);
    }
    match serde_json::from_str(&value.text) {
        Ok(number @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => number,
        _ => serde_json::Value::String(value.text),
    }
}

/// Sets the value at a pointer; objects on the way are made. False when the pointer leads to no element of an array.
pub(crate) fn place(
    mut at: &mut serde_json::Value,
    pointer: &str,
    value: serde_json::Value,
) -> bool {
    for part in pointer.split('/').skip(1) {
        let key = part.replace("~1", "/").replace("~0", "~");
        if let serde_json::Value::Array(items) = at {
            match key
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get_mut(index))
            {
                Some(item) => at = item,
                None => return false,
            }
            continue;
        }
        if !at.is_object() {
            *at = serde_json::Value::Object(serde_json::Map::new());
        }
        let serde_json::Value::Object(members) = at else {
            return false;
        };
        at = members.entry(key).or_insert(serde_json::Value::Null);
    }
    *at = value;
    true
}

/// Fills the placeholders in a body's strings. A string that is a placeholder and nothing else becomes a number where
/// its value is one.
fn fill_body(
    body: &mut serde_json::Value,
    window: &Bounds,
    task: &Task<Rest>,
) -> Result<(), Fault> {
    match body {
        serde_json::Value::String(text) => {
            let parts: Vec<Part<'_>> = template::parts(text).take(2).collect();
            let value = match parts.as_slice() {
                [Part::Value(name)] => window.value(*name, task)?,
                _ => template::fill(text, |name, _| window.text(name, task))?
                    .map(|text| Scalar { text, quoted: true }),
            };
            *body = value.map_or(serde_json::Value::Null, json_of);
            Ok(())
        }
        serde_json::Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| fill_body(item, window, task)),
        serde_json::Value::Object(members) => members
            .values_mut()
            .try_for_each(|member| fill_body(member, window, task)),
        _ => Ok(()),
    }
}
