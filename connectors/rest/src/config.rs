//! The configuration as its author writes it: one struct per table, one field per key.
//!
//! Promises: an unknown key, a wrong type or an unreadable duration is an error that names the stream and the key.
//! What keys mean together is judged in `plan`; this file only reads. The same keys, for people and for the host,
//! stand in `config.schema.json`; a test keeps the two alike.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use serde_json::value::RawValue;

/// JSON Schema (2020-12) of the whole table.
pub(crate) const SCHEMA: &str = include_str!("config.schema.json");

/// The connection's `config` table. Streams stay unread until one is asked for, and so does the error map: every call pays
/// for reading the configuration, a call concerns a single stream, and only an answer can be an error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub(crate) base_url: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) query: BTreeMap<String, Scalar>,
    pub(crate) oauth2: Option<OAuth2Keys>,
    #[serde(default)]
    pub(crate) pacing: PacingKeys,
    errors: Option<Box<RawValue>>,
    pub(crate) streams: BTreeMap<String, Box<RawValue>>,
}

impl Config {
    /// The error map for all streams.
    pub(crate) fn errors(&self) -> serde_json::Result<Vec<ErrorKeys>> {
        match &self.errors {
            Some(rules) => serde_json::from_str(rules.get()),
            None => Ok(Vec::new()),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OAuth2Keys {
    pub(crate) token_url: String,
    pub(crate) authorize_url: Option<String>,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    #[serde(default)]
    pub(crate) client_in_body: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PacingKeys {
    pub(crate) min_interval: Option<Millis>,
    pub(crate) max_interval: Option<Millis>,
    #[serde(default)]
    pub(crate) unpublished_limits: bool,
    pub(crate) concurrency: Option<u32>,
    pub(crate) backoff_cap: Option<Millis>,
    #[serde(default)]
    pub(crate) not_modified_is_free: bool,
    #[serde(default)]
    pub(crate) limits: Vec<LimitKeys>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitKeys {
    pub(crate) limit: u64,
    pub(crate) per: Millis,
    pub(crate) bucket: Option<String>,
    pub(crate) unit: Option<String>,
    #[serde(default)]
    pub(crate) scope: ScopeKey,
}

/// One stream: `streams.NAME`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamKeys {
    pub(crate) title: Option<String>,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) method: MethodKey,
    #[serde(default)]
    pub(crate) query: BTreeMap<String, Scalar>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Option<serde_json::Value>,
    #[serde(default)]
    pub(crate) partitions: Vec<String>,
    pub(crate) parent: Option<String>,

    #[serde(default)]
    pub(crate) records: String,
    #[serde(default)]
    pub(crate) missing_is_empty: bool,
    pub(crate) id: OneOrMany,
    pub(crate) updated_at: Option<UpdatedAtKeys>,
    pub(crate) deleted: Option<MarkKeys>,
    #[serde(default)]
    pub(crate) required: Vec<String>,
    #[serde(default)]
    pub(crate) volatile: Vec<String>,
    pub(crate) count: Option<String>,
    pub(crate) total: Option<String>,

    pub(crate) cursor: Option<CursorKey>,
    pub(crate) order: Option<OrderKey>,
    pub(crate) window: Option<WindowKeys>,
    pub(crate) sync: Option<SyncKeys>,
    pub(crate) paging: Option<PagingKeys>,
    pub(crate) page_size: Option<u32>,
    pub(crate) page_size_param: Option<String>,

    pub(crate) granularity: Option<Millis>,
    pub(crate) settle: Option<Millis>,
    pub(crate) retention: Option<Millis>,
    pub(crate) window_cap: Option<Millis>,
    pub(crate) result_cap: Option<u32>,

    pub(crate) conditional: Option<bool>,
    pub(crate) idempotency_header: Option<String>,
    pub(crate) poll_after: Option<SourceKeys>,
    pub(crate) bucket: Option<String>,
    pub(crate) cost: Option<u32>,
    #[serde(default)]
    pub(crate) errors: Vec<ErrorKeys>,
}

/// `paging`: which style, and the keys of that style.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PagingKeys {
    pub(crate) style: StyleKey,
    pub(crate) after_id: Option<String>,
    pub(crate) after_time: Option<String>,
    pub(crate) param: Option<String>,
    pub(crate) first: Option<u64>,
    pub(crate) token: Option<String>,
    pub(crate) token_header: Option<String>,
    #[serde(default)]
    pub(crate) token_end: Vec<Scalar>,
    #[serde(default)]
    pub(crate) token_only: bool,
    #[serde(default)]
    pub(crate) after_exclusive: bool,
    #[serde(default)]
    pub(crate) short_page_ends: bool,
    pub(crate) rel: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) has_more: Option<String>,
    pub(crate) is_last: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StyleKey {
    #[default]
    None,
    Keyset,
    Token,
    Page,
    Offset,
    Link,
    NextUrl,
}

impl StyleKey {
    pub(crate) fn name(self) -> &'static str {
        match self {
            StyleKey::None => "none",
            StyleKey::Keyset => "keyset",
            StyleKey::Token => "token",
            StyleKey::Page => "page",
            StyleKey::Offset => "offset",
            StyleKey::Link => "link",
            StyleKey::NextUrl => "next_url",
        }
    }
}

/// `window`: how a poll asks for a part of the stream.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WindowKeys {
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) format: Option<String>,
    pub(crate) utc_offset: Option<String>,
    pub(crate) dst_offset: Option<String>,
    #[serde(default)]
    pub(crate) since_exclusive: bool,
    pub(crate) start: Option<String>,
}

