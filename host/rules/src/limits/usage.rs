//! Shares instead of counts: percentages in JSON, as Meta sends them, and plain ones.
//!
//! `X-App-Usage: {"call_count":28,"total_time":40}` and its relatives, nested to any depth, with any number of
//! entries. The highest percentage and the longest time to regain access count, also among repeated keys. Zero
//! time to regain access says "not blocked yet", and takes nothing from what the percentage demands.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::draft::{Drafts, Family};
use crate::model::{Duration, Scope};
use crate::moment::HORIZON;

/// The share of the throttling limit that Microsoft's services report: 1 is all.
const THROTTLE_SHARE: &str = "x-ms-throttle-limit-percentage";

/// Reads a header that holds shares; false if it is another one.
pub(super) fn read(name: &str, value: &str, drafts: &mut Drafts) -> bool {
    if name == THROTTLE_SHARE {
        match value.trim().parse::<f64>() {
            Ok(share) if share.is_finite() && share >= 0.0 => {
                let draft = drafts.bucket(Family::of(name), Some("throttle".to_owned()));
                draft.used_percent = Some(share * 100.0);
            }
            _ => drafts.ignore(name, value, "no share"),
        }
        return true;
    }
    let json = value.trim_start().starts_with(['{', '[']);
    if !json
        || !["usage", "throttle", "limit"]
            .iter()
            .any(|part| name.contains(part))
    {
        return false;
    }
    let mut usage = Usage::default();
    // Lines of one name have been joined with commas.
    let list = format!("[{value}]");
    let mut reader = serde_json::Deserializer::from_str(&list);
    let read = Part {
        usage: &mut usage,
        meaning: Meaning::None,
    }
    .deserialize(&mut reader)
    .and_then(|()| reader.end());
    if read.is_err() {
        drafts.ignore(name, value, "not JSON");
        return true;
    }
    if usage.is_empty() {
        drafts.ignore(name, value, "no percentage that is known");
        return true;
    }
    let bucket = name.strip_prefix("x-").unwrap_or(name).to_owned();
    let by_app = bucket.split('-').any(|word| word == "app");
    let draft = drafts.bucket(Family::of(name), Some(bucket));
    draft.used_percent = usage.percent;
    draft.wait = usage.regain;
    draft.scope = by_app.then_some(Scope::App);
    true
}

#[derive(Default)]
struct Usage {
    percent: Option<f64>,
    /// ms; never 0.
    regain: Option<Duration>,
}

impl Usage {
    fn is_empty(&self) -> bool {
        self.percent.is_none() && self.regain.is_none()
    }

    fn take(&mut self, meaning: Meaning, value: f64) {
        if !value.is_finite() || value < 0.0 {
            return;
        }
        match meaning {
            Meaning::Percent => {
                self.percent = Some(self.percent.map_or(value, |known| known.max(value)));
            }
            Meaning::RegainMinutes => {
                let ms = (value * 60_000.0).ceil();
                if ms > 0.0 && ms <= HORIZON as f64 {
                    self.regain = self.regain.max(Some(ms as Duration));
                }
            }
            Meaning::None => {}
        }
    }
}

/// What a number under a key says.
#[derive(Clone, Copy)]
enum Meaning {
    None,
    Percent,
    RegainMinutes,
}

fn meaning(key: &str) -> Meaning {
    match key {
        "call_count" | "total_cputime" | "total_time" => Meaning::Percent,
        "estimated_time_to_regain_access" => Meaning::RegainMinutes,
        _ if key.ends_with("_pct") || key.contains("percent") => Meaning::Percent,
        _ => Meaning::None,
    }
}

/// Walks a JSON value and picks out what is known. A map would drop repeated keys; this sees them all.
struct Part<'u> {
    usage: &'u mut Usage,
    meaning: Meaning,
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            map.next_value_seed(Part {
                usage: self.usage,
                meaning: meaning(&key),
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq
            .next_element_seed(Part {
                usage: self.usage,
                meaning: self.meaning,
            })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.usage.take(self.meaning, value as f64);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.usage.take(self.meaning, value as f64);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.usage.take(self.meaning, value);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        if let Ok(value) = value.parse() {
            self.usage.take(self.meaning, value);
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
