//! The text of a record. It follows from the seed, the id and the revision alone, so that nobody has to keep it:
//! the vendor renders it for an answer, and the judge renders it again to compare.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use crate::dice::{mix, seed_for};
use crate::spec::{CollectionSpec, Fields, IdKind};

use super::Version;

const WORDS: [&str; 24] = [
    "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty",
    "kiosk", "ledge", "mason", "north", "oasis", "plaza", "quay", "ridge", "slate", "tower",
    "union", "vault", "wharf", "yard",
];

/// Text that a careless client damages: escapes, quotes, a line break, and letters outside of ASCII in both
/// spellings.
const NOTES: [&str; 6] = [
    r#"plain"#,
    r#"said \"yes\" twice"#,
    r#"two\nlines\tand a tab"#,
    r#"gr\u00fcn und grün"#,
    r#"back\\slash \/ slash"#,
    r#"\ud83d\ude80 and 🚀"#,
];

/// Writes records of one collection.
#[derive(Clone, Debug)]
pub struct Renderer {
    seed: u64,
    first_id: u64,
    ids: IdKind,
    time: crate::time::TimeFormat,
    fields: Fields,
    volatile_every_ms: i64,
    flips: bool,
}

/// A record's text, without the value of its volatile field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Up to and including `"views":`.
    pub head: String,
    /// What follows on the number.
    pub tail: String,
    /// Where in the head the stamp stands, with its name and the comma behind it.
    stamp: Range<usize>,
}

impl Renderer {
    pub(crate) fn new(seed: u64, spec: &CollectionSpec) -> Self {
        Renderer {
            seed: seed_for(seed, &spec.name),
            first_id: spec.first_id,
            ids: spec.ids,
            time: spec.time_format,
            fields: spec.fields.clone(),
            volatile_every_ms: spec.volatile_every_ms,
            flips: spec.flips,
        }
    }

    /// The id of record number `n`, as parameters and delivered lines spell it.
    pub fn id(&self, n: u64) -> String {
        let id = self.first_id.saturating_add(n);
        match self.ids {
            IdKind::Number => id.to_string(),
            IdKind::Text => format!("r_{id:012}"),
        }
    }

    /// The number of the record with this id.
    pub fn number(&self, id: &str) -> Option<u64> {
        let digits = match self.ids {
            IdKind::Number => id,
            IdKind::Text => id.strip_prefix("r_")?,
        };
        digits.parse::<u64>().ok()?.checked_sub(self.first_id)
    }

    /// Names the content of a version among those of its record, its `rev`, `updated_at`, `deleted` and `views` aside.
    pub fn content(&self, version: &Version) -> u64 {
        if self.flips {
            u64::from(version.revision % 2)
        } else {
            u64::from(version.revision)
        }
    }

    /// The text of a version, volatile value aside.
    pub fn render(&self, version: &Version) -> Rendered {
        let chance = mix(self.seed ^ mix(version.record ^ (self.content(version) << 40)));
        let word = |shift: u32| pick(&WORDS, chance >> shift);
        let id = match self.ids {
            IdKind::Number => self.id(version.record),
            IdKind::Text => format!("\"{}\"", self.id(version.record)),
        };
        let Fields {
            id: id_name,
            stamp: stamp_name,
            deleted: deleted_name,
            deleted_is: [there, gone],
            with,
        } = &self.fields;
        let start = format!(
            "{{{}:{id},\"rev\":{},",
            Value::from(id_name.as_str()),
            version.revision
        );
        let stamp = format!(
            "{}:{},",
            Value::from(stamp_name.as_str()),
            self.time.json(version.stamp)
        );
        let deleted = if deleted_name.is_empty() {
            String::new()
        } else {
            let is = if version.deleted { gone } else { there };
            format!("{}:{is},", Value::from(deleted_name.as_str()))
        };
        let stamp_at = start.len()..start.len() + stamp.len();
        let head = format!(
            "{start}{stamp}{deleted}\"title\":\"{} {} {}\",\
             \"state\":\"{}\",\"serial\":{serial},\"amount\":{}.{:02},\"rate\":1.{}0e3,\"customer\":{{\"name\":\
             \"{} {}\",\"city\":\"{}\",\"tags\":[\"{}\",\"{}\"],\"manager\":null}},\"note\":\"{}\",\"views\":",
            word(0),
            word(5),
            word(10),
            pick(
                &["open", "paid", "packed", "sent", "returned"],
                chance >> 15
            ),
            (chance >> 20) % 1000,
            (chance >> 30) % 100,
            (chance >> 7) % 10,
            word(18),
            word(23),
            word(28),
            word(33),
            word(38),
            pick(&NOTES, chance >> 43),
            // Above 2^53, where a double can no longer tell neighbours apart.
            serial = 9_007_199_254_740_993 + (chance >> 12),
        );
        let with: String = with
            .iter()
            .map(|(name, value)| format!(",{}:{value}", Value::from(name.as_str())))
            .collect();
        let tail = format!(
            ",\"address\":{{\"street\":\"{} {}\",\"zip\":\"{:05}\"}},\"memo\":\"{} {} {} {} {}\"{with}}}",
            word(2),
            (chance >> 48) % 200,
            chance % 100_000,
            word(45),
            word(50),
            word(55),
            word(13),
            word(8),
        );
        Rendered {
            head,
            tail,
            stamp: stamp_at,
        }
    }