/// `sync`: the vendor's own token that outlives a poll.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SyncKeys {
    pub(crate) token: Option<String>,
    pub(crate) param: Option<String>,
    pub(crate) url: Option<String>,
}

/// `updated_at`: a pointer, or a table that says how its value is written.
#[derive(Debug)]
pub(crate) struct UpdatedAtKeys {
    pub(crate) pointer: String,
    pub(crate) format: Option<String>,
    pub(crate) utc_offset: Option<String>,
    pub(crate) dst_offset: Option<String>,
}

/// `deleted`: a pointer that is true (or simply there), or a table with the value that means gone.
#[derive(Debug)]
pub(crate) struct MarkKeys {
    pub(crate) pointer: String,
    pub(crate) equals: Option<Scalar>,
}

/// A duration that the vendor sends: where it stands and in which unit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceKeys {
    pub(crate) pointer: Option<String>,
    pub(crate) header: Option<String>,
    #[serde(default)]
    pub(crate) unit: UnitKey,
}

/// One rule of the error map.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorKeys {
    pub(crate) status: Option<StatusKey>,
    pub(crate) pointer: Option<String>,
    pub(crate) header: Option<String>,
    pub(crate) equals: Option<OneOrManyScalars>,
    pub(crate) contains: Option<String>,
    pub(crate) class: ClassKey,
    pub(crate) scope: Option<ScopeKey>,
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) wait: Option<WaitKeys>,
    #[serde(default)]
    pub(crate) smaller_page: bool,
}

