//! `[connection.NAME]`: one account at one vendor.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::DeValue;

use super::auth::Auth;
use super::reader::{Entry, Report, Section};
use super::stream::StreamSettings;

/// `[connection.NAME]`.
///
/// ```toml
/// [connection.oss]
/// connector = "github"
/// auth = { bearer = { env = "GITHUB_TOKEN" } }
/// config = { repos = ["acme/anvil"] }
/// streams.issues = { freshness = "1m" }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// `connector`: the connector's name, `"github"`. Required.
    pub connector: String,
    /// `auth`: the credential. Default: none.
    pub auth: Auth,
    /// `config`: what the connector wants to know, as JSON text. Its keys are the connector's; it is checked against the
    /// connector's schema by [`super::validate_connector_config`]. Default `{}`. No place for secrets.
    pub config: Arc<str>,
    /// `defaults`: settings for all streams of the connection; the same keys as for a stream.
    pub defaults: StreamSettings,
    /// `streams`: the streams to poll. Default: all that the connector has.
    pub streams: Option<BTreeMap<String, StreamSettings>>,
    /// `allow_private`: the vendor may have an address in a private network (10/8, 172.16/12, 192.168/16, 100.64/10,
    /// fc00::/7). Default false.
    pub allow_private: bool,
    /// `allow_http`: the vendor may be called without TLS, credentials included. Default false; loopback may always.
    pub allow_http: bool,
    /// `pause`: true stops polling and keeps everything. Default false.
    pub pause: bool,
}

impl Connection {
    /// How a stream is to be polled; none when it is not to be.
    pub fn stream(&self, name: &str) -> Option<&StreamSettings> {
        match &self.streams {
            None => Some(&self.defaults),
            Some(streams) => streams.get(name),
        }
        .filter(|settings| settings.enabled)
    }

    pub(super) fn read(mut section: Section<'_>, report: &mut Report<'_>) -> Option<Self> {
        let help = "allowed: the name of a connector; example: connector = \"github\"";
        let connector = match section.get(report, "connector") {
            Some(at) => at.filled(report, help).map(str::to_owned),
            None => {
                report.missing(&section, "connector", help);
                None
            }
        };
        let auth = section.get(report, "auth");
        let config = section
            .get(report, "config")
            .map_or_else(|| Arc::from("{}"), |at| free_table(&at, report));
        let defaults = section
            .get(report, "defaults")
            .and_then(|at| at.section(report, "example: defaults = { freshness = \"1m\" }"))
            .map(|section| StreamSettings::read(section, report, &StreamSettings::default()))
            .unwrap_or_default();
        let streams = section.get(report, "streams").and_then(|at| {
            let section = at.section(report, "example: streams.issues = { freshness = \"1m\" }")?;
            Some(streams(&section, report, &defaults))
        });
        let mut flag = |key| {
            section
                .get(report, key)
                .and_then(|at| at.flag(report))
                .unwrap_or(false)
        };
        let (allow_private, allow_http, pause) =
            (flag("allow_private"), flag("allow_http"), flag("pause"));
        let auth = auth.map_or(Auth::None, |at| Auth::read(&at, allow_http, report));
        for key in StreamSettings::KEYS {
            if section.table.contains_key(key)
                && let Some(at) = section.get(report, key)
            {
                report.complain(
                    &at,
                    "is a setting of streams",
                    &format!("write defaults.{key} for all streams or streams.NAME.{key} for one"),
                );
            }
        }
        section.finish(report);
        Some(Connection {
            connector: connector?,
            auth,
            config,
            defaults,
            streams,
            allow_private,
            allow_http,
            pause,
        })
    }
}

fn streams(
    section: &Section<'_>,
    report: &mut Report<'_>,
    defaults: &StreamSettings,
) -> BTreeMap<String, StreamSettings> {
    let mut streams = BTreeMap::new();
    for (name, at) in section.entries(report) {
        if name.trim().is_empty() {
            report.complain(
                &at,
                "is a stream without a name",
                "example: streams.issues = {}",
            );
        }
        let settings = at
            .section(report, "allowed: a table of settings; example: {}")
            .map(|section| StreamSettings::read(section, report, defaults));
        streams.insert(name.to_owned(), settings.unwrap_or_default());
    }
    streams
}

/// A table whose keys are not the host's, as JSON text with its keys in the order of the file.
fn free_table(at: &Entry<'_>, report: &mut Report<'_>) -> Arc<str> {
    if !at.value.is_table() {
        at.wrong_type::<()>(
            report,
            "a table",
            "example: config = { repos = [\"acme/anvil\"] }",
        );
        return Arc::from("{}");
    }
    Arc::from(json(at, report).to_string())
}

fn json(at: &Entry<'_>, report: &mut Report<'_>) -> serde_json::Value {
    use serde_json::Value;
    match at.value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(moment) => Value::from(moment.to_string()),
        DeValue::Integer(written) => {
            let digits = written.as_str().replace('_', "");
            i64::from_str_radix(&digits, written.radix())
                .map(Value::from)
                .unwrap_or_else(|_| {
                    report.complain(
                        at,
                        "is too large a number",
                        "allowed: 64 bits; else write a string",
                    );
                    Value::Null
                })
        }
        DeValue::Float(written) => written
            .as_str()
            .replace('_', "")
            .parse()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map(Value::Number)
            .unwrap_or_else(|| {
                report.complain(
                    at,
                    "is a number that JSON does not have",
                    "allowed: finite numbers",
                );
                Value::Null
            }),
        DeValue::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| json(&at.item(index, item), report))
            .collect(),
        DeValue::Table(_) => {
            let Some(section) = at.section(report, "") else {
                return Value::Null;
            };
            section
                .entries(report)
                .into_iter()
                .map(|(key, entry)| (key.to_owned(), json(&entry, report)))
                .collect()
        }
    }
}
