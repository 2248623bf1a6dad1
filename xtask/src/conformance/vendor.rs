//! Which connector speaks to a recorded vendor, as what connection, and which stream asks for a recorded URL.

use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;
use url::Url;
use weir_runtime::Connector;
use weir_runtime::contract::{Descriptor, Reason, Request, Target, Task, Window};

/// A connector with a configuration that fits what was recorded.
pub(super) struct Connection {
    pub(super) connector: Arc<Connector>,
    pub(super) config: Value,
    pub(super) descriptor: Descriptor,
}

/// How well a request fits a recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// Another place.
    No,
    /// The same last word of the path, or the stream's name in it.
    Name,
    /// The same path, but for what the configuration names.
    Path,
    /// The same URL.
    Url,
}

/// The connector of that name, or one that talks to that host.
pub(super) fn find<'a>(
    connectors: &'a [Arc<Connector>],
    vendor: &str,
    url: &Url,
) -> Option<&'a Arc<Connector>> {
    let own = connectors.iter().filter(|one| one.name() != "rest");
    let named = own.clone().find(|one| one.name() == vendor);
    named.or_else(|| {
        own.clone().find(|one| {
            let origins = &one.descriptor().origins;
            origins.iter().any(|origin| {
                Url::parse(&origin.url).is_ok_and(|origin| origin.host() == url.host())
            })
        })
    })
}

/// The connector with the example of its config schema, pointed at the host of the recording.
pub(super) fn connect(connector: &Arc<Connector>, url: &Url) -> anyhow::Result<Connection> {
    let schema: Value = serde_json::from_str(&connector.descriptor().config_schema)
        .context("its config schema is no JSON")?;
    let mut config = schema
        .pointer("/examples/0")
        .cloned()
        .context("its config schema has no example")?;
    let usual = config
        .get("url")
        .or(schema.pointer("/properties/url/default"));
    let here = usual
        .and_then(Value::as_str)
        .and_then(|usual| Url::parse(usual).ok())
        .map_or_else(String::new, |usual| {
            usual.path().trim_end_matches('/').to_owned()
        });
    if let Some(config) = config.as_object_mut() {
        let base = format!("{}{here}", url.origin().ascii_serialization());
        config.insert("url".to_owned(), Value::String(base));
    }
    with_config(connector, config)
}

/// The connector with that configuration.
pub(super) fn with_config(connector: &Arc<Connector>, config: Value) -> anyhow::Result<Connection> {
    let descriptor = connector
        .describe_for(&config.to_string())?
        .map_err(|fault| anyhow::anyhow!("it refuses {config}: {}", fault.message))?;
    Ok(Connection {
        connector: connector.clone(),
        config,
        descriptor,
    })
}

impl Connection {
    /// A poll of the stream, of its first slice, at that time (ms).
    pub(super) fn task(&self, stream: &str, now: i64) -> Task {
        let described = self
            .descriptor
            .streams
            .iter()
            .find(|one| one.name == stream);
        let config = self.config.to_string();
        let slices = self.connector.partitions(stream, &config);
        let slice = slices
            .ok()
            .and_then(Result::ok)
            .and_then(|all| all.into_iter().next());
        let has_parent = described.is_some_and(|one| one.parent.is_some());
        Task {
            stream: stream.to_owned(),
            partition: slice.or_else(|| has_parent.then(|| "1".to_owned())),
            parent: has_parent.then(|| "{\"id\":\"1\"}".to_owned()),
            config,
            cursor: None,
            // A first sync: whatever is older than the recording is wanted too.
            window: Window {
                since: None,
                until: now,
            },
            reason: Reason::Schedule,
            now,
            page_size: described.map_or(100, |one| one.page_size),
        }
    }

    /// The URL that a request goes to, with its query.
    pub(super) fn url_of(&self, request: &Request) -> Option<Url> {
        let mut url = match &request.target {
            Target::Link(link) => Url::parse(link).ok()?,
            Target::Path(path) => {
                let origins = &self.descriptor.origins;
                let origin = origins.iter().find(|one| one.id == request.origin)?;
                let mut base = origin.url.clone();
                for (name, value) in self.config.as_object().into_iter().flatten() {
                    if let Some(value) = value.as_str() {
                        base = base.replace(&format!("{{{name}}}"), value);
                    }
                }
                Url::parse(&format!("{}{path}", base.trim_end_matches('/'))).ok()?
            }
        };
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        Some(url)
    }

    /// How well the call that the connector would make fits the recorded one.
    pub(super) fn fit(&self, task: &Task, step: Option<&str>, recorded: &Url) -> Fit {
        let Ok(Ok(request)) = self.connector.build_request(task, step) else {
            return Fit::No;
        };
        let Some(url) = self.url_of(&request) else {
            return Fit::No;
        };
        if url == *recorded {
            return Fit::Url;
        }
        let (ours, theirs) = (segments(&url), segments(recorded));
        let slice = task.partition.as_deref().unwrap_or_default();
        let free = |part: &str| slice.split('/').any(|piece| piece == part);
        let same = |(ours, theirs): (&String, &String)| ours == theirs || free(ours);
        if ours.len() == theirs.len() && ours.iter().zip(&theirs).all(same) {
            return Fit::Path;
        }
        let named = |word: &&String| word.as_str() == task.stream || ours.last() == Some(*word);
        if theirs.iter().any(|word| named(&word)) {
            Fit::Name
        } else {
            Fit::No
        }
    }
}

fn segments(url: &Url) -> Vec<String> {
    let path = url.path().trim_matches('/');
    path.trim_end_matches(".json")
        .split('/')
        .map(str::to_owned)
        .collect()
}
