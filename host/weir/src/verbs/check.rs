//! `weir check`: the configuration, the connectors, and for each connection one harmless call.
//!
//! The call is the first one of the connection's first unit, as a poll would make it, with the connection's
//! credential and under its budgets. Nothing of the answer is stored.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::text::count;
use super::{Caller, Failure};
use crate::config::{self, Config, ConfigErrors};
use crate::connection::Connection;
use crate::control::Reply;
use crate::deliveries;
use crate::host::Host;
use crate::poll::{Probed, probe};
use crate::store::UnitId;

/// Calls that are made at once.
const CALLS: usize = 16;

/// The answer.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Checks {
    checks: Vec<Check>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Check {
    /// `weir.toml`, a connector's file, `connection oss`, `call oss`.
    what: String,
    verdict: Verdict,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    /// Worth knowing; nothing fails because of it.
    Note,
    Failed,
}

impl Checks {
    fn add(&mut self, what: impl Into<String>, verdict: Verdict, detail: impl Into<String>) {
        self.checks.push(Check {
            what: what.into(),
            verdict,
            detail: detail.into(),
        });
    }

    fn reply(self) -> Reply {
        let failed = self
            .checks
            .iter()
            .any(|check| check.verdict == Verdict::Failed);
        Reply::with_exit(u8::from(failed), self)
    }
}

/// The answer where the configuration itself is broken: nothing else can be checked then.
pub fn broken_config(errors: &ConfigErrors) -> Reply {
    let mut checks = Checks::default();
    for error in &errors.0 {
        let file = error.file.display().to_string();
        checks.add(file, Verdict::Failed, error.to_string());
    }
    checks.reply()
}

pub(super) async fn answer(
    host: &Arc<Host>,
    offline: bool,
    file: &Path,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let mut checks = Checks::default();
    let changed = match caller.running.then(|| config::load(file)) {
        // The running host's environment may lack a variable that this command's has.
        Some(Err(errors)) => {
            for error in &errors.0 {
                checks.add(
                    file.display().to_string(),
                    Verdict::Failed,
                    error.to_string(),
                );
            }
            return Ok(checks.reply());
        }
        Some(Ok(now)) => Some(now).filter(|now| differs(now, &host.config)),
        None => None,
    };
    let config = changed.as_ref().unwrap_or(&host.config);
    configuration(config, &mut checks);
    if changed.is_some() {
        checks.add(
            config.source.file().display().to_string(),
            Verdict::Note,
            "the running weir was started with another configuration and uses this one from its next start on; \
             connections that differ are checked and not called",
        );
    }
    connectors(host, &mut checks);
    sinks(config, &mut checks);
    let made: BTreeMap<_, _> = host.connections.all().into_iter().collect();
    let mut ready = Vec::new();
    for (name, settings) in &config.connections {
        let what = format!("connection {name}");
        let known = host.config.connections.get(name) == Some(settings);
        let state = match made.get(name).filter(|_| known) {
            Some(state) => state.clone(),
            // As it would be: these settings are not the running host's.
            None => host
                .make_ready(name, settings, &config.source)
                .await
                .map(|(connection, _)| Arc::new(connection))
                .map_err(|error| error.detail),
        };
        match state {
            Ok(connection) => {
                checks.add(what, Verdict::Ok, introduce(&connection));
                if settings.pause {
                    checks.add(
                        format!("call {name}"),
                        Verdict::Note,
                        "not called: it is paused",
                    );
                } else if known {
                    ready.push(connection);
                }
            }
            Err(why) => checks.add(what, Verdict::Failed, why),
        }
    }
    if config.connections.is_empty() {
        checks.add(
            "connections",
            Verdict::Note,
            "none is configured: add [connection.NAME]",
        );
    }
    if !offline {
        calls(host, ready, &mut checks).await?;
    }
    Ok(checks.reply())
}

fn configuration(config: &Config, checks: &mut Checks) {
    let name = config.source.file().display().to_string();
    checks.add(
        &name,
        Verdict::Ok,
        format!(
            "{}, {}",
            count(config.connections.len() as u64, "connection"),
            count(config.sinks.len() as u64, "sink")
        ),
    );
    for warning in &config.warnings {
        checks.add(&name, Verdict::Note, warning.to_string());
    }
}

fn differs(a: &Config, b: &Config) -> bool {
    a.host != b.host || a.connections != b.connections || a.sinks != b.sinks
}

