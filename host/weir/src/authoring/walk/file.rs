//! One file per walk: `walks/NAME.json`. It says which poll is meant, what the vendor answered to each call, and what the
//! connector is expected to ask and to make of it.
//!
//! The answers are given; the rest (`request`, `page`, `fault`) is written by `weir test --update` and compared from then
//! on. A vendor's JSON stands in the file as it is: no digit of it is touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir_rules::model::{Class, Reason, Scope};

use crate::authoring::layout;

/// A recorded walk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WalkFile {
    /// What it shows, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The stream that is polled.
    pub stream: String,
    /// The slice of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The parent stream's record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<RawValue>>,
    /// The connection's config.
    #[serde(default = "empty", skip_serializing_if = "is_empty")]
    pub config: Box<RawValue>,
    /// The unit's cursor; none: a first poll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Box<RawValue>>,
    /// The start of the window; none: everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Moment>,
    /// The end of the window; none: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
    /// The start of the poll.
    pub now: Moment,
    /// Who asked.
    #[serde(default = "scheduled", skip_serializing_if = "is_scheduled")]
    pub reason: Reason,
    /// How many records to ask for; none: as many as the stream says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u32>,
    /// The calls, in order.
    pub exchanges: Vec<Exchange>,
}

/// One call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// What the connector asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestShown>,
    /// What the vendor answers.
    pub response: ResponseGiven,
    /// What the connector makes of it: a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageShown>,
    /// What the connector makes of it: a fault. The next exchange asks again, as a host would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultShown>,
}

/// A request, as it leaves the host: without credentials.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestShown {
    /// `GET`, `POST`, ...
    pub method: String,
    /// Where to, without what `query` adds.
    pub url: String,
    /// The query, not yet encoded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<(String, String)>,
    /// Headers that the connector sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// A body that is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Box<RawValue>>,
    /// Any other body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A body that is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// It may be answered with 304.
    #[serde(default, skip_serializing_if = "is_false")]
    pub conditional: bool,
    /// Which of the vendor's buckets it spends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// How much of it.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cost: u32,
    /// The header that takes the host's key, of a call with an effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_header: Option<String>,
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseGiven {
    /// The status.
    #[serde(default = "good", skip_serializing_if = "is_good")]
    pub status: u16,
    /// The headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Where it came from in the end, if not from where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A body that is JSON, exactly as it stands here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Box<RawValue>>,
    /// Any other body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A body that is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// A file that holds the body; from the connector's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// A page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageShown {
    /// The records, in the connector's order.
    pub records: Vec<RecordShown>,
    /// Where the walk goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Box<RawValue>>,
    /// The unit's new cursor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Box<RawValue>>,
    /// The vendor's own count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// The vendor holds back more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// The pause before the next poll, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_after: Option<u64>,
    /// Limits that the connector has read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitShown>,
    /// What the contract has no field for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<(String, String)>,
}

/// A record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordShown {
    /// Its id; empty: none could be read.
    pub id: String,
    /// When it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Moment>,
    /// It is gone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deleted: bool,
    /// Where in the answer it stands: a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What the connector put together itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    /// The same, where it is no JSON; the host sets such a record aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// A limit. Times are in ms.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the contract's own fields, which it explains")]
pub struct LimitShown {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    pub scope: Scope,
    pub quota_unit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_in: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<u64>,
}

/// A fault.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultShown {
    /// What will fix it.
    pub class: Class,
    /// Whom it concerns.
    pub scope: Scope,
    /// The vendor's code.
    pub code: String,
    /// For people.
    pub message: String,
    /// The vendor's own word on when to come back, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<u64>,
    /// Ask again with pages of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u32>,
    /// Limits that the connector has read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitShown>,
    /// What the contract has no field for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<(String, String)>,
}

/// A moment: milliseconds since the epoch, as RFC 3339 in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl Serialize for Moment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match Timestamp::from_millisecond(self.0) {
            Ok(at) => serializer.collect_str(&at),
            // Beyond what a calendar can say.
            Err(_) => serializer.serialize_i64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if let Ok(ms) = serde_json::from_str(raw.get()) {
            return Ok(Moment(ms));
        }
        let at = serde_json::from_str::<String>(raw.get()).ok();
        let at = at.and_then(|text| text.parse::<Timestamp>().ok());
        at.map(|at| Moment(at.as_millisecond())).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{} is no moment: write \"2031-03-04T10:00:00Z\"",
                raw.get()
            ))
        })
    }
}

