//! What the keys of a stream mean together.

use super::problem::{Checked, problem};
use super::{Endpoint, Paging, Sync};
use crate::config::{Config, CursorKey, MethodKey};
use crate::request;
use crate::template::{self, Name, Part};

/// Headers that carry credentials: the host adds those, and drops any that a connector names.
const CREDENTIALS: [&str; 4] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
];

impl Endpoint {
    /// Whether a poll can ask for the lower bound of its window.
    pub(crate) fn asks_since(&self) -> bool {
        self.window.since.is_some() || self.mentions(|name| name == Name::Since)
    }

    /// Whether path, query or body hold such a placeholder.
    fn mentions(&self, wanted: impl Fn(Name<'_>) -> bool + Copy) -> bool {
        template::names(&self.path, wanted)
            || self
                .query
                .iter()
                .any(|(_, value)| template::names(&value.text, wanted))
            || self
                .body
                .as_ref()
                .is_some_and(|body| body_names(body, wanted))
    }

    pub(super) fn check_cursor(&self, asked: Option<CursorKey>) -> Checked<CursorKey> {
        let natural = match (&self.sync, self.asks_since()) {
            (Some(_), _) => CursorKey::Opaque,
            (None, true) => CursorKey::Timestamp,
            (None, false) => CursorKey::Snapshot,
        };
        let cursor = asked.unwrap_or(natural);
        match cursor {
            CursorKey::Opaque if self.sync.is_none() => problem(
                "cursor",
                "`opaque` needs a `sync` table: sync = { token = \"/next_sync_token\", param = \"sync_token\" }",
            ),
            CursorKey::Timestamp if !self.asks_since() => problem(
                "cursor",
                "`timestamp` needs a way to ask: window = { since = \"updated_since\" }, or {since} in a query value",
            ),
            CursorKey::Timestamp if self.updated_at.is_none() => problem(
                "updated_at",
                "is missing, and a window without it never moves on: name the field, such as \"/updated_at\"",
            ),
            CursorKey::Timestamp | CursorKey::Snapshot if self.sync.is_some() => problem(
                "cursor",
                "there is a `sync` table, so leave `cursor` out or write \"opaque\"",
            ),
            CursorKey::Snapshot if self.asks_since() => problem(
                "cursor",
                "`snapshot` reads everything each time, yet the stream asks for a window: leave one of them out",
            ),
            cursor => Ok(cursor),
        }
    }

    pub(super) fn check_call(&self, config: &Config, name: &str) -> Checked<()> {
        if !self.path.starts_with('/') {
            return problem(
                "path",
                "has to start with a slash: it is appended to base_url",
            );
        }
        if self.path.contains(['?', '#']) {
            return problem("path", "holds a `?` or `#`: put parameters into `query`");
        }
        for part in template::parts(&self.path) {
            if let Part::Unknown(word) = part {
                return problem(
                    "path",
                    format!(
                        "{word} is no placeholder; there is {{partition}}, {{+partition}} and {{parent.FIELD}}"
                    ),
                );
            }
        }
        for (header, _) in &self.headers {
            if CREDENTIALS.contains(&header.to_ascii_lowercase().as_str()) {
                return problem(
                    "headers",
                    format!("`{header}` carries a credential: say it in the connection's `auth`"),
                );
            }
        }
        let sliced = !self.partitions.is_empty() || self.parent.is_some();
        let slices = |name: Name<'_>| matches!(name, Name::Partition | Name::Parent(_));
        if !self.partitions.is_empty() && self.parent.is_some() {
            return problem(
                "parent",
                "there are `partitions` too: a stream is sliced by one of them",
            );
        }
        if sliced && !self.mentions(slices) {
            let key = if self.parent.is_some() {
                "parent"
            } else {
                "partitions"
            };
            return problem(
                key,
                "nothing asks for the slice: put {partition} or {parent.FIELD} into `path`, `query` or `body`",
            );
        }
        if !sliced && self.mentions(slices) {
            return problem(
                "partitions",
                "is missing, and {partition} or {parent.FIELD} is used: name the slices, or a `parent`",
            );
        }
        if self.parent.is_none() && self.mentions(|name| matches!(name, Name::Parent(_))) {
            return problem(
                "parent",
                "is missing, and {parent.FIELD} is used: name the stream to take it from",
            );
        }
        if let Some(parent) = &self.parent
            && (parent == name || !config.streams.contains_key(parent))
        {
            return problem(
                "parent",
                format!("`{parent}` is not another stream of this connection"),
            );
        }
        if self.result_cap.is_some_and(|cap| cap < self.page_size) {
            return problem("result_cap", "is smaller than page_size");
        }
        let asks_until = self.window.until.is_some() || self.mentions(|name| name == Name::Until);
        if self.window_cap.is_some() && !asks_until {
            return problem(
                "window_cap",
                "needs a way to end a window: name `window.until`, or put {until} into `query` or `body`",
            );
        }
        if self.body.is_some() && self.method == MethodKey::Get {
            return problem("body", "a GET carries none: add method = \"POST\"");
        }
        if self.window.start.is_none()
            && self
                .body
                .as_ref()
                .is_some_and(|body| body_names(body, |name| name == Name::Since))
        {
            return problem(
                "window.start",
                "is missing, and the body asks for {since}: a first sync has to begin somewhere",
            );
        }
        self.check_params()
    }

    /// Parameters that begin with a slash are places in the body; two keys must not name the same one, except that a
    /// keyset position takes the place of the window's bound.
    fn check_params(&self) -> Checked<()> {
        let keyset_time = match &self.paging {
            Paging::Keyset { time, .. } => time.as_ref().map(|after| &after.param),
            _ => None,
        };
        let page = match &self.paging {
            Paging::Keyset { id, .. } => id.as_ref().map(|param| ("paging.after_id", param)),
            Paging::Token { param, .. } | Paging::Page { param, .. } | Paging::Offset { param } => {
                Some(("paging.param", param))
            }
            Paging::None | Paging::Link { .. } | Paging::NextUrl { .. } => None,
        };
        let sync = match &self.sync {
            Some(Sync::Token { param, .. }) => Some(("sync.param", param)),
            _ => None,
        };
        let named: Vec<(&str, &String)> = [
            self.window
                .since
                .as_ref()
                .map(|param| ("window.since", param)),
            self.window
                .until
                .as_ref()
                .map(|param| ("window.until", param)),
            self.page_size_param
                .as_ref()
                .map(|param| ("page_size_param", param)),
            page,
            sync,
        ]
        .into_iter()
        .flatten()
        .collect();
        for (at, (key, param)) in named.iter().enumerate() {
            // Some vendors take the sync token and the page token in one parameter.
            let shared = |other: &str| *key == "sync.param" && other == "paging.param";
            if let Some((other, _)) = named
                .iter()
                .take(at)
                .find(|(other, p)| p == param && !shared(other))
            {
                return problem(*key, format!("`{param}` is already taken by `{other}`"));
            }
        }
        let keyset_time = keyset_time.map(|param| ("paging.after_time", param));
        for (key, param) in named.into_iter().chain(keyset_time) {
            if param.is_empty() {
                return problem(key, "is empty: name the parameter");
            }
            if param.starts_with('/') && self.method == MethodKey::Get {
                return problem(
                    key,
                    format!(
                        "`{param}` is a place in the body, and a GET carries none: add method = \"POST\""
                    ),
                );
            }
            if let Some(mut body) = self.body.clone()
                && param.starts_with('/')
                && !request::place(&mut body, param, serde_json::Value::Null)
            {
                return problem(key, format!("`{param}` leads to no place in `body`"));
            }
        }
        Ok(())
    }
}

fn body_names(body: &serde_json::Value, wanted: impl Fn(Name<'_>) -> bool + Copy) -> bool {
    match body {
        serde_json::Value::String(text) => template::names(text, wanted),
        serde_json::Value::Array(items) => items.iter().any(|item| body_names(item, wanted)),
        serde_json::Value::Object(members) => {
            members.values().any(|member| body_names(member, wanted))
        }
        _ => false,
    }
}
