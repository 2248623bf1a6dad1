//! `weir.toml`: what is polled, as whom, how often, and where the records go.
//!
//! Promises: every mistake of a file is told in one go, each with its line, its key, its value, what is allowed and
//! an example. Nothing is guessed: a key that is not known, a duration without a unit, a variable that is not set is
//! an error. Paths are read from the folder of the file. Secrets come by reference and are shown to nobody.
//!
//! Refuses: to start with half of a configuration. A reload that fails changes nothing.
//!
//! | table | type |
//! | --- | --- |
//! | `[host]` | [`Host`] |
//! | `[alert]` | [`Alert`] |
//! | `[connector.NAME]` | [`Limits`] of one connector |
//! | `[connection.NAME]` | [`Connection`] |
//! | `[connection.NAME.streams.STREAM]` | [`StreamSettings`] |
//! | `[sink.NAME]` | [`SinkConfig`] |

mod alert;
mod auth;
mod connection;
mod connector;
mod error;
mod host;
mod oauth2;
mod quiet;
mod reader;
pub(crate) mod reference;
mod schema;
mod secret;
mod sink;
mod stream;
#[cfg(test)]
mod tests;
mod units;
mod webhook;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::DeTable;
use weir_runtime::Limits;

pub use alert::Alert;
pub use auth::Auth;
pub use connection::Connection;
pub use error::{ConfigError, ConfigErrors, Source, nearest};
pub use host::{CopySettings, Host, Timeouts};
pub use oauth2::{ClientAuth, Grant, OAuth2};
pub use quiet::Quiet;
pub use schema::validate_connector_config;
pub use secret::{Secret, SecretSource};
pub use sink::{Every, Rotate, SinkConfig};
pub use stream::{Backoff, Dedup, Interval, Overlap, Priority, Strategy, StreamSettings};
pub use webhook::{Address, Batch, Format, Webhook};

use error::suggest;
use reader::{Entry, Env, Report, Section};

/// A whole configuration, checked. Parts compare with `==`, so a reload sees what changed.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[host]`.
    pub host: Host,
    /// `[alert]`.
    pub alert: Alert,
    /// `[connection.NAME]`, by name.
    pub connections: BTreeMap<String, Connection>,
    /// `[connector.NAME]`, by name.
    pub connectors: BTreeMap<String, Limits>,
    /// `[sink.NAME]`, by name; stdout when none is configured.
    pub sinks: BTreeMap<String, SinkConfig>,
    /// What is allowed and unwise.
    pub warnings: Vec<ConfigError>,
    /// Where each key stands.
    pub source: Source,
}

/// Reads and checks a configuration file; environment variables are those of this process.
pub fn load(path: &Path) -> Result<Config, ConfigErrors> {
    load_with(path, &|name| std::env::var(name).ok())
}

/// As [`load`], for whoever only asks a running host: where that keeps its data. Secrets are not looked up, so this
/// works without the host's environment, and no command is run.
///
/// # Errors
/// As [`load`], secrets aside.
pub fn load_host(path: &Path) -> Result<Host, ConfigErrors> {
    Ok(read(path, &|_| None, Some(""))?.host)
}

/// As [`load`], for a simulation: every secret that is referred to is the text `simulated`, and none is looked up.
///
/// # Errors
/// As [`load`], secrets aside.
pub fn load_simulated(path: &Path) -> Result<Config, ConfigErrors> {
    read(path, &|_| None, Some("simulated"))
}