/// Why a file of a walk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no walk.
    #[error("{}: {why}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl WalkFile {
    /// Reads a file.
    ///
    /// # Errors
    /// [`WalkError`].
    pub fn read(path: &Path) -> Result<WalkFile, WalkError> {
        let text = fs::read_to_string(path).map_err(|source| WalkError::File {
            path: path.to_owned(),
            source,
        })?;
        serde_json::from_str(&text).map_err(|error| WalkError::Format {
            path: path.to_owned(),
            why: error.to_string(),
        })
    }

    /// The text of its file.
    ///
    /// # Errors
    /// Nothing that was read from JSON fails here.
    pub fn text(&self) -> serde_json::Result<String> {
        let mut text = layout::pretty(&serde_json::to_string(self)?)?;
        text.push('\n');
        Ok(text)
    }

    /// Writes the file, if it would change; says whether it did.
    ///
    /// # Errors
    /// [`WalkError`].
    pub fn write(&self, path: &Path) -> Result<bool, WalkError> {
        let text = self.text().map_err(|error| WalkError::Format {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        if fs::read_to_string(path).ok().as_deref() == Some(text.as_str()) {
            return Ok(false);
        }
        let failed = |source| WalkError::File {
            path: path.to_owned(),
            source,
        };
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(failed)?;
        }
        fs::write(path, text).map_err(failed)?;
        Ok(true)
    }
}

/// The walks of a connector, by name, in order.
///
/// # Errors
/// The directory cannot be read. One that is not there holds none.
pub fn all(dir: &Path) -> Result<Vec<(String, PathBuf)>, WalkError> {
    let failed = |source| WalkError::File {
        path: dir.to_owned(),
        source,
    };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "json")
            && let Some(name) = path.file_stem()
        {
            found.push((name.to_string_lossy().into_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[allow(clippy::borrowed_box, reason = "serde hands over the field as it is")]
fn is_empty(value: &Box<RawValue>) -> bool {
    value.get() == "{}"
}

fn scheduled() -> Reason {
    Reason::Schedule
}

fn is_scheduled(reason: &Reason) -> bool {
    *reason == Reason::Schedule
}

fn good() -> u16 {
    200
}

fn is_good(status: &u16) -> bool {
    *status == 200
}

fn one() -> u32 {
    1
}

fn is_one(cost: &u32) -> bool {
    *cost == 1
}

fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_as_it_was() {
        let text = r#"{
  "stream": "notes",
  "config": { "notebook": "a" },
  "since": "2031-03-04T09:00:00Z",
  "now": "2031-03-04T10:00:00.25Z",
  "exchanges": [
    {
      "response": {
        "headers": [["x-page", "1"]],
        "json": {
          "notes": [{ "id": 12345678901234567890123, "price": 1.10 }],
          "padding": "................"
        }
      }
    },
    { "response": { "status": 503, "text": "<html>" } }
  ]
}
"#;
        let walk: WalkFile = serde_json::from_str(text).unwrap();
        assert_eq!(walk.now, Moment(1_930_384_800_250));
        assert_eq!(walk.text().unwrap(), text);
    }

    #[test]
    fn a_wrong_file_is_named_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        for (text, named) in [
            (
                r#"{"stream":"a","now":"yesterday","exchanges":[]}"#,
                "no moment",
            ),
            (
                r#"{"stream":"a","now":0,"exchanges":[],"pages":1}"#,
                "pages",
            ),
            ("{", "line 1"),
        ] {
            fs::write(&path, text).unwrap();
            let error = WalkFile::read(&path).unwrap_err().to_string();
            assert!(error.contains("a.json") && error.contains(named), "{error}");
        }
        assert!(all(&dir.path().join("none")).unwrap().is_empty());
        assert_eq!(all(dir.path()).unwrap()[0].0, "a");
    }
}