fn connectors(host: &Host, checks: &mut Checks) {
    for file in host.catalogue.files() {
        let what = file.path.display().to_string();
        match (file.error, file.name) {
            (Some(error), _) => {
                // The error mostly begins with the file's name already.
                let detail = error.strip_prefix(&format!("{what}: ")).unwrap_or(&error);
                checks.add(what, Verdict::Failed, detail);
            }
            (None, name) => {
                let connector = name.and_then(|name| host.catalogue.get(&name));
                let detail = connector.map_or_else(String::new, |connector| {
                    let about = connector.descriptor();
                    format!("{} {}", about.name, about.version)
                });
                checks.add(what, Verdict::Ok, detail);
            }
        }
    }
}

fn sinks(config: &Config, checks: &mut Checks) {
    for (name, settings) in &config.sinks {
        let (verdict, detail) = match deliveries::check(name, settings) {
            Ok(()) => (Verdict::Ok, String::new()),
            Err(error) => (Verdict::Failed, error.to_string()),
        };
        checks.add(format!("sink {name}"), verdict, detail);
    }
}

/// `connector github, streams issues, events, 4 units`
fn introduce(connection: &Connection) -> String {
    let streams: Vec<&str> = connection.streams.keys().map(String::as_str).collect();
    format!(
        "connector {}, {}",
        connection.connector.name(),
        if streams.is_empty() {
            "no stream is enabled".to_owned()
        } else {
            format!("streams: {}", streams.join(", "))
        }
    )
}

async fn calls(
    host: &Arc<Host>,
    ready: Vec<Arc<Connection>>,
    checks: &mut Checks,
) -> Result<(), Failure> {
    let mut first = first_units(host)?;
    let mut waiting = ready.into_iter();
    let mut probes = JoinSet::new();
    let mut found = Vec::new();
    loop {
        while probes.len() < CALLS
            && let Some(connection) = waiting.next()
        {
            let Some(unit) = first.remove(&connection.name) else {
                continue;
            };
            let host = host.clone();
            probes.spawn(async move {
                let probed = probe(&host, unit).await;
                (connection.name.clone(), probed)
            });
        }
        match probes.join_next().await {
            Some(Ok((name, probed))) => found.push((name, probed?)),
            Some(Err(error)) => {
                // A panic: the log has it, and the connection is told of below as not called.
                tracing::error!(%error, "a check broke down; this is a fault of weir");
            }
            None => break,
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (name, probed) in found {
        let what = format!("call {name}");
        match probed {
            Probed::Good { unit, detail } => {
                checks.add(what, Verdict::Ok, format!("{unit}: {detail}"));
            }
            Probed::Waits { unit, why } => {
                checks.add(what, Verdict::Note, format!("{unit}: not called, {why}"));
            }
            Probed::Bad { unit, detail } => {
                checks.add(what, Verdict::Failed, format!("{unit}: {detail}"));
            }
        }
    }
    Ok(())
}

/// The first unit of each connection among those that are polled.
fn first_units(host: &Host) -> Result<BTreeMap<String, UnitId>, Failure> {
    let mut first = BTreeMap::new();
    host.store.for_each_unit(&mut |unit| {
        if host.scheduler.queue().contains(unit.id) {
            first.entry(unit.key.connection).or_insert(unit.id);
        }
    })?;
    Ok(first)
}

pub(super) fn render(answer: &Checks) -> String {
    let mut text = String::new();
    for check in &answer.checks {
        let verdict = match check.verdict {
            Verdict::Ok => "ok    ",
            Verdict::Note => "note  ",
            Verdict::Failed => "FAILED",
        };
        text.push_str(&format!("{verdict} {}", check.what));
        if !check.detail.is_empty() {
            // An error of the configuration names its file itself.
            let detail = check.detail.strip_prefix(&format!("{}:", check.what));
            match detail {
                Some(rest) => text.push_str(&format!(":{rest}")),
                None => text.push_str(&format!(": {}", check.detail)),
            }
        }
        text.push('\n');
    }
    let failed = answer
        .checks
        .iter()
        .filter(|check| check.verdict == Verdict::Failed)
        .count();
    if failed > 0 {
        text.push_str(&format!(
            "{failed} of {} checks failed\n",
            answer.checks.len()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_fails_the_whole_and_is_counted() {
        let mut checks = Checks::default();
        checks.add("weir.toml", Verdict::Ok, "1 connection, 1 sink");
        checks.add("weir.toml", Verdict::Note, "weir.toml:3: unwise");
        checks.add("connection shop", Verdict::Failed, "no connector `shopp`");
        assert_eq!(
            render(&checks),
            "ok     weir.toml: 1 connection, 1 sink\n\
             note   weir.toml:3: unwise\n\
             FAILED connection shop: no connector `shopp`\n\
             1 of 3 checks failed\n"
        );
        assert_eq!(checks.reply().exit, 1);
        let mut notes = Checks::default();
        notes.add("weir.toml", Verdict::Note, "");
        assert_eq!(notes.reply().exit, 0);
    }
}