    /// The volatile value of a record at this moment of the vendor's life.
    pub(crate) fn views(&self, record: u64, since_start: i64) -> u64 {
        if self.volatile_every_ms <= 0 {
            return record % 100;
        }
        let beat = since_start.div_euclid(self.volatile_every_ms);
        record % 100 + u64::try_from(beat).unwrap_or(0)
    }
}

/// Texts that have been rendered lately: overlapping windows show the same versions again and again.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    known: HashMap<(u64, u32), Rendered>,
}

/// Texts that are kept.
const TEXTS: usize = 4_096;

impl Texts {
    /// The text of a version, as its renderer makes it.
    pub(crate) fn of(&mut self, renderer: &Renderer, version: &Version) -> &Rendered {
        if self.known.len() >= TEXTS {
            self.known.clear();
        }
        self.known
            .entry((version.record, version.revision))
            .or_insert_with(|| renderer.render(version))
    }
}

impl Rendered {
    /// Whether this is the record's text, whatever its volatile value.
    pub fn matches(&self, data: &str) -> bool {
        data.strip_prefix(self.head.as_str())
            .and_then(|rest| rest.strip_suffix(self.tail.as_str()))
            .is_some_and(|views| {
                !views.is_empty() && views.bytes().all(|byte| byte.is_ascii_digit())
            })
    }

    /// The same without its stamp, as a vendor in trouble sends it.
    pub fn without_stamp(&self) -> Rendered {
        let mut head = self.head.clone();
        head.replace_range(self.stamp.clone(), "");
        Rendered {
            head,
            tail: self.tail.clone(),
            stamp: self.stamp.start..self.stamp.start,
        }
    }
}

fn pick<'a>(from: &[&'a str], chance: u64) -> &'a str {
    let index = usize::try_from(chance % from.len().max(1) as u64).unwrap_or(0);
    from.get(index).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(record: u64, revision: u32) -> Version {
        Version {
            record,
            revision,
            deleted: false,
            written: 0,
            stamp: 1_930_384_800_000,
            visible_from: 0,
            visible_until: None,
        }
    }

    #[test]
    fn every_version_has_a_text_of_its_own_of_about_400_bytes() {
        let renderer = Renderer::new(1, &CollectionSpec::default());
        let mut seen = std::collections::HashSet::new();
        for record in 0..50 {
            for revision in 1..10 {
                let text = renderer.render(&version(record, revision));
                let whole = format!("{}7{}", text.head, text.tail);
                let value: serde_json::Value = serde_json::from_str(&whole).unwrap();
                assert_eq!(value["id"], record + 1);
                assert_eq!(value["rev"], revision);
                assert!((330..=480).contains(&whole.len()), "{} bytes", whole.len());
                assert!(text.matches(&whole));
                assert!(!text.matches(&whole.replace("\"views\":7", "\"views\": 7")));
                assert!(seen.insert(whole));
            }
        }
    }

    #[test]
    fn a_record_without_its_stamp_is_still_json() {
        let renderer = Renderer::new(1, &CollectionSpec::default());
        let text = renderer.render(&version(0, 1));
        let text = text.without_stamp();
        let whole = format!("{}7{}", text.head, text.tail);
        let value: serde_json::Value = serde_json::from_str(&whole).unwrap();
        assert!(value.get("updated_at").is_none());
        assert!(value.get("deleted").is_some());
    }

    #[test]
    fn fields_are_called_what_their_vendor_calls_them() {
        let spec = CollectionSpec {
            fields: Fields {
                id: "movement_id".into(),
                stamp: "last_updated_ts".into(),
                deleted: "status".into(),
                deleted_is: ["open".into(), "deleted".into()],
                with: [("pick_count".to_owned(), 3.into())].into_iter().collect(),
            },
            ..CollectionSpec::default()
        };
        let renderer = Renderer::new(1, &spec);
        let mut gone = version(4, 2);
        gone.deleted = true;
        let whole = |text: Rendered| format!("{}7{}", text.head, text.tail);
        let text = whole(renderer.render(&gone));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["movement_id"], 5);
        assert_eq!(value["last_updated_ts"], "2031-03-04T10:00:00.000Z");
        assert_eq!(value["status"], "deleted");
        assert_eq!(value["pick_count"], 3);
        assert!(!text.contains("updated_at") && !text.contains("\"id\""));
        let without = whole(renderer.render(&gone).without_stamp());
        assert!(!without.contains("last_updated_ts") && without.contains("\"status\""));
    }

    #[test]
    fn ids_read_back() {
        let mut spec = CollectionSpec {
            first_id: 9_007_199_254_740_993,
            ..CollectionSpec::default()
        };
        for ids in [IdKind::Number, IdKind::Text] {
            spec.ids = ids;
            let renderer = Renderer::new(1, &spec);
            assert_eq!(renderer.number(&renderer.id(41)), Some(41));
            assert_eq!(renderer.number("x"), None);
            assert_eq!(renderer.number("3"), None);
        }
    }
}