/// As [`load`], with the environment given.
pub fn load_with(
    path: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, ConfigErrors> {
    read(path, env, None)
}

fn read(path: &Path, env: Env<'_>, stand_in: Option<&'static str>) -> Result<Config, ConfigErrors> {
    let whole_file = |problem: String, help: &str| {
        ConfigErrors(vec![ConfigError {
            file: path.to_owned(),
            line: None,
            key: String::new(),
            value: None,
            problem,
            help: help.to_owned(),
        }])
    };
    let bytes = std::fs::read(path).map_err(|error| {
        whole_file(
            format!("the configuration cannot be read: {error}"),
            "create it or name another one with --config",
        )
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        whole_file(
            format!("the configuration is not UTF-8: byte {at} is the first that is not"),
            "save it as UTF-8",
        )
    })?;
    parse(path, &text, env, stand_in)
}

/// More mistakes than these are not listed: one at the top of a long file may make one of every line.
const SYNTAX_ERRORS: usize = 20;

/// Checks a configuration whose text is at hand; `path` is what its complaints name.
pub fn from_text(
    path: &Path,
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, ConfigErrors> {
    parse(path, text, env, None)
}

fn parse(
    path: &Path,
    text: &str,
    env: Env<'_>,
    stand_in: Option<&'static str>,
) -> Result<Config, ConfigErrors> {
    let mut report = Report::new(path, text, env);
    report.stand_in = stand_in;
    let (document, syntax) = DeTable::parse_recoverable(text);
    if !syntax.is_empty() {
        return Err(ConfigErrors(
            syntax
                .iter()
                .take(SYNTAX_ERRORS)
                .map(|error| syntax_error(error, text, &report))
                .collect(),
        ));
    }

    let mut root = Section::root(&document);
    let host = root
        .get(&mut report, "host")
        .and_then(|at| at.section(&mut report, "example: [host]"))
        .map(|section| Host::read(section, &mut report))
        .unwrap_or_else(|| Host::default_in(&report));
    let alert = root
        .get(&mut report, "alert")
        .and_then(|at| at.section(&mut report, "example: [alert]"))
        .map(|section| Alert::read(section, &mut report))
        .unwrap_or_default();
    let connections = named(
        root.get(&mut report, "connection"),
        &mut report,
        "example: [connection.shop]",
        Connection::read,
    );
    let connectors = named(
        root.get(&mut report, "connector"),
        &mut report,
        "example: [connector.github]",
        connector::read,
    );
    let mut sinks = named(
        root.get(&mut report, "sink"),
        &mut report,
        "example: [sink.main]",
        SinkConfig::read,
    );
    one_file_one_sink(&sinks, &mut report);
    not_among_our_own(&sinks, &host, &mut report);
    if sinks.is_empty() {
        sinks.insert("stdout".to_owned(), SinkConfig::Stdout);
    }
    root.finish(&mut report);

    if report.errors.is_empty() {
        Ok(Config {
            host,
            alert,
            connections,
            connectors,
            sinks,
            warnings: report.warnings,
            source: report.source,
        })
    } else {
        report.errors.sort_by_key(|error| error.line);
        Err(ConfigErrors(report.errors))
    }
}

/// Two sinks that write the same files would write each record twice, and over each other's lines.
fn one_file_one_sink(sinks: &BTreeMap<String, SinkConfig>, report: &mut Report<'_>) {
    let mut taken: Vec<(PathBuf, &str)> = Vec::new();
    for (name, sink) in sinks {
        let SinkConfig::File { path, .. } = sink else {
            continue;
        };
        let path: PathBuf = path.components().collect();
        match taken.iter().find(|(other, _)| *other == path) {
            Some((_, first)) => report.errors.push(ConfigError {
                file: report.source.file.clone(),
                line: None,
                key: format!("sink.{name}.path"),
                value: None,
                problem: format!("is the path of sink.{first} as well"),
                help: "give each sink files of its own, or leave one of the two out".to_owned(),
            }),
            None => taken.push((path, name)),
        }
    }
}

/// What lies in the data directory is weir's own: a sink's files there could take the place of the store.
fn not_among_our_own(sinks: &BTreeMap<String, SinkConfig>, host: &Host, report: &mut Report<'_>) {
    let data = plain(&host.data);
    for (name, sink) in sinks {
        let SinkConfig::File { path, .. } = sink else {
            continue;
        };
        if plain(path).starts_with(&data) && !data.as_os_str().is_empty() {
            let key = format!("sink.{name}.path");
            let error = report.source.error(
                &key,
                path.to_str(),
                format!(
                    "lies in the data directory {}, where weir keeps its own files",
                    host.data.display()
                ),
                "name a place outside of it; example: path = \"out/{connection}/{stream}.ndjson\"",
            );
            report.errors.push(error);
        }
    }
}

/// The path without `.` and, as far as its text tells, without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path)
        .unwrap_or_else(|_| path.to_owned())
        .components()
    {
        match part {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// A table of named tables.
fn named<T>(
    at: Option<Entry<'_>>,
    report: &mut Report<'_>,
    help: &str,
    read: fn(Section<'_>, &mut Report<'_>) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut all = BTreeMap::new();
    let Some(section) = at.and_then(|at| at.section(report, help)) else {
        return all;
    };
    for (name, at) in section.entries(report) {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            report.complain(
                &at,
                "is not a name",
                "allowed: a-z, 0-9, _ and -; example: shop-eu",
            );
        }
        if let Some(section) = at.section(report, help)
            && let Some(value) = read(section, report)
        {
            all.insert(name.to_owned(), value);
        }
    }
    all
}

/// A mistake in the TOML itself. The parser's own text would quote the line, which may hold a secret.
fn syntax_error(error: &toml::de::Error, text: &str, report: &Report<'_>) -> ConfigError {
    let span = error.span().unwrap_or(0..0);
    let line = report.line(span.start);
    let message = error.message();
    let (key, problem, help) = if message.starts_with("duplicate key") {
        let written = text
            .lines()
            .nth(line.saturating_sub(1))
            .unwrap_or_default()
            .trim();
        // A header says which table; of a plain line only the key is safe to show.
        let key = match written.strip_prefix('[') {
            Some(header) => header
                .split(']')
                .next()
                .unwrap_or_default()
                .trim_matches('[')
                .to_owned(),
            None => text.get(span).unwrap_or_default().to_owned(),
        };
        (
            key,
            "is defined a second time here".to_owned(),
            "give one of the two another name, or join them".to_owned(),
        )
    } else {
        (
            String::new(),
            format!("this is not TOML: {message}"),
            "strings need quotes, tables are written [connection.shop]".to_owned(),
        )
    };
    ConfigError {
        file: report.source.file.clone(),
        line: Some(line),
        key,
        value: None,
        problem,
        help,
    }
}

/// Reads a length of time as `weir.toml` writes it (`500ms`, `30s`, `5m`, `1h`, `1d`) as milliseconds; the error says
/// what is wrong with the text.
pub fn duration(text: &str) -> Result<weir_rules::model::Duration, &'static str> {
    units::duration(text)
}

/// Reads a moment as `weir.toml` writes it: RFC 3339, or a date or time without an offset, which is UTC. In ms.
pub fn moment(text: &str) -> Option<weir_rules::model::Timestamp> {
    stream::parse_moment(text)
}

/// Explains an unknown name with the names that there are: for connectors, connections and streams.
pub fn suggest_name(name: &str, known: &[&str]) -> String {
    suggest(name, known)
}