/// `wait`: a duration, or where the vendor says it.
#[derive(Debug)]
pub(crate) enum WaitKeys {
    Fixed(Millis),
    Told(SourceKeys),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum MethodKey {
    #[default]
    #[serde(rename = "GET")]
    Get,
    #[serde(rename = "POST")]
    Post,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrderKey {
    Ascending,
    Descending,
    Unordered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CursorKey {
    Timestamp,
    Opaque,
    Snapshot,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeKey {
    Unit,
    Connection,
    #[default]
    Credential,
    App,
}

/// The host's fault classes, and `empty`: an answer that means "no records".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClassKey {
    Temporary,
    RateLimited,
    AuthExpired,
    AuthRevoked,
    Permanent,
    PositionLost,
    Pending,
    Incomplete,
    Unknown,
    Empty,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum UnitKey {
    #[serde(rename = "ms")]
    Millis,
    #[default]
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "m")]
    Minutes,
}

impl UnitKey {
    /// How many milliseconds one of it is.
    pub(crate) fn millis(self) -> u32 {
        match self {
            UnitKey::Millis => 1,
            UnitKey::Seconds => 1_000,
            UnitKey::Minutes => 60_000,
        }
    }
}

/// A duration as people write it: `500ms`, `30s`, `5m`, `1h`, `90d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Millis(pub(crate) u64);

impl Millis {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at_checked(digits)?;
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(factor).map(Millis)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Millis;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, such as \"30s\", \"5m\", \"1h\" or \"90d\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Millis, E> {
                Millis::parse(text)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

/// A JSON scalar whose text counts: what a parameter is sent as, and what a field is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    pub(crate) text: String,
    /// Written in quotes, so that it is a string in a JSON body.
    pub(crate) quoted: bool,
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number or a boolean")
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
                Ok(bare(value))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Scalar, E> {
                Ok(bare(value))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Scalar, E> {
                Ok(bare(value))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Scalar, E> {
                Ok(bare(value))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar {
                    text: value.to_owned(),
                    quoted: true,
                })
            }
        }
        fn bare(value: impl fmt::Display) -> Scalar {
            Scalar {
                text: value.to_string(),
                quoted: false,
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// `"/id"` or `["/shop", "/id"]`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a JSON pointer or a list of JSON pointers")]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

/// `equals = "ratelimited"` or `equals = [4, 17, 32]`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a string, number or boolean, or a list of them")]
pub(crate) enum OneOrManyScalars {
    One(Scalar),
    Many(Vec<Scalar>),
}

impl OneOrManyScalars {
    pub(crate) fn to_vec(&self) -> Vec<Scalar> {
        match self {
            OneOrManyScalars::One(one) => vec![one.clone()],
            OneOrManyScalars::Many(many) => many.clone(),
        }
    }
}

/// `404`, `"5xx"` or `[403, 429]`.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a status (429), a class of them (\"5xx\") or a list of statuses"
)]
pub(crate) enum StatusKey {
    One(u16),
    Hundred(String),
    Many(Vec<u16>),
}

/// Tables that may be written as a bare string for the usual case.
macro_rules! string_or_table {
    ($name:ident, $expecting:literal, |$text:ident| $from_text:expr, { $($field:ident: $kind:ty),* $(,)? }) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Table { $($field: $kind),* }

                #[derive(Deserialize)]
                #[serde(untagged, expecting = $expecting)]
                enum Form { Text(String), Table(Table) }

                Ok(match Form::deserialize(deserializer)? {
                    Form::Text($text) => $from_text,
                    Form::Table(Table { $($field),* }) => $name { $($field),* },
                })
            }
        }
    };
}

string_or_table!(
    UpdatedAtKeys,
    "a JSON pointer, or a table of `pointer`, `format`, `utc_offset`, `dst_offset`",
    |pointer| UpdatedAtKeys { pointer, format: None, utc_offset: None, dst_offset: None },
    { pointer: String, format: Option<String>, utc_offset: Option<String>, dst_offset: Option<String> }
);

string_or_table!(
    MarkKeys,
    "a JSON pointer, or a table of `pointer` and `equals`",
    |pointer| MarkKeys { pointer, equals: None },
    { pointer: String, equals: Option<Scalar> }
);

impl<'de> Deserialize<'de> for WaitKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "a duration such as \"30s\", or a table of `pointer` or `header`, and `unit` (ms, s, m)"
        )]
        enum Form {
            Fixed(Millis),
            Told(SourceKeys),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Fixed(fixed) => WaitKeys::Fixed(fixed),
            Form::Told(told) => WaitKeys::Told(told),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_known_unit() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("90d", Some(7_776_000_000)),
            ("5", None),
            ("5seconds", None),
            ("s", None),
            ("-5s", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(Millis::parse(text).map(|m| m.0), expected, "{text}");
        }
    }

    #[test]
    fn a_duration_without_a_unit_says_what_is_right() {
        let error =
            serde_json::from_str::<PacingKeys>(r#"{"min_interval": "5seconds"}"#).unwrap_err();
        assert!(error.to_string().contains("\"30s\""), "{error}");
        let error = serde_json::from_str::<PacingKeys>(r#"{"min_interval": 5}"#).unwrap_err();
        assert!(error.to_string().contains("\"30s\""), "{error}");
    }

    #[test]
    fn scalars_keep_their_text() {
        let scalars: Vec<Scalar> =
            serde_json::from_str(r#"[1285704473650888702, false, "0", 1.5]"#).unwrap();
        let texts: Vec<_> = scalars
            .iter()
            .map(|s| (s.text.as_str(), s.quoted))
            .collect();
        assert_eq!(
            texts,
            [
                ("1285704473650888702", false),
                ("false", false),
                ("0", true),
                ("1.5", false)
            ]
        );
    }
}
